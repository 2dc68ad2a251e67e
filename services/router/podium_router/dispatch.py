"""The story of one attempt: one permit, one HTTP request, one end.

Nothing leaves before the log has said yes, and whatever happens after that, the log hears how it ended.
Each attempt runs in its own task, so the RPC that asked for it can go away without leaving it half done.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.ids import IdFactory
from podium_core.domain.run import AttemptOutcome
from podium_core.domain.usage import Usage, UsageSource
from podium_core.runtime.side_thread import aside
from podium_router.attempt import Attempt, Prepared, outcome_of
from podium_router.body import Body, build_body, build_embedding_body, max_cost_usd_micros
from podium_router.breaker import Sign
from podium_router.calls import AttemptBegin, AttemptEnd, Call
from podium_router.catalog import Catalog, Route
from podium_router.endings import UNCERTAIN_CODES, Endings
from podium_router.failures import sign_of
from podium_router.lanes import Place
from podium_router.outbox import BatchLimits, Outbox
from podium_router.ports import AuditPort, ProviderCall, ProviderPort, ProviderRequest, Sending
from podium_router.telemetry import ChatTelemetry, traceparent

_log = logging.getLogger(__name__)
_REMEMBERED_ATTEMPTS = 16_384
_LONGEST_S = 3_600.0
_SEEN_STEP_RUNNING = "SEEN_STEP_RUNNING"
_SEEN_STEP_PATIENCE_S = 1.0
"""How long another router may take to tell the log that a seen step, or a race for it, is over."""
_SEEN_STEP_PAUSE_S = 0.02
_ANSWER_MARGIN_S = 0.05
"""What is left of the caller's time for the error to reach it."""


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """`permit_s` is the longest wait for the log's yes; `max_body_bytes` bounds one request."""

    permit_s: float = 5.0
    max_body_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Running:
    """An attempt under way: read its outbox; cancel it if nobody does any more."""

    outbox: Outbox
    task: asyncio.Task[None]

    def abandon(self) -> None:
        """Stop the attempt if it is not over: the provider's connection closes, the log hears of it."""
        if not self.outbox.is_finished:
            self.task.cancel()


