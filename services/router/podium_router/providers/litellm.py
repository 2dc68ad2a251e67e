"""Calls providers that speak another protocol than OpenAI's, in LiteLLM's translation.

The library translates and nothing else: it is handed an OpenAI body, stops at the gate with the provider's
own request, and reads the answer that comes back through it. Its exceptions hold provider text and keys,
so none is ever shown: what went wrong is known from the gate.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from yarl import URL

from podium_core.domain.errors import PodiumError, invalid
from podium_router import failures
from podium_router.answer import Answer, ProviderErrorEventError
from podium_router.body import Body
from podium_router.calls import ApiKey, Credentials, Piece
from podium_router.ports import DeltaSink, ProviderRequest, Sending
from podium_router.providers.chunks import Facts, chunk_fields, embedding_fields, message_fields
from podium_router.providers.exchange import Exchange, Pause
from podium_router.providers.gate import Passage
from podium_router.providers.library import Library
from podium_router.providers.refusals import provider_refusal
from podium_router.providers.translation import check_request, library_arguments
from podium_router.vectors import BadAnswerError

_SILENT_ON_REASONING: Final = frozenset({"anthropic", "bedrock"})
"""They count no reasoning tokens of their own; what the library reports is its guess."""


class LitellmClient:
    """The client for every translated provider."""

    def __init__(self, exchange: Exchange, library: Library) -> None:
        self._exchange = exchange
        self._library = library

    async def prepare(self, request: ProviderRequest) -> "LitellmCall":
        """Let the library build its request, and hold it at the gate.

        Raises PodiumError (INVALID_REQUEST) naming a field that this provider cannot be asked for.
        """
        module = await self._library.load()
        return await self._hold(module, request)

    async def warm_up(self, kind: str) -> None:
        """Translate one made-up call and drop it: the library imports much at its first use of a provider."""
        module = await self._library.load()
        (await self._hold(module, _example(kind))).discard()

    async def _hold(self, module: Any, request: ProviderRequest) -> "LitellmCall":
        fields = json.loads(request.body.data)
        arguments = library_arguments(request, fields)
        if not request.is_embedding:
            check_request(module, arguments, fields)
        ask = module.aembedding if request.is_embedding else module.acompletion
        call = LitellmCall(request, self._exchange, ask, {**arguments, "client": self._library.client})
        await call.reach_gate()
        return call


class LitellmCall:
    """One call, held at the gate."""

    def __init__(
        self, request: ProviderRequest, exchange: Exchange, complete: Any, arguments: Mapping[str, Any]
    ) -> None:
        self._request = request
        self._complete = complete
        self._arguments = arguments
        self._passage = Passage(
            exchange,
            request=request,
            read_refusal=lambda status, headers, body: provider_refusal(exchange, status, headers, body),
        )
        self._answer = Answer()
        self._sink: DeltaSink | None = None
        self._pause: Pause | None = None
        self._was_cut = False
        self._task: asyncio.Task[None] | None = None

    @property
    def body(self) -> Body:
        """The exact bytes that `send` sends, in the provider's own format."""
        data = self._passage.arrived.result().body
        return Body(
            data, (Piece("", data),), hashlib.sha256(data).digest(), self._request.body.messages_bytes
        )

    @property
    def host(self) -> str:
        """Where they go."""
        return self._passage.arrived.result().url.raw_host or ""

    async def reach_gate(self) -> None:
        """Run the library until its request is built. Raises PodiumError (INVALID_REQUEST) if it never is."""
        self._task = asyncio.get_running_loop().create_task(self._converse())
        self._task.add_done_callback(_look_at)
        try:
            await asyncio.wait((self._task, self._passage.arrived), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._passage.arrived.done():
                self._task.cancel()
        if not self._passage.arrived.done():
            raise invalid(
                "the request cannot be put into the words of the worker's provider; check its messages and"
                " tools, or choose another worker",
                reason="REQUEST_UNTRANSLATABLE",
            )

    async def send(self, sending: Sending, answer: Answer, sink: DeltaSink) -> None:
        """Let the request out and fill `answer`; put deltas into `sink` when it is streamed.

        Raises PodiumError (PROVIDER_FAILED, RATE_LIMITED, DEADLINE); what `answer` holds by then is what
        came. Cancelling closes the connection.
        """
        assert self._task is not None
        self._answer, self._sink, self._pause = answer, sink, Pause(self._request)
        self._passage.let_out(sending, answer, self._pause)
        is_late = False
        try:
            async with asyncio.timeout_at(sending.deadline), self._pause.limit:
                await asyncio.wait((self._task,))
        except TimeoutError:
            is_late = True
        finally:
            self.discard()
        late = (self._pause.error(answer) or failures.too_slow()) if is_late else None
        error = late or self._failure_of(self._task)
        # What comes after a streamed answer's finish reason is only usage.
        if error is not None and not (self._request.stream and answer.finish_reason):
            raise error
        answer.close()

    def discard(self) -> None:
        """Stop the library and close the connection, if either is still at it."""
        if self._task is not None:
            self._task.cancel()
        self._passage.close()

    def _failure_of(self, task: "asyncio.Task[None]") -> PodiumError | None:
        if self._passage.failure is not None:
            return self._passage.failure
        if self._was_cut:
            return failures.stream_cut()
        if task.cancelled() or task.exception() is not None:
            return self._misread(None if task.cancelled() else task.exception())
        return None

    def _misread(self, error: BaseException | None) -> PodiumError:
        """Return what it means that the library, or we, could not read an answer that came."""
        if isinstance(error, ProviderErrorEventError):
            return failures.stream_error()
        if isinstance(error, BadAnswerError) or not self._request.stream:
            return failures.bad_answer()
        return failures.stream_cut() if self._passage.has_ended else failures.stream_error()

    def _facts(self) -> Facts:
        """Return what the gate knows better than the library."""
        request = self._request
        return Facts(
            request_id=self._passage.request_id,
            has_usage=self._passage.has_usage,
            counts_reasoning=request.kind not in _SILENT_ON_REASONING,
            names_model=not request.stream and request.kind != "bedrock",
        )

    async def _converse(self) -> None:
        self._passage.enter()
        reply = await self._complete(**self._arguments)
        if self._request.is_embedding:
            self._answer.take_vectors(embedding_fields(reply, self._facts()))
            return
        if not self._request.stream:
            self._answer.take_message(message_fields(reply, self._facts()))
            return
        async for chunk in reply:
            fields = chunk_fields(chunk, self._facts())
            if _is_invented_end(reply, fields):
                self._was_cut = True
                return
            delta = self._answer.take_chunk(fields)
            if delta is not None and self._sink is not None and self._pause is not None:
                self._sink.put(delta)
                if not self._sink.has_room:
                    self._pause.suspend()
                    await self._sink.room()
                self._pause.restart(self._answer)


def _example(kind: str) -> ProviderRequest:
    """Return a call that never leaves, of a provider of this kind."""
    data = b'{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":1}'
    return ProviderRequest(
        kind=kind,
        model="groq/m" if kind == "litellm" else "m",
        region="eu-central-1",
        url=URL("http://127.0.0.1:9"),
        credentials=Credentials(key=ApiKey("none")),
        body=Body(data, (Piece("", data),), hashlib.sha256(data).digest(), len(data)),
        stream=False,
        attempt_id="warm-up",
    )


def _is_invented_end(reply: Any, fields: Mapping[str, Any]) -> bool:
    """Say whether the library ends a stream that its provider has not ended."""
    choices = fields["choices"]
    is_end = bool(choices) and bool(choices[0]["finish_reason"])
    return is_end and not (reply.received_finish_reason or reply.intermittent_finish_reason)


def _look_at(task: "asyncio.Task[None]") -> None:
    """Take a finished task's exception, so that nobody prints it: it may hold what a provider said."""
    if not task.cancelled():
        task.exception()
