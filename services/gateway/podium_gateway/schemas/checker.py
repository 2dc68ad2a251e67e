"""Has schemas and answers checked in processes of their own, each question within a time that is kept."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError

_CHILD = "podium_gateway.schemas.child"
_MAX_REPLY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong: `where` in the schema, and `advice` to whoever wrote what was checked."""

    where: str
    advice: str


class SchemaChecker:
    """A few child processes, started when first needed and kept; one that is too slow is stopped.

    `budget_s` bounds one check, `start_s` the start of a process, `queue_s` the wait for a free one.
    """

    def __init__(
        self, *, processes: int = 2, budget_s: float = 1.0, start_s: float = 20.0, queue_s: float = 10.0
    ) -> None:
        self._free = asyncio.Semaphore(processes)
        self._idle: list[Process] = []
        self._budget_s = budget_s
        self._start_s = start_s
        self._queue_s = queue_s

    async def problem(self, schema: Mapping[str, object], text: str | None) -> Problem | None:
        """Return what is wrong with `text`, or with the schema itself when it is None; None if nothing.

        Raises PodiumError: INVALID_REQUEST (SCHEMA_TOO_COSTLY) when it cannot be found out in time,
        UNAVAILABLE (SCHEMA_CHECK_UNAVAILABLE) when no process is to be had.
        """
        question = json.dumps({"schema": schema, "text": text}).encode() + b"\n"
        try:
            async with asyncio.timeout(self._queue_s):
                await self._free.acquire()
        except TimeoutError:
            raise _unavailable() from None
        try:
            found = await self._ask(question)
        finally:
            self._free.release()
        return Problem(found.get("where", ""), found["advice"]) if found else None

    async def close(self) -> None:
        """Stop every process."""
        for process in self._idle:
            await _stop(process)
        self._idle.clear()

    async def _ask(self, question: bytes) -> dict[str, str]:
        process = self._idle.pop() if self._idle else await self._start()
        is_kept = False
        try:
            async with asyncio.timeout(self._budget_s):
                reply = await _exchange(process, question)
            is_kept = bool(reply)
        except TimeoutError:
            raise _too_costly() from None
        finally:
            if is_kept:
                self._idle.append(process)
            else:
                await asyncio.shield(_stop(process))
        if not reply:  # out of memory
            raise _too_costly()
        found: dict[str, str] = json.loads(reply)
        return found

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            _CHILD,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=_MAX_REPLY_BYTES,
        )
        is_ready = b""
        try:
            async with asyncio.timeout(self._start_s):
                is_ready = await _exchange(process, b"")
        except TimeoutError:
            raise _unavailable() from None
        finally:
            if not is_ready:
                await asyncio.shield(_stop(process))
        if not is_ready:
            raise _unavailable()
        return process


async def _exchange(process: Process, question: bytes) -> bytes:
    """Return the reply; empty when the process is gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(question)
        await process.stdin.drain()
        return await process.stdout.readline()
    except ConnectionError:
        return b""


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.communicate()


def _too_costly() -> PodiumError:
    return PodiumError(
        Code.INVALID_REQUEST,
        "checking the answer against response_format's schema takes too long; simplify the schema",
        reason="SCHEMA_TOO_COSTLY",
        param="response_format",
    )


def _unavailable() -> PodiumError:
    return PodiumError(
        Code.UNAVAILABLE,
        "answers cannot be checked against a schema just now; try again",
        reason="SCHEMA_CHECK_UNAVAILABLE",
        retry_after_s=1.0,
    )
