"""Erasure of a run's content, in three steps that a crash may part: decide, destroy the key, record.

The decision is durable before anything is destroyed, and the last record is made once the key is gone.
"""

from collections.abc import Sequence

from podium_audit.ports import StoreError
from podium_audit.records import limits
from podium_audit.records.commands import BeginErasure, FinishErasure
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import RunState
from podium_core.domain.errors import Code, PodiumError, invalid

RETENTION = "retention"
BASES = (
    "consent_withdrawn",
    "contract_ended",
    "legal_obligation",
    "subject_request",
    "unlawful_processing",
)
"""The legal bases that people may name; what expires is erased under `retention`."""

LEGAL_HOLD = "LEGAL_HOLD"


def begin(run: RunState, command: BeginErasure, hold_ids: Sequence[str]) -> list[Draft]:
    """Return the record of a decision to erase, or of its refusal; nothing when it is decided already.

    Raises PodiumError: NOT_FOUND (another tenant's run), CONFLICT (it goes on), INVALID_REQUEST.
    """
    if command.tenant_id != run.row.tenant_id:
        raise PodiumError(Code.NOT_FOUND, "there is no such run", reason="RUN_UNKNOWN", param="run_id")
    if command.basis not in (*BASES, RETENTION):
        raise invalid(f"basis must be one of {', '.join(BASES)}", param="basis")
    if command.case_id:
        limits.check_id("case_id", command.case_id)
    if run.outcome is None:
        message = f"the run {command.run_id} goes on: stop it first"
        raise PodiumError(Code.CONFLICT, message, reason="RUN_OPEN")
    facts = {"principal_id": command.principal_id, "basis": command.basis, "case_id": command.case_id}
    if run.erasure_index is not None:
        return []
    if hold_ids:
        return [Draft("erasure_refused", {**facts, "hold_ids": list(hold_ids)}, in_run=False)]
    return [Draft("erasure_begun", facts, in_run=False)]


def finish(run: RunState, command: FinishErasure, key: bytes | None) -> list[Draft]:
    """Return the record of a finished erasure. `key` is what is left of the run's data key: nothing.

    Raises StoreError when the key is still there, and PodiumError (CONFLICT) when nobody decided on it.
    """
    if run.erasure_index is None:
        raise PodiumError(Code.CONFLICT, "nobody decided to erase this run", reason="ERASURE_UNKNOWN")
    if run.erased_index is not None:
        return []
    if key is not None:
        raise StoreError("the key of a run that is being erased is still there")
    facts = {
        **run.erasure_facts,
        "begun_index": run.erasure_index,
        "part_count": len(run.parts),
        "key_is_gone": True,
        "key_backup_days": command.key_backup_days,
    }
    return [Draft("erased", facts, in_run=False)]
