"""The commands of a page, as its reader would type them."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"
_KEPT = ("PATH", "HOME", "LANG")


def commands(name: str) -> str:
    """Return what stands below `<!-- tested: name -->`."""
    [found] = re.findall(rf"<!-- tested: {name} -->\n```sh\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    return str(found)


async def typed(script: str, folder: Path, path: str = "", **variables: str) -> tuple[int, str]:
    """Type `script` into a shell in `folder`; return its exit code and what it said."""
    environment = {name: value for name, value in os.environ.items() if name in _KEPT} | variables
    own = Path(sys.executable).parent
    environment["PATH"] = os.pathsep.join(filter(None, (path, str(own), environment.get("PATH", ""))))
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
