"""What the reader brings along: kept checkpoints, witnesses, an older key; and what befell the log."""

import base64
import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from podium_verifier import ExitCode, Fault, Verified, verify_export
from podium_verifier.__main__ import main
from podium_verifier.summary import render
from podium_verifier.trust import Trust
from tests.unit.podium_verifier.exported_run import (
    ORIGIN,
    ExportedRun,
    Signer,
    b64,
    begin,
    consistency_path,
    end_attempt,
    opened_facts,
    seal,
    three_step_run,
    tree_hash,
)

OLD, NEW = Signer(seed=1), Signer(seed=9)
SEEN_AT_S = 1_796_000_100


class Witness:
    """A naive witness, straight from the tables of tlog-cosignature."""

    def __init__(self, seed: int, name: str = "witness.example/w", *, is_ml_dsa: bool = False) -> None:
        self.name = name
        self._is_ml_dsa = is_ml_dsa
        self._key = (
            MLDSA44PrivateKey.from_seed_bytes(bytes([seed]) * 32)
            if is_ml_dsa
            else Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        )
        self._public = (b"\x06" if is_ml_dsa else b"\x04") + self._key.public_key().public_bytes_raw()
        self._key_id = hashlib.sha256(name.encode() + b"\n" + self._public).digest()[:4]

    @property
    def vkey(self) -> str:
        return f"{self.name}+{self._key_id.hex()}+{b64(self._public)}"

    def cosign(self, note: str, time_s: int = SEEN_AT_S) -> str:
        text = note.rpartition("\n\n")[0] + "\n"
        time = time_s.to_bytes(8)
        signature = self._key.sign(self._message(text, time_s))
        return f"{note}\u2014 {self.name} {b64(self._key_id + time + signature)}\n"

    def _message(self, text: str, time_s: int) -> bytes:
        if not self._is_ml_dsa:
            return f"cosignature/v1\ntime {time_s}\n{text}".encode()
        origin, size, root = text.splitlines()
        return (
            b"subtree/v1\n\x00"
            + bytes([len(self.name)])
            + self.name.encode()
            + time_s.to_bytes(8)
            + bytes([len(origin)])
            + origin.encode()
            + bytes(8)
            + int(size).to_bytes(8)
            + base64.b64decode(root)
        )


WITNESSES = [Witness(21, "w1.example"), Witness(22, "w2.example"), Witness(23, "w3.example", is_ml_dsa=True)]


def all_sign(note: str) -> str:
    for witness in WITNESSES:
        note = witness.cosign(note)
    return note


def log_of(run: ExportedRun) -> list[bytes]:
    """The log that an export without history stands in."""
    return run.log()[0]


def note_of(log: list[bytes], size: int, signer: Signer = OLD) -> str:
    return signer.checkpoint(size, tree_hash(log[:size]))


def verified(data: bytes, **trust: object) -> Verified:
    result = verify_export(data, trust=Trust(**{"vkey": OLD.vkey, **trust}))  # type: ignore[arg-type]
    assert isinstance(result, Verified), result
    return result


def fault(data: bytes, **trust: object) -> Fault:
    result = verify_export(data, trust=Trust(**{"vkey": OLD.vkey, **trust}))  # type: ignore[arg-type]
    assert isinstance(result, Fault)
    return result


@pytest.mark.parametrize("size", [1, 2, 7, 13])
def test_a_kept_checkpoint_is_shown_to_be_continued(size: int) -> None:
    run = three_step_run()
    log = log_of(run)
    data = run.export(since=[size])
    result = verified(data, kept=(note_of(log, size),))
    assert [kept.size for kept in result.kept] == [size]
    assert f"the one of {size} lea" in " ".join(render(result).split())


def test_a_log_that_showed_another_history_is_forked() -> None:
    run = three_step_run()
    log = log_of(run)
    other = [b"another past", *log[1:]]
    for size in (3, len(log)):
        assert fault(run.export(since=[3]), kept=(note_of(other, size),)).code is ExitCode.FORKED
    bent = run.export(since=[3], edit=lambda lines: lines[2].update(proof=lines[2]["proof"][:-1]))
    assert fault(bent, kept=(note_of(log, 3),)).code is ExitCode.FORKED
    anchored = run.export(anchors=[(5, lambda _: note_of(other, 5))])
    assert fault(anchored).code is ExitCode.FORKED


def test_without_the_proof_it_says_how_to_get_it() -> None:
    run = three_step_run()
    said = fault(run.export(), kept=(note_of(log_of(run), 3),))
    assert (said.code, "since=3" in said.message) == (ExitCode.USAGE, True)
    stranger = Signer(seed=5)
    assert fault(run.export(since=[3]), kept=(note_of(log_of(run), 3, stranger),)).code is ExitCode.CHECKPOINT
    assert fault(run.export(), kept=("no note",)).code is ExitCode.CHECKPOINT


