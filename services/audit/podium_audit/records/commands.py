"""What callers ask of the log, as values. Each writing command is one event with its request's digest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from podium_core.config.retention import Retention
from podium_core.domain.plan import Plan
from podium_core.domain.policy import Verdict
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, RunKind, RunOutcome
from podium_core.domain.usage import Usage

HISTORY_EVENTS = "audit.history."
"""How the event ids of what befell the log itself begin."""


@dataclass(frozen=True, slots=True)
class Event:
    """Who asks, under which id. The same id with another digest is a conflict."""

    event_id: str
    digest: bytes
    service: str

    @classmethod
    def own(cls, event_id: str) -> "Event":
        """Return an event of audit itself, which asks for one thing only under its id."""
        return cls(event_id, sha256(event_id.encode()).digest(), "audit")


@dataclass(frozen=True, slots=True)
class Part:
    """Content to be sealed under the run's key. `part_id` is unique within the run."""

    part_id: str
    name: str
    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WorkerChance:
    """The probability of one worker at one step's choice, in millionths."""

    worker_id: str
    raw_ppm: int
    eligible_ppm: int


@dataclass(frozen=True, slots=True)
class PlanEvidence:
    """A plan and why it is so. `choices` holds (step index, chances)."""

    plan: Plan
    model_digest: str = ""
    choices: tuple[tuple[int, tuple[WorkerChance, ...]], ...] = ()
    usage: Usage = Usage()
    seed: int = 0
    generation_count: int = 0
    fallback_reason: str = ""
    tokenizer_digest: str = ""
    template_digest: str = ""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Open a run; with a refusal reason, seal it at once."""

    event: Event
    run_id: str
    kind: RunKind
    tenant_id: str
    principal_id: str
    requested_model: str
    verdicts: tuple[Verdict, ...]
    caps: Caps
    plan: PlanEvidence | None = None
    contents: tuple[Part, ...] = ()
    pool_digest: str = ""
    price_digest: str = ""
    policy_digest: str = ""
    trace_id: str = ""
    lease_ms: int = 0
    refusal_reason: str = ""
    continues_run_id: str = ""
    tenant_budget_usd_micros: int | None = None
    key_budget_usd_micros: int | None = None
    subject: str = ""
    """The pseudonym of the person it is for."""


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """Record the plan of the run's next round."""

    event: Event
    run_id: str
    plan: PlanEvidence
    contents: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class AppendNote:
    """Record a short fact about a run, or about none (empty `run_id`)."""

    event: Event
    run_id: str
    kind: str
    facts: Mapping[str, str]
    contents: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class PutContent:
    """Store one content part of an open run."""

    event: Event
    run_id: str
    part: Part


@dataclass(frozen=True, slots=True)
class BodyPiece:
    """A piece of a body: a stored part, or bytes that come along. One of the two is empty."""

    part_id: str
    inline: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class BeginAttempt:
    """Ask for the permit of one attempt. Its id is the event id."""

    event: Event
    run_id: str
    kind: AttemptKind
    round: int
    step_index: int
    worker_id: str
    provider: str
    provider_model: str
    region: str
    endpoint_host: str
    seen_steps: tuple[int, ...]
    sees_previous_round: bool
    body: tuple[BodyPiece, ...]
    body_sha256: bytes
    max_cost_usd_micros: int
    price_digest: str
    pool_digest: str


@dataclass(frozen=True, slots=True)
class EndAttempt:
    """Say how an attempt ended and what it cost."""

    event: Event
    attempt_id: str
    run_id: str
    outcome: AttemptOutcome
    usage: Usage
    cost_usd_micros: int
    latency_us: int = 0
    finish_reason: str = ""
    error_reason: str = ""
    provider_response_id: str = ""
    served_model: str = ""
    dispatched: bool = True
    contents: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Seal:
    """Close a run. While attempts are open only `settle_open` closes it: they count as unknown."""

    event: Event
    run_id: str
    outcome: RunOutcome
    error_reason: str = ""
    contents: tuple[Part, ...] = ()
    settle_open: bool = False


@dataclass(frozen=True, slots=True)
class RecordRead:
    """Record that somebody reads a run, or (`run_id` empty) about a tenant's runs, before the answer is made.

    `facts` are further ones, such as the case that content is read for.
    """

    event: Event
    run_id: str
    principal_id: str
    action: str
    with_content: bool
    tenant_id: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopRun:
    """Stop a run for good. With a tenant, only if the run is that tenant's."""

    event: Event
    run_id: str
    tenant_id: str
    principal_id: str


