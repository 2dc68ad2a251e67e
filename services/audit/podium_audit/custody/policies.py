"""Retention policies as the log takes them over: longer ones at once, shorter ones once two keys want it."""

import json
from collections.abc import Sequence
from hashlib import sha256

from podium_audit.custody import approvals
from podium_audit.records.commands import SetRetention
from podium_audit.records.facts import Draft
from podium_audit.rows.custody import ControlRow
from podium_core.config.retention import Retention
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.record import canonical

POLICY = "retention"
_ITEM = "policy"
_DIGEST_CHARS = 16


def set_policy(
    command: SetRetention,
    standing: Sequence[ControlRow],
    granted: Sequence[ControlRow],
    now_us: int,
    *,
    is_new_tenant: bool,
) -> tuple[Draft, list[ControlRow]] | None:
    """Return the record of a change of policy and its rows; None where that policy stands already.

    Raises PodiumError (POLICY_DENIED): it keeps something for less long, and no two keys have approved that.
    """
    before = policy_of(standing)
    wanted = command.retention
    if standing and wanted == before:
        return None
    if not standing and wanted == Retention():
        return None
    used: list[ControlRow] = []
    if wanted.is_shorter_than(before) and not is_new_tenant:
        used = [_approved(granted, target_of(command.tenant_id, wanted), now_us)]
    facts = {**_days(wanted), "approval_id": used[0].item_id if used else ""}
    row = ControlRow(command.tenant_id, POLICY, _ITEM, stands=True, body=canonical(facts).decode())
    rows = [row, *(row._replace(stands=False) for row in used)]
    return Draft("retention_set", facts, in_run=False), rows


def policy_of(rows: Sequence[ControlRow]) -> Retention:
    """Return the policy that stands; without one, everything is kept."""
    if not rows:
        return Retention()
    fields = json.loads(rows[0].body)
    return Retention(fields["evidence_days"], fields["content_days"], fields["conversation_days"])


def target_of(tenant_id: str, retention: Retention) -> str:
    """Return what an approval of this very policy names."""
    data = canonical({"tenant_id": tenant_id, **_days(retention)})
    return f"policy-{sha256(data).hexdigest()[:_DIGEST_CHARS]}"


def _days(retention: Retention) -> dict[str, object]:
    return {
        "evidence_days": retention.evidence_days,
        "content_days": retention.content_days,
        "conversation_days": retention.conversation_days,
    }


def _approved(granted: Sequence[ControlRow], target: str, now_us: int) -> ControlRow:
    for row in granted:
        approval = approvals.approval_of(row)
        is_of = (approval.action, approval.target) == (approvals.CHANGE_RETENTION, target)
        if is_of and approval.approved_by and approval.expires_us > now_us:
            return row
    raise PodiumError(
        Code.POLICY_DENIED,
        f"keeping records for less long takes an approval of {approvals.CHANGE_RETENTION} for {target}",
        reason="APPROVAL_REQUIRED",
    )
