"""Puts the audit service together from its settings, in the order in which a log may be opened.

Apart from `__main__`, so that tests can have a whole service without a process.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import grpc

from podium.audit.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from podium.audit.v1.conversation_service_pb2_grpc import add_ConversationServiceServicer_to_server
from podium.audit.v1.grade_service_pb2_grpc import add_GradeServiceServicer_to_server
from podium.audit.v1.limit_service_pb2_grpc import add_LimitServiceServicer_to_server
from podium.audit.v1.stop_service_pb2_grpc import add_StopServiceServicer_to_server
from podium.audit.v1.usage_service_pb2_grpc import add_UsageServiceServicer_to_server
from podium_audit.bundles.http import BundlePages
from podium_audit.conversations import Conversations
from podium_audit.erasure.eraser import Eraser
from podium_audit.erasure.expiry import Expiry
from podium_audit.erasure.http import CustodyPages
from podium_audit.erasure.shelf_expiry import ShelfExpiry
from podium_audit.files import Files, settled_files, usable
from podium_audit.intake.span_intake import SpanIntake
from podium_audit.leases import Leases, MemoryLeases
from podium_audit.log.budget_warnings import BudgetWarnings
from podium_audit.log.group_commit import GroupCommit
from podium_audit.log.head_guard import HeadGuard
from podium_audit.log.log import Log
from podium_audit.log.sealing import Reaper, Sealer
from podium_audit.log.store_thread import StoreThread
from podium_audit.proofs.anchoring import Anchoring
from podium_audit.proofs.places import places
from podium_audit.pseudonyms import Pseudonyms
from podium_audit.query.http import RunLists
from podium_audit.reading.failed_logins import FailedLogins
from podium_audit.reading.http import AuditHttp
from podium_audit.rows.spans import SpanStore
from podium_audit.servicers.audit import AuditServicer
from podium_audit.servicers.conversations import ConversationServicer
from podium_audit.servicers.grades import GradeServicer
from podium_audit.servicers.limits import LimitServicer
from podium_audit.servicers.stops import StopServicer
from podium_audit.servicers.usage import UsageServicer
from podium_audit.settings import AuditSettings
from podium_audit.slices import Slices
from podium_audit.stores.readers import Readers
from podium_audit.stores.spans import SqliteSpans
from podium_audit.telemetry import AnchorMetrics, BudgetMetrics, CommitMetrics, RecordSpans
from podium_core.config.tenants import Tenants
from podium_core.config.watched import Source
from podium_core.domain.clock import Clock, SystemClock
from podium_core.domain.ids import IdFactory, RandomIds
from podium_core.domain.limits import LimitName
from podium_core.runtime.telemetry import Telemetry

if TYPE_CHECKING:
    from podium_audit.sharing.leases import SharedLeases
    from podium_audit.sharing.meters import SharedMeters

SPANS_FILE = "spans.db"


@dataclass(frozen=True, slots=True)
class Audit:
    """The parts that `__main__` serves, and what ends with them."""

    commit: GroupCommit
    servicer: AuditServicer
    conversation_servicer: ConversationServicer
    stop_servicer: StopServicer
    limit_servicer: LimitServicer
    usage_servicer: UsageServicer
    grade_servicer: GradeServicer
    http: AuditHttp
    reaper: Reaper
    guard: HeadGuard
    log: Log
    files: Files
    tenants: Source[Tenants]
    conversations: Conversations
    intake: SpanIntake | None
    eraser: Eraser
    expiry: Expiry
    _warnings: BudgetWarnings
    _sealer: Sealer
    _readers: Readers
    _shared: Sequence["Opened"]
    _drain_s: float

    def serve_on(self, server: grpc.aio.Server) -> None:
        """Let a gRPC server answer for every service; it must ask for `servicers.permissions`."""
        add_AuditServiceServicer_to_server(self.servicer, server)
        add_ConversationServiceServicer_to_server(self.conversation_servicer, server)
        add_StopServiceServicer_to_server(self.stop_servicer, server)
        add_LimitServiceServicer_to_server(self.limit_servicer, server)
        add_UsageServiceServicer_to_server(self.usage_servicer, server)
        add_GradeServiceServicer_to_server(self.grade_servicer, server)

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """Return what must run beside the servers."""
        return [
            *([self.intake.keep()] if self.intake is not None else []),
            self.reaper.run(),
            self.guard.keep(self.log),
            self.tenants.watch(),
            self.conversations.keep_swept(),
            self.eraser.keep_finished(),
            self.expiry.keep_expired(),
            self.http.anchoring.run(),
            self.http.failed_logins.keep_recorded(),
        ]

    async def close(self) -> None:
        """Commit what waits, write the last checkpoint and let go of the files."""
        await self._sealer.drain(self._drain_s)
        await self._warnings.close()
        await self.http.failed_logins.record()
        await self.commit.stop()
        await self.conversations.close()
        if self.intake is not None:
            await self.intake.close()
        await self.http.anchoring.close()
        self.guard.write(self.log.newest_note)
        for part in self._shared:
            await part.close()
        self._readers.close()
        self.files.close()


async def open_audit(
    settings: AuditSettings, telemetry: Telemetry, tenants: Source[Tenants], clock: Clock | None = None
) -> Audit:
    """Open the log and everything around it, for these tenants.

    Raises PodiumError: keys missing or open to others, a database older than its checkpoint, two processes.
    """
    clock = clock or SystemClock()
    ids = RandomIds(clock)
    files = settled_files(settings)
    leases, meters = _leases(files, settings, clock), _meters(files, tenants, settings, clock)
    log = open_log(files, settings, clock, leases, _keeps_content(tenants))
    commit = _group_commit(log, settings, telemetry, clock)
    guard = HeadGuard(settings.checkpoints, files.signer, interval_s=settings.checkpoint_interval_s)
    conversations = _conversations(files, settings, clock)
    names = files.pseudonyms(wait_s=settings.commit_wait_s)
    await _start(files, guard, commit, conversations, [leases, meters, names])
    readers, anchoring = await _reading(files, settings, telemetry, clock)
    sealer = Sealer(commit, leases, wait_s=settings.seal_wait_s)
    warnings = BudgetWarnings(commit, lambda: tenants.current, BudgetMetrics(telemetry.meter).warned)
    intake = _intake(files, settings, clock)
    eraser = Eraser(commit, conversations, files.run_keys, readers, ids, settings.key_backup_days)
    logins = FailedLogins(commit, ids)
    bare = AuditHttp(commit, readers, files.signer, tenants.fresh, clock, ids, anchoring, logins, intake)
    expiry = _expiry(files, commit, eraser, readers, tenants, clock, settings)
    reaper = Reaper(commit, leases, ids, interval_s=settings.reap_interval_s)
    return Audit(
        commit,
        _audit_servicer(log, commit, sealer, leases, warnings, names, settings, telemetry),
        _conversation_servicer(conversations, commit, ids, settings, tenants),
        StopServicer(commit, lambda: log.stops),
        LimitServicer(meters),
        UsageServicer(readers, log, lambda: tenants.current),
        GradeServicer(commit, lambda: log.grade_tallies),
        _pages(bare, eraser, names, settings.data_dir),
        reaper,
        guard,
        log,
        files,
        tenants,
        conversations,
        intake,
        eraser,
        expiry,
        warnings,
        sealer,
        readers,
        [part for part in (leases, meters, names) if isinstance(part, Opened)],
        settings.drain_s,
    )


def _pages(http: AuditHttp, eraser: Eraser, names: Pseudonyms, spool_dir: Path) -> AuditHttp:
    """Return the application with the rooms that build upon it."""
    rooms = RunLists(http), CustodyPages(http, eraser, names), BundlePages(http, spool_dir)
    return replace(http, more=rooms)


def _expiry(
    files: Files,
    commit: GroupCommit,
    eraser: Eraser,
    readers: Readers,
    tenants: Source[Tenants],
    clock: Clock,
    settings: AuditSettings,
) -> Expiry:
    ids, shelves = RandomIds(clock), None
    if files.installation is not None:
        shelves = ShelfExpiry(files.installation.shelves(), commit, readers, clock, ids)
    interval_s = settings.expiry_interval_s
    return Expiry(commit, eraser, readers, tenants, clock, ids, shelves, interval_s=interval_s)


def _keeps_content(tenants: Source[Tenants]) -> Callable[[str], bool]:
    return lambda tenant_id: tenants.current.keep_content(tenant_id)  # noqa: PLW0108 - the newest


def _conversation_servicer(
    conversations: Conversations,
    commit: GroupCommit,
    ids: IdFactory,
    settings: AuditSettings,
    tenants: Source[Tenants],
) -> ConversationServicer:
    return ConversationServicer(
        conversations,
        commit,
        ids,
        max_item_bytes=settings.max_item_bytes,
        keeps_content=_keeps_content(tenants),
        longest_days=lambda tenant_id: tenants.current.retention_of(tenant_id).conversation_days,
    )


def open_log(
    files: Files,
    settings: AuditSettings,
    clock: Clock,
    leases: Leases | None = None,
    keeps_content: Callable[[str], bool] = lambda _: True,
) -> Log:
    """Return the log over its files, not loaded yet."""
    return Log(
        files.store,
        files.run_keys,
        files.signer,
        leases or MemoryLeases(clock, default_ms=settings.lease_default_ms, max_ms=settings.lease_max_ms),
        clock,
        max_content_bytes=settings.max_content_bytes,
        keeps_content=keeps_content,
    )


def _audit_servicer(
    log: Log,
    commit: GroupCommit,
    sealer: Sealer,
    leases: Leases,
    warnings: BudgetWarnings,
    names: Pseudonyms,
    settings: AuditSettings,
    telemetry: Telemetry,
) -> AuditServicer:
    return AuditServicer(
        commit,
        sealer,
        leases,
        RecordSpans(telemetry.tracer),
        warnings,
        names,
        cancelled=log.cancelled,
        max_content_bytes=settings.max_content_bytes,
        max_buffered_bytes=settings.max_buffered_bytes,
    )


def _group_commit(log: Log, settings: AuditSettings, telemetry: Telemetry, clock: Clock) -> GroupCommit:
    return GroupCommit(
        log,
        clock,
        CommitMetrics(telemetry.meter, lambda: log.figures),
        queue_bound=settings.queue_bound,
        batch_limit=settings.batch_limit,
        commit_wait_s=settings.commit_wait_s,
    )


def _conversations(files: Files, settings: AuditSettings, clock: Clock) -> Conversations:
    return Conversations(
        files.conversations,
        files.wrapper,
        clock,
        wait_s=settings.commit_wait_s,
        sweep_every_s=settings.sweep_interval_s,
    )


def _intake(files: Files, settings: AuditSettings, clock: Clock) -> SpanIntake | None:
    if not settings.takes_spans:
        return None
    store: SpanStore = (
        files.installation.spans()
        if files.installation is not None
        else SqliteSpans(settings.data_dir / SPANS_FILE, busy_s=settings.commit_wait_s)
    )
    return SpanIntake(store, clock, kept_days=settings.spans_kept_days)


async def _reading(
    files: Files, settings: AuditSettings, telemetry: Telemetry, clock: Clock
) -> tuple[Readers, Anchoring]:
    readers = Readers(files.view)
    thread = StoreThread("anchors", wait_s=settings.commit_wait_s)
    metrics = AnchorMetrics(telemetry.meter)
    anchoring = Anchoring(files.anchors(settings), thread, readers, places(settings, readers), clock, metrics)
    await anchoring.open()
    return readers, anchoring


@runtime_checkable
class Opened(Protocol):
    """What has to be opened before the log, and closed after it."""

    async def open(self) -> None:
        """Get ready. Raises StoreError."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


def _leases(files: Files, settings: AuditSettings, clock: Clock) -> "MemoryLeases | SharedLeases":
    if files.installation is not None:
        return files.installation.leases(clock)
    return MemoryLeases(clock, default_ms=settings.lease_default_ms, max_ms=settings.lease_max_ms)


def _meters(
    files: Files, tenants: Source[Tenants], settings: AuditSettings, clock: Clock
) -> "Slices | SharedMeters":
    def limit_of(name: LimitName) -> int | None:
        return tenants.current.limits_of(name.tenant_id, name.key_id).of(name.kind)

    if files.installation is not None:
        return files.installation.meters(limit_of)
    return Slices(limit_of, clock, valid_ns=settings.limit_slice_ns)


async def _start(
    files: Files,
    guard: HeadGuard,
    commit: GroupCommit,
    conversations: Conversations,
    others: Sequence[object],
) -> None:
    with usable(files):
        files.store.open()
        guard.check(files.store)
        files.run_keys.open(files.store.last_key_no())
        await conversations.open()
        for part in others:
            if isinstance(part, Opened):
                await part.open()
        await commit.start()
