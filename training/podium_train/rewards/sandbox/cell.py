"""One started sandbox, used once: it waits for its job, does it, and is gone."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from podium_train.rewards.sandbox.bwrap import Identity, Tools
from podium_train.rewards.sandbox.inside import OUT_OF_MEMORY
from podium_train.rewards.sandbox.limits import Limits, Ran, Verdict
from podium_train.rewards.sandbox.memory_watch import LOOK_EVERY_S, held_bytes

_UP = b"up\n"
_MAX_REPLIES = 100_000
_MAX_LINE = 2 << 20
_BY_SIGNAL = 128
_KILLED, _CPU_TIME = _BY_SIGNAL + 9, _BY_SIGNAL + 24
_EXIT_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Job:
    """What a sandbox is to do: `program` (with standard input), `serve` (calls), `test` or `share`."""

    mode: str
    source: str
    function: str = ""


@dataclass(slots=True)
class _Output:
    kept: bytearray = field(default_factory=bytearray)
    is_over: bool = False


class Cell:
    """Start with `start`, give the job with `begin`, then talk, `finish`, and always `close`."""

    def __init__(self, tools: Tools, limits: Limits, identity: Identity, seccomp: bytes | None) -> None:
        self._tools = tools
        self._limits = limits
        self._identity = identity
        self._seccomp = seccomp
        self._nonce = secrets.token_hex(16)
        self._output = (_Output(), _Output())
        self._tasks: list[asyncio.Task[None]] = []
        self._process: asyncio.subprocess.Process | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._pidfd: int | None = None
        self._results = asyncio.StreamReader(limit=_MAX_LINE)
        self._watch: asyncio.Task[None] | None = None
        self._holds_too_much = False
        self.has_begun = False

    async def start(self) -> bool:
        """Start the sandbox and wait until it stands; False when it does not come up."""
        result_read, result_write = os.pipe()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._results), os.fdopen(result_read, "rb", 0)
        )
        seccomp_fd = _pipe_holding(self._seccomp) if self._seccomp is not None else None
        passed = (result_write,) if seccomp_fd is None else (result_write, seccomp_fd)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._tools.command(self._limits, result_write, seccomp_fd),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=passed,
                env={},
                cwd="/",
                start_new_session=True,
                **self._identity.spawn_arguments,  # type: ignore[arg-type]
            )
        except OSError:
            return False
        finally:
            for descriptor in passed:
                os.close(descriptor)
        with contextlib.suppress(ProcessLookupError):
            self._pidfd = os.pidfd_open(self._process.pid)
        for stream, output in zip((self._process.stdout, self._process.stderr), self._output, strict=True):
            assert stream is not None
            self._tasks.append(asyncio.create_task(self._collect(stream, output)))
        return await self._line() == _UP

    async def begin(self, job: Job) -> bool:
        """Hand over the job; False when the sandbox fails before the foreign code has begun."""
        limits = asdict(self._limits) | {"cpu_s": self._limits.cpu_s}
        text = json.dumps(
            asdict(job) | {"limits": limits, "nonce": self._nonce, "packages": self._tools.import_from}
        ).encode()
        await self.send(b"%010d" % len(text) + text)
        self.has_begun = await self._line() == f"{self._nonce} begun\n".encode()
        if self.has_begun:
            self._watch = asyncio.create_task(self._watched())
        return self.has_begun

    async def send(self, data: bytes, *, last: bool = False) -> None:
        """Write to the sandbox's standard input; a sandbox that no longer reads is no error."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
            if last:
                self._process.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            return

    async def hear(self) -> Mapping[str, object] | None:
        """Return the next message that carries the nonce; None at the end. Other lines are passed over."""
        start = self._nonce.encode() + b" "
        for _ in range(_MAX_REPLIES):
            line = await self._line()
            if not line:
                return None
            if line.startswith(start):
                try:
                    message = json.loads(line[len(start) :])
                except (ValueError, RecursionError):
                    return None
                return message if isinstance(message, dict) else None
        return None

    async def finish(self) -> Ran:
        """Wait for the end and say how it was."""
        assert self._process is not None
        await asyncio.gather(*self._tasks)
        code = await self._process.wait()
        return self.ended(*self._judged(code))

    def ended(self, verdict: Verdict, reason: str = "") -> Ran:
        """Return an end with the output so far."""
        if self._holds_too_much:
            verdict, reason = Verdict.MEMORY, "together"
        if not self.has_begun:
            verdict, reason = Verdict.SANDBOX_ERROR, reason or "not_started"
        return Ran(verdict, reason, bytes(self._output[0].kept), bytes(self._output[1].kept))

    async def close(self) -> None:
        """Kill whatever is left of the sandbox: with its first process all of its namespace goes."""
        if self._process is not None and self._process.returncode is None:
            self._kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _EXIT_WAIT_S)
        tasks = [*self._tasks, *([self._watch] if self._watch is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._transport is not None:
            self._transport.close()
        if self._process is not None:
            _release(self._process)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _kill(self) -> None:
        """Kill the first process by its descriptor: its number may be another's by now."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _judged(self, code: int) -> tuple[Verdict, str]:
        if any(output.is_over for output in self._output):
            return Verdict.FAILED, "output_limit"
        if code == 0:
            return Verdict.PASSED, ""
        if code in {OUT_OF_MEMORY, _KILLED, -9}:
            return Verdict.MEMORY, "out_of_memory" if code == OUT_OF_MEMORY else "killed"
        if code in {_CPU_TIME, -24}:
            return Verdict.TIMEOUT, "cpu_time"
        return Verdict.FAILED, "exit_code"

    async def _watched(self) -> None:
        assert self._process is not None
        while self._process.returncode is None:
            if held_bytes(self._process.pid) > self._limits.memory_bytes:
                self._holds_too_much = True
                self._kill()
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _line(self) -> bytes:
        try:
            return await self._results.readline()
        except ValueError:  # longer than a line may be
            return b""

    async def _collect(self, stream: asyncio.StreamReader, output: _Output) -> None:
        """Keep the beginning of a stream and kill above the limit; read on to its end, or no end is told."""
        while piece := await stream.read(1 << 16):
            room = self._limits.output_bytes - len(output.kept)
            output.kept += piece[:room]
            if len(piece) > room and not output.is_over:
                output.is_over = True
                self._kill()


def _pipe_holding(data: bytes) -> int:
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    return read


def _release(process: asyncio.subprocess.Process) -> None:
    """Close the pipes of an ended process at once instead of when it is collected."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
