"""The ends of attempts reach the log, behind the caller's back but never behind ours."""

import asyncio
from dataclasses import dataclass, field

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptOutcome
from podium_core.domain.usage import Usage
from podium_router.calls import AttemptBegin, AttemptEnd
from podium_router.endings import Endings
from tests.fakes.waiting import PATIENCE_S


@dataclass
class HeldLog:
    """A log that takes ends only when it is opened."""

    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    is_reachable: asyncio.Event | None = None
    told: list[str] = field(default_factory=list)
    error: PodiumError | None = None

    async def begin(self, begin: AttemptBegin, timeout_s: float) -> int:
        raise NotImplementedError

    async def end(self, end: AttemptEnd, sent: asyncio.Event) -> None:
        if self.is_reachable is not None:
            await self.is_reachable.wait()
        sent.set()
        await self.is_open.wait()
        if self.error is not None:
            raise self.error
        self.told.append(end.attempt_id)


def end(attempt_id: str = "a", run_id: str = "r", *, dispatched: bool = True) -> AttemptEnd:
    return AttemptEnd(attempt_id, run_id, AttemptOutcome.COMPLETED, Usage(), 0, 0, dispatched)


async def test_sending_does_not_wait_for_the_log() -> None:
    log = HeldLog()
    endings = Endings(log, 10)
    async with asyncio.timeout(PATIENCE_S):
        await endings.send(end())
    assert (endings.pending, log.told) == (1, [])
    log.is_open.set()
    assert await endings.drain(PATIENCE_S) == 0
    assert log.told == ["a"]


async def test_sending_waits_until_the_end_is_on_its_way() -> None:
    log = HeldLog(is_reachable=asyncio.Event())
    endings = Endings(log, 10)
    sending = asyncio.create_task(endings.send(end()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not sending.done()
    assert log.is_reachable is not None
    log.is_reachable.set()
    await sending
    assert log.told == []
    log.is_open.set()
    await endings.drain(PATIENCE_S)


async def test_too_many_unconfirmed_ends_stop_new_attempts() -> None:
    log = HeldLog()
    endings = Endings(log, 2)
    endings.add(end("a"))
    endings.check_room()
    endings.add(end("b"))
    with pytest.raises(PodiumError) as refused:
        endings.check_room()
    assert refused.value.code is Code.AUDIT_UNAVAILABLE
    log.is_open.set()
    await endings.drain(PATIENCE_S)
    endings.check_room()


async def test_a_refused_end_is_logged_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    log = HeldLog(error=PodiumError(Code.CONFLICT, "the attempt has ended already"))
    log.is_open.set()
    endings = Endings(log, 10)
    await endings.send(end())
    assert await endings.drain(PATIENCE_S) == 0
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_an_attempt_that_the_log_never_held_needs_no_word(caplog: pytest.LogCaptureFixture) -> None:
    log = HeldLog(error=PodiumError(Code.NOT_FOUND, "no such attempt"))
    log.is_open.set()
    endings = Endings(log, 10)
    endings.add(end(dispatched=False))
    await endings.drain(PATIENCE_S)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, ["a"]),
        (PodiumError(Code.AUDIT_UNAVAILABLE, "x"), ["a"]),
        (PodiumError(Code.BUDGET_EXHAUSTED, "x"), []),
        (PodiumError(Code.POLICY_DENIED, "x"), []),
    ],
)
async def test_after_a_cancelled_begin_the_log_hears_only_what_it_may_hold(
    error: PodiumError | None, told: list[str]
) -> None:
    log = HeldLog()
    log.is_open.set()
    endings = Endings(log, 10)

    async def begin() -> int:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return 1

    endings.add_after(asyncio.create_task(begin()), end(dispatched=False))
    await endings.drain(PATIENCE_S)
    assert log.told == told


async def test_one_can_wait_for_the_ends_of_a_run() -> None:
    log = HeldLog()
    endings = Endings(log, 10)
    assert await endings.confirmed("r", PATIENCE_S) is False, "nothing was on its way"
    endings.add(end("a", "r"))
    assert await endings.confirmed("other", 1) is False
    assert await endings.confirmed("r", 0) is False
    log.is_open.set()
    assert await endings.confirmed("r", PATIENCE_S) is True


async def test_draining_gives_up_in_time() -> None:
    endings = Endings(HeldLog(), 10)
    endings.add(end())
    assert await endings.drain(0) == 1
