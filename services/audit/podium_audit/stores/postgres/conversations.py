"""Conversation items in PostgreSQL: sealed bytes here, each item's key in the key database.

An item is deleted once its key is: only then does its row go. PostgreSQL itself keeps dead rows until they
are vacuumed and its write-ahead log until it is recycled, of items as of keys.
"""

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString

import psycopg

from podium_audit.ports import ItemRow, StoreError
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.item_keys import PostgresItemKeys
from podium_core.domain.conversation import ItemRange

_BEHIND_IDS: Final = "~"

TABLES: Final[tuple[LiteralString, ...]] = (
    """CREATE TABLE items (
            version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            tenant_id text NOT NULL,
            kind text NOT NULL,
            item_id text COLLATE "C" NOT NULL,
            run_id text NOT NULL,
            expires_ms bigint NOT NULL,
            key_no bigint NOT NULL UNIQUE,
            replaced_key_no bigint NOT NULL,
            sealed bytea NOT NULL,
            UNIQUE (tenant_id, kind, item_id)
        )""",
    # Sealed bytes do not get shorter by packing them.
    "ALTER TABLE items ALTER COLUMN sealed SET STORAGE EXTERNAL",
    "CREATE INDEX items_by_expiry ON items (expires_ms) WHERE expires_ms > 0",
    "CREATE INDEX items_by_run ON items (run_id) WHERE run_id != ''",
)

_READ: Final = (
    "SELECT version, tenant_id, kind, item_id, run_id, expires_ms, key_no, sealed FROM items"
    " WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s"
)
_RANGE: Final = (
    f"{_READ} AND item_id > %(low)s AND item_id < %(high)s AND starts_with(item_id, %(prefix)s)"
    " AND (expires_ms = 0 OR expires_ms > %(now_ms)s) ORDER BY item_id"
)

_Found = tuple[int, ItemRow]


class PostgresConversations:
    """Used by one thread at a time. Every method raises StoreError."""

    def __init__(self, session: Session, keys: PostgresItemKeys) -> None:
        self._session = session
        self._keys = keys

    def open(self) -> None:
        """Get the keys ready; the items' table is made with the log's."""
        self._keys.open()

    def close(self) -> None:
        """Let go of the connections."""
        self._session.close()
        self._keys.close()

    def find(self, tenant_id: str, kind: str, item_id: str) -> _Found | None:
        """Return an item, expired or not, with its version."""
        values = {"tenant_id": tenant_id, "kind": kind, "item_id": item_id}
        found = self._read(f"{_READ} AND item_id = %(item_id)s", values)
        return found[0] if found else None

    def page(self, wanted: ItemRange, now_ms: int, limit: int) -> Sequence[_Found]:
        """Return the items of a range, in the order of their ids."""
        low, high = wanted.prefix, wanted.prefix + _BEHIND_IDS
        if wanted.after:
            low, high = (low, wanted.after) if wanted.is_descending else (wanted.after, high)
        values = {
            "tenant_id": wanted.tenant_id,
            "kind": wanted.kind.value,
            "prefix": wanted.prefix,
            "low": low,
            "high": high,
            "now_ms": now_ms,
            "limit": limit,
        }
        order = "DESC" if wanted.is_descending else "ASC"
        return self._read(f"{_RANGE} {order} LIMIT %(limit)s", values)

    def replace(self, row: ItemRow, over: int) -> int | None:
        """Store a row durably over the version `over`; return its new version, None if that is gone."""
        key_no = self._keys.add(row.wrapped_key)
        stored = self._insert(row, key_no, over)
        if stored is None:
            self._keys.delete([key_no])
            return None
        version, replaced_key_no = stored
        if replaced_key_no:
            self._keys.delete([replaced_key_no])
        if not self._keys.settle([key_no]):
            raise StoreError("storing an item took so long that its key was given up")
        return version

    def delete(self, version: int) -> bool:
        """Destroy an item's key, then its row; return whether it was there."""
        return bool(self._delete("version = %s", version))

    def delete_of_runs(self, runs: Sequence[tuple[str, str]]) -> int:
        """Delete every item of these (tenant_id, run_id), as thoroughly; return how many."""
        tenant_ids, run_ids = [tenant_id for tenant_id, _ in runs], [run_id for _, run_id in runs]
        return self._delete(
            "(tenant_id, run_id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))", tenant_ids, run_ids
        )

    def sweep(self, now_ms: int, limit: int) -> int:
        """Delete up to `limit` items that had expired by `now_ms`, as thoroughly; return how many."""
        self._settle_doubtful(limit)
        return self._delete(
            "version IN (SELECT version FROM items WHERE expires_ms > 0 AND expires_ms <= %s LIMIT %s)",
            now_ms,
            limit,
        )

    def _read(self, query: str, values: Mapping[str, object]) -> list[_Found]:
        """Return items with their keys. One whose key is destroyed is deleted, whatever came in between."""
        while True:
            with self._session.use() as connection:
                rows = connection.execute(query.encode(), values, binary=True).fetchall()
            keys = self._keys.get([row[6] for row in rows]) if rows else {}
            lost = [row[0] for row in rows if row[6] not in keys]
            if not lost:
                return [(row[0], ItemRow._make((*row[1:6], keys[row[6]], row[7]))) for row in rows]
            with self._session.use() as connection:
                connection.execute("DELETE FROM items WHERE version = ANY(%s)", (lost,))

    def _insert(self, row: ItemRow, key_no: int, over: int) -> tuple[int, int] | None:
        """Return the new version and the number of the key that is out of use with the old one, else 0."""
        made = None
        with self._session.use() as connection, connection.transaction():
            replaced_key_no = 0
            if over:
                query = "DELETE FROM items WHERE version = %s RETURNING key_no"
                gone = connection.execute(query, (over,)).fetchone()
                if gone is None:
                    return None
                replaced_key_no = gone[0]
            made = connection.execute(
                "INSERT INTO items"
                " (tenant_id, kind, item_id, run_id, expires_ms, key_no, replaced_key_no, sealed)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING version",
                (*row[:5], key_no, replaced_key_no, row.sealed),
            ).fetchone()
            if made is None:
                raise psycopg.Rollback
        return None if made is None else (int(made[0]), replaced_key_no)

    def _delete(self, where: str, *values: int | list[str]) -> int:
        with self._session.use() as connection:
            query = f"SELECT version, key_no FROM items WHERE {where}"  # noqa: S608 - constants
            rows = connection.execute(query.encode(), values).fetchall()
        if not rows:
            return 0
        count = self._keys.delete([key_no for _, key_no in rows])
        with self._session.use() as connection:
            versions = [version for version, _ in rows]
            connection.execute("DELETE FROM items WHERE version = ANY(%s)", (versions,))
        return count

    def _settle_doubtful(self, limit: int) -> None:
        """Finish what a crash left between the databases: settle keys in use, destroy the others."""
        doubtful = self._keys.doubtful(limit)
        if not doubtful:
            return
        with self._session.use() as connection:
            query = "SELECT key_no, replaced_key_no FROM items WHERE key_no = ANY(%s)"
            in_use = dict(connection.execute(query, (doubtful,)).fetchall())
        self._keys.delete([*in_use.values(), *(key_no for key_no in doubtful if key_no not in in_use)])
        self._keys.settle(list(in_use))
