"""Months of records that a store drops whole: said in the log before, and again once it is done."""

from podium_audit.records.commands import DropEvidence
from podium_audit.records.facts import Draft
from podium_audit.rows.custody import ControlRow
from podium_core.domain.record import canonical

DROP = "drop"


def drop(command: DropEvidence, *, is_standing: bool) -> tuple[Draft, ControlRow] | None:
    """Return the record of a drop that begins, or is done, and its row; None where that is said already."""
    if is_standing != command.is_done:
        return None
    facts = {"month": command.month, "evidence_days": command.evidence_days}
    row = ControlRow(
        command.tenant_id,
        DROP,
        str(command.shelf),
        stands=not command.is_done,
        body=canonical({**facts, "shelf": command.shelf}).decode(),
    )
    kind = "evidence_dropped" if command.is_done else "evidence_dropping"
    return Draft(kind, facts, in_run=False), row
