"""Kinds, outcomes, limits and verdicts of runs on the wire."""

from collections.abc import Iterable

from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import invalid
from podium_core.domain.policy import Verdict
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, RunKind, RunOutcome
from podium_core.wire.enums import EnumTable

RUN_KIND = EnumTable(RunKind, plan_pb2.RunKind, "RUN_KIND")
RUN_OUTCOME = EnumTable(RunOutcome, plan_pb2.RunOutcome, "RUN_OUTCOME")
ATTEMPT_KIND = EnumTable(AttemptKind, plan_pb2.AttemptKind, "ATTEMPT_KIND")
ATTEMPT_OUTCOME = EnumTable(AttemptOutcome, plan_pb2.AttemptOutcome, "ATTEMPT_OUTCOME")

_MILLISECONDS = 1_000
_DEFAULT = Caps()


def caps_to_proto(caps: Caps) -> plan_pb2.Caps:
    """Return `caps` as a message; times are rounded to milliseconds.

    Raises PodiumError (INVALID_REQUEST) for a cap of zero, which on the wire would mean not limited; only
    money may be capped at zero.
    """
    return plan_pb2.Caps(
        max_steps=_positive("max_steps", caps.max_steps),
        max_calls=_positive("max_calls", caps.max_calls),
        max_tokens=_positive("max_tokens", caps.max_tokens),
        max_cost_usd_micros=caps.max_cost_usd_micros or 0,
        has_max_cost=caps.max_cost_usd_micros is not None,
        max_duration_ms=_milliseconds("max_seconds", caps.max_duration_s),
        max_rounds=_positive("max_rounds", caps.max_rounds),
        max_attempts_per_step=_positive("max_attempts_per_step", caps.max_attempts_per_step),
        quorum=_positive("quorum", caps.quorum),
        straggler_wait_ms=_milliseconds("straggler_wait_s", caps.straggler_wait_s),
    )


def caps_from_proto(message: plan_pb2.Caps) -> Caps:
    """Return the caps in `message`. Steps, rounds and attempts that are not set get their defaults."""
    return Caps(
        max_steps=message.max_steps or _DEFAULT.max_steps,
        max_calls=message.max_calls or None,
        max_tokens=message.max_tokens or None,
        max_cost_usd_micros=message.max_cost_usd_micros if message.has_max_cost else None,
        max_duration_s=message.max_duration_ms / _MILLISECONDS if message.max_duration_ms else None,
        max_rounds=message.max_rounds or _DEFAULT.max_rounds,
        max_attempts_per_step=message.max_attempts_per_step or _DEFAULT.max_attempts_per_step,
        quorum=message.quorum or None,
        straggler_wait_s=message.straggler_wait_ms / _MILLISECONDS if message.straggler_wait_ms else None,
    )


def verdicts_to_proto(verdicts: Iterable[Verdict]) -> list[plan_pb2.Verdict]:
    """Return the verdicts as messages, in order."""
    return [
        plan_pb2.Verdict(worker_id=verdict.worker_id, allowed=verdict.allowed, rule_id=verdict.rule_id)
        for verdict in verdicts
    ]


def verdicts_from_proto(messages: Iterable[plan_pb2.Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts; raise PodiumError (INVALID_REQUEST) for one without worker or rule."""
    return tuple(_verdict(message) for message in messages)


def _verdict(message: plan_pb2.Verdict) -> Verdict:
    if not message.worker_id or not message.rule_id:
        raise invalid("every verdict needs a worker and a rule", param="verdicts")
    return Verdict(message.worker_id, message.allowed, message.rule_id)


def _positive(name: str, value: int | None) -> int:
    if value is None:
        return 0
    if value < 1:
        raise invalid(f"{name} must be at least 1", param=name)
    return value


def _milliseconds(name: str, seconds: float | None) -> int:
    if seconds is None:
        return 0
    if seconds <= 0:
        raise invalid(f"{name} must be more than 0", param=name)
    return max(1, round(seconds * _MILLISECONDS))
