"""A router on loopback between a scripted provider and the in-memory log, for integration tests."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from opentelemetry import metrics, trace

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium.router.v1.router_service_pb2_grpc import RouterServiceStub, add_RouterServiceServicer_to_server
from podium_core.config.pool import load_pool
from podium_core.config.watched import Watched
from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.runtime.grpc_client import call_metadata, open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.grpc_server import GrpcServer
from podium_router.audit_client import GrpcAudit
from podium_router.breaker import BreakerLimits
from podium_router.calls import CallTimeouts
from podium_router.catalog import Catalog
from podium_router.dispatch import Dispatcher, DispatchLimits
from podium_router.endings import Endings
from podium_router.keys import Keys
from podium_router.lanes import LaneLimits
from podium_router.outbox import BatchLimits
from podium_router.providers.choice import Providers
from podium_router.providers.exchange import Exchange, ProviderLimits
from podium_router.servicer import PERMISSIONS, RouterServicer
from podium_router.telemetry import ChatTelemetry
from tests.fakes.attempt_log import FakeAudit, audit_server
from tests.fakes.tls import tls_of
from tests.fakes.upstream import Upstream

KEY = "sk-canary-4f1d9b7e5c3a"
"""The provider key of every worker in these tests. It may show up in one place only: the upstream's log."""


@dataclass(slots=True)
class Outcome:
    """What a caller got: deltas and the last event."""

    deltas: list[pb.Delta] = field(default_factory=list)
    completed: pb.Completed | None = None
    leaf_index: int | None = None
    arrived_s: list[float] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text, streamed or whole."""
        return "".join(delta.text for delta in self.deltas) + self.done.message.text

    @property
    def done(self) -> pb.Completed:
        """The last event."""
        assert self.completed is not None
        return self.completed


@dataclass(slots=True)
class Rig:
    """The router under test and everything around it."""

    upstream: Upstream
    audit: FakeAudit
    audit_server: GrpcServer
    audit_address: str
    address: str
    catalog: Catalog
    dispatcher: Dispatcher
    endings: Endings
    pool: Watched[Any]
    pool_path: Path
    key_path: Path
    channels: dict[str, grpc.aio.Channel]
    servicer: RouterServicer
    count: int = 0

    def stub(self, caller: str = "gateway") -> Any:
        """Return a client with the caller's certificate."""
        return RouterServiceStub(self.channels[caller])

    def request(self, text: str = "hi", **changes: Any) -> pb.CompleteRequest:
        """Return a request for one attempt at worker `w` of the newest pool."""
        self.count += 1
        messages = json.dumps([{"role": "user", "content": text}]).encode()
        fields: dict[str, Any] = {
            "attempt_id": f"att_{self.count}",
            "run_id": "run_1",
            "tenant_id": "acme",
            "kind": plan_pb2.ATTEMPT_KIND_STEP,
            "worker_id": "w",
            "pool_digest": self.catalog.pool().pool_digest,
            "messages": [pb.Segment(data=messages)],
            "max_output_tokens": 100,
        }
        return pb.CompleteRequest(**{**fields, **changes})

    async def complete(
        self,
        request: pb.CompleteRequest | None = None,
        *,
        caller: str = "gateway",
        timeout_s: float = 60.0,
        into: Outcome | None = None,
    ) -> Outcome:
        """Make an attempt; raises PodiumError as the caller would see it. `into` keeps what came before."""
        outcome = into or Outcome()
        loop = asyncio.get_running_loop()
        with rpc_errors("router"):
            call = self.stub(caller).Complete(
                request or self.request(), timeout=timeout_s, metadata=call_metadata()
            )
            try:
                async for event in call:
                    kind = event.WhichOneof("event")
                    if kind == "permitted":
                        outcome.leaf_index = event.permitted.leaf_index
                    elif kind == "delta":
                        outcome.deltas.append(event.delta)
                        outcome.arrived_s.append(loop.time())
                    else:
                        outcome.completed = event.completed
            finally:
                call.cancel()  # a caller that is cancelled between two reads has not cancelled its call yet
        return outcome

    def write_pool(self, **workers: Mapping[str, Any]) -> None:
        """Replace pool.yaml; each worker is named and may differ from the default in some fields."""
        self.pool_path.write_text(json.dumps({"workers": [self.worker(k, **v) for k, v in workers.items()]}))
        self.pool.refresh()

    def worker(self, worker_id: str, **changes: Any) -> dict[str, Any]:
        """Return a worker's entry in pool.yaml."""
        return worker_entry(worker_id, self.upstream.base_url, self.key_path, **changes)


