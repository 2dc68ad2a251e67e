"""One rollout over recorded answers: what each step says, in whatever order its inputs are complete.

Pure and deterministic: an answer depends on the task's seed, the rollout, the round and the step, never on
what ran before it elsewhere.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from podium_core.domain.plan import Step
from podium_core.domain.pool import Worker
from podium_core.domain.usage import Usage, UsageSource
from podium_core.orchestration.histories import PREAMBLE
from podium_train.environments.assumptions import (
    CHARS_PER_TOKEN,
    REPLAY_FIRST_TOKEN_US,
    REPLAY_TOKENS_PER_SECOND,
    SimulatedEffects,
)
from podium_train.environments.port import PerformedStep, Task
from podium_train.environments.roles import Role, role_of
from podium_train.outcomes.items import RecordedAnswer, RecordedItem

NO_ANSWER_TEXT = "I could not bring this to a final answer."
PLAN_TEXT = "Plan: settle what is given and what is asked, work step by step, check the result."
_SUBTASK_OVERHEAD_CHARS = len(PREAMBLE)
_RANGE = 1 << 64
_EXACT_ROLES = frozenset({Role.SOLVE, Role.AGGREGATE})
"""Roles whose effect is recorded: a solution, and a vote over recorded answers."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a step came to. `answer` None: its role gives none. `flag`: it finds what it checked wrong."""

    text: str
    answer: RecordedAnswer | None
    chars: int
    performed: PerformedStep
    is_exact: bool
    flag: bool | None = None


class ReplayRun:
    """Says the steps of one rollout. Ask for a step once all that it may see was said."""

    def __init__(self, item: RecordedItem, task: Task, rollout: int, effects: SimulatedEffects) -> None:
        self._item = item
        self._seed = f"{task.task_id}/{task.seed}/{rollout}"
        self._effects = effects
        self._workers: Mapping[str, Worker] = {worker.worker_id: worker for worker in task.workers}
        self.said: dict[tuple[int, int], Said] = {}

    def is_recorded(self, steps: Sequence[Step]) -> bool:
        """Return whether every worker of these steps is in the pool and answered the item."""
        return all(
            worker is not None and worker.provider_model in self._item.answers
            for worker in (self._workers.get(step.worker_id) for step in steps)
        )

    def say(
        self, steps: Sequence[Step], index: int, *, round_index: int = 0, previous: Said | None = None
    ) -> Said:
        """Perform a step of a round's `steps`; `previous` is what the last round's answering step said."""
        step = steps[index]
        seen = [self.said[round_index, earlier] for earlier in step.access.steps]
        if step.access.previous_round and previous is not None:
            seen.insert(0, previous)
        worker = self._workers[step.worker_id]
        model = worker.provider_model
        key = f"{self._seed}/{round_index}/{index}"
        recorded = self._item.answers[model]
        own = recorded[_number(key) % len(recorded)]
        answers = [earlier.answer for earlier in seen if earlier.answer is not None]
        role = role_of(step.subtask, sees_answers=bool(answers), is_answer=index == len(steps) - 1)
        input_chars = self._input_chars(steps, step, seen)
        said = self._said(role, worker, own, key, seen, answers, input_chars)
        self.said[round_index, index] = said
        return said

    def _said(
        self,
        role: Role,
        worker: Worker,
        own: RecordedAnswer,
        key: str,
        seen: Sequence[Said],
        answers: Sequence[RecordedAnswer],
        input_chars: int,
    ) -> Said:
        answer, flag = self._decide(role, worker, own, key, seen, answers)
        text = PLAN_TEXT if answer is None else spoken(answer, own.chars)
        if flag is not None:
            text = f"{'I found a mistake.' if flag else 'I found no mistake.'} {text}"
        performed = _performed(worker, role, answer, input_chars, own.chars)
        is_exact = role in _EXACT_ROLES and not (role is Role.SOLVE and seen)
        return Said(text, answer, own.chars, performed, is_exact and all(s.is_exact for s in seen), flag)

    def _decide(
        self,
        role: Role,
        worker: Worker,
        own: RecordedAnswer,
        key: str,
        seen: Sequence[Said],
        answers: Sequence[RecordedAnswer],
    ) -> tuple[RecordedAnswer | None, bool | None]:
        """Return the step's answer and, where it checks one, whether it calls that wrong."""
        if role is Role.PLAN:
            return None, None
        if role is Role.AGGREGATE:
            return vote(answers, own), None
        if role is Role.SOLVE:
            planned = any(earlier.answer is None for earlier in seen)
            return (self._lifted(own, key, self._effects.plan_lift) if planned else own), None
        checked = vote(answers, answers[-1])
        flags = [earlier.flag for earlier in seen if earlier.flag is not None]
        if role is Role.REFINE and flags:
            flag = flags[-1]
        else:
            accuracy = self._item.accuracy(worker.provider_model) or 0.0
            rate = self._effects.flag_rate(accuracy, answer_is_right=checked.is_right)
            flag = _share(f"{key}/flag") < rate
        if not flag:
            return checked, flag if role is Role.VERIFY else None
        if role is Role.VERIFY:
            return own, flag
        lift = 0.0 if checked.is_right else self._effects.refine_lift
        return self._lifted(own, key, lift), None

    def _lifted(self, own: RecordedAnswer, key: str, rate: float) -> RecordedAnswer:
        """Return a right answer instead of a wrong one at this rate, if any model ever gave a right one."""
        if own.is_right or _share(f"{key}/lift") >= rate:
            return own
        everyone = (answer for model in sorted(self._item.answers) for answer in self._item.answers[model])
        return next((answer for answer in everyone if answer.is_right), own)

    def _input_chars(self, steps: Sequence[Step], step: Step, seen: Sequence[Said]) -> int:
        chars = len(self._item.question)
        if not step.subtask and not seen:
            return chars
        chars += _SUBTASK_OVERHEAD_CHARS + len(step.subtask) + sum(earlier.chars for earlier in seen)
        return chars + sum(len(steps[earlier].subtask) for earlier in step.access.steps)


