"""The door: counted places, and closing."""

import asyncio

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.admission import Admission


async def test_a_full_house_refuses_and_says_when_to_come_back() -> None:
    admission = Admission(1, 10)
    slot = admission.enter()
    with pytest.raises(PodiumError) as caught:
        admission.enter()
    assert caught.value.code is Code.RATE_LIMITED
    assert caught.value.retry_after_s == 1.0
    slot.release()
    slot.release()
    admission.enter()
    assert admission.count == 1


async def test_draining_lets_in_and_closing_does_not() -> None:
    admission = Admission(2, 10)
    admission.drain()
    slot = admission.enter()
    admission.close()
    with pytest.raises(PodiumError) as caught:
        admission.enter()
    assert caught.value.code is Code.UNAVAILABLE
    waiting = asyncio.ensure_future(admission.empty(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    slot.release()
    assert await waiting


async def test_waiting_for_the_last_one_has_an_end() -> None:
    admission = Admission(1, 10)
    admission.enter()
    assert not await admission.empty(0.001)


async def test_bodies_are_counted_until_their_request_leaves() -> None:
    admission = Admission(9, 10)
    first, second = admission.enter(), admission.enter()
    first.hold(8)
    first.hold(6)
    second.hold(4)
    with pytest.raises(PodiumError) as caught:
        second.hold(5)
    assert caught.value.reason == "TOO_MANY_BYTES"
    first.release()
    second.hold(10)
    second.release()
    admission.enter().hold(10)
