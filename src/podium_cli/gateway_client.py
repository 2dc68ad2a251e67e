"""Asks the gateway as any client would: the OpenAI protocol over HTTP, with Podium's step events."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

import aiohttp

from podium_cli.failures import KEY_HINT, CliError
from podium_cli.sse import ServerEvent, SseDecoder
from podium_cli.words import plain_facts

_CONNECT_S = 5.0
_SILENCE_S = 90.0

NewsKind = Literal["planned", "step_started", "step_ended", "text", "finished", "error"]
_KINDS: Mapping[str, NewsKind] = {
    "plan": "planned",
    "planned": "planned",
    "step_started": "step_started",
    "step_ended": "step_ended",
    "finished": "finished",
}


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened in a run: its kind and the facts as the gateway sent them."""

    kind: NewsKind
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asking:
    """One question, or `messages` in its place. `podium` are Podium's own request fields (workers, caps)."""

    question: str
    model: str = "podium"
    podium: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Mapping[str, Any], ...] = ()


class GatewayClient:
    """Speaks to one gateway with one API key."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        self._key = key

    async def ask(self, asking: Asking) -> AsyncGenerator[News, None]:
        """Yield what happens, the answer's text as it arrives, and at the end `finished` or `error`.

        Raises CliError when the gateway cannot be reached or refuses the request.
        """
        body = {
            "model": asking.model,
            "messages": list(asking.messages) or [{"role": "user", "content": asking.question}],
            "stream": True,
            "podium": {**asking.podium, "events": True},
        }
        timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S, sock_read=_SILENCE_S)
        headers = {"authorization": f"Bearer {self._key}"}
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.post(f"{self._url}/v1/chat/completions", json=body) as response,
            ):
                if not response.ok:
                    raise _refusal(response, await response.read())
                async for news in _read(response):
                    yield news
        except (aiohttp.ClientError, TimeoutError) as error:
            raise CliError(
                f"the gateway at {self._url} cannot be reached or broke off ({type(error).__name__})",
                hint="is it running? `podium status` shows it, `podium up` starts it",
            ) from None

    @property
    def url(self) -> str:
        """The gateway's address, without `/v1`."""
        return self._url

    async def models(self) -> list[Mapping[str, Any]]:
        """Return the models as OpenAI's list shows them; raise CliError when the gateway does not say."""
        timeout = aiohttp.ClientTimeout(total=_CONNECT_S)
        headers = {"authorization": f"Bearer {self._key}"}
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.get(f"{self._url}/v1/models") as response,
            ):
                if not response.ok:
                    raise _refusal(response, await response.read())
                listed = plain_facts((await response.json())["data"])
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise CliError(
                f"the gateway at {self._url} does not list its models ({type(error).__name__})",
                hint="is it running? `podium status` shows it, `podium up` starts it",
            ) from None
        return [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []

    async def grade(self, run_id: str, grade: Mapping[str, object]) -> Mapping[str, Any]:
        """Send a grade of a run; return what the gateway says of it."""
        return await self._call("POST", f"/v1/podium/runs/{run_id}/grade", json=dict(grade))

    async def usage(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what the key, or with `scope=tenant` its tenant, used, as the gateway counts it."""
        return await self._call("GET", "/v1/podium/usage", params=dict(query))

    async def _call(self, method: str, path: str, **content: Any) -> Mapping[str, Any]:
        timeout = aiohttp.ClientTimeout(total=_SILENCE_S, connect=_CONNECT_S)
        headers = {"authorization": f"Bearer {self._key}"}
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.request(method, f"{self._url}{path}", **content) as response,
            ):
                body = await response.read()
                if not response.ok:
                    raise _refusal(response, body)
                told: Mapping[str, Any] = plain_facts(json.loads(body))
                return told
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise CliError(
                f"the gateway at {self._url} cannot be reached or broke off ({type(error).__name__})",
                hint="is it running? `podium status` shows it, `podium up` starts it",
            ) from None

    async def demo_workers(self) -> frozenset[str]:
        """Return the ids of workers that only demonstrate; empty when the gateway does not say."""
        try:
            models = await self.models()
        except CliError:
            return frozenset()
        return frozenset(
            str(model.get("id")).removeprefix("worker/") for model in models if model.get("demo")
        )


async def _read(response: aiohttp.ClientResponse) -> AsyncGenerator[News, None]:
    decoder = SseDecoder()
    async for chunk in response.content.iter_any():
        for event in decoder.feed(chunk):
            if event.data == "[DONE]":
                return
            for news in read_event(event):
                yield news


def read_event(event: ServerEvent) -> list[News]:
    """Return the news in one event of the stream; nothing in what is not understood."""
    try:
        fields = json.loads(event.data)
    except ValueError:
        return []
    if not isinstance(fields, dict):
        return []
    if isinstance(fields.get("error"), dict):
        return [News("error", plain_facts(fields["error"]))]
    podium = plain_facts(fields.get("podium"))
    if event.name == "podium":
        facts = podium if isinstance(podium, dict) else plain_facts(fields)
        kind = _KINDS.get(str(facts.get("event", facts.get("type"))))
        return [News(kind, facts)] if kind else []
    news = [News("text", {"text": text}) for text in _texts(fields)]
    return [*news, News("finished", podium)] if isinstance(podium, dict) else news


def _texts(fields: Mapping[str, Any]) -> list[str]:
    choices = fields.get("choices")
    deltas = [c.get("delta") for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    texts = [delta.get("content") for delta in deltas if isinstance(delta, dict)]
    return [text for text in texts if isinstance(text, str) and text]


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> CliError:
    code = None
    try:
        error = json.loads(body)["error"]
        code = error.get("code")
        said = f"{error['message']} ({code})"
    except (ValueError, KeyError, TypeError):
        said = "no reason given"
    run = response.headers.get("x-podium-run-id")
    hint = ""
    if response.status == HTTPStatus.UNAUTHORIZED:
        hint = KEY_HINT
    elif code == "run_unknown":
        hint = "`podium runs` lists those that this key may see; `last` stands for the newest"
    elif run and response.status != HTTPStatus.BAD_REQUEST:  # a request that is no request opens no run
        hint = f"`podium show {run}` tells which rule refused what"
    return CliError(f"the gateway answered {response.status}: {said}", hint=hint)