class Dispatcher:
    """Starts attempts and sees them through."""

    def __init__(
        self,
        catalog: Catalog,
        audit: AuditPort,
        provider: ProviderPort,
        endings: Endings,
        telemetry: ChatTelemetry,
        clock: Clock,
        ids: IdFactory,
        *,
        limits: DispatchLimits,
        batches: BatchLimits,
    ) -> None:
        self._catalog = catalog
        self._audit = audit
        self._provider = provider
        self._endings = endings
        self._telemetry = telemetry
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._batches = batches
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen: OrderedDict[str, None] = OrderedDict()

    def start(self, call: Call, timeout_s: float | None) -> Running:
        """Begin an attempt that must be over in `timeout_s` seconds; None leaves it to the limits."""
        seconds = _LONGEST_S if timeout_s is None else min(timeout_s - _ANSWER_MARGIN_S, _LONGEST_S)
        outbox = Outbox(self._batches)
        task = self._loop.create_task(self._run(call, self._loop.time() + seconds, outbox))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(outbox.close)
        return Running(outbox, task)

    async def drain(self, timeout_s: float) -> None:
        """Let running attempts end, cancel the rest, and wait until each has told its end."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, call: Call, deadline: float, outbox: Outbox) -> None:
        try:
            route = self._catalog.route(call.pool_digest, call.worker_id)
            prepared = await self._prepare(call, route)
            route.state.breaker.check()
            lane, place = route.state.lane, Place(call.tenant_id, prepared.tokens_at_most)
            with self._telemetry.queued(call.worker_id):
                await lane.enter(place, deadline)
            try:
                await self._visit(prepared, place, deadline, outbox)
            finally:
                lane.leave(place)
        except PodiumError as error:
            outbox.finish(error)

    async def _visit(self, prepared: Prepared, place: Place, deadline: float, outbox: Outbox) -> None:
        """Make the attempt, with a place in the worker's lane, and let the breaker learn from it."""
        breaker = prepared.route.state.breaker
        sign = Sign.NOTHING
        was_probe = breaker.enter()
        try:
            provider_call = await self._translate(prepared, deadline)
            try:
                leaf_index = await self._permit(prepared, provider_call, deadline)
                attempt = Attempt(prepared, outbox, self._clock)
                outbox.permit(leaf_index)
                try:
                    sign = await self._perform(attempt, provider_call, leaf_index, deadline, outbox)
                finally:
                    place.used_tokens = attempt.used_tokens
            finally:
                provider_call.discard()
        finally:
            breaker.leave(sign, was_probe=was_probe)

    async def _prepare(self, call: Call, route: Route) -> Prepared:
        credentials = self._catalog.credentials_of(route)
        card = route.worker.card
        _check_purpose(call, route)
        max_output_tokens = min(call.max_output_tokens, card.max_output_tokens or call.max_output_tokens)
        size_bytes = sum(len(piece.data) for piece in call.messages)
        body, max_cost = await aside(size_bytes, self._built, call, route, max_output_tokens)
        return Prepared(call, route, credentials, body, max_output_tokens, max_cost)

    def _built(self, call: Call, route: Route, max_output_tokens: int) -> tuple[Body, int]:
        """Return the exact body of a call, and the most that it can cost."""
        card = route.worker.card
        body = self._body(call, route, max_output_tokens)
        return body, max_cost_usd_micros(
            body,
            route.worker.price,
            max_output_tokens=max_output_tokens,
            context_tokens=0 if call.is_embedding else card.context_tokens,
            takes_images="image" in card.modalities,
        )

    def _body(self, call: Call, route: Route, max_output_tokens: int) -> Body:
        most = self._limits.max_body_bytes
        if call.is_embedding:
            (inputs,) = call.messages
            return build_embedding_body(route.shape, inputs.data, call.parameters_json, max_bytes=most)
        return build_body(
            route.shape,
            call.messages,
            call.parameters_json,
            max_output_tokens=max_output_tokens,
            stream=call.stream,
            max_bytes=most,
        )

    async def _translate(self, prepared: Prepared, deadline: float) -> ProviderCall:
        """Return the call in its provider's words: the log is asked to permit exactly these bytes."""
        route = prepared.route
        request = ProviderRequest(
            kind=route.worker.provider,
            model=route.worker.provider_model,
            region=route.worker.region,
            url=route.url,
            credentials=prepared.credentials,
            body=prepared.body,
            stream=prepared.call.stream,
            attempt_id=prepared.call.attempt_id,
            timeouts=route.timeouts,
            is_embedding=prepared.call.is_embedding,
        )
        try:
            async with asyncio.timeout_at(deadline):
                return await self._provider.prepare(request)
        except TimeoutError:
            raise PodiumError(Code.DEADLINE, "the attempt's time was over before it could begin") from None

    async def _permit(self, prepared: Prepared, provider_call: ProviderCall, deadline: float) -> int:
        """Return the leaf index that permits the attempt. Raises PodiumError: then nothing goes out."""
        call = prepared.call
        self._endings.check_room()
        self._claim(call.attempt_id)
        begin = self._begin_of(prepared, provider_call)
        until = min(self._loop.time() + self._limits.permit_s, deadline)
        patient_until = min(self._loop.time() + _SEEN_STEP_PATIENCE_S, until)
        while True:
            try:
                return await self._begin(begin, until)
            except PodiumError as error:
                if error.reason != _SEEN_STEP_RUNNING:
                    raise
                # The end of a step that this one sees is still on its way to the log, from here or elsewhere.
                if not await self._endings.confirmed(call.run_id, until - self._loop.time()):
                    if self._loop.time() >= patient_until:
                        raise _seen_step_lost() from None
                    await asyncio.sleep(_SEEN_STEP_PAUSE_S)

    async def _begin(self, begin: AttemptBegin, until: float) -> int:
        call = begin.call
        seconds = until - self._loop.time()
        if seconds <= 0:
            raise PodiumError(Code.DEADLINE, "the attempt's time was over before it could begin")
        # A task of its own: when the caller goes away now, the log still decides, and then hears the end.
        asking = self._loop.create_task(self._audit.begin(begin, seconds))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            self._endings.add_after(asking, _not_dispatched(call, AttemptOutcome.CANCELLED, "CANCELLED"))
            raise
        except PodiumError as error:
            if error.code in UNCERTAIN_CODES:
                self._endings.add(_not_dispatched(call, AttemptOutcome.FAILED, error.reason))
            raise

    def _begin_of(self, prepared: Prepared, provider_call: ProviderCall) -> AttemptBegin:
        route = prepared.route
        worker = route.worker
        return AttemptBegin(
            call=prepared.call,
            dispatch_id=self._ids.new("dis"),
            provider=worker.provider,
            provider_model=worker.provider_model,
            region=worker.region,
            endpoint_host=provider_call.host,
            body=provider_call.body.pieces,
            body_sha256=provider_call.body.sha256,
            max_cost_usd_micros=prepared.max_cost_usd_micros,
            price_digest=route.price_digest,
        )

    async def _perform(
        self,
        attempt: Attempt,
        provider_call: ProviderCall,
        leaf_index: int,
        deadline: float,
        outbox: Outbox,
    ) -> Sign:
        span = self._telemetry.begin(attempt, leaf_index)
        own_deadline = self._loop.time() + attempt.route.timeouts.total_s
        sending = Sending(traceparent(span), min(deadline, own_deadline))
        is_over = False
        try:
            await provider_call.send(sending, attempt.answer, attempt)
            attempt.settle(AttemptOutcome.COMPLETED)
            is_over = True
        except PodiumError as error:
            attempt.settle(outcome_of(error), error)
            is_over = True
        except asyncio.CancelledError:
            late = self._loop.time() >= deadline
            attempt.settle(AttemptOutcome.TIMED_OUT if late else AttemptOutcome.CANCELLED, _gone(late=late))
            if attempt.answer.is_empty:
                attempt.route.state.pace.learn_silence(attempt.latency_us, streamed=attempt.call.stream)
            raise
        finally:
            self._telemetry.ended(span, attempt)
            if not is_over:
                self._endings.add(attempt.end())
        await self._endings.send(attempt.end())
        if attempt.error is None:
            pace = attempt.route.state.pace
            pace.learn(attempt.usage.output_tokens, attempt.latency_us, attempt.first_delta_us)
            outbox.finish(attempt.completed())
            return Sign.ALIVE
        _log_failure(attempt, attempt.error)
        if attempt.error.code is Code.RATE_LIMITED and attempt.error.retry_after_s:
            attempt.route.state.lane.pause(attempt.error.retry_after_s)  # for all: none need hear it again
        outbox.finish(attempt.error)
        if attempt.error.reason == "WORKER_TIMEOUT" and own_deadline > deadline:
            return Sign.NOTHING  # it had less time than it is allowed
        return sign_of(attempt.error)

    def _claim(self, attempt_id: str) -> None:
        """Refuse a second dispatch of an attempt here and now; the log refuses it between routers."""
        if attempt_id in self._seen:
            raise PodiumError(
                Code.CONFLICT,
                "this attempt was dispatched before; give each attempt a new attempt_id",
                reason="ATTEMPT_REPEATED",
                param="attempt_id",
            )
        self._seen[attempt_id] = None
        if len(self._seen) > _REMEMBERED_ATTEMPTS:
            self._seen.popitem(last=False)


