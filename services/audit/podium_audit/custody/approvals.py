"""Four eyes: one key asks, another approves before the request expires; without that nothing is allowed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from podium_audit.records import limits
from podium_audit.records.commands import GiveApproval, RequestApproval
from podium_audit.records.facts import Draft
from podium_audit.rows.custody import ControlRow
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.record import canonical

APPROVAL = "approval"
READ_CONTENT = "read_content"
RELEASE_HOLD = "release_hold"
CHANGE_RETENTION = "change_retention"
ACTIONS = (READ_CONTENT, RELEASE_HOLD, CHANGE_RETENTION)
"""What needs two keys, and what it is done to: a run, a hold, a policy by its digest."""

MAX_STANDING = 256
MAX_LIFE_US = 7 * 86_400_000_000


@dataclass(frozen=True, slots=True)
class Approval:
    """A request for approval; `approved_by` is empty until another key gives it."""

    approval_id: str
    action: str
    target: str
    case_id: str
    requested_by: str
    expires_us: int
    approved_by: str


def request(
    command: RequestApproval, rows: Sequence[ControlRow], now_us: int
) -> tuple[Draft, list[ControlRow]]:
    """Return the record of a request, its row, and the rows of requests that have expired.

    Raises PodiumError: INVALID_REQUEST, or CONFLICT when too many are waiting.
    """
    if command.action not in ACTIONS:
        raise invalid(f"action must be one of {', '.join(ACTIONS)}", param="action")
    limits.check_id("target", command.target)
    limits.check_id("case_id", command.case_id)
    if not now_us < command.expires_us <= now_us + MAX_LIFE_US:
        raise invalid("an approval may last 7 days at most", param="valid_s")
    expired = [row._replace(stands=False) for row in rows if approval_of(row).expires_us <= now_us]
    if len(rows) - len(expired) >= MAX_STANDING:
        raise PodiumError(
            Code.CONFLICT, f"{MAX_STANDING} requests wait; let some expire", reason="TOO_MANY_APPROVALS"
        )
    facts = {
        "approval_id": command.approval_id,
        "action": command.action,
        "target": command.target,
        "case_id": command.case_id,
        "principal_id": command.principal_id,
        "expires_us": command.expires_us,
    }
    body = canonical({**facts, "approved_by": ""}).decode()
    row = ControlRow(command.tenant_id, APPROVAL, command.approval_id, stands=True, body=body)
    return Draft("approval_requested", facts, in_run=False), [*expired, row]


def give(command: GiveApproval, row: ControlRow, now_us: int) -> tuple[Draft, ControlRow]:
    """Return the record of an approval and its row.

    Raises PodiumError: POLICY_DENIED (by the key that asked), CONFLICT (expired, or given before).
    """
    approval = approval_of(row)
    if approval.expires_us <= now_us:
        raise expired()
    if approval.requested_by == command.principal_id:
        raise PodiumError(
            Code.POLICY_DENIED, "another key than the one that asked must approve", reason="SAME_KEY"
        )
    if approval.approved_by:
        raise PodiumError(Code.CONFLICT, "it is approved already", reason="APPROVAL_GIVEN")
    facts = {
        "approval_id": row.item_id,
        "action": approval.action,
        "target": approval.target,
        "case_id": approval.case_id,
        "principal_id": command.principal_id,
    }
    body = canonical({**json.loads(row.body), "approved_by": command.principal_id}).decode()
    return Draft("approval_given", facts, in_run=False), row._replace(body=body)


def check(
    rows: Sequence[ControlRow],
    approval_id: str,
    *,
    action: str,
    target: str,
    principal_id: str,
    now_us: int,
) -> Approval:
    """Return the approval that lets a key do it now; raise PodiumError (POLICY_DENIED) without one."""
    row = next((row for row in rows if row.item_id == approval_id), None)
    approval = approval_of(row) if row is not None else None
    if approval is None or (approval.action, approval.target, approval.requested_by) != (
        action,
        target,
        principal_id,
    ):
        raise PodiumError(
            Code.POLICY_DENIED,
            f"this needs an approval of {action} for {target}, asked for by this key: POST /v1/approvals",
            reason="APPROVAL_REQUIRED",
        )
    if approval.expires_us <= now_us:
        raise expired()
    if not approval.approved_by:
        raise PodiumError(
            Code.POLICY_DENIED, "no other key has approved it yet", reason="APPROVAL_OUTSTANDING"
        )
    return approval


def approval_of(row: ControlRow) -> Approval:
    """Return the request that a row tells of."""
    fields = json.loads(row.body)
    return Approval(
        row.item_id,
        fields["action"],
        fields["target"],
        fields["case_id"],
        fields["principal_id"],
        fields["expires_us"],
        fields["approved_by"],
    )


def expired() -> PodiumError:
    """Return the refusal of what was approved, or could have been, too long ago."""
    return PodiumError(Code.CONFLICT, "the request has expired: ask again", reason="APPROVAL_EXPIRED")
