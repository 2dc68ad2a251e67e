"""Everything the conductor can be told, as environment variables `PODIUM_CONDUCTOR_*`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from podium_conductor.planning import PlanningLimits
from podium_core.domain.plan import MAX_STEPS
from podium_core.runtime.settings_base import ServiceSettings, check_listen, settings_config

Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class ConductorSettings(ServiceSettings):
    """The conductor: writes for each question the plan that the workers then perform."""

    model_config = settings_config("CONDUCTOR")

    listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7051"
    """host:port of the gRPC server."""
    engine: Literal["rules"] = "rules"
    """What makes the plans. rules: hand-written rules over the cards, a baseline without a model."""
    max_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = MAX_STEPS
    """Most steps of a plan. A request can only ask for fewer."""
    max_concurrent_plans: Count = 8
    """Plans that are made at the same time; more wait."""
    max_waiting_plans: Annotated[int, Field(ge=0, le=100_000)] = 256
    """Calls that may wait for their turn; more are refused with a time to come back."""
    max_plan_s: Seconds = 60.0
    """Longest time for one plan, waiting included. A call's own deadline can only be shorter."""
    drain_s: Seconds = 10.0
    """How long running calls may take to end when the service stops."""

    @property
    def planning_limits(self) -> PlanningLimits:
        """Bounds of planning."""
        return PlanningLimits(
            max_steps=self.max_steps,
            max_running=self.max_concurrent_plans,
            max_waiting=self.max_waiting_plans,
            max_plan_s=self.max_plan_s,
        )
