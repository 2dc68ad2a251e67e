"""Replays of records: what is made again is compared with what was sent and answered, and differences are told."""

import json
from dataclasses import replace

import pytest

from podium_cli.replay.from_record import replay_record
from podium_cli.replay.planner import differences
from podium_cli.replay.recorded import RecordedAttempt, RecordedPlan, RecordedRun
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.run import Caps, Message, Question
from podium_core.orchestration.histories import VisibleStep, compose

QUESTION = Question((Message("user", "17 * 23 in Roman?", {"role": "user", "content": "17 * 23 in Roman?"}),))
PLAN = Plan(
    (Step("sum", "Multiply."), Step("roman", "Write it in Roman numerals.", Access((0,)))),
    PlanSource.EMBEDDED,
)


def sent(step: int, seen: tuple[int, ...] = (), words: str = "391") -> bytes:
    visible = [VisibleStep(s, PLAN.steps[s].subtask, words) for s in seen]
    prompt = compose(QUESTION, PLAN.steps[step].subtask, visible, None, lambda: f"tag{step}")
    text = "".join(piece.text for piece in prompt.pieces)
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


def attempt(step: int, body: bytes, words: str | None, **changes: object) -> RecordedAttempt:
    worker_id, seen = PLAN.steps[step].worker_id, PLAN.steps[step].access.steps
    made = RecordedAttempt(
        f"att_{step}", "step", 0, step, worker_id, "openai-compatible", seen, False, body, words, "completed"
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def recorded(*attempts: RecordedAttempt, answer: bytes | None = b"CCCXCI") -> RecordedRun:
    plan = RecordedPlan(PLAN, "", "", "", 7, "")
    return RecordedRun(
        "run_1", "chat", "podium", "", frozenset({"sum", "roman"}), Caps(), "", QUESTION, (plan,), attempts,
        "answered", answer, 3,
    )  # fmt: skip


GOOD = (attempt(0, sent(0), "391"), attempt(1, sent(1, (0,)), "CCCXCI"))


def test_an_untouched_record_comes_out_the_same() -> None:
    replayed = replay_record(recorded(*GOOD))
    assert replayed.is_equal
    assert replayed.answer == b"CCCXCI"


def test_a_failed_attempt_before_the_good_one_changes_nothing() -> None:
    failed = replace(GOOD[0], outcome="failed", words=None)
    assert replay_record(recorded(failed, *GOOD)).is_equal


@pytest.mark.parametrize(
    "run",
    [
        recorded(GOOD[0], attempt(1, sent(1, (0,), "392"), "CCCXCI")),
        recorded(attempt(0, sent(1, (0,)), "391"), GOOD[1]),
        recorded(attempt(0, b"no json", "391"), GOOD[1]),
        recorded(*GOOD, answer=b"CCCXCII"),
        recorded(*GOOD, answer=None),
    ],
    ids=[
        "another input was shown",
        "another step's prompt",
        "no messages",
        "another answer",
        "no answer kept",
    ],
)
def test_what_differs_is_told(run: RecordedRun) -> None:
    assert not replay_record(run).is_equal


def test_a_body_in_a_providers_own_format_is_left_out_and_said() -> None:
    translated = replace(GOOD[1], provider="anthropic", sent=b"{}")
    replayed = replay_record(recorded(GOOD[0], translated))
    assert replayed.is_equal
    assert "own format" in replayed.prompts[1].skipped


def test_an_empty_last_reply_walks_back_as_the_run_did() -> None:
    silent = replace(GOOD[1], words=None)
    assert replay_record(recorded(GOOD[0], silent, answer=b"391")).is_equal


def test_plans_are_compared_step_by_step() -> None:
    other = replace(PLAN, steps=(Step("roman", "Multiply."), replace(PLAN.steps[1], access=Access())))
    assert differences(PLAN, PLAN) == []
    assert differences(PLAN, other) == [
        "step 0: sum before, roman now",
        "step 1: sees 0 before, nothing now",
    ]
    assert differences(PLAN, replace(PLAN, steps=PLAN.steps[:1])) == ["2 steps before, 1 now"]
