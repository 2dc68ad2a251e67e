"""Plans on the wire."""

from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import invalid
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.wire.enums import EnumTable

PLAN_SOURCE = EnumTable(PlanSource, plan_pb2.PlanSource, "PLAN_SOURCE")


def plan_to_proto(plan: Plan) -> plan_pb2.Plan:
    """Return `plan` as a message."""
    return plan_pb2.Plan(
        steps=[_step_to_proto(step) for step in plan.steps],
        source=PLAN_SOURCE.to_proto(plan.source),
        round=plan.round,
    )


def plan_from_proto(message: plan_pb2.Plan) -> Plan:
    """Return the plan in `message`; raise PodiumError (INVALID_REQUEST) when it breaks a plan's rules."""
    source = PLAN_SOURCE.from_proto(message.source)
    try:
        return Plan(tuple(_step_from_proto(step) for step in message.steps), source, message.round)
    except ValueError as error:  # the domain's own words, without content
        raise invalid(f"plan: {error}", reason="PLAN_RULE_BROKEN", param="plan") from None


def _step_to_proto(step: Step) -> plan_pb2.Step:
    return plan_pb2.Step(
        worker_id=step.worker_id,
        subtask=step.subtask,
        access=step.access.steps,
        sees_previous_round=step.access.previous_round,
        fallback_worker_id=step.fallback_worker_id or "",
    )


def _step_from_proto(message: plan_pb2.Step) -> Step:
    if not message.worker_id:
        raise ValueError("every step needs a worker")
    access = Access(tuple(message.access), message.sees_previous_round)
    return Step(message.worker_id, message.subtask, access, message.fallback_worker_id or None)
