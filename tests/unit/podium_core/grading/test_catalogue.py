"""Every item of the graded set knows its answer, tells wrong ones from it, and is always the same."""

import re
import subprocess
import sys
from hashlib import sha256

import pytest

from podium_core.domain.errors import PodiumError
from podium_core.grading.catalogue import MAX_ITEMS, SKILLS, items_of
from podium_core.grading.result import Grade


def test_there_are_tens_of_skills_with_names_fit_for_cards() -> None:
    assert len(SKILLS) >= 30
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{0,63}", name) for name in SKILLS)


@pytest.mark.parametrize("skill", SKILLS)
def test_gold_is_right_and_traps_are_wrong(skill: str) -> None:
    items = items_of(skill, MAX_ITEMS)
    assert len({item.task.question for item in items}) == MAX_ITEMS
    assert len({item.digest for item in items}) == MAX_ITEMS
    for item in items:
        task = item.task
        for text in (task.gold, f"First 3, then 4.\n<answer>{task.gold}</answer>\n"):
            assert task.grader.grade(text).is_right, (item.item_id, task, text)
        assert task.traps, item.item_id
        for trap in task.traps:
            graded = task.grader.grade(f"<answer>{trap}</answer>")
            assert graded.grade is Grade.WRONG, (item.item_id, task, trap)
        assert task.grader.grade("I cannot answer that.").grade is Grade.WRONG, item.item_id


@pytest.mark.parametrize("skill", SKILLS)
def test_more_items_begin_with_the_same_ones(skill: str) -> None:
    assert items_of(skill, 3) == items_of(skill, 7)[:3]
    assert items_of(skill, 3, seed=1) != items_of(skill, 3, seed=2)


def test_another_process_makes_the_same_set() -> None:
    code = (
        "from hashlib import sha256; from podium_core.grading.catalogue import SKILLS, items_of;"
        "print(sha256(''.join(i.digest for s in SKILLS for i in items_of(s, 3)).encode()).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mine = sha256("".join(i.digest for s in SKILLS for i in items_of(s, 3)).encode()).hexdigest()
    assert other.stdout.strip() == mine


def test_an_unknown_skill_is_named() -> None:
    with pytest.raises(PodiumError, match="alchemy"):
        items_of("alchemy", 1)


def test_a_skill_that_runs_out_says_so() -> None:
    with pytest.raises(PodiumError, match="no more than"):
        items_of("combinatorics", 400)
