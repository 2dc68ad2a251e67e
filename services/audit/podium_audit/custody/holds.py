"""Legal holds: while one stands, nothing of its runs is erased and nothing of them expires."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from podium_audit.records import limits
from podium_audit.records.commands import PlaceHold
from podium_audit.records.facts import Draft
from podium_audit.rows.custody import ControlRow
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.record import canonical

HOLD = "hold"
MAX_RUNS = 256
MAX_STANDING = 256


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold that stands. Without run ids it covers every run of its tenant, later ones too."""

    hold_id: str
    case_id: str
    principal_id: str
    placed_us: int
    run_ids: tuple[str, ...]

    def covers(self, run_id: str) -> bool:
        """Whether it protects a run."""
        return not self.run_ids or run_id in self.run_ids


def place(command: PlaceHold, standing: Sequence[Hold], now_us: int) -> tuple[Draft, ControlRow]:
    """Return the record of a hold and its row.

    Raises PodiumError: INVALID_REQUEST, or CONFLICT when there are too many.
    """
    limits.check_id("case_id", command.case_id)
    if len(command.run_ids) > MAX_RUNS:
        raise invalid(f"a hold may name {MAX_RUNS} runs; place another for the rest", param="run_ids")
    if len(standing) >= MAX_STANDING:
        raise PodiumError(
            Code.CONFLICT,
            f"{MAX_STANDING} holds stand; hold everything, or release some",
            reason="TOO_MANY_HOLDS",
        )
    facts = {
        "hold_id": command.hold_id,
        "case_id": command.case_id,
        "principal_id": command.principal_id,
        "run_ids": list(command.run_ids),
    }
    body = canonical({**facts, "placed_us": now_us}).decode()
    row = ControlRow(command.tenant_id, HOLD, command.hold_id, stands=True, body=body)
    return Draft("hold_placed", facts, in_run=False), row


def release(row: ControlRow, principal_id: str, approval_id: str) -> tuple[Draft, ControlRow]:
    """Return the record of a hold's end and its row."""
    facts = {
        "hold_id": row.item_id,
        "case_id": hold_of(row).case_id,
        "principal_id": principal_id,
        "approval_id": approval_id,
    }
    return Draft("hold_released", facts, in_run=False), row._replace(stands=False)


def hold_of(row: ControlRow) -> Hold:
    """Return the hold that a row tells of."""
    fields = json.loads(row.body)
    return Hold(
        row.item_id,
        fields["case_id"],
        fields["principal_id"],
        fields["placed_us"],
        tuple(fields["run_ids"]),
    )


def over(rows: Sequence[ControlRow], run_id: str) -> list[str]:
    """Return the ids of the holds that protect a run."""
    return [row.item_id for row in rows if hold_of(row).covers(run_id)]
