"""Runs for people: the list of a tenant's runs, and one run with its records, content and receipt."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from podium_audit.ports import RunRow, SealRow
from podium_audit.records import contents, limits
from podium_audit.records.run_state import PARTS_PER_LEAF
from podium_audit.stores.readers import View
from podium_core.config.tenants import AUDITOR, CLIENT, INVESTIGATOR, OPERATOR, PRIVACY, Principal

_TEXT_TYPES = ("text/", "application/json")
WATCHERS = frozenset({AUDITOR, INVESTIGATOR, OPERATOR, PRIVACY})
"""Roles that see the records of every run of the tenant, without content."""

_MAX_SHOWN_BYTES = 8 << 20
_SHOWN = ("part_id", "name", "media_type", "length")


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that its reader may see."""

    row: RunRow
    seal: SealRow | None


def is_own(principal: Principal, row: RunRow) -> bool:
    """Whether the run is the key's own, so that it may read its content."""
    is_of_tenant = row.tenant_id == principal.tenant.tenant_id
    return is_of_tenant and CLIENT in principal.roles and row.principal_id == principal.key_id


def may_see(principal: Principal, row: RunRow) -> bool:
    """Whether the key may see a run's records: its own, or for those who watch any of its tenant."""
    if row.tenant_id != principal.tenant.tenant_id:
        return False
    return bool(principal.roles & WATCHERS) or is_own(principal, row)


def find(view: View, principal: Principal, run_id: str) -> FoundRun | None:
    """Return the run; None when there is none that the key may see."""
    found = view.log.run(run_id) if limits.is_id(run_id) else None
    return FoundRun(*found) if found is not None and may_see(principal, found[0]) else None


def summary(row: RunRow, seal: SealRow | None) -> dict[str, Any]:
    """Return a run in a few facts; those of its end are null while it is open."""
    return {
        "run_id": row.run_id,
        "kind": row.kind,
        "principal_id": row.principal_id,
        "requested_model": row.requested_model,
        "opened_us": row.opened_us,
        "sealed_us": seal.sealed_us if seal else None,
        "outcome": seal.outcome if seal else None,
        "cost_usd_micros": seal.cost_usd_micros if seal else None,
        "attempt_count": seal.attempt_count if seal else None,
    }


def run_page(view: View, found: FoundRun, checkpoint: str, *, with_content: bool) -> dict[str, Any]:
    """Return everything about one run, with as much content as fits a page; the export holds all."""
    row = found.row
    leaves = [(index, json.loads(data)) for index, data in view.log.leaves_of(row.run_no)]
    in_run = [index for index, record in leaves if record["run_seq"] is not None]
    erased_index = next((index for index, record in leaves if record["type"] == "erased"), None)
    receipt = {"run_id": row.run_id, "leaf_indices": in_run, "checkpoint": checkpoint}
    return {
        "run": summary(row, found.seal),
        "records": [{"index": index, "record": record} for index, record in leaves],
        "contents": _parts(view, row, leaves, with_content=with_content),
        "receipt": receipt if found.seal is not None else None,
        "erased_under_leaf": erased_index,
    }


def _parts(
    view: View, row: RunRow, leaves: list[tuple[int, dict[str, Any]]], *, with_content: bool
) -> list[dict[str, Any]]:
    key = view.keys.get(row.key_no)
    parts: list[dict[str, Any]] = []
    room = _MAX_SHOWN_BYTES
    for index, record in leaves:
        for place, entry in enumerate(record["contents"]):
            facts = {"index": index, **{name: entry[name] for name in _SHOWN}}
            if key is None:
                parts.append({**facts, "erased": True})
            elif not with_content:
                parts.append({**facts, "withheld": True})
            elif entry["length"] > room:
                parts.append({**facts, "omitted": True})
            else:
                room -= entry["length"]
                plain = read_part(view, row, key, index * PARTS_PER_LEAF + place, entry["part_id"])
                parts.append({**facts, **_shown(entry["media_type"], plain)})
    return parts


def read_part(view: View, row: RunRow, key: bytes | None, content_no: int, part_id: str) -> bytes | None:
    """Return a part's plain bytes; None when its key is erased or it was never kept. Raises StoreError."""
    sealed = view.log.content(content_no) if key is not None else None
    if key is None or sealed is None:
        return None
    return contents.unseal(key, row.run_id, part_id, sealed)


def _shown(media_type: str, plain: bytes | None) -> dict[str, Any]:
    if plain is None:
        return {"not_kept": True}
    if media_type.startswith(_TEXT_TYPES):
        try:
            return {"text": plain.decode()}
        except UnicodeDecodeError:
            pass
    return {"data": base64.b64encode(plain).decode()}
