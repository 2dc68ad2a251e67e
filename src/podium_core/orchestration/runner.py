"""One run from admission to seal: eligible pool, plan, record, steps, answer, seal.

The same runner serves (gateway, over gRPC), trains (simulated or live workers) and is tested (fakes).
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.plan import Plan
from podium_core.domain.policy import Verdict
from podium_core.domain.pool import Pool, Worker
from podium_core.domain.run import AttemptKind, RunKind, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.asking import Asking
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.disagreeing import disagreements
from podium_core.orchestration.eligible import eligible_workers, judge, require_planned
from podium_core.orchestration.embedding import embed
from podium_core.orchestration.events import (
    AnswerDelta,
    Planned,
    RoundResult,
    RunEvent,
    RunFinished,
    StepEnded,
    StepResult,
    StepStarted,
    round_facts,
)
from podium_core.orchestration.ledger import Ledger
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.perform import Round
from podium_core.orchestration.ports import (
    EmbedPort,
    FreshPoolPort,
    NoEmbeddings,
    NoFreshPool,
    ObserverPort,
    PlannerPort,
    PlanReply,
    Receipt,
    RecorderPort,
    SealedRun,
    Unobserved,
    WorkerPort,
)
from podium_core.orchestration.replanning import Replanning, is_stale
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.retry_budget import RetryBudget

T = TypeVar("T")

_NEVER_NEW = NoFreshPool()


@dataclass(slots=True)
class _Progress:
    """What a run has come to so far."""

    context: RunContext
    asking: Asking
    steps: list[StepResult] = field(default_factory=list)
    answer: StepResult | None = None
    more_answers: tuple[StepResult, ...] = ()
    walked_back: bool = False
    rounds: list[RoundResult] = field(default_factory=list)
    error: PodiumError | None = None
    outcome: RunOutcome = RunOutcome.CANCELLED
    has_spoken: bool = False
    is_replanned: bool = False


class Runner:
    """Runs requests over its ports. One instance serves all; runs share only the budget of retries."""

    def __init__(
        self,
        planner: PlannerPort,
        workers: WorkerPort,
        recorder: RecorderPort,
        clock: Clock,
        ids: IdFactory,
        limits: RunnerLimits = RunnerLimits(),
        observer: ObserverPort = Unobserved(),
        embedder: EmbedPort = NoEmbeddings(),
        *,
        pools: FreshPoolPort = _NEVER_NEW,
    ) -> None:
        self._planner = planner
        self._workers = workers
        self._recorder = recorder
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._observer = observer
        self._retries = RetryBudget()
        self._embedder = embedder
        self._replanning = Replanning(planner, recorder, pools)
        self._closing: set[asyncio.Future[Any]] = set()

    async def run(self, request: RunRequest, pool: Pool) -> AsyncGenerator[RunEvent, None]:
        """Yield what happens, ending with exactly one RunFinished once the run was opened.

        Raises PodiumError before the run is opened or when it is refused (the refusal is recorded; the
        error's metadata carries `run_id`). Closing the generator cancels the run: open attempts are
        cancelled and the run is sealed `cancelled`, shielded from the cancellation.
        """
        context = self._context(request, pool)
        verdicts, workers = await self._admit(request, pool)
        progress = _Progress(context, Asking(self._planner, context, request, workers))
        is_embedding = request.kind is RunKind.EMBED
        async with self._refusing(request, pool, verdicts):
            reply = None if is_embedding else await progress.asking.before_opening()
        await self._open(request, pool, verdicts, reply)
        if is_embedding:
            happening = self._embedding(progress, workers[0])
        else:
            happening = self._answering(progress, request, reply, verdicts)
        try:
            async with aclosing(happening) as events:
                async for event in events:
                    yield event
        except PodiumError as error:
            progress.error, progress.outcome = error, RunOutcome.FAILED
        except (asyncio.CancelledError, GeneratorExit):
            progress.outcome = RunOutcome.CANCELLED
            await self._shielded(self._seal(progress))
            raise
        except Exception:
            progress.error = PodiumError(Code.INTERNAL, "internal error")
            progress.outcome = RunOutcome.FAILED
            await self._shielded(self._seal(progress))
            raise
        yield await self._finish(progress)

    async def _answering(
        self,
        progress: _Progress,
        request: RunRequest,
        reply: PlanReply | None,
        verdicts: tuple[Verdict, ...],
    ) -> AsyncGenerator[RunEvent, None]:
        if reply is None:
            reply = await progress.asking.after_opening()
            await self._recorder.append_plan(request.run_id, self._ids.new("evt"), reply)
        if progress.asking.gated is not None:
            await self._note(request.run_id, "gate", progress.asking.gated.facts)
        yield Planned(request.run_id, reply, verdicts)
        async with aclosing(self._rounds(progress, request, reply, verdicts)) as events:
            async for event in events:
                yield event

    async def _embedding(self, progress: _Progress, worker: Worker) -> AsyncGenerator[RunEvent, None]:
        """Perform the one step of a run of kind embed, which has no plan."""
        yield StepStarted(0, 0, worker.worker_id)
        step = await embed(progress.context, self._embedder, worker)
        progress.steps.append(step)
        progress.answer = step if step.ok else None
        progress.error = step.error
        progress.outcome = RunOutcome.ANSWERED if step.ok else RunOutcome.FAILED
        yield StepEnded(step)

    def _context(self, request: RunRequest, pool: Pool) -> RunContext:
        started_ns = self._clock.monotonic_ns()
        run_timeout_s = self._limits.run_timeout_s
        if request.caps.max_duration_s is not None:
            run_timeout_s = min(run_timeout_s, request.caps.max_duration_s)
        return RunContext(
            request.run_id,
            request.tenant_id,
            request.question,
            request.parameters,
            request.max_output_tokens,
            request.caps,
            pool,
            self._workers,
            self._observer,
            self._clock,
            self._ids,
            self._limits,
            started_ns,
            started_ns + int(run_timeout_s * 1e9),
            Ledger(request.caps),
            self._retries,
            request.contract,
            request.answer_count,
            step_kind=request.step_kind,
        )

    # --- admit, plan, record ---------------------------------------------------------------------

    async def _admit(self, request: RunRequest, pool: Pool) -> tuple[tuple[Verdict, ...], tuple[Worker, ...]]:
        with self._observer.span("policy", {"run_id": request.run_id, "worker_count": len(pool.workers)}):
            verdicts = judge(pool, request.demands)
        async with self._refusing(request, pool, verdicts):
            workers = eligible_workers(pool, verdicts)
            if request.static_plan is not None:
                require_planned(request.static_plan, pool, verdicts, request.caps.max_steps)
        return verdicts, workers

    @asynccontextmanager
    async def _refusing(
        self, request: RunRequest, pool: Pool, verdicts: tuple[Verdict, ...]
    ) -> AsyncGenerator[None, None]:
        """Record what is refused inside the block, with its verdicts and its reason."""
        try:
            yield
        except PodiumError as refusal:
            refused = request.opened(self._ids.new("evt"), pool, verdicts, None, refusal.reason)
            await self._recorder.open_run(refused)
            refusal.metadata["run_id"] = request.run_id
            raise

    async def _open(
        self, request: RunRequest, pool: Pool, verdicts: tuple[Verdict, ...], reply: PlanReply | None
    ) -> None:
        opened = request.opened(self._ids.new("evt"), pool, verdicts, reply)
        opening = asyncio.ensure_future(self._recorder.open_run(opened))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The client left while the opening was being committed: close what may have been opened.
            await self._shielded(self._close_unused(request.run_id, opening))
            raise

    async def _close_unused(self, run_id: str, opening: "asyncio.Future[Receipt | None]") -> None:
        try:
            await opening
            async with asyncio.timeout(self._limits.seal_timeout_s):
                await self._recorder.seal(
                    SealedRun(self._ids.new("evt"), run_id, RunOutcome.CANCELLED, error_reason="CANCELLED")
                )
        except (PodiumError, TimeoutError):
            return  # the lease lapses and audit seals the run itself

    # --- perform ---------------------------------------------------------------------------------

    async def _rounds(
        self, progress: _Progress, request: RunRequest, first: PlanReply, verdicts: tuple[Verdict, ...]
    ) -> AsyncGenerator[RunEvent, None]:
        # While a later round or a repair may replace the answer, nothing can be streamed.
        is_final = request.contract is None or request.contract.is_streamable
        live = request.stream and is_final and request.caps.max_rounds <= 1
        reply: PlanReply | None = first
        while reply is not None and reply.plan.steps:
            previous = progress.answer.text if progress.answer else ""
            current = Round(progress.context, reply.plan, previous, live=live)
            async with aclosing(current.events()) as events:
                async for event in events:
                    if isinstance(event, StepEnded):
                        progress.steps.append(event.result)
                    progress.has_spoken |= isinstance(event, AnswerDelta)
                    yield event
            self._conclude(progress, current, reply.plan)
            if (anew := await self._anew(progress, request, reply.plan, verdicts)) is not None:
                reply, verdicts = anew
                yield Planned(request.run_id, reply, verdicts)
                continue
            await self._compare(request.run_id, current, reply.plan)
            if progress.error is not None or reply.plan.round + 1 >= request.caps.max_rounds:
                break
            reply = await self._next_plan(progress, request, reply)
            if reply is not None:
                yield Planned(request.run_id, reply, verdicts)
        if len(progress.rounds) > 1:
            await self._note(request.run_id, "rounds", round_facts(progress.rounds))
        answer = progress.answer
        if answer is not None and request.stream and (not live or progress.walked_back):
            for result in (answer, *progress.more_answers):
                yield AnswerDelta(result.delta, result.choice)

    async def _compare(self, run_id: str, current: Round, plan: Plan) -> None:
        """Record how far apart the workers were that answered one sub-question."""
        for facts in disagreements(plan, current.results):
            await self._note(run_id, "disagreement", facts)

    def _conclude(self, progress: _Progress, current: Round, plan: Plan) -> None:
        """Take the round's answer, walking back past an empty last response (paper: last non-empty)."""
        last, before = current.answer, progress.answer
        last = next((result for result in current.more_answers if not result.ok), last)
        if not last.ok:
            # An earlier round's answer stands; without one the run fails.
            progress.error = last.error if before is None else None
            progress.outcome = RunOutcome.FAILED if progress.error else RunOutcome.ANSWERED
        else:
            candidates = [current.results[i] for i in sorted(current.results, reverse=True)]
            progress.answer = next((r for r in candidates if r.ok and (r.words or r.tool_calls)), last)
            progress.walked_back = progress.answer is not last
            progress.more_answers = current.more_answers
            progress.outcome = RunOutcome.ANSWERED
        changed = before is not None and progress.answer is not None and _differ(before, progress.answer)
        progress.rounds.append(RoundResult(plan.round, len(plan.steps), changed=changed))

    async def _next_plan(self, progress: _Progress, request: RunRequest, last: PlanReply) -> PlanReply | None:
        """Return the next round's plan, recorded; None when there is none, so the present answer stands."""
        try:
            reply = await progress.asking.next_round(last, progress.answer.text if progress.answer else "")
        except PodiumError as error:
            progress.rounds.append(RoundResult(last.plan.round + 1, 0, failure=error.reason))
            return None
        await self._recorder.append_plan(request.run_id, self._ids.new("evt"), reply)
        if not reply.plan.steps:
            progress.rounds.append(RoundResult(reply.plan.round, 0, accepted=True))
        return reply

    async def _anew(
        self, progress: _Progress, request: RunRequest, last: Plan, verdicts: tuple[Verdict, ...]
    ) -> tuple[PlanReply, tuple[Verdict, ...]] | None:
        """Return a plan on the pool of now if the run's own is gone: once, and if nothing was said."""
        if not is_stale(progress.error) or progress.has_spoken or progress.is_replanned:
            return None
        progress.is_replanned = True
        anew = await self._replanning.anew(progress.context, request, verdicts, last)
        if anew is None:
            return None
        progress.error, progress.asking = None, anew.asking
        return anew.reply, anew.verdicts

    async def _note(self, run_id: str, kind: str, facts: Mapping[str, str]) -> None:
        await self._recorder.note(run_id, self._ids.new("evt"), kind, facts)

    # --- seal ------------------------------------------------------------------------------------

    async def _finish(self, progress: _Progress) -> RunFinished:
        receipt, error = await self._shielded(self._seal(progress))
        context, answer = progress.context, progress.answer
        attempts = list(context.attempts)
        usage, other = _usages(context, (answer, *progress.more_answers) if answer is not None else ())
        return RunFinished(
            run_id=context.run_id,
            outcome=progress.outcome,
            answer=answer,
            steps=tuple(progress.steps),
            usage=usage,
            other_usage=other,
            cost_usd_micros=sum(a.cost_usd_micros for a in attempts),
            duration_us=context.elapsed_us,
            receipt=receipt,
            error=progress.error or error,
            rounds=tuple(progress.rounds),
            planning=tuple(attempt for attempt in attempts if attempt.kind is AttemptKind.PLAN),
            more_answers=progress.more_answers,
        )

    async def _shielded(self, closing: Coroutine[Any, Any, T]) -> T:
        """Finish `closing` even when the caller is cancelled meanwhile."""
        task = asyncio.ensure_future(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return await asyncio.shield(task)

    async def _seal(self, progress: _Progress) -> tuple[Receipt | None, PodiumError | None]:
        error = progress.error
        sealed = SealedRun(
            self._ids.new("evt"),
            progress.context.run_id,
            progress.outcome,
            answer=progress.answer.words if progress.answer else "",
            error_reason=error.reason if error else "",
        )
        try:
            async with asyncio.timeout(self._limits.seal_timeout_s):
                return await self._recorder.seal(sealed), None
        except PodiumError as failure:
            return None, failure
        except TimeoutError:
            return None, PodiumError(Code.AUDIT_UNAVAILABLE, "the run could not be sealed in time")


def _usages(context: RunContext, answers: Sequence[StepResult]) -> tuple[Usage, Usage]:
    """Return what the answers used, with a prompt counted once, and what everything else used."""
    answering = {answer.attempts[-1].attempt_id for answer in answers}
    usage, other = Usage(), context.planning_usage
    for attempt in context.attempts:
        if attempt.attempt_id not in answering:
            other += attempt.usage
    for number, answer in enumerate(answers):
        used = answer.attempts[-1].usage
        prompt = replace(used, output_tokens=0, reasoning_output_tokens=0)
        if number == 0:
            usage += used
        else:
            usage += replace(used, input_tokens=0, cached_input_tokens=0, cache_write_input_tokens=0)
            other += prompt
    return usage, other


def _differ(one: StepResult, other: StepResult) -> bool:
    """Say whether two answers differ in more than white space."""
    return one.text.split() != other.text.split() or one.tool_calls != other.tool_calls
