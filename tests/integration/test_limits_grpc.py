"""The limit service over real gRPC: who may call, limits from tenants.yaml, gateways that vanish."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podium.audit.v1 import limit_service_pb2 as pb
from podium.audit.v1 import limit_service_pb2_grpc
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.limits import LimitKind, LimitName
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors
from podium_gateway.adapters.limits import AuditLimits
from podium_gateway.ports import SliceRequest
from tests.fakes.audit_service import RunningAudit, running_audit
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S

RUNS = LimitName("acme", "", LimitKind.RUNS)
REQUESTS = LimitName("acme", "key1", LimitKind.REQUESTS)


def _limit(home: Path, **limits: int) -> None:
    """Put limits on the tenant acme and its key key1, in the file that audit watches."""
    path = home / "tenants.yaml"
    tenants = json.loads(path.read_text())
    [acme] = [tenant for tenant in tenants["tenants"] if tenant["id"] == "acme"]
    acme["limits"] = acme["keys"][0]["limits"] = limits
    path.write_text(json.dumps(tenants))


@asynccontextmanager
async def _gateway(audit: RunningAudit, tls_dir: Path, name: str) -> AsyncGenerator[AuditLimits, None]:
    async with open_channel(audit.address, "audit", tls_of(tls_dir, "gateway")) as channel:
        yield AuditLimits(channel, name, SystemClock(), wait_s=30.0)


async def _limited(audit: RunningAudit, **limits: int) -> None:
    _limit(audit.home, **limits)
    assert audit.audit.tenants.fresh()


async def test_slices_come_from_tenants_yaml_and_a_change_counts_at_once(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit, _gateway(audit, tls_dir, "a") as gateway:
        asked = SliceRequest(REQUESTS, needed=1, wanted=9)
        (free,) = await gateway.lease([asked])
        assert (free.granted, free.limit, free.valid_ms) == (9, None, 5_000)
        await _limited(audit, requests_per_minute=6, concurrent_runs=2)
        (limited, place) = await gateway.lease([asked, SliceRequest(RUNS, needed=1, wanted=1)])
        assert (limited.granted, limited.limit, limited.left) == (3, 6, 3)
        assert (place.granted, place.limit) == (1, 2)
        stranger = LimitName("acme", "key3", LimitKind.REQUESTS)
        assert (await gateway.lease([SliceRequest(stranger, wanted=1)]))[0].limit is None


async def test_a_killed_gateways_places_come_back_when_its_slices_end(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir, limit_slice_s=1.5) as audit:
        await _limited(audit, concurrent_runs=2)
        async with _gateway(audit, tls_dir, "killed") as killed, _gateway(audit, tls_dir, "other") as other:
            asked = SliceRequest(RUNS, needed=1, wanted=1)
            assert (await killed.lease([SliceRequest(RUNS, needed=2, wanted=2)]))[0].granted == 2
            (refused,) = await other.lease([asked])
            assert refused.granted == 0
            assert 0 < refused.retry_after_ms <= 2_000
            async with asyncio.timeout(PATIENCE_S):
                while not (await other.lease([asked]))[0].granted:
                    await asyncio.sleep(0.05)


async def test_an_audit_that_is_gone_is_said_to_be_so_in_time(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        address = audit.address
    async with open_channel(address, "audit", tls_of(tls_dir, "gateway")) as channel:
        gateway = AuditLimits(channel, "a", SystemClock(), wait_s=0.2)
        with pytest.raises(PodiumError) as caught:
            await gateway.lease([SliceRequest(RUNS, needed=1, wanted=1)])
    assert caught.value.code is Code.AUDIT_UNAVAILABLE


async def test_an_audit_that_hangs_is_unavailable_too(tls_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with open_channel(address, "audit", tls_of(tls_dir, "gateway")) as channel:
            gateway = AuditLimits(channel, "a", SystemClock(), wait_s=0.2)
            with pytest.raises(PodiumError) as caught:
                await gateway.lease([SliceRequest(RUNS, needed=1, wanted=1)])
    assert caught.value.code is Code.AUDIT_UNAVAILABLE


@pytest.mark.parametrize("caller", ["router", "conductor", "cli"])
async def test_only_gateways_may_lease(tmp_path: Path, tls_dir: Path, caller: str) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        open_channel(audit.address, "audit", tls_of(tls_dir, caller)) as channel,
    ):
        with pytest.raises(PodiumError) as caught, rpc_errors("audit"):
            await limit_service_pb2_grpc.LimitServiceStub(channel).LeaseSlices(
                pb.LeaseSlicesRequest(holder_id="a"), timeout=60
            )
    assert caught.value.reason == "CALLER_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (pb.LeaseSlicesRequest(), "holder_id"),
        (pb.LeaseSlicesRequest(holder_id="a", slices=[pb.SliceRequest()] * 1_025), "slices"),
        (pb.LeaseSlicesRequest(holder_id="a", slices=[pb.SliceRequest()]), "limit_kind"),
        (
            pb.LeaseSlicesRequest(
                holder_id="a",
                slices=[
                    pb.SliceRequest(
                        limit=pb.LimitName(tenant_id="acme", kind=pb.LIMIT_KIND_RUNS), in_use=2, wanted=1
                    )
                ],
            ),
            "wanted",
        ),
    ],
)
async def test_a_request_that_makes_no_sense_names_its_field(
    tmp_path: Path, tls_dir: Path, request_: pb.LeaseSlicesRequest, param: str
) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        open_channel(audit.address, "audit", tls_of(tls_dir, "gateway")) as channel,
    ):
        with pytest.raises(PodiumError) as caught, rpc_errors("audit"):
            await limit_service_pb2_grpc.LimitServiceStub(channel).LeaseSlices(request_, timeout=60)
    assert (caught.value.code, caught.value.param) == (Code.INVALID_REQUEST, param)
