"""`POST /v1/chat/completions`: the story of one request, from key to receipt."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from podium_core.config.tenants import Principal
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.gate import GateTable
from podium_core.domain.ids import IdFactory
from podium_core.domain.pool import Pool
from podium_core.domain.run import Caps, RunKind
from podium_core.orchestration.eligible import demanded_features
from podium_core.orchestration.events import RunFinished
from podium_core.orchestration.request import RunRequest
from podium_gateway.admission import Admission, Slot
from podium_gateway.answers import AnswerContext, StreamedAnswer, whole_answer
from podium_gateway.auth import Authenticator, tenant_filter
from podium_gateway.caps import effective_caps
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.openai_chat import (
    ChatRequest,
    decode_chat_request,
    model_not_found,
)
from podium_gateway.codecs.podium_object import PodiumView
from podium_gateway.dry_run import DryRuns
from podium_gateway.live_run import LiveRun
from podium_gateway.ports import LeasePort, PoolPort, RunnerPort
from podium_gateway.sse import ClientGoneError, EventStream, Heartbeat
from podium_gateway.telemetry import RunTelemetry

_NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """The edge's own bounds, in bytes and seconds."""

    max_body_bytes: int
    body_timeout_s: float
    first_byte_s: float
    keep_alive_s: float
    write_stall_s: float
    caps: Caps
    podium_max_rounds: int = 1


