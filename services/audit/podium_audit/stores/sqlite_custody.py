"""What SQLite keeps about the keeping of records: tables, queries, and how an erasure deletes content."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from podium_audit.rows.custody import ControlRow, ErasureRow, KeptRun, ReadRow

STATEMENTS = (
    """CREATE TABLE controls (
        tenant_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        item_id TEXT NOT NULL,
        stands INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (tenant_id, kind, item_id)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX controls_standing ON controls (tenant_id, kind, item_id) WHERE stands",
    """CREATE TABLE erasures (
        run_no INTEGER PRIMARY KEY REFERENCES runs (run_no),
        run_id TEXT NOT NULL,
        tenant_id TEXT NOT NULL,
        key_no INTEGER NOT NULL,
        begun_index INTEGER NOT NULL,
        erased_index INTEGER
    ) STRICT""",
    "CREATE INDEX erasures_pending ON erasures (begun_index) WHERE erased_index IS NULL",
    """CREATE TABLE reads (
        leaf_index INTEGER PRIMARY KEY REFERENCES leaves (leaf_index),
        tenant_id TEXT NOT NULL,
        time_us INTEGER NOT NULL,
        principal_id TEXT NOT NULL,
        action TEXT NOT NULL,
        run_id TEXT NOT NULL,
        with_content INTEGER NOT NULL,
        case_id TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX reads_of_tenant ON reads (tenant_id, leaf_index)",
)
SUBJECTS = """CREATE TABLE subjects (
        tenant_id TEXT NOT NULL,
        subject TEXT NOT NULL,
        run_no INTEGER NOT NULL REFERENCES runs (run_no),
        PRIMARY KEY (tenant_id, subject, run_no)
    ) STRICT, WITHOUT ROWID"""
FILL_READS = """INSERT INTO reads
    SELECT leaf_index, json_extract(record, '$.tenant_id'), json_extract(record, '$.time_us'),
        json_extract(record, '$.facts.principal_id'), json_extract(record, '$.facts.action'),
        json_extract(record, '$.run_id'), json_extract(record, '$.facts.with_content'), ''
    FROM (SELECT leaf_index, CAST(data AS TEXT) AS record FROM leaves)
    WHERE json_extract(record, '$.type') = 'read'"""
"""For a log that had reads before there was the table."""

TABLES = {
    "controls": ("INSERT OR REPLACE INTO controls", 5),
    "erasures": ("INSERT OR REPLACE INTO erasures", 6),
    "reads": ("INSERT INTO reads", 8),
    "subjects": ("INSERT INTO subjects", 3),
}

_NO_INDEX = 2**62
_DELETE_CONTENTS = """DELETE FROM contents WHERE content_no IN (
    SELECT contents.content_no FROM leaves JOIN contents
    ON contents.content_no >= leaves.leaf_index * 256 AND contents.content_no < leaves.leaf_index * 256 + 256
    WHERE leaves.run_no = ?)"""


def delete_contents(connection: sqlite3.Connection, rows: Iterable[ErasureRow]) -> None:
    """Delete what is stored of the runs whose erasure is finished."""
    for row in rows:
        if row.erased_index is not None:
            connection.execute(_DELETE_CONTENTS, (row.run_no,))


class SqliteCustodyReads:
    """The queries of `CustodyReader` over a connection that a subclass opens."""

    def _one(self, query: str, *values: object) -> Any:
        raise NotImplementedError

    def _all(self, query: str, *values: object) -> list[Any]:
        raise NotImplementedError

    def controls(self, kind: str, tenant_id: str) -> list[ControlRow]:
        """Return what stands of one kind for a tenant, by `item_id`."""
        rows = self._all(
            "SELECT tenant_id, kind, item_id, stands, body FROM controls"
            " WHERE tenant_id = ? AND kind = ? AND stands ORDER BY item_id",
            tenant_id,
            kind,
        )
        return [ControlRow(*row)._replace(stands=bool(row[3])) for row in rows]

    def pending_erasures(self, limit: int) -> list[ErasureRow]:
        """Return erasures of any tenant that have begun and are not finished, the oldest first."""
        query = "SELECT * FROM erasures WHERE erased_index IS NULL ORDER BY begun_index LIMIT ?"
        return [ErasureRow(*row) for row in self._all(query, limit)]

    def expired_runs(
        self, tenant_id: str, *, sealed_before_us: int, after_no: int, limit: int
    ) -> list[KeptRun]:
        """Return a tenant's runs that ended before then and whose erasure has not begun, by `run_no`."""
        rows = self._all(
            "SELECT run_no, runs.run_id FROM runs JOIN seals USING (run_no)"
            " WHERE runs.tenant_id = ? AND run_no > ? AND sealed_us < ?"
            " AND NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.run_no = runs.run_no)"
            " ORDER BY run_no LIMIT ?",
            tenant_id,
            after_no,
            sealed_before_us,
            limit,
        )
        return [KeptRun(*row) for row in rows]

    def runs_of_subject(self, tenant_id: str, subject: str, limit: int) -> list[KeptRun]:
        """Return runs for a person whose erasure has not begun, by `run_no`."""
        rows = self._all(
            "SELECT run_no, runs.run_id FROM subjects JOIN runs USING (run_no)"
            " WHERE subjects.tenant_id = ? AND subject = ?"
            " AND NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.run_no = runs.run_no)"
            " ORDER BY run_no LIMIT ?",
            tenant_id,
            subject,
            limit,
        )
        return [KeptRun(*row) for row in rows]

    def reads(self, tenant_id: str, *, before_index: int | None, limit: int) -> list[ReadRow]:
        """Return who read what of a tenant, newest first."""
        below = _NO_INDEX if before_index is None else before_index
        rows = self._all(
            "SELECT * FROM reads WHERE tenant_id = ? AND leaf_index < ? ORDER BY leaf_index DESC LIMIT ?",
            tenant_id,
            below,
            limit,
        )
        return [ReadRow(*row)._replace(with_content=bool(row[6])) for row in rows]

    def count_reads(self, tenant_id: str) -> int:
        """Return how many rows `reads` could show in all."""
        row = self._one("SELECT count(*) FROM reads WHERE tenant_id = ?", tenant_id)
        return int(row[0]) if row else 0
