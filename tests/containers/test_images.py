"""What is in the images, and what they may do where they run."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.containers.podman import DOCKERFILES, build, image, podman

HARDENED = (
    "--rm", "--network=none", "--read-only", "--user=10001:10001", "--cap-drop=ALL",
    "--security-opt=no-new-privileges", "--pids-limit=64", "--memory=256m",
)  # fmt: skip
"""As the chart runs them."""

COMMANDS = {
    "gateway": {"podium-gateway"},
    "router": {"podium-router"},
    "conductor": {"podium-conductor"},
    "audit": {"podium-audit", "podium-witness", "podium", "podium-demo-provider"},
}
SERVICES = tuple(f"podium_{name}" for name in COMMANDS)

LOOK = """
import importlib.util, json, os, shutil, sys
tools = [name for name in ("pip", "pip3", "gcc", "cc", "ld", "make", "curl", "wget") if shutil.which(name)]
modules = [name for name in sys.argv[1:] if importlib.util.find_spec(name)]
try:
    open("/opt/written", "w")
except OSError as error:
    refused = error.strerror
status = open("/proc/self/status").read()
print(json.dumps({
    "tools": tools, "modules": modules, "refused": refused, "user": os.getuid(), "group": os.getgid(),
    "commands": [n for n in os.listdir("/opt/podium/bin") if not n.startswith("python")],
    "capabilities": [l.split()[1] for l in status.splitlines() if l.startswith("CapEff")],
    "sbom": json.load(open("/usr/share/podium/sbom.json")),
}))
"""


def look(name: str) -> Any:
    modules = ("pip", "ensurepip", "setuptools", *SERVICES)
    seen = podman("run", *HARDENED, "--entrypoint=python3", image(name), "-c", LOOK, *modules)
    return json.loads(seen.stdout)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_image_holds_its_own_service_and_nothing_to_install_with(name: str, cache: Path, root: Path) -> None:
    seen = look(name)
    assert seen["modules"] == [f"podium_{name}"]
    assert seen["tools"] == []
    assert set(seen["commands"]) == COMMANDS[name]
    assert (seen["user"], seen["group"]) == (10001, 10001)
    assert seen["capabilities"] == ["0000000000000000"]
    assert seen["refused"] == "Read-only file system"
    parts = {part["name"].lower().replace("_", "-"): part["version"] for part in seen["sbom"]["components"]}
    lock = (root / "requirements" / f"{name}.txt").read_text()
    locked = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", lock, re.MULTILINE))
    assert locked.items() <= parts.items(), "the list of parts is what was locked"


@pytest.mark.parametrize("name", DOCKERFILES)
def test_image_starts_hardened_and_says_what_it_is(name: str, cache: Path) -> None:
    told = podman("run", *HARDENED, image(name), "--help")
    assert "podium" in told.stdout.lower()
    described = json.loads(podman("inspect", image(name)).stdout)[0]
    labels = described["Labels"]
    assert described["Config"]["User"] == "10001:10001"
    assert described["Config"]["StopSignal"] == "SIGTERM"
    assert labels["org.opencontainers.image.title"] == f"podium/{name}"
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_service_without_settings_says_what_is_missing(cache: Path) -> None:
    told = podman("run", *HARDENED, image("gateway"), check=False)
    assert told.returncode != 0
    assert "PODIUM_GATEWAY_TLS_CERT_FILE" in told.stdout + told.stderr


def test_a_file_that_runs_at_every_start_ends_the_build(cache: Path, tmp_path: Path, root: Path) -> None:
    path = root / DOCKERFILES["conductor"]
    injected = path.read_text().replace(
        "COPY containers/environment.py ./",
        "RUN echo 'import os' > /opt/podium/lib/python3.11/site-packages/injected.pth\n"
        "COPY containers/environment.py ./",
    )
    (tmp_path / "Dockerfile").write_text(injected)
    told = build(tmp_path / "Dockerfile", "localhost/podium-test/injected", cache, check=False)
    assert told.returncode != 0
    assert "injected.pth: not in the list of containers/environment.py" in told.stdout + told.stderr


def test_dockerfiles_please_the_linter(hadolint: Path, root: Path) -> None:
    paths = sorted(root.glob("services/*/Dockerfile*"))
    assert len(paths) == len(DOCKERFILES) + 1
    done = subprocess.run([hadolint, *paths], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
