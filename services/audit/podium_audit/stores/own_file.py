"""A database file that must stay where it is: SQLite itself goes on writing to one that was deleted."""

import os
from pathlib import Path

from podium_audit.ports import StoreError

_Identity = tuple[int, int]


class OwnFile:
    """Knows which file on disk is ours, with its write-ahead log, and notices when a path names another."""

    def __init__(self, file: Path) -> None:
        self._write_ahead = file.with_name(f"{file.name}-wal")
        self._paths = (file, self._write_ahead)
        self._known: dict[Path, _Identity] = {}

    def check(self) -> None:
        """Raise StoreError when the file was deleted or replaced since the first check that saw it."""
        for path in self._paths:
            now = _identity(path)
            known = self._known.get(path)
            if known is None:
                if now is not None:
                    self._known[path] = now
            elif now != known:
                raise StoreError(
                    f"{path.name} was deleted or replaced while it was in use:"
                    " stop the service, restore the newest copy, and start it again"
                )

    def disconnected(self) -> None:
        """Expect another write-ahead log: SQLite removes it with the last connection."""
        self._known.pop(self._write_ahead, None)


def _identity(path: Path) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - once per commit: half the cost of Path.stat
    except OSError:
        return None
    return status.st_dev, status.st_ino