def answering(said: Sequence[Said]) -> int:
    """Return which step's answer is the round's: the last, or the last before it that said anything."""
    last = len(said) - 1
    return next((k for k in range(last, -1, -1) if said[k].text), last)


def vote(answers: Sequence[RecordedAnswer], own: RecordedAnswer) -> RecordedAnswer:
    """Return the most frequent answer, the earliest of its kind; on a tie, or without any, `own`.

    Answers are the same when they differ only in case and white space. Who found none does not vote.
    """
    counts = Counter(_key(answer.answer) for answer in answers if answer.answer is not None)
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return own
    winner = ranked[0][0]
    return next(a for a in answers if a.answer is not None and _key(a.answer) == winner)


def spoken(answer: RecordedAnswer, chars: int) -> str:
    """Return the answer as a worker would end its reply; empty when the recorded reply was empty."""
    if answer.answer is not None:
        return f"Final answer: {answer.answer}"
    return NO_ANSWER_TEXT if chars else ""


def _performed(
    worker: Worker, role: Role, answer: RecordedAnswer | None, input_chars: int, output_chars: int
) -> PerformedStep:
    input_tokens, output_tokens = _tokens(input_chars), _tokens(output_chars)
    speed = worker.card.output_tokens_per_second or REPLAY_TOKENS_PER_SECOND
    return PerformedStep(
        worker_id=worker.worker_id,
        answer="" if answer is None else answer.answer or "",
        is_right=None if answer is None else answer.is_right,
        usage=Usage(input_tokens, output_tokens, source=UsageSource.ESTIMATED),
        cost_usd_micros=worker.price.cost_usd_micros(input_tokens, output_tokens) if worker.price else 0,
        latency_us=REPLAY_FIRST_TOKEN_US + output_tokens * 1_000_000 // speed,
        role=role.value,
    )


def _tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def _key(answer: str) -> str:
    return " ".join(answer.split()).casefold()


def _number(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


def _share(key: str) -> float:
    return _number(key) / _RANGE
