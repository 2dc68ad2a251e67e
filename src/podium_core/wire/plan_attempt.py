"""Attempts of kind plan on the wire: in a plan's reply, or in the metadata of the error without one."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError

from podium.conductor.v1 import conductor_service_pb2
from podium_core.domain.run import AttemptKind
from podium_core.orchestration.ports import AttemptResult
from podium_core.wire.run import ATTEMPT_OUTCOME
from podium_core.wire.usage import usage_from_proto, usage_to_proto

_KEY = "plan_attempt."


def plan_attempt_to_proto(attempt: AttemptResult) -> conductor_service_pb2.PlanAttempt:
    """Return `attempt` as a message."""
    return conductor_service_pb2.PlanAttempt(
        attempt_id=attempt.attempt_id,
        worker_id=attempt.worker_id,
        outcome=ATTEMPT_OUTCOME.to_proto(attempt.outcome),
        usage=usage_to_proto(attempt.usage),
        cost_usd_micros=attempt.cost_usd_micros,
        latency_us=attempt.latency_us,
        error_reason=attempt.error_reason,
    )


def plan_attempt_from_proto(message: conductor_service_pb2.PlanAttempt) -> AttemptResult:
    """Return the attempt in `message`; raise PodiumError (INVALID_REQUEST) when malformed."""
    return AttemptResult(
        attempt_id=message.attempt_id,
        kind=AttemptKind.PLAN,
        worker_id=message.worker_id,
        outcome=ATTEMPT_OUTCOME.from_proto(message.outcome),
        usage=usage_from_proto(message.usage),
        cost_usd_micros=message.cost_usd_micros,
        latency_us=message.latency_us,
        error_reason=message.error_reason,
    )


def attempts_to_metadata(attempts: Sequence[AttemptResult]) -> dict[str, str]:
    """Return error metadata that tells of attempts made in vain: one short fact for each."""
    facts: dict[str, str] = {}
    for number, attempt in enumerate(attempts):
        message = plan_attempt_to_proto(attempt)
        message.ClearField("error_reason")  # a fact of an error is short
        facts[f"{_KEY}{number}"] = b64encode(message.SerializeToString()).decode()
    return facts


def attempts_from_metadata(metadata: Mapping[str, str]) -> tuple[AttemptResult, ...]:
    """Return the attempts that an error's metadata tells of; what cannot be read is left out."""
    found: list[AttemptResult] = []
    for key, value in metadata.items():
        if key.startswith(_KEY):
            try:
                data = b64decode(value, validate=True)
                found.append(plan_attempt_from_proto(conductor_service_pb2.PlanAttempt.FromString(data)))
            except (ValueError, DecodeError):
                continue
    return tuple(found)
