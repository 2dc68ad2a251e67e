"""What a worker takes at once and per minute, and who gets the next place: the router over real gRPC."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime import attributes as names
from podium_router.lanes import LaneLimits
from tests.fakes.router_rig import Outcome, Rig, router_rig
from tests.fakes.upstream import answer


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
        assert 10 < error.retry_after_s <= 20
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


async def test_one_tenants_flood_does_not_keep_another_waiting(tls_dir: Path, tmp_path: Path) -> None:
    lanes = LaneLimits(max_waiting=40, max_wait_s=20)
    worker = limited(max_concurrency=1)
    async with router_rig(tls_dir, tmp_path, worker=worker, lane_limits=lanes) as rig:
        rig.upstream.default = answer("slow").but(delay_s=0.05)
        order: list[str] = []

        async def ask(tenant_id: str) -> None:
            outcome: Outcome | None = None
            try:
                outcome = await rig.complete(rig.request(tenant_id=tenant_id), timeout_s=20)
            finally:
                order.append(tenant_id if outcome is not None else f"{tenant_id} refused")

        flood = [asyncio.create_task(ask("loud")) for _ in range(60)]
        await rig.upstream.seen()
        await asyncio.sleep(0.1)
        await asyncio.gather(*[ask("quiet") for _ in range(3)])
        assert "quiet refused" not in order
        assert len([one for one in order if one == "loud"]) <= 12, "it waited for its turn, not for the flood"
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
