from pathlib import Path

import pytest

from podium_verifier import Verified, verify_export
from podium_verifier.__main__ import main
from podium_verifier.summary import render
from tests.unit.podium_verifier.exported_run import Signer, three_step_run

VKEY = Signer().vkey


@pytest.fixture
def export(tmp_path: Path) -> Path:
    file = tmp_path / "run_01.podium.jsonl"
    file.write_bytes(three_step_run().export())
    return file


def test_the_summary_says_who_what_and_what_is_not_proven(
    export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(export)]) == 0
    said = capsys.readouterr().out
    for words in (
        "VERIFIED  run run_01",
        "key_1",
        "3 of 4 workers allowed",
        "demo-units refused by rule client.except",
        "source rules",
        "sees step 0, step 1",
        "step 2 by demo-numbers",
        "$0.000021 for 3 attempts",
        "11 content parts and 3 sent bodies",
        "came from the export itself",
        VKEY,
    ):
        assert words in said, said


def test_the_key_is_given_as_text_or_as_a_file(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vkey").write_text(VKEY + "\n")
    assert main([str(export), "--key", VKEY]) == 0
    assert main([str(export), "--key", str(tmp_path / "vkey")]) == 0
    assert "came from the export itself" not in capsys.readouterr().out
    assert main([str(export), "--key", Signer(seed=2).vkey]) == 3
    assert "NOT VERIFIED" in capsys.readouterr().err


def test_what_cannot_be_read_is_exit_code_1(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 1
    assert main([str(export), "--unknown"]) == 1
    assert main([str(tmp_path / "absent")]) == 1
    assert f"cannot read {tmp_path / 'absent'}: No such file" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 1
    assert main([str(export), "--key", str(tmp_path / "absent")]) == 1
    assert "is neither a key nor a key's file" in capsys.readouterr().err
    assert main([str(export), "--key", "a+b+c"]) == 1
    assert main(["--help"]) == 0
    assert "exit codes" in capsys.readouterr().out


def test_each_kind_of_fault_has_its_exit_code(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = export.read_bytes()
    export.write_bytes(whole.replace(b"demo-math", b"demo-moth", 1))
    assert main([str(export)]) == 4
    assert "line 3, leaf 2" in capsys.readouterr().err
    export.write_bytes(whole[:-1])
    assert main([str(export)]) == 7


def test_a_record_cannot_steer_the_terminal() -> None:
    run = three_step_run()
    run.records[0]["facts"]["principal_id"] = "\x1b[2Jroot\n\u202e"
    verified = verify_export(run.export(), VKEY)
    assert isinstance(verified, Verified)
    assert "\x1b" not in render(verified)
    assert "\\x1b[2Jroot\\n\\u202e" in render(verified)
