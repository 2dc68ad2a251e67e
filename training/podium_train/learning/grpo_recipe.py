"""Named settings of a GRPO run of a language model. A recipe with its seed and data makes one curve."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from podium_core.domain.errors import invalid
from podium_train.learning.collapse import CollapseLimits


class Loss(StrEnum):
    """How token losses are added up. The per-sequence mean ("grpo") is left out: it favours short plans."""

    DR_GRPO = "dr_grpo"
    """Divided by the completion cap (arXiv 2503.20783)."""
    DAPO = "dapo"
    """Divided by the number of tokens in the batch (arXiv 2503.14476)."""


class AdvantageScale(StrEnum):
    """What a reward's distance from its group's mean is divided by."""

    NONE = "none"
    """Nothing: with rewards 0, 0.5 and 1, one format error would otherwise dominate its group."""
    BATCH = "batch"
    GROUP = "group"


class Generation(StrEnum):
    """What writes the completions."""

    TRANSFORMERS = "transformers"
    VLLM_COLOCATE = "colocate"
    VLLM_SERVER = "server"


@dataclass(frozen=True, slots=True)
class GrpoRecipe:
    """Settings of a run. One iteration draws `prompts` tasks and writes `rollouts` plans for each.

    `pass_size` completions go through one forward and backward pass on one device. Weights and optimiser
    state are 32-bit always; `autocast_bf16` lowers only the arithmetic. `kl` 0 holds no reference model.
    Learning rate: `learning_rate`, warmed up over `warmup_share` of the iterations, then by `schedule`.
    """

    name: str
    iterations: int
    prompts: int
    rollouts: int
    pass_size: int
    completion_tokens: int
    context_tokens: int
    learning_rate: float
    warmup_share: float = 0.03
    schedule: str = "cosine"
    adam_betas: tuple[float, float] = (0.9, 0.999)
    temperature: float = 1.0
    loss: Loss = Loss.DR_GRPO
    advantage_scale: AdvantageScale = AdvantageScale.NONE
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl: float = 0.0
    masks_truncated: bool = False
    autocast_bf16: bool = False
    saves_memory: bool = False
    """Whether activations are computed again in the backward pass."""
    free_reasoning: bool = True
    later_share: float = 0.0
    """Share of the prompts, 0 to 1, that ask for a second round after another's first plan."""
    generation: Generation = Generation.TRANSFORMERS
    score_timeout_s: float = 120.0
    max_concurrent_scores: int = 64
    max_unscorable_share: float = 0.2
    checkpoint_every: int = 10
    kept_checkpoints: int = 2
    seed: int = 0
    limits: CollapseLimits = field(default_factory=CollapseLimits)

    def __post_init__(self) -> None:
        counts = (self.iterations, self.prompts, self.pass_size, self.checkpoint_every)
        if min(counts) < 1 or self.rollouts < 2:  # noqa: PLR2004 - a group of one has no baseline
            raise invalid("a recipe needs at least 1 iteration, prompt, pass and checkpoint, and 2 rollouts")
        if self.completion_tokens >= self.context_tokens:
            raise invalid("completion_tokens must leave room for a prompt in context_tokens")
        if not 0 <= self.later_share <= 1:
            raise invalid("later_share is a share, from 0 to 1")

    @property
    def batch(self) -> int:
        """How many completions one iteration learns from."""
        return self.prompts * self.rollouts


PAPER_7B = GrpoRecipe(
    name="paper-7b",
    iterations=200,
    prompts=4,
    rollouts=64,
    pass_size=4,
    completion_tokens=1_024,
    context_tokens=8_192,
    learning_rate=1e-6,
    loss=Loss.DAPO,
    advantage_scale=AdvantageScale.GROUP,
    clip_high=0.2,
    autocast_bf16=True,
    saves_memory=True,
    generation=Generation.VLLM_COLOCATE,
    checkpoint_every=20,
)
"""The RL Conductor paper's settings (arXiv 2512.04388): 200 iterations of 4 questions x 64 rollouts, AdamW
1e-6, cosine, warm-up 0.03, temperature 1, 1,024 tokens, no KL, advantages over the group's deviation.
Ours, where the paper is silent: the loss's sum over tokens, pass size, checkpoints, alarms."""

PAPER_7B_POOL = replace(PAPER_7B, name="paper-7b-pool", iterations=20, checkpoint_every=5, seed=1)
"""The paper's fine-tune with random pools. Their length is not published; 20 iterations are ours."""

PAPER_7B_ROUNDS = replace(PAPER_7B_POOL, name="paper-7b-rounds", later_share=0.5, seed=2)
"""The paper's recursion fine-tune: 20 iterations, half of the samples in a second round."""

SMALL_CPU = GrpoRecipe(
    name="small-cpu",
    iterations=3,
    prompts=1,
    rollouts=2,
    pass_size=2,
    completion_tokens=48,
    context_tokens=4_096,
    learning_rate=1e-5,
    warmup_share=0.0,
    schedule="constant",
    autocast_bf16=True,
    free_reasoning=False,
    score_timeout_s=30.0,
    checkpoint_every=2,
    kept_checkpoints=1,
    limits=CollapseLimits(max_clipped_share=1.0),
)
"""A few iterations of a 135 M model on two cores: shows that the loop works, not that it learns."""

RECIPES: Mapping[str, GrpoRecipe] = {
    recipe.name: recipe for recipe in (PAPER_7B, PAPER_7B_POOL, PAPER_7B_ROUNDS, SMALL_CPU)
}


def recipe_named(name: str) -> GrpoRecipe:
    """Return the recipe; raise PodiumError INVALID_REQUEST that lists them when there is none."""
    if name not in RECIPES:
        raise invalid(f"there is no recipe {name!r}; known are {', '.join(sorted(RECIPES))}")
    return RECIPES[name]
