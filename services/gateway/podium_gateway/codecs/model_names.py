"""What a model name asks for: a tier, a tier as of a day, one worker, or an operator's plan."""

import re
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER
from podium_gateway.codecs.strict_json import shown

TIERS = (TIER, FAST_TIER, MAX_TIER)
WORKER_TIER = "worker"
PLAN_TIER = "plan"
WORKER_PREFIX = f"{WORKER_TIER}/"
PLAN_PREFIX = f"{PLAN_TIER}/"
PIN_PREFIX = f"{TIER}@"

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model name, taken apart. At most one of worker, plan and day is set.

    `tier` is how the run is planned: a tier's name, or `worker` or `plan` where no plan is made.
    """

    model: str
    tier: str
    worker_id: str | None = None
    plan_name: str | None = None
    pinned_day: str | None = None


def model_name(model: str) -> ModelName:
    """Return what `model` asks for; raise PodiumError (NOT_FOUND) for a name of no known form."""
    if model in TIERS:
        return ModelName(model, model)
    if model.startswith(WORKER_PREFIX) and len(model) > len(WORKER_PREFIX):
        return ModelName(model, WORKER_TIER, worker_id=model.removeprefix(WORKER_PREFIX))
    if model.startswith(PLAN_PREFIX) and len(model) > len(PLAN_PREFIX):
        return ModelName(model, PLAN_TIER, plan_name=model.removeprefix(PLAN_PREFIX))
    day = model.removeprefix(PIN_PREFIX)
    if model.startswith(PIN_PREFIX) and _DAY.fullmatch(day):
        return ModelName(model, TIER, pinned_day=day)
    raise model_not_found(model)


def model_not_found(model: str) -> PodiumError:
    """Return the error for a model name that this gateway does not serve."""
    return PodiumError(
        Code.NOT_FOUND,
        f"the model {shown(model)} does not exist here; GET /v1/models lists those that do",
        reason="MODEL_NOT_FOUND",
        param="model",
    )
