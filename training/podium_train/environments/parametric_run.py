"""One rollout of simulated workers: what each step says, in whatever order the steps are performed.

Every draw is keyed by what it is about (seed, worker, item, role, what the step sees, attempt), so equal
steps say equal things wherever they stand and whatever ran before.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import exp, sqrt

from podium_core.domain.plan import Step
from podium_core.domain.pool import Worker
from podium_core.domain.usage import Usage, UsageSource
from podium_train.environments.assumptions import Assumptions
from podium_train.environments.draws import below, normal, phi, probit, uniform
from podium_train.environments.port import PerformedStep, Task
from podium_train.environments.roles import Role, role_of

RIGHT = 0
"""Which of an item's answers is right; 1 is the trap, the others are other wrong ones."""
THINKING = "thinking"
"""The card feature of workers that write much before they answer."""
_TRAP = 1
_CHARS_PER_TOKEN = 4
_PLAN_TEXT = "Plan: settle what is given and what is asked, work step by step, check the result."
_REFUSAL_TEXT = "I cannot help with this."
_BROKEN_TEXT = "Therefore the result follows from the above."

AccuracyOf = Callable[[Worker, Task], float]
"""A worker's true share of right answers on tasks like this one, 0..1."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a step came to. `answer` numbers the item's answers; None: it gave none. `failure`: it failed."""

    text: str
    performed: PerformedStep
    answer: int | None = None
    flag: bool | None = None
    is_plan: bool = False
    failure: str = ""

    @property
    def mark(self) -> tuple[object, ...]:
        """What a later step can see of it."""
        return (self.answer, self.flag, self.is_plan)


