"""Plans: which worker does which subtask and which earlier outputs it may see."""

from dataclasses import dataclass
from enum import StrEnum

MAX_STEPS = 5


class PlanSource(StrEnum):
    """Who made a plan. Shown wherever the plan is shown."""

    MODEL = "model"
    EMBEDDED = "embedded"
    WORKER = "worker"
    RULES = "rules"
    NAMED = "named"
    STATIC = "static"
    FALLBACK = "fallback"
    FAST = "fast"
    CONTINUATION = "continuation"


@dataclass(frozen=True, slots=True)
class Access:
    """What a step may see besides the question: earlier steps of its round, and the last round's answer."""

    steps: tuple[int, ...] = ()
    previous_round: bool = False

    def __post_init__(self) -> None:
        if list(self.steps) != sorted(set(self.steps)) or (self.steps and self.steps[0] < 0):
            raise ValueError("access steps must be distinct, ascending and not negative")


@dataclass(frozen=True, slots=True)
class Step:
    """One worker, one subtask, one access. An empty subtask passes the question through unchanged."""

    worker_id: str
    subtask: str
    access: Access = Access()
    fallback_worker_id: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A workflow for one round. Without steps it accepts the previous round's answer."""

    steps: tuple[Step, ...]
    source: PlanSource
    round: int = 0

    def __post_init__(self) -> None:
        if not self.steps and self.round == 0:
            raise ValueError("the first round's plan needs a step")
        for index, step in enumerate(self.steps):
            if step.access.steps and step.access.steps[-1] >= index:
                raise ValueError(f"step {index} may see only earlier steps")
            if step.access.previous_round and self.round == 0:
                raise ValueError("the first round has no previous round to see")

    @property
    def depth(self) -> int:
        """The longest chain of steps that wait for each other: the number of serial attempts."""
        depths: list[int] = []
        for step in self.steps:
            depths.append(1 + max((depths[seen] for seen in step.access.steps), default=0))
        return max(depths, default=0)


@dataclass(frozen=True, slots=True)
class StaticPlan:
    """A plan that an operator has written. `digest` pins it: what the record names as the plan's maker."""

    name: str
    plan: Plan
    digest: str
    description: str = ""

    @property
    def worker_ids(self) -> frozenset[str]:
        """The workers that must do its steps; those that may step in for them are not among them."""
        return frozenset(step.worker_id for step in self.plan.steps)
