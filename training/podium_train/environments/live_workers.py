"""Real workers with a guard around each call: cache, places, pace, money, deadline, and one retry."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Worker
from podium_core.domain.usage import read_failure_facts
from podium_core.orchestration.ports import Completion, Delta, Permitted, StepCall, WorkerEvent, WorkerPort
from podium_train.environments.live_cache import AnswerCache, Answered, key_of
from podium_train.environments.live_limits import LiveLimits, MoneyGuard, Sleep, TokenBucket

_TRIES = 2
_WORTH_A_RETRY = frozenset({Code.RATE_LIMITED, Code.PROVIDER_FAILED, Code.DEADLINE, Code.UNAVAILABLE})


@dataclass(slots=True)
class _Shared:
    """A call under way and how many wait for it; it is cancelled when nobody does any more."""

    task: asyncio.Task[Answered]
    waiting: int = 0


class GuardedWorkers:
    """A `WorkerPort` over another one. Used by one event loop only.

    `pool` tells the prices: a worker without one cannot be guarded, so it is not called.
    """

    def __init__(
        self,
        workers: WorkerPort,
        pool: Sequence[Worker],
        limits: LiveLimits,
        clock: Clock,
        *,
        cache: AnswerCache | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._workers = workers
        self._pool: Mapping[str, Worker] = {worker.worker_id: worker for worker in pool}
        self._limits = limits
        self._sleep = sleep
        self._cache = cache if cache is not None else AnswerCache()
        self._places: dict[str, asyncio.Semaphore] = {}
        self._pace: dict[str, TokenBucket] = {}
        for name, worker in self._pool.items():
            places = min(limits.calls_at_once, worker.max_concurrency or limits.calls_at_once)
            self._places[name] = asyncio.Semaphore(places)
            self._pace[name] = TokenBucket(limits.calls_per_minute, limits.burst, clock, sleep)
        self._under_way: dict[str, _Shared] = {}
        self.money = MoneyGuard(limits.max_cost_usd_micros)
        self.call_count = 0
        self.cached_count = 0

    async def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Yield the permit and the whole answer; what went wrong twice is raised as it came."""
        key = key_of(call)
        known = self._cache.get(key)
        if known is None:
            known = await self._shared(key, call)
        else:
            self.cached_count += 1
        yield Permitted(0)
        yield known.completion

    async def close(self) -> None:
        """Cancel the calls that are still under way."""
        tasks = [shared.task for shared in self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _shared(self, key: str, call: StepCall) -> Answered:
        shared = self._under_way.get(key)
        if shared is None:
            shared = _Shared(asyncio.create_task(self._kept(key, call)))
            self._under_way[key] = shared
            shared.task.add_done_callback(partial(self._ended, key, shared))
        else:
            self.cached_count += 1
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if shared.waiting == 0 and not shared.task.done():
                self._forget(key, shared)
                shared.task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([shared.task])

    def _ended(self, key: str, shared: _Shared, task: asyncio.Task[Answered]) -> None:
        self._forget(key, shared)
        if not task.cancelled():
            task.exception()  # whoever waited has seen it

    def _forget(self, key: str, shared: _Shared) -> None:
        if self._under_way.get(key) is shared:
            del self._under_way[key]

    async def _kept(self, key: str, call: StepCall) -> Answered:
        answered = await self._tried(call)
        self._cache.put(key, answered)
        return answered

    async def _tried(self, call: StepCall) -> Answered:
        worker = self._pool.get(call.worker_id)
        if worker is None or worker.price is None:
            raise PodiumError(
                Code.BUDGET_EXHAUSTED,
                f"the price of the worker {call.worker_id!r} is unknown, so no money cap can hold; give it",
                reason="PRICE_UNKNOWN",
            )
        for number in range(_TRIES):
            try:
                async with self._places[call.worker_id]:
                    await self._pace[call.worker_id].take()
                    return await self._paid(call, worker)
            except PodiumError as error:
                pause_s = self._pause_s(error)
                if number + 1 == _TRIES or pause_s is None:
                    raise
            await self._sleep(pause_s)
        raise AssertionError("unreachable: the last try returns or raises")

    def _pause_s(self, error: PodiumError) -> float | None:
        """Return how long to wait before the second try; None: it would not help."""
        if error.code not in _WORTH_A_RETRY or error.metadata.get("retryable") == "false":
            return None
        pause_s = max(self._limits.retry_pause_s, error.retry_after_s or 0.0)
        return pause_s if pause_s <= self._limits.retry_pause_at_most_s else None

    async def _paid(self, call: StepCall, worker: Worker) -> Answered:
        assert worker.price is not None
        worst = worker.price.most_usd_micros(_tokens_at_most(call), call.max_output_tokens)
        self.money.reserve(worst)
        cost = worst  # what nobody can tell
        self.call_count += 1
        try:
            answered = await self._asked(call)
            cost = answered.cost_usd_micros
        except PodiumError as error:
            told = read_failure_facts(error.metadata)
            cost = told[1] if told is not None else cost
            raise
        finally:
            self.money.settle(worst, cost)
        return answered

    async def _asked(self, call: StepCall) -> Answered:
        text, reasoning = "", ""
        completion: Completion | None = None
        try:
            async with (
                asyncio.timeout(self._limits.call_timeout_s),
                aclosing(self._workers.complete(call)) as events,
            ):
                async for event in events:
                    if isinstance(event, Permitted):
                        continue
                    delta = event if isinstance(event, Delta) else event.message
                    text, reasoning = text + delta.text, reasoning + delta.reasoning
                    completion = event if isinstance(event, Completion) else completion
        except TimeoutError:
            raise PodiumError(
                Code.DEADLINE, "the worker did not answer in time", reason="STEP_DEADLINE"
            ) from None
        if completion is None:
            raise PodiumError(
                Code.PROVIDER_FAILED, "the worker's answer ended early", reason="STREAM_INCOMPLETE"
            )
        return Answered(
            text,
            reasoning,
            completion.finish_reason,
            completion.usage,
            completion.cost_usd_micros,
            completion.latency_us,
        )


def _tokens_at_most(call: StepCall) -> int:
    """Return a number that input tokens cannot be above: no token is shorter than a byte."""
    prompt = call.prompt
    texts = [message.text for message in (*prompt.history, prompt.question, *prompt.turns)]
    texts += [piece.text for piece in prompt.pieces]
    return sum(len(text.encode(errors="replace")) for text in texts)
