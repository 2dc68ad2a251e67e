"""What an answer is worth: values with their tolerance, mathematics in processes, code specifications, rewards."""

import importlib.util
import json
import sys
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import PodiumError
from podium_core.grading.result import Grade
from podium_train.environments.port import Task
from podium_train.rewards.code import Calls, Programs, SharedTests, code_in, read_check
from podium_train.rewards.mathematics import MathGrader, MathSettings, MathVerifier, open_math_verifier
from podium_train.rewards.references import ReferenceGrader, options_in
from podium_train.rewards.reward import RewardTerms, reward_of
from podium_train.rewards.sandbox.inside import decoded, encoded
from podium_train.rewards.values import AnswerKind, grader_for

needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="math_verify comes with the extra `train`"
)


@pytest.mark.parametrize(
    ("kind", "reference", "right", "wrong"),
    [
        (AnswerKind.CHOICE, "B", ["B", "(b)", "The answer is B) blue", "blue"], ["A", "C", "Z", "B or C", "I do not know"]),
        (AnswerKind.STRING, "New York", ["new york", "**New York.**", "<answer>New  York</answer>"], ["York", "Newyork"]),
        (AnswerKind.NUMBER, "1,000", ["1000", "1000.9", "999.1", "x = 1000"], ["1001.1", "998", "10000", "none"]),
        (AnswerKind.NUMBER, "0", ["0", "0.0"], ["0.0001", "-1"]),
        (AnswerKind.NUMBER, "-2.5", ["-2.5", "-5/2"], ["2.5"]),
        (AnswerKind.PERCENT, "12.5%", ["12.5%", "12.5", "12.51 percent"], ["12.6%", "0.125%", "125%"]),
        (AnswerKind.CURRENCY, "$1.2 million", ["$1.2 million", "1,200,000 USD", "1.2m dollars", "1200000"],
         ["1.2", "\u20ac1.2 million", "$1.3 million", "1.2 thousand dollars"]),
        (AnswerKind.CURRENCY, "\u20ac99.90", ["99.90 EUR", "\u20ac99.95", "99.9 euros"], ["$99.90", "99.70 EUR", "free"]),
    ],
)  # fmt: skip
def test_values_are_read_as_people_write_them(
    kind: AnswerKind, reference: str, right: Sequence[str], wrong: Sequence[str]
) -> None:
    grader = grader_for(kind, reference, ("red", "blue", "green"))
    assert [text for text in right if not grader.grade(text).is_right] == []
    assert [text for text in wrong if grader.grade(text).is_right] == []


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        (AnswerKind.CHOICE, "D"),
        (AnswerKind.CHOICE, "blue"),
        (AnswerKind.STRING, " "),
        (AnswerKind.NUMBER, "many"),
        (AnswerKind.NUMBER, "1 or 2"),
        (AnswerKind.PERCENT, ""),
        (AnswerKind.CURRENCY, "$"),
    ],
)
def test_a_reference_that_is_none_of_its_kind_is_refused_by_name(kind: AnswerKind, reference: str) -> None:
    with pytest.raises(PodiumError, match=kind.value) as refusal:
        grader_for(kind, reference, ("red", "blue", "green"))
    assert refusal.value.reason == "BAD_REFERENCE"


@given(text=st.text(max_size=300))
def test_graders_judge_any_text(text: str) -> None:
    for kind, reference in (
        (AnswerKind.CHOICE, "A"),
        (AnswerKind.STRING, "x"),
        (AnswerKind.NUMBER, "5"),
        (AnswerKind.PERCENT, "5%"),
        (AnswerKind.CURRENCY, "$5"),
    ):
        assert grader_for(kind, reference, ("red", "blue")).grade(text).grade in Grade


# --- the reward -----------------------------------------------------------------------------------


