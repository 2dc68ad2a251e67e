"""No permit, no byte; and after a permit, always an end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from podium.audit.v1 import audit_service_pb2
from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_router.dispatch import DispatchLimits
from tests.fakes.attempt_log import audit_server
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.tls import tls_of
from tests.fakes.upstream import answer, refusal
from tests.fakes.waiting import until


async def refused(rig: Rig, request: pb.CompleteRequest | None = None, **how: Any) -> PodiumError:
    """Make an attempt that must be refused before anything is sent."""
    before = len(rig.upstream.requests)
    with pytest.raises(PodiumError) as error:
        await rig.complete(request, **how)
    assert len(rig.upstream.requests) == before, "nothing went out"
    return error.value


@pytest.mark.parametrize(
    "denial",
    [
        PodiumError(Code.BUDGET_EXHAUSTED, "the run's money is used up", reason="MONEY_EXHAUSTED"),
        PodiumError(Code.POLICY_DENIED, "no verdict allows it", reason="WORKER_NOT_ALLOWED"),
        PodiumError(Code.CONFLICT, "the run is sealed", reason="RUN_SEALED"),
        PodiumError(Code.AUDIT_UNAVAILABLE, "cannot commit", reason="DISK_FULL"),
        PodiumError(Code.INTERNAL, "internal error"),
    ],
)
async def test_without_a_permit_nothing_goes_out(denial: PodiumError, tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, dispatch_limits=DispatchLimits(permit_s=0.2)) as rig:
        rig.audit.refusal = denial
        error = await refused(rig)
        assert (error.code, error.reason, error.message) == (denial.code, denial.reason, denial.message)


async def test_without_audit_nothing_goes_out(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, dispatch_limits=DispatchLimits(permit_s=0.3)) as rig:
        await rig.complete()
        await rig.audit_server.stop(0)
        for stream in (False, True):
            error = await refused(rig, rig.request(stream=stream))
            assert error.code is Code.AUDIT_UNAVAILABLE


async def test_a_log_that_does_not_answer_is_no_permit(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, dispatch_limits=DispatchLimits(permit_s=0.2)) as rig:
        rig.audit.begin_gate = asyncio.Event()
        error = await refused(rig)
        assert (error.code, error.reason) == (Code.AUDIT_UNAVAILABLE, "PERMIT_TIMEOUT")


async def test_an_attempt_begun_unheard_is_ended(tls_dir: Path, tmp_path: Path) -> None:
    """The log commits, its answer is lost: the attempt must not stay open."""
    async with router_rig(tls_dir, tmp_path, dispatch_limits=DispatchLimits(permit_s=0.2)) as rig:
        late = audit_service_pb2.BeginAttemptRequest(attempt_id="att_1", run_id="run_1")
        rig.audit.begin_gate = asyncio.Event()
        rig.audit.begun["att_1"] = late
        await refused(rig)
        end = await rig.audit.end_of("att_1")
        assert (end.outcome, end.dispatched, end.cost_usd_micros) == (
            plan_pb2.ATTEMPT_OUTCOME_FAILED,
            False,
            0,
        )


async def test_a_restart_of_audit_is_waited_out(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        address = rig.audit_address
        await rig.audit_server.stop(0)
        waiting = asyncio.create_task(rig.complete())
        await asyncio.sleep(0.2)
        assert not waiting.done()
        again = audit_server(tls_of(tls_dir, "audit"), rig.audit, address)
        await again.start()
        assert (await waiting).text == "hello"
        await rig.audit.end_of("att_1")
        await again.stop(0)


async def test_an_end_is_offered_until_audit_is_back(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.upstream.default = answer("hello").but(delay_s=0.2)
        running = asyncio.create_task(rig.complete())
        await rig.upstream.seen()
        await rig.audit_server.stop(0)
        assert (await running).text == "hello", "the answer does not wait for the log"
        assert rig.endings.pending == 1
        again = audit_server(tls_of(tls_dir, "audit"), rig.audit, rig.audit_address)
        await again.start()
        end = await rig.audit.end_of("att_1")
        assert end.outcome == plan_pb2.ATTEMPT_OUTCOME_COMPLETED
        await again.stop(0)


async def test_an_answer_does_not_wait_for_its_end(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.audit.end_gate = asyncio.Event()
        for stream in (False, True):
            assert (await rig.complete(rig.request(stream=stream))).text == "hello"
        rig.upstream.script.append(refusal(500))
        with pytest.raises(PodiumError):
            await rig.complete()
        await until(lambda: rig.audit.end_calls >= 3)
        assert (rig.endings.pending, rig.audit.ended) == (3, {}), "every answer came, no end is confirmed"
        rig.audit.end_gate.set()
        await rig.audit.all_ended(3)


async def test_too_many_unconfirmed_ends_stop_new_attempts(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, max_pending_ends=2) as rig:
        rig.audit.end_gate = asyncio.Event()
        for _ in range(2):
            await rig.complete()
        error = await refused(rig)
        assert (error.code, error.reason) == (Code.AUDIT_UNAVAILABLE, "ENDINGS_PENDING")
        rig.audit.end_gate.set()
        await rig.audit.all_ended(2)
        await rig.complete()


async def test_a_stale_plan_is_refused_before_the_log_is_asked(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        first = rig.request()
        rig.write_pool(w={"region": "eu"})
        await rig.complete(rig.request(pool_digest=first.pool_digest))
        rig.write_pool(w={"region": "us"})
        error = await refused(rig, first)
        assert (error.code, error.reason) == (Code.CONFLICT, "STALE_POOL")
        assert first.attempt_id not in rig.audit.begun


async def test_a_second_dispatch_of_an_attempt_is_refused(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        request = rig.request()
        await rig.complete(request)
        error = await refused(rig, request)
        assert (error.code, error.reason) == (Code.CONFLICT, "ATTEMPT_REPEATED")


async def test_a_second_dispatch_by_another_router_is_refused_by_the_log(
    tls_dir: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with router_rig(tls_dir, tmp_path) as rig, router_rig(tls_dir, other) as second:
        request = rig.request()
        await rig.complete(request)
        request.pool_digest = second.catalog.pool().pool_digest
        known = audit_service_pb2.BeginAttemptRequest()
        known.CopyFrom(rig.audit.begun[request.attempt_id])
        known.pool_digest = request.pool_digest
        second.audit.begun, second.audit.ids_by_order = {known.attempt_id: known}, [known.attempt_id]
        error = await refused(second, request)
        assert error.code is Code.CONFLICT


async def test_a_part_that_differs_from_the_logs_is_refused(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.audit.parts["run_1/question"] = b'[{"role":"user","content":"what the log holds"}]'
        segment = pb.Segment(part_id="run_1/question", data=b'[{"role":"user","content":"something else"}]')
        error = await refused(rig, rig.request(messages=[segment]))
        assert error.reason == "BODY_MISMATCH"


async def test_a_step_waits_for_the_end_of_what_it_sees(tls_dir: Path, tmp_path: Path) -> None:
    """The end of the first step is still on its way when the second asks for its permit."""
    async with router_rig(tls_dir, tmp_path) as rig:
        rig.audit.end_gate = asyncio.Event()
        rig.audit.is_strict = True
        await rig.complete(rig.request(step_index=0))
        second = asyncio.create_task(rig.complete(rig.request(step_index=1, seen_steps=[0])))
        await asyncio.sleep(0.1)
        assert not second.done()
        rig.audit.end_gate.set()
        assert (await second).text == "hello"


async def test_the_end_of_a_seen_step_may_come_from_another_router(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        await rig.complete(rig.request(step_index=0))
        end = await rig.audit.end_of("att_1")
        rig.audit.is_strict = True
        del rig.audit.ended["att_1"]  # as if it were still on its way, and not from here
        second = asyncio.create_task(rig.complete(rig.request(step_index=1, seen_steps=[0])))
        await until(lambda: rig.audit.begin_calls > 2)
        assert not second.done()
        rig.audit.ended["att_1"] = end
        assert (await second).text == "hello"


async def test_the_end_of_a_seen_step_that_never_comes_is_no_refusal(tls_dir: Path, tmp_path: Path) -> None:
    """Whoever performed it was killed: a new run would succeed, so clients must hear that they may repeat."""
    async with router_rig(tls_dir, tmp_path) as rig:
        await rig.complete(rig.request(step_index=0))
        await rig.audit.end_of("att_1")
        rig.audit.is_strict = True
        del rig.audit.ended["att_1"]
        error = await refused(rig, rig.request(step_index=1, seen_steps=[0]))
    assert (error.code, error.reason) == (Code.AUDIT_UNAVAILABLE, "SEEN_STEP_LOST")


async def test_every_request_joins_to_a_permit_that_came_before_it(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        replies = [answer("a"), refusal(500), answer("b").but(cut=True, body=b"{"), refusal(429)]
        rig.upstream.script.extend(replies * 5)
        requests = [rig.request(stream=number % 2 == 0) for number in range(20)]
        await asyncio.gather(*[rig.complete(request) for request in requests], return_exceptions=True)
        await rig.audit.all_ended(20)
        seen = {request.attempt_id: request for request in rig.upstream.requests}
        assert len(seen) == len(rig.upstream.requests) == 20
        for attempt_id, request in seen.items():
            assert rig.audit.begun_s[attempt_id] <= request.arrived_s
            assert rig.audit.bodies[attempt_id] == request.body
            assert rig.audit.ended[attempt_id].dispatched
