"""C2SP signed-note and tlog-checkpoint: the log's signed statement of its size and root hash.

A note is text, an empty line, and one signature line per signer: `— <name> <base64(key id || signature)>`.
A checkpoint's text is three lines: origin, tree size, base64 root. Only Ed25519 (type 0x01) is known here.
"""

import hashlib
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from podium_verifier import shape
from podium_verifier.merkle import HASH_SIZE

_ED25519 = b"\x01"
_KEY_SIZE = 32
_SIGNATURE_SIZE = 64
_SIZE = re.compile(r"0|[1-9][0-9]{0,15}")
_KEY_ID = re.compile(r"[0-9a-f]{8}")
_DASH = "\u2014 "


@dataclass(frozen=True, slots=True)
class LogKey:
    """A log's public key: `text` is its vkey, `<name>+<key id>+<base64(0x01 || key)>`."""

    text: str
    name: str
    key_id: bytes
    public: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's size and root at one moment."""

    origin: str
    size: int
    root: bytes


def parse_vkey(vkey: str) -> LogKey:
    """Return the key a vkey names; ValueError says what is wrong with it."""
    name, key_id, key = split_vkey(vkey, "the log key")
    if key[:1] != _ED25519 or len(key) != 1 + _KEY_SIZE:
        raise ValueError("the log key must be an Ed25519 key (type 0x01, 32 bytes)")
    return LogKey(vkey, name, key_id, key[1:])


def split_vkey(vkey: str, what: str) -> tuple[str, bytes, bytes]:
    """Return a vkey's name, key id and key (its type byte first); ValueError says what is wrong with it."""
    parts = vkey.split("+", 2)
    if len(parts) != 3 or not is_key_name(parts[0]) or not _KEY_ID.fullmatch(parts[1]):  # noqa: PLR2004 - name, id, key
        raise ValueError(f"{what} looks like <name>+<8 hexadecimal digits>+<base64>")
    name, key_id, encoded = parts
    key = shape.decode_base64(encoded, what)
    expected = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    if expected.hex() != key_id:
        raise ValueError(f"{what}'s id does not belong to its name and key")
    return name, expected, key


def is_key_name(name: str) -> bool:
    """Say whether C2SP allows `name` as a key name: not empty, no spaces, no plus."""
    return bool(name) and name.isprintable() and not any(c.isspace() or c == "+" for c in name)


def open_checkpoint(note: str, key: LogKey) -> Checkpoint:
    """Return the checkpoint in `note` if `key` signed it; ValueError says what is wrong.

    Signatures by other keys (witnesses) may stand beside the log's and are not judged.
    """
    text, signatures = note_text(note)
    checkpoint = _parse_text(text)
    if checkpoint.origin != key.name:
        raise ValueError(f"the checkpoint's origin is {checkpoint.origin!r}, the key's name is {key.name!r}")
    signature = _signature_of(signatures, key)
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, text.encode())
    except InvalidSignature:
        raise ValueError("the checkpoint's signature does not fit its text and the log key") from None
    return checkpoint


def note_text(note: str) -> tuple[str, list[str]]:
    """Return a note's text and its signature lines; ValueError if it is no signed note."""
    text, separator, signatures = note.rpartition("\n\n")
    if not separator or not signatures.endswith("\n"):
        raise ValueError("the checkpoint is not a signed note")
    return text + "\n", signatures[:-1].split("\n")


def _parse_text(text: str) -> Checkpoint:
    lines = text.split("\n")
    if len(lines) != 4 or lines[3] or not is_key_name(lines[0]):  # noqa: PLR2004 - three lines, each ended
        raise ValueError("a checkpoint has exactly three lines: origin, size, root")
    if not _SIZE.fullmatch(lines[1]):
        raise ValueError("the checkpoint's tree size is not a decimal number")
    root = shape.decode_base64(lines[2], "the checkpoint's root")
    if len(root) != HASH_SIZE:
        raise ValueError("the checkpoint's root must be 32 bytes")
    return Checkpoint(lines[0], int(lines[1]), root)


def _signature_of(lines: list[str], key: LogKey) -> bytes:
    found: list[bytes] = []
    for line in lines:
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        if not line.startswith(_DASH) or not is_key_name(name):
            raise ValueError("a signature line of the checkpoint is malformed")
        data = shape.decode_base64(encoded, "a checkpoint signature")
        if name == key.name and data[:4] == key.key_id:
            found.append(data[4:])
    if len(found) != 1 or len(found[0]) != _SIGNATURE_SIZE:
        raise ValueError(f"the checkpoint needs one signature by {key.name}+{key.key_id.hex()}")
    return found[0]
