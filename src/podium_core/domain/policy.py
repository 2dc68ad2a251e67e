"""Who may use which workers: filters, and the verdicts with the rule that decided each."""

from dataclasses import dataclass

ALLOW_RULE_ID = "default.allow"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One policy decision about one worker, with the stable id of the rule that made it."""

    worker_id: str
    allowed: bool
    rule_id: str = ALLOW_RULE_ID


@dataclass(frozen=True, slots=True)
class WorkerFilter:
    """Which workers somebody wants: `only` these (None: any) and none of `excluded`."""

    only: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
