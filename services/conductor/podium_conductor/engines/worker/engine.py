"""Plans by asking a worker: prompt, read, and when the text breaks a rule, say which and ask again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from podium_conductor.engines.worker.ports import PlanCall, PlanCalls
from podium_conductor.ports import EngineDescription
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.plan_format import PlanFormatError, parse_plan
from podium_core.domain.plan_prompt import TEMPLATE_DIGEST, NameMasking, PlanPrompt, build_prompt, step_limit
from podium_core.domain.pool import Worker
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps
from podium_core.domain.usage import Usage, UsageSource
from podium_core.orchestration.ledger import Ledger, Reservation
from podium_core.orchestration.planning import best_by_card
from podium_core.orchestration.ports import RUN_NOT_OPEN, AttemptResult, PlanFailedError, PlanQuery, PlanReply

_NANOS_PER_S = 1_000_000_000
_MARGIN_S = 0.15
"""What is left of the caller's time for the answer to reach it."""
_SHARE = 2
"""Planning may use one part in so many of what a run has left: the rest is for performing the plan."""
_PAUSE_S = 0.25
_PASSING = frozenset({Code.PROVIDER_FAILED, Code.RATE_LIMITED})
"""Trouble of the worker that may be over in a moment."""
_CHARS_SHOWN = 4_000
_TRY_AGAIN = (
    "This is no plan that can be carried out: {rule}. Write the three lists again, with that put right, "
    "and nothing after them."
)


@dataclass(frozen=True, slots=True)
class WorkerEngineOptions:
    """Which worker plans, and within what. An empty id means the best eligible one by card."""

    worker_id: str = ""
    max_generations: int = 3
    max_output_tokens: int = 1_024
    masking: NameMasking = NameMasking.ORDINAL


@dataclass(slots=True)
class _Asking:
    """One plan under way."""

    query: PlanQuery
    worker: Worker
    prompt: PlanPrompt
    messages: list[tuple[str, str]]
    ledger: Ledger
    deadline_ns: int
    attempts: list[AttemptResult] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        return sum((attempt.usage for attempt in self.attempts), Usage())


