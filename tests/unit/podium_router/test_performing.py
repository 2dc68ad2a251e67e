"""The router's side of the shared stream: how far it runs ahead of a reader, and what it takes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import PodiumError
from podium_core.runtime.grpc_errors import unpacked_error
from podium_router.calls import Delta
from podium_router.dispatch import Running
from podium_router.outbox import BatchLimits, Outbox
from podium_router.performing import Performing
from tests.fakes.waiting import PATIENCE_S

AT_ONCE = BatchLimits(interval_s=0, size=1)


class Talk:
    """A caller whose messages the test queues, and attempts whose boxes it fills."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.boxes: list[Outbox] = []
        self._messages: asyncio.Queue[pb.PerformRequest] = asyncio.Queue()
        self.responses = Performing(self._start, self.closing).responses(self._requests())

    def say(self, **fields: object) -> None:
        self._messages.put_nowait(pb.PerformRequest(**fields))  # type: ignore[arg-type]

    def ask(self, operation_id: int) -> None:
        self.say(operations=[pb.Operation(operation_id=operation_id, timeout_ms=1_000)])

    async def hear(self) -> list[pb.OperationEvent]:
        async with asyncio.timeout(PATIENCE_S):
            return list((await anext(self.responses)).events)

    async def _requests(self) -> AsyncIterator[pb.PerformRequest]:
        while True:
            yield await self._messages.get()

    def _start(self, request: pb.CompleteRequest, timeout_s: float) -> Running:
        del request, timeout_s
        self.boxes.append(Outbox(AT_ONCE))
        return Running(self.boxes[-1], asyncio.create_task(asyncio.sleep(3_600)))


async def test_an_attempt_runs_at_most_64_events_ahead_of_its_reader() -> None:
    talk = Talk()
    async with aclosing(talk.responses):
        talk.ask(1)
        first = asyncio.create_task(talk.hear())
        while not talk.boxes:
            await asyncio.sleep(0)
        heard = []
        for number in range(100):
            talk.boxes[0].put(Delta(f"{number} "))
            if number < 64:
                heard += await (first if number == 0 else talk.hear())
        assert [event.event.delta.text for event in heard] == [f"{number} " for number in range(64)]
        more = asyncio.create_task(talk.hear())
        await asyncio.sleep(0.01)
        assert not more.done(), "the reader has taken nothing yet"
        talk.say(taken=[pb.Taken(operation_id=1, event_count=16)])
        (rest,) = await more
        assert rest.event.delta.text == "".join(f"{number} " for number in range(64, 100))


async def test_an_id_in_use_is_refused_and_the_first_goes_on() -> None:
    talk = Talk()
    async with aclosing(talk.responses):
        talk.ask(7)
        talk.ask(7)
        (refused,) = await talk.hear()
        error = unpacked_error(refused.status, "router")
        assert isinstance(error, PodiumError)
        assert error.param == "operation_id"
        talk.boxes[0].put(Delta("still here"))
        (event,) = await talk.hear()
        assert event.event.delta.text == "still here"
    assert len(talk.boxes) == 1


async def test_a_defect_in_an_attempt_tells_nothing_of_itself() -> None:
    talk = Talk()
    async with aclosing(talk.responses):
        talk.ask(1)
        first = asyncio.create_task(talk.hear())
        while not talk.boxes:
            await asyncio.sleep(0)
        talk.boxes[0].finish(RuntimeError("secret"))
        (event,) = await first
    error = unpacked_error(event.status, "router")
    assert (error.code.value, "secret" in error.message) == ("INTERNAL", False)
