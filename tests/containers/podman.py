"""Podman, and the images of the tests: built without a network, from wheels and a base made beforehand."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = "0.1.0"
DOCKERFILES = {name: f"services/{name}/Dockerfile" for name in ("gateway", "router", "conductor", "audit")}
"""The images that are built here. services/conductor/Dockerfile.vllm needs CUDA's wheels and a GPU, and is only linted."""

LOCKS = (
    ("image-build",),
    ("conductor",),
    ("gateway", "kubernetes"),
    ("router", "kubernetes"),
    ("audit", "postgres", "timestamps", "cli", "kubernetes"),
)
"""What is installed together, as in the Dockerfiles."""

_BASE_PACKAGES = "ca-certificates,python3,python3-venv"
_CONF = Path(__file__).with_name("containers.conf")


def podman(*arguments: str, check: bool = True, timeout_s: float = 300) -> "subprocess.CompletedProcess[str]":
    """Run podman; with `check` a failure is an error that shows what podman said."""
    done = subprocess.run(
        ["podman", *arguments],
        check=False,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert not check or done.returncode == 0, f"podman {' '.join(arguments[:3])}: {done.stderr[-3000:]}"
    return done


def environment() -> dict[str, str]:
    """Return what podman itself may see of the environment."""
    return {**os.environ, "CONTAINERS_CONF": str(_CONF)}


def image(name: str) -> str:
    """Return the reference of an image, as the chart writes it with the registry `localhost`."""
    return f"localhost/podium/{name}:{VERSION}"


def cache_key() -> str:
    """Return what base and wheels depend on, in a few characters."""
    digest = hashlib.sha256(_BASE_PACKAGES.encode())
    for lock in sorted({name for together in LOCKS for name in together}):
        digest.update((ROOT / "requirements" / f"{lock}.txt").read_bytes())
    return digest.hexdigest()[:12]


def base_image() -> str:
    """Return the base that stands in for python:3.11-slim-bookworm: Debian's own Python 3.11 and nothing else."""
    return f"localhost/podium-test/base:{cache_key()}"


def prepare(cache: Path) -> None:
    """Fetch what images are made of: a base from Debian's packages, and every wheel. Needs a network once."""
    wheels = cache / "wheels"
    if not (cache / "complete").exists():
        wheels.mkdir(parents=True, exist_ok=True)
        for together in LOCKS:
            locks = [part for name in together for part in ("-r", f"requirements/{name}.txt")]
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                 "--require-hashes", "--dest", wheels, *locks],
                cwd=ROOT, check=True,
            )  # fmt: skip
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_BASE_PACKAGES}",
             *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")),
             "bookworm", cache / "base.tar"],
            check=True,
        )  # fmt: skip
        (cache / "complete").touch()
    if podman("image", "exists", base_image(), check=False).returncode != 0:
        podman("import", "--quiet", str(cache / "base.tar"), base_image())


def build(
    dockerfile: Path, tag: str, cache: Path, *, check: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Build one image without a network."""
    return podman(
        "build", "--pull=never", "--network=none", "--layers", "--volume", f"{cache / 'wheels'}:/wheels:ro",
        "--build-arg", f"PYTHON_IMAGE={base_image()}", "--build-arg", "PIP_INDEX_URL=",
        "--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels",
        "--file", str(dockerfile), "--tag", tag, str(ROOT),
        check=check, timeout_s=600,
    )  # fmt: skip


def main() -> None:
    """Prepare, build every image and print its size."""
    cache = Path(sys.argv[1])
    prepare(cache)
    for name, dockerfile in DOCKERFILES.items():
        build(ROOT / dockerfile, image(name), cache)
    wanted = ("--filter", "reference=localhost/podium/*", "--format", "{{.Repository}} {{.Size}}")
    sys.stdout.write(podman("images", *wanted).stdout)


if __name__ == "__main__":
    main()
