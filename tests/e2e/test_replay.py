"""`podium replay` over a running installation: from the record, with the same planner, and live."""

import asyncio
import json
from pathlib import Path

import pytest

from podium_cli.__main__ import main
from tests.e2e.cluster import Cluster
from tests.e2e.test_answer import ask, export_of


def replay(podium: Cluster, *words: str) -> int:
    addresses = {name: f"127.0.0.1:{podium.ports[name]}" for name in ("router", "conductor", "audit")}
    (podium.home / "endpoints.json").write_text(json.dumps({"grpc": addresses}))
    options = ["--url", podium.gateway_url, "--audit-url", podium.audit_url, "--api-key", podium.api_key]
    return main(["--home", str(podium.home), "replay", *words, *options])


def test_the_record_alone_gives_every_prompt_and_the_answer_again(
    podium: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = ask(podium)
    assert replay(podium, run_id) == 0
    told = capsys.readouterr().out
    assert told.count("prompt equal to what was sent") == 3
    assert "answer equal, all 6 bytes" in told


def test_the_same_planner_with_the_recorded_seed_plans_the_same(
    podium: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(podium, ask(podium), "--planner") == 0
    assert "1 of 1 plan match" in capsys.readouterr().out


def test_a_live_replay_is_a_new_run_shown_beside_the_recorded_one(
    podium: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = ask(podium)
    assert replay(podium, run_id, "--live") == 0
    told = capsys.readouterr().out
    assert run_id in told
    assert "the same bytes" in told


def test_a_record_that_does_not_verify_is_not_replayed(
    podium: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = asyncio.run(export_of(podium, ask(podium)))
    file = tmp_path / "run.podium.jsonl"
    file.write_bytes(export)
    assert replay(podium, str(file)) == 0
    file.write_bytes(export.replace(b'embedded\\"', b'embeddec\\"', 1))
    assert replay(podium, str(file)) == 1
    assert "does not verify" in capsys.readouterr().err
