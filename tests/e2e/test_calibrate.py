"""`podium calibrate` against a whole installation: measured cards, resumed and capped, and a router that sees them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1.router_service_pb2_grpc import RouterServiceStub
from podium_cli.local_ca import service_files
from podium_core.config.pool import load_pool
from podium_core.runtime.grpc_client import open_channel
from podium_verifier.verify import Verified, verify_export
from tests.e2e.cluster import Cluster, running
from tests.fakes.waiting import PATIENCE_S

SKILLS = ("multiplication", "reversal", "roman-numerals", "days-between", "word-order")


@pytest.fixture(scope="module")
def podium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    extra = {"router": {"PODIUM_ROUTER_ALLOW_CLI": "true", "PODIUM_ROUTER_POOL_POLL_S": "0.2"}}
    with running(Cluster(tmp_path_factory.mktemp("calibrate"), extra=extra)) as cluster:
        asyncio.run(cluster.wait_ready())
        yield cluster


def command(podium: Cluster, log: Path, *more: str) -> list[str]:
    skills = [word for skill in SKILLS for word in ("--skill", skill)]
    return [
        sys.executable, "-m", "podium_cli", "calibrate", *skills,
        "--pool", str(podium.home / "pool.yaml"), "--tenants", str(podium.home / "tenants.yaml"),
        "--router", f"127.0.0.1:{podium.ports['router']}", "--audit", f"127.0.0.1:{podium.ports['audit']}",
        "--tls", str(podium.home / "tls"), "--log", str(log), "-n", "4", *more,
    ]  # fmt: skip


def calibrate(podium: Cluster, log: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(podium, log, *more), capture_output=True, text=True, timeout=300, check=False
    )


def lines_of(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def served(podium: Cluster) -> dict[str, pb.Worker]:
    channel = open_channel(
        f"127.0.0.1:{podium.ports['router']}", "router", service_files(podium.home / "tls", "cli")
    )
    try:
        answer = await RouterServiceStub(channel).ListWorkers(pb.ListWorkersRequest(), timeout=60)
    finally:
        await channel.close()
    return {worker.worker_id: worker for worker in answer.workers}


def asked_of_providers(podium: Cluster) -> int:
    return len(podium.provider_requests())


def test_a_dry_run_shows_cost_and_asks_nothing(podium: Cluster, tmp_path: Path) -> None:
    before = asked_of_providers(podium)
    shown = calibrate(podium, tmp_path / "log.jsonl", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "In all at most $" in shown.stdout
    assert "multiplication/20261130/0" in shown.stdout
    assert asked_of_providers(podium) == before


def test_a_cap_stops_before_the_call_that_could_break_it(podium: Cluster, tmp_path: Path) -> None:
    pool = (podium.home / "pool.yaml").read_bytes()
    log = tmp_path / "log.jsonl"
    stopped = calibrate(podium, log, "--max-usd", "0.002", "--concurrency", "2")
    assert stopped.returncode == 1
    assert "the cost cap is reached" in stopped.stderr
    assert "higher --max-usd goes on" in stopped.stderr
    spent = sum(int(str(line["cost_usd_micros"])) for line in lines_of(log) if line["event"] == "ended")
    assert 0 < spent <= 2_000
    assert (podium.home / "pool.yaml").read_bytes() == pool


async def test_killed_it_goes_on_writes_cards_and_the_router_sees_them(
    podium: Cluster, tmp_path: Path
) -> None:
    log, pool_file = tmp_path / "log.jsonl", podium.home / "pool.yaml"
    before, text = load_pool(pool_file), pool_file.read_text()
    asked_before = asked_of_providers(podium)
    first = subprocess.Popen(
        command(podium, log, "--concurrency", "1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not log.exists() or len(lines_of(log)) < 20:
        assert first.poll() is None, "it ended before it could be killed"
        await asyncio.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    second = await asyncio.to_thread(calibrate, podium, log)
    assert second.returncode == 0, second.stdout + second.stderr
    lines = lines_of(log)
    begun = [(line["worker_id"], line["item_id"]) for line in lines if line["event"] == "begun"]
    assert len(begun) == len(set(begun)) == 4 * len(SKILLS) * len(before.entries)
    assert asked_of_providers(podium) - asked_before <= len(begun)

    ended = [line for line in lines if line["event"] == "ended"]
    url = f"{podium.audit_url}/v1/runs/{ended[-1]['run_id']}/export"
    async with aiohttp.ClientSession(headers=podium.headers) as session, session.get(url) as answer:
        assert isinstance(verify_export(await answer.read()), Verified)

    third = await asyncio.to_thread(calibrate, podium, log)
    assert third.returncode == 0
    assert lines_of(log) == lines

    after = load_pool(pool_file)
    skills = {s.name: s for s in after.pool.by_id["demo-arithmetic"].card.skills}
    assert skills["multiplication"].accuracy_ppm == 1_000_000
    assert 3 <= skills["multiplication"].sample_count <= 4
    assert skills["arithmetic"] in before.pool.by_id["demo-arithmetic"].card.skills
    assert {s.name: s.accuracy_ppm for s in after.pool.by_id["demo-text"].card.skills}["multiplication"] == 0
    assert after.pool.price_digest == before.pool.price_digest
    assert after.pool.by_id["demo-text"].card.output_tokens_per_second > 0
    assert [line for line in pool_file.read_text().splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]
    assert "4 / 4" in second.stdout
    assert "to 100.0 %" in second.stdout

    end = time.monotonic() + PATIENCE_S
    while (workers := await served(podium))["demo-text"].output_tokens_per_second == 0:
        assert time.monotonic() < end, "the router did not take the new cards up"
        await asyncio.sleep(0.1)
    assert {skill.name for skill in workers["demo-text"].skills} >= set(SKILLS)
    assert workers["demo-text"].live.answer_count > 0
