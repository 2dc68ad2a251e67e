"""The log: applies commands to the state in memory and commits them to the store, a batch at a time.

Every check of a command runs, and every record is encoded, before the first change: a command that is
refused has changed nothing, so it cannot disturb the others of its batch. A batch that the store refuses
is forgotten whole, and the state is read back from the store.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from podium_audit.custody.custodian import Custodian
from podium_audit.leases import Leases
from podium_audit.ports import EventRow, LogStore, RunKeys, RunRow, StoreError
from podium_audit.records import event_digests, limits
from podium_audit.records.commands import (
    AppendNote,
    AppendPlan,
    Applied,
    BeginAttempt,
    Command,
    CustodyCommand,
    EndAttempt,
    Grade,
    OpenRun,
    PutContent,
    RecordHistory,
    RecordRead,
    RunCommand,
    Seal,
    SetStop,
    StopRun,
    TenantMoney,
)
from podium_audit.records.facts import Draft
from podium_audit.records.parts import PartReader
from podium_audit.records.run_state import RunState, month_of
from podium_audit.rules import attempts, endings, grades, opening, outside_runs, stops
from podium_audit.rules.state import LogState
from podium_audit.tree.checkpoint import Checkpoint, CheckpointSigner
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError

_NS_PER_US = 1_000
_ROLLED_BACK = (
    "the database lost or changed leaves that were committed: it was replaced by an older copy,"
    " restore the newest one"
)


class Figures(NamedTuple):
    """The log in numbers: leaves, open runs, and USD micros that open attempts reserve."""

    leaf_count: int = 0
    open_runs: int = 0
    reserved_usd_micros: int = 0


class Log:
    """One log, used by one thread: `load`, `apply` any number of commands, then `commit` or `roll_back`."""

    def __init__(
        self,
        store: LogStore,
        keys: RunKeys,
        signer: CheckpointSigner,
        leases: Leases,
        clock: Clock,
        *,
        max_content_bytes: int,
        keeps_content: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._store = store
        self._keys = keys
        self._signer = signer
        self._leases = leases
        self._clock = clock
        self._max_bytes = max_content_bytes
        self._keeps_content = keeps_content
        self._parts = PartReader(store)
        self._custodian = Custodian(keys)
        self._state: LogState | None = None
        self._waiting: list[Applied] = []
        self._spare_key: tuple[int, bytes] | None = None
        self._struck: frozenset[str] = frozenset()
        self._newest_seen: Checkpoint | None = None

    @property
    def state(self) -> LogState:
        """The state, once loaded."""
        if self._state is None:
            raise RuntimeError("the log is not loaded")
        return self._state

    @property
    def figures(self) -> Figures:
        """What operators watch. Any thread may ask; before the log is loaded everything is 0."""
        state = self._state
        if state is None:
            return Figures()
        return Figures(state.committed_size, len(state.open_runs), state.book.reserved_usd_micros)

    def money(self, tenant_id: str, month: str, key_id: str = "") -> tuple[int, int]:
        """Return settled and reserved USD micros of a tenant's or a key's month. Any thread may ask."""
        state = self._state
        if state is None:
            return 0, 0
        return state.book.settled(tenant_id, month, key_id), state.book.reserved(tenant_id, month, key_id)

    @property
    def newest_note(self) -> str:
        """The newest committed checkpoint; empty when there is none. Any thread may ask."""
        state = self._state
        return state.newest_note if state is not None else ""

    @property
    def grade_tallies(self) -> grades.Tallies:
        """What grades come to. Any thread may ask."""
        state = self._state
        return state.grade_tallies if state is not None else {}

    @property
    def stops(self) -> stops.Standing:
        """The stops that stand. Any thread may ask."""
        state = self._state
        return state.stops if state is not None else {}

    def cancelled(self, run_ids: Iterable[str]) -> list[str]:
        """Return those of these runs whose holder must stop. Any thread may ask."""
        struck = self._struck
        return [run_id for run_id in run_ids if run_id in struck]

    def load(self) -> None:
        """Match the store if that is not so already. Raises StoreError."""
        if self._state is None:
            self._store.open()
            with self._store.snapshot():
                state = LogState(self._store, self._keys, self._signer, self._parts, self._keeps_content)
                self._check_history(state)
            self._state = state
            self._leases.keep_only(state.open_runs)
            self._struck = self._struck.intersection(state.open_runs)
            self._strike(state)

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write the same log: then `refresh` it now and then."""
        return self._store.is_shared

    def prepare(self, commands: Sequence[Command]) -> None:
        """Get the leases ready that these commands need, while nobody is kept away. Raises StoreError."""
        self._leases.prepare(
            [
                (command.run_id, command.lease_ms)
                for command in commands
                if isinstance(command, OpenRun) and not command.refusal_reason
            ],
            [command.run_id for command in commands if isinstance(command, BeginAttempt)],
        )

    def begin(self) -> None:
        """Begin a batch: keep other writers away, and take in what they committed.

        Raises StoreBusyError when another one stays too long: nothing is lost, `begin` again. Raises
        StoreError; then `roll_back` must follow.
        """
        head = self._store.begin()
        if head.epoch != self.state.epoch:
            raise StoreError("the log's history was mended by hand: it must be read anew")
        self._take_in(head.size)

    def refresh(self) -> None:
        """Take in what others committed, without keeping them away. Raises StoreError as `begin` does."""
        self._take_in(self._store.head().size)

    def probe(self) -> None:
        """Find out whether the store can commit again. Raises StoreError when not."""
        self._store.probe()

    def prefetch(self, commands: Sequence[Command]) -> None:
        """Look up at once what these commands will need. Optional; raises StoreError."""
        self.state.prefetch(
            [command.event.event_id for command in commands],
            [command.run_id for command in commands if isinstance(command, OpenRun)],
        )

    def apply(self, command: Command) -> Applied:
        """Put what a command asks for into the running batch.

        Raises PodiumError when it is refused, and StoreError when the store cannot answer a question;
        then it has changed nothing.
        """
        limits.check_event_id(command.event.event_id, is_history=isinstance(command, RecordHistory))
        known = self.state.event(command.event.event_id)
        applied = self._apply(command) if known is None else self._repeat(command, known)
        if not applied.checkpoint:
            self._waiting.append(applied)
        return applied

    def commit(self) -> int:
        """Make the batch durable and fill in its answers' checkpoint; return how many leaves it wrote.

        Raises StoreError; then `roll_back` must follow.
        """
        state = self.state
        leaf_count = state.size - state.committed_size
        if not leaf_count:
            self._store.abandon()
        note = state.commit()
        for applied in self._waiting:
            applied.checkpoint = note
        self._waiting.clear()
        self._tell_others(state)
        return leaf_count

    def roll_back(self) -> None:
        """Forget the batch and everything in memory; the next `load` reads the store again."""
        self._store.abandon()
        if self._state is not None and self._state.newest_note:
            self._newest_seen = self._signer.read(self._state.newest_note)
        self._state = None
        self._waiting.clear()
        self._parts.rolled_back()

    def _take_in(self, size: int) -> None:
        state = self.state
        if size < state.size:
            raise StoreError(_ROLLED_BACK)
        if size > state.size:
            state.catch_up(size)
            self._tell_others(state)

    def _check_history(self, state: LogState) -> None:
        """Refuse a store that lost or changed what this process knows was committed."""
        seen = self._newest_seen
        if seen is not None and (state.size < seen.size or state.root_at(seen.size) != seen.root):
            raise StoreError(_ROLLED_BACK)

    def _tell_others(self, state: LogState) -> None:
        """Let go of what runs held that are sealed by now, and let stops be heard."""
        for run_id in state.just_sealed:
            self._leases.end(run_id)
            self._parts.let_go(run_id)
        self._struck = self._struck.difference(state.just_sealed) if self._struck else self._struck
        state.just_sealed.clear()
        self._strike(state)

    def _strike(self, state: LogState) -> None:
        """Let the gateways hear of what was stopped: only once that is durable."""
        if state.has_new_stops:
            self._struck = self._struck.union(stops.struck(state.open_runs.values(), state.stops))
            state.has_new_stops = False

    def _apply(self, command: Command) -> Applied:
        now_us = self._clock.now_ns() // _NS_PER_US
        if isinstance(command, CustodyCommand):
            return self._custodian.apply(self.state, command, now_us)
        if isinstance(command, OpenRun):
            return self._open(command, now_us)
        if isinstance(command, SetStop | RecordHistory) or (
            isinstance(command, AppendNote | RecordRead) and not command.run_id
        ):
            return outside_runs.apply(self.state, command, now_us, self._max_bytes)
        run = self._run(command.run_id)
        drafts = self._decide(run, command, now_us)
        if not drafts:
            return Applied(open_attempts=len(run.open_attempts))
        grade_before_ppm = run.grade_ppm
        indices = self.state.stage(command.event, run, drafts, now_us)
        if isinstance(command, Grade):
            self.state.count_grade(run, grade_before_ppm, command.score_ppm)
        return self._answer(command, run, indices)

    def _decide(
        self,
        run: RunState,
        command: RunCommand,
        now_us: int,
    ) -> Sequence[Draft]:
        drafts: Sequence[Draft]
        match command:
            case BeginAttempt():
                self._check_permit(run, command)
                month = month_of(now_us)
                drafts = attempts.begin(
                    run, command, self.state.book, month, self._parts.read, self._max_bytes
                )
            case EndAttempt():
                drafts = attempts.end(run, command, self._max_bytes)
            case Seal():
                drafts = endings.seal(run, command, self._max_bytes)
            case PutContent():
                drafts = opening.put_content(run, command, self._max_bytes)
            case AppendPlan():
                drafts = opening.append_plan(run, command, self._max_bytes)
            case AppendNote():
                drafts = opening.append_note(run, command, self._max_bytes)
            case RecordRead():
                drafts = endings.read(command)
            case Grade():
                drafts = grades.record(run, command)
            case StopRun():
                drafts = stops.stop_run(run, command)
        return drafts

    def _open(self, command: OpenRun, now_us: int) -> Applied:
        if self.state.find_run(command.run_id) is not None:
            raise PodiumError(
                Code.CONFLICT,
                "a run with this id was opened by another event",
                reason="RUN_EXISTS",
                param="run_id",
            )
        key_no, data_key = self._spare_key or self._keys.take()
        self._spare_key = key_no, data_key
        drafts = opening.open_run(command, data_key, self._max_bytes)
        row = RunRow(
            self.state.next_run_no,
            command.run_id,
            command.tenant_id,
            command.principal_id,
            command.kind.value,
            command.requested_model,
            key_no,
            command.tenant_budget_usd_micros,
            now_us,
            command.key_budget_usd_micros,
        )
        run = RunState(row, data_key, keeps_content=self._keeps_content(command.tenant_id))
        indices = self.state.stage(command.event, run, drafts, now_us)
        self._spare_key = None
        if run.outcome is None:
            self._leases.start(command.run_id, command.lease_ms)
        return self._answer(command, run, indices)

    def _repeat(self, command: Command, known: EventRow) -> Applied:
        """Answer a command whose event is in the log already."""
        run_id: str = getattr(command, "run_id", "")
        run = self.state.find_run(run_id) if run_id else None
        if (run_id and run is None) or not event_digests.is_same(run, command.event, known):
            raise PodiumError(
                Code.CONFLICT,
                "this event id was used for another request",
                reason="EVENT_REUSED",
                param="event_id",
            )
        indices = tuple(range(known.first_index, known.first_index + known.leaf_count))
        if isinstance(command, BeginAttempt) and run is not None:
            if known.event_id not in run.open_attempts:
                raise PodiumError(
                    Code.CONFLICT, "the attempt has ended: its permit is used up", reason="ATTEMPT_ENDED"
                )
            self._check_permit(run, command)
        applied = self._answer(command, run, indices)
        applied.is_new = False
        if indices[-1] < self.state.committed_size:
            checkpoint = self._store.checkpoint_over(indices[-1])
            applied.checkpoint = checkpoint.note if checkpoint is not None else ""
        return applied

    def _answer(self, command: Command, run: RunState | None, indices: tuple[int, ...]) -> Applied:
        applied = Applied(indices)
        if run is not None:
            if run.outcome is not None:
                applied.late = isinstance(command, EndAttempt) and indices[0] not in run.leaf_indices
                applied.run_leaf_indices = tuple(run.leaf_indices)
                applied.cost_usd_micros = run.sealed_cost_usd_micros
                applied.erased_index = run.erased_index
                if isinstance(command, Seal):
                    applied.money = self._money_of(run)
            else:
                applied.open_attempts = len(run.open_attempts)
        return applied

    def _money_of(self, run: RunState) -> tuple[TenantMoney, ...]:
        """Return the budgets that the run counted against: its tenant's, its key's."""
        tenant_id, month = run.row.tenant_id, month_of(self._clock.now_ns() // _NS_PER_US)
        budgets = (
            ("", run.row.tenant_budget_usd_micros),
            (run.row.principal_id, run.row.key_budget_usd_micros),
        )
        return tuple(
            TenantMoney(tenant_id, month, budget, *self.money(tenant_id, month, key_id), key_id)
            for key_id, budget in budgets
            if budget is not None
        )

    def _run(self, run_id: str) -> RunState:
        run = self.state.find_run(run_id)
        if run is None:
            raise PodiumError(Code.NOT_FOUND, "there is no such run", reason="RUN_UNKNOWN", param="run_id")
        return run

    def _check_permit(self, run: RunState, command: BeginAttempt) -> None:
        stops.check(run, command.worker_id, self.state.stops)
        if run.outcome is None and not self._leases.is_alive(run.row.run_id):
            raise PodiumError(
                Code.CONFLICT,
                "the run's lease has lapsed: it is being sealed as abandoned",
                reason="LEASE_LAPSED",
            )
