"""The body of C2SP tlog-witness's `add-checkpoint`: an old size, a consistency proof, a checkpoint."""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from podium_core.domain.merkle import HASH_BYTES

MAX_PROOF_LINES: Final = 63
_OLD: Final = re.compile(r"old (0|[1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """What a log asks a witness to cosign: `note` is a signed note."""

    old_size: int
    proof: tuple[bytes, ...]
    note: str

    def encode(self) -> bytes:
        """Return the body that says this."""
        lines = [f"old {self.old_size}", *(base64.b64encode(item).decode() for item in self.proof), ""]
        return ("\n".join(lines) + "\n" + self.note).encode()


def parse(body: bytes) -> AddCheckpoint:
    """Return what a body asks for; raise ValueError that says what is wrong with it."""
    try:
        head, separator, note = body.decode().partition("\n\n")
    except UnicodeDecodeError:
        raise ValueError("the body is not UTF-8") from None
    first, *proof = head.split("\n")
    match = _OLD.fullmatch(first)
    if not separator or match is None:
        raise ValueError("the body must begin with `old <size>` and have an empty line after the proof")
    if len(proof) > MAX_PROOF_LINES:
        raise ValueError(f"a proof has at most {MAX_PROOF_LINES} lines")
    return AddCheckpoint(int(match[1]), tuple(_hash(line) for line in proof), note)


def _hash(line: str) -> bytes:
    try:
        data = base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != HASH_BYTES or base64.b64encode(data).decode() != line:
        raise ValueError("each proof line must be a hash in base64")
    return data
