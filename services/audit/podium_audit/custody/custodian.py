"""Applies commands about the keeping of records to the running batch: each is a record and a row."""

from collections.abc import Sequence

from podium_audit.custody import approvals, drops, erasures, holds, policies
from podium_audit.ports import RunKeys
from podium_audit.records.commands import (
    Applied,
    BeginErasure,
    CustodyCommand,
    DropEvidence,
    FinishErasure,
    GiveApproval,
    PlaceHold,
    ReleaseHold,
    RequestApproval,
    SetRetention,
)
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import RunState
from podium_audit.rows.custody import ControlRow
from podium_audit.rules.state import LogState
from podium_core.domain.errors import Code, PodiumError


class Custodian:
    """Used by the log's thread only. Every refusal comes before the first change."""

    def __init__(self, keys: RunKeys) -> None:
        self._keys = keys

    def apply(self, state: LogState, command: CustodyCommand, now_us: int) -> Applied:
        """Put what the command asks for into the running batch. Raises PodiumError, StoreError."""
        match command:
            case BeginErasure():
                applied = self._begin(state, command, now_us)
            case FinishErasure():
                applied = self._finish(state, command, now_us)
            case PlaceHold():
                applied = _place(state, command, now_us)
            case ReleaseHold():
                applied = _release(state, command, now_us)
            case SetRetention():
                applied = _set_policy(state, command, now_us)
            case DropEvidence():
                applied = _drop(state, command, now_us)
            case RequestApproval():
                rows = state.controls(approvals.APPROVAL, command.tenant_id)
                draft, changed = approvals.request(command, rows, now_us)
                applied = _stage(state, command, draft, changed, now_us)
            case GiveApproval():
                row = _control(state, approvals.APPROVAL, command.tenant_id, command.approval_id)
                draft, given = approvals.give(command, row, now_us)
                applied = _stage(state, command, draft, [given], now_us)
        return applied

    def _begin(self, state: LogState, command: BeginErasure, now_us: int) -> Applied:
        run = _run(state, command.run_id)
        held = holds.over(state.controls(holds.HOLD, command.tenant_id), command.run_id)
        drafts = erasures.begin(run, command, held)
        if not drafts:
            known = run.erasure_index if run.erased_index is None else run.erased_index
            return Applied((known or 0,), erased_index=run.erased_index)
        indices = state.stage(command.event, run, drafts, now_us)
        if run.erasure_index is None:
            return Applied(indices, refusal=erasures.LEGAL_HOLD)
        state.set_erasure(run)
        return Applied(indices)

    def _finish(self, state: LogState, command: FinishErasure, now_us: int) -> Applied:
        run = _run(state, command.run_id)
        drafts = erasures.finish(run, command, self._keys.get(run.row.key_no))
        indices = state.stage(command.event, run, drafts, now_us) if drafts else (run.erased_index or 0,)
        if drafts:
            state.set_erasure(run)
        return Applied(indices, erased_index=run.erased_index)


def _stage(
    state: LogState,
    command: PlaceHold | ReleaseHold | SetRetention | DropEvidence | RequestApproval | GiveApproval,
    draft: Draft,
    rows: Sequence[ControlRow],
    now_us: int,
) -> Applied:
    """Put a decision about a tenant's records into the running batch: the record, and its rows."""
    indices = state.stage(command.event, None, [draft], now_us, tenant_id=command.tenant_id)
    for row in rows:
        state.set_control(row)
    return Applied(indices)


def _place(state: LogState, command: PlaceHold, now_us: int) -> Applied:
    standing = [holds.hold_of(row) for row in state.controls(holds.HOLD, command.tenant_id)]
    for run_id in command.run_ids[: holds.MAX_RUNS]:
        if _run(state, run_id).row.tenant_id != command.tenant_id:
            raise _unknown_run()
    draft, row = holds.place(command, standing, now_us)
    return _stage(state, command, draft, [row], now_us)


def _release(state: LogState, command: ReleaseHold, now_us: int) -> Applied:
    held = _control(state, holds.HOLD, command.tenant_id, command.hold_id)
    granted = state.controls(approvals.APPROVAL, command.tenant_id)
    approvals.check(
        granted,
        command.approval_id,
        action=approvals.RELEASE_HOLD,
        target=command.hold_id,
        principal_id=command.principal_id,
        now_us=now_us,
    )
    draft, row = holds.release(held, command.principal_id, command.approval_id)
    used = next(row for row in granted if row.item_id == command.approval_id)
    return _stage(state, command, draft, [row, used._replace(stands=False)], now_us)


def _drop(state: LogState, command: DropEvidence, now_us: int) -> Applied:
    standing = {row.item_id for row in state.controls(drops.DROP, command.tenant_id)}
    changed = drops.drop(command, is_standing=str(command.shelf) in standing)
    if changed is None:
        return Applied()
    draft, row = changed
    return _stage(state, command, draft, [row], now_us)


def _set_policy(state: LogState, command: SetRetention, now_us: int) -> Applied:
    tenant_id = command.tenant_id
    changed = policies.set_policy(
        command,
        state.controls(policies.POLICY, tenant_id),
        state.controls(approvals.APPROVAL, tenant_id),
        now_us,
        is_new_tenant=not state.book.leaf_count(tenant_id),
    )
    if changed is None:
        return Applied()
    draft, rows = changed
    return _stage(state, command, draft, rows, now_us)


def _control(state: LogState, kind: str, tenant_id: str, item_id: str) -> ControlRow:
    row = next((row for row in state.controls(kind, tenant_id) if row.item_id == item_id), None)
    if row is None:
        raise PodiumError(
            Code.NOT_FOUND, f"there is no such {kind}", reason=f"{kind.upper()}_UNKNOWN", param=f"{kind}_id"
        )
    return row


def _run(state: LogState, run_id: str) -> RunState:
    run = state.find_run(run_id)
    if run is None:
        raise _unknown_run()
    return run


def _unknown_run() -> PodiumError:
    return PodiumError(Code.NOT_FOUND, "there is no such run", reason="RUN_UNKNOWN", param="run_id")
