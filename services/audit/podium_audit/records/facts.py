"""The facts of each record type, exactly as the log format fixes them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from podium_audit.records.commands import BeginAttempt, EndAttempt, OpenRun, PlanEvidence
from podium_audit.records.contents import SealedPart
from podium_core.domain.run import Caps
from podium_core.domain.usage import Usage

FORMAT_VERSION = 1
KEY_ROTATED = "key_rotated"
"""The type of the record by which one signing key hands over to the next."""
_MS_PER_S = 1_000


class Draft(NamedTuple):
    """A record before it has a place in the log. `in_run` is false for facts that only refer to the run."""

    type: str
    facts: dict[str, Any]
    parts: Sequence[SealedPart] = ()
    in_run: bool = True


def opened(command: OpenRun) -> dict[str, Any]:
    """Return the facts of a run's opening."""
    return {
        "kind": command.kind.value,
        "principal_id": command.principal_id,
        "requested_model": command.requested_model,
        "verdicts": [
            {"worker_id": verdict.worker_id, "allowed": verdict.allowed, "rule_id": verdict.rule_id}
            for verdict in command.verdicts
        ],
        "caps": _caps(command.caps),
        "pool_digest": command.pool_digest,
        "price_digest": command.price_digest,
        "policy_digest": command.policy_digest,
        "trace_id": command.trace_id,
        "refusal_reason": command.refusal_reason,
        "continues_run_id": command.continues_run_id,
        "has_plan": command.plan is not None,
        **({"subject": command.subject} if command.subject else {}),
    }


def plan(evidence: PlanEvidence, subtask_part_ids: Sequence[str]) -> dict[str, Any]:
    """Return the facts of a plan; subtask texts are content parts, named per step."""
    return {
        "round": evidence.plan.round,
        "source": evidence.plan.source.value,
        "steps": [
            {
                "worker_id": step.worker_id,
                "access": list(step.access.steps),
                "sees_previous_round": step.access.previous_round,
                "fallback_worker_id": step.fallback_worker_id or "",
                "subtask_part_id": part_id,
            }
            for step, part_id in zip(evidence.plan.steps, subtask_part_ids, strict=True)
        ],
        "model_digest": evidence.model_digest,
        "choices": [
            {
                "step_index": step_index,
                "chances": [
                    {
                        "worker_id": chance.worker_id,
                        "raw_ppm": chance.raw_ppm,
                        "eligible_ppm": chance.eligible_ppm,
                    }
                    for chance in chances
                ],
            }
            for step_index, chances in evidence.choices
        ],
        "usage": usage(evidence.usage),
        "seed": str(evidence.seed),
        "generation_count": evidence.generation_count,
        "fallback_reason": evidence.fallback_reason,
        "tokenizer_digest": evidence.tokenizer_digest,
        "template_digest": evidence.template_digest,
    }


def attempt_begun(command: BeginAttempt, body: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a permit. `body` commits to the exact bytes that will be sent."""
    return {
        "attempt_id": command.event.event_id,
        "kind": command.kind.value,
        "round": command.round,
        "step_index": command.step_index,
        "worker_id": command.worker_id,
        "provider": command.provider,
        "provider_model": command.provider_model,
        "region": command.region,
        "endpoint_host": command.endpoint_host,
        "seen_steps": list(command.seen_steps),
        "sees_previous_round": command.sees_previous_round,
        "max_cost_usd_micros": command.max_cost_usd_micros,
        "price_digest": command.price_digest,
        "pool_digest": command.pool_digest,
        "body": body,
    }


def attempt_ended(command: EndAttempt) -> dict[str, Any]:
    """Return the facts of an attempt's end, in time or late."""
    return {
        "attempt_id": command.attempt_id,
        "outcome": command.outcome.value,
        "usage": usage(command.usage),
        "cost_usd_micros": command.cost_usd_micros,
        "latency_us": command.latency_us,
        "finish_reason": command.finish_reason,
        "error_reason": command.error_reason,
        "provider_response_id": command.provider_response_id,
        "served_model": command.served_model,
        "dispatched": command.dispatched,
    }


def usage(counts: Usage) -> dict[str, Any]:
    """Return token counts as a record holds them."""
    return {
        "input_tokens": counts.input_tokens,
        "output_tokens": counts.output_tokens,
        "cached_input_tokens": counts.cached_input_tokens,
        "cache_write_input_tokens": counts.cache_write_input_tokens,
        "reasoning_output_tokens": counts.reasoning_output_tokens,
        "source": counts.source.value,
    }


def _caps(caps: Caps) -> dict[str, Any]:
    return {
        "max_steps": caps.max_steps,
        "max_calls": caps.max_calls,
        "max_tokens": caps.max_tokens,
        "max_cost_usd_micros": caps.max_cost_usd_micros,
        "max_duration_ms": _milliseconds(caps.max_duration_s),
        "max_rounds": caps.max_rounds,
        "max_attempts_per_step": caps.max_attempts_per_step,
        "quorum": caps.quorum,
        "straggler_wait_ms": _milliseconds(caps.straggler_wait_s),
    }


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * _MS_PER_S)
