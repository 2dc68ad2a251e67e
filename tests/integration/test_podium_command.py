"""`podium` on one machine, as its user types it: real services in the background, on free ports."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium_cli.__main__ import main
from podium_cli.home import Home, open_home
from podium_cli.ports import DEFAULT_PORTS, save_ports
from tests.fakes.ports import free_ports
from tests.fakes.waiting import PATIENCE_S


def podium(home: Home, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-m", "podium_cli", arguments[0], "--home", str(home.directory), *arguments[1:]],
        env=own | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def home_with_ports(directory: Path) -> Home:
    """Return a home whose ports no other test's server takes between their choice and their use."""
    home = open_home(directory)
    home.create()
    save_ports(home, dict(zip(DEFAULT_PORTS, free_ports(len(DEFAULT_PORTS)), strict=True)))
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = home_with_ports(tmp_path_factory.mktemp("cli") / "home")
    started = podium(home, "up", "--free-ports", ANTHROPIC_API_KEY="sk-a", OPENAI_API_KEY="sk-never-shown")
    assert started.returncode == 0, started.stdout + started.stderr
    (home.directory / "first-start.txt").write_text(started.stdout)
    yield home
    stopped = podium(home, "down")
    assert stopped.returncode == 0
    assert "gateway" in stopped.stdout
    assert "nothing to stop" in podium(home, "down").stdout


