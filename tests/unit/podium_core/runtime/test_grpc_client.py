"""The retry between services: only what may help, only within the budget."""

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_client import call_metadata, retry_unary
from tests.fakes.ids import FakeClock


class Flaky:
    """A call that fails as told, then answers; each try takes `takes_s`."""

    def __init__(self, clock: FakeClock, failures: list[PodiumError], takes_s: float = 0.0) -> None:
        self.timeouts: list[float] = []
        self.pauses: list[float] = []
        self._clock = clock
        self._failures = failures
        self._takes_s = takes_s

    async def call(self, timeout_s: float) -> str:
        self.timeouts.append(timeout_s)
        self._clock.advance(self._takes_s)
        if self._failures:
            raise self._failures.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._clock.advance(seconds)


async def _run(flaky: Flaky, clock: FakeClock, budget_s: float = 5.0) -> str:
    return await retry_unary(flaky.call, service="audit", budget_s=budget_s, clock=clock, sleep=flaky.sleep)


def _gone(retry_after_s: float | None = None) -> PodiumError:
    return PodiumError(Code.AUDIT_UNAVAILABLE, "gone", retry_after_s=retry_after_s)


async def test_an_unavailable_service_is_asked_again_with_growing_pauses() -> None:
    clock = FakeClock()
    flaky = Flaky(clock, [_gone() for _ in range(6)])
    assert await _run(flaky, clock) == "answer"
    assert len(flaky.pauses) == 6
    assert flaky.pauses[-1] > 4 * flaky.pauses[0]


async def test_each_try_gets_the_time_that_is_left() -> None:
    clock = FakeClock()
    flaky = Flaky(clock, [_gone()], takes_s=1.0)
    await _run(flaky, clock)
    assert flaky.timeouts[0] == 5.0
    assert flaky.timeouts[1] == pytest.approx(5.0 - 1.0 - flaky.pauses[0], abs=1e-6)


async def test_the_budget_ends_the_tries_with_the_last_error() -> None:
    clock = FakeClock()
    flaky = Flaky(clock, [_gone() for _ in range(1_000)])
    with pytest.raises(PodiumError) as failed:
        await _run(flaky, clock, budget_s=3.0)
    assert failed.value.code is Code.AUDIT_UNAVAILABLE
    assert clock.steady_ns <= 3_000_000_000
    assert 4 < len(flaky.timeouts) < 20
    assert min(flaky.timeouts) > 0


async def test_the_service_may_ask_for_a_longer_pause() -> None:
    clock = FakeClock()
    flaky = Flaky(clock, [_gone(retry_after_s=2.0)])
    await _run(flaky, clock)
    assert flaky.pauses == [2.0]


@pytest.mark.parametrize("code", [code for code in Code if not code.value.endswith("UNAVAILABLE")])
async def test_nothing_else_is_tried_twice(code: Code) -> None:
    clock = FakeClock()
    flaky = Flaky(clock, [PodiumError(code, "no")])
    with pytest.raises(PodiumError):
        await _run(flaky, clock)
    assert len(flaky.timeouts) == 1


def test_without_a_recorded_span_calls_carry_no_metadata() -> None:
    assert call_metadata() == ()
