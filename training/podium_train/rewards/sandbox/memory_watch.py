"""How much memory a sandbox's processes hold together: what no limit on each of them bounds.

Control groups would bound it in the kernel, but are seldom delegated; so the runner looks a few times a
second and kills. Shared pages are divided among those who share them (proportional set size, proc(5)).
"""

from collections.abc import Mapping
from pathlib import Path

LOOK_EVERY_S = 0.2
_PROC = Path("/proc")
_KIB = 1024


def held_bytes(root_pid: int, proc: Path = _PROC) -> int:
    """Return the memory of a process and all that descend from it; what is gone or hidden counts as 0."""
    parents = _parents(proc)
    held = 0
    for pid in parents:
        ancestor: int | None = pid
        while ancestor is not None and ancestor != root_pid:
            ancestor = parents.get(ancestor)
        if ancestor == root_pid:
            held += _proportional_bytes(proc / str(pid) / "smaps_rollup")
    return held


def _parents(proc: Path) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for place in proc.iterdir():
        if place.name.isdecimal():
            try:
                told = (place / "stat").read_bytes()
                found[int(place.name)] = int(told[told.rindex(b")") + 2 :].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return found


def _proportional_bytes(place: Path) -> int:
    try:
        lines = place.read_bytes().splitlines()
    except OSError:
        return 0
    line = next((each for each in lines if each.startswith(b"Pss:")), b"Pss: 0 kB")
    return int(line.split()[1]) * _KIB
