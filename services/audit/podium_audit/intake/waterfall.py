"""The spans of one run as a waterfall: who called whom, when and for how long."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from podium_audit.rows.spans import SpanRow


def waterfall(rows: Sequence[SpanRow], run_id: str) -> list[dict[str, Any]]:
    """Return the spans that belong to a run, by start, parents named.

    A trace that a caller continues may hold several runs: of Podium's own spans only those count that name
    the run, lie under one that does, or above it. Spans of the tenant's own programs all count.
    """
    by_id = {row.span_id: row for row in rows}
    above: set[str] = set()
    for row in rows:
        if row.run_id == run_id:
            above.update(_ancestors(row, by_id))
    mine = [row for row in rows if row.tenant_id or row.span_id in above or _run_of(row, by_id) == run_id]
    return [_shown(row) for row in sorted(mine, key=lambda row: (row.started_ns, row.span_id))]


def _ancestors(row: SpanRow, by_id: Mapping[str, SpanRow]) -> list[str]:
    """Return the ids above a span; a ring of parents, which a hostile sender may make, is walked once."""
    found: list[str] = []
    parent = by_id.get(row.parent_span_id)
    while parent is not None and parent.span_id not in found and parent.span_id != row.span_id:
        found.append(parent.span_id)
        parent = by_id.get(parent.parent_span_id)
    return found


def _run_of(row: SpanRow, by_id: Mapping[str, SpanRow]) -> str:
    if row.run_id:
        return row.run_id
    return next((by_id[above].run_id for above in _ancestors(row, by_id) if by_id[above].run_id), "")


def _shown(row: SpanRow) -> dict[str, Any]:
    return {
        "trace_id": row.trace_id,
        "span_id": row.span_id,
        "parent_span_id": row.parent_span_id or None,
        "run_id": row.run_id or None,
        "service": row.service,
        "name": row.name,
        "start_us": row.started_ns // 1_000,
        "duration_us": (row.ended_ns - row.started_ns) // 1_000,
        "error": row.is_error,
        "attributes": json.loads(row.attributes_json),
    }
