"""Large work leaves the loop free, small work stays where it is, and errors come back as they were."""

import threading
import time

import pytest

from podium_core.domain.errors import PodiumError
from podium_core.runtime.side_thread import aside
from podium_gateway.codecs.openai_chat import decode_chat_request


async def test_only_large_work_leaves_the_loops_thread() -> None:
    here = threading.get_ident()
    assert await aside(1_000, threading.get_ident) == here
    assert await aside(1_000_000, threading.get_ident) != here


async def test_errors_come_back_as_they_were() -> None:
    with pytest.raises(PodiumError) as caught:
        await aside(1_000_000, decode_chat_request, b"{")
    assert caught.value.reason == "MALFORMED_JSON"


async def test_large_work_is_done_one_at_a_time() -> None:
    running: list[int] = []

    def work() -> int:
        running.append(1)
        time.sleep(0.002)
        return running.pop() + len(running)

    assert [await aside(1_000_000, work) for _ in range(3)] == [1, 1, 1]
