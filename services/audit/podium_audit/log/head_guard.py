"""The newest checkpoint in a file beside the signing key, so that a rolled-back database is noticed."""

import asyncio
import json
import logging
from pathlib import Path

from podium_audit.keys import CHECKPOINT_FILE, write_private
from podium_audit.log.log import Log
from podium_audit.ports import LogReader
from podium_audit.records.facts import KEY_ROTATED
from podium_audit.tree.checkpoint import Checkpoint, CheckpointSigner, NoteVerifier, log_verifier, read_note
from podium_audit.tree.tiles import TileNodes
from podium_core.domain import merkle
from podium_core.domain.errors import Code, PodiumError

_log = logging.getLogger(__name__)


class HeadGuard:
    """Compares the database with the file at the start, and keeps the file up to date afterwards.

    The file is written after the commit and so may be a little behind the database, never ahead of it.
    """

    def __init__(self, directory: Path, signer: CheckpointSigner, *, interval_s: float) -> None:
        self._file = directory / CHECKPOINT_FILE
        self._signer = signer
        self._interval_s = interval_s
        self._written = ""

    def kept(self, reader: LogReader) -> tuple[str, Checkpoint] | None:
        """Return the note in the file and what it says; None without one. PodiumError: not ours.

        A replica that was down while the log's key was changed has one under a former key still.
        """
        if not self._file.exists():
            return None
        try:
            note = self._file.read_text()
            try:
                return note, self._signer.read(note)
            except ValueError:
                return note, read_note(note, _former_keys(reader, self._signer))
        except (OSError, ValueError):
            raise _refused("the checkpoint file beside the signing key is not one of this log") from None

    def check(self, reader: LogReader) -> None:
        """Refuse (PodiumError) a database that has lost leaves or holds others; raises StoreError too."""
        found = self.kept(reader)
        if found is None:
            return
        kept = found[1]
        checkpoint = reader.checkpoint()
        size = checkpoint.size if checkpoint is not None else 0
        if size < kept.size:
            raise _refused(
                f"the database holds {size} leaves, but {kept.size} were signed:"
                " it was replaced by an older copy, restore the newest one;"
                " if there is none, `podium-audit recover` goes on without them and records the loss"
            )
        if merkle.root_of(kept.size, TileNodes(reader)) != kept.root:
            raise _refused(f"the database's first {kept.size} leaves are not those that were signed")

    async def keep(self, log: Log) -> None:
        """Write the file whenever there is a newer checkpoint, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await asyncio.to_thread(self.write, log.newest_note)

    def write(self, note: str) -> None:
        """Write a checkpoint, durably, unless it is there already. A failure is logged: the old one stays."""
        if not note or note == self._written:
            return
        try:
            write_private(self._file, note)
        except OSError as error:
            _log.error("cannot write the checkpoint file", extra={"problem": error.strerror})
        else:
            self._written = note


def _former_keys(reader: LogReader, signer: CheckpointSigner) -> list[NoteVerifier]:
    """Return the keys that handed over, one to the next, down to the one that signs now."""
    known = {signer.vkey}
    for _, leaf in reversed(reader.history()):
        record = json.loads(leaf)
        if record["type"] == KEY_ROTATED and record["facts"]["new_vkey"] in known:
            known.add(record["facts"]["old_vkey"])
    return [log_verifier(vkey) for vkey in known - {signer.vkey}]


def _refused(message: str) -> PodiumError:
    return PodiumError(Code.INVALID_REQUEST, message, reason="LOG_ROLLED_BACK")