def test_witnesses_are_counted_over_a_checkpoint_that_holds_the_whole_run() -> None:
    run = three_step_run()
    whole = len(log_of(run))
    vkeys = tuple(witness.vkey for witness in WITNESSES)
    data = run.export(anchors=[(4, all_sign), (whole, all_sign)])
    result = verified(data, witnesses=vkeys)
    assert result.cosigned is not None
    assert [by.witness for by in result.cosigned.by] == ["w1.example", "w2.example", "w3.example"]
    assert "w3.example at 2026-11-30" in " ".join(render(result).split())
    assert fault(run.export(anchors=[(4, all_sign)]), witnesses=vkeys).code is ExitCode.WITNESSES
    some = run.export(anchors=[(whole, WITNESSES[1].cosign)])
    assert verified(some, witnesses=vkeys, quorum=1).cosigned is not None
    assert fault(some, witnesses=vkeys, quorum=2).code is ExitCode.WITNESSES
    assert fault(run.export(), witnesses=vkeys[:1]).code is ExitCode.WITNESSES
    assert fault(run.export(), witnesses=vkeys, quorum=4).code is ExitCode.USAGE
    assert fault(run.export(), witnesses=vkeys, quorum=0).code is ExitCode.USAGE
    assert fault(run.export(), witnesses=(vkeys[0], vkeys[0])).code is ExitCode.USAGE
    assert fault(run.export(), witnesses=(OLD.vkey,)).code is ExitCode.USAGE


@pytest.mark.parametrize("is_ml_dsa", [False, True])
def test_a_cosignature_holds_for_its_note_time_and_key_only(is_ml_dsa: bool) -> None:
    run = three_step_run()
    witness, whole = Witness(30, is_ml_dsa=is_ml_dsa), len(log_of(run))

    def code(cosign: Callable[[str], str]) -> ExitCode:
        data = run.export(anchors=[(whole, cosign)])
        result = verify_export(data, trust=Trust(OLD.vkey, witnesses=(witness.vkey,)))
        return ExitCode.OK if isinstance(result, Verified) else result.code

    def bent(at: int) -> Callable[[str], str]:
        def cosign(note: str) -> str:
            head, _, line = witness.cosign(note).rpartition(" ")
            data = bytearray(base64.b64decode(line))
            data[at] ^= 1
            return f"{head} {b64(bytes(data))}\n"

        return cosign

    assert code(witness.cosign) is ExitCode.OK
    for at in (0, 3, 4, 11, 12, 40, -1):
        assert code(bent(at)) is ExitCode.WITNESSES
    assert code(Witness(31, is_ml_dsa=is_ml_dsa).cosign) is ExitCode.WITNESSES
    assert code(Witness(30, is_ml_dsa=not is_ml_dsa).cosign) is ExitCode.WITNESSES
    assert code(lambda note: f"{note}\u2014 {witness.name} !\n") is ExitCode.CHECKPOINT


def rotated(run: ExportedRun, *keys: Signer) -> bytes:
    """Export under the last key, with the rotations from each key to the next on record."""
    run.signer = keys[-1]
    steps = itertools.pairwise(keys)
    return run.export(history=[("key_rotated", old.rotation_to(new)) for old, new in steps])


def test_a_reader_with_the_old_key_follows_its_rotations() -> None:
    third = Signer(seed=7)
    for data in (rotated(three_step_run(), OLD, NEW), rotated(three_step_run(), OLD, NEW, third)):
        result = verified(data)
        assert result.key_is_pinned
        assert f"{NEW.vkey.split('+')[1]}" in render(result)
    assert verified(data, vkey=third.vkey).key.text == third.vkey
    assert fault(data, vkey=Signer(seed=8).vkey).code is ExitCode.CHECKPOINT


def test_a_rotation_that_the_old_key_did_not_sign_is_none() -> None:
    run = three_step_run()
    run.signer = NEW
    thief = Signer(seed=66)
    facts = {**thief.rotation_to(NEW), "old_vkey": OLD.vkey}
    assert fault(run.export(history=[("key_rotated", facts)])).code is ExitCode.CHECKPOINT
    assert fault(run.export()).code is ExitCode.CHECKPOINT, "nothing leads from the old key to the new"
    other = Signer(seed=9, name="other.example/log")
    moved = [("key_rotated", OLD.rotation_to(other))]
    assert fault(run.export(history=moved)).code is ExitCode.CHECKPOINT
    assert fault(run.export(history=[("note", {"kind": "x"})])).code is ExitCode.CHECKPOINT
    bent = rotated(three_step_run(), OLD, NEW).replace(b'"event_id":"log_event', b'"event_id":"log_evenT')
    assert fault(bent.replace(b'\\"event_id\\":\\"log_event', b'\\"event_id\\":\\"log_evenT')).code in (
        ExitCode.NOT_IN_LOG,
        ExitCode.MALFORMED,
    )


