"""The queue between a round and its reader."""

import asyncio

from podium_core.orchestration.event_queue import EventQueue
from podium_core.orchestration.events import AnswerDelta, RunEvent, StepStarted
from podium_core.orchestration.ports import Delta


async def _blocked(task: "asyncio.Task[None]") -> bool:
    for _ in range(10):
        await asyncio.sleep(0)
    return not task.done()


async def test_everything_comes_in_order_and_the_end_last() -> None:
    queue = EventQueue()
    told: list[RunEvent | None] = [
        AnswerDelta(Delta("a")),
        StepStarted(0, 0, "w"),
        AnswerDelta(Delta("b")),
        None,
    ]
    for event in told:
        await queue.put(event)
    assert [await queue.get() for _ in told] == told
    assert queue.empty()


async def test_output_waits_for_its_reader_by_number_and_by_size() -> None:
    for delta, count in ((Delta("x"), 64), (Delta("x" * 40_000), 2)):
        queue = EventQueue()
        for _ in range(count):
            await queue.put(AnswerDelta(delta))
        waiting = asyncio.create_task(queue.put(AnswerDelta(delta)))
        assert await _blocked(waiting)
        await queue.get()
        await waiting


async def test_what_is_no_output_never_waits() -> None:
    queue = EventQueue()
    await queue.put(AnswerDelta(Delta("x" * 100_000)))
    for number in range(1_000):
        await queue.put(StepStarted(0, number, "w"))
    await queue.put(None)
    assert not queue.empty()


async def test_a_reader_waits_for_news() -> None:
    queue = EventQueue()
    reading = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    await queue.put(None)
    assert await reading is None
