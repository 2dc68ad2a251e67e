"""The models that files name: an operator's plans and dated pins. A name means one thing or an error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podium_core.config.pins import NO_PINS, Pin, Pins
from podium_core.config.plans import NO_PLANS, StaticPlans
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import StaticPlan
from podium_core.domain.policy import CallerReach, denying_rule
from podium_core.domain.pool import Pool
from podium_gateway.codecs.model_names import ModelName, model_not_found


@dataclass(frozen=True, slots=True)
class NamedModels:
    """Looks names up in the newest good version of each file."""

    plans: Callable[[], StaticPlans] = lambda: NO_PLANS
    pins: Callable[[], Pins] = lambda: NO_PINS

    def static_plan(self, name: ModelName) -> StaticPlan | None:
        """Return the plan that is asked for; None when none is. Raises NOT_FOUND when it does not exist."""
        if name.plan_name is None:
            return None
        found = self.plans().by_name.get(name.plan_name)
        if found is None:
            raise model_not_found(name.model)
        return found

    def pin(self, name: ModelName, pool: Pool) -> Pin | None:
        """Return the pin that is asked for; None when none is.

        Raises PodiumError (NOT_FOUND): nobody has pinned that day, or its pool is no longer loaded.
        """
        if name.pinned_day is None:
            return None
        pin = self.pins().by_day.get(name.pinned_day)
        if pin is None:
            raise model_not_found(name.model)
        if pin.pool_digest != pool.pool_digest:
            raise PodiumError(
                Code.NOT_FOUND,
                f"the pool of {pin.day} is no longer loaded, so {name.model} cannot be served; ask for "
                "podium without a date, or have the operator restore that day's pool.yaml",
                reason="PINNED_POOL_GONE",
                param="model",
            )
        return pin

    def listed_plans(self, reach: CallerReach, pool: Pool) -> Sequence[StaticPlan]:
        """Return the plans that a caller may name: all of their workers exist and are within its reach."""
        return [
            plan
            for plan in self.plans().by_name.values()
            if all(
                (worker := pool.by_id.get(worker_id)) is not None and denying_rule(reach, worker) is None
                for worker_id in plan.worker_ids
            )
        ]

    def listed_pins(self, pool: Pool) -> Sequence[Pin]:
        """Return the pins whose pool is the one that is loaded."""
        return [pin for pin in self.pins().by_day.values() if pin.pool_digest == pool.pool_digest]
