"""What the objects are told of themselves: conditions and health, written where they differ."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_core.resources.objects import Cluster, ConflictError, Json, Resource

_log = logging.getLogger(__name__)
_NANOS = 1_000_000_000
_MAX_WRITES = 20
"""Writes of one round; the rest waits for the next one."""
_MAX_MESSAGE_CHARS = 1_024


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object, as `kubectl wait --for=condition=...` reads it."""

    kind: str
    holds: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What is to stand in an object's status, besides times and generation."""

    conditions: tuple[Condition, ...]
    fields: Mapping[str, str | None] = field(default_factory=dict)


class Turn(Protocol):
    """Says whose turn it is to write."""

    async def is_mine(self) -> bool:
        """Whether this replica writes now. Raises PodiumError."""
        ...


class AlwaysMine:
    """For what all replicas find alike: who comes second finds nothing left to write."""

    async def is_mine(self) -> bool:
        """Whether this replica writes now."""
        return True


def accepted(refusal: str | None) -> Condition:
    """Return whether the newest version of an object is in force, and why not."""
    if refusal is None:
        return Condition("Accepted", holds=True, reason="Valid", message="")
    message = f"{refusal[:_MAX_MESSAGE_CHARS]}; a former good version stays in force, if there was one"
    return Condition("Accepted", holds=False, reason="Invalid", message=message)


class StatusWriter:
    """Writes the status of objects where it differs from what `reports` says of them."""

    def __init__(
        self,
        cluster: Cluster,
        reports: Callable[[], Iterable[tuple[Resource, Report]]],
        clock: Clock,
        turn: Turn,
        *,
        interval_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._reports = reports
        self._clock = clock
        self._turn = turn
        self._interval_s = interval_s
        self._sleep = sleep
        self._fails = False

    async def keep(self) -> None:
        """Write now and then until cancelled. A cluster that takes nothing is told of in the log, once."""
        while True:
            try:
                if await self._turn.is_mine():
                    await self.write()
                self._fails = False
            except (PodiumError, ConflictError) as error:
                if not self._fails:
                    text = error.message if isinstance(error, PodiumError) else "somebody else wrote at once"
                    _log.warning("the objects' status cannot be written: %s", text)
                self._fails = True
            await self._sleep(self._interval_s)

    async def write(self) -> int:
        """Write what differs; return how many objects. Raises PodiumError."""
        count = 0
        for resource, report in self._reports():
            wanted = self._status(resource, report)
            if wanted is None:
                continue
            if count == _MAX_WRITES:
                break
            await self._cluster.write_status(resource, wanted)
            count += 1
        return count

    def _status(self, resource: Resource, report: Report) -> Json | None:
        """Return the status to write, or None when it stands there already."""
        known = {each.get("type"): each for each in resource.status.get("conditions", ())}
        wanted: dict[str, Any] = {
            **report.fields,
            "observedGeneration": resource.generation,
            "conditions": [
                self._condition(each, known.get(each.kind, {}), resource) for each in report.conditions
            ],
        }
        if all(resource.status.get(field) == value for field, value in wanted.items()):
            return None
        return wanted

    def _condition(self, condition: Condition, known: Json, resource: Resource) -> dict[str, Any]:
        status = "True" if condition.holds else "False"
        since = known.get("lastTransitionTime") if known.get("status") == status else None
        now = datetime.fromtimestamp(self._clock.now_ns() // _NANOS, UTC)
        return {
            "type": condition.kind,
            "status": status,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": resource.generation,
            "lastTransitionTime": since or now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