@dataclass(frozen=True, slots=True)
class SetStop:
    """Stop a worker (empty: every worker) for a tenant (empty: for all), or let it work again."""

    event: Event
    tenant_id: str
    worker_id: str
    principal_id: str
    stands: bool


@dataclass(frozen=True, slots=True)
class Grade:
    """Record what the key that made a run, or with `of_any_key` another, thinks of it: 0 to 1,000,000."""

    event: Event
    run_id: str
    tenant_id: str
    principal_id: str
    score_ppm: int
    comment: str = field(repr=False)
    of_any_key: bool = False


@dataclass(frozen=True, slots=True)
class RecordHistory:
    """Record what befell the log itself: a change of its key, or a loss. Only we ourselves do."""

    event: Event
    type: str
    facts: Mapping[str, Any]
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class BeginErasure:
    """Decide that a run's content goes. A hold refuses it; the refusal is a record too."""

    event: Event
    run_id: str
    tenant_id: str
    principal_id: str
    basis: str
    case_id: str = ""


@dataclass(frozen=True, slots=True)
class FinishErasure:
    """Record that a run's content is gone: its key is destroyed, which the log checks."""

    event: Event
    run_id: str
    key_backup_days: int


@dataclass(frozen=True, slots=True)
class PlaceHold:
    """Forbid erasure and expiry of some runs, or (none named) of every run of a tenant."""

    event: Event
    tenant_id: str
    hold_id: str
    case_id: str
    principal_id: str
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseHold:
    """End a hold; another key must have approved it."""

    event: Event
    tenant_id: str
    hold_id: str
    principal_id: str
    approval_id: str


@dataclass(frozen=True, slots=True)
class RequestApproval:
    """Ask for a second pair of eyes on one action on one target, for a case."""

    event: Event
    tenant_id: str
    approval_id: str
    action: str
    target: str
    case_id: str
    principal_id: str
    expires_us: int


@dataclass(frozen=True, slots=True)
class GiveApproval:
    """Approve what another key asked for, before it expires."""

    event: Event
    tenant_id: str
    approval_id: str
    principal_id: str


@dataclass(frozen=True, slots=True)
class SetRetention:
    """Take a tenant's retention policy over; one that stands already changes nothing."""

    event: Event
    tenant_id: str
    retention: Retention


@dataclass(frozen=True, slots=True)
class DropEvidence:
    """Record that a month of a tenant's records is about to be dropped, or is."""

    event: Event
    tenant_id: str
    shelf: int
    month: str
    evidence_days: int
    is_done: bool


CustodyCommand = (
    BeginErasure
    | FinishErasure
    | PlaceHold
    | ReleaseHold
    | RequestApproval
    | GiveApproval
    | SetRetention
    | DropEvidence
)
"""A command about the keeping of records."""

RunCommand = (
    AppendPlan | AppendNote | PutContent | BeginAttempt | EndAttempt | Seal | RecordRead | StopRun | Grade
)
"""A command about a run that is there already; only a note may name none."""

Command = OpenRun | RunCommand | SetStop | RecordHistory | CustodyCommand


@dataclass(frozen=True, slots=True)
class TenantMoney:
    """A tenant's money of one month, or that of its key `key_id`; `budget_usd_micros` None: not limited."""

    tenant_id: str
    month: str
    budget_usd_micros: int | None
    settled_usd_micros: int
    reserved_usd_micros: int
    key_id: str = ""


@dataclass(slots=True)
class Applied:
    """What became of a command. `checkpoint` is filled in when it is committed.

    `run_leaf_indices` and `cost_usd_micros` are set once the run is sealed. `open_attempts` above 0
    answers a `Seal` that closed nothing yet; `money` comes with one that did. `is_new` is false where an
    event is repeated. `refusal` is the reason of an erasure that was refused on record; `erased_index` the
    leaf under which a run's content is erased.
    """

    leaf_indices: tuple[int, ...] = ()
    checkpoint: str = ""
    late: bool = False
    open_attempts: int = 0
    run_leaf_indices: tuple[int, ...] = ()
    cost_usd_micros: int = 0
    money: tuple[TenantMoney, ...] = ()
    refusal: str = ""
    erased_index: int | None = None
    is_new: bool = field(default=True, compare=False)
