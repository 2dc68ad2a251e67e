"""Runs foreign code in sandboxes: slots with a user each, one warm sandbox per slot, deadlines."""

import asyncio
import json
import platform
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from podium_train.rewards.sandbox.bwrap import Tools, identity_of
from podium_train.rewards.sandbox.cell import Cell, Job
from podium_train.rewards.sandbox.limits import Limits, Ran, Verdict
from podium_train.rewards.sandbox.seccomp import filter_for

_CELLS_PER_SLOT = 2
"""A slot may hold the code and, apart from it, the tests that call it."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """How many runs at once, how long one may wait for its turn and for its sandbox to stand."""

    slots: int = 2
    queue_timeout_s: float = 120.0
    start_timeout_s: float = 10.0
    limits: Limits = Limits()
    use_seccomp: bool = True
    keep_warm: bool = True


DEFAULTS = SandboxSettings()
Talk = Callable[[Cell], Awaitable[Ran]]


class Sandbox:
    """Use `layers.open_sandbox`, which refuses where a required layer is missing."""

    def __init__(self, tools: Tools, settings: SandboxSettings = DEFAULTS) -> None:
        self._tools = tools
        self._settings = settings
        self._seccomp = filter_for(platform.machine()) if settings.use_seccomp and tools.bwrap else None
        self._slots: asyncio.Queue[int] = asyncio.Queue()
        for slot in range(settings.slots):
            self._slots.put_nowait(slot)
        self._warm: dict[int, asyncio.Task[Cell | None]] = {}

    @property
    def limits(self) -> Limits:
        """The bounds on each run."""
        return self._settings.limits

    async def run_program(self, source: str, stdin: bytes = b"") -> Ran:
        """Run a program with this standard input; PASSED says only that it ended well."""

        async def talk(cell: Cell) -> Ran:
            _, ran = await asyncio.gather(cell.send(stdin, last=True), cell.finish())
            return ran

        return await self._run(Job("program", source), talk)

    async def call(self, source: str, function: str, calls: Sequence[Sequence[object]]) -> Ran:
        """Call a function of the code (`name` or `Class.method`) with encoded arguments, in order.

        The replies are the messages it answered with, as many as there are calls unless the verdict says why.
        """

        async def talk(cell: Cell) -> Ran:
            replies: list[object] = []
            if await cell.hear() is None:
                ran = await cell.finish()
                return _not_passed(ran, "not_loaded")
            for number, arguments in enumerate(calls):
                await cell.send(_line({"id": number, "args": list(arguments)}))
                reply = await cell.hear()
                if reply is None or reply.get("id") != number:
                    return replace(await _unanswered(cell, reply), replies=tuple(replies))
                replies.append(reply)
            # What the code does after its last answer cannot matter.
            return replace(cell.ended(Verdict.PASSED), replies=tuple(replies))

        return await self._run(Job("serve", source, function), talk)

    async def test(self, source: str, function: str, tests: str) -> Ran:
        """Run tests in one sandbox against a function in another: neither can reach into the other."""

        async def talk(cell: Cell) -> Ran:
            if await cell.hear() is None:
                return _not_passed(await cell.finish(), "not_loaded")
            async with self._cell(slot_of[0] * _CELLS_PER_SLOT + 1) as tester:
                if tester is None or not await tester.begin(Job("test", tests, function)):
                    return Ran(Verdict.SANDBOX_ERROR, "tester_not_started")
                return await _relay(cell, tester)

        slot_of: list[int] = [0]
        return await self._run(Job("serve", source, function), talk, slot_of)

    async def test_together(self, source: str, tests: str, test_count: int) -> Ran:
        """Run unittest cases in one interpreter with the code; PASSED when all `test_count` ran and passed.

        Weaker than `test`: code that knows this very harness can reach into it. Only for tests that patch
        what the code uses or that take objects which are no plain values.
        """

        async def talk(cell: Cell) -> Ran:
            await cell.send(_line({"tests": tests}))
            told = await cell.hear()
            if told is None:
                return await _unanswered(cell, told)
            passed = told.get("done") is True and (told.get("ran"), told.get("skipped")) == (test_count, 0)
            return cell.ended(Verdict.PASSED if passed else Verdict.FAILED, "tests")

        return await self._run(Job("share", source), talk)

    async def close(self) -> None:
        """End the warm sandboxes."""
        for warm in self._warm.values():
            cell = await warm
            if cell is not None:
                await cell.close()
        self._warm.clear()

    async def _run(self, job: Job, talk: Talk, slot_of: list[int] | None = None) -> Ran:
        try:
            slot = await asyncio.wait_for(self._slots.get(), self._settings.queue_timeout_s)
        except TimeoutError:
            return Ran(Verdict.SANDBOX_ERROR, "queue_deadline")
        if slot_of is not None:
            slot_of[0] = slot
        try:
            return await self._run_in(slot, job, talk)
        finally:
            self._slots.put_nowait(slot)

    async def _run_in(self, slot: int, job: Job, talk: Talk) -> Ran:
        async with self._cell(slot * _CELLS_PER_SLOT) as cell:
            if cell is None:
                return Ran(Verdict.SANDBOX_ERROR, "not_started")
            try:
                async with asyncio.timeout(self._settings.start_timeout_s):
                    if not await cell.begin(job):
                        return cell.ended(Verdict.SANDBOX_ERROR, "not_started")
                async with asyncio.timeout(self.limits.wall_s):
                    return await talk(cell)
            except TimeoutError:
                return cell.ended(Verdict.TIMEOUT, "wall_clock")

    @asynccontextmanager
    async def _cell(self, number: int) -> AsyncGenerator[Cell | None, None]:
        cell = await self._ready(number) or await self._ready(number)
        try:
            yield cell
        finally:
            if cell is not None:
                await cell.close()
            if self._settings.keep_warm:
                self._warm[number] = asyncio.create_task(self._started(number))

    async def _ready(self, number: int) -> Cell | None:
        """Return the sandbox that waits here, or a new one; None when it did not come up."""
        starting = self._warm.pop(number, None) or asyncio.create_task(self._started(number))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._warm[number] = starting  # for whoever has the slot next
            raise

    async def _started(self, number: int) -> Cell | None:
        cell = Cell(self._tools, self.limits, identity_of(number), self._seccomp)
        stands = False
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                stands = await cell.start()
        except TimeoutError:
            return None
        finally:
            if not stands:
                await cell.close()
        return cell if stands else None


def _line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _not_passed(ran: Ran, reason: str) -> Ran:
    """Return the end of code that owes an answer: leaving early is a failure, however politely."""
    return replace(ran, verdict=Verdict.FAILED, reason=reason) if ran.verdict is Verdict.PASSED else ran


async def _unanswered(cell: Cell, reply: Mapping[str, object] | None) -> Ran:
    """Return the end of code that gave no answer, or one to something it was not asked."""
    if reply is not None:
        return cell.ended(Verdict.FAILED, "bad_reply")
    await cell.send(b"", last=True)
    return _not_passed(await cell.finish(), "no_reply")


async def _relay(code: Cell, tester: Cell) -> Ran:
    while (message := await tester.hear()) is not None:
        if "done" in message:
            return code.ended(Verdict.PASSED if message["done"] is True else Verdict.FAILED, "tests")
        asked = {"id": message.get("call"), "args": message.get("args"), "function": message.get("function")}
        await code.send(_line(asked))
        reply = await code.hear()
        if reply is None or reply.get("id") != message.get("call"):
            return await _unanswered(code, reply)
        await tester.send(_line(reply))
    await tester.finish()
    return code.ended(Verdict.FAILED, "tests")
