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

KEY_ID_BYTES = 4
_ED25519 = 0x01
_PUBLIC_BYTES = 32
_BODY = re.compile(r"(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]*)\n(?P<root>[A-Za-z0-9+/]{43}=)\n")
_SIGNATURE = re.compile(r"\u2014 (?P<name>[^ \n]+) (?P<data>[A-Za-z0-9+/]+={0,2})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a note says."""

    origin: str
    size: int
    root: bytes


class NoteVerifier:
    """A log's public key: knows its own signatures on notes."""

    def __init__(self, origin: str, public_key: bytes) -> None:
        check_key_name(origin)
        self.origin = origin
        self._public_key = public_key
        self._key_hash = key_id(origin, _ED25519, public_key)

    @property
    def vkey(self) -> str:
        """The verifier key, `name+hash+base64`, as C2SP signed-note writes it."""
        return vkey_of(self.origin, _ED25519, self._public_key)

    def signed(self, body: str, lines: Sequence[tuple[str, bytes]]) -> bool | None:
        """Say whether a line is our right signature; None when no line is ours."""
        ours = [data[KEY_ID_BYTES:] for name, data in lines if self.is_by_us(name, data)]
        if not ours:
            return None
        try:
            Ed25519PublicKey.from_public_bytes(self._public_key).verify(ours[0], body.encode())
        except InvalidSignature:
            return False
        return len(ours) == 1

    def is_by_us(self, name: str, data: bytes) -> bool:
        """Say whether a signature line names this key; whether it is right is another question."""
        return name == self.origin and data[:KEY_ID_BYTES] == self._key_hash


class NoteKey(NoteVerifier):
    """A log's key with its private half behind a port: signs notes too."""

    def __init__(self, origin: str, signer: Signer) -> None:
        super().__init__(origin, signer.public_key)
        self._signer = signer

    def sign_text(self, text: str) -> bytes:
        """Return the signature over a text that is no note."""
        return self._signer.sign(text.encode())

    def line(self, body: str) -> str:
        """Return the signature line over a note's body."""
        return signature_line(self.origin, self._key_hash + self._signer.sign(body.encode()))


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
        body = note_body(Checkpoint(self._origin, size, root))
        return f"{body}\n{''.join(key.line(body) for key in self._keys)}"

    def read(self, note: str) -> Checkpoint:
        """Return what a note says; raise ValueError unless it is ours, whole and rightly signed.

        Lines of others, such as witnesses, may stand beside our signature. While a key hands over to
        another, the newer one signs first: whoever knows only the former may no longer sign.
        """
        checkpoint = read_note(note, self._keys)
        first = next(data for name, data in split_note(note)[1] if name == self._origin)
        if not any(key.is_by_us(self._origin, first) for key in self._keys):
            raise ValueError("the checkpoint was signed by a newer key of the log: use that one")
        return checkpoint


def read_note(note: str, keys: Sequence[NoteVerifier]) -> Checkpoint:
    """Return what a note says; raise ValueError unless one of these keys of one origin signed it rightly."""
    body, lines = split_note(note)
    checkpoint = read_body(body)
    if any(key.origin != checkpoint.origin for key in keys):
        raise ValueError("this is no checkpoint of this log")
    verdicts = [verdict for key in keys if (verdict := key.signed(body, lines)) is not None]
    if not verdicts:
        raise ValueError("the checkpoint was signed by another key")
    if not all(verdicts):
        raise ValueError("the checkpoint's signature is wrong")
    return checkpoint


def note_body(checkpoint: Checkpoint) -> str:
    """Return the text of a checkpoint, which is what is signed."""
    return f"{checkpoint.origin}\n{checkpoint.size}\n{base64.b64encode(checkpoint.root).decode()}\n"


def read_body(body: str) -> Checkpoint:
    """Return what a checkpoint's text says; raise ValueError for any other text."""
    match = _BODY.fullmatch(body)
    if match is None:
        raise ValueError("this is no checkpoint")
    return Checkpoint(match["origin"], int(match["size"]), base64.b64decode(match["root"]))


def check_key_name(name: str) -> None:
    """Raise ValueError unless C2SP allows `name` for a key."""
    if not name or any(character.isspace() or character == "+" for character in name):
        raise ValueError("an origin must not be empty or hold spaces or plus signs")


def key_id(name: str, algorithm: int, public_key: bytes) -> bytes:
    """Return the four bytes that stand for a key on signature lines (C2SP signed-note)."""
    return sha256(name.encode() + b"\n" + bytes([algorithm]) + public_key).digest()[:KEY_ID_BYTES]


def vkey_of(name: str, algorithm: int, public_key: bytes) -> str:
    """Return a verifier key, as C2SP signed-note writes it."""
    key = base64.b64encode(bytes([algorithm]) + public_key).decode()
    return f"{name}+{key_id(name, algorithm, public_key).hex()}+{key}"


def read_vkey(vkey: str) -> tuple[str, int, bytes]:
    """Return a verifier key's name, algorithm and public key; raise ValueError for anything else."""
    name, _, rest = vkey.partition("+")
    _, _, encoded = rest.partition("+")
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        key = b""
    if not key or vkey_of(name, key[0], key[1:]) != vkey:
        raise ValueError("a key looks like <name>+<8 hexadecimal digits>+<base64>")
    check_key_name(name)
    return name, key[0], key[1:]


def log_verifier(vkey: str) -> NoteVerifier:
    """Return the log's key that a verifier key names; raise ValueError for any other key."""
    name, algorithm, public_key = read_vkey(vkey)
    if algorithm != _ED25519 or len(public_key) != _PUBLIC_BYTES:
        raise ValueError("a log's key must be Ed25519 (type 0x01)")
    return NoteVerifier(name, public_key)


def signature_line(name: str, data: bytes) -> str:
    """Return a note's signature line; `data` begins with the key id."""
    return f"\u2014 {name} {base64.b64encode(data).decode()}\n"


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
