"""Everything the conductor can be told, as environment variables `PODIUM_CONDUCTOR_*`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from podium_conductor.engines.worker.engine import WorkerEngineOptions
from podium_conductor.planning import PlanningLimits
from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.plan_prompt import NameMasking
from podium_core.runtime.settings_base import ServiceSettings, check_listen, settings_config

Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class ConductorSettings(ServiceSettings):
    """The conductor: writes for each question the plan that the workers then perform."""

    model_config = settings_config("CONDUCTOR")

    listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7051"
    """host:port of the gRPC server."""
    engine: Literal["rules", "worker"] = "rules"
    """What makes the plans. rules: hand-written rules over the cards, a baseline without a model. worker: a
    worker of the pool, prompted as Conductor through the router, on each run's account."""
    router_address: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7052"
    """host:port of the router. Only the engine `worker` calls it."""
    planning_worker: str = ""
    """The worker that plans for the engine `worker`; it must be eligible for the run. Empty: the best
    eligible worker by card."""
    planning_output_tokens: Annotated[int, Field(ge=64, le=32_768)] = 1_024
    """Output limit of one plan by the engine `worker`."""
    max_generations: Annotated[int, Field(ge=1, le=8)] = 3
    """Most tries for a plan that can be read, the first included; each broken rule is told back."""
    name_masking: NameMasking = NameMasking.ORDINAL
    """What a model is told of workers besides their cards. ordinal: nothing; sized: parameter counts; named:
    provider and model. The last two need a gateway that tells them (tell_worker_names)."""
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
    def worker_engine(self) -> WorkerEngineOptions:
        """Bounds of the engine `worker`."""
        return WorkerEngineOptions(
            worker_id=self.planning_worker,
            max_generations=self.max_generations,
            max_output_tokens=self.planning_output_tokens,
            masking=self.name_masking,
        )

    @property
    def planning_limits(self) -> PlanningLimits:
        """Bounds of planning."""
        return PlanningLimits(
            max_steps=self.max_steps,
            max_running=self.max_concurrent_plans,
            max_waiting=self.max_waiting_plans,
            max_plan_s=self.max_plan_s,
        )