def _check_purpose(call: Call, route: Route) -> None:
    """Refuse to ask a worker for vectors that gives answers, or the other way round."""
    if call.is_embedding != route.worker.card.makes_embeddings:
        raise invalid(
            f"{call.worker_id} " + ("makes no embeddings" if call.is_embedding else "makes only embeddings"),
            reason="WORKER_UNSUITABLE",
            param="worker_id",
        )


def _seen_step_lost() -> PodiumError:
    # Whoever performed that step died before it could tell its end: this run cannot go on, a new one can.
    return PodiumError(
        Code.AUDIT_UNAVAILABLE,
        "the end of a step that this one sees did not reach the log: ask again",
        reason="SEEN_STEP_LOST",
    )


def _not_dispatched(call: Call, outcome: AttemptOutcome, reason: str) -> AttemptEnd:
    return AttemptEnd(
        attempt_id=call.attempt_id,
        run_id=call.run_id,
        outcome=outcome,
        usage=Usage(source=UsageSource.ESTIMATED),
        cost_usd_micros=0,
        latency_us=0,
        dispatched=False,
        error_reason=reason,
    )


def _gone(*, late: bool) -> PodiumError:
    if late:
        return PodiumError(Code.DEADLINE, "the caller's time was over")
    return PodiumError(Code.CANCELLED, "the caller went away")


def _log_failure(attempt: Attempt, error: PodiumError) -> None:
    _log.warning(
        "an attempt failed",
        extra={
            "attempt_id": attempt.call.attempt_id,
            "run_id": attempt.call.run_id,
            "worker_id": attempt.route.worker.worker_id,
            "code": error.code.value,
            "reason": error.reason,
            "status": error.metadata.get("status", ""),
        },
    )
