"""An open run as its records tell it: the state is a fold over leaves, so disk and memory cannot differ.

`evolve` is used both when a record is written and when a run is read back after a restart.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from podium_audit.ports import RunRow
from podium_audit.rows.run_search import Facet, FacetRow
from podium_core.domain.run import AttemptKind, RunOutcome
from podium_core.domain.usage import Usage, UsageSource

PARTS_PER_LEAF = 256
STEP_KINDS = frozenset({AttemptKind.STEP, AttemptKind.REPAIR, AttemptKind.CONTINUATION})
"""The kinds of attempt that perform a step of a recorded plan."""
GRADE_NOTE = "grade"
STOP_NOTE = "stop"
"""The kind of the note that stops a run; without a run, a worker or everything."""
CLEARED_NOTE = "stop_cleared"
"""The kind of the note that ends such a stop."""
OWN_NOTES = frozenset({GRADE_NOTE, STOP_NOTE, CLEARED_NOTE})
"""Kinds of notes that mean something to the log itself: they come by calls of their own."""

_US_PER_DAY = 86_400_000_000
_MONTH_CHARS = 7
_NO_USAGE = Usage()


class Use(NamedTuple):
    """What one record adds to the sums of a day. Without a worker it is a request, by the model asked for."""

    day: str
    worker_id: str
    model: str
    requests: int = 0
    attempts: int = 0
    unknown_attempts: int = 0
    usage: Usage = Usage()
    cost_usd_micros: int = 0


class Movement(NamedTuple):
    """What one record moves: USD micros of one month's budget, and what was used."""

    month: str
    reserved: int
    settled: int
    use: Use


class StoredPart(NamedTuple):
    """Where a content part is. `attempt_id` names the attempt whose record carries it."""

    content_no: int
    length: int
    attempt_id: str


@dataclass(frozen=True, slots=True)
class StepRule:
    """What the recorded plan allows one step."""

    workers: tuple[str, str]
    access: frozenset[int]
    sees_previous_round: bool


@dataclass(slots=True)
class Attempt:
    """One attempt and the money it holds."""

    kind: str
    round: int
    step_index: int
    day: str
    max_cost_usd_micros: int
    worker_id: str
    model: str
    is_unknown: bool = False

    @property
    def month(self) -> str:
        """The month whose budget it counts against, YYYY-MM in UTC."""
        return self.day[:_MONTH_CHARS]

    def use(self, *, attempts: int = 0, unknown: int = 0, usage: Usage = _NO_USAGE, cost: int) -> Use:
        """Return what it adds to the sums of the day on which it began."""
        return Use(self.day, self.worker_id, self.model, 0, attempts, unknown, usage, cost)


