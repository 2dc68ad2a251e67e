"""The named recipes hold what they claim, and refuse what cannot be run."""

from dataclasses import replace

import pytest

from podium_core.domain.errors import PodiumError
from podium_train.learning.grpo_recipe import PAPER_7B, RECIPES, AdvantageScale, recipe_named


def test_paper_7b_is_what_the_paper_says() -> None:
    recipe = recipe_named("paper-7b")
    assert (recipe.iterations, recipe.prompts, recipe.rollouts, recipe.batch) == (200, 4, 64, 256)
    assert (recipe.learning_rate, recipe.adam_betas, recipe.schedule) == (1e-6, (0.9, 0.999), "cosine")
    assert (recipe.warmup_share, recipe.temperature, recipe.completion_tokens) == (0.03, 1.0, 1_024)
    assert (recipe.kl, recipe.clip_low, recipe.clip_high) == (0.0, 0.2, 0.2)
    assert recipe.advantage_scale is AdvantageScale.GROUP


def test_no_recipe_holds_a_reference_model_or_favours_short_plans() -> None:
    assert all(recipe.kl == 0 for recipe in RECIPES.values())
    assert {recipe.loss.value for recipe in RECIPES.values()} <= {"dr_grpo", "dapo"}


def test_what_cannot_be_run_is_refused_when_it_is_written() -> None:
    with pytest.raises(PodiumError, match="2 rollouts"):
        replace(PAPER_7B, rollouts=1)
    with pytest.raises(PodiumError, match="room for a prompt"):
        replace(PAPER_7B, completion_tokens=9_000)
    with pytest.raises(PodiumError, match="later_share"):
        replace(PAPER_7B, later_share=1.5)
    with pytest.raises(PodiumError, match="paper-7b, paper-7b-pool, paper-7b-rounds, small-cpu"):
        recipe_named("paper-8b")