def test_checkpoints_of_the_old_key_are_still_of_this_log() -> None:
    run = three_step_run()
    run.signer = NEW
    history = [("key_rotated", OLD.rotation_to(NEW))]
    log = [b"stranger 0", b"stranger 1"]
    data = run.export(history=history, since=[2])
    assert verified(data, kept=(note_of(log, 2, OLD),)).kept[0].size == 2


def gap_export(lost_size: int = 9, **facts: object) -> bytes:
    lost = [b"stranger 0", b"stranger 1", *(b"lost %d" % at for at in range(20))]
    gap = {
        "kept_size": 2,
        "kept_root": b64(tree_hash(lost[:2])),
        "lost_size": lost_size,
        "lost_note": note_of(lost, lost_size),
    }
    return three_step_run().export(history=[("log_gap", {**gap, **facts})], since=[5])


def test_leaves_that_were_lost_on_record_are_named() -> None:
    result = verified(gap_export())
    assert "lost the leaves from 2 to 8" in " ".join(render(result).split())
    lost = [b"stranger 0", b"stranger 1", *(b"lost %d" % at for at in range(20))]
    said = fault(gap_export(), kept=(note_of(lost, 5),))
    assert (said.code, said.leaf_index) == (ExitCode.FORKED, 2)
    assert "were lost" in said.message
    assert fault(gap_export(kept_size=3)).code is ExitCode.CHECKPOINT
    assert fault(gap_export(lost_note="")).code is ExitCode.CHECKPOINT
    assert fault(gap_export(lost_note=note_of(lost, 8))).code is ExitCode.CHECKPOINT
    assert fault(gap_export(lost_note=note_of(lost, 9, NEW))).code is ExitCode.CHECKPOINT


def erased_run() -> ExportedRun:
    run = three_step_run()
    order = {"principal_id": "officer", "basis": "subject_request", "case_id": ""}
    run.add("erasure_begun", order, in_run=False)
    done = {"begun_index": 2 * len(run.records), "part_count": 3, "key_is_gone": True, "key_backup_days": 7}
    run.add("erased", {**order, **done}, in_run=False)
    return run


def late_plan_run() -> ExportedRun:
    run = three_step_run()
    run.records.insert(2, run.records.pop(1))
    run.records[0]["facts"]["has_plan"] = False
    for at, record in enumerate(run.records):
        record["tenant_seq"] = at
    run.renumber()
    return run


def cut(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:6])


def test_each_failure_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = three_step_run().export()
    log = log_of(three_step_run())
    (tmp_path / "kept").write_text(note_of([b"another past", *log[1:]], len(log)))
    unsealed = three_step_run()
    unsealed.records.pop()
    never_ended = ExportedRun()
    never_ended.add(
        "opened", {**opened_facts(), "has_plan": False, "kind": "calibrate"}, ("request", "q", b"?")
    )
    begin(never_ended, "att_0", 0, "demo-math", [])
    end_attempt(never_ended, "att_0")
    seal(never_ended)["facts"].update(attempt_count=2)
    cases: list[tuple[int, str, bytes, list[str]]] = [
        (0, "VERIFIED", whole, []),
        (1, "neither a key", whole, ["--key", str(tmp_path / "absent")]),
        (2, "empty", b"", []),
        (3, "another log key", whole, ["--key", NEW.vkey]),
        (4, "line 3, leaf 2", whole.replace(b"demo-math", b"demo-moth", 1), []),
        (5, "commitment", whole.replace(b64(b"XLII").encode(), b64(b"XLIV").encode()), []),
        (6, "counts 2 attempts", never_ended.export(), []),
        (7, "tail is missing", cut(whole), []),
        (7, "cut off", whole[:-1], []),
        (7, "seal is missing", unsealed.export(with_content=False), []),
        (8, "another log", whole, ["--checkpoint", str(tmp_path / "kept")]),
        (9, "before the plan", late_plan_run().export(with_content=False), []),
        (10, "Content erased under leaf 22", erased_run().export(with_content=False), []),
        (11, "0 of 1 witnesses", whole, ["--witness", WITNESSES[0].vkey]),
    ]
    file = tmp_path / "run.podium.jsonl"
    for code, says, data, options in cases:
        file.write_bytes(data)
        assert main([str(file), "--key", OLD.vkey, *options]) == code, says
        said = capsys.readouterr()
        assert says in said.out + said.err
        assert said.out.startswith("VERIFIED") == (code in (0, 10))


def test_an_anchor_by_a_stranger_is_no_checkpoint_of_this_log() -> None:
    run = three_step_run()
    data = run.export(anchors=[(4, lambda _: note_of(log_of(run), 4, NEW))])
    assert fault(data).code is ExitCode.CHECKPOINT
    assert consistency_path(1, [b"a", b"b"]) == [tree_hash([b"b"])]
    assert OLD.name == ORIGIN
