"""The door: counted places, and closing."""

import asyncio

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.admission import Admission


async def test_a_full_house_refuses_and_says_when_to_come_back() -> None:
    admission = Admission(1, 10)
    slot = admission.enter("acme")
    with pytest.raises(PodiumError) as caught:
        admission.enter("acme")
    assert caught.value.code is Code.RATE_LIMITED
    assert caught.value.retry_after_s == 1.0
    slot.release()
    slot.release()
    admission.enter("acme")
    assert admission.count == 1


async def test_draining_lets_in_and_closing_does_not() -> None:
    admission = Admission(2, 10)
    admission.drain()
    slot = admission.enter("acme")
    admission.close()
    with pytest.raises(PodiumError) as caught:
        admission.enter("acme")
    assert caught.value.code is Code.UNAVAILABLE
    waiting = asyncio.ensure_future(admission.empty(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    slot.release()
    assert await waiting


async def test_waiting_for_the_last_one_has_an_end() -> None:
    admission = Admission(1, 10)
    admission.enter("acme")
    assert not await admission.empty(0.001)


async def test_bodies_are_counted_until_their_request_leaves() -> None:
    admission = Admission(9, 10)
    first, second = admission.enter("acme"), admission.enter("acme")
    first.hold(8)
    first.hold(6)
    second.hold(4)
    with pytest.raises(PodiumError) as caught:
        second.hold(5)
    assert caught.value.reason == "TOO_MANY_BYTES"
    first.release()
    second.hold(10)
    second.release()
    admission.enter("acme").hold(10)


async def test_one_tenant_cannot_take_every_place_nor_every_byte() -> None:
    admission = Admission(4, 100, lambda: 0.75)
    slots = [admission.enter("acme") for _ in range(3)]
    with pytest.raises(PodiumError) as caught:
        admission.enter("acme")
    assert (caught.value.code, caught.value.reason) == (Code.RATE_LIMITED, "TENANT_BUSY")
    assert caught.value.retry_after_s == 1.0
    other = admission.enter("other")
    slots[0].hold(75)
    with pytest.raises(PodiumError) as caught:
        slots[1].hold(1)
    assert caught.value.reason == "TENANT_BUSY"
    other.hold(25)
    slots[0].release()
    slots[1].hold(75)
    admission_again = admission.enter("acme")
    for slot in (*slots, other, admission_again):
        slot.release()
    assert admission.count == 0


async def test_a_tenant_always_has_one_place() -> None:
    admission = Admission(1, 100, lambda: 0.5)
    admission.enter("acme")
