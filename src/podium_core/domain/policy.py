"""Who may use which workers: filters, and the verdicts with the rule that decided each."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from podium_core.domain.pool import Worker

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

    def broken_by(self, name: str) -> str | None:
        """Return which of the two lists keeps `name` out, `only` or `except`; None: neither does."""
        if self.only is not None and name not in self.only:
            return "only"
        return "except" if name in self.excluded else None


@dataclass(frozen=True, slots=True)
class Reach:
    """Allow and deny lists of one owner, `policy.<name>`, `tenant` or `key`: a worker must pass all three.

    They name workers by id, by provider (the protocol family) and by region. A worker whose region is not
    known passes no list of allowed regions.
    """

    owner: str
    workers: WorkerFilter = WorkerFilter()
    providers: WorkerFilter = WorkerFilter()
    regions: WorkerFilter = WorkerFilter()

    def denying_rule(self, worker: Worker) -> str | None:
        """Return the id of the rule that keeps the worker out, such as `tenant.regions.only`, or None."""
        for what, lists, name in (
            ("workers", self.workers, worker.worker_id),
            ("providers", self.providers, worker.provider),
            ("regions", self.regions, worker.region),
        ):
            if (broken := lists.broken_by(name)) is not None:
                return f"{self.owner}.{what}.{broken}"
        return None


CallerReach = tuple[Reach, ...]
"""Everybody's lists that hold for one caller."""


@lru_cache(maxsize=1_024)
def policy_digest(reach: CallerReach) -> str:
    """Return the SHA-256, hex, of the allow and deny lists that hold for a caller, in canonical JSON."""
    lists = [
        {
            "owner": one.owner,
            **{
                what: {"only": None if of.only is None else sorted(of.only), "except": sorted(of.excluded)}
                for what, of in (
                    ("workers", one.workers),
                    ("providers", one.providers),
                    ("regions", one.regions),
                )
            },
        }
        for one in reach
    ]
    return sha256(json.dumps(lists, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def denying_rule(reach: CallerReach, worker: Worker) -> str | None:
    """Return the id of the first rule of `reach` that keeps the worker out, or None."""
    return next((rule for lists in reach if (rule := lists.denying_rule(worker)) is not None), None)


def within_reach(reach: CallerReach, workers: Iterable[Worker]) -> Sequence[Worker]:
    """Return the workers that `reach` lets a caller know of and use."""
    return [worker for worker in workers if denying_rule(reach, worker) is None]


def is_reach_rule(rule_id: str) -> bool:
    """Whether the rule comes from lists that the caller may not see past: the installation's, its own."""
    return rule_id.startswith(("policy.", "tenant.", "key."))
