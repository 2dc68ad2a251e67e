"""What a worker takes at once and per minute, and who gets the next place: the router over real gRPC."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime import attributes as names
from podium_router.lanes import LaneLimits
from tests.fakes.router_rig import Outcome, Rig, router_rig
from tests.fakes.upstream import answer, refusal


def limited(**limits: Any) -> dict[str, Any]:
    return {"limits": {"max_concurrency": 100, "timeout_s": 30, **limits}}


async def refused(rig: Rig, **changes: Any) -> PodiumError:
    with pytest.raises(PodiumError) as failed:
        await rig.complete(rig.request(**changes))
    return failed.value


async def test_requests_per_minute(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker=limited(requests_per_minute=3)) as rig:
        for _ in range(3):
            await rig.complete()
        error = await refused(rig)
        assert (error.code, error.reason) == (Code.RATE_LIMITED, "WORKER_RATE_LIMITED")
        assert error.retry_after_s is not None
        assert 0 < error.retry_after_s <= 20
        assert (len(rig.upstream.requests), len(rig.audit.begun)) == (3, 3), "no permit is asked for"


async def test_tokens_per_minute_count_what_was_used_and_not_what_was_reserved(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path, worker=limited(tokens_per_minute=240)) as rig:
        for _ in range(5):  # each reserves more than a hundred and uses seventeen
            await rig.complete()
        huge = {"prompt_tokens": 400, "completion_tokens": 5, "total_tokens": 405}
        rig.upstream.script.append(answer("x", usage=huge))
        await rig.complete()
        assert (await refused(rig)).reason == "WORKER_RATE_LIMITED"


async def test_a_short_retry_after_keeps_every_run_off_the_worker_until_it_is_over(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.script.append(refusal(429, retry_after="1"))
        assert (await refused(rig)).reason == "PROVIDER_RATE_LIMITED"
        listed = await rig.stub().ListWorkers(pb.ListWorkersRequest())
        assert listed.workers[0].health == pb.WORKER_HEALTH_UP, "a wait that calls can bear keeps it eligible"
        tenants = ("one", "two", "three")
        await asyncio.gather(*[rig.complete(rig.request(tenant_id=tenant_id)) for tenant_id in tenants])
        first, second, *others = rig.upstream.requests
        assert len(others) == 2, "nobody walked into the known refusal"
        assert second.arrived_s - first.arrived_s >= 1.0


async def test_a_long_retry_after_refuses_at_once_and_shows_in_the_pool(
    tls_dir: Path, tmp_path: Path
) -> None:
    lanes = LaneLimits(max_wait_s=0.2, max_pause_s=2.0)
    async with router_rig(tls_dir, tmp_path, lane_limits=lanes) as rig:
        rig.upstream.script.append(refusal(429, retry_after="3000"))
        assert (await refused(rig)).retry_after_s == 3000
        error = await refused(rig)
        assert (error.code, error.reason) == (Code.RATE_LIMITED, "WORKER_PAUSED")
        assert error.retry_after_s is not None
        assert 0 < error.retry_after_s <= 2.0, "a provider's wish is bounded"
        assert (len(rig.upstream.requests), len(rig.audit.begun)) == (1, 1), "no permit is asked for"
        listed = await rig.stub().ListWorkers(pb.ListWorkersRequest())
        assert listed.workers[0].health == pb.WORKER_HEALTH_PAUSED
        await asyncio.sleep(error.retry_after_s)
        await rig.complete()


async def test_one_tenants_flood_does_not_keep_another_waiting(tls_dir: Path, tmp_path: Path) -> None:
    lanes = LaneLimits(max_waiting=40, max_wait_s=60)
    worker = limited(max_concurrency=1)
    async with router_rig(tls_dir, tmp_path, worker=worker, lane_limits=lanes) as rig:
        rig.upstream.default = answer("slow").but(delay_s=0.05)
        order: list[str] = []

        async def ask(tenant_id: str) -> None:
            outcome: Outcome | None = None
            try:
                outcome = await rig.complete(rig.request(tenant_id=tenant_id), timeout_s=60)
            finally:
                order.append(tenant_id if outcome is not None else f"{tenant_id} refused")

        flood = [asyncio.create_task(ask("loud")) for _ in range(60)]
        await rig.upstream.seen()
        await asyncio.sleep(0.1)
        before = order.count("loud")
        await asyncio.gather(*[ask("quiet") for _ in range(3)])
        assert "quiet refused" not in order
        assert order.count("loud") - before <= 20, "it waited for its turn, not for the flood's forty"
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


async def test_the_wait_for_a_place_is_measured(tls_dir: Path, tmp_path: Path) -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("test")
    async with router_rig(tls_dir, tmp_path, worker=limited(max_concurrency=1), meter=meter) as rig:
        rig.upstream.default = answer("slow").but(delay_s=0.2)
        await asyncio.gather(*[rig.complete(rig.request()) for _ in range(2)])
    data: Any = reader.get_metrics_data()
    points = {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    (waited,) = points[names.METRIC_QUEUE_DURATION]
    (waiting,) = points[names.METRIC_QUEUE_WAITING]
    assert (waited.count, waiting.value) == (2, 0)
    assert waited.max > 0.15
    assert dict(waited.attributes) == {names.WORKER_ID: "w"}
