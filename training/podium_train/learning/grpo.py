"""Group-relative policy optimisation of the plan model: every plan against the others for the same question.

The gradient is that of Dr. GRPO (arXiv 2503.20783): reward less the group's mean, not divided by the group's
deviation, summed over a plan's choices and never averaged by its length. Each batch is used once, so no ratio
needs clipping. A KL term to the warm start fades out. Rewards are 0, 0.5 and 1; groups without difference
teach nothing.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import MAX_STEPS
from podium_core.plan_model.choices import Choice, Kind
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.words import Floats
from podium_train.learning.rollouts import Rollout, sampled, see
from podium_train.learning.sources import QuestionSource
from podium_train.policy.twin import Batch, Twin, batches_of

_REWARD_UNIT = 0.25


_LEAST_OF_A_RIGHT_PLAN = 0.55
"""However lavish: a valid plan with a wrong answer gains 0.5."""


@dataclass(frozen=True, slots=True)
class GrpoOptions:
    """How reinforcement learns. `kl` fades linearly to `kl_floor` over `kl_steps` steps.

    Right plans are charged `step_cost` for each step after the first and `sight_cost` for each earlier result
    that a step is shown, so that of right plans the leaner one wins; the most lavish still gains more than a
    wrong one. Reported rewards are never charged.
    """

    steps: int = 200
    questions: int = 48
    rollouts: int = 16
    learning_rate: float = 2e-3
    kl: float = 0.15
    kl_steps: int = 80
    kl_floor: float = 0.02
    entropy: float = 0.0
    max_norm: float = 1.0
    step_cost: float = 0.01
    sight_cost: float = 0.1
    max_steps: int = MAX_STEPS
    most_unscorable: float = 0.2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StepFigures:
    """What one step showed: over its sampled plans, and of the update."""

    step: int
    reward: float
    validity: float
    accuracy_given_valid: float
    worker_entropy: float
    mean_steps: float
    zero_variance: float
    unscorable: float
    kl: float = 0.0
    step_histogram: Mapping[int, int] = field(default_factory=dict)
    reward_by_kind: Mapping[str, float] = field(default_factory=dict)


class Grpo:
    """The learner: a twin, its optimiser, and what the warm start was."""

    def __init__(
        self,
        model: PlanModel,
        twin: Twin,
        sources: Sequence[tuple[QuestionSource, float]],
        options: GrpoOptions,
    ) -> None:
        self.model = model
        self.twin = twin
        self.options = options
        self.step = 0
        self._sources = sources
        self._start: dict[str, Floats] = twin.export()
        self._reference = Twin(model.encoder.width)
        self._reference.load(self._start)
        self._optimiser = torch.optim.AdamW(twin.parameters(), lr=options.learning_rate, weight_decay=0.0)

    def current(self) -> PlanModel:
        """Return the plan model with the networks as they are now."""
        return self.model.with_networks(self.twin.export())

    def advance(self) -> StepFigures:
        """Do one step: draw questions, try plans, update. Seed, step and weights decide all of it.

        Raises PodiumError BATCH_UNSCORABLE, with nothing changed, when too many plans could not be scored.
        """
        options = self.options
        rng = random.Random(f"grpo {options.seed} {self.step}")  # noqa: S311 - reproducible, not secret
        model = self.current()
        groups: list[tuple[str, list[Rollout]]] = []
        for number in range(options.questions):
            source = rng.choices([s for s, _ in self._sources], [w for _, w in self._sources])[0]
            question = source.draw(rng)
            seed = (options.seed, self.step, number)
            groups.append(
                (
                    question.kind,
                    sampled(see(model, question, options.max_steps), question, options.rollouts, seed),
                )
            )
        figures = figures_of(self.step + 1, groups)
        if figures.unscorable > options.most_unscorable:
            raise PodiumError(
                Code.UNAVAILABLE,
                f"step {figures.step} was refused: {figures.unscorable:.0%} of its plans were not scored; "
                "repair what scores them and run the same command again to go on",
                reason="BATCH_UNSCORABLE",
            )
        kl = self._update([rollouts for _, rollouts in groups])
        self.step += 1
        return replace(figures, kl=kl)

    def _update(self, groups: Sequence[Sequence[Rollout]]) -> float:
        choices: list[Choice] = []
        owners: list[int] = []
        advantages: list[float] = []
        for group in groups:
            gains = [(rollout, gain) for rollout in group if (gain := self._gain(rollout)) is not None]
            if not gains or len({gain for _, gain in gains}) == 1:
                continue
            mean = sum(gain for _, gain in gains) / len(gains)
            for rollout, gain in gains:
                choices += rollout.choices
                owners += [len(advantages)] * len(rollout.choices)
                advantages.append((gain - mean) / _REWARD_UNIT)
        if not advantages:
            return 0.0
        options = self.options
        batches = batches_of(choices)
        judged = self.twin.judge(batches, len(choices))
        plans = torch.zeros(len(advantages)).index_add(0, torch.tensor(owners), judged.log_probability)
        count = sum(len(group) for group in groups)
        loss = -(torch.tensor(advantages) * plans).sum() / count
        weight = max(options.kl_floor, options.kl * (1.0 - self.step / max(options.kl_steps, 1)))
        divergence = self._divergence(batches) / count
        if weight:
            loss = loss + weight * divergence
        if options.entropy:
            loss = loss - options.entropy * judged.entropy.sum() / count
        for group_ in self._optimiser.param_groups:
            group_["lr"] = options.learning_rate * max(0.05, 1.0 - self.step / options.steps)
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.twin.parameters(), options.max_norm)
        self._optimiser.step()
        return float(divergence.detach())

    def _gain(self, rollout: Rollout) -> float | None:
        """Return the reward, less a little for every needless step and look of a plan that was right.

        Plans that were wrong pay nothing: else longer ones would die out before they are understood.
        """
        if rollout.reward is None or not rollout.outcome.is_right:
            return rollout.reward
        options = self.options
        steps = len(rollout.rows) - 1
        charged = rollout.reward - options.step_cost * steps - options.sight_cost * rollout.sights
        return max(charged, _LEAST_OF_A_RIGHT_PLAN)

    def _divergence(self, batches: Mapping[Kind, Batch]) -> Tensor:
        """Return the summed KL divergence from the warm start over all choices, in nats."""
        total = torch.zeros(())
        for kind, batch in batches.items():
            logs = functional.log_softmax(self.twin.logits_of(kind, batch), dim=1).masked_fill(
                ~batch.allowed, 0.0
            )
            with torch.no_grad():
                before = functional.log_softmax(self._reference.logits_of(kind, batch), dim=1)
                before = before.masked_fill(~batch.allowed, 0.0)
            chances = logs.exp().masked_fill(~batch.allowed, 0.0)
            total = total + (chances * (logs - before)).sum()
        return total

    def state(self) -> dict[str, Any]:
        """Return everything a resumed run needs to go on along the same curve."""
        return {
            "step": self.step,
            "arrays": self.twin.export(),
            "start": self._start,
            "optimiser": self._optimiser.state_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state that `state` gave."""
        self.step = int(state["step"])
        self.twin.load(state["arrays"])
        self._start = state["start"]
        self._reference.load(self._start)
        self._optimiser.load_state_dict(state["optimiser"])


