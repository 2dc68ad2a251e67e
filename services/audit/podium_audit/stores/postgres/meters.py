"""Meters of limits that all replicas share: one row each, locked while its arithmetic is done.

What a replica grants is durable enough for a limit: the row is committed before the slice is given out, and
a crash of the database itself may forget the last moments (its commits here do not wait for the disk).
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final, LiteralString

from podium_audit.slices import Lease, Meter, Wish, meter_class, unlimited
from podium_audit.stores.postgres.connection import Connection, Session
from podium_core.domain.limits import LimitName

_NS_PER_US: Final = 1_000

TABLES: Final[tuple[LiteralString, ...]] = (
    """CREATE TABLE meters (
            tenant_id text NOT NULL,
            key_id text NOT NULL,
            kind text NOT NULL,
            metered_us bigint NOT NULL,
            state text NOT NULL,
            PRIMARY KEY (tenant_id, key_id, kind)
        ) WITH (fillfactor = 50)""",
)

_LOCKED: Final = """SELECT tenant_id, key_id, kind, metered_us, state
    FROM meters JOIN unnest(%s::text[], %s::text[], %s::text[]) AS asked (tenant_id, key_id, kind)
    USING (tenant_id, key_id, kind) ORDER BY tenant_id, key_id, kind FOR UPDATE OF meters"""
_MAKE: Final = """INSERT INTO meters SELECT *, 0, '' FROM unnest(%s::text[], %s::text[], %s::text[])
    ON CONFLICT DO NOTHING"""
_NOW: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_WRITE: Final = """UPDATE meters SET metered_us = %s, state = told.state
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS told (tenant_id, key_id, kind, state)
    WHERE (meters.tenant_id, meters.key_id, meters.kind) = (told.tenant_id, told.key_id, told.kind)"""

Limits = Callable[[LimitName], int | None]


class PostgresMeters:
    """Used by one thread. Times are the database's, so replicas need not agree on theirs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self) -> None:
        """Connect. The table is made with the log's."""
        with self._session.use():
            pass

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def lease(self, holder_id: str, wishes: Sequence[Wish], limit_of: Limits, valid_ns: int) -> list[Lease]:
        """Book what the holder used and return its new slices. Raises StoreError; then nothing is booked."""
        limits = {name: limit for name, _ in wishes if (limit := limit_of(name)) is not None}
        if not limits:
            return [unlimited(wanted) for _, wanted in wishes]
        with self._session.use() as connection, connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = off")
            meters, now_us = self._locked(connection, limits)
            leases: list[Lease] = []
            for name, wanted in wishes:
                if (limit := limits.get(name)) is None:
                    leases.append(unlimited(wanted))
                    continue
                granted = meters[name].lease(holder_id, wanted, limit, now_us * _NS_PER_US, valid_ns)
                leases.append((limit, granted))
            states = [json.dumps(meter.state(), separators=(",", ":")) for meter in meters.values()]
            connection.execute(_WRITE, (now_us, *_columns(meters), states))
        return leases

    @staticmethod
    def _locked(connection: Connection, names: Iterable[LimitName]) -> tuple[dict[LimitName, Meter], int]:
        """Lock the meters, always in the same order; return them as they stand, and the time."""
        by_place = {_place(name): name for name in sorted(names, key=_place)}
        columns = _columns(by_place.values())
        rows = connection.execute(_LOCKED, columns).fetchall()
        if len(rows) < len(by_place):
            connection.execute(_MAKE, columns)
            rows = connection.execute(_LOCKED, columns).fetchall()
        ((now_us,),) = connection.execute(_NOW).fetchall()
        meters: dict[LimitName, Meter] = {}
        for *place, metered_us, state in rows:
            name = by_place[tuple(place)]
            meter = meter_class(name)
            # Where the database's clock was set back, everything moves with it.
            shift_ns = min(0, now_us - metered_us) * _NS_PER_US
            meters[name] = meter.of(json.loads(state), shift_ns) if state else meter()
        return meters, now_us


def _place(name: LimitName) -> tuple[str, ...]:
    return name.tenant_id, name.key_id, name.kind.value


def _columns(names: Iterable[LimitName]) -> tuple[list[str], ...]:
    """Return the places of these limits as three columns."""
    return tuple(map(list, zip(*map(_place, names), strict=True)))
