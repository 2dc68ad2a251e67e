"""The distance between replies: nothing for the same answer, everything for another one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.disagreement import disagreement_ppm

MILLION = 1_000_000


def test_the_same_answer_in_other_words_is_no_disagreement() -> None:
    long = "First we add 17 and 25. Then we check the sum. The answer is 1,042."
    assert disagreement_ppm([long, "Let me think about it differently...\n**Answer:** 1042."]) == 0
    assert disagreement_ppm([r"so it is \boxed{17}", r"hence \boxed{17}"]) == 0


def test_another_answer_is_a_whole_disagreement_however_alike_the_words_are() -> None:
    words = "We add the numbers and obtain the sum. The answer is {}."
    assert disagreement_ppm([words.format(42), words.format(43)]) == MILLION


def test_replies_that_state_nothing_are_compared_whole() -> None:
    assert 0 < disagreement_ppm(["Paris, the capital of France", "Lyon, a city in France"]) < MILLION


def test_of_three_replies_every_pair_counts() -> None:
    assert disagreement_ppm(["answer: a1", "answer: a1", "answer: b2"]) == round(MILLION * 2 / 3)


def test_one_reply_cannot_disagree() -> None:
    with pytest.raises(ValueError, match="two replies"):
        disagreement_ppm(["alone"])


@given(st.text(), st.text())
def test_any_two_texts_have_a_distance_that_knows_no_order(one: str, other: str) -> None:
    score = disagreement_ppm([one, other])
    assert 0 <= score <= MILLION
    assert score == disagreement_ppm([other, one])
    assert disagreement_ppm([one, one]) == 0
