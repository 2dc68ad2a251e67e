"""The heartbeat: silent while others speak, then regular."""

import asyncio

from podium_gateway.sse import Heartbeat
from tests.fakes.waiting import PATIENCE_S


async def test_it_wakes_after_silence_only() -> None:
    woken = asyncio.Event()
    heartbeat = Heartbeat(woken.set, first_s=0.01, then_s=30)
    try:
        states = [heartbeat.is_due]
        await asyncio.wait_for(woken.wait(), PATIENCE_S)
        states.append(heartbeat.is_due)
        heartbeat.heard()
        states.append(heartbeat.is_due)
        assert states == [False, True, False]
    finally:
        heartbeat.stop()


async def test_a_busy_stream_is_left_alone() -> None:
    wakes = 0

    def wake() -> None:
        nonlocal wakes
        wakes += 1

    heartbeat = Heartbeat(wake, first_s=0.02, then_s=30)
    heartbeat.heard()
    await asyncio.sleep(0.06)
    heartbeat.stop()
    assert wakes == 0