def figures_of(step: int, groups: Sequence[tuple[str, Sequence[Rollout]]]) -> StepFigures:
    """Return the figures of a step's plans, grouped by question."""
    every = [rollout for _, group in groups for rollout in group]
    scored = [(kind, r) for kind, group in groups for r in group if r.reward is not None]
    valid = [r for _, r in scored if r.reward]
    by_kind: dict[str, list[float]] = {}
    for kind, rollout in scored:
        by_kind.setdefault(kind, []).append(rollout.reward or 0.0)
    zero = [len({r.reward for r in group}) == 1 for _, group in groups]
    return StepFigures(
        step=step,
        reward=_mean([rollout.reward or 0.0 for _, rollout in scored]),
        validity=len(valid) / max(len(scored), 1),
        accuracy_given_valid=_mean([float(r.outcome.is_right) for r in valid]),
        worker_entropy=worker_entropy(every),
        mean_steps=_mean([len(r.rows) for r in every]),
        zero_variance=_mean([float(flag) for flag in zero]),
        unscorable=1.0 - len(scored) / max(len(every), 1),
        step_histogram=dict(sorted(Counter(len(r.rows) for r in every).items())),
        reward_by_kind={kind: _mean(values) for kind, values in sorted(by_kind.items())},
    )


def worker_entropy(rollouts: Sequence[Rollout]) -> float:
    """Return the entropy (nats) of which worker the steps went to, over the workers' ids."""
    counts = Counter(step.worker_id for rollout in rollouts for step in rollout.outcome.steps)
    shares = np.asarray(list(counts.values()), np.float64)
    shares = shares / max(shares.sum(), 1.0)
    return float(-(shares * np.log(shares)).sum())


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


Watch = Callable[[StepFigures], None]
"""Is told of every step."""