@dataclass(slots=True)
class ChatHandler:
    """Answers chat requests over the runner."""

    authenticator: Authenticator
    admission: Admission
    pool: PoolPort
    runner: RunnerPort
    dry_runs: DryRuns
    leases: LeasePort
    telemetry: RunTelemetry
    clock: Clock
    ids: IdFactory
    limits: ChatLimits
    gate: Callable[[], GateTable] = GateTable
    live: set[LiveRun] = field(default_factory=set)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; raise PodiumError while nothing has been sent."""
        started_ns = self.clock.monotonic_ns()
        principal = self.authenticator.principal(request.headers)
        slot = self.admission.enter()
        run: LiveRun | None = None
        try:
            chat = decode_chat_request(await self._body(request, slot))
            pool = self.pool.current()
            run_request = self._run_request(chat, principal, pool)
            context = self._context(chat, run_request, pool, started_ns)
            if chat.wishes.dry_run:
                text = await self.dry_runs.answer(run_request, pool, context)
                return web.Response(text=text, content_type="application/json", headers=context.headers)
            run = self._start(run_request, pool, request.headers, slot)
        finally:
            # A run keeps the place until it is sealed, whether or not somebody still listens.
            if run is None:
                slot.release()
        try:
            if chat.parameters.stream:
                return await self._stream(request, run, context)
            return await whole_answer(run, context)
        finally:
            # Nobody listens any more: after a finished run this does nothing, after a hang-up it stops it.
            run.cancel()

    def cancel_all(self) -> None:
        """Stop every run; each seals itself `cancelled`."""
        for run in tuple(self.live):
            run.cancel(PodiumError(Code.UNAVAILABLE, "this gateway is shutting down", reason="SHUTTING_DOWN"))

    # --- the request -----------------------------------------------------------------------------

    async def _body(self, request: web.Request, slot: Slot) -> bytes:
        """Return the body. Its bytes are held as they come: what is only announced keeps nobody out."""
        limit = self.limits.max_body_bytes
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.body_timeout_s):
                async for piece in request.content.iter_any():
                    size += len(piece)
                    if size > limit:
                        raise _too_large(limit)
                    slot.hold(size)
                    pieces.append(piece)
        except TimeoutError:
            raise PodiumError(
                Code.INVALID_REQUEST,
                f"the body did not arrive within {self.limits.body_timeout_s:g} seconds",
                reason="BODY_TIMEOUT",
            ) from None
        except web.RequestPayloadError:
            raise PodiumError(
                Code.INVALID_REQUEST,
                "the body cannot be read: check its length and content-encoding",
                reason="BODY_UNREADABLE",
            ) from None
        return b"".join(pieces)

    def _run_request(self, chat: ChatRequest, principal: Principal, pool: Pool) -> RunRequest:
        if chat.worker_id is not None and chat.worker_id not in pool.by_id:
            raise model_not_found(chat.model)
        _check_features(chat, pool)
        tenant = principal.tenant
        return RunRequest(
            run_id=self.ids.new("run"),
            kind=RunKind.CHAT,
            tenant_id=tenant.tenant_id,
            principal_id=principal.key_id,
            requested_model=chat.model,
            tier=chat.tier,
            question=chat.question,
            caps=effective_caps(
                chat.wishes, tenant.caps, self.limits.caps, chat.tier, self.limits.podium_max_rounds
            ),
            client_filter=chat.wishes.workers,
            tenant_filter=tenant_filter(principal),
            named_worker_id=chat.worker_id,
            tenant_budget_usd_micros=tenant.budget_usd_micros,
            parameters=chat.parameters.passed,
            max_output_tokens=chat.parameters.max_output_tokens,
            stream=chat.parameters.stream,
            gate=self.gate() if tenant.is_gated else None,
        )

    def _context(
        self, chat: ChatRequest, run_request: RunRequest, pool: Pool, started_ns: int
    ) -> AnswerContext:
        demo_workers = frozenset(worker.worker_id for worker in pool.workers if worker.is_demo)
        return AnswerContext(
            run_id=run_request.run_id,
            model=chat.model,
            created=self.clock.now_ns() // _NANOS,
            view=PodiumView(run_request.caps, chat.parameters.metadata, demo_workers),
            wants_events=chat.wishes.events,
            include_usage=chat.parameters.include_usage,
            on_first_output=lambda: self.telemetry.first_output(run_request, started_ns),
        )

    def _start(self, run_request: RunRequest, pool: Pool, headers: Mapping[str, str], slot: Slot) -> LiveRun:
        def ended() -> None:
            self.leases.forget(run.run_id)
            self.live.discard(run)
            slot.release()

        run = LiveRun(
            run_request.run_id,
            self.runner.run(run_request, pool),
            self.telemetry.watch(run_request, headers),
            ended,
        )
        self.live.add(run)
        self.leases.track(run.run_id, run.cancel)
        return run

    # --- the streamed answer ---------------------------------------------------------------------

    async def _stream(self, request: web.Request, run: LiveRun, context: AnswerContext) -> web.StreamResponse:
        stream = EventStream(request, context.headers, self.limits.write_stall_s)
        answer = StreamedAnswer(context)
        heartbeat = Heartbeat(run.nudge, first_s=self.limits.first_byte_s, then_s=self.limits.keep_alive_s)
        try:
            while not answer.is_complete:
                text = await self._next_text(run, answer, stream, heartbeat)
                if text:
                    await stream.send(text)
                    heartbeat.heard()
            await stream.close()
        except ClientGoneError:
            run.cancel()
        finally:
            heartbeat.stop()
        return stream.response

    @staticmethod
    async def _next_text(
        run: LiveRun, answer: StreamedAnswer, stream: EventStream, heartbeat: Heartbeat
    ) -> str:
        """Return what to send next; raise PodiumError while a status code can still say it."""
        try:
            events = await run.batch()
        except PodiumError as error:
            if not stream.is_open:
                error.metadata.setdefault("run_id", run.run_id)
                raise
            return answer.failed(error)
        last = events[-1] if events else None
        if isinstance(last, RunFinished) and not stream.is_open:
            answer.raise_if_failed(last)
        text = answer.render(events)
        if not text and heartbeat.is_due:
            text = answer.keep_alive()
        return text


def _check_features(chat: ChatRequest, pool: Pool) -> None:
    """Refuse a parameter that no worker in question can honour, by its name."""
    workers = pool.workers if chat.worker_id is None else (pool.by_id[chat.worker_id],)
    for name, value in chat.parameters.passed.items():
        needed = demanded_features({name: value})
        if needed and not any(needed <= worker.card.features for worker in workers):
            who = "no worker of the pool has" if chat.worker_id is None else f"{chat.worker_id} lacks"
            raise refuse(
                name,
                f"{who} the feature {', '.join(sorted(needed))}; leave the parameter out",
                reason="UNSUPPORTED_PARAMETER",
            )


def _too_large(limit: int) -> PodiumError:
    return PodiumError(
        Code.TOO_LARGE,
        f"the body is larger than {limit} bytes, which is the limit after decompression",
        reason="BODY_TOO_LARGE",
    )
