"""Checkpoints: C2SP signed notes (Ed25519) that fix the tree's size and root."""

import base64
import re
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from podium_audit.ports import Signer

_ALGORITHM = b"\x01"
_KEY_HASH_BYTES = 4
_NOTE = re.compile(
    r"(?P<body>(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]*)\n(?P<root>[A-Za-z0-9+/]{43}=)\n)"
    r"\n\u2014 (?P<name>[^ \n]+) (?P<signature>[A-Za-z0-9+/=]+)\n"
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a note says."""

    origin: str
    size: int
    root: bytes


class CheckpointSigner:
    """Writes and reads notes of one origin under one key."""

    def __init__(self, origin: str, signer: Signer) -> None:
        if not origin or any(character.isspace() or character == "+" for character in origin):
            raise ValueError("an origin must not be empty or hold spaces or plus signs")
        self._origin = origin
        self._signer = signer
        self._public_key = signer.public_key
        key_id = origin.encode() + b"\n" + _ALGORITHM + self._public_key
        self._key_hash = sha256(key_id).digest()[:_KEY_HASH_BYTES]

    @property
    def origin(self) -> str:
        """The log's name."""
        return self._origin

    @property
    def vkey(self) -> str:
        """The verifier key, `name+hash+base64`, as C2SP signed-note writes it."""
        key = base64.b64encode(_ALGORITHM + self._public_key).decode()
        return f"{self._origin}+{self._key_hash.hex()}+{key}"

    def sign(self, size: int, root: bytes) -> str:
        """Return the note over a tree."""
        body = f"{self._origin}\n{size}\n{base64.b64encode(root).decode()}\n"
        signature = self._key_hash + self._signer.sign(body.encode())
        return f"{body}\n\u2014 {self._origin} {base64.b64encode(signature).decode()}\n"

    def read(self, note: str) -> Checkpoint:
        """Return what a note says; raise ValueError unless it is ours, whole and rightly signed."""
        match = _NOTE.fullmatch(note)
        if match is None or match["origin"] != self._origin or match["name"] != self._origin:
            raise ValueError("this is no checkpoint of this log")
        signature = base64.b64decode(match["signature"])
        if signature[:_KEY_HASH_BYTES] != self._key_hash:
            raise ValueError("the checkpoint was signed by another key")
        try:
            key = Ed25519PublicKey.from_public_bytes(self._public_key)
            key.verify(signature[_KEY_HASH_BYTES:], match["body"].encode())
        except InvalidSignature:
            raise ValueError("the checkpoint's signature is wrong") from None
        return Checkpoint(match["origin"], int(match["size"]), base64.b64decode(match["root"]))
