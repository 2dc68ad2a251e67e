"""The `podium` object of an answer: what was planned, who did what, what it cost, and the receipt."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.plan import Step
from podium_core.domain.run import Caps
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import (
    Planned,
    RoundResult,
    RunEvent,
    RunFinished,
    StepEnded,
    StepResult,
    StepStarted,
)
from podium_core.orchestration.ports import AttemptResult, PlanReply, Receipt


@dataclass(frozen=True, slots=True)
class PodiumView:
    """How one request's run is shown. Steps of `demo_workers` say that they are demonstrations.

    `budget` is asked once the run is sealed: what its tenant should know of its money.
    """

    caps: Caps
    metadata: Mapping[str, str]
    demo_workers: frozenset[str]
    budget: Callable[[], Mapping[str, object] | None] = lambda: None

    def is_demo(self, worker_id: str) -> bool:
        """Say whether a worker is a demonstration."""
        return worker_id in self.demo_workers

    def finished(self, finished: RunFinished, plans: Sequence[PlanReply]) -> dict[str, object]:
        """Return everything a client may know of its finished run."""
        shown: dict[str, object] = {
            "run_id": finished.run_id,
            "outcome": finished.outcome.value,
            "plan": self.plan(plans[-1]) if plans else None,
            "steps": [self.step(step) for step in finished.steps],
            "usage": {"billed": billed_object(finished.usage + finished.other_usage)},
            "cost_usd_micros": finished.cost_usd_micros,
            "duration_ms": finished.duration_us // 1_000,
            "caps": self._caps(),
            "receipt": receipt_object(finished.receipt),
        }
        if finished.answer is None:
            # Paid for and turned down: an answer that breaks its contract is still the client's.
            turned_down = [step.text for step in finished.steps if step.text and not step.ok]
            if turned_down:
                shown["unaccepted_answer"] = turned_down[-1]
        if (budget := self.budget()) is not None:
            shown["budget"] = budget
        if finished.planning:
            shown["planning"] = [_attempt(attempt) for attempt in finished.planning]
        if len(finished.rounds) > 1:
            shown["rounds"] = [_round(result) for result in finished.rounds]
            shown["flip_count"] = finished.flip_count
        if len(plans) > 1:
            shown["earlier_plans"] = [self.plan(plan) for plan in plans[:-1]]
        return self._with_metadata(shown)

    def dry_run(
        self, run_id: str, reply: PlanReply, cost_range: Mapping[str, int | None], receipt: Receipt | None
    ) -> dict[str, object]:
        """Return what a dry run came to."""
        shown: dict[str, object] = {
            "run_id": run_id,
            "dry_run": True,
            "plan": self.plan(reply),
            "cost_range_usd_micros": cost_range,
            "usage": {"billed": billed_object(reply.usage)},
            "caps": self._caps(),
            "receipt": receipt_object(receipt),
        }
        return self._with_metadata(shown)

    def event(self, event: RunEvent) -> dict[str, object] | None:
        """Return a step event for clients that asked for them; None for what is no news."""
        if isinstance(event, Planned):
            return {"event": "planned", "run_id": event.run_id, "plan": self.plan(event.reply)}
        if isinstance(event, StepStarted):
            place = {"round": event.round, "step": event.step_index}
            return {"event": "step_started", **place, **self._worker(event.worker_id)}
        if isinstance(event, StepEnded):
            return {"event": "step_ended", **self.step(event.result)}
        return None

    def plan(self, reply: PlanReply) -> dict[str, object]:
        """Return a plan as clients read it, and why it is less than what was asked for if it is."""
        plan = reply.plan
        shown: dict[str, object] = {
            "source": plan.source.value,
            "round": plan.round,
            "steps": [self._planned_step(step) for step in plan.steps],
        }
        if reply.fallback_reason:
            shown["fallback_reason"] = reply.fallback_reason.lower()
        return shown

    def step(self, step: StepResult) -> dict[str, object]:
        """Return a finished step: the totals of its attempts, and each attempt."""
        usage = sum((attempt.usage for attempt in step.attempts), Usage())
        shown: dict[str, object] = {
            "round": step.round,
            "step": step.step_index,
            **self._worker(step.worker_id),
            **({"choice": step.choice} if step.choice else {}),
            "ok": step.ok,
            "finish_reason": step.finish_reason,
            "usage": billed_object(usage),
            "cost_usd_micros": sum(attempt.cost_usd_micros for attempt in step.attempts),
            "started_ms": step.started_us // 1_000,
            "latency_ms": (step.ended_us - step.started_us) // 1_000,
            "attempts": [_attempt(attempt) for attempt in step.attempts],
        }
        if step.changes:
            shown["told_otherwise"] = {
                name: {"asked": change.asked, "told": change.told} for name, change in step.changes.items()
            }
        if step.error is not None:
            shown["error"] = step.error.reason.lower()
        return shown

    def _planned_step(self, step: Step) -> dict[str, object]:
        shown: dict[str, object] = {
            **self._worker(step.worker_id),
            "subtask": step.subtask,
            "access": list(step.access.steps),
            "fallback": step.fallback_worker_id,
        }
        if step.access.previous_round:
            shown["sees_previous_round"] = True
        return shown

    def _worker(self, worker_id: str) -> dict[str, object]:
        return {"worker": worker_id, **({"demo": True} if self.is_demo(worker_id) else {})}

    def _caps(self) -> dict[str, object]:
        """Return the limits that held, the tightest of request, tenant and server; None is no limit."""
        caps = self.caps
        return {
            "max_steps": caps.max_steps,
            "max_calls": caps.max_calls,
            "max_tokens": caps.max_tokens,
            "max_usd_micros": caps.max_cost_usd_micros,
            "max_seconds": caps.max_duration_s,
            "rounds": caps.max_rounds,
        }

    def _with_metadata(self, shown: dict[str, object]) -> dict[str, object]:
        if self.metadata:
            shown["metadata"] = dict(self.metadata)
        return shown


def billed_object(usage: Usage) -> dict[str, object]:
    """Return token counts, and how sure they are."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_input_tokens": usage.cache_write_input_tokens,
        "reasoning_output_tokens": usage.reasoning_output_tokens,
        "source": usage.source.value,
    }


def receipt_object(receipt: Receipt | None) -> dict[str, object] | None:
    """Return the receipt, the client's proof."""
    if receipt is None:
        return None
    return {
        "run_id": receipt.run_id,
        "leaf_indices": list(receipt.leaf_indices),
        "checkpoint": receipt.checkpoint,
    }


def _round(result: RoundResult) -> dict[str, object]:
    return {
        "round": result.round,
        "steps": result.step_count,
        "accepted": result.accepted,
        "changed": result.changed,
        "failure": result.failure.lower() or None,
    }


def _attempt(attempt: AttemptResult) -> dict[str, object]:
    return {
        "attempt_id": attempt.attempt_id,
        "worker": attempt.worker_id,
        "outcome": attempt.outcome.value,
        "cost_usd_micros": attempt.cost_usd_micros,
        "latency_ms": attempt.latency_us // 1_000,
        "error": attempt.error_reason.lower() or None,
    }
