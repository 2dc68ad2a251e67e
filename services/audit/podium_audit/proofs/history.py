"""What befalls the log itself, put on record while it is shut: a change of its key, a loss of leaves.

A change of keys breaks off harmlessly at any point: the new key is durable before its record is, the record
is signed by both keys, and only then does the new key take the old one's place; a start finishes what is on
record and drops what is not.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podium_audit import keys
from podium_audit.log.head_guard import HeadGuard
from podium_audit.log.log import Log
from podium_audit.ports import LogReader
from podium_audit.records.commands import HISTORY_EVENTS, Event, RecordHistory
from podium_audit.records.facts import KEY_ROTATED
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_audit.tree.tiles import TileNodes
from podium_core.domain import merkle
from podium_core.domain.errors import Code, PodiumError

GAP = "log_gap"
_STATEMENT = "podium-key-rotation/1\n{old}\n{new}\n"


def settle(directory: Path, origin: str, reader: LogReader, guard: HeadGuard) -> None:
    """Finish a change of keys that is on record, drop one that is not. Raises PodiumError, StoreError."""
    following, former = keys.signers(directory)
    if former is None:
        return
    guard.check(reader)
    newest = reader.checkpoint()
    try:
        CheckpointSigner(origin, following).read(newest.note if newest is not None else "")
    except ValueError:
        keys.drop_next_signing_key(directory)
        return
    if newest is not None:
        guard.write(newest.note)
    keys.take_next_signing_key(directory)


def rotate(log: Log, signer: CheckpointSigner, former: CheckpointSigner, size: int) -> str:
    """Record that the former key hands over to the signer's; return the new verifier key.

    `log` signs with both. Raises PodiumError, StoreError.
    """
    statement = _STATEMENT.format(old=former.vkey, new=signer.vkey)
    signature = base64.b64encode(former.key.sign_text(statement)).decode()
    facts = {"old_vkey": former.vkey, "new_vkey": signer.vkey, "signature": signature}
    _record(log, KEY_ROTATED, facts, size)
    return signer.vkey


def recover(log: Log, reader: LogReader, guard: HeadGuard) -> tuple[int, int]:
    """Record that the newest leaves are lost; return the sizes before and after which they stood.

    Raises PodiumError when none are missing, and StoreError.
    """
    found = guard.kept(reader)
    newest = reader.checkpoint()
    size = newest.size if newest is not None else 0
    if found is None or found[1].size <= size:
        raise PodiumError(
            Code.INVALID_REQUEST,
            f"nothing to recover: the database holds {size} leaves, and no more were signed",
            reason="NOTHING_LOST",
        )
    note, kept = found
    root = merkle.root_of(size, TileNodes(reader))
    facts = {
        "kept_size": size,
        "kept_root": base64.b64encode(root).decode(),
        "lost_size": kept.size,
        "lost_note": note,
    }
    _record(log, GAP, facts, size)
    guard.write(log.newest_note)
    return size, kept.size


def _record(log: Log, kind: str, facts: Mapping[str, Any], size: int) -> None:
    event = Event.own(f"{HISTORY_EVENTS}{size}")
    log.begin()
    log.apply(RecordHistory(event, kind, facts))
    log.commit()