class WorkerEngine:
    """Prompts a worker as Conductor. Every call is an attempt: permitted, recorded, paid by the run."""

    def __init__(
        self,
        calls: PlanCalls,
        clock: Clock,
        ids: IdFactory,
        options: WorkerEngineOptions,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._calls = calls
        self._clock = clock
        self._ids = ids
        self._options = options

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:
        """Return the worker's plan.

        Raises PodiumError with reason RUN_NOT_OPEN when the run is not open yet, PlanFailedError
        (PLAN_INVALID, DEADLINE, UNAVAILABLE) when no plan came.
        """
        if not query.run_is_open:
            raise PodiumError(
                Code.CONFLICT, "this engine makes attempts: open the run, then ask again", reason=RUN_NOT_OPEN
            )
        asking = self._asking(query, deadline_ns)
        last: PodiumError | None = None
        for tries_left in reversed(range(self._options.max_generations)):
            try:
                text = await self._generate(asking)
                steps = self._parsed(asking, text)
            except PlanFormatError as error:
                last = error
                asking.messages += [
                    ("assistant", text[-_CHARS_SHOWN:] or "(nothing)"),
                    ("user", _TRY_AGAIN.format(rule=error.message)),
                ]
            except PodiumError as error:
                # A failed retry must not hide which rule the plan broke.
                last = last or error
                pause_s = self._pause_s(asking, error)
                if pause_s is None or not tries_left:
                    break
                await self._sleep(pause_s)
            else:
                return self._reply(asking, text, steps)
        raise _failed(last, asking)

    def describe(self) -> EngineDescription:
        """Return which worker plans and with which prompt; its weights are its provider's secret."""
        return EngineDescription(
            "worker",
            PlanSource.WORKER,
            self._digest(self._options.worker_id or "best-by-card"),
            template_digest=TEMPLATE_DIGEST,
            tiers=("podium", "podium-max"),
            makes_attempts=True,
        )

    async def close(self) -> None:
        """Nothing is held."""

    def _pause_s(self, asking: _Asking, error: PodiumError) -> float | None:
        """Return how long to wait before the worker is asked again; None: do not."""
        if error.code not in _PASSING or error.metadata.get("retryable") == "false":
            return None
        pause_s = max(_PAUSE_S, error.retry_after_s or 0.0)
        left_s = (asking.deadline_ns - self._clock.monotonic_ns()) / _NANOS_PER_S
        return pause_s if pause_s < left_s else None

    # --- one plan --------------------------------------------------------------------------------

    def _asking(self, query: PlanQuery, deadline_ns: int) -> _Asking:
        worker = self._planner(query.workers)
        prompt = build_prompt(
            query.question,
            query.workers,
            query.caps,
            seed=query.seed,
            tier=query.tier,
            round_index=query.round,
            previous_plan=query.previous_plan,
            previous_answer=query.previous_answer,
            masking=self._options.masking,
        )
        messages = [("system", prompt.system), ("user", f"{prompt.user}\n{prompt.prefill}".rstrip())]
        ledger = Ledger(_planning_caps(query.caps))
        return _Asking(query, worker, prompt, messages, ledger, deadline_ns)

    def _planner(self, workers: Sequence[Worker]) -> Worker:
        wanted = self._options.worker_id
        if not wanted:
            return best_by_card(workers)
        for worker in workers:
            if worker.worker_id == wanted:
                return worker
        raise PodiumError(
            Code.UNAVAILABLE,
            "the worker that plans is not eligible for this run",
            reason="PLANNING_WORKER_NOT_ELIGIBLE",
        )

    def _parsed(self, asking: _Asking, text: str) -> tuple[Step, ...]:
        query = asking.query
        return parse_plan(
            text, asking.prompt.worker_ids, max_steps=step_limit(query.caps), round_index=query.round
        )

    async def _generate(self, asking: _Asking) -> str:
        """Make one attempt and return its text; raise PodiumError when it gave none."""
        query, worker = asking.query, asking.worker
        left_s = (asking.deadline_ns - self._clock.monotonic_ns()) / _NANOS_PER_S - _MARGIN_S
        if left_s <= 0:
            raise PodiumError(Code.DEADLINE, "no plan was made in time", reason="PLAN_DEADLINE")
        limit = self._options.max_output_tokens
        # A token is at least a byte; each message adds a few of its template.
        sent = sum(len(text.encode(errors="replace")) + 16 for _, text in asking.messages)
        reservation = asking.ledger.reserve(
            sent, min(limit, worker.card.max_output_tokens or limit), worker.price
        )
        call = PlanCall(
            attempt_id=self._ids.new("att"),
            run_id=query.run_id,
            tenant_id=query.tenant_id,
            round=query.round,
            worker_id=worker.worker_id,
            pool_digest=query.pool_digest,
            messages=tuple(asking.messages),
            max_output_tokens=reservation.max_output_tokens,
            timeout_s=left_s,
        )
        started_ns = self._clock.monotonic_ns()
        try:
            done = await self._calls.complete(call)
        except PodiumError as error:
            latency_us = (self._clock.monotonic_ns() - started_ns) // 1_000
            _note_failure(asking, call, reservation, error, latency_us)
            raise
        asking.ledger.settle(reservation, done.usage, done.cost_usd_micros)
        asking.attempts.append(
            AttemptResult(
                call.attempt_id,
                AttemptKind.PLAN,
                call.worker_id,
                AttemptOutcome.COMPLETED,
                done.usage,
                done.cost_usd_micros,
                done.latency_us,
            )
        )
        return done.text

    def _reply(self, asking: _Asking, text: str, steps: tuple[Step, ...]) -> PlanReply:
        query = asking.query
        return PlanReply(
            plan=Plan(steps, PlanSource.WORKER, query.round),
            raw_text=text,
            usage=asking.usage,
            model_digest=self._digest(asking.worker.worker_id),
            generation_count=len(asking.attempts),
            seed=query.seed,
            attempts=tuple(asking.attempts),
            prompt=asking.prompt if query.explain else None,
        )

    def _digest(self, worker_id: str) -> str:
        return sha256(f"worker\x00{worker_id}\x00{TEMPLATE_DIGEST}".encode()).hexdigest()


def _planning_caps(caps: Caps) -> Caps:
    """Return what planning may use: a share of the rest, and never the last call."""
    calls = (
        None if caps.max_calls is None else max(0, caps.max_calls - 1) // _SHARE or int(caps.max_calls > 1)
    )
    tokens = None if caps.max_tokens is None else caps.max_tokens // _SHARE
    cost = None if caps.max_cost_usd_micros is None else caps.max_cost_usd_micros // _SHARE
    return replace(caps, max_calls=calls, max_tokens=tokens, max_cost_usd_micros=cost)


def _note_failure(
    asking: _Asking, call: PlanCall, reservation: Reservation, error: PodiumError, latency_us: int
) -> None:
    """Keep a failed attempt on the account: once permitted at its worst case, unless told otherwise."""
    permitted = "permitted" in error.metadata
    billed = permitted and error.metadata.get("billed") != "false"
    cost_usd_micros = reservation.cost_usd_micros if billed else 0
    usage = Usage(source=UsageSource.UNKNOWN if permitted else UsageSource.ESTIMATED)
    asking.ledger.settle(reservation, usage, cost_usd_micros)
    timed_out = error.code is Code.DEADLINE
    asking.attempts.append(
        AttemptResult(
            call.attempt_id,
            AttemptKind.PLAN,
            call.worker_id,
            AttemptOutcome.TIMED_OUT if timed_out else AttemptOutcome.FAILED,
            usage,
            cost_usd_micros,
            latency_us,
            error.reason,
        )
    )


def _failed(error: PodiumError | None, asking: _Asking) -> PlanFailedError:
    if error is None:
        return PlanFailedError(Code.PLAN_INVALID, "no plan was asked for", reason="PLAN_NO_TRIPLE")
    known = error.code in (Code.PLAN_INVALID, Code.DEADLINE, Code.UNAVAILABLE)
    return PlanFailedError(
        error.code if known else Code.PLAN_INVALID,
        error.message,
        reason=error.reason,
        attempts=tuple(asking.attempts),
    )