@dataclass(slots=True)
class RunState:
    """Everything the checks need to know of one run."""

    row: RunRow
    data_key: bytes | None
    allowed: dict[str, bool] = field(default_factory=dict)
    caps: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    plans: list[tuple[StepRule, ...]] = field(default_factory=list)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    open_attempts: dict[str, Attempt] = field(default_factory=dict)
    step_attempts: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    parts: dict[str, StoredPart] = field(default_factory=dict)
    leaf_indices: list[int] = field(default_factory=list)
    reserved_usd_micros: int = 0
    settled_usd_micros: int = 0
    outcome: RunOutcome | None = None
    sealed_cost_usd_micros: int = 0
    is_sealing: bool = False
    grade_ppm: int | None = None
    """Its newest grade; None: nobody has graded it."""
    keeps_content: bool = True
    """Whether its content is stored; else it is committed to, and in memory while the run is open."""
    is_stopped: bool = False
    erasure_index: int | None = None
    """The leaf that decided that its content goes; from then on its key is used no more."""
    erasure_facts: dict[str, Any] = field(default_factory=dict)
    erased_index: int | None = None
    """The leaf under which its content is erased."""
    facets: set[tuple[Facet, str]] = field(default_factory=set)
    """What the run can be found by once it has ended."""

    @property
    def facet_rows(self) -> list[FacetRow]:
        """The rows by which the run is found."""
        found = sorted((facet, value) for facet, value in self.facets if value)
        return [FacetRow(self.row.tenant_id, facet, value, self.row.run_no) for facet, value in found]

    def evolve(self, index: int, record: dict[str, Any]) -> list[Movement]:
        """Take in one record of this run; return the money it moves."""
        facts = record["facts"]
        if record["run_seq"] is not None:
            self.leaf_indices.append(index)
        attempt_id = facts.get("attempt_id", "")
        for place, entry in enumerate(record["contents"]):
            self.parts[entry["part_id"]] = StoredPart(
                index * PARTS_PER_LEAF + place, entry["length"], attempt_id
            )
        match record["type"]:
            case "opened":
                return [self._open(facts, day_of(record["time_us"]))]
            case "plan":
                self.plans.append(_step_rules(facts["steps"]))
            case "note" | "erasure_begun" | "erased" as kind:
                self._remark(kind, index, facts)
            case "attempt_begun":
                return [self._begin(facts, day_of(record["time_us"]))]
            case "attempt_ended":
                return [self._end(attempt_id, facts["cost_usd_micros"], usage_of(facts))]
            case "attempt_late":
                return [self._end_late(self.attempts[attempt_id], facts)]
            case "sealed":
                return self._seal(facts)
        return []

    def _remark(self, kind: str, index: int, facts: dict[str, Any]) -> None:
        if kind == "erasure_begun":
            self.erasure_index, self.erasure_facts, self.data_key = index, facts, None
            return
        if kind == "erased":
            self.erased_index = index
            return
        self.is_stopped = self.is_stopped or facts["kind"] == STOP_NOTE
        if facts["kind"] == GRADE_NOTE and "score_ppm" in facts["facts"]:
            self.grade_ppm = int(facts["facts"]["score_ppm"])

    def _open(self, facts: dict[str, Any], day: str) -> Movement:
        self.kind = facts["kind"]
        self.caps = facts["caps"]
        for verdict in facts["verdicts"]:
            worker_id = verdict["worker_id"]
            self.allowed[worker_id] = verdict["allowed"] and self.allowed.get(worker_id, True)
            if not verdict["allowed"]:
                self.facets.add((Facet.RULE, verdict["rule_id"]))
        self.facets.add((Facet.MODEL, facts["requested_model"]))
        return Movement(day[:_MONTH_CHARS], 0, 0, Use(day, "", facts["requested_model"], requests=1))

    def _begin(self, facts: dict[str, Any], day: str) -> Movement:
        attempt_id, cost = facts["attempt_id"], facts["max_cost_usd_micros"]
        self.facets |= {
            (Facet.WORKER, facts["worker_id"]),
            (Facet.PROVIDER, facts["provider"]),
            (Facet.REGION, facts["region"]),
        }
        attempt = Attempt(
            facts["kind"],
            facts["round"],
            facts["step_index"],
            day,
            cost,
            facts["worker_id"],
            facts["provider_model"],
        )
        self.attempts[attempt_id] = self.open_attempts[attempt_id] = attempt
        if attempt.kind in STEP_KINDS:
            self.step_attempts.setdefault((attempt.round, attempt.step_index), []).append(attempt_id)
        self.reserved_usd_micros += cost
        return Movement(attempt.month, cost, 0, attempt.use(cost=0))

    def _end(self, attempt_id: str, cost: int, usage: Usage | None) -> Movement:
        attempt = self.open_attempts.pop(attempt_id)
        self.reserved_usd_micros -= attempt.max_cost_usd_micros
        self.settled_usd_micros += cost
        unknown = usage is None
        use = attempt.use(attempts=1, unknown=unknown, usage=usage or _NO_USAGE, cost=cost)
        return Movement(attempt.month, -attempt.max_cost_usd_micros, cost, use)

    def _end_late(self, attempt: Attempt, facts: dict[str, Any]) -> Movement:
        attempt.is_unknown = False
        difference = facts["cost_usd_micros"] - attempt.max_cost_usd_micros
        self.settled_usd_micros += difference
        use = attempt.use(unknown=-1, usage=usage_of(facts), cost=difference)
        return Movement(attempt.month, 0, difference, use)

    def _seal(self, facts: dict[str, Any]) -> list[Movement]:
        self.outcome = RunOutcome(facts["outcome"])
        self.facets.add((Facet.OUTCOME, facts["outcome"]))
        self.sealed_cost_usd_micros = facts["cost_usd_micros"]
        movements = []
        for attempt_id in facts["unknown_attempts"]:
            attempt = self.attempts[attempt_id]
            attempt.is_unknown = True
            movements.append(self._end(attempt_id, attempt.max_cost_usd_micros, None))
        return movements


def _step_rules(steps: Iterable[dict[str, Any]]) -> tuple[StepRule, ...]:
    return tuple(
        StepRule(
            (step["worker_id"], step["fallback_worker_id"]),
            frozenset(step["access"]),
            step["sees_previous_round"],
        )
        for step in steps
    )


def usage_of(facts: dict[str, Any]) -> Usage:
    """Return the token counts that a record of an attempt's end holds."""
    counts = facts["usage"]
    return Usage(**{**counts, "source": UsageSource(counts["source"])})


def day_of(time_us: int) -> str:
    """Return the UTC day, YYYY-MM-DD, of a time in microseconds since the epoch."""
    return _day_text(time_us // _US_PER_DAY)


def month_of(time_us: int) -> str:
    """Return the UTC calendar month, YYYY-MM, of a time in microseconds since the epoch."""
    return day_of(time_us)[:_MONTH_CHARS]


@lru_cache(maxsize=8)
def _day_text(day: int) -> str:
    return datetime.fromtimestamp(day * _US_PER_DAY // 1_000_000, UTC).strftime("%Y-%m-%d")
