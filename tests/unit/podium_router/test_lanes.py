"""A worker's lane holds what it may, queues what it can, and never loses a place."""

import asyncio

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_router.lanes import Lane, LaneLimits


def lane(capacity: int, *, max_waiting: int = 10, max_wait_s: float = 60.0) -> Lane:
    made = Lane(LaneLimits(max_waiting, max_wait_s))
    made.resize(capacity)
    return made


async def enter(of: Lane, seconds: float = 60.0) -> None:
    await of.enter(asyncio.get_running_loop().time() + seconds)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Visitor:
    """Enters a lane and stays until told to go."""

    def __init__(self, of: Lane, seconds: float = 60.0) -> None:
        self.is_in = False
        self.go = asyncio.Event()
        self.task = asyncio.create_task(self._visit(of, seconds))

    async def _visit(self, of: Lane, seconds: float) -> None:
        await enter(of, seconds)
        self.is_in = True
        await self.go.wait()
        of.leave()


async def test_only_so_many_are_in_and_the_rest_follow_in_order() -> None:
    of = lane(2)
    visitors = [Visitor(of) for _ in range(5)]
    await settle()
    assert [visitor.is_in for visitor in visitors] == [True, True, False, False, False]
    visitors[1].go.set()
    await settle()
    assert [visitor.is_in for visitor in visitors] == [True, True, True, False, False]
    for visitor in visitors:
        visitor.go.set()
    await asyncio.gather(*[visitor.task for visitor in visitors])
    assert of.active == 0


async def test_a_full_queue_refuses_at_once() -> None:
    of = lane(1, max_waiting=1)
    visitors = [Visitor(of), Visitor(of)]
    await settle()
    with pytest.raises(PodiumError) as refused:
        await enter(of)
    assert (refused.value.code, refused.value.reason) == (Code.RATE_LIMITED, "WORKER_BUSY")
    assert refused.value.retry_after_s == 1.0
    for visitor in visitors:
        visitor.go.set()
    await asyncio.gather(*[visitor.task for visitor in visitors])


async def test_a_wait_ends_at_its_deadline_and_leaves_no_trace() -> None:
    of = lane(1)
    first = Visitor(of)
    await settle()
    with pytest.raises(PodiumError) as refused:
        await enter(of, seconds=0.0)
    assert refused.value.code is Code.RATE_LIMITED
    first.go.set()
    await first.task
    await enter(of)
    assert of.active == 1


async def test_a_cancelled_waiter_gives_up_its_turn() -> None:
    of = lane(1)
    first, second, third = Visitor(of), Visitor(of), Visitor(of)
    await settle()
    second.task.cancel()
    first.go.set()
    await settle()
    assert (second.is_in, third.is_in) == (False, True)
    third.go.set()
    await third.task
    assert of.active == 0


async def test_a_waiter_cancelled_as_its_turn_comes_passes_it_on() -> None:
    of = lane(1)
    first, second, third = Visitor(of), Visitor(of), Visitor(of)
    await settle()
    first.go.set()
    await asyncio.sleep(0)
    second.task.cancel()
    await settle()
    assert third.is_in
    third.go.set()
    await third.task
    assert of.active == 0


async def test_growing_lets_waiters_in_and_shrinking_throws_nobody_out() -> None:
    of = lane(1)
    visitors = [Visitor(of) for _ in range(3)]
    await settle()
    of.resize(3)
    await settle()
    assert all(visitor.is_in for visitor in visitors)
    of.resize(1)
    late = Visitor(of)
    visitors[0].go.set()
    await settle()
    assert not late.is_in
    for visitor in [*visitors, late]:
        visitor.go.set()
    await asyncio.gather(*[visitor.task for visitor in [*visitors, late]])
    assert of.active == 0


async def test_zero_means_not_limited() -> None:
    of = lane(0)
    visitors = [Visitor(of) for _ in range(50)]
    await settle()
    assert of.active == 50
    for visitor in visitors:
        visitor.go.set()
    await asyncio.gather(*[visitor.task for visitor in visitors])
