"""A run in its own task: its reader may be slow or leave, and it still ends properly."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.events import AnswerDelta, RunEvent
from podium_core.orchestration.ports import Delta
from podium_gateway.live_run import LiveRun
from tests.fakes.waiting import PATIENCE_S


class _Watch(contextlib.AbstractContextManager["_Watch"]):
    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, event: RunEvent) -> None:
        self.seen += 1

    def __exit__(self, *exc: object) -> None:
        return None


class _Script:
    """A run whose events a test lets go."""

    def __init__(self, count: int = 3, error: Exception | None = None) -> None:
        self.count = count
        self.error = error
        self.go = asyncio.Event()
        self.made = 0
        self.ended_by = ""

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        try:
            await self.go.wait()
            for self.made in range(1, self.count + 1):  # noqa: B020 - counts on itself
                yield AnswerDelta(Delta("x"))
            if self.error is not None:
                raise self.error
            self.ended_by = "itself"
        except (asyncio.CancelledError, GeneratorExit):
            await asyncio.sleep(0)
            self.ended_by = "cancelled, sealed"
            raise


def _start(script: _Script) -> tuple[LiveRun, asyncio.Event]:
    ended = asyncio.Event()
    return LiveRun("run_1", script.events(), _Watch(), ended.set), ended


async def test_waiting_events_come_in_one_batch() -> None:
    script = _Script(3)
    run, ended = _start(script)
    script.go.set()
    await ended.wait()
    assert len(await run.batch()) == 3
    with pytest.raises(PodiumError) as caught:
        await run.batch()
    assert caught.value.code is Code.INTERNAL


async def test_a_slow_reader_holds_the_run_back() -> None:
    script = _Script(10_000)
    run, ended = _start(script)
    script.go.set()
    for _ in range(50):
        await asyncio.sleep(0)
    assert script.made <= 300
    read = 0
    while read < 10_000:
        read += len(await run.batch())
    await ended.wait()
    assert script.ended_by == "itself"


async def test_cancelling_a_run_that_waits_for_its_reader_closes_it_too() -> None:
    script = _Script(10_000)
    run, ended = _start(script)
    script.go.set()
    for _ in range(50):
        await asyncio.sleep(0)
    run.cancel()
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    assert script.ended_by == "cancelled, sealed"


async def test_who_cancels_says_why() -> None:
    script = _Script()
    run, ended = _start(script)
    await asyncio.sleep(0)
    run.cancel(PodiumError(Code.AUDIT_UNAVAILABLE, "lease lost"))
    run.cancel()
    with pytest.raises(PodiumError, match="lease lost"):
        await run.batch()
    await ended.wait()
    assert script.ended_by == "cancelled, sealed"


async def test_a_refusal_reaches_the_reader() -> None:
    script = _Script(0, PodiumError(Code.POLICY_DENIED, "no"))
    run, _ = _start(script)
    script.go.set()
    with pytest.raises(PodiumError, match="no"):
        await run.batch()


async def test_a_defect_is_internal_to_the_reader_and_whole_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = _Script(0, RuntimeError("secret-dsn"))
    run, _ = _start(script)
    script.go.set()
    with pytest.raises(PodiumError) as caught:
        await run.batch()
    assert caught.value.code is Code.INTERNAL
    assert "secret-dsn" not in caught.value.message
    assert caplog.records[0].exc_info is not None


async def test_a_nudge_wakes_without_news() -> None:
    run, _ = _start(_Script())
    asyncio.get_running_loop().call_soon(run.nudge)
    assert await run.batch() == []
    run.cancel()
