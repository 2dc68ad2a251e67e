"""The log's state in memory: the tree's end, tenants' books, runs, and the batch that is being made."""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from podium_audit.ports import (
    Batch,
    CheckpointRow,
    ContentRow,
    EventRow,
    GradeTallyRow,
    LeafRow,
    LogStore,
    RunKeys,
    RunRow,
    SealRow,
    StopRow,
    StoreError,
)
from podium_audit.records import event_digests
from podium_audit.records.commands import Event
from podium_audit.records.facts import FORMAT_VERSION, Draft
from podium_audit.records.parts import PartReader
from podium_audit.records.run_state import (
    CLEARED_NOTE,
    GRADE_NOTE,
    PARTS_PER_LEAF,
    STOP_NOTE,
    Movement,
    RunState,
)
from podium_audit.records.shelves import shelf_of
from podium_audit.rows.custody import ControlRow, ErasureRow
from podium_audit.rules import custody_index, grades, stops
from podium_audit.rules.money import TenantBook
from podium_audit.rules.uses import UseBook
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_audit.tree.tiles import TileNodes, load_tail
from podium_core.domain import merkle
from podium_core.domain.record import canonical

_SEALED_KEPT = 64
_OFTEN_SENT = frozenset({"opened", "content"})
_READ_AT_ONCE = 1_024


