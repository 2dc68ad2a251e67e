"""LiteLLM as a library: imported once, everything of its own will switched off.

Importing costs seconds and 200 MB, so it happens only in a router whose pool needs it, and off the event
loop. The library gets no way out but the gate: its caches of HTTP clients hold one client, ours.
"""

import asyncio
import importlib
import logging
import os
import warnings
from types import ModuleType
from typing import Any, Final

from podium_router.providers.gate import Gate

_ENVIRONMENT: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads its price list at import
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file from the working directory
    "LITELLM_LOG": "CRITICAL",
}
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_NEVER_S: Final = 86_400.0


class Library:
    """The library, loaded at the first wish."""

    def __init__(self) -> None:
        self._loading: asyncio.Future[ModuleType] | None = None
        self.client: Any = None

    async def load(self) -> ModuleType:
        """Return the module; the first call imports it in a thread."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._import))
        return await asyncio.shield(self._loading)

    def _import(self) -> ModuleType:
        os.environ.update(_ENVIRONMENT)  # noqa: TID251 - the library reads it while it is imported
        for name in _LOGGERS:
            logging.getLogger(name).disabled = True
        warnings.filterwarnings("ignore", category=UserWarning, module=r"pydantic\._internal")
        library = importlib.import_module("litellm")
        handlers = importlib.import_module("litellm.llms.custom_httpx.http_handler")
        self.client = handlers.AsyncHTTPHandler(transport=Gate(), follow_redirects=False, timeout=_NEVER_S)
        _switch_off(library, self.client)
        return library


def _switch_off(library: Any, client: Any) -> None:
    """Take from the library what the router does itself, or does not want done."""
    library.telemetry = False
    library.suppress_debug_info = True
    library.turn_off_message_logging = True
    library.disable_streaming_logging = True
    library.drop_params = False
    library.modify_params = False
    library.num_retries = 0
    library.num_retries_per_request = 0
    library.cache = None
    library.disable_end_user_cost_tracking = True
    library.request_timeout = _NEVER_S
    for callbacks in (
        "callbacks",
        "input_callback",
        "success_callback",
        "failure_callback",
        "service_callback",
        "_async_input_callback",
        "_async_success_callback",
        "_async_failure_callback",
    ):
        setattr(library, callbacks, [])
    library.module_level_aclient = client
    library.aclient_session = client.client
    library.in_memory_llm_clients_cache = _OneClient(client)


class _OneClient:
    """In place of the library's cache of HTTP clients: whichever it looks for, it finds the gate's."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get_cache(self, key: str, **_: object) -> Any:
        """Return the client that leads to the gate, for keys of asynchronous clients."""
        return self._client if key.startswith("async_httpx_client") else None

    def set_cache(self, key: str, value: object, **_: object) -> None:
        """Keep nothing."""
