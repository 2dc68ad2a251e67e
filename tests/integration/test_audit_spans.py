"""Spans over OTLP, gRPC and HTTP: certificates decide whose they are, and each run shows its own."""

import asyncio
import gzip
import json
import resource
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podium_audit.intake.serving import serve_intake
from podium_cli.local_ca import create_local_ca
from podium_core.domain.errors import PodiumError
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.identity import SERVICES
from podium_core.runtime.telemetry import configure_telemetry
from tests.fakes.audit_service import RunningAudit, running_audit, settings_for
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S
from tests.unit.podium_audit.intake.test_decoding import request, span


class Rig:
    """A running service with its two addresses for spans."""

    def __init__(self, audit: RunningAudit, tls_dir: Path, grpc_port: int, http_port: int) -> None:
        self.audit, self.tls_dir, self.grpc_port, self.http_port = audit, tls_dir, grpc_port, http_port

    async def send(self, sender: str, *spans: Span) -> Any:
        async with open_channel(
            f"127.0.0.1:{self.grpc_port}", "audit", tls_of(self.tls_dir, sender)
        ) as channel:
            stub: Any = trace_service_pb2_grpc.TraceServiceStub(channel)  # type: ignore[no-untyped-call]
            with rpc_errors("audit"):
                return await stub.Export(request(*spans), timeout=60)

    async def post(self, sender: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        files = tls_of(self.tls_dir, sender)
        context = ssl.create_default_context(cafile=str(files.ca_file))
        context.check_hostname = False
        context.load_cert_chain(files.cert_file, files.key_file)
        url = f"https://127.0.0.1:{self.http_port}/v1/traces"
        async with self.audit.session.post(url, data=body, headers=headers, ssl=context) as answer:
            return answer.status, await answer.read()

    async def spans_of(self, run_id: str, key: str = "auditor") -> tuple[int, Any]:
        return await self.audit.get(f"/v1/runs/{run_id}/spans", key)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls")
    create_local_ca(directory, (*SERVICES, "acme-shop", "stranger"))
    return directory


@pytest.fixture
async def rig(tmp_path: Path, certificates: Path) -> AsyncIterator[Rig]:
    on: dict[str, Any] = {"otlp_grpc_listen": "127.0.0.1:0", "otlp_http_listen": "127.0.0.1:0"}
    settings = settings_for(tmp_path, certificates, **on)
    tenants = yaml.safe_load((tmp_path / "tenants.yaml").read_text())
    tenants["tenants"][0]["otlp_senders"] = ["acme-shop"]
    (tmp_path / "tenants.yaml").write_text(json.dumps(tenants))
    async with running_audit(tmp_path, certificates, **on) as audit, AsyncExitStack() as stack:
        assert audit.audit.intake is not None
        keeping = asyncio.create_task(audit.audit.intake.keep())
        stack.callback(keeping.cancel)
        ports = await serve_intake(settings, audit.audit.intake, lambda: audit.audit.tenants.current, stack)
        yield Rig(audit, certificates, *ports)


def named(run_id: str, **changes: Any) -> Span:
    made = span(podium__run__id=run_id, gen_ai__request__model="m")
    for name, value in changes.items():
        setattr(made, name, value)
    return made


async def test_a_services_spans_belong_to_the_runs_tenant_and_to_nobody_else(rig: Rig) -> None:
    await rig.audit.run("run_1")
    await rig.send("router", named("run_1"))
    await rig.send("router", named("run_1"))
    status, page = await rig.spans_of("run_1")
    assert status == 200
    [shown] = page["spans"]
    assert (shown["service"], shown["attributes"]) == ("router", {"gen_ai.request.model": "m"})
    assert (await rig.spans_of("run_1", "key3"))[0] == 404
    assert "read" in json.dumps((await rig.audit.get("/v1/runs/run_1"))[1]), (
        "reading spans is a read, recorded"
    )


async def test_a_tenants_program_joins_its_runs_by_trace_and_never_anothers(rig: Rig) -> None:
    await rig.audit.run("run_1")
    await rig.audit.run("run_2", tenant_id="other", principal_id="key3")
    await rig.send("router", named("run_1"), named("run_2", span_id=b"2" * 8, trace_id=b"u" * 16))
    await rig.send("acme-shop", span().__class__(trace_id=b"t" * 16, span_id=b"a" * 8, name="order",
                   start_time_unix_nano=1, end_time_unix_nano=2))  # fmt: skip
    await rig.send("acme-shop", named("run_2", span_id=b"b" * 8, trace_id=b"u" * 16))
    assert [shown["name"] for shown in (await rig.spans_of("run_1"))[1]["spans"]] == ["order", "chat"]
    assert [shown["service"] for shown in (await rig.spans_of("run_2", "key3"))[1]["spans"]] == ["router"]


async def test_a_certified_stranger_and_one_without_a_certificate_are_refused(rig: Rig) -> None:
    with pytest.raises(PodiumError, match="otlp_senders"):
        await rig.send("stranger", span())
    assert (await rig.post("stranger", b""))[0] == 403
    context = ssl.create_default_context(cafile=str(tls_of(rig.tls_dir, "audit").ca_file))
    context.check_hostname = False
    with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
        await rig.audit.session.post(f"https://127.0.0.1:{rig.http_port}/v1/traces", data=b"", ssl=context)


async def test_http_takes_protobuf_and_json_whole_and_gzipped(rig: Rig) -> None:
    await rig.audit.run("run_1")
    body = request(named("run_1")).SerializeToString()
    status, _ = await rig.post("router", body, **{"Content-Type": "application/x-protobuf"})
    assert status == 200
    fields = {"traceId": "74" * 16, "spanId": "32" * 8, "parentSpanId": "73" * 8, "name": "json"}
    times = {"startTimeUnixNano": "7", "endTimeUnixNano": "9"}
    scopes = [{"spans": [{**fields, **times, "kind": 3}]}]
    text = json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}).encode()
    json_type = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    status, answer = await rig.post("router", gzip.compress(text), **json_type)
    assert (status, json.loads(answer)) == (200, {})
    assert [shown["name"] for shown in (await rig.spans_of("run_1"))[1]["spans"]] == ["chat", "json"]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\xff" * 50, "application/x-protobuf"),
        (b"{", "application/json"),
        (b"[" * 99_999, "application/json"),
    ],
)
async def test_what_cannot_be_read_is_said_to_be_so(rig: Rig, body: bytes, content_type: str) -> None:
    status, answer = await rig.post("router", body, **{"Content-Type": content_type})
    assert status == 400
    assert b"ExportTraceServiceRequest" in answer


