"""Checkpoints as files that are written once: for a directory on storage that overwrites nothing."""

import asyncio
import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

from podium_audit.anchors import FILE
from podium_audit.ports import CheckpointRow
from podium_audit.proofs.anchoring import AnchorError

_STRANGE = re.compile(r"[^A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True)
class FileAnchor:
    """Writes `<origin>.<size>.note`, read-only. A file that is there with other words is an alarm."""

    directory: Path
    origin: str
    interval_s: float
    kind: str = FILE

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    async def anchor(self, checkpoint: CheckpointRow) -> bytes:
        """Return the name of the file. Raises AnchorError."""
        name = f"{_STRANGE.sub('_', self.origin)}.{checkpoint.size:020d}.note"
        await asyncio.to_thread(self._write, self.directory / name, checkpoint.note.encode())
        return name.encode()

    def _write(self, file: Path, data: bytes) -> None:
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        except FileExistsError:
            self._check_same(file, data)
            return
        except OSError as error:
            raise AnchorError(f"cannot write {file.name}: {error.strerror}") from None
        try:
            written = os.write(descriptor, data)
            os.fsync(descriptor)
        except OSError as error:
            raise AnchorError(f"cannot write {file.name}: {error.strerror}") from None
        finally:
            os.close(descriptor)
        if written < len(data):
            raise AnchorError(f"cannot write {file.name}: {os.strerror(errno.ENOSPC)}")

    def _check_same(self, file: Path, data: bytes) -> None:
        body, _, _ = data.partition(b"\n\n")
        try:
            same = file.read_bytes().partition(b"\n\n")[0] == body
        except OSError as error:
            raise AnchorError(f"cannot read {file.name}: {error.strerror}") from None
        if not same:
            raise AnchorError(f"{file.name} holds another tree of that size", is_alarm=True)
