"""A plan as the log takes it: evidence in the record, texts as content beside it."""

from podium.audit.v1 import audit_service_pb2
from podium_core.orchestration.ports import PlanReply
from podium_core.wire.plan import plan_to_proto
from podium_core.wire.plan_query import choices_to_proto
from podium_core.wire.usage import usage_to_proto

_TEXT = "text/plain; charset=utf-8"


def plan_record(reply: PlanReply) -> audit_service_pb2.PlanRecord:
    """Return the evidence of a plan, without the texts of its subtasks."""
    plan = plan_to_proto(reply.plan)
    for step in plan.steps:
        step.subtask = ""  # its text is content, sealed beside the record
    return audit_service_pb2.PlanRecord(
        plan=plan,
        model_digest=reply.model_digest,
        choices=choices_to_proto(reply),
        usage=usage_to_proto(reply.usage),
        seed=reply.seed,
        generation_count=reply.generation_count,
        fallback_reason=reply.fallback_reason,
        tokenizer_digest=reply.tokenizer_digest,
        template_digest=reply.template_digest,
    )


def plan_contents(reply: PlanReply) -> list[audit_service_pb2.Content]:
    """Return the texts of a plan: its subtasks and what the engine wrote."""
    prefix = f"plan/{reply.plan.round}"
    steps = reply.plan.steps
    made = [
        audit_service_pb2.Content(
            part_id=f"{prefix}/subtask/{index}",
            name="subtask",
            media_type=_TEXT,
            data=step.subtask.encode(errors="replace"),
        )
        # All or none, so that each text finds its step; none when the question is only passed through.
        for index, step in enumerate(steps if any(step.subtask for step in steps) else ())
    ]
    if reply.raw_text:
        raw = reply.raw_text.encode(errors="replace")
        made.append(
            audit_service_pb2.Content(part_id=f"{prefix}/text", name="plan_text", media_type=_TEXT, data=raw)
        )
    return made
