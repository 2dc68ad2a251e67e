"""The recorder port in memory, as strict as audit: one opening, one seal, nothing after it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.ports import OpenedRun, PlanReply, Receipt, RecorderPort, SealedRun


@dataclass(slots=True)
class RecordedRun:
    """What is recorded of one run."""

    opened: OpenedRun
    plans: list[PlanReply] = field(default_factory=list)
    sealed: SealedRun | None = None
    leaves: list[int] = field(default_factory=list)
    notes: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be added any more."""
        return self.sealed is not None or bool(self.opened.refusal_reason)


@dataclass(slots=True)
class FakeRecorder(RecorderPort):
    """Keeps runs by id. Errors queued in `open_errors` and `seal_errors` are raised first, in order."""

    runs: dict[str, RecordedRun] = field(default_factory=dict)
    open_errors: list[PodiumError] = field(default_factory=list)
    seal_errors: list[PodiumError] = field(default_factory=list)
    open_gate: asyncio.Event | None = None
    seal_gate: asyncio.Event | None = None
    leaf_count: int = 0

    @property
    def only(self) -> RecordedRun:
        """The one run there is."""
        (run,) = self.runs.values()
        return run

    async def open_run(self, opened: OpenedRun) -> Receipt | None:
        """Record the opening; a refused run is closed at once."""
        if self.open_gate is not None:
            await self.open_gate.wait()
        if self.open_errors:
            raise self.open_errors.pop(0)
        known = self.runs.get(opened.run_id)
        if known is not None and known.opened != opened:
            raise PodiumError(Code.CONFLICT, "this run was opened with other content")
        if known is None:
            known = self.runs[opened.run_id] = RecordedRun(opened)
            known.plans.extend([opened.plan] if opened.plan else [])
            self._add_leaves(known, 2 if opened.plan or opened.refusal_reason else 1)
        return self._receipt(known) if opened.refusal_reason else None

    async def append_plan(self, run_id: str, event_id: str, reply: PlanReply) -> None:
        """Record a plan of an open run."""
        run = self._open(run_id)
        run.plans.append(reply)
        self._add_leaves(run, 1)

    async def note(self, run_id: str, event_id: str, kind: str, facts: Mapping[str, str]) -> None:
        """Record facts about an open run."""
        run = self._open(run_id)
        run.notes.append((kind, dict(facts)))
        self._add_leaves(run, 1)

    async def seal(self, sealed: SealedRun) -> Receipt:
        """Close the run."""
        if self.seal_gate is not None:
            await self.seal_gate.wait()
        if self.seal_errors:
            raise self.seal_errors.pop(0)
        run = self.runs.get(sealed.run_id)
        if run is not None and run.sealed == sealed:
            return self._receipt(run)
        run = self._open(sealed.run_id)
        run.sealed = sealed
        self._add_leaves(run, 1)
        return self._receipt(run)

    def _open(self, run_id: str) -> RecordedRun:
        run = self.runs.get(run_id)
        if run is None:
            raise PodiumError(Code.NOT_FOUND, "no such run")
        if run.is_closed:
            raise PodiumError(Code.CONFLICT, "the run is sealed", reason="RUN_SEALED")
        return run

    def _add_leaves(self, run: RecordedRun, count: int) -> None:
        run.leaves.extend(range(self.leaf_count, self.leaf_count + count))
        self.leaf_count += count

    def _receipt(self, run: RecordedRun) -> Receipt:
        checkpoint = f"fake/audit\n{self.leaf_count}\nAAAA\n\n— fake/audit AAAA\n"
        return Receipt(run.opened.run_id, tuple(run.leaves), checkpoint)
