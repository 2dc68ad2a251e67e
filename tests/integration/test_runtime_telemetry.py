"""Telemetry that goes where it was told, and costs nothing where it was not."""

import socket
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podium_cli.local_ca import create_local_ca
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.runtime.attributes import METRIC_RUN_DURATION, METRIC_RUNS, RUN_ID
from podium_core.runtime.grpc_client import call_metadata
from podium_core.runtime.identity import SERVICES
from podium_core.runtime.live_tls import LiveTls, expires_at_s
from podium_core.runtime.renewed_exporters import RenewedSpanExporter
from podium_core.runtime.settings_base import ServiceSettings
from podium_core.runtime.telemetry import Telemetry, configure_telemetry
from tests.fakes.echo_service import Context, EchoService, Peer, echo_server
from tests.fakes.ids import FakeClock
from tests.fakes.mounted import MountedTls
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.ports import free_ports
from tests.fakes.tls import tls_of
from tests.fakes.waiting import SOON_S, STALL_S


def _settings(tls_dir: Path, *, otlp_endpoint: str = "", ops_listen: str = "") -> ServiceSettings:
    tls = tls_of(tls_dir, "router")
    return ServiceSettings(
        tls_cert_file=tls.cert_file,
        tls_key_file=tls.key_file,
        tls_ca_file=tls.ca_file,
        otlp_endpoint=otlp_endpoint,
        ops_listen=ops_listen,
    )


def test_by_default_nothing_is_recorded_and_nothing_runs(tls_dir: Path) -> None:
    threads = threading.active_count()
    telemetry = configure_telemetry("router", _settings(tls_dir))
    with telemetry.tracer.start_as_current_span("plan") as span:
        assert not span.is_recording()
        assert call_metadata() == ()
    telemetry.meter.create_counter(METRIC_RUNS).add(1)
    assert threading.active_count() == threads
    telemetry.shutdown()


def test_spans_reach_the_collector_before_the_shutdown_ends(tls_dir: Path) -> None:
    with OtlpReceiver() as receiver:
        telemetry = configure_telemetry("router", _settings(tls_dir, otlp_endpoint=receiver.endpoint))
        with telemetry.tracer.start_as_current_span("plan", attributes={RUN_ID: "run_1"}):
            pass
        telemetry.shutdown()
    [(service, span)] = receiver.spans
    assert (service, span.name) == ("podium-router", "plan")
    assert {a.key: a.value.string_value for a in span.attributes}[RUN_ID] == "run_1"


def test_exception_texts_never_leave_even_when_nobody_thought_of_it(tls_dir: Path) -> None:
    with OtlpReceiver() as receiver:
        telemetry = configure_telemetry("router", _settings(tls_dir, otlp_endpoint=receiver.endpoint))
        with pytest.raises(ValueError), telemetry.tracer.start_as_current_span("step"):
            raise ValueError("secret-canary")
        telemetry.shutdown()
    [(_, span)] = receiver.spans
    assert span.status.code == span.status.STATUS_CODE_ERROR
    assert {a.key: a.value.string_value for a in span.events[0].attributes}["exception.type"] == "ValueError"
    assert b"secret-canary" not in b"".join(receiver.requests)


def test_an_absent_collector_disturbs_nobody(tls_dir: Path) -> None:
    (port,) = free_ports(1)
    telemetry = configure_telemetry("router", _settings(tls_dir, otlp_endpoint=f"http://127.0.0.1:{port}"))
    for _ in range(10_000):
        telemetry.tracer.start_span("chat").end()
    telemetry.shutdown()


