"""Workers that this machine could offer: hosted providers' (`hosted`), and model servers' on loopback.

They are only listed, with the pool entry they would make, unless `podium up --use-keys` says to use them:
a key that happens to be set is no permission to send questions away.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from podium_cli.home import HOST, Home, write_private
from podium_cli.hosted import Offer

_PROBE_S = 0.3
_MAX_LOCAL_MODELS = 8
_PORTS = {"ollama": 11434, "vllm": 8000}


async def offers_from_servers(ports: dict[str, int] | None = None) -> list[Offer]:
    """Return an offer for every model that a server on loopback says it serves."""
    ports = _PORTS if ports is None else ports
    timeout = aiohttp.ClientTimeout(total=_PROBE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        found = await asyncio.gather(*(_models(session, port) for port in ports.values()))
    return [
        Offer(
            _worker_id(kind, model),
            f"{kind} serves it on port {port}",
            "openai-compatible",
            model,
            (f"base_url: http://{HOST}:{port}/v1",),
        )
        for (kind, port), models in zip(ports.items(), found, strict=True)
        for model in models[:_MAX_LOCAL_MODELS]
    ]


async def _models(session: aiohttp.ClientSession, port: int) -> list[str]:
    """Return the models of an OpenAI-compatible server; none when there is no such server."""
    try:
        async with session.get(f"http://{HOST}:{port}/v1/models", allow_redirects=False) as response:
            body: Any = await response.json() if response.ok else {}
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return []
    models = body.get("data") if isinstance(body, dict) else None
    ids = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return [name for name in ids if isinstance(name, str) and name.isprintable()]


def _worker_id(kind: str, model: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in model)
    return f"{kind}-{plain}"[:64]


def add_to_pool(
    pool_yaml: str, offers: Sequence[Offer], taken_ids: frozenset[str]
) -> tuple[str, list[Offer]]:
    """Return `pool_yaml` with the offers that it lacks appended, and which these were."""
    new = [offer for offer in offers if offer.worker_id not in taken_ids]
    return pool_yaml.rstrip("\n") + "\n" + "".join(offer.entry for offer in new), new


def save_keys(home: Home, offers: Sequence[Offer], environment: Mapping[str, str]) -> None:
    """Write the keys of offered workers into files that only their owner, and so the router, can read."""
    for offer in offers:
        for name, variable in offer.secrets.items():
            write_private(home.keys_dir / name, f"{environment[variable]}\n")
