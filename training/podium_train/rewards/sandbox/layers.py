"""Which layers of the sandbox hold on this machine: each is tried, and what was tried is told.

The layers are those of the project's threat list: foreign code must not reach the network, the files or the
environment of the machine, must not gain rights, and must not use more than its share.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from podium_train.rewards.sandbox.bwrap import SandboxUnavailableError, Tools, find_tools, identity_of
from podium_train.rewards.sandbox.limits import Limits, Ran, Verdict
from podium_train.rewards.sandbox.runner import DEFAULTS, Sandbox, SandboxSettings


class Layer(StrEnum):
    """One thing that keeps foreign code in. The value is what a person reads."""

    NON_ROOT = "runs as a user other than root"
    NAMESPACES = "has its own process numbers and does not see others"
    NETWORK = "reaches no network, not even the machine's own"
    READ_ONLY_ROOT = "writes nowhere but in its work directory"
    HIDDEN_FILES = "sees no /etc, /home, /root, /proc or /sys"
    ENVIRONMENT = "is told none of the environment's variables"
    NO_RIGHTS = "has no capabilities"
    MEMORY = "is refused memory above its limit"
    MEMORY_TOGETHER = "is killed when its processes together hold more memory than that"
    FILE_SIZE = "is refused files above their limit"
    WORK_SPACE = "is refused work space above its limit"
    PROCESSES = "is refused processes above their number"
    WALL_CLOCK = "is killed with all its processes when its time is over"
    SECCOMP = "is refused system calls that it has no need of"
    SLOT_USER = "has a user of its own per slot"


OPTIONAL = frozenset({Layer.MEMORY_TOGETHER, Layer.SECCOMP, Layer.SLOT_USER})
"""Layers that strengthen others. The rest are required."""


@dataclass(frozen=True, slots=True)
class LayerReport:
    """What holds, layer by layer, with the sandbox that was tried."""

    held: dict[Layer, bool]
    tools: Tools

    @property
    def missing(self) -> tuple[Layer, ...]:
        """The required layers that do not hold."""
        return tuple(layer for layer in Layer if layer not in OPTIONAL and not self.held.get(layer, False))


async def probe(tools: Tools, settings: SandboxSettings = DEFAULTS) -> LayerReport:
    """Try every layer; a layer that could not be tried does not hold."""
    quick = replace(settings, slots=1, keep_warm=False, limits=_PROBE_LIMITS)
    held = dict.fromkeys(Layer, False)
    held[Layer.SLOT_USER] = identity_of(0).uid is not None
    async with _listening() as port:
        ran = await Sandbox(tools, replace(quick, use_seccomp=False)).run_program(_probe_source(port))
        held |= {Layer[name]: bool(holds) for name, holds in _told(ran).items() if name in Layer.__members__}
    held[Layer.SECCOMP] = (await Sandbox(tools, quick).run_program(_SECCOMP_PROBE)).stdout == b"refused\n"
    hoarding = await Sandbox(tools, quick).run_program(_HOARD_PROBE)
    held[Layer.MEMORY_TOGETHER] = hoarding.verdict is Verdict.MEMORY
    hanging = Sandbox(tools, replace(quick, limits=replace(_PROBE_LIMITS, wall_s=_HANG_S)))
    held[Layer.WALL_CLOCK] = (await hanging.run_program(_HANG_PROBE)).verdict is Verdict.TIMEOUT
    return LayerReport(held, tools)


@asynccontextmanager
async def open_sandbox(
    settings: SandboxSettings = DEFAULTS,
    *,
    unsafe: bool = False,
    python: str | None = None,
    bwrap: str | None = None,
    packages: str = "",
) -> AsyncGenerator[Sandbox, None]:
    """Open a sandbox whose required layers all hold.

    Raises SandboxUnavailableError that names the missing layers; `unsafe` opens it with what holds.
    """
    tools = find_tools(unsafe=unsafe, python=python, bwrap=bwrap, packages=packages)
    if not unsafe:
        missing = (await probe(tools, settings)).missing
        if missing:
            raise SandboxUnavailableError(
                "model-written code is not run here, because a layer of the sandbox is missing: the code "
                + "; ".join(missing)
                + ". `podium-train sandbox` shows every layer; --unsafe runs the code all the same",
                [layer.name.lower() for layer in missing],
            )
    sandbox = Sandbox(tools, settings)
    try:
        yield sandbox
    finally:
        await sandbox.close()


_HANG_S = 0.5
_PROBE_LIMITS = Limits(wall_s=10.0, memory_bytes=256 << 20, work_bytes=4 << 20, file_bytes=1 << 20)


def _told(ran: Ran) -> dict[str, object]:
    try:
        told = json.loads(ran.stdout.decode(errors="replace").rpartition("@")[2])
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


@asynccontextmanager
async def _listening() -> AsyncGenerator[int, None]:
    """Listen on this machine's loopback: what the probe must not be able to reach."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _probe_source(port: int) -> str:
    return _PROBE.replace("PORT", str(port)).replace("MEMORY_BYTES", str(2 * _PROBE_LIMITS.memory_bytes))


_PROBE = """
import json, os, socket
held = {}

def refused(action):
    try:
        action()
    except (OSError, MemoryError, AttributeError):
        return True
    return False

def write(path, size, end=1):
    for number in range(end):
        with open(path + str(number), "wb", buffering=0) as file:
            written = 0
            while written < size:
                written += file.write(b"x" * 65536)

def connect():
    socket.create_connection(("127.0.0.1", PORT), 1.0).close()

def fork_many():
    count = 0
    for _ in range(60):
        if os.fork() == 0:
            import time
            time.sleep(2)
            os._exit(0)

held["NON_ROOT"] = os.getuid() != 0 and os.geteuid() != 0
held["NAMESPACES"] = os.getpid() < 10
held["NETWORK"] = refused(connect)
tried = ("", "/usr", "/usr/lib", "/dev", "/dev/shm", "/tmp", "/var/tmp")
places = ["%s/podium-probe-%d-" % (place, os.getpid()) for place in tried]
held["READ_ONLY_ROOT"] = all(refused(lambda: write(place, 1)) for place in places)
for place in places:
    refused(lambda: os.unlink(place + "0"))
hidden = ("/etc", "/home", "/root", "/proc", "/sys", "/var", "/tmp")
held["HIDDEN_FILES"] = not any(os.path.exists(place) for place in hidden)
held["ENVIRONMENT"] = set(os.environ) <= {"PWD", "LC_CTYPE"}
held["NO_RIGHTS"] = refused(lambda: os.chroot("/")) and refused(lambda: socket.sethostname("x"))
held["MEMORY"] = refused(lambda: bytearray(MEMORY_BYTES))
held["FILE_SIZE"] = refused(lambda: write("large", 2 << 20))
held["WORK_SPACE"] = refused(lambda: write("many", 1 << 19, 16))
held["PROCESSES"] = refused(fork_many)
print("@" + json.dumps(held), flush=True)
os._exit(0)
"""

_SECCOMP_PROBE = """
import socket
try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    print("allowed")
except PermissionError:
    print("refused")
"""

_HOARD_PROBE = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(b"x") * (96 << 20)
        time.sleep(4)
        os._exit(0)
time.sleep(4)
"""

_HANG_PROBE = """
import os, time
os.fork()
time.sleep(60)
"""