async def test_partial_success_and_a_full_queue_are_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await rig.send("router", span(), named("run_1", trace_id=b""))
    assert answer.partial_success.rejected_spans == 1
    monkeypatch.setattr(rig.audit.audit.intake, "_queue_bound", 0)
    with pytest.raises(PodiumError, match="send these again") as refused:
        await rig.send("router", span())
    assert refused.value.retry_after_s is not None
    status, _ = await rig.post("router", request(span()).SerializeToString())
    assert status == 429


async def test_podiums_own_exporter_reaches_it(rig: Rig, certificates: Path, tmp_path: Path) -> None:
    await rig.audit.run("run_1")
    settings = settings_for(
        tmp_path,
        certificates,
        otlp_endpoint=f"https://127.0.0.1:{rig.grpc_port}",
        otlp_server_name="audit.podium.internal",
    )
    telemetry = configure_telemetry("audit", settings)
    telemetry.tracer.start_span("chat m", attributes={"podium.run.id": "run_1"}).end()
    async with asyncio.timeout(PATIENCE_S):
        while not (await rig.spans_of("run_1"))[1]["spans"]:
            await asyncio.sleep(0.05)
    await asyncio.to_thread(telemetry.shutdown)


async def test_without_an_address_the_page_says_what_to_set(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        status, answer = await audit.get("/v1/runs/run_1/spans")
        assert status == 404
        assert "PODIUM_AUDIT_OTLP_GRPC_LISTEN" in json.dumps(answer)


async def test_old_spans_are_swept(rig: Rig) -> None:
    intake = rig.audit.audit.intake
    assert intake is not None
    await rig.audit.run("run_1")
    await rig.send("router", named("run_1"))
    assert (await rig.spans_of("run_1"))[1]["spans"]
    await intake._thread.do(intake._sweep)
    assert not (await rig.spans_of("run_1"))[1]["spans"], "it ended in 1970"


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def test_a_small_body_that_unpacks_to_a_large_one_is_refused(rig: Rig) -> None:
    # Far above what this process grows by for other reasons, whatever ran in it before.
    zeros = bytes(50 << 20)
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    bomb = b"".join([*(packer.compress(zeros) for _ in range(10)), packer.flush()])
    before = _resident_bytes()
    status, answer = await rig.post("router", bomb, **{"Content-Encoding": "gzip"})
    assert status == 413, answer
    assert _resident_bytes() - before < 250 << 20
