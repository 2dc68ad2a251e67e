"""Other gateways, run beside Podium: `make peers-env` installs them, outside the project."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HOME = Path(os.environ.get("PODIUM_BENCH_PEERS", Path.home() / ".cache" / "podium" / "peers"))
_KEY = "sk-bench"
_STARTING_S = 120.0


@dataclass(slots=True)
class Peer:
    """A gateway in front of the bench upstream. `missing` says why it cannot run here; empty: it can."""

    name: str
    version: str
    command: tuple[str, ...]
    url: str
    headers: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it and wait until it answers anything; raise RuntimeError when it does not."""
        log = HOME / f"{self.name.split()[0].lower()}.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                self.command,
                env={**os.environ, **self.env},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until = time.monotonic() + _STARTING_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            if _answers(self.url.rsplit("/v1/", 1)[0]):
                return
            time.sleep(0.3)
        self.stop()
        raise RuntimeError(f"{self.name} did not start; see {log}")

    def stop(self) -> None:
        """End it and all it started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def pids(self) -> dict[str, int]:
        """Return its processes by name."""
        if self.process is None:
            return {}
        group = os.getpgid(self.process.pid)
        found: dict[str, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _group(entry) == group:
                found[f"{self.name.split()[0].lower()}-{entry.name}"] = int(entry.name)
        return found


def _group(entry: Path) -> int | None:
    try:
        return os.getpgid(int(entry.name))
    except ProcessLookupError:
        return None


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/", timeout=1).read()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def litellm_proxy(port: int, upstream_port: int, folder: Path) -> Peer:
    """LiteLLM's proxy: one worker process, master key check, no database."""
    program = HOME / "venv" / "bin" / "litellm"
    config = folder / "litellm.yaml"
    models = "".join(
        f"  - model_name: {model}\n    litellm_params:\n      model: openai/{model}\n"
        f"      api_base: http://127.0.0.1:{upstream_port}/v1\n      api_key: {_KEY}\n"
        for model in ("bench", "bench-paced")
    )
    config.write_text(
        f"model_list:\n{models}general_settings:\n  master_key: {_KEY}\n"
        "litellm_settings:\n  telemetry: false\n"
    )
    return Peer(
        "LiteLLM proxy",
        _pinned("requirements/peers.txt", "litellm=="),
        (
            str(program),
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--num_workers",
            "1",
        ),
        f"http://127.0.0.1:{port}/v1/chat/completions",
        {"Authorization": f"Bearer {_KEY}"},
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"},
        missing="" if program.exists() else "not installed: run `make peers-env`",
    )


def portkey(port: int, upstream_port: int) -> Peer:
    """Portkey's open gateway, headless."""
    program = HOME / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    return Peer(
        "Portkey",
        "1.15.2",
        ("node", str(program), f"--port={port}", "--headless"),
        f"http://127.0.0.1:{port}/v1/chat/completions",
        {
            "Authorization": f"Bearer {_KEY}",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": f"http://127.0.0.1:{upstream_port}/v1",
        },
        {"NODE_ENV": "production"},
        missing="" if program.exists() else "not installed: run `make peers-env` (needs npm)",
    )


def _pinned(path: str, start: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(start):
            return line.removeprefix(start).split()[0]
    sys.exit(f"{path} pins no {start}")
