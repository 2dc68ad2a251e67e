"""What the log needs from outside: a store that commits whole batches, and keys that live elsewhere."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from podium_audit.rows.custody import ControlRow, CustodyReader, ErasureRow, ReadRow, SubjectRow
from podium_audit.rows.run_search import FacetRow, RunSearch
from podium_core.domain.conversation import ItemRange


class StoreError(Exception):
    """The store cannot do it now (full, locked, broken). What was asked for did not happen."""


class StoreBusyError(StoreError):
    """Another process holds the log for longer than we may wait. Nothing is wrong with ours."""


class Head(NamedTuple):
    """Where a log stands: how many leaves are committed, and how often its history was broken on purpose."""

    size: int
    epoch: int = 0


class RunRow(NamedTuple):
    """A run as its opening fixed it. `run_no` counts runs; `key_no` names its data key."""

    run_no: int
    run_id: str
    tenant_id: str
    principal_id: str
    kind: str
    requested_model: str
    key_no: int
    tenant_budget_usd_micros: int | None
    opened_us: int
    key_budget_usd_micros: int | None = None


class SealRow(NamedTuple):
    """How a run ended."""

    run_no: int
    sealed_us: int
    outcome: str
    cost_usd_micros: int
    attempt_count: int


class LeafRow(NamedTuple):
    """One leaf's bytes; `run_no` is None when it names no run. A `shelf` is kept and dropped whole."""

    leaf_index: int
    run_no: int | None
    data: bytes
    tenant_id: str = ""
    shelf: int = 0


class EventRow(NamedTuple):
    """Which leaves an event id made, and the digest of the request that did."""

    event_id: str
    digest: bytes
    first_index: int
    leaf_count: int


class ContentRow(NamedTuple):
    """Sealed content; `content_no` is the leaf's index times 256 plus the place in its `contents`."""

    content_no: int
    sealed: bytes
    tenant_id: str = ""
    shelf: int = 0


class StopRow(NamedTuple):
    """A worker (empty: each) that gets no permit for a tenant (empty: for any); `since_us` 0: cleared."""

    tenant_id: str
    worker_id: str
    since_us: int


class GradeTallyRow(NamedTuple):
    """The newest grades of a tenant's runs of one tier and number of planned steps, in millionths."""

    tenant_id: str
    tier: str
    step_count: int
    grade_count: int
    sum_ppm: int
    sum_squares_ppm: int


class UseRow(NamedTuple):
    """What is added to the sums of one key's day. Without a worker: requests, by the model asked for."""

    tenant_id: str
    day: str
    principal_id: str
    worker_id: str
    model: str
    requests: int = 0
    attempts: int = 0
    estimated_attempts: int = 0
    unknown_attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0
    cost_usd_micros: int = 0


USE_KEY_FIELDS = 5
"""How many fields of a `UseRow` name the sums; the rest is added."""


class TileRow(NamedTuple):
    """Up to 256 neighbouring node hashes of tree level 8 * `level`, starting at node 256 * `tile_index`.

    Tiles of level 0 are stored once they are full: until then the leaves themselves are enough.
    """

    level: int
    tile_index: int
    hashes: bytes


class CheckpointRow(NamedTuple):
    """A signed note over the first `size` leaves."""

    size: int
    note: str