@given(cost=st.integers(0, 10**12), steps=st.integers(1, 9))
def test_without_terms_the_reward_is_exactly_a_half_or_one(cost: int, steps: int) -> None:
    assert reward_of(is_right=False, cost_usd_micros=cost, step_count=steps) == 0.5
    assert reward_of(is_right=True, cost_usd_micros=cost, step_count=steps) == 1.0


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 10**12), st.integers(1, 9))
def test_no_saving_makes_a_wrong_answer_better_than_a_right_one(
    per_usd: float, per_step: float, cost: int, steps: int
) -> None:
    terms = RewardTerms(per_usd, per_step)
    dear = reward_of(is_right=True, cost_usd_micros=cost, step_count=steps, terms=terms)
    assert dear > reward_of(is_right=False, terms=terms) == 0.5
    assert reward_of(is_right=False, cost_usd_micros=cost, step_count=steps, terms=terms) > 0.0


def test_terms_charge_money_and_extra_steps() -> None:
    terms = RewardTerms(per_usd=0.1, per_extra_step=0.02)
    assert reward_of(is_right=True, cost_usd_micros=1_000_000, step_count=3, terms=terms) == pytest.approx(
        0.86
    )
    with pytest.raises(PodiumError):
        RewardTerms(per_usd=float("nan"))
    with pytest.raises(PodiumError):
        RewardTerms(per_extra_step=-1.0)


# --- mathematics ----------------------------------------------------------------------------------


@needs_math_verify
async def test_mathematics_is_compared_by_meaning() -> None:
    async with open_math_verifier() as verifier:
        for reference, right, wrong in (
            ("\\frac{1}{2}", "So we get $\\boxed{0.5}$.", "\\boxed{0.25}"),
            ("x^2 + 2x + 1", "<answer>(x+1)^2</answer>", "<answer>(x-1)^2</answer>"),
            ("\\{1, 2\\}", "\\boxed{\\{2, 1\\}}", "\\boxed{\\{2, 3\\}}"),
            ("\\sqrt{8}", "The answer is $2\\sqrt{2}$", "The answer is $4$"),
            ("42", "<think>41?</think> It is 42.", "no idea"),
        ):
            assert await MathGrader(verifier, reference).is_right(right) is True, reference
            assert await MathGrader(verifier, reference).is_right(wrong) is False, reference
        assert await MathGrader(verifier, "1").is_right("") is False


@needs_math_verify
async def test_a_verifier_that_hangs_is_killed_and_replaced_and_its_answer_is_not_called_wrong() -> None:
    bomb = "\\boxed{" + "9^{" * 6 + "9" + "}" * 6 + "}"
    async with open_math_verifier(MathSettings(timeout_s=2.0)) as verifier:
        started = time.monotonic()
        assert await MathGrader(verifier, "3").is_right(bomb) in {None, False}
        assert time.monotonic() - started < 120
        assert await MathGrader(verifier, "3").is_right("\\boxed{3}") is True


def scripted(code: str) -> MathSettings:
    return MathSettings(timeout_s=0.5, start_timeout_s=30.0, command=(sys.executable, "-c", code))


async def test_a_verifier_that_never_answers_or_dies_gives_no_grade() -> None:
    for code, reason in (
        ("import time\nprint('ready', flush=True)\ntime.sleep(60)", "timeout"),
        ("print('ready', flush=True)\ninput()", "gone"),
        ("pass", "no_verifier"),
    ):
        verifier = MathVerifier(scripted(code))
        graded = await verifier.grade("3", "3")
        assert (graded.grade, graded.reason) == (Grade.UNSCORABLE, reason)
        assert await MathGrader(verifier, "3").is_right("3") is None
        await verifier.close()


async def test_one_slow_answer_is_asked_again_of_a_fresh_process(tmp_path: object) -> None:
    code = (
        "import os, sys, time\n"
        f"mark = {str(tmp_path)!r} + '/asked'\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    if not os.path.exists(mark):\n"
        "        open(mark, 'w').close()\n"
        "        time.sleep(60)\n"
        "    print('right', flush=True)\n"
    )
    verifier = MathVerifier(scripted(code))
    assert (await verifier.grade("3", "3")).is_right
    await verifier.close()


