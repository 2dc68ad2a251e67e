"""A log over fakes and short ways to ask it for things."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from podium_audit.leases import MemoryLeases
from podium_audit.log.log import Log
from podium_audit.records.commands import (
    AppendNote,
    AppendPlan,
    Applied,
    BeginAttempt,
    BodyPiece,
    Command,
    EndAttempt,
    Event,
    OpenRun,
    Part,
    PlanEvidence,
    PutContent,
    Seal,
)
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.policy import Verdict
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, RunKind, RunOutcome
from podium_core.domain.usage import Usage
from tests.fakes.audit_store import FakeLogStore, FakeRunKeys, FakeSigner
from tests.fakes.ids import FakeClock

ORIGIN = "podium.local/audit"
RUN = "run_1"
LEASE_S = 15


def event(event_id: str, service: str = "gateway", request: str = "") -> Event:
    """Return an event whose digest stands for `request`."""
    return Event(event_id, sha256((request or event_id).encode()).digest(), service)


def text_part(part_id: str, text: str = "some words", name: str = "question") -> Part:
    """Return a part of plain text."""
    return Part(part_id, name, "text/plain", text.encode())


def plan_of(*steps: Step, round_: int = 0, source: PlanSource = PlanSource.RULES) -> PlanEvidence:
    """Return a plan; without steps, one step of worker `w1`."""
    return PlanEvidence(Plan(steps or (Step("w1", ""),), source, round_))


THREE_STEPS = plan_of(
    Step("w1", "", Access(), "w2"),
    Step("w2", ""),
    Step("w3", "", Access((0, 1))),
)
VERDICTS = (
    Verdict("w1", True),
    Verdict("w2", True),
    Verdict("w3", True),
    Verdict("w9", False, "client.except"),
)


def open_run(run_id: str = RUN, **changes: Any) -> OpenRun:
    """Return the opening of a chat run with one step of `w1` and one content part."""
    opened = OpenRun(
        event=event(f"open.{run_id}"),
        run_id=run_id,
        kind=RunKind.CHAT,
        tenant_id="acme",
        principal_id="key1",
        requested_model="podium",
        verdicts=VERDICTS,
        caps=Caps(),
        plan=plan_of(),
        contents=(text_part("question"),),
        pool_digest="pool",
        price_digest="price",
    )
    return replace(opened, **changes)


def begin(attempt_id: str = "att_1", run_id: str = RUN, **changes: Any) -> BeginAttempt:
    """Return the request for a permit of step 0 by `w1`."""
    asked = BeginAttempt(
        event=event(attempt_id, "router"),
        run_id=run_id,
        kind=AttemptKind.STEP,
        round=0,
        step_index=0,
        worker_id="w1",
        provider="openai-compatible",
        provider_model="model",
        region="eu",
        endpoint_host="provider.example",
        seen_steps=(),
        sees_previous_round=False,
        body=(BodyPiece("", b'{"q":"'), BodyPiece("question", b""), BodyPiece("", b'"}')),
        body_sha256=b"",
        max_cost_usd_micros=100,
        price_digest="price",
        pool_digest="pool",
    )
    return replace(asked, **changes)


def end(attempt_id: str = "att_1", run_id: str = RUN, **changes: Any) -> EndAttempt:
    """Return a good end with an output."""
    ended = EndAttempt(
        event=event(f"{attempt_id}.end", "router"),
        attempt_id=attempt_id,
        run_id=run_id,
        outcome=AttemptOutcome.COMPLETED,
        usage=Usage(10, 20),
        cost_usd_micros=40,
        contents=(text_part(f"{attempt_id}/output", "an answer", "output"),),
    )
    return replace(ended, **changes)


def seal(run_id: str = RUN, outcome: RunOutcome = RunOutcome.ANSWERED, **changes: Any) -> Seal:
    """Return the seal of an answered run."""
    return replace(Seal(event(f"seal.{run_id}"), run_id, outcome), **changes)


def append_plan(plan: PlanEvidence, run_id: str = RUN, **changes: Any) -> AppendPlan:
    """Return the record of a later plan."""
    return replace(AppendPlan(event(f"plan.{plan.plan.round}.{run_id}"), run_id, plan), **changes)


def note(run_id: str = RUN, service: str = "gateway", **facts: str) -> AppendNote:
    """Return a note."""
    return AppendNote(event(f"note.{run_id}.{len(facts)}", service), run_id, "remark", facts)


def put(part: Part, run_id: str = RUN, service: str = "gateway") -> PutContent:
    """Return one content part."""
    return PutContent(event(f"put.{part.part_id}", service), run_id, part)


@dataclass(slots=True)
class LogScene:
    """A loaded log with everything it stands on."""

    store: FakeLogStore = field(default_factory=FakeLogStore)
    keys: FakeRunKeys = field(default_factory=FakeRunKeys)
    clock: FakeClock = field(default_factory=FakeClock)
    signer: CheckpointSigner = field(default_factory=lambda: CheckpointSigner(ORIGIN, FakeSigner()))
    max_content_bytes: int = 1 << 20
    keeps_content: bool = True
    leases: MemoryLeases = field(init=False)
    log: Log = field(init=False)

    def __post_init__(self) -> None:
        self.leases = MemoryLeases(self.clock, default_ms=LEASE_S * 1_000, max_ms=60_000)
        self.log = Log(
            self.store,
            self.keys,
            self.signer,
            self.leases,
            self.clock,
            max_content_bytes=self.max_content_bytes,
            keeps_content=lambda _: self.keeps_content,
        )
        self.log.load()

    def do(self, *commands: Command) -> Applied:
        """Apply and commit; return what became of the last command."""
        for command in commands:
            applied = self.log.apply(command)
        self.log.commit()
        return applied

    def restart(self) -> None:
        """Forget everything in memory and read the store again."""
        self.__post_init__()

    def records(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """Return stored records, decoded; of one run when given."""
        records: Sequence[dict[str, Any]] = [json.loads(row.data) for row in self.store.leaf_rows]
        return [record for record in records if run_id in (None, record["run_id"])]

    def last(self) -> Mapping[str, Any]:
        """Return the newest record."""
        return self.records()[-1]

    def reserved(self, tenant_id: str = "acme") -> int:
        """Return what open attempts reserve this month."""
        return self.log.state.book.reserved(tenant_id, self.month)

    def settled(self, tenant_id: str = "acme") -> int:
        """Return what was spent this month."""
        return self.log.state.book.settled(tenant_id, self.month)

    @property
    def month(self) -> str:
        """The clock's month."""
        from podium_audit.records.run_state import month_of

        return month_of(self.clock.now_ns() // 1_000)
