"""Writes a batch to PostgreSQL: one statement per table, with an array per column."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, LiteralString

from podium_audit.ports import (
    USE_KEY_FIELDS,
    Batch,
    ContentRow,
    GradeTallyRow,
    StoreError,
    UseRow,
)
from podium_audit.records.commands import HISTORY_EVENTS
from podium_audit.records.shelves import shelf_of
from podium_audit.rows.custody import ErasureRow
from podium_audit.stores.postgres.columns import Column
from podium_audit.stores.postgres.connection import Connection
from podium_audit.stores.postgres.log_schema import MAX_LEAVES_PER_EVENT

_CHUNK_BYTES: Final = 256 * 1024
_KEY, _SUMS = UseRow._fields[:USE_KEY_FIELDS], UseRow._fields[USE_KEY_FIELDS:]

_BIGINT, _INTEGER, _TEXT, _BYTES, _BOOLEAN = "bigint", "integer", "text", "bytea", "boolean"
_TABLES: Final[dict[str, tuple[str, ...]]] = {
    "runs": (_BIGINT, *[_TEXT] * 5, *[_BIGINT] * 4, _INTEGER),
    "leaves": (_INTEGER, _BIGINT, _BIGINT, _TEXT, _BYTES),
    "events": (_TEXT, _BYTES, _BIGINT, _INTEGER, _INTEGER),
    "contents": (_INTEGER, _BIGINT, _INTEGER, _TEXT, _BYTES),
    "open_runs": (_BIGINT,),
    "history": (_BIGINT, _BYTES),
    "subjects": (_TEXT, _TEXT, _BIGINT),
    "reads": (_BIGINT, _TEXT, _BIGINT, _TEXT, _TEXT, _TEXT, _BOOLEAN, _TEXT),
    "run_facets": (_TEXT, _TEXT, _TEXT, _BIGINT),
}
"""What only ever grows, in an order that foreign keys allow, with the types of its columns."""
_REPLACED: Final = {
    "tiles": (("level", "tile_index"), ("hashes",), (_INTEGER, _BIGINT, _BYTES)),
    "leaf_counts": (("tenant_id",), ("leaf_count",), (_TEXT, _BIGINT)),
    "settled": (("tenant_id", "month"), ("usd_micros",), (_TEXT, _TEXT, _BIGINT)),
    "stops": (("tenant_id", "worker_id"), ("since_us",), (_TEXT, _TEXT, _BIGINT)),
    "grade_tallies": (
        GradeTallyRow._fields[:3],
        GradeTallyRow._fields[3:],
        (_TEXT, _TEXT, *[_BIGINT] * 4),
    ),
    "controls": (
        ("tenant_id", "kind", "item_id"),
        ("stands", "body"),
        (_TEXT, _TEXT, _TEXT, _BOOLEAN, _TEXT),
    ),
    "erasures": (
        ("run_no",),
        ErasureRow._fields[1:],
        (_BIGINT, _TEXT, _TEXT, *[_BIGINT] * 3),
    ),
}
"""What a batch replaces: key columns, other columns, types."""


def _unnest(types: Sequence[str]) -> str:
    return f"unnest({', '.join(f'%s::{name}[]' for name in types)})"


def _upsert(table: str, key: Sequence[str], sets: str, types: Sequence[str]) -> str:
    return (
        f"INSERT INTO {table} SELECT * FROM {_unnest(types)}"  # noqa: S608 - constants
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"
    )


_INSERTS: Final = {
    table: f"INSERT INTO {table} SELECT * FROM {_unnest(types)}"  # noqa: S608 - constants
    for table, types in _TABLES.items()
}
_UPSERTS: Final = {
    table: _upsert(table, key, ", ".join(f"{name} = excluded.{name}" for name in rest), types)
    for table, (key, rest, types) in _REPLACED.items()
}
_USE_TYPES: Final = (*[_TEXT] * len(_KEY), *[_BIGINT] * len(_SUMS))
_ADD_USES: Final = _upsert(
    "uses",
    _KEY,
    ", ".join(f"{name} = uses.{name} + excluded.{name}" for name in _SUMS),
    _USE_TYPES,
)
_SEAL_TYPES: Final = (_BIGINT, _BIGINT, _TEXT, _BIGINT, _BIGINT)
_SEALS: Final = (
    "INSERT INTO seals SELECT u.*, runs.tenant_id, runs.shelf"  # noqa: S608 - constants
    f" FROM {_unnest(_SEAL_TYPES)}"
    " AS u (run_no, sealed_us, outcome, cost_usd_micros, attempt_count) JOIN runs USING (run_no)"
)


_DELETE_CONTENTS: Final[LiteralString] = """DELETE FROM contents USING leaves
    WHERE leaves.run_no = ANY (%(run_nos)s::bigint[])
    AND leaves.shelf IN (SELECT shelf FROM runs WHERE run_no = ANY (%(run_nos)s::bigint[]))
    AND contents.shelf = leaves.shelf AND contents.content_no >= leaves.leaf_index * 256
    AND contents.content_no < leaves.leaf_index * 256 + 256"""


def write(connection: Connection, batch: Batch) -> None:
    """Send every row of a batch, one statement per table. Raises StoreError."""
    rows_of: dict[str, Sequence[tuple[Any, ...]]] = {
        "runs": [(*row, shelf_of(row.opened_us)) for row in batch.runs],
        "leaves": [(row.shelf, row.leaf_index, row.run_no, row.tenant_id, row.data) for row in batch.leaves],
        "events": _with_shelves(batch),
        "contents": [chunk for row in batch.contents for chunk in _chunks(row)],
        "open_runs": [(row.run_no,) for row in batch.runs],
        "history": _history(batch),
        "reads": batch.reads,
        "subjects": batch.subjects,
        "run_facets": batch.facets,
    }
    for table, rows in rows_of.items():
        _execute(connection, _INSERTS[table], _TABLES[table], rows)
    for table, upsert in _UPSERTS.items():
        _execute(connection, upsert, _REPLACED[table][2], getattr(batch, table))
    _execute(connection, _SEALS, _SEAL_TYPES, batch.seals)
    if batch.seals:
        sealed = [row.run_no for row in batch.seals]
        connection.execute("DELETE FROM open_runs WHERE run_no = ANY (%s::bigint[])", (sealed,))
    _execute(connection, _ADD_USES, _USE_TYPES, _summed(batch.uses))
    if erased := [row.run_no for row in batch.erasures if row.erased_index is not None]:
        connection.execute(_DELETE_CONTENTS, {"run_nos": erased})
    if batch.checkpoint is not None:
        connection.execute("INSERT INTO checkpoints VALUES (%s, %s)", batch.checkpoint)


def _execute(
    connection: Connection, statement: str, types: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Run a statement over rows that go as one array per column."""
    if rows:
        columns = [Column(name, values) for name, values in zip(types, zip(*rows, strict=True), strict=True)]
        connection.execute(statement, columns)


