"""The story of one request that starts a run, from key to receipt, in whichever protocol it came."""

from dataclasses import dataclass

from aiohttp import web

from podium_core.domain.clock import Clock
from podium_gateway.answers import AnswerContext, Asked, Front, next_text, whole_answer
from podium_gateway.background import Background
from podium_gateway.continuations import Continuations
from podium_gateway.dry_run import DryRuns
from podium_gateway.intake import Intake
from podium_gateway.live_run import LiveRun
from podium_gateway.ports import PoolPort
from podium_gateway.repeats import Performance, Repeats
from podium_gateway.runs import Runs
from podium_gateway.schemas.checker import SchemaChecker
from podium_gateway.schemas.contract import contract_of
from podium_gateway.sse import ClientGoneError, EventStream, Heartbeat

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How long, in seconds, a stream may be silent or unread."""

    first_byte_s: float
    keep_alive_s: float
    write_stall_s: float


@dataclass(frozen=True, slots=True)
class RunHandler:
    """Answers requests by runs."""

    intake: Intake
    runs: Runs
    dry_runs: DryRuns
    background: Background
    continuations: Continuations
    repeats: Repeats
    pool: PoolPort
    clock: Clock
    checker: SchemaChecker
    limits: StreamLimits

    async def answer(self, request: web.Request, front: Front) -> web.StreamResponse:
        """Answer one request; raise PodiumError while nothing has been sent."""
        started_ns = self.clock.monotonic_ns()
        principal = self.intake.authenticator.principal(request.headers)
        slot = self.intake.admission.enter(principal.tenant.tenant_id)
        run: LiveRun | None = None
        performance: Performance | None = None
        try:
            body = await self.intake.body(request, slot)
            asked = await front.decode(body, principal)
            pool = self.pool.current()
            contract = await contract_of(asked.request.parameters.passed, self.checker)
            asked_run = self.runs.request(asked.request, principal, pool, contract)
            run_request = await self.continuations.resumed(asked_run, pool)
            claim = await self.intake.claim(request, principal, run_request, slot)
            context = self.runs.context(asked.request, run_request, pool, started_ns)
            if asked.request.wishes.dry_run:
                podium = await self.dry_runs.plan(run_request, pool, context.view)
                return _whole(asked.rendering.dry_run(podium, context), context)
            key = None if asked.is_detached else self.repeats.key_of(request, body, principal, run_request)

            def start() -> LiveRun:
                return self.runs.start(run_request, pool, request.headers, slot, claim, asked, context)

            def give_up() -> None:
                claim.used(0)
                slot.release()

            if key is not None:
                performance = Performance(asked, context, start, give_up)
                return await self.repeats.answer(request, key, performance)
            run = start()
        finally:
            # A run keeps the place until it is sealed, whether or not somebody still listens.
            if run is None and performance is None:
                slot.release()
        if asked.is_detached:
            return await self.background.begin(request, asked, run, context, principal)
        try:
            return await self._told(request, asked, run, context)
        finally:
            # Nobody listens any more: after a finished run this does nothing, after a hang-up it stops it.
            run.cancel()

    async def _told(
        self, request: web.Request, asked: Asked, run: LiveRun, context: AnswerContext
    ) -> web.StreamResponse:
        if asked.request.parameters.stream:
            return await self._stream(request, asked, run, context)
        return _whole(asked.rendering.whole(await whole_answer(run, context), context), context)

    async def _stream(
        self, request: web.Request, asked: Asked, run: LiveRun, context: AnswerContext
    ) -> web.StreamResponse:
        stream = EventStream(request, context.headers, self.limits.write_stall_s)
        answer = asked.rendering.streamed(context)
        heartbeat = Heartbeat(run.nudge, first_s=self.limits.first_byte_s, then_s=self.limits.keep_alive_s)
        try:
            while not answer.is_complete:
                text = await next_text(run, answer, heartbeat, is_open=stream.is_open)
                if text:
                    await stream.send(text)
                    heartbeat.heard()
            await stream.close()
        except ClientGoneError:
            run.cancel()
        finally:
            heartbeat.stop()
        return stream.response


def _whole(text: str, context: AnswerContext) -> web.Response:
    return web.Response(text=text, content_type=_JSON, headers=context.headers)
