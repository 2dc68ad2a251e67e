"""A worker's lane holds what it may, queues what it can, and never loses a place."""

import asyncio

import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_router.lanes import Lane, LaneLimits, LaneSize, Place
from tests.fakes.waiting import until


def lane(
    capacity: int,
    *,
    max_waiting: int = 10,
    max_wait_s: float = 60.0,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> Lane:
    made = Lane(LaneLimits(max_waiting, max_wait_s), SystemClock())
    made.resize(LaneSize(capacity, requests_per_minute, tokens_per_minute))
    return made


async def enter(of: Lane, seconds: float = 60.0, *, tenant_id: str = "t", tokens: int = 0) -> Place:
    place = Place(tenant_id, tokens)
    await of.enter(place, asyncio.get_running_loop().time() + seconds)
    return place


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Visitor:
    """Enters a lane and stays until told to go."""

    def __init__(self, of: Lane, seconds: float = 60.0, tenant_id: str = "t") -> None:
        self.is_in = False
        self.tenant_id = tenant_id
        self.go = asyncio.Event()
        self.task = asyncio.create_task(self._visit(of, seconds))

    async def _visit(self, of: Lane, seconds: float) -> None:
        place = await enter(of, seconds, tenant_id=self.tenant_id)
        self.is_in = True
        await self.go.wait()
        of.leave(place)


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
    of.resize(LaneSize(3))
    await settle()
    assert all(visitor.is_in for visitor in visitors)
    of.resize(LaneSize(1))
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


async def test_tenants_take_turns_however_many_calls_one_sends() -> None:
    of = lane(1, max_waiting=100)
    flood = [Visitor(of, tenant_id="loud") for _ in range(20)]
    await settle()
    quiet = [Visitor(of, tenant_id="quiet") for _ in range(2)]
    await settle()
    order: list[str] = []
    waiting = [*flood, *quiet]
    for _ in range(6):
        (visitor,) = [v for v in waiting if v.is_in]
        order.append(visitor.tenant_id)
        waiting.remove(visitor)
        visitor.go.set()
        await settle()
    assert order == ["loud", "loud", "quiet", "loud", "quiet", "loud"]
    for visitor in waiting:
        visitor.go.set()
    await asyncio.gather(*[visitor.task for visitor in waiting])
    assert (of.active, of.waiting) == (0, 0)


async def test_where_the_queue_is_full_the_tenant_with_most_calls_gives_way() -> None:
    of = lane(1, max_waiting=3)
    loud = [Visitor(of, tenant_id="loud") for _ in range(4)]
    await settle()
    quiet = Visitor(of, tenant_id="quiet")
    await settle()
    with pytest.raises(PodiumError) as refused:
        await loud[3].task
    assert refused.value.reason == "WORKER_BUSY"
    with pytest.raises(PodiumError):
        await enter(of, tenant_id="loud")
    assert of.waiting == 3
    for visitor in (*loud[:3], quiet):
        visitor.go.set()
    await asyncio.gather(*[visitor.task for visitor in (*loud[:3], quiet)])


async def test_requests_per_minute_are_kept_and_the_next_one_comes_in_its_time() -> None:
    of = lane(0, requests_per_minute=1_200)
    loop = asyncio.get_running_loop()
    for _ in range(1_200):
        of.leave(await enter(of))
    began_s = loop.time()
    for _ in range(3):
        of.leave(await enter(of))
    assert loop.time() - began_s > 0.1, "one each 50 ms"


async def test_a_wait_that_is_too_long_is_refused_at_once_and_says_when_to_come_again() -> None:
    of = lane(0, requests_per_minute=2)
    for _ in range(2):
        of.leave(await enter(of))
    with pytest.raises(PodiumError) as refused:
        await enter(of, seconds=5.0)
    assert (refused.value.code, refused.value.reason) == (Code.RATE_LIMITED, "WORKER_RATE_LIMITED")
    assert refused.value.retry_after_s == pytest.approx(30.0, abs=1.0)
    assert of.waiting == 0


async def test_tokens_are_reserved_as_estimated_and_settled_as_used() -> None:
    of = lane(0, tokens_per_minute=1_000)
    first = await enter(of, tokens=900)
    with pytest.raises(PodiumError):
        await enter(of, seconds=1.0, tokens=500)
    first.used_tokens = 100
    of.leave(first)
    second = await enter(of, seconds=0.5, tokens=500)
    second.used_tokens = 2_000
    of.leave(second)
    with pytest.raises(PodiumError) as refused:
        await enter(of, seconds=1.0, tokens=1)
    assert refused.value.retry_after_s == pytest.approx(66.0, abs=2.0), "more was used than there was"


async def test_a_call_larger_than_a_minutes_allowance_waits_for_all_of_it_and_no_longer() -> None:
    of = lane(0, tokens_per_minute=100)
    await enter(of, seconds=0.5, tokens=5_000)
    assert of.active == 1


async def test_who_cannot_wait_out_a_pause_is_refused_at_once_and_the_rest_go_in_after_it() -> None:
    of = lane(1)
    inside = await enter(of)
    hasty, patient = Visitor(of, 0.2), Visitor(of, 30.0)
    await settle()
    began_s = asyncio.get_running_loop().time()
    of.pause(0.5)
    of.pause(0.1)  # the longest counts
    await settle()
    assert hasty.task.done()
    assert isinstance(error := hasty.task.exception(), PodiumError)
    assert (error.code, error.reason) == (Code.RATE_LIMITED, "WORKER_PAUSED")
    of.leave(inside)
    await until(lambda: patient.is_in)
    assert asyncio.get_running_loop().time() - began_s >= 0.5
    patient.go.set()
    await patient.task


async def test_nobody_waits_out_a_long_pause_however_patient() -> None:
    of = lane(1)
    inside = await enter(of)
    waiting = Visitor(of)
    await settle()
    of.pause(7)
    with pytest.raises(PodiumError) as refused:
        await enter(of)
    assert (refused.value.reason, of.is_paused) == ("WORKER_PAUSED", True)
    with pytest.raises(PodiumError) as dropped:
        await waiting.task
    assert dropped.value.reason == "WORKER_PAUSED"
    of.leave(inside)


async def test_a_pause_can_be_called_off() -> None:
    of = lane(1)
    of.pause(4)
    visitor = Visitor(of)
    await settle()
    assert [visitor.is_in] == [False]
    of.end_pause()
    await settle()
    assert [visitor.is_in] == [True]
    visitor.go.set()
    await visitor.task
