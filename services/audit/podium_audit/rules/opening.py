"""What may be written about a run besides its attempts and its end: opening, plans, notes, content."""

from collections.abc import Sequence

from podium_audit.records import contents, facts, limits
from podium_audit.records.commands import AppendNote, AppendPlan, OpenRun, Part, PlanEvidence, PutContent
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import OWN_NOTES, RunState
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.run import RunKind, RunOutcome

_PLAN_PARTS = frozenset({"plan_text", "subtask"})
_KINDS_OF_CALLER = {
    "gateway": frozenset({RunKind.CHAT.value, RunKind.EMBED.value}),
    "cli": frozenset({RunKind.CALIBRATE.value, RunKind.TRAIN.value, RunKind.PROBE.value}),
}


def check_caller(service: str, kind: str) -> None:
    """Raise PodiumError (POLICY_DENIED) if the caller may not drive runs of that kind."""
    kinds = _KINDS_OF_CALLER.get(service)
    if kinds is not None and kind not in kinds:
        raise PodiumError(
            Code.POLICY_DENIED,
            f"{service} may write to runs of kind {', '.join(sorted(kinds))}, not {kind}",
            reason="RUN_KIND_NOT_ALLOWED",
        )


def open_run(command: OpenRun, data_key: bytes, max_bytes: int) -> list[Draft]:
    """Return the records of an opening: opened, then the plan if there is one, then the seal if refused.

    Raises PodiumError (INVALID_REQUEST, TOO_LARGE, POLICY_DENIED).
    """
    check_caller(command.event.service, command.kind.value)
    limits.check_id("run_id", command.run_id)
    limits.check_id("tenant_id", command.tenant_id)
    limits.check_texts(
        (
            ("principal_id", command.principal_id),
            ("requested_model", command.requested_model),
            ("refusal_reason", command.refusal_reason),
            ("continues_run_id", command.continues_run_id),
        )
    )
    limits.check_amount("tenant_budget_usd_micros", command.tenant_budget_usd_micros)
    limits.check_amount("key_budget_usd_micros", command.key_budget_usd_micros)
    if command.key_budget_usd_micros is not None and not command.principal_id:
        raise invalid("a key's budget needs the key it is of", param="principal_id")
    limits.check_parts(command.contents, max_bytes)
    _check_distinct(command.contents)
    if command.plan is not None and command.plan.plan.round != 0:
        raise invalid("the plan that opens a run must be of round 0", param="plan.round")
    if command.plan is not None and command.refusal_reason:
        raise invalid("a refused run has no plan", param="plan")
    of_plan = [part for part in command.contents if command.plan is not None and part.name in _PLAN_PARTS]
    others = [part for part in command.contents if part not in of_plan]
    drafts = [Draft("opened", facts.opened(command), _seal_all(data_key, command.run_id, others))]
    if command.plan is not None:
        drafts.append(_plan(command.run_id, data_key, command.plan, of_plan))
    if command.refusal_reason:
        drafts.append(
            Draft(
                "sealed",
                {
                    "outcome": RunOutcome.REFUSED.value,
                    "error_reason": command.refusal_reason,
                    "record_count": len(drafts) + 1,
                    "attempt_count": 0,
                    "cost_usd_micros": 0,
                    "unknown_attempts": [],
                },
            )
        )
    return drafts


def append_plan(run: RunState, command: AppendPlan, max_bytes: int) -> list[Draft]:
    """Return the record of the next round's plan.

    Raises PodiumError (CONFLICT when the run takes no more, INVALID_REQUEST for a wrong round).
    """
    check_caller(command.event.service, run.kind)
    check_open(run)
    expected = len(run.plans)
    if command.plan.plan.round != expected:
        raise invalid(
            f"the run's next plan is of round {expected}, not {command.plan.plan.round}", param="plan.round"
        )
    data_key = check_new_parts(run, command.contents, max_bytes)
    return [_plan(run.row.run_id, data_key, command.plan, command.contents)]


def append_note(run: RunState | None, command: AppendNote, max_bytes: int) -> list[Draft]:
    """Return the record of a note; on a sealed run it only refers to the run."""
    limits.check_note(command.kind, command.facts.items())
    if command.kind in OWN_NOTES:
        raise invalid(
            "stops and grades are requested, not noted: call RequestStop, ClearStop or GradeRun",
            param="note.kind",
        )
    fields = {"kind": command.kind, "facts": dict(command.facts)}
    if run is None:
        if command.contents:
            raise invalid("a note without a run cannot carry content", param="contents")
        return [Draft("note", fields, in_run=False)]
    check_caller(command.event.service, run.kind)
    data_key = check_new_parts(run, command.contents, max_bytes)
    parts = _seal_all(data_key, run.row.run_id, command.contents)
    return [Draft("note", fields, parts, in_run=run.outcome is None)]


def put_content(run: RunState, command: PutContent, max_bytes: int) -> list[Draft]:
    """Return the record of one content part."""
    check_caller(command.event.service, run.kind)
    check_open(run)
    parts = (command.part,)
    data_key = check_new_parts(run, parts, max_bytes)
    return [Draft("content", {}, _seal_all(data_key, run.row.run_id, parts))]


def check_open(run: RunState) -> None:
    """Raise PodiumError (CONFLICT) if the run takes no more records."""
    if run.outcome is not None:
        raise PodiumError(
            Code.CONFLICT,
            f"the run is sealed: {run.outcome.value}",
            reason="RUN_SEALED",
            metadata={"outcome": run.outcome.value},
        )


def check_new_parts(run: RunState, parts: tuple[Part, ...], max_bytes: int) -> bytes:
    """Return the run's data key once the parts may be sealed under it; raise PodiumError otherwise."""
    if run.data_key is None:
        raise PodiumError(Code.CONFLICT, "the run's content is erased: it takes no more", reason="RUN_ERASED")
    limits.check_parts(parts, max_bytes)
    _check_distinct(parts)
    for part in parts:
        if part.part_id in run.parts:
            raise PodiumError(
                Code.CONFLICT,
                f"the run already has content {part.part_id}",
                reason="PART_EXISTS",
                param="part_id",
            )
    return run.data_key


def _check_distinct(parts: Sequence[Part]) -> None:
    if len({part.part_id for part in parts}) != len(parts):
        raise invalid("part ids must be unique within a run", param="part_id")


def _plan(run_id: str, data_key: bytes, evidence: PlanEvidence, parts: Sequence[Part]) -> Draft:
    limits.check_texts(
        (("plan.model_digest", evidence.model_digest), ("plan.fallback_reason", evidence.fallback_reason))
    )
    subtasks = _subtask_part_ids(evidence, [part for part in parts if part.name == "subtask"])
    return Draft("plan", facts.plan(evidence, subtasks), _seal_all(data_key, run_id, parts))


def _subtask_part_ids(evidence: PlanEvidence, subtasks: Sequence[Part]) -> list[str]:
    """Return each step's subtask part; a step whose subtask is empty may go without one."""
    steps = evidence.plan.steps
    if len(subtasks) == len(steps):
        return [part.part_id for part in subtasks]
    worded = sum(1 for step in steps if step.subtask)
    if len(subtasks) != worded:
        raise invalid(
            f"the plan has {len(steps)} steps, {worded} with a subtask: send as many contents named subtask,"
            f" not {len(subtasks)}",
            param="contents",
        )
    waiting = iter(subtasks)
    return [next(waiting).part_id if step.subtask else "" for step in steps]


def _seal_all(data_key: bytes, run_id: str, parts: Sequence[Part]) -> list[contents.SealedPart]:
    return [contents.seal(data_key, run_id, part) for part in parts]
