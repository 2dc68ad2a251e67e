"""Verbs for a log that no service has open: `podium-audit rotate-key` and `podium-audit recover`."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from podium_audit import keys
from podium_audit.assembly import open_log
from podium_audit.files import Files, open_files, settled_files
from podium_audit.log.head_guard import HeadGuard
from podium_audit.log.log import Log
from podium_audit.ports import StoreError
from podium_audit.proofs import history
from podium_audit.settings import AuditSettings
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.domain.clock import Clock, SystemClock
from podium_core.domain.errors import Code, PodiumError

ACCEPT_LOSS: Final = "--accept-loss"


@dataclass(frozen=True, slots=True)
class ShutLog:
    """A log that only we have open."""

    files: Files
    log: Log
    guard: HeadGuard


def rotate_key(settings: AuditSettings, clock: Clock | None = None) -> str:
    """Give the log a new signing key, on record; return its verifier key. Raises PodiumError."""
    with _open(settled_files(settings), settings, clock) as shut:
        shut.guard.check(shut.files.store)
    keys.make_next_signing_key(settings.keys)
    following, former = keys.signers(settings.keys)
    if former is None:
        raise RuntimeError("the next key was just made")
    with _open(open_files(settings), settings, clock) as shut:
        size = shut.log.state.size
        vkey = history.rotate(
            shut.log,
            CheckpointSigner(settings.origin, following),
            CheckpointSigner(settings.origin, former),
            size,
        )
        history.settle(settings.keys, settings.origin, shut.files.store, shut.guard)
    return vkey


def recover(settings: AuditSettings, clock: Clock | None = None) -> tuple[int, int]:
    """Go on without leaves that were lost, on record; return from and to which index. Raises PodiumError."""
    with _open(settled_files(settings), settings, clock) as shut:
        return history.recover(shut.log, shut.files.store, shut.guard)


@contextmanager
def _open(files: Files, settings: AuditSettings, clock: Clock | None) -> Iterator[ShutLog]:
    try:
        files.store.open()
        files.run_keys.open(files.store.last_key_no())
        log = open_log(files, settings, clock or SystemClock())
        log.load()
        yield ShutLog(files, log, HeadGuard(settings.checkpoints, files.signer, interval_s=1))
    except StoreError as error:
        message = f"the log cannot be used: {error}; is a service running on it?"
        raise PodiumError(Code.INVALID_REQUEST, message, reason="LOG_UNUSABLE") from None
    finally:
        files.close()


def _say_rotated(settings: AuditSettings) -> str:
    return f"the log's key is now\n{rotate_key(settings)}\nGive it to auditors and witnesses.\n"


def _say_recovered(settings: AuditSettings) -> str:
    begin, end = recover(settings)
    return f"leaves {begin} to {end - 1} are lost; leaf {begin} records it\n"


VERBS: Final[dict[tuple[str, ...], Callable[[AuditSettings], str]]] = {
    ("rotate-key",): _say_rotated,
    ("recover", ACCEPT_LOSS): _say_recovered,
}
"""By the words of the command line: what is done, and what is said of it."""


def verb_of(argv: Sequence[str]) -> Callable[[AuditSettings], str] | None:
    """Return the verb that a command line asks for; None for none. Exits (2) on one that lacks its option."""
    if list(argv) == ["recover"]:
        sys.stderr.write(
            "recover goes on without leaves that were signed and are lost. Look for a newer copy of the"
            f" database first; then give {ACCEPT_LOSS}\n"
        )
        raise SystemExit(2)
    return VERBS.get(tuple(argv))
