"""What the engine needs: someone who performs an attempt of kind plan."""

from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class PlanCall:
    """One attempt to get a plan out of a worker. `messages` are (role, text) pairs."""

    attempt_id: str
    run_id: str
    tenant_id: str
    round: int
    worker_id: str
    pool_digest: str
    messages: tuple[tuple[str, str], ...]
    max_output_tokens: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class PlanText:
    """What came back, and what it took."""

    text: str
    usage: Usage
    cost_usd_micros: int
    latency_us: int


class PlanCalls(Protocol):
    """Performs plan attempts."""

    async def complete(self, call: PlanCall) -> PlanText:
        """Return the worker's whole reply.

        Raises PodiumError like the router; `permitted` in its metadata says that the attempt may have cost.
        """
        ...