def test_a_silent_collector_does_not_hold_up_either(tls_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        telemetry = configure_telemetry("router", _settings(tls_dir, otlp_endpoint=endpoint))
        began_s = time.monotonic()
        for _ in range(100):
            telemetry.tracer.start_span("chat").end()
        assert time.monotonic() - began_s < SOON_S, "waited for, each would take the second of an export"
        telemetry.shutdown()


def test_a_part_that_does_not_close_is_left_behind(tls_dir: Path) -> None:
    idle = configure_telemetry("router", _settings(tls_dir))
    told = threading.Event()
    telemetry = Telemetry(idle.tracer, idle.meter, (lambda: told.wait(STALL_S),))
    began_s = time.monotonic()
    telemetry.shutdown()
    assert time.monotonic() - began_s < SOON_S
    told.set()


async def test_a_servicer_works_within_its_callers_trace(tls_dir: Path) -> None:
    async def say_trace(request: bytes, context: Context) -> bytes:
        current = trace.get_current_span().get_span_context()
        return f"{current.trace_id:032x}/{current.span_id:016x}/{current.is_remote}".encode()

    server = echo_server(tls_of(tls_dir, "router"), EchoService(one_to_one=say_trace))
    peer = Peer(await server.start(), tls_of(tls_dir, "gateway"))
    with OtlpReceiver() as receiver:
        telemetry = configure_telemetry("gateway", _settings(tls_dir, otlp_endpoint=receiver.endpoint))
        with telemetry.tracer.start_as_current_span("plan") as span:
            own = span.get_span_context()
            heard = await peer.one_to_one(metadata=call_metadata())
        telemetry.shutdown()
    assert heard.decode() == f"{own.trace_id:032x}/{own.span_id:016x}/True"
    assert await peer.one_to_one() == f"{0:032x}/{0:016x}/False".encode()
    await peer.channel.close()
    await server.stop(0)


def test_prometheus_reads_what_was_counted(tls_dir: Path) -> None:
    port, other_port = free_ports(2)
    telemetry = configure_telemetry("router", _settings(tls_dir, ops_listen=f"127.0.0.1:{port}"))
    other = configure_telemetry("audit", _settings(tls_dir, ops_listen=f"127.0.0.1:{other_port}"))
    telemetry.meter.create_counter(METRIC_RUNS).add(3)
    telemetry.meter.create_histogram(METRIC_RUN_DURATION, unit="s").record(0.5)
    page = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    other_page = urlopen(f"http://127.0.0.1:{other_port}/metrics", timeout=60).read().decode()
    for each in (telemetry, other):
        each.shutdown()
    assert "podium_runs_total{" in page
    assert "podium_run_duration_seconds_bucket{" in page
    assert 'le="81.92"' in page
    assert 'service_name="podium-router"' in page
    assert "podium_runs" not in other_page
    with socket.create_server(("127.0.0.1", port)):
        pass  # the shutdown freed the address


def test_prometheus_reads_when_the_certificate_in_use_ends(tls_dir: Path, tmp_path: Path) -> None:
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "router"))
    [port] = free_ports(1)
    settings = _settings(tls_dir, ops_listen=f"127.0.0.1:{port}").model_copy(
        update={"tls_cert_file": secret.tls.cert_file, "tls_key_file": secret.tls.key_file}
    )
    telemetry = configure_telemetry("router", settings)
    create_local_ca(tmp_path / "soon", SERVICES, clock=FakeClock(SystemClock().now_ns() - 10**17))
    ends = []
    for source in (tls_dir, tmp_path / "soon"):
        secret.renew(tls_of(source, "router"))
        page = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
        [line] = [
            each for each in page.splitlines() if each.startswith("podium_tls_certificate_expiry_seconds")
        ]
        ends.append(int(float(line.split()[-1])))
    telemetry.shutdown()
    assert ends == [expires_at_s(tls_of(each, "router").read()[0]) for each in (tls_dir, tmp_path / "soon")]
    assert ends[1] < ends[0]


def test_exporters_connect_anew_with_a_renewed_certificate(tls_dir: Path, tmp_path: Path) -> None:
    secret = MountedTls(tmp_path / "secret", tls_of(tls_dir, "router"))
    made: list[InMemorySpanExporter] = []

    def connect(_: grpc.ChannelCredentials | None) -> InMemorySpanExporter:
        made.append(InMemorySpanExporter())
        return made[-1]

    exporter = RenewedSpanExporter(connect, LiveTls(secret.tls))
    span = ReadableSpan("a step")
    assert exporter.export([span]) is exporter.export([span]) is SpanExportResult.SUCCESS
    secret.renew(tls_of(tls_dir, "audit"))
    assert exporter.export([span]) is SpanExportResult.SUCCESS
    assert [len(each.get_finished_spans()) for each in made] == [2, 1]
    assert made[0].export([span]) is SpanExportResult.FAILURE  # the old connection is shut down


def test_a_taken_ops_address_is_named(tls_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(PodiumError, match=f"cannot serve probes and metrics on {listen}"):
            configure_telemetry("router", _settings(tls_dir, ops_listen=listen))
