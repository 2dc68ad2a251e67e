"""Nothing that a client may write makes a specialist raise, hang or answer without bound."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_demo.answer import SPECIALISTS, answer
from podium_demo.specialists.answering import MAX_RESULT_CHARS
from podium_demo.worker_prompt import Task, read_task

from .asking import declined

_MODELS = sorted(SPECIALISTS)
_FRAGMENTS = """
multiply|divide|add|reverse|convert|how many|days|from|to|between|2026-01-01|and|then|,|.|?|the|result|it|both|results
|of|by|with|in|words|letters|'|"|(|)|**|%|/|-|9999|0|1/0|Roman numerals|binary|miles|km|sort|replace|join|first|last
|weeks|after|before|number|squared|of the|all|them|using the earlier result:|\u0661|\U0001d7db|\u202e|\x00|\ud800
""".replace("\n", "").split("|")
_TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(_FRAGMENTS), max_size=40).map(" ".join),
    st.tuples(st.sampled_from(_FRAGMENTS), st.integers(1, 600)).map(lambda p: f"{p[0]} " * p[1]),
)


@given(st.sampled_from(_MODELS), _TEXTS, st.lists(_TEXTS, max_size=3))
def test_any_text_gets_a_bounded_answer(model: str, instruction: str, results: list[str]) -> None:
    said = answer(SPECIALISTS[model], Task(instruction, tuple(results)), lambda: 0)
    assert len(said) <= 21 * MAX_RESULT_CHARS


@pytest.mark.parametrize("model", _MODELS)
@pytest.mark.parametrize(
    "instruction",
    [
        "9**9**9",
        "1" * 10_000_000,
        "(" * 100_000 + "1" + ")" * 100_000,
        "(" * 900 + "1" + ")" * 900,
        "what is " + "9**" * 400 + "9",
        "what is " + "9" * 990 + "**2**3",
        "reverse the words " + "of " * 600,
        "replace " + "with " * 390,
        "show " * 390,
        "convert " + "to binary " * 190,
        "how many days are there between " + "to " * 600,
        "add " + "1 day and " * 190 + "to 2026-01-01",
        "\N{ARABIC-INDIC DIGIT THREE} + \N{ARABIC-INDIC DIGIT FOUR}",
        "\u202e1 + 1\u202c \U0001d7d9",
        "\x00" * 1_999,
        "'" * 1_999,
        '"' * 1_999,
        ", then " * 280,
        "the result " * 180,
    ],
    ids=lambda text: text[:24].encode("unicode_escape").decode(),
)
def test_hostile_requests_are_answered_quickly(model: str, instruction: str) -> None:
    started = time.thread_time()
    said = answer(SPECIALISTS[model], Task(instruction, ("7",)), time.thread_time_ns)
    assert time.thread_time() - started < 5.0, "of a processor; a pattern that backtracks takes minutes"
    assert declined(said) or len(said) <= MAX_RESULT_CHARS


def test_large_earlier_results_are_declined() -> None:
    for model in _MODELS:
        for instruction in ("double it", "reverse it", "convert it to miles", "write it in binary"):
            assert declined(answer(SPECIALISTS[model], Task(instruction, ("7" * 100_000,)), lambda: 0))


@given(_TEXTS, st.lists(st.tuples(st.sampled_from(["system", "assistant", "user"]), _TEXTS), max_size=4))
def test_any_conversation_is_a_task(text: str, earlier: list[tuple[str, str]]) -> None:
    read_task([*earlier, ("user", text)])
