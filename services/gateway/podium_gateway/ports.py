"""What the HTTP edge needs from the rest of the process, besides the runner's own ports."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.errors import PodiumError
from podium_core.domain.pool import Pool
from podium_core.orchestration.events import RunEvent
from podium_core.orchestration.request import RunRequest


class RunnerPort(Protocol):
    """Performs runs: `podium_core.orchestration.runner.Runner`."""

    def run(self, request: RunRequest, pool: Pool) -> AsyncGenerator[RunEvent, None]:
        """Yield the run's events, the last being RunFinished."""
        ...


class PoolPort(Protocol):
    """Knows the workers of this moment."""

    def current(self) -> Pool:
        """Return the pool; raise PodiumError (UNAVAILABLE) while it was never loaded."""
        ...


class LeasePort(Protocol):
    """Keeps live runs alive in the log and hears which of them must stop."""

    def track(self, run_id: str, stop: Callable[[PodiumError], None]) -> None:
        """Call `stop` once if the run is lost or somebody cancels it."""
        ...

    def forget(self, run_id: str) -> None:
        """The run has ended, however it did."""
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this gateway can serve, and which service is in the way."""

    is_ready: bool
    checks: Mapping[str, str]

    @property
    def status(self) -> str:
        """`ready`, `degraded` (a service is missing that runs can do without) or `unready`."""
        if not self.is_ready:
            return "unready"
        return "ready" if all(state == "up" for state in self.checks.values()) else "degraded"


class ReadinessPort(Protocol):
    """Looks at the services behind the gateway."""

    async def check(self) -> Readiness:
        """Return what is reachable now, within about a second."""
        ...
