"""Writes a decided plan as plan text, so that what is served and what is trained pass the same parser."""

from podium_core.domain.plan_format import render_plan
from podium_core.plan_model.choices import Shape
from podium_core.plan_model.deciding import Decided

_REASONS = {
    Shape.ALONE: "One model can answer this on its own.",
    Shape.PARTS: "The question has parts that different models do best.",
    Shape.VOTE_OF_TWO: "Two models answer side by side; a third opinion decides.",
    Shape.VOTE_OF_THREE: "Three models answer side by side; the answer most of them give counts.",
}


def written(decided: Decided) -> str:
    """Return a sentence that says why, then the three lists; rows are the ordinals of the workers."""
    shape = decided.shape if len(decided.rows) > 1 else Shape.ALONE
    return f"{_REASONS[shape]}\n{render_plan(decided.rows, decided.subtasks, decided.access)}"
