"""The real process: it starts from its settings alone, serves, and goes when told to."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1.router_service_pb2_grpc import RouterServiceStub
from podium_core.runtime.grpc_client import open_channel
from tests.fakes.attempt_log import FakeAudit, audit_server
from tests.fakes.ports import free_ports
from tests.fakes.router_rig import worker_entry
from tests.fakes.tls import tls_of
from tests.fakes.upstream import Upstream, answer
from tests.fakes.waiting import PATIENCE_S
from tests.fakes.wire_formats import AnthropicUpstream

MAX_RSS_MB = 120
MAX_TRANSLATING_RSS_MB = 350


@dataclass
class Process:
    """A running router with everything around it."""

    process: asyncio.subprocess.Process
    channel: grpc.aio.Channel
    upstream: Upstream
    audit: FakeAudit

    async def workers(self) -> pb.ListWorkersResponse:
        stub = RouterServiceStub(self.channel)
        response: pb.ListWorkersResponse = await stub.ListWorkers(
            pb.ListWorkersRequest(), timeout=60, wait_for_ready=True
        )
        return response

    async def complete(self, attempt_id: str, digest: str) -> list[pb.CompleteResponse]:
        request = pb.CompleteRequest(
            attempt_id=attempt_id,
            run_id="run_1",
            kind=plan_pb2.ATTEMPT_KIND_STEP,
            worker_id="w",
            pool_digest=digest,
            messages=[pb.Segment(data=b'[{"role":"user","content":"hi"}]')],
            max_output_tokens=10,
        )
        return [event async for event in RouterServiceStub(self.channel).Complete(request, timeout=60)]


def environment(tls_dir: Path, pool: Path, **more: str) -> Mapping[str, str]:
    tls = tls_of(tls_dir, "router")
    return {
        "PATH": os.environ["PATH"],
        "PODIUM_ROUTER_TLS_CERT_FILE": str(tls.cert_file),
        "PODIUM_ROUTER_TLS_KEY_FILE": str(tls.key_file),
        "PODIUM_ROUTER_TLS_CA_FILE": str(tls.ca_file),
        "PODIUM_ROUTER_POOL_FILE": str(pool),
        **more,
    }


async def start(settings: Mapping[str, str], *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podium_router",
        *arguments,
        env=settings,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def running(
    tls_dir: Path, tmp_path: Path, upstream: Upstream | None = None, **worker: object
) -> AsyncIterator[Process]:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(upstream or Upstream())
        audit = FakeAudit()
        log = audit_server(tls_of(tls_dir, "audit"), audit)
        audit_port = await log.start()
        stack.push_async_callback(log.stop, 0)
        key, pool = tmp_path / "key", tmp_path / "pool.yaml"
        key.write_text("sk-1")
        pool.write_text(json.dumps({"workers": [worker_entry("w", provider.base_url, key, **worker)]}))
        (port,) = free_ports(1)
        process = await start(
            environment(
                tls_dir,
                pool,
                PODIUM_ROUTER_LISTEN=f"127.0.0.1:{port}",
                PODIUM_ROUTER_AUDIT_ADDRESS=f"127.0.0.1:{audit_port}",
                PODIUM_ROUTER_POOL_POLL_S="0.1",
            )
        )
        stack.callback(kill, process)
        channel = open_channel(f"127.0.0.1:{port}", "router", tls_of(tls_dir, "gateway"))
        stack.push_async_callback(channel.close)
        yield Process(process, channel, provider, audit)


def kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


def rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def test_it_serves_reloads_and_drains(tls_dir: Path, tmp_path: Path) -> None:
    async with running(tls_dir, tmp_path) as router:
        digest = (await router.workers()).pool_digest
        events = await router.complete("att_1", digest)
        assert [event.WhichOneof("event") for event in events] == ["permitted", "completed"]
        assert rss_mb(router.process.pid) < MAX_RSS_MB
        pool = tmp_path / "pool.yaml"
        pool.write_text(pool.read_text().replace("w-model", "newer"))
        async with asyncio.timeout(PATIENCE_S):
            while (await router.workers()).pool_digest == digest:
                await asyncio.sleep(0.05)
        router.upstream.default = answer("late").but(delay_s=0.5)
        last = asyncio.create_task(router.complete("att_2", (await router.workers()).pool_digest))
        await router.upstream.seen(2)
        router.process.send_signal(signal.SIGTERM)
        assert (await last)[-1].completed.message.text == "late"
        async with asyncio.timeout(PATIENCE_S):
            _, errors = await router.process.communicate()
        assert router.process.returncode == 0, errors.decode()
        assert set(router.audit.ended) == {"att_1", "att_2"}
        assert b"Traceback" not in errors
        assert b"sk-1" not in errors


@pytest.mark.slow
async def test_with_a_translated_worker_it_stays_small_and_goes_in_silence(
    tls_dir: Path, tmp_path: Path
) -> None:
    worker = {"provider": "anthropic", "model": "claude-sonnet-4-5"}
    async with running(tls_dir, tmp_path, AnthropicUpstream(), **worker) as router:
        digest = (await router.workers()).pool_digest
        for number in range(20):
            events = await router.complete(f"att_{number}", digest)
            assert events[-1].completed.message.text == "hello"
        assert len(router.upstream.requests) == 20
        assert rss_mb(router.process.pid) < MAX_TRANSLATING_RSS_MB
        router.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            output, errors = await router.process.communicate()
        assert router.process.returncode == 0, errors.decode()
        assert output == b""
        assert all(line.startswith(b"{") for line in errors.splitlines()), errors.decode()
        assert b"sk-1" not in errors


@pytest.mark.parametrize(
    ("more", "arguments", "status", "said"),
    [
        ({"PODIUM_ROUTER_LISTENN": "x"}, [], 2, "PODIUM_ROUTER_LISTENN"),
        ({"PODIUM_ROUTER_MAX_WAIT_S": "soon"}, [], 2, "PODIUM_ROUTER_MAX_WAIT_S"),
        ({}, ["--check-config"], 1, "pool.yaml"),
        ({}, ["--help"], 0, "PODIUM_ROUTER_PERMIT_TIMEOUT_S"),
    ],
)
async def test_bad_settings_are_named(
    more: dict[str, str], arguments: list[str], status: int, said: str, tls_dir: Path, tmp_path: Path
) -> None:
    pool = tmp_path / "pool.yaml"
    pool.write_text("workers: []\n")
    process = await start(environment(tls_dir, pool, **more), *arguments)
    output = b"".join(await process.communicate()).decode()
    assert process.returncode == status, output
    assert said in output
