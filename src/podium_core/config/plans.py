"""`plans.yaml`: plans that an operator has written, each served under the model name `plan/<name>`."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from podium_core.config.yaml_file import Document, Ident, ListOf, Section, read_document
from podium_core.domain.plan import MAX_STEPS, Access, Plan, PlanSource, StaticPlan, Step

_MAX_PLANS = 200
_MAX_SUBTASK = 8_192


@dataclass(frozen=True, slots=True)
class StaticPlans:
    """All plans of one version of the file, by name, in its order."""

    by_name: Mapping[str, StaticPlan]


NO_PLANS = StaticPlans({})


def load_plans(path: Path) -> StaticPlans:
    """Return what `plans.yaml` says; raise PodiumError (INVALID_REQUEST) naming line and mistake."""
    document = read_document(path, _PlansFile)
    plans: dict[str, StaticPlan] = {}
    for index, section in enumerate(document.content.plans):
        if section.name in plans:
            raise document.error(("plans", index, "name"), f"there are two plans {section.name!r}")
        plans[section.name] = _static_plan(document, index, section)
    return StaticPlans(plans)


class _StepSection(Section):
    worker: Ident
    subtask: Annotated[str, StringConstraints(max_length=_MAX_SUBTASK)] = ""
    # `all`: every earlier step.
    sees: Literal["all"] | ListOf[Annotated[int, Field(ge=0, lt=MAX_STEPS)]] = ()
    fallback: Ident | None = None


class _PlanSection(Section):
    name: Ident
    description: Annotated[str, StringConstraints(max_length=256)] = ""
    steps: Annotated[tuple[_StepSection, ...], Field(min_length=1, max_length=MAX_STEPS)]


class _PlansFile(Section):
    plans: Annotated[ListOf[_PlanSection], Field(max_length=_MAX_PLANS)] = ()


def _static_plan(document: Document[_PlansFile], index: int, section: _PlanSection) -> StaticPlan:
    steps: list[Step] = []
    for number, step in enumerate(section.steps):
        place = ("plans", index, "steps", number)
        if isinstance(step.sees, str):
            seen = tuple(range(number))
        else:
            seen = tuple(sorted(set(step.sees)))
            if seen and seen[-1] >= number:
                raise document.error(
                    (*place, "sees"),
                    f"step {number} may see earlier steps only, counted from 0; {seen[-1]} is none",
                )
        if step.fallback == step.worker:
            raise document.error((*place, "fallback"), "the fallback must be another worker")
        steps.append(Step(step.worker, step.subtask, Access(seen), step.fallback))
    _refuse_unread(document, index, steps)
    plan = Plan(tuple(steps), PlanSource.STATIC)
    digest = sha256(f"podium-static-plan/1 {section.name} {plan!r}".encode()).hexdigest()
    return StaticPlan(section.name, plan, digest, section.description)


def _refuse_unread(document: Document[_PlansFile], index: int, steps: list[Step]) -> None:
    """A step whose output nobody sees is paid for in vain: surely a mistake."""
    seen = {each for step in steps for each in step.access.steps}
    for number in range(len(steps) - 1):
        if number not in seen:
            raise document.error(
                ("plans", index, "steps", number), f"no later step sees step {number}; add it to its sees"
            )
