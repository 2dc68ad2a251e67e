"""Deltas reach the reader in few messages: the first at once, the rest soon, none lost."""

import asyncio
import random
from functools import partial

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from podium_router.calls import Delta
from podium_router.outbox import BatchLimits, Completed, Outbox, Permitted
from tests.fakes.waiting import PATIENCE_S, until

NEVER_S = 3_600.0
END = Completed("stop", Usage(), 0, 0, 0, "", "", Delta())


async def taken(outbox: Outbox) -> Permitted | Delta | Completed:
    async with asyncio.timeout(PATIENCE_S):
        return await outbox.take()


async def is_waiting(outbox: Outbox) -> bool:
    task = asyncio.create_task(outbox.take())
    for _ in range(5):
        await asyncio.sleep(0)
    waits = not task.done()
    task.cancel()
    return waits


async def test_the_permit_then_the_first_delta_come_at_once() -> None:
    outbox = Outbox(BatchLimits(NEVER_S, 1_000))
    outbox.permit(7)
    assert await taken(outbox) == Permitted(7)
    outbox.put(Delta("a"))
    assert await taken(outbox) == Delta("a")


async def test_what_follows_waits_for_company() -> None:
    outbox = Outbox(BatchLimits(NEVER_S, 10))
    outbox.put(Delta("a"))
    await taken(outbox)
    outbox.put(Delta("b", "thinking", ({"index": 0},)))
    assert await is_waiting(outbox) is False, "a tool call delta counts for more than the limit here"


async def test_a_full_batch_goes_at_once_and_joined() -> None:
    outbox = Outbox(BatchLimits(NEVER_S, 10))
    outbox.put(Delta("a"))
    await taken(outbox)
    outbox.put(Delta("bcd"))
    outbox.put(Delta("", "why"))
    assert await is_waiting(outbox)
    outbox.put(Delta("efgh"))
    assert await taken(outbox) == Delta("bcdefgh", "why")


async def test_a_small_batch_goes_after_the_interval() -> None:
    outbox = Outbox(BatchLimits(0.01, 1_000))
    outbox.put(Delta("a"))
    await taken(outbox)
    outbox.put(Delta("b"))
    outbox.put(Delta("c"))
    assert await taken(outbox) == Delta("bc")


async def test_the_end_brings_what_was_gathered() -> None:
    outbox = Outbox(BatchLimits(NEVER_S, 1_000))
    outbox.put(Delta("a"))
    await taken(outbox)
    outbox.put(Delta("b"))
    outbox.finish(END)
    assert await taken(outbox) == Delta("b")
    assert await taken(outbox) is END


async def test_an_error_comes_after_what_was_gathered() -> None:
    outbox = Outbox(BatchLimits(NEVER_S, 1_000))
    outbox.permit(0)
    outbox.put(Delta("a"))
    error = PodiumError(Code.PROVIDER_FAILED, "broke")
    outbox.finish(error)
    assert await taken(outbox) == Permitted(0)
    assert await taken(outbox) == Delta("a")
    with pytest.raises(PodiumError) as raised:
        await taken(outbox)
    assert raised.value is error


async def test_only_the_first_end_counts() -> None:
    outbox = Outbox(BatchLimits())
    outbox.finish(END)
    outbox.finish(PodiumError(Code.INTERNAL, "x"))
    assert await taken(outbox) is END


async def test_a_slow_reader_stops_the_writer() -> None:
    outbox = Outbox(BatchLimits(NEVER_S, 10))
    outbox.put(Delta("x" * 10_000))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await taken(outbox)
    await waiting


async def test_a_writer_that_is_gone_ends_the_box() -> None:
    async def defect() -> None:
        raise RuntimeError("x")

    async def stopped() -> None:
        await asyncio.sleep(NEVER_S)

    broken, cancelled = Outbox(BatchLimits()), Outbox(BatchLimits())
    for outbox, work in ((broken, defect()), (cancelled, stopped())):
        task = asyncio.create_task(work)
        task.add_done_callback(outbox.close)
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(RuntimeError):
        await taken(broken)
    with pytest.raises(PodiumError) as raised:
        await taken(cancelled)
    assert raised.value.reason == "ROUTER_STOPPING"


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_or_reordered(seed: int) -> None:
    dice = random.Random(seed)
    outbox = Outbox(BatchLimits(0.001, 20))
    sent = [str(number % 10) * dice.randint(1, 30) for number in range(300)]

    async def write() -> None:
        for text in sent:
            outbox.put(Delta(text))
            await outbox.room()
            if dice.random() < 0.3:
                await asyncio.sleep(0)
        outbox.finish(END)

    writer = asyncio.create_task(write())
    got: list[str] = []
    while isinstance(event := await taken(outbox), Delta):
        got.append(event.text)
        if dice.random() < 0.3:
            await asyncio.sleep(0)
    await writer
    assert "".join(got) == "".join(sent)
    assert len(got) < len(sent)


async def test_one_that_listens_hears_of_the_permit_with_what_comes_next() -> None:
    outbox, woken = Outbox(BatchLimits(NEVER_S, 1_000)), asyncio.Event()
    outbox.listen(woken.set)
    outbox.permit(7)
    assert outbox.poll() is None
    assert not woken.is_set(), "nobody acts on a permit while the attempt goes on"
    outbox.put(Delta("a"))
    assert woken.is_set()
    assert [outbox.poll(), outbox.poll(), outbox.poll()] == [Permitted(7), Delta("a"), None]


async def test_one_that_listens_hears_of_the_permit_at_the_next_tick_at_the_latest() -> None:
    outbox, woken = Outbox(BatchLimits(0.01, 1_000)), asyncio.Event()
    outbox.listen(woken.set)
    outbox.permit(7)
    async with asyncio.timeout(PATIENCE_S):
        await woken.wait()
    assert outbox.poll() == Permitted(7)


async def test_boxes_that_gather_send_at_the_same_tick() -> None:
    limits = BatchLimits(0.5, 1_000)
    ticks: list[tuple[int, float]] = []
    boxes = [Outbox(limits) for _ in range(3)]
    loop = asyncio.get_running_loop()

    def note(number: int) -> None:
        ticks.append((number, loop.time()))

    for number, box in enumerate(boxes):
        box.listen(partial(note, number))
        box.put(Delta("first"))
        assert box.poll() == Delta("first")
        await asyncio.sleep(0.001)
        box.put(Delta("more"))
    ticks.clear()
    await until(lambda: len(ticks) >= 3)
    assert sorted(number for number, _ in ticks) == [0, 1, 2]
    assert len({round(at // 0.5) for _, at in ticks}) <= 2, "two ticks if the clock passed one meanwhile"
