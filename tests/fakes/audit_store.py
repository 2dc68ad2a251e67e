"""The audit side's ports in memory: log store, run keys, signer, metrics."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from podium_audit.ports import (
    USE_KEY_FIELDS,
    Batch,
    CheckpointRow,
    EventRow,
    GradeTallyRow,
    Head,
    LeafRow,
    RunRow,
    SealRow,
    StopRow,
    StoreBusyError,
    StoreError,
    UseRow,
)
from podium_audit.records.commands import HISTORY_EVENTS
from podium_audit.rows.custody import ControlRow, ErasureRow, KeptRun, ReadRow, SubjectRow
from podium_audit.rows.run_search import FacetRow, RunSearch


@dataclass(slots=True)
class FakeLogStore:
    """Keeps what was committed. `failures` makes that many commits (or probes) fail."""

    runs: dict[str, RunRow] = field(default_factory=dict)
    seals: dict[int, SealRow] = field(default_factory=dict)
    leaf_rows: list[LeafRow] = field(default_factory=list)
    events_: dict[str, EventRow] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    tiles: dict[tuple[int, int], bytes] = field(default_factory=dict)
    checkpoints: list[CheckpointRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    money: dict[tuple[str, str], int] = field(default_factory=dict)
    stop_rows: dict[tuple[str, str], StopRow] = field(default_factory=dict)
    tally_rows: dict[tuple[str, str, int], GradeTallyRow] = field(default_factory=dict)
    uses_: dict[tuple[str, ...], UseRow] = field(default_factory=dict)
    control_rows: dict[tuple[str, str, str], ControlRow] = field(default_factory=dict)
    erasure_rows: dict[int, ErasureRow] = field(default_factory=dict)
    read_rows: list[ReadRow] = field(default_factory=list)
    subject_rows: list[SubjectRow] = field(default_factory=list)
    facets: set[FacetRow] = field(default_factory=set)
    failures: int = 0
    commits: int = 0
    is_shared: bool = False
    epoch: int = 0
    held_by_another: bool = False

    def open(self) -> None:
        """Nothing to connect to."""

    def close(self) -> None:
        """Nothing to let go of."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything happens in one thread."""
        return nullcontext()

    def head(self) -> Head:
        """Return where the log stands."""
        return Head(len(self.leaf_rows), self.epoch)

    def begin(self) -> Head:
        """Return where the log stands, unless the test says that another writer holds it."""
        if self.held_by_another:
            raise StoreBusyError("another process holds the log")
        return self.head()

    def abandon(self) -> None:
        """Nothing is held."""

    def rows(self, begin: int, end: int) -> list[LeafRow]:
        """Return leaves by index."""
        return [LeafRow(*row[:3]) for row in self.leaf_rows[begin:end]]

    def runs_by_no(self, run_nos: Sequence[int]) -> dict[int, RunRow]:
        """Return runs by number."""
        return {row.run_no: row for row in self.runs.values() if row.run_no in run_nos}

    def commit(self, batch: Batch) -> None:
        """Take the batch over whole, or fail and take nothing."""
        self.probe()
        if batch.leaves and batch.leaves[0].leaf_index != len(self.leaf_rows):
            raise StoreError("these leaves do not follow the stored ones")
        if any(row.event_id in self.events_ for row in batch.events):
            raise StoreError("an event is stored already")
        self.commits += 1
        self.runs.update((row.run_id, row) for row in batch.runs)
        self.leaf_rows.extend(batch.leaves)
        self.events_.update((row.event_id, row) for row in batch.events)
        self.contents.update((row.content_no, row.sealed) for row in batch.contents)
        self.seals.update((row.run_no, row) for row in batch.seals)
        self.tiles.update(((row.level, row.tile_index), row.hashes) for row in batch.tiles)
        self.facets.update(batch.facets)
        self.counts.update(batch.leaf_counts)
        self.money.update(((tenant, month), amount) for tenant, month, amount in batch.settled)
        self.stop_rows.update(((row.tenant_id, row.worker_id), row) for row in batch.stops)
        self.tally_rows.update((row[:3], row) for row in batch.grade_tallies)
        for row in batch.uses:
            place = tuple(str(part) for part in row[:USE_KEY_FIELDS])
            before = self.uses_.get(place)
            self.uses_[place] = row if before is None else _added(before, row)
        self.control_rows.update((row[:3], row) for row in batch.controls)
        self.read_rows.extend(batch.reads)
        self.subject_rows.extend(batch.subjects)
        for erasure in batch.erasures:
            self._erase(erasure)
        if batch.checkpoint is not None:
            self.checkpoints.append(batch.checkpoint)

    def probe(self) -> None:
        """Fail while failures are left."""
        if self.failures:
            self.failures -= 1
            raise StoreError("no room left, as the test wanted")

    def checkpoint(self) -> CheckpointRow | None:
        """Return the newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def checkpoint_over(self, index: int) -> CheckpointRow | None:
        """Return the oldest checkpoint over a leaf."""
        return next((row for row in self.checkpoints if row.size > index), None)

    def tile(self, level: int, index: int) -> bytes:
        """Return a tile's hashes."""
        return self.tiles.get((level, index), b"")

    def leaves(self, begin: int, end: int) -> list[bytes]:
        """Return leaves by index."""
        return [row.data for row in self.leaf_rows[begin:end]]

    def history(self) -> list[tuple[int, bytes]]:
        """Return leaves about the log itself."""
        firsts = [row.first_index for key, row in self.events_.items() if key.startswith(HISTORY_EVENTS)]
        return [(index, self.leaf_rows[index].data) for index in sorted(firsts)]

    def run(self, run_id: str) -> tuple[RunRow, SealRow | None] | None:
        """Return a run with its end."""
        row = self.runs.get(run_id)
        return (row, self.seals.get(row.run_no)) if row is not None else None

    def find_runs(
        self, search: RunSearch, *, before_no: int | None, limit: int
    ) -> list[tuple[RunRow, SealRow | None]]:
        """Return the runs that fit, newest first."""
        rows = [row for row in self._fitting(search) if before_no is None or row.run_no < before_no]
        newest = sorted(rows, key=lambda row: -row.run_no)[:limit]
        return [(row, self.seals.get(row.run_no)) for row in newest]

    def count_runs(self, search: RunSearch) -> int:
        """Count runs."""
        return len(self._fitting(search))

    def leaves_of(self, run_no: int, *, below: int | None = None) -> list[tuple[int, bytes]]:
        """Return a run's leaves."""
        return [
            (row.leaf_index, row.data)
            for row in self.leaf_rows
            if row.run_no == run_no and (below is None or row.leaf_index < below)
        ]

    def tenant_leaves(self, tenant_id: str, begin: int, end: int) -> list[tuple[int, bytes]]:
        """Return a tenant's leaves."""
        return [(row.leaf_index, row.data) for row in self.leaf_rows[begin:end] if row.tenant_id == tenant_id]

    def content(self, content_no: int) -> bytes | None:
        """Return sealed content."""
        return self.contents.get(content_no)

    def uses(
        self, tenant_id: str, principal_id: str | None, first_day: str, last_day: str, *, limit: int
    ) -> list[UseRow]:
        """Return sums by day."""
        rows = [row for _, row in sorted(self.uses_.items())]
        return [
            row
            for row in rows
            if row.tenant_id == tenant_id
            and principal_id in (None, row.principal_id)
            and first_day <= row.day <= last_day
        ][:limit]

    def events(self, event_ids: Sequence[str]) -> dict[str, EventRow]:
        """Return known events."""
        return {event_id: self.events_[event_id] for event_id in event_ids if event_id in self.events_}

    def known_runs(self, run_ids: Sequence[str]) -> set[str]:
        """Return which runs exist."""
        return {run_id for run_id in run_ids if run_id in self.runs}

    def open_runs(self) -> list[RunRow]:
        """Return runs without an end."""
        return [row for row in self.runs.values() if row.run_no not in self.seals]

    def last_key_no(self) -> int:
        """Return the highest key number in use."""
        return max((row.key_no for row in self.runs.values()), default=0)

    def next_run_no(self) -> int:
        """Return the next run's number."""
        return max((row.run_no for row in self.runs.values()), default=0) + 1

    def leaf_counts(self) -> dict[str, int]:
        """Return leaves per tenant."""
        return dict(self.counts)

    def settled(self) -> dict[tuple[str, str], int]:
        """Return money per tenant and month."""
        return dict(self.money)

    def settled_by_key(self) -> dict[tuple[str, str, str], int]:
        """Return money per tenant, key and month."""
        sums: dict[tuple[str, str, str], int] = {}
        for row in self.uses_.values():
            if row.principal_id and row.cost_usd_micros:
                place = (row.tenant_id, row.principal_id, row.day[:7])
                sums[place] = sums.get(place, 0) + row.cost_usd_micros
        return sums

    def stops(self) -> list[StopRow]:
        """Return the stops that stand."""
        return [row for row in self.stop_rows.values() if row.since_us]

    def grade_tallies(self) -> list[GradeTallyRow]:
        """Return what grades come to."""
        return list(self.tally_rows.values())

    def controls(self, kind: str, tenant_id: str) -> list[ControlRow]:
        """Return what stands."""
        rows = [row for _, row in sorted(self.control_rows.items())]
        return [row for row in rows if row[:2] == (tenant_id, kind) and row.stands]

    def pending_erasures(self, limit: int) -> list[ErasureRow]:
        """Return erasures to finish."""
        rows = [row for row in self.erasure_rows.values() if row.erased_index is None]
        return sorted(rows, key=lambda row: row.begun_index)[:limit]

    def expired_runs(
        self, tenant_id: str, *, sealed_before_us: int, after_no: int, limit: int
    ) -> list[KeptRun]:
        """Return runs that ended before then and are not erased."""
        rows = [
            KeptRun(row.run_no, row.run_id)
            for row in self.runs.values()
            if row.tenant_id == tenant_id
            and row.run_no > after_no
            and row.run_no in self.seals
            and self.seals[row.run_no].sealed_us < sealed_before_us
            and row.run_no not in self.erasure_rows
        ]
        return sorted(rows)[:limit]

    def runs_of_subject(self, tenant_id: str, subject: str, limit: int) -> list[KeptRun]:
        """Return runs for a person that are not erased."""
        wanted = {row.run_no for row in self.subject_rows if row[:2] == (tenant_id, subject)}
        wanted -= self.erasure_rows.keys()
        return sorted(KeptRun(row.run_no, row.run_id) for row in self.runs.values() if row.run_no in wanted)[
            :limit
        ]

    def reads(self, tenant_id: str, *, before_index: int | None, limit: int) -> list[ReadRow]:
        """Return reads, newest first."""
        rows = [
            row
            for row in reversed(self.read_rows)
            if row.tenant_id == tenant_id and (before_index is None or row.leaf_index < before_index)
        ]
        return rows[:limit]

    def count_reads(self, tenant_id: str) -> int:
        """Count reads."""
        return sum(row.tenant_id == tenant_id for row in self.read_rows)

    def _erase(self, erasure: ErasureRow) -> None:
        self.erasure_rows[erasure.run_no] = erasure
        if erasure.erased_index is not None:
            leaves = {row.leaf_index for row in self.leaf_rows if row.run_no == erasure.run_no}
            self.contents = {no: data for no, data in self.contents.items() if no // 256 not in leaves}

    def _fitting(self, search: RunSearch) -> list[RunRow]:
        return [row for row in self.runs.values() if self._fits(search, row, self.seals.get(row.run_no))]

    def _fits(self, search: RunSearch, row: RunRow, seal: SealRow | None) -> bool:
        cost = seal.cost_usd_micros if seal is not None else None
        least, most = search.least_cost_usd_micros, search.most_cost_usd_micros
        return (
            row.tenant_id == search.tenant_id
            and search.principal_id in (None, row.principal_id)
            and search.kind in (None, row.kind)
            and (search.opened_from_us is None or row.opened_us >= search.opened_from_us)
            and (search.opened_before_us is None or row.opened_us < search.opened_before_us)
            and (least is None or (cost is not None and cost >= least))
            and (most is None or (cost is not None and cost <= most))
            and search.is_open in (None, seal is None)
            and all(
                FacetRow(row.tenant_id, facet, value, row.run_no) in self.facets
                for facet, value in search.facets
            )
        )


def _added(row: UseRow, more: UseRow) -> UseRow:
    names = UseRow._fields[USE_KEY_FIELDS:]
    return row._replace(**{name: getattr(row, name) + getattr(more, name) for name in names})


@dataclass(slots=True)
class FakeRunKeys:
    """Predictable keys."""

    keys: dict[int, bytes] = field(default_factory=dict)

    def open(self, last_used: int) -> None:
        """Nothing to connect to."""

    def take(self) -> tuple[int, bytes]:
        """Return the next key."""
        key_no = len(self.keys) + 1
        self.keys[key_no] = key_no.to_bytes(32)
        return key_no, self.keys[key_no]

    def get(self, key_no: int) -> bytes | None:
        """Return a key that is not erased."""
        return self.keys.get(key_no) or None

    def erase(self, key_nos: Sequence[int]) -> None:
        """Erase keys; their numbers stay used."""
        self.keys.update(dict.fromkeys(key_nos, b""))

    def close(self) -> None:
        """Nothing to let go of."""


class FakeSigner:
    """Signs with a key that every test knows."""

    def __init__(self, seed: bytes = bytes(32)) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public_key(self) -> bytes:
        """The public key's 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the signature."""
        return self._key.sign(data)


@dataclass(slots=True)
class FakeMetrics:
    """Counts what it hears."""

    leaves: list[int] = field(default_factory=list)
    refusals: int = 0

    def committed(self, *, leaves: int, seconds: float) -> None:
        """Keep the size of each commit."""
        assert seconds >= 0
        self.leaves.append(leaves)

    def refused(self) -> None:
        """Count."""
        self.refusals += 1
