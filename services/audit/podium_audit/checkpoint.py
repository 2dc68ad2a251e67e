"""Checkpoints: C2SP signed notes (Ed25519) that fix the tree's size and root."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from podium_audit.key_ports import Signer

_ALGORITHM = b"\x01"
_KEY_HASH_BYTES = 4
_BODY = re.compile(r"(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]*)\n(?P<root>[A-Za-z0-9+/]{43}=)\n")
_SIGNATURE = re.compile(r"\u2014 (?P<name>[^ \n]+) (?P<data>[A-Za-z0-9+/]+={0,2})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a note says."""

    origin: str
    size: int
    root: bytes


class NoteKey:
    """A key of one origin: signs notes and knows its own signatures."""

    def __init__(self, origin: str, signer: Signer) -> None:
        if not origin or any(character.isspace() or character == "+" for character in origin):
            raise ValueError("an origin must not be empty or hold spaces or plus signs")
        self._origin = origin
        self._signer = signer
        self._public_key = signer.public_key
        key_id = origin.encode() + b"\n" + _ALGORITHM + self._public_key
        self._key_hash = sha256(key_id).digest()[:_KEY_HASH_BYTES]

    @property
    def vkey(self) -> str:
        """The verifier key, `name+hash+base64`, as C2SP signed-note writes it."""
        key = base64.b64encode(_ALGORITHM + self._public_key).decode()
        return f"{self._origin}+{self._key_hash.hex()}+{key}"

    def sign_text(self, text: str) -> bytes:
        """Return the signature over a text that is no note."""
        return self._signer.sign(text.encode())

    def line(self, body: str) -> str:
        """Return the signature line over a note's body."""
        signature = base64.b64encode(self._key_hash + self._signer.sign(body.encode())).decode()
        return f"\u2014 {self._origin} {signature}\n"

    def signed(self, body: str, lines: Sequence[tuple[str, bytes]]) -> bool | None:
        """Say whether a line is our right signature; None when no line is ours."""
        ours = [data[_KEY_HASH_BYTES:] for name, data in lines if self._is_ours(name, data)]
        if not ours:
            return None
        try:
            Ed25519PublicKey.from_public_bytes(self._public_key).verify(ours[0], body.encode())
        except InvalidSignature:
            return False
        return len(ours) == 1

    def _is_ours(self, name: str, data: bytes) -> bool:
        return name == self._origin and data[:_KEY_HASH_BYTES] == self._key_hash


class CheckpointSigner:
    """Writes and reads notes of one origin under one key, and under the former one while it is replaced."""

    def __init__(self, origin: str, signer: Signer, *, former: Signer | None = None) -> None:
        self._origin = origin
        self._keys = [NoteKey(origin, each) for each in (signer, former) if each is not None]

    @property
    def origin(self) -> str:
        """The log's name."""
        return self._origin

    @property
    def key(self) -> NoteKey:
        """The key that signs."""
        return self._keys[0]

    @property
    def is_handing_over(self) -> bool:
        """Whether a former key signs too."""
        return len(self._keys) > 1

    @property
    def vkey(self) -> str:
        """The verifier key, as C2SP signed-note writes it."""
        return self.key.vkey

    def sign(self, size: int, root: bytes) -> str:
        """Return the note over a tree."""
        body = f"{self._origin}\n{size}\n{base64.b64encode(root).decode()}\n"
        return f"{body}\n{''.join(key.line(body) for key in self._keys)}"

    def read(self, note: str) -> Checkpoint:
        """Return what a note says; raise ValueError unless it is ours, whole and rightly signed.

        Lines of others, such as witnesses, may stand beside our signature.
        """
        body, lines = split_note(note)
        match = _BODY.fullmatch(body)
        if match is None or match["origin"] != self._origin:
            raise ValueError("this is no checkpoint of this log")
        verdicts = [verdict for key in self._keys if (verdict := key.signed(body, lines)) is not None]
        if not verdicts:
            raise ValueError("the checkpoint was signed by another key")
        if not all(verdicts):
            raise ValueError("the checkpoint's signature is wrong")
        return Checkpoint(match["origin"], int(match["size"]), base64.b64decode(match["root"]))


def split_note(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return a note's body and its signature lines as (name, key id and signature); raise ValueError."""
    body, separator, signatures = note.rpartition("\n\n")
    lines = signatures.split("\n")
    if not separator or lines.pop():
        raise ValueError("the checkpoint is not a signed note")
    found: list[tuple[str, bytes]] = []
    for line in lines:
        match = _SIGNATURE.fullmatch(line)
        if match is None:
            raise ValueError("a signature line of the checkpoint is malformed")
        try:
            data = base64.b64decode(match["data"], validate=True)
        except binascii.Error:
            raise ValueError("a signature line of the checkpoint is malformed") from None
        if base64.b64encode(data).decode() != match["data"]:
            raise ValueError("a signature line of the checkpoint is not canonical base64")
        found.append((match["name"], data))
    return f"{body}\n", found
