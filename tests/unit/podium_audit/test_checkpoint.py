"""Signed notes against the C2SP example, and against every flipped bit."""

import base64
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from podium_audit.tree.checkpoint import CheckpointSigner
from tests.fakes.audit_store import FakeSigner

SIGNER = CheckpointSigner("podium.local/audit", FakeSigner())
ROOT = sha256(b"root").digest()
NOTE = SIGNER.sign(12, ROOT)


class ExampleKey:
    """The key of C2SP signed-note's own example; its private half is not needed."""

    public_key = base64.b64decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")[1:]

    def sign(self, data: bytes) -> bytes:
        raise NotImplementedError(data)


def test_the_verifier_key_is_written_as_the_specification_writes_it() -> None:
    example = CheckpointSigner("PeterNeumann", ExampleKey())
    assert example.vkey == "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"


def test_a_note_has_the_specified_form() -> None:
    body, signature = NOTE.split("\n\n")
    assert body == f"podium.local/audit\n12\n{base64.b64encode(ROOT).decode()}"
    dash, name, encoded = signature.removesuffix("\n").split(" ")
    raw = base64.b64decode(encoded)
    assert (dash, name, len(raw)) == ("\u2014", "podium.local/audit", 68)
    assert raw[:4].hex() == SIGNER.vkey.split("+")[1]
    key = Ed25519PublicKey.from_public_bytes(FakeSigner().public_key)
    key.verify(raw[4:], f"{body}\n".encode())


def test_whoever_knows_only_the_former_key_may_not_go_on() -> None:
    former, newer = FakeSigner(), FakeSigner(bytes([9]) * 32)
    note = CheckpointSigner("log.example", newer, former=former).sign(3, ROOT)
    assert CheckpointSigner("log.example", newer).read(note).size == 3
    assert CheckpointSigner("log.example", newer, former=former).read(note).size == 3
    with pytest.raises(ValueError, match="newer key"):
        CheckpointSigner("log.example", former).read(note)


def test_a_note_says_what_was_signed() -> None:
    read = SIGNER.read(NOTE)
    assert (read.origin, read.size, read.root) == ("podium.local/audit", 12, ROOT)


@given(st.integers(0, len(NOTE.encode()) - 1), st.integers(0, 7))
def test_any_flipped_bit_is_refused(at: int, bit: int) -> None:
    changed = bytearray(NOTE.encode())
    changed[at] ^= 1 << bit
    text = changed.decode("utf-8", "replace")
    with pytest.raises(ValueError, match="checkpoint"):
        SIGNER.read(text)


@pytest.mark.parametrize(
    "other",
    [
        CheckpointSigner("podium.local/audit", FakeSigner(b"k" * 32)),
        CheckpointSigner("elsewhere", FakeSigner()),
    ],
    ids=["key", "origin"],
)
def test_a_note_of_another_log_is_refused(other: CheckpointSigner) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        other.read(NOTE)


@pytest.mark.parametrize("origin", ["", "two words", "a+b"])
def test_an_origin_must_fit_in_a_note(origin: str) -> None:
    with pytest.raises(ValueError, match="origin"):
        CheckpointSigner(origin, FakeSigner())
