from pathlib import Path

import pytest

from podium_cli.__main__ import COMMANDS, main
from tests.unit.podium_verifier.exported_run import Signer, three_step_run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("PODIUM_HOME", str(home))
    for name in ("PODIUM_URL", "PODIUM_AUDIT_URL", "PODIUM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_help_teaches(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in ([], ["keys", "create"], *([command] for command in COMMANDS)):
        with pytest.raises(SystemExit) as left:
            main([*arguments, "--help"])
        assert left.value.code == 0
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= 80, "help fits a terminal"
        if arguments not in (["down"], ["status"], ["keys", "create"]):
            assert "examples:" in said


def test_nothing_started_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["status"],
        ["ask", "x"],
        ["profile", "codex"],
        ["runs"],
        ["show", "last"],
        ["verify", "run_1"],
    ):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "podium up" in said
        assert "Traceback" not in said
    assert main(["down"]) == 0
    assert "nothing to stop" in capsys.readouterr().out


def test_the_home_may_stand_before_or_after_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for arguments in (["--home", str(tmp_path / "x"), "status"], ["status", "--home", str(tmp_path / "x")]):
        assert main(arguments) == 1
        assert str(tmp_path / "x") in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["ask"], ["plan"], ["stop"], ["stop", "--worker"], ["stop", "--all", "--tenant"]]
)
def test_bytes_that_are_no_text_are_refused_by_name(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*command, "a\udcff"])
    assert left.value.code == 2
    assert "must be UTF-8 text" in capsys.readouterr().err


def test_another_installation_needs_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "x", "--url", "http://127.0.0.1:1"]) == 1
    assert "PODIUM_API_KEY" in capsys.readouterr().err
    assert main(["ask", "x", "--url", "http://127.0.0.1:1", "--api-key", "k"]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert main(["ask", "x", "--url", "podium.example", "--api-key", "k"]) == 1
    assert "podium.example is no address" in capsys.readouterr().err
    assert main(["runs", "--audit-url", "http://127.0.0.1:1", "--api-key", "k"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_an_empty_question_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["ask", " ", "--url", "http://127.0.0.1:1", "--api-key", "k"]) == 1
    assert "there is no question" in capsys.readouterr().err


def test_a_file_is_verified_offline(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run_01.podium.jsonl"
    file.write_bytes(three_step_run().export())
    assert main(["verify", str(file)]) == 0
    assert "VERIFIED  run run_01" in capsys.readouterr().out
    assert main(["verify", str(file), "--key", Signer(seed=2).vkey]) == 3
    file.write_bytes(three_step_run().export().replace(b"demo-text", b"demo-next"))
    assert main(["verify", str(file)]) == 4
    assert "leaf 2" in capsys.readouterr().err
    for unreadable in ("absent.jsonl", "n" * 300, f"{'n' * 300}.jsonl"):
        assert main(["verify", str(tmp_path / unreadable)]) == 1