async def test_without_math_verify_opening_says_what_to_install() -> None:
    with pytest.raises(PodiumError, match="extra `train`"):
        async with open_math_verifier(scripted("pass")):
            pass


# --- code -----------------------------------------------------------------------------------------


def test_code_is_found_where_models_put_it() -> None:
    assert code_in("Text\n```python\nx = 1\n```\nMore") == "x = 1\n"
    assert code_in("```python\nold = 1\n```\n```python\nnew = 2\n```") == "new = 2\n"
    assert code_in("<answer>x = 3</answer>") == "x = 3"
    assert code_in("x = 4\ny = 5") == "x = 4\ny = 5"


def test_checks_are_read_or_refused() -> None:
    assert read_check('{"kind": "programs", "cases": [{"stdin": "1", "stdout": "2"}]}') == Programs(
        (("1", "2"),)
    )
    told = '{"kind": "calls", "function": "f", "cases": [{"args": [1, [2]], "value": 3}]}'
    assert read_check(told) == Calls("f", (((1, [2]), 3),))
    shared = json.dumps(
        {
            "kind": "shared_tests",
            "source": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass",
        }
    )
    assert isinstance(read_check(shared), SharedTests)
    for bad in ("", "[]", '{"kind": "shared_tests", "source": "x = 1"}', '{"kind": "shared_tests", "source": "("}', "{}", '{"kind": "other"}', '{"kind": "programs", "cases": []}', '{"kind": "calls", "cases": [1]}',
                '{"kind": "tests", "function": 1, "source": ""}', "[" * 5000):  # fmt: skip
        with pytest.raises(PodiumError) as refusal:
            read_check(bad)
        assert refusal.value.reason == "BAD_REFERENCE"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=12,
)


@given(values)
def test_values_cross_the_sandbox_s_border_unchanged(value: object) -> None:
    assert decoded(encoded(value)) == value


def test_numbers_of_any_length_cross_it() -> None:
    for value in (7**9_000, -(1 << 63), (1 << 63) - 1):
        assert decoded(json.loads(json.dumps(encoded(value)))) == value


# --- by reference ---------------------------------------------------------------------------------


def task(reference: str, question: str = "What?") -> Task:
    return Task("t", question, reference, "f", "c", "standard", (), seed=1)


async def test_answers_are_graded_by_what_kind_of_reference_their_task_has() -> None:
    options = "Which?\nA) red\nB) blue\nC) green\n"
    for kind, reference, question, right, wrong in (
        ("choice", "B", options, "blue", "red"),
        ("choice", "B", "Which letter?", "(B)", "(C)"),
        ("string", "Ulm", "Where?", "ulm", "Bonn"),
        ("number", "12", "How many?", "12.0", "13"),
        ("currency", "$5", "How much?", "5 dollars", "6 dollars"),
    ):
        grade = ReferenceGrader(lambda _, kind=kind: kind)  # type: ignore[misc]
        assert await grade(right, task(reference, question)) is True
        assert await grade(wrong, task(reference, question)) is False
        assert await grade("", task(reference, question)) is False


async def test_a_task_that_cannot_be_graded_says_what_is_missing() -> None:
    for kind, words in (("math", "math verifier"), ("code", "sandbox"), ("essay", "no kind of answer")):
        with pytest.raises(PodiumError, match=words):
            await ReferenceGrader(lambda _, kind=kind: kind)("x", task("x"))  # type: ignore[misc]


@given(st.text(max_size=200))
def test_options_are_found_in_any_question(text: str) -> None:
    assert len(options_in(text)) >= 2
    assert options_in("Pick.\n(A) one\n(B) two") == ("one", "two")