def said(home: Home, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([arguments[0], "--home", str(home.directory), *arguments[1:]]) == 0
    return capsys.readouterr().out


def test_the_first_start_answers_a_question_that_needs_three_specialists(home: Home) -> None:
    told = (home.directory / "first-start.txt").read_text()
    for words in (
        "source: embedded",
        "demo-arithmetic [demo]",
        "demo-numerals [demo]",
        "demo-text [demo]",
        "CCCXCI; desserts",
        "signed by podium.local/audit",
        "curl http://127.0.0.1:",
        "from openai import OpenAI",
        "ANTHROPIC_API_KEY is set",
        "key: {file: keys/openai.key}",
        "--use-keys",
    ):
        assert words in told, told
    assert "sk-never-shown" not in told
    assert "keys/openai.key" not in home.pool_file.read_text(), "listed, not used"
    assert list(home.keys_dir.iterdir()) == []


def test_questions_are_asked_and_looked_into(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(home, capsys, "ask", "--answer-only", "What is 17 * 23?") == "391\n"
    shown = said(home, capsys, "show", "last", "--content")
    assert "demo-arithmetic [demo]" in shown
    assert "default.allow" in shown
    assert "What is 17 * 23?" in shown
    assert "1 attempt," in shown
    assert "their prices are invented" in shown
    assert "answered" in said(home, capsys, "runs", "--limit", "1")
    assert main(["ask", "--home", str(home.directory), "--worker", "nobody", "x"]) == 1
    assert "GET /v1/models" in capsys.readouterr().err
    assert main(["show", "--home", str(home.directory), "nonsense"]) == 1
    assert "`podium runs` lists" in capsys.readouterr().err
    for command in (["ask", "x"], ["runs"]):
        assert main(["--home", str(home.directory), *command, "--api-key", "wrong"]) == 1
        assert "--api-key or PODIUM_API_KEY" in capsys.readouterr().err


def test_only_a_recorded_refusal_is_said_to_be_on_record(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "--home", str(home.directory), "--only", "nobody", "x"]) == 1
    assert "podium show" not in capsys.readouterr().err
    everyone = ("arithmetic", "text", "dates", "numerals")
    excluded = [word for name in everyone for word in ("--exclude", f"demo-{name}")]
    assert main(["ask", "--home", str(home.directory), *excluded, "x"]) == 1
    said_so = capsys.readouterr().err
    run_id = said_so.split("`podium show ")[1].split("`")[0]
    assert "refused" in said(home, capsys, "show", run_id)


def test_a_plan_is_shown_with_its_prompt_and_reasons(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "Multiply 17 by 23 and reverse the digits."
    shown = said(home, capsys, "plan", "--seed", "7", asked)
    for words in (
        "You lead a team of language models",
        f"user: {asked}",
        "Model id 0: ",
        "The question has parts",
        "demo-arithmetic",
        "seed",
    ):
        assert words in shown, shown
    again = said(home, capsys, "plan", "--seed", "7", "--raw", asked)
    assert again == said(home, capsys, "plan", "--seed", "7", "--raw", asked)
    assert "model_id = [" in again
    fast = said(home, capsys, "plan", "--no-prompt", "--model", "podium-fast", asked)
    assert "(the question itself)" in fast
    assert main(["plan", "--home", str(home.directory), "--only", "nobody", "x"]) == 1
    assert "nobody" in capsys.readouterr().err


def test_a_run_is_exported_and_proven_with_the_pinned_key(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = said(home, capsys, "verify", "last")
    assert "VERIFIED" in proof
    assert "came from the export itself" not in proof
    (file, *_) = home.export_dir.iterdir()
    assert file.stat().st_mode & 0o077 == 0, "it holds what was asked and answered"
    for nowhere in (file.parent / "none" / "x.podium.jsonl", home.export_dir):
        assert main(["verify", "--home", str(home.directory), "last", "--out", str(nowhere)]) == 1
        assert str(nowhere.parent) in capsys.readouterr().err
    assert said(home, capsys, "verify", str(file), "--key", str(home.vkey_file))
    lines = file.read_bytes().splitlines(keepends=True)
    leaf = next(at for at, line in enumerate(lines) if json.loads(line)["line"] == "leaf")
    file.write_bytes(
        b"".join([*lines[:leaf], lines[leaf].replace(b"local", b"lokal", 1), *lines[leaf + 1 :]])
    )
    assert main(["verify", str(file)]) == 4
    assert f"line {leaf + 1}, leaf" in capsys.readouterr().err


def test_the_example_of_a_plan_answers_as_it_stands(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    lines = home.plans_file.read_text().splitlines()
    home.plans_file.write_text("\n".join([*lines[:2], *(line.removeprefix("#") for line in lines[2:])]))
    asked = ["ask", "--home", str(home.directory), "--model", "plan/sum-in-roman", "--answer-only"]
    until = time.monotonic() + PATIENCE_S
    while main([*asked, "Add 3 and 4"]) != 0 and time.monotonic() < until:
        time.sleep(0.2)
    assert capsys.readouterr().out == "VII\n"


def test_a_mistake_in_a_file_shows_in_the_status(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    good = home.tenants_file.read_text()
    home.tenants_file.write_text(good + "    limits: {requests_per_minut: 3}\n")
    assert main(["status", "--home", str(home.directory)]) == 1
    assert f"tenants.yaml line {good.count(chr(10)) + 1}: tenants[0].limits" in capsys.readouterr().out
    home.tenants_file.write_text(good)
    said(home, capsys, "status")


def test_a_second_start_and_a_half_dead_one_are_told_apart(home: Home) -> None:
    again = podium(home, "up", "--free-ports", "--no-ask")
    assert again.returncode == 0
    assert "already running" in again.stdout

    os.kill(json.loads(home.process_file("router").read_bytes())["pid"], signal.SIGKILL)
    state = podium(home, "status")
    assert state.returncode == 1
    assert "stopped" in state.stdout

    mended = podium(home, "up", "--free-ports", "--no-ask")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert "audit, conductor, demo, gateway still run" in mended.stdout
    assert podium(home, "status").returncode == 0


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", 7051))
            other.listen()
        except OSError:
            pytest.skip("port 7051 is in use by something else")
        refused = podium(open_home(tmp_path / "home"), "up", "--no-ask")
    assert refused.returncode == 1
    assert "is in use by another program" in refused.stderr
    assert "--free-ports" in refused.stderr


def test_a_service_that_dies_is_named_with_its_last_words(tmp_path: Path) -> None:
    home = home_with_ports(tmp_path / "home")
    (home.audit_dir / "log.db").write_text("this is no database, and nobody may take it for one. " * 100)
    died = podium(home, "up", "--free-ports", "--no-ask")
    assert died.returncode == 1
    assert "audit died with exit code" in died.stdout
    assert "did not start because of audit" in died.stderr
    assert "Traceback" not in died.stderr
    assert "nothing to stop" in podium(home, "down").stdout


def test_a_home_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = podium(open_home(tmp_path / "file"), "up", "--no-ask")
    assert refused.returncode == 1
    assert "cannot be made" in refused.stderr
    assert "Traceback" not in refused.stderr
