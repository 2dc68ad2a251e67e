"""Whether a witness cosigns: the answers of C2SP tlog-witness, status by status."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podium_audit.tree.add_checkpoint import AddCheckpoint, parse
from podium_audit.tree.checkpoint import Checkpoint, NoteVerifier, read_body, read_note, split_note
from podium_audit.tree.cosignatures import Cosigner
from podium_audit.witness.book import WitnessBook
from podium_core.domain.clock import Clock
from podium_core.domain.merkle import check_consistency

SIZE_TYPE = "text/x.tlog.size"
_TEXT_TYPE = "text/plain"
_OK, _BAD, _FORBIDDEN, _UNKNOWN, _CONFLICT, _UNPROVEN = 200, 400, 403, 404, 409, 422
_NS_PER_S = 1_000_000_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A status, and what is said with it."""

    status: int
    text: str
    content_type: str = _TEXT_TYPE


@dataclass(frozen=True, slots=True)
class Judge:
    """A witness's memory, its keys, and the keys of the logs it knows."""

    book: WitnessBook
    cosigners: Sequence[Cosigner]
    logs: Callable[[], Sequence[NoteVerifier]]
    clock: Clock

    def add_checkpoint(self, body: bytes) -> Judgement:
        """Cosign what continues all that was seen of its log, or say why not. Raises StoreError."""
        try:
            asked = parse(body)
            origin = read_body(split_note(asked.note)[0]).origin
        except ValueError as error:
            return Judgement(_BAD, f"{error}\n")
        keys = [key for key in self.logs() if key.origin == origin]
        if not keys:
            return Judgement(_UNKNOWN, "this witness does not know that log\n")
        try:
            checkpoint = read_note(asked.note, keys)
        except ValueError as error:
            return Judgement(_FORBIDDEN, f"{error}\n")
        return self._judge(asked, checkpoint)

    def _judge(self, asked: AddCheckpoint, checkpoint: Checkpoint) -> Judgement:
        if asked.old_size > checkpoint.size:
            return Judgement(_BAD, "the old size is larger than the checkpoint's\n")
        size, root = self.book.head(checkpoint.origin)
        if asked.old_size != size:
            return Judgement(_CONFLICT, f"{size}\n", SIZE_TYPE)
        if size == checkpoint.size and size and root != checkpoint.root:
            _log.error("a log forked: another tree of the size that was cosigned", extra={"size": size})
            return Judgement(_CONFLICT, f"{size}\n", SIZE_TYPE)
        try:
            if size:
                check_consistency(size, root, checkpoint.size, checkpoint.root, asked.proof)
            elif asked.proof:
                raise ValueError("nothing was cosigned yet: the proof must be empty")  # noqa: TRY301 - one exit
        except ValueError as error:
            _log.error(
                "a log did not show that it continues what was cosigned",
                extra={"size": checkpoint.size, "cosigned_size": size},
            )
            return Judgement(_UNPROVEN, f"{error}\n")
        if not self.book.advance(checkpoint, asked.note, size):
            return Judgement(_CONFLICT, f"{self.book.head(checkpoint.origin)[0]}\n", SIZE_TYPE)
        time_s = self.clock.now_ns() // _NS_PER_S
        return Judgement(_OK, "".join(cosigner.line(checkpoint, time_s) for cosigner in self.cosigners))
