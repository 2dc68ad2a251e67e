"""The run performed again from its record alone: every prompt and the answer are made anew and compared.

The prompts are composed by the code that serves, from the recorded plan and the recorded outputs. What comes
out must be what was sent, and the answer must be the recorded one, byte for byte.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podium_cli.replay.recorded import RecordedAttempt, RecordedRun, text_of
from podium_core.domain.plan import Plan
from podium_core.orchestration.histories import PREAMBLE, VisibleStep, compose
from podium_core.orchestration.ports import StepPrompt

_TAG = re.compile(re.escape(PREAMBLE.split("{tag}", maxsplit=1)[0][-24:]) + r'([^"\s]+)"')
_STEP_KINDS = frozenset({"step", "continuation"})
_ANSWERING_KINDS = _STEP_KINDS | {"repair"}
_OWN_FORMAT = "openai-compatible"


@dataclass(frozen=True, slots=True)
class Remade:
    """One attempt's prompt made anew. `problem`: how it differs; `skipped`: why it was not made."""

    attempt: RecordedAttempt
    problem: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class RecordReplay:
    """What came out: the prompts, and the answer beside the recorded one."""

    prompts: tuple[Remade, ...]
    answer: bytes | None
    recorded_answer: bytes | None

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return self.answer == self.recorded_answer and not any(made.problem for made in self.prompts)


def replay_record(run: RecordedRun) -> RecordReplay:
    """Perform the run again from its record."""
    prompts: list[Remade] = []
    answer: str | None = None
    for recorded in run.plans:
        previous, plan = answer, recorded.plan
        outputs = dict(_outputs(run, plan))
        prompts += [_remake(run, plan, attempt, outputs, previous or "") for attempt in _of_round(run, plan)]
        answer = _answer(plan, outputs, answer)
    prompts += [
        Remade(attempt, skipped="it belongs to no plan") for attempt in run.attempts if attempt.kind == "plan"
    ]
    is_answered = run.outcome == "answered" and bool(answer)
    return RecordReplay(
        tuple(prompts), answer.encode() if is_answered and answer else None, run.answer or None
    )


def _of_round(run: RecordedRun, plan: Plan) -> Iterator[RecordedAttempt]:
    for attempt in run.attempts:
        if attempt.kind in _ANSWERING_KINDS and attempt.round == plan.round:
            yield attempt


def _outputs(run: RecordedRun, plan: Plan) -> Iterator[tuple[int, str]]:
    """Yield each step's output: that of its last attempt that ended well."""
    for attempt in _of_round(run, plan):
        if attempt.is_done:
            yield attempt.step_index, attempt.words or ""


def _answer(plan: Plan, outputs: Mapping[int, str], before: str | None) -> str | None:
    """Return the round's answer: its last step's, walking back past empty ones; else the one before."""
    if len(plan.steps) - 1 not in outputs:
        return before
    spoken = [outputs[index] for index in sorted(outputs, reverse=True) if outputs[index]]
    return spoken[0] if spoken else ""


def _remake(
    run: RecordedRun, plan: Plan, attempt: RecordedAttempt, outputs: Mapping[int, str], previous: str
) -> Remade:
    if attempt.kind not in _STEP_KINDS:
        return Remade(attempt, skipped="a repair quotes the answer it repairs")
    if attempt.provider != _OWN_FORMAT:
        return Remade(attempt, skipped="it was sent in its provider's own format")
    if any(message.image_count or message.audio_count for message in run.question.messages):
        return Remade(attempt, skipped="the question holds images or sound")
    try:
        messages = json.loads(attempt.sent)["messages"]
    except (ValueError, KeyError, TypeError):
        return Remade(attempt, problem="what was sent holds no messages")
    sent = [text_of(message) for message in messages]
    step = plan.steps[attempt.step_index]
    visible = [VisibleStep(s, plan.steps[s].subtask, outputs.get(s, "")) for s in attempt.seen_steps]
    found = _TAG.search(sent[-1])
    tags = iter([found[1] if found else ""])
    prompt = compose(
        run.question,
        step.subtask,
        visible,
        previous if attempt.sees_previous_round else None,
        lambda: next(tags, "no tag fits"),
    )
    problem = "" if _texts(prompt) == sent else "another prompt was sent than its plan and inputs make"
    return Remade(attempt, problem=problem)


def _texts(prompt: StepPrompt) -> list[str]:
    last = "".join(piece.text for piece in prompt.pieces) if prompt.pieces else prompt.question.text
    return [*(message.text for message in prompt.history), last, *(turn.text for turn in prompt.turns)]
