"""A witness cosigns what continues all that it saw of a log, and nothing else."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_audit.ports import StoreError
from podium_audit.tree.add_checkpoint import AddCheckpoint, parse
from podium_audit.tree.checkpoint import CheckpointSigner, read_body, split_note
from podium_audit.witness.__main__ import BOOK_FILE, forget, open_judge
from podium_audit.witness.judgement import SIZE_TYPE, Judge, Judgement
from podium_core.domain import merkle
from podium_core.domain.errors import PodiumError
from podium_verifier.cosignatures import cosignature_of, parse_witness_key
from podium_verifier.signed_note import open_checkpoint, parse_vkey
from tests.fakes.audit_store import FakeSigner
from tests.fakes.witnesses import witness_settings

ORIGIN = "podium.local/audit"
SIGNER = CheckpointSigner(ORIGIN, FakeSigner())


@dataclass(slots=True)
class History:
    """A log's leaves, and the requests that show how it grew."""

    salt: bytes = b""
    signer: CheckpointSigner = field(default_factory=lambda: SIGNER)

    def node(self, level: int, index: int) -> bytes:
        if level == 0:
            return merkle.leaf_hash(self.salt + b"%d" % index)
        return merkle.node_hash(self.node(level - 1, 2 * index), self.node(level - 1, 2 * index + 1))

    def note(self, size: int) -> str:
        return self.signer.sign(size, merkle.root_of(size, self.node))

    def ask(self, old: int, size: int) -> AddCheckpoint:
        return AddCheckpoint(old, tuple(merkle.consistency_path(old, size, self.node)), self.note(size))


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return open_judge(witness_settings(tmp_path, SIGNER.vkey))


def said(judge: Judge, asked: AddCheckpoint) -> Judgement:
    return judge.add_checkpoint(asked.encode())


def test_it_cosigns_a_log_that_grows_with_both_its_keys(judge: Judge) -> None:
    log = History()
    old = 0
    for size in (1, 5, 5, 64, 100):
        answer = said(judge, log.ask(old, size))
        assert (answer.status, answer.content_type) == (200, "text/plain")
        note = log.note(size) + answer.text
        checkpoint = open_checkpoint(note, parse_vkey(SIGNER.vkey))
        for cosigner in judge.cosigners:
            assert cosignature_of(note, checkpoint, parse_witness_key(cosigner.witness.vkey)) is not None
            lines = split_note(note)[1]
            assert any(cosigner.witness.has_signed(read_body(split_note(note)[0]), *line) for line in lines)
        old = size


def test_it_tells_the_size_that_it_knows(judge: Judge) -> None:
    log = History()
    assert said(judge, log.ask(0, 7)).status == 200
    for old in (0, 3):
        answer = said(judge, log.ask(old, 9))
        assert (answer.status, answer.text, answer.content_type) == (409, "7\n", SIZE_TYPE)
    assert said(judge, log.ask(7, 9)).status == 200


def test_it_never_cosigns_two_histories(judge: Judge, caplog: pytest.LogCaptureFixture) -> None:
    log, other = History(), History(b"other")
    assert said(judge, log.ask(0, 7)).status == 200
    assert said(judge, other.ask(7, 9)).status == 422
    assert said(judge, other.ask(7, 7)).status == 409
    assert said(judge, AddCheckpoint(7, (), log.note(9))).status == 422
    assert "continues" in caplog.text
    assert "forked" in caplog.text
    assert said(judge, log.ask(7, 9)).status == 200, "what it refused did not change what it knows"


def test_it_cosigns_only_logs_that_it_knows(judge: Judge, tmp_path: Path) -> None:
    stranger = CheckpointSigner("other.example/log", FakeSigner())
    assert said(judge, History(signer=stranger).ask(0, 3)).status == 404
    thief = CheckpointSigner(ORIGIN, FakeSigner(bytes([7]) * 32))
    assert said(judge, History(signer=thief).ask(0, 3)).status == 403
    (tmp_path / "logs").write_text(f"{SIGNER.vkey}\n{thief.vkey}\n")
    assert said(judge, History(signer=thief).ask(0, 3)).status == 200, "a new key needs no restart"
    (tmp_path / "logs").write_text("nonsense\n")
    with pytest.raises(PodiumError, match="line 1"):
        said(judge, History().ask(3, 4))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"old 0\n",
        b"old 00\n\nnote",
        b"old -1\n\nnote",
        b"old 1\nxx\n\nnote",
        b"old 1\n" + b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n" * 64 + b"\nnote",
        b"old 0\n\nnot a note\n",
    ],
)
def test_a_malformed_request_is_a_bad_request(judge: Judge, body: bytes) -> None:
    assert judge.add_checkpoint(body).status == 400


def test_an_old_size_above_the_checkpoint_is_a_bad_request(judge: Judge) -> None:
    assert said(judge, AddCheckpoint(9, (), History().note(3))).status == 400
    assert said(judge, AddCheckpoint(0, (bytes(32),), History().note(3))).status == 422


def test_it_remembers_over_a_restart_and_forgets_only_when_told(tmp_path: Path) -> None:
    settings = witness_settings(tmp_path, SIGNER.vkey)
    first = open_judge(settings)
    vkeys = [cosigner.witness.vkey for cosigner in first.cosigners]
    assert said(first, History().ask(0, 7)).status == 200
    first.book.close()
    second = open_judge(settings)
    assert [cosigner.witness.vkey for cosigner in second.cosigners] == vkeys
    assert said(second, History(b"other").ask(0, 9)).status == 409
    second.book.close()
    assert "begins anew" in forget(settings, ORIGIN)
    assert forget(settings, ORIGIN) == "no such log\n"
    third = open_judge(settings)
    assert said(third, History(b"other").ask(0, 9)).status == 200
    third.book.close()
    with pytest.raises(StoreError):
        said(third, History().ask(0, 7))
    assert (settings.data_dir / BOOK_FILE).stat().st_mode & 0o077 == 0


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_body_is_parsed_or_refused(body: bytes) -> None:
    try:
        asked = parse(body)
    except ValueError:
        return
    assert parse(asked.encode()) == asked