class LogState:
    """State as of the last commit plus the running batch. Made from the store, thrown away on failure."""

    def __init__(
        self,
        store: LogStore,
        keys: RunKeys,
        signer: CheckpointSigner,
        parts: PartReader,
        keeps_content: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._keys = keys
        self._signer = signer
        self._parts = parts
        self._keeps_content = keeps_content
        self.epoch = store.head().epoch
        checkpoint = store.checkpoint()
        self._tail = load_tail(store, checkpoint.size if checkpoint else 0)
        if checkpoint is not None:
            check_note(signer, checkpoint, self._tail.root)
        self._committed_size = self._tail.size
        self.newest_note = checkpoint.note if checkpoint is not None else ""
        self._sealed_runs: OrderedDict[str, RunState] = OrderedDict()
        self._bare: set[str] = set()
        self.open_runs = {row.run_id: self._load(row) for row in store.open_runs()}
        self.book = TenantBook(
            store.leaf_counts(), store.settled(), store.settled_by_key(), self.open_runs.values()
        )
        self.stops = stops.standing(store.stops())
        self.grade_tallies = grades.by_key(store.grade_tallies())
        self.next_run_no = store.next_run_no()
        self._batch = Batch()
        self._uses = UseBook()
        self._events: dict[str, EventRow] = {}
        self._looked_up: dict[str, EventRow | None] = {}
        self._new_run_ids: set[str] = set()
        self.just_sealed: list[str] = []
        self.has_new_stops = True

    @property
    def size(self) -> int:
        """How many leaves the log has, with those of the running batch."""
        return self._tail.size

    @property
    def committed_size(self) -> int:
        """How many leaves are durable."""
        return self._committed_size

    def root_at(self, size: int) -> bytes:
        """Return the root over the first `size` stored leaves. Raises StoreError."""
        nodes = TileNodes(self._store)
        peaks = [nodes(level, index) for level, index in merkle.subtrees(0, size)]
        return merkle.fold(peaks) if peaks else merkle.EMPTY_ROOT

    def find_run(self, run_id: str) -> RunState | None:
        """Return a run, open or sealed; None when there is none."""
        run = self.open_runs.get(run_id) or self._sealed_runs.get(run_id)
        if run is not None and run_id in self._bare:
            self._complete(run)
        if run is not None or run_id in self._new_run_ids:
            return run
        if (found := self._store.run(run_id)) is not None:
            run = self._load(found[0])
            self._keep_sealed(run)
        return run

    def prefetch(self, event_ids: Sequence[str], new_run_ids: Sequence[str]) -> None:
        """Ask the store at once what the coming batch will ask for one by one. Raises StoreError."""
        self._looked_up = dict.fromkeys(event_ids, None) | self._store.events(event_ids)
        self._new_run_ids = set(new_run_ids) - self._store.known_runs(new_run_ids)

    def event(self, event_id: str) -> EventRow | None:
        """Return what an event id made, in the running batch or before."""
        staged = self._events.get(event_id)
        if staged is not None:
            return staged
        if event_id not in self._looked_up:
            self._looked_up.update(self._store.events([event_id]))
        return self._looked_up.get(event_id)

    def stage(
        self,
        event: Event,
        run: RunState | None,
        drafts: Sequence[Draft],
        now_us: int,
        *,
        tenant_id: str = "",
    ) -> tuple[int, ...]:
        """Put records into the running batch; return their leaf indices. Without a run name the tenant.

        Raises PodiumError if one cannot be encoded; then nothing is staged.
        """
        tenant_id = run.row.tenant_id if run is not None else tenant_id
        records = self._records(event, run, tenant_id, drafts, now_us)
        encoded = [canonical(record) for record in records]
        batch = self._batch
        first = self._tail.size
        run_no = run.row.run_no if run is not None else None
        shelf = shelf_of(run.row.opened_us if run is not None else now_us)
        if run is not None and not run.leaf_indices:
            batch.runs.append(run.row)
            self.next_run_no = run.row.run_no + 1
            self.open_runs[run.row.run_id] = run
        for draft, record, data in zip(drafts, records, encoded, strict=True):
            index = self._tail.append(data)
            tenant_id = record["tenant_id"]
            batch.leaves.append(LeafRow(index, run_no, data, tenant_id, shelf))
            for place, part in enumerate(draft.parts):
                row = ContentRow(index * PARTS_PER_LEAF + place, part.sealed, tenant_id, shelf)
                if run is None or run.keeps_content:
                    batch.contents.append(row)
                    self._parts.stage(row, part.part.data, keep=draft.type in _OFTEN_SENT)
                else:
                    self._parts.hold(run, row, part.part.data)
            custody_index.add(batch, index, run_no, record)
            self.book.count_leaf(tenant_id)
            if run is not None:
                self._evolve(run, index, record)
        row_of_event = EventRow(event.event_id, event_digests.of(run, event), first, len(drafts))
        batch.events.append(row_of_event)
        self._events[event.event_id] = row_of_event
        return tuple(range(first, self._tail.size))

    def set_stop(self, row: StopRow) -> None:
        """Put a stop, or its end, into the running batch, beside its record."""
        self._batch.stops.append(row)
        self.stops = stops.changed(self.stops, row)
        self.has_new_stops = True

    def controls(self, kind: str, tenant_id: str) -> list[ControlRow]:
        """Return what stands of one kind for a tenant, the running batch included. Raises StoreError."""
        rows = {row.item_id: row for row in self._store.controls(kind, tenant_id)}
        mine = [row for row in self._batch.controls if (row.kind, row.tenant_id) == (kind, tenant_id)]
        rows.update((row.item_id, row) for row in mine)
        return [row for row in rows.values() if row.stands]

    def set_control(self, row: ControlRow) -> None:
        """Put a decision into the running batch, beside its record."""
        kept = [other for other in self._batch.controls if other[:3] != row[:3]]
        self._batch.controls = [*kept, row]

    def set_erasure(self, run: RunState) -> None:
        """Put how far a run's erasure is into the running batch, beside its record."""
        if run.erasure_index is not None:
            kept = [other for other in self._batch.erasures if other.run_no != run.row.run_no]
            of = run.row
            row = ErasureRow(
                of.run_no, of.run_id, of.tenant_id, of.key_no, run.erasure_index, run.erased_index
            )
            self._batch.erasures = [*kept, row]

    def count_grade(self, run: RunState, before_ppm: int | None, score_ppm: int) -> None:
        """Put a run's newest grade into the count, in place of the one it had."""
        tally = self._tally(run, before_ppm, score_ppm)
        if tally is not None:
            self._batch.grade_tallies.append(tally)

    def catch_up(self, size: int) -> None:
        """Take in the leaves that others committed, up to `size`; between batches only.

        Raises StoreError; then this state is no longer what the store holds.
        """
        for begin in range(self._tail.size, size, _READ_AT_ONCE):
            end = min(begin + _READ_AT_ONCE, size)
            rows = self._store.rows(begin, end)
            if len(rows) != end - begin:
                raise StoreError("leaves of the log are missing")
            records = [json.loads(row.data) for row in rows]
            self._open_others(rows, records)
            for row, record in zip(rows, records, strict=True):
                self._tail.append(row.data)
                self.book.count_leaf(record["tenant_id"])
                self._take_in(row, record)
        self._tail.changed_tiles()
        self.book.take_changes()
        checkpoint = self._store.checkpoint_over(size - 1)
        if checkpoint is None:
            raise StoreError("the newest leaves have no checkpoint")
        check_note(self._signer, checkpoint, self._tail.root)
        self.newest_note = checkpoint.note
        self._committed_size = size
        self._trim()

    def commit(self) -> str:
        """Make the running batch durable; return the checkpoint over it, empty if there was nothing to do.

        Raises StoreError; then this state is no longer what the store holds.
        """
        batch = self._batch
        if not batch.leaves:
            return ""
        note = self._signer.sign(self._tail.size, self._tail.root)
        batch.tiles = self._tail.changed_tiles()
        batch.leaf_counts, batch.settled = self.book.take_changes()
        batch.uses = self._uses.take_changes()
        batch.checkpoint = CheckpointRow(self._tail.size, note)
        self._store.commit(batch)
        self._parts.committed()
        self._committed_size = self._tail.size
        self.newest_note = note
        self._batch = Batch()
        self._events.clear()
        self._looked_up.clear()
        self._new_run_ids.clear()
        self._trim()
        return note

    def _open_others(self, rows: Sequence[LeafRow], records: Sequence[dict[str, Any]]) -> None:
        """Begin to keep the runs that these records of others open."""
        opened = [
            row.run_no
            for row, record in zip(rows, records, strict=True)
            if record["type"] == "opened" and row.run_no is not None
        ]
        for run_no, row in sorted(self._store.runs_by_no(opened).items()):
            self.open_runs[row.run_id] = RunState(row, None)
            self._bare.add(row.run_id)
            self.next_run_no = run_no + 1

    def _take_in(self, row: LeafRow, record: dict[str, Any]) -> None:
        """Fold in one record that another process wrote."""
        facts = record["facts"]
        if row.run_no is None:
            if record["type"] == "note" and facts["kind"] in (STOP_NOTE, CLEARED_NOTE):
                since_us = record["time_us"] if facts["kind"] == STOP_NOTE else 0
                stop = StopRow(facts["facts"]["tenant_id"], facts["facts"]["worker_id"], since_us)
                self.stops = stops.changed(self.stops, stop)
                self.has_new_stops = True
            return
        run_id = record["run_id"]
        run = self.open_runs.get(run_id) or self._sealed_runs.get(run_id)
        if run is None:
            if record["run_seq"] is None and record["type"] not in ("attempt_late", "note"):
                return
            found = self._store.runs_by_no([row.run_no])
            run = self._load(found[row.run_no], below=row.leaf_index)
            self._keep_sealed(run)
        before_ppm = run.grade_ppm
        self._fold(run, row.leaf_index, record)
        if record["type"] == "note" and facts["kind"] == GRADE_NOTE and run.grade_ppm is not None:
            self._tally(run, before_ppm, run.grade_ppm)

    def _tally(self, run: RunState, before_ppm: int | None, score_ppm: int) -> GradeTallyRow | None:
        tally = grades.changed(self.grade_tallies, run, before_ppm, score_ppm)
        if tally is not None:
            self.grade_tallies = {**self.grade_tallies, tally[:3]: tally}
        return tally

    def _trim(self) -> None:
        while len(self._sealed_runs) > _SEALED_KEPT:
            self._bare.discard(self._sealed_runs.popitem(last=False)[0])

    def _records(
        self, event: Event, run: RunState | None, tenant_id: str, drafts: Sequence[Draft], now_us: int
    ) -> list[dict[str, Any]]:
        run_seq = len(run.leaf_indices) if run is not None else 0
        tenant_seq = self.book.leaf_count(tenant_id)
        records: list[dict[str, Any]] = []
        for draft in drafts:
            records.append(
                {
                    "v": FORMAT_VERSION,
                    "type": draft.type,
                    "event_id": event.event_id,
                    "run_id": run.row.run_id if run is not None else "",
                    "run_seq": run_seq if draft.in_run else None,
                    "tenant_id": tenant_id,
                    "tenant_seq": tenant_seq,
                    "time_us": now_us,
                    "service": event.service,
                    "facts": draft.facts,
                    "contents": [part.entry for part in draft.parts],
                }
            )
            run_seq += draft.in_run
            tenant_seq += 1
        return records

    def _evolve(self, run: RunState, index: int, record: dict[str, Any]) -> None:
        """Fold in a record of the running batch, and let the batch store what it moves."""
        for movement in self._fold(run, index, record):
            self._uses.add(run.row.tenant_id, run.row.principal_id, movement.use)
        if record["type"] == "sealed":
            facts = record["facts"]
            self._batch.seals.append(
                SealRow(
                    run.row.run_no,
                    record["time_us"],
                    facts["outcome"],
                    facts["cost_usd_micros"],
                    facts["attempt_count"],
                )
            )
            self._batch.facets += run.facet_rows

    def _fold(self, run: RunState, index: int, record: dict[str, Any]) -> list[Movement]:
        was_stopped = run.is_stopped
        movements = run.evolve(index, record)
        for movement in movements:
            self.book.move(run.row, movement)
        self.has_new_stops = self.has_new_stops or run.is_stopped != was_stopped
        if record["type"] == "erasure_begun":
            self._parts.forget(run)
        if record["type"] == "sealed":
            del self.open_runs[run.row.run_id]
            self._keep_sealed(run)
            self.just_sealed.append(run.row.run_id)
        return movements

    def _keep_sealed(self, run: RunState) -> None:
        # Trimmed only between batches: what a batch did to a run is in no other place until it commits.
        self._sealed_runs[run.row.run_id] = run

    def _load(self, row: RunRow, *, below: int | None = None) -> RunState:
        run = RunState(row, None)
        for index, data in self._store.leaves_of(row.run_no, below=below):
            run.evolve(index, json.loads(data))
        self._complete(run)
        return run

    def _complete(self, run: RunState) -> None:
        """Look up what a run's records do not tell: its data key, and whether its content is stored."""
        run.data_key = self._keys.get(run.row.key_no) if run.erasure_index is None else None
        first = next(iter(run.parts.values()), None)
        run.keeps_content = (
            self._keeps_content(run.row.tenant_id)
            if first is None
            else self._store.content(first.content_no) is not None
        )
        self._bare.discard(run.row.run_id)


def check_note(signer: CheckpointSigner, checkpoint: CheckpointRow, root: bytes) -> None:
    """Raise StoreError unless the stored checkpoint is ours and fits the stored tree."""
    try:
        stated = signer.read(checkpoint.note)
    except ValueError as error:
        raise StoreError(f"the database's last checkpoint is not valid: {error}") from None
    if (stated.size, stated.root) != (checkpoint.size, root):
        raise StoreError("the database's tree does not fit its last checkpoint")
