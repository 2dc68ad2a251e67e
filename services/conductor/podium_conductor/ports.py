"""What the service needs from an engine, be it an embedded model, a worker or vLLM."""

from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.plan import PlanSource
from podium_core.orchestration.ports import PlanQuery, PlanReply


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """What is loaded, down to digests (SHA-256, hex); empty where an engine has no such part.

    `has_probabilities` says that replies carry the chance of every eligible worker at each choice, which
    `podium-fast` needs. `makes_attempts` says that runs must be open before they are planned.
    """

    engine: str
    source: PlanSource
    model_digest: str
    tokenizer_digest: str = ""
    template_digest: str = ""
    tiers: tuple[str, ...] = ("podium", "podium-max")
    has_probabilities: bool = False
    makes_attempts: bool = False


class Engine(Protocol):
    """Makes plans. One instance serves many calls at once."""

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:
        """Return a plan within the query's caps, with the text it was parsed from and its evidence.

        With `query.explain` the reply holds the prompt too.
        `deadline_ns` is a reading of the monotonic clock; the caller cancels the call when it passes, so it
        serves only to set time limits on other machines. Raises PodiumError: PLAN_INVALID, whose reason names
        the broken rule, when no valid plan came after the engine's own retries; UNAVAILABLE when it has no
        model to ask.
        """
        ...

    def describe(self) -> EngineDescription:
        """Return what is loaded now."""
        ...

    async def close(self) -> None:
        """Let go of everything; no call is running."""
        ...
