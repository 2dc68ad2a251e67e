"""Grades mathematics with Math-Verify, in processes that are killed and replaced when they take too long."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.grading.extraction import answer_in
from podium_core.grading.result import Grade, Graded, judged, unreadable

_COMMAND = (sys.executable, "-m", "podium_train.rewards.math_worker")
_MAX_ANSWER_CHARS = 4_000
_EXIT_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class MathSettings:
    """How many processes, how long one answer may take, and how long a process may take to start."""

    processes: int = 1
    timeout_s: float = 5.0
    start_timeout_s: float = 60.0
    queue_timeout_s: float = 300.0
    command: Sequence[str] = _COMMAND


class MathVerifier:
    """A few processes that verify. Use `open_math_verifier`."""

    def __init__(self, settings: MathSettings = MathSettings()) -> None:
        self._settings = settings
        self._free: asyncio.Queue[asyncio.subprocess.Process | None] = asyncio.Queue()
        for _ in range(settings.processes):
            self._free.put_nowait(None)

    async def grade(self, reference: str, text: str) -> Graded:
        """Return the grade of a whole answer text.

        Unscorable with the reason `timeout` when a fresh process did not end in time either, `no_reference`
        when the reference is not understood, `no_verifier` when no process starts.
        """
        if unread := unreadable(text):
            return unread
        answer = answer_in(text)
        given = answer.first[-_MAX_ANSWER_CHARS:]
        asked = f"\\boxed{{{given}}}" if answer.is_tagged else answer.visible[-_MAX_ANSWER_CHARS:]
        try:
            process = await asyncio.wait_for(self._free.get(), self._settings.queue_timeout_s)
        except TimeoutError:
            return Graded(Grade.UNSCORABLE, given, "queue_deadline")
        try:
            process, said = await self._twice(process, reference, asked)
        finally:
            self._free.put_nowait(process)
        if said in {"right", "wrong"}:
            return judged(given, is_right=said == "right")
        return Graded(Grade.UNSCORABLE, given, said)

    async def close(self) -> None:
        """End every process."""
        while not self._free.empty():
            await _end(self._free.get_nowait())

    async def _twice(
        self, process: asyncio.subprocess.Process | None, reference: str, answer: str
    ) -> tuple[asyncio.subprocess.Process | None, str]:
        """Ask, and ask a fresh process once more, so that a busy machine is not taken for a bad answer."""
        said = "no_verifier"
        for _ in range(2):
            if process is None or process.returncode is not None:
                process = await self._started()
            if process is None:
                return None, "no_verifier"
            try:
                said = await asyncio.wait_for(_ask(process, reference, answer), self._settings.timeout_s)
            except TimeoutError:
                said = "timeout"
            except asyncio.CancelledError:
                await _end(process)
                raise
            if said in {"right", "wrong", "no_reference"}:
                return process, said
            await _end(process)
            process = None
        return process, said

    async def _started(self) -> asyncio.subprocess.Process | None:
        process = await asyncio.create_subprocess_exec(
            *self._settings.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                if await process.stdout.readline() == b"ready\n":
                    return process
        except TimeoutError:
            pass
        await _end(process)
        return None


@asynccontextmanager
async def open_math_verifier(settings: MathSettings = MathSettings()) -> AsyncGenerator[MathVerifier, None]:
    """Open a verifier and see that it verifies; raises UNAVAILABLE when Math-Verify is not installed."""
    verifier = MathVerifier(settings)
    try:
        graded = await verifier.grade("1/2", "\\boxed{0.5}")
        if not graded.is_right:
            raise PodiumError(
                Code.UNAVAILABLE,
                "Math-Verify does not work here: install the extra `train` (docs/training.md)",
                reason="MATH_VERIFY_UNAVAILABLE",
            )
        yield verifier
    finally:
        await verifier.close()


@dataclass(frozen=True, slots=True)
class MathGrader:
    """An `AnswerGrader` of one reference."""

    verifier: MathVerifier
    reference: str

    async def is_right(self, text: str) -> bool | None:
        """Return whether the answer is right; None when nobody can say. An empty answer is wrong."""
        graded = await self.verifier.grade(self.reference, text)
        if graded.grade is Grade.UNSCORABLE and graded.reason not in {"empty", "too_long"}:
            return None
        return graded.is_right


async def _ask(process: asyncio.subprocess.Process, reference: str, answer: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps({"reference": reference, "answer": answer}).encode() + b"\n")
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        return "gone"
    said = (await process.stdout.readline()).decode(errors="replace").strip()
    return said or "gone"


async def _end(process: asyncio.subprocess.Process | None) -> None:
    if process is None:
        return
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _EXIT_WAIT_S)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