@dataclass(slots=True)
class Batch:
    """Everything one commit writes. Counts and sums replace what was stored for their keys."""

    runs: list[RunRow] = field(default_factory=list)
    leaves: list[LeafRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    contents: list[ContentRow] = field(default_factory=list)
    seals: list[SealRow] = field(default_factory=list)
    tiles: list[TileRow] = field(default_factory=list)
    leaf_counts: list[tuple[str, int]] = field(default_factory=list)
    """(tenant_id, how many leaves it has)."""
    facets: list[FacetRow] = field(default_factory=list)
    settled: list[tuple[str, str, int]] = field(default_factory=list)
    """(tenant_id, month as YYYY-MM in UTC, settled USD micros)."""
    stops: list[StopRow] = field(default_factory=list)
    grade_tallies: list[GradeTallyRow] = field(default_factory=list)
    uses: list[UseRow] = field(default_factory=list)
    """Unlike the sums above these are added to what is stored."""
    controls: list[ControlRow] = field(default_factory=list)
    """In place of what is stored under the same ids; at most one each."""
    erasures: list[ErasureRow] = field(default_factory=list)
    """In place of the run's row. With an `erased_index` the run's contents are deleted in the same commit."""
    reads: list[ReadRow] = field(default_factory=list)
    subjects: list[SubjectRow] = field(default_factory=list)
    checkpoint: CheckpointRow | None = None


class LogReader(CustodyReader, Protocol):
    """Reads what is committed. Every method raises StoreError when it cannot."""

    def checkpoint(self) -> CheckpointRow | None:
        """Return the newest checkpoint; None for an empty log."""
        ...

    def checkpoint_over(self, index: int) -> CheckpointRow | None:
        """Return the oldest checkpoint that covers leaf `index`."""
        ...

    def tile(self, level: int, index: int) -> bytes:
        """Return the hashes stored for a tile; empty when there are none."""
        ...

    def leaves(self, begin: int, end: int) -> list[bytes]:
        """Return the bytes of the leaves from index `begin` to before `end`, as far as there are any."""
        ...

    def history(self) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf about the log itself, ascending."""
        ...

    def run(self, run_id: str) -> tuple[RunRow, SealRow | None] | None:
        """Return a run by its id, with its end when it is sealed."""
        ...

    def find_runs(
        self, search: RunSearch, *, before_no: int | None, limit: int
    ) -> list[tuple[RunRow, SealRow | None]]:
        """Return the runs that fit, newest first."""
        ...

    def count_runs(self, search: RunSearch) -> int:
        """Return how many runs fit in all."""
        ...

    def leaves_of(self, run_no: int, *, below: int | None = None) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf that names the run, ascending, with an index under `below`."""
        ...

    def tenant_leaves(self, tenant_id: str, begin: int, end: int) -> list[tuple[int, bytes]]:
        """Return (index, bytes) of every leaf of a tenant from index `begin` to before `end`, ascending."""
        ...

    def content(self, content_no: int) -> bytes | None:
        """Return sealed content."""
        ...

    def uses(
        self, tenant_id: str, principal_id: str | None, first_day: str, last_day: str, *, limit: int
    ) -> list[UseRow]:
        """Return the sums of a tenant's days, oldest first; only one principal's when given."""
        ...


class LogStore(LogReader, Protocol):
    """The writer's side; one thread owns it. A shared store has several writers, one at a time."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write the same log."""
        ...

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty log where there is none."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Within it, everything that is read was there at one moment."""
        ...

    def head(self) -> Head:
        """Return where the log stands, without keeping anybody away."""
        ...

    def begin(self) -> Head:
        """Keep other writers away until `commit` or `abandon`.

        Raises StoreBusyError when one stays too long.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """Make the whole batch durable, or raise StoreError and change nothing. Begins where nobody did."""
        ...

    def abandon(self) -> None:
        """End what `begin` began without a commit. Never fails."""
        ...

    def rows(self, begin: int, end: int) -> list[LeafRow]:
        """Return the leaves from index `begin` to before `end`, as far as there are any."""
        ...

    def runs_by_no(self, run_nos: Sequence[int]) -> dict[int, RunRow]:
        """Return runs by their numbers."""
        ...

    def probe(self) -> None:
        """Make a small commit that means nothing. Raises StoreError when that fails."""
        ...

    def events(self, event_ids: Sequence[str]) -> dict[str, EventRow]:
        """Return what these event ids made, those that made anything."""
        ...

    def known_runs(self, run_ids: Sequence[str]) -> set[str]:
        """Return which of these runs exist."""
        ...

    def open_runs(self) -> list[RunRow]:
        """Return the runs without an end."""
        ...

    def last_key_no(self) -> int:
        """Return the highest `key_no` any run has; 0 when there is none."""
        ...

    def next_run_no(self) -> int:
        """Return the number for the next run."""
        ...

    def leaf_counts(self) -> dict[str, int]:
        """Return how many leaves each tenant has."""
        ...

    def settled(self) -> dict[tuple[str, str], int]:
        """Return settled USD micros by (tenant_id, month)."""
        ...

    def settled_by_key(self) -> dict[tuple[str, str, str], int]:
        """Return settled USD micros by (tenant_id, principal_id, month): what the `uses` add up to."""
        ...

    def stops(self) -> list[StopRow]:
        """Return the stops that stand."""
        ...

    def grade_tallies(self) -> list[GradeTallyRow]:
        """Return what grades come to."""
        ...


class ItemRow(NamedTuple):
    """One conversation item, sealed under a key of its own. `expires_ms` 0: it stays until it is deleted."""

    tenant_id: str
    kind: str
    item_id: str
    run_id: str
    expires_ms: int
    wrapped_key: bytes
    sealed: bytes


class ConversationStore(Protocol):
    """Keeps conversation items; used by one thread at a time. Every method raises StoreError."""

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty store where there is none."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...

    def find(self, tenant_id: str, kind: str, item_id: str) -> tuple[int, ItemRow] | None:
        """Return an item, expired or not, with its version."""
        ...

    def page(self, wanted: ItemRange, now_ms: int, limit: int) -> Sequence[tuple[int, ItemRow]]:
        """Return up to `limit` items in the range that had not expired by `now_ms`, with their versions."""
        ...

    def replace(self, row: ItemRow, over: int) -> int | None:
        """Store a row durably in place of the version `over` (0: of nothing); return its new version.

        Versions grow and are never used again. Returns None, and changes nothing, when something else is
        stored by now.
        """
        ...

    def delete(self, version: int) -> bool:
        """Delete an item so that no byte of it stays in the store's files; return whether it was there."""
        ...

    def delete_of_runs(self, runs: Sequence[tuple[str, str]]) -> int:
        """Delete every item of these (tenant_id, run_id), as thoroughly; return how many."""
        ...

    def sweep(self, now_ms: int, limit: int) -> int:
        """Delete up to `limit` items that had expired by `now_ms`, as thoroughly; return how many."""
        ...


class RunKeys(Protocol):
    """Data keys of runs, wrapped by the key-encryption key, in a store of their own."""

    def open(self, last_used: int) -> None:
        """Get ready to hand out keys numbered above `last_used`. Raises StoreError."""
        ...

    def take(self) -> tuple[int, bytes]:
        """Return the number and the 32 bytes of a key nobody had before. Raises StoreError."""
        ...

    def get(self, key_no: int) -> bytes | None:
        """Return a key; None once it is erased. Raises StoreError."""
        ...

    def erase(self, key_nos: Sequence[int]) -> None:
        """Destroy keys for good, in any form they are kept in; any thread may ask. Raises StoreError."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