class ParametricRun:
    """Says the steps of one rollout; `say` performs what a step sees first, once."""

    def __init__(
        self, task: Task, assumptions: Assumptions, accuracy_of: AccuracyOf, seed: int, rollout: int
    ) -> None:
        self._task = task
        self._assumed = assumptions
        self._accuracy_of = accuracy_of
        self._seed = seed
        self._rollout = rollout
        self._workers: Mapping[str, Worker] = {worker.worker_id: worker for worker in task.workers}
        self.said: dict[tuple[int, int], Said] = {}

    def say(self, rounds: Sequence[Sequence[Step]], round_index: int, index: int) -> Said:
        """Return what a step says; it and all that it sees are performed if they were not yet."""
        key = (round_index, index)
        if key not in self.said:
            step = rounds[round_index][index]
            seen = [self.say(rounds, round_index, earlier) for earlier in step.access.steps]
            if step.access.previous_round and round_index:
                seen.insert(0, self.answer_of(rounds, round_index - 1))
            self.said[key] = self._perform(rounds[round_index], index, seen, round_index)
        return self.said[key]

    def answer_of(self, rounds: Sequence[Sequence[Step]], round_index: int) -> Said:
        """Return a round's answer: its last step, or the last before it that said anything."""
        said = [self.say(rounds, round_index, index) for index in range(len(rounds[round_index]))]
        return next((one for one in reversed(said) if one.text), said[-1])

    def _perform(self, steps: Sequence[Step], index: int, seen: Sequence[Said], round_index: int) -> Said:
        step = steps[index]
        worker = self._workers[step.worker_id]
        answers = [one.answer for one in seen if one.answer is not None]
        role = role_of(step.subtask, sees_answers=bool(answers), is_answer=index == len(steps) - 1)
        twins = sum(one.worker_id == step.worker_id and one.subtask == step.subtask for one in steps[:index])
        key = (self._seed, self._rollout, worker.worker_id, self._task.task_id, role.value,
               *(one.mark for one in seen), twins, round_index)  # fmt: skip
        tokens = self._tokens(worker, role, key)
        input_tokens = self._input_tokens(step, seen)
        failure = self._failure(key)
        if failure:
            return Said("", self._performed(worker, role, None, input_tokens, 0, key), failure=failure)
        is_last = index == len(steps) - 1
        answer, flag = self._decided(role, worker, key, seen, is_last=is_last)
        text = self._text(key, answer, flag=flag, is_plan=role is Role.PLAN)
        if role is not Role.PLAN and self._shown(answer) not in text:
            answer = None  # whoever cannot be read has given no answer
        performed = self._performed(worker, role, answer, input_tokens, tokens if text else 0, key)
        return Said(text, performed, answer, flag, is_plan=role is Role.PLAN)

    # --- what is answered ------------------------------------------------------------------------

    def _decided(
        self,
        role: Role,
        worker: Worker,
        key: tuple[object, ...],
        seen: Sequence[Said],
        *,
        is_last: bool,
    ) -> tuple[int | None, bool | None]:
        answers = [one.answer for one in seen if one.answer is not None]
        assumed, accuracy = self._assumed, self._accuracy_of(worker, self._task)
        lift = assumed.plan_lift if any(one.is_plan for one in seen) else 0.0
        if role is Role.PLAN:
            return None, None
        if role is Role.SOLVE or not answers:
            return self._solved(worker, accuracy, key, lift + self._swayed(answers)), None
        if role is Role.AGGREGATE:
            if RIGHT in answers and uniform(*key, "discern") < assumed.discern_rate(accuracy):
                return RIGHT, None
            return self._voted(answers, worker, accuracy, key), None
        return self._checked(role, worker, key, seen, is_last=is_last)

    def _checked(
        self,
        role: Role,
        worker: Worker,
        key: tuple[object, ...],
        seen: Sequence[Said],
        *,
        is_last: bool,
    ) -> tuple[int | None, bool | None]:
        """Return what a verifier or a refiner makes of the last answer it sees."""
        assumed, accuracy = self._assumed, self._accuracy_of(worker, self._task)
        checked = [one.answer for one in seen if one.answer is not None][-1]
        flags = [one.flag for one in seen if one.flag is not None]
        if role is Role.REFINE and flags:
            flag = flags[-1]
        else:
            flag = uniform(*key, "flag") < assumed.flag_rate(accuracy, is_right=checked == RIGHT)
        said_flag = flag if role is Role.VERIFY else None
        # What a check objects to stays on the table: unless it is the answer, a check is no new solution.
        if not flag or (role is Role.VERIFY and not is_last):
            return checked, said_flag
        lift = assumed.plan_lift if any(one.is_plan for one in seen) else 0.0
        if role is Role.REFINE and checked != RIGHT:
            lift += assumed.refine_lift
        return self._solved(worker, accuracy, key, lift), said_flag

    def _swayed(self, answers: Sequence[int]) -> float:
        if not answers:
            return 0.0
        return self._assumed.attraction if RIGHT in answers else -self._assumed.distraction

    def _solved(self, worker: Worker, accuracy: float, key: tuple[object, ...], lift: float) -> int:
        """Return the answer of a worker that solves; `lift` is in standard deviations."""
        assumed, item, name = self._assumed, self._task.task_id, worker.worker_id
        ahead = probit(accuracy) + lift
        ahead -= sqrt(assumed.item_share) * normal(self._seed, "item", item)
        ahead -= sqrt(assumed.worker_share) * normal(self._seed, "worker", name, item)
        spread = sqrt(assumed.sample_share)
        chance = phi(ahead / spread) if spread > 0 else float(ahead > 0)
        if uniform(*key, "solve") < chance:
            return RIGHT
        if assumed.wrong_answers == 1 or uniform(*key, "trap") < assumed.trap_rate:
            return _TRAP
        return _TRAP + 1 + below(assumed.wrong_answers - 1, *key, "wrong")

    def _voted(self, answers: Sequence[int], worker: Worker, accuracy: float, key: tuple[object, ...]) -> int:
        ranked = Counter(answers).most_common(2)
        if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
            return self._solved(worker, accuracy, key, self._swayed(answers))
        return ranked[0][0]

    # --- what it looks like ----------------------------------------------------------------------

    def _shown(self, answer: int | None) -> str:
        """Return an answer as text: one style for right and wrong, so that nothing but its number shows."""
        written = f"{self._seed} {self._task.task_id} {answer}".encode()
        return f"answer-{blake2b(written, digest_size=4).hexdigest()}"

    def _text(self, key: tuple[object, ...], answer: int | None, *, flag: bool | None, is_plan: bool) -> str:
        drawn, assumed = uniform(*key, "text"), self._assumed
        for rate, text in (
            (assumed.empty_rate, ""),
            (assumed.refusal_rate, _REFUSAL_TEXT),
            (0.0 if is_plan else assumed.format_break_rate, _BROKEN_TEXT),
        ):
            if drawn < rate:
                return text
            drawn -= rate
        if is_plan:
            return _PLAN_TEXT
        said = "" if flag is None else "I found a mistake. " if flag else "I found no mistake. "
        return f"{said}Final answer: {self._shown(answer)}"

    # --- what it costs ---------------------------------------------------------------------------

    def _failure(self, key: tuple[object, ...]) -> str:
        drawn, assumed = uniform(*key, "failure"), self._assumed
        if drawn < assumed.rate_limit_rate:
            return "RATE_LIMITED"
        return "PROVIDER_FAILED" if drawn < assumed.rate_limit_rate + assumed.failure_rate else ""

    def _tokens(self, worker: Worker, role: Role, key: tuple[object, ...]) -> int:
        assumed = self._assumed
        median = assumed.solve_tokens if role in {Role.SOLVE, Role.REFINE} else assumed.other_tokens
        median *= assumed.thinking_multiplier if THINKING in worker.card.features else 1.0
        return max(1, round(median * exp(assumed.token_spread * normal(*key, "tokens"))))

    def _input_tokens(self, step: Step, seen: Sequence[Said]) -> int:
        chars = len(self._task.question) + len(step.subtask)
        return -(-chars // _CHARS_PER_TOKEN) + sum(one.performed.usage.output_tokens for one in seen)

    def _performed(
        self, worker: Worker, role: Role, answer: int | None, input_tokens: int, tokens: int,
        key: tuple[object, ...],
    ) -> PerformedStep:  # fmt: skip
        assumed = self._assumed
        speed = worker.card.output_tokens_per_second or assumed.default_tokens_per_second
        latency_s = (assumed.first_token_s + tokens / speed) * exp(
            assumed.latency_spread * normal(*key, "latency")
        )
        if uniform(*key, "straggler") < assumed.straggler_rate:
            latency_s *= assumed.straggler_factor
        return PerformedStep(
            worker_id=worker.worker_id,
            answer="" if answer is None else self._shown(answer),
            is_right=None if role is Role.PLAN else answer == RIGHT,
            usage=Usage(input_tokens, tokens, source=UsageSource.ESTIMATED),
            cost_usd_micros=worker.price.cost_usd_micros(input_tokens, tokens) if worker.price else 0,
            latency_us=round(latency_s * 1e6),
            role=role.value,
        )
