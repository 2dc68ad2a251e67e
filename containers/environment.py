"""Finish the environment of an image: nothing runs at its start, and one service's commands are in it.

Run in the build stage by the base image's own Python, never by the environment that it looks at.
"""

import argparse
import shutil
import sys
from pathlib import Path

ALLOWED: dict[str, tuple[str, str]] = {
    "distutils-precedence.pth": (
        (
            "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
            "enabled and __import__('_distutils_hack').add_shim();"
        ),
        "setuptools, which vLLM and Triton need to build kernels: puts its distutils before Python's",
    ),
}
"""Files that Python executes at every start: name, the only content it may have, and why it is there."""

STARTED_UNASKED = ("sitecustomize", "usercustomize")
"""Modules that Python imports at every start, if there are any."""


def problems_of(environment: Path) -> list[str]:
    """Return a line for each file that Python would run at its start without being asked."""
    found = []
    for packages in sorted(environment.glob("lib/python3*/site-packages")):
        for path in sorted(packages.glob("*.pth")):
            allowed = ALLOWED.get(path.name)
            if allowed is None:
                found.append(f"{path.name}: not in the list of containers/environment.py")
            elif path.read_text(encoding="utf-8").strip() != allowed[0]:
                found.append(f"{path.name}: not the content that containers/environment.py knows")
        found += [
            f"{name}: runs at every start" for name in STARTED_UNASKED for _ in packages.glob(f"{name}*")
        ]
    return found


def keep_commands(environment: Path, names: list[str]) -> None:
    """Remove every program but Python and `names`; raise SystemExit if one of these is missing."""
    programs = environment / "bin"
    missing = [name for name in names if not (programs / name).exists()]
    if missing:
        raise SystemExit(f"no such command in {programs}: {', '.join(missing)}")
    for path in programs.iterdir():
        if path.is_file() and path.name not in names and not path.name.startswith("python"):
            path.unlink()
    shutil.rmtree(programs / "__pycache__", ignore_errors=True)  # of scripts that a package brought


def main() -> None:
    """Check an environment and, where commands are named, remove all others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("commands", nargs="*", help="programs to keep")
    arguments = parser.parse_args()
    problems = problems_of(arguments.environment)
    if problems:
        sys.exit("unexpected files that Python would run at every start:\n  " + "\n  ".join(problems))
    if arguments.commands:
        keep_commands(arguments.environment, arguments.commands)


if __name__ == "__main__":
    main()