def _with_shelves(batch: Batch) -> list[tuple[Any, ...]]:
    first = batch.leaves[0].leaf_index if batch.leaves else 0
    if any(row.leaf_count > MAX_LEAVES_PER_EVENT for row in batch.events):
        raise StoreError(f"an event may make {MAX_LEAVES_PER_EVENT} leaves at most")
    return [(*row, batch.leaves[row.first_index - first].shelf) for row in batch.events]


def _history(batch: Batch) -> list[tuple[Any, ...]]:
    first = batch.leaves[0].leaf_index if batch.leaves else 0
    found = [row.first_index for row in batch.events if row.event_id.startswith(HISTORY_EVENTS)]
    return [(index, batch.leaves[index - first].data) for index in found]


def _chunks(row: ContentRow) -> Iterator[tuple[Any, ...]]:
    """Split large content, so that no one value of the database is large."""
    for number, at in enumerate(range(0, max(1, len(row.sealed)), _CHUNK_BYTES)):
        yield row.shelf, row.content_no, number, row.tenant_id, row.sealed[at : at + _CHUNK_BYTES]


def _summed(rows: Sequence[UseRow]) -> list[tuple[Any, ...]]:
    """Add up rows of one key: a statement may touch a stored row once."""
    sums: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        total = sums.setdefault(row[:USE_KEY_FIELDS], [0] * len(_SUMS))
        for place, amount in enumerate(row[USE_KEY_FIELDS:]):
            total[place] += int(amount)
    return [(*key, *amounts) for key, amounts in sums.items()]