def worker_entry(worker_id: str, address: str, key_path: Path, /, **changes: Any) -> dict[str, Any]:
    """Return one entry of pool.yaml: a model of the upstream with a price and a key file."""
    entry = {
        "id": worker_id,
        "provider": "openai-compatible",
        "model": f"{worker_id}-model",
        "base_url": address,
        "key": {"file": str(key_path)},
        "price": {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"},
        "limits": {"max_concurrency": 1000, "timeout_s": 30},
    }
    return {**entry, **changes}


@asynccontextmanager
async def router_rig(
    tls_dir: Path,
    tmp_path: Path,
    *,
    worker: Mapping[str, Any] | None = None,
    provider_limits: ProviderLimits | None = None,
    lane_limits: LaneLimits | None = None,
    breaker_limits: BreakerLimits | None = None,
    timeouts: CallTimeouts | None = None,
    dispatch_limits: DispatchLimits | None = None,
    batch_limits: BatchLimits | None = None,
    end_budget_s: float = 5.0,
    max_pending_ends: int = 1000,
    allow_cli: bool = False,
    tracer: trace.Tracer | None = None,
    meter: metrics.Meter | None = None,
    upstream: Upstream | None = None,
    audit_address: str | None = None,
) -> AsyncIterator[Rig]:
    """Run a router with one worker `w`. `audit_address` is a log to use instead of the one in memory."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(upstream or Upstream())
        key_path, pool_path = tmp_path / "provider.key", tmp_path / "pool.yaml"
        key_path.write_text(f"{KEY}\n")
        entry = worker_entry("w", provider.base_url, key_path, **(worker or {}))
        pool_path.write_text(json.dumps({"workers": [entry]}))
        audit = FakeAudit()
        log = audit_server(tls_of(tls_dir, "audit"), audit)
        audit_port = await log.start()
        stack.push_async_callback(log.stop, 0)
        audit_address = audit_address or f"127.0.0.1:{audit_port}"
        channel = open_channel(audit_address, "audit", tls_of(tls_dir, "router"))
        stack.push_async_callback(channel.close)
        exchange = Exchange(provider_limits or ProviderLimits(), clock)
        stack.push_async_callback(exchange.close)
        client = Providers(exchange)
        pool = Watched(pool_path, load_pool)
        await client.load(entry.provider for entry in pool.current.entries)
        catalog = Catalog(
            lambda: pool.current,
            Keys(lambda name: None),
            clock,
            lane_limits or LaneLimits(),
            breaker_limits or BreakerLimits(),
            timeouts or CallTimeouts(),
        )
        port = GrpcAudit(channel, clock, end_budget_s=end_budget_s)
        stack.push_async_callback(port.close)
        endings = Endings(port, max_pending_ends)
        dispatcher = Dispatcher(
            catalog,
            port,
            client,
            endings,
            ChatTelemetry(
                tracer or trace.NoOpTracer(),
                meter or metrics.NoOpMeterProvider().get_meter("podium"),
                clock,
            ),
            clock,
            RandomIds(clock),
            limits=dispatch_limits or DispatchLimits(),
            batches=batch_limits or BatchLimits(),
        )
        server = GrpcServer(listen="127.0.0.1:0", tls=tls_of(tls_dir, "router"), permissions=PERMISSIONS)
        servicer = RouterServicer(dispatcher, catalog, allow_cli=allow_cli)
        add_RouterServiceServicer_to_server(servicer, server.server)
        router_port = await server.start()
        channels = {}
        for caller in ("gateway", "conductor", "cli", "audit"):
            channels[caller] = open_channel(f"127.0.0.1:{router_port}", "router", tls_of(tls_dir, caller))
            stack.push_async_callback(channels[caller].close)
        yield Rig(
            provider,
            audit,
            log,
            audit_address,
            f"127.0.0.1:{router_port}",
            catalog,
            dispatcher,
            endings,
            pool,
            pool_path,
            key_path,
            channels,
            servicer,
        )
        await server.stop(0)
        await dispatcher.drain(timeout_s=0)
        await endings.drain(1.0)
