"""A whole audit service in the test's process: real files, real gRPC on loopback, a way to call it."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from opentelemetry.metrics import Meter, NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider, Tracer

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import (
    audit_service_pb2_grpc,
    conversation_service_pb2_grpc,
    grade_service_pb2_grpc,
    stop_service_pb2_grpc,
)
from podium.plan.v1 import plan_pb2
from podium_audit.assembly import Audit, open_audit
from podium_audit.reading import http
from podium_audit.servicers.permissions import PERMISSIONS
from podium_audit.settings import AuditSettings
from podium_core.config.tenants import new_key
from podium_core.domain.clock import Clock
from podium_core.resources.opening import open_tenants
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.grpc_server import GrpcServer
from podium_core.runtime.http_server import listen
from podium_core.runtime.telemetry import Telemetry, config_reloads
from tests.fakes.tls import tls_of

KEYS = (
    ("acme", "key1", ("client",)),
    ("acme", "key2", ("client",)),
    ("acme", "auditor", ("auditor",)),
    ("acme", "operator", ("operator",)),
    ("acme", "investigator", ("investigator",)),
    ("acme", "officer", ("privacy",)),
    ("acme", "officer2", ("privacy",)),
    ("acme", "custodian", ("custodian",)),
    ("other", "officer3", ("privacy",)),
    ("other", "key3", ("client", "auditor")),
    ("other", "examiner", ("examiner",)),
)


def settings_for(home: Path, tls_dir: Path, **changes: Any) -> AuditSettings:
    """Return settings of a service whose files are in `home`; its keys stand in `home / tokens.json`."""
    tls = tls_of(tls_dir, "audit")
    if not (home / "tenants.yaml").exists():
        tokens: dict[str, str] = {}
        tenants: dict[str, Any] = {}
        for tenant, key, roles in KEYS:
            tokens[key], digest = new_key(key)
            entry = {"id": key, "sha256": digest, "roles": list(roles)}
            tenants.setdefault(tenant, {"id": tenant, "keys": []})["keys"].append(entry)
        (home / "tokens.json").write_text(json.dumps(tokens))
        (home / "tenants.yaml").write_text(json.dumps({"tenants": list(tenants.values())}))
    values: dict[str, Any] = {
        "tls_cert_file": tls.cert_file,
        "tls_key_file": tls.key_file,
        "tls_ca_file": tls.ca_file,
        "listen": "127.0.0.1:0",
        "http_listen": "127.0.0.1:0",
        "data_dir": home / "data",
        "keys_dir": home / "keys",
        "tenants_file": home / "tenants.yaml",
        "seal_wait_s": 0.2,
    }
    return AuditSettings(**{**values, **changes})


@dataclass(frozen=True, slots=True)
class Stubs:
    """Everything one caller may try to call."""

    audit: Any
    conversations: Any
    stops: Any
    grades: Any

    @classmethod
    def of(cls, channel: Any) -> "Stubs":
        """Return stubs over a channel."""
        return cls(
            audit_service_pb2_grpc.AuditServiceStub(channel),
            conversation_service_pb2_grpc.ConversationServiceStub(channel),
            stop_service_pb2_grpc.StopServiceStub(channel),
            grade_service_pb2_grpc.GradeServiceStub(channel),
        )

    def method(self, name: str) -> Any:
        """Return a method of whichever service has it."""
        return next(
            getattr(stub, name)
            for stub in (self.audit, self.conversations, self.stops, self.grades)
            if hasattr(stub, name)
        )


@dataclass(slots=True)
class RunningAudit:
    """A service that serves, and one stub per calling service."""

    audit: Audit
    home: Path
    url: str
    address: str
    stubs: dict[str, Any]
    channels: dict[str, Any]
    tokens: dict[str, str]
    session: aiohttp.ClientSession

    async def call(self, service: str, method: str, request: Any) -> Any:
        """Call a method as `service`; raise PodiumError."""
        with rpc_errors("audit"):
            return await self.stubs[service].method(method)(request, timeout=60)

    async def get(self, path: str, key: str = "auditor") -> tuple[int, Any]:
        """Read a page with a key; return status and decoded JSON or text."""
        headers = {"Authorization": f"Bearer {self.tokens.get(key, key)}"}
        async with self.session.get(f"{self.url}{path}", headers=headers) as answer:
            body = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, json.loads(body) if is_json else body

    async def post(self, path: str, key: str, body: Any) -> tuple[int, Any]:
        """Send JSON with a key; return status and decoded answer."""
        headers = {"Authorization": f"Bearer {self.tokens.get(key, key)}"}
        async with self.session.post(f"{self.url}{path}", headers=headers, json=body) as answer:
            return answer.status, await answer.json()

    async def run(self, run_id: str, *, until: str = "seal", **opening: Any) -> Any:
        """Make a run of one attempt; return the last answer."""
        answer = await self.call("gateway", "OpenRun", open_request(run_id, **opening))
        if until != "open":
            answer = await self.call("router", "BeginAttempt", begin_request(f"{run_id}.1", run_id))
        if until in ("end", "seal"):
            answer = await self.call("router", "EndAttempt", end_request(f"{run_id}.1", run_id))
        if until == "seal":
            answer = await self.call("gateway", "Seal", seal_request(run_id))
        return answer


@asynccontextmanager
async def running_audit(
    home: Path,
    tls_dir: Path,
    *,
    tracer: Tracer | None = None,
    meter: Meter | None = None,
    callers: Iterable[str] = (),
    clock: Clock | None = None,
    **changes: Any,
) -> AsyncIterator[RunningAudit]:
    """Serve until the block ends."""
    settings = settings_for(home, tls_dir, **changes)
    telemetry = Telemetry(
        tracer or NoOpTracerProvider().get_tracer("t"), meter or NoOpMeterProvider().get_meter("t")
    )
    async with AsyncExitStack() as stack:
        tenants = await open_tenants(settings, config_reloads(telemetry.meter), stack)
        audit = await open_audit(settings, telemetry, tenants, clock)
        stack.push_async_callback(audit.close)
        server = GrpcServer(listen=settings.listen, tls=settings.tls, permissions=PERMISSIONS)
        audit.serve_on(server.server)
        port = await server.start()
        stack.push_async_callback(server.stop, 0)
        runner, http_port = await listen(audit.http.application(), "127.0.0.1", 0, refuse=http.refusal)
        stack.push_async_callback(runner.cleanup)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        stubs, channels = {}, {}
        for service in ("gateway", "router", "conductor", "cli", *callers):
            channel = open_channel(f"127.0.0.1:{port}", "audit", tls_of(tls_dir, service))
            stack.push_async_callback(channel.close)
            channels[service] = channel
            stubs[service] = Stubs.of(channel)
        tokens = json.loads((home / "tokens.json").read_text())
        yield RunningAudit(
            audit,
            home,
            f"http://127.0.0.1:{http_port}",
            f"127.0.0.1:{port}",
            stubs,
            channels,
            tokens,
            session,
        )


def open_request(run_id: str, **changes: Any) -> pb.OpenRunRequest:
    """Return the opening of a chat run with a one-step plan of `w1`."""
    values: dict[str, Any] = {
        "event_id": f"{run_id}.open",
        "run_id": run_id,
        "kind": plan_pb2.RUN_KIND_CHAT,
        "tenant_id": "acme",
        "principal_id": "key1",
        "requested_model": "podium",
        "verdicts": [plan_pb2.Verdict(worker_id="w1", allowed=True, rule_id="default.allow")],
        "caps": plan_pb2.Caps(max_attempts_per_step=100),
        "plan": pb.PlanRecord(
            plan=plan_pb2.Plan(steps=[plan_pb2.Step(worker_id="w1")], source=plan_pb2.PLAN_SOURCE_NAMED)
        ),
        "contents": [
            pb.Content(part_id="question", name="question", media_type="text/plain", data=b"What is 2+2?")
        ],
        "lease_ms": 30_000,
    }
    return pb.OpenRunRequest(**{**values, **changes})


def begin_request(attempt_id: str, run_id: str, **changes: Any) -> pb.BeginAttemptRequest:
    """Return the request for a permit of step 0."""
    values: dict[str, Any] = {
        "attempt_id": attempt_id,
        "run_id": run_id,
        "kind": plan_pb2.ATTEMPT_KIND_STEP,
        "worker_id": "w1",
        "provider": "openai-compatible",
        "provider_model": "model",
        "endpoint_host": "provider.example",
        "body": [pb.BodyPart(inline=b'{"q":"'), pb.BodyPart(part_id="question"), pb.BodyPart(inline=b'"}')],
        "max_cost_usd_micros": 100,
        "dispatch_id": "dispatch-1",
    }
    return pb.BeginAttemptRequest(**{**values, **changes})


def end_request(attempt_id: str, run_id: str, **changes: Any) -> pb.EndAttemptRequest:
    """Return a good end."""
    values: dict[str, Any] = {
        "event_id": f"{attempt_id}.end",
        "attempt_id": attempt_id,
        "run_id": run_id,
        "outcome": plan_pb2.ATTEMPT_OUTCOME_COMPLETED,
        "usage": plan_pb2.Usage(input_tokens=10, output_tokens=20, source=plan_pb2.USAGE_SOURCE_PROVIDER),
        "cost_usd_micros": 40,
        "dispatched": True,
        "contents": [
            pb.Content(part_id=f"{attempt_id}/output", name="output", media_type="text/plain", data=b"Four.")
        ],
    }
    return pb.EndAttemptRequest(**{**values, **changes})


def seal_request(run_id: str, **changes: Any) -> pb.SealRequest:
    """Return the seal of an answered run."""
    values: dict[str, Any] = {
        "event_id": f"{run_id}.seal",
        "run_id": run_id,
        "outcome": plan_pb2.RUN_OUTCOME_ANSWERED,
    }
    return pb.SealRequest(**{**values, **changes})
