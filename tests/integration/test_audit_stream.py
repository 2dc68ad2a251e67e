"""Audit's calls as operations of one stream: allowed, refused, lost and repeated as calls are."""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.audit_stream import AuditStream
from tests.fakes.audit_process import audit_process
from tests.fakes.audit_service import begin_request, end_request, open_request, running_audit, seal_request
from tests.fakes.waiting import SOON_S, STALL_S


@asynccontextmanager
async def stream_over(channel: Any) -> AsyncIterator[AuditStream]:
    """Close the stream before its channel."""
    stream = AuditStream(channel)
    try:
        yield stream
    finally:
        await stream.close()


async def refusal(answer: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await answer
    return caught.value


async def test_a_run_over_two_streams_ends_in_its_receipt(tmp_path: Path, tls_dir: Path) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        stream_over(audit.channels["gateway"]) as gateway,
        stream_over(audit.channels["router"]) as router,
    ):
        opened = await gateway.OpenRun(open_request("run_1"), timeout=60)
        permit = await router.BeginAttempt(begin_request("att_1", "run_1"), timeout=60)
        ended = await router.EndAttempt(end_request("att_1", "run_1"), timeout=60)
        sealed = await gateway.Seal(seal_request("run_1"), timeout=60)
    assert list(opened.leaf_indices) == sorted(opened.leaf_indices)
    assert opened.leaf_indices[-1] < permit.leaf_index < ended.leaf_index
    assert sealed.receipt.run_id == "run_1"
    assert sealed.receipt.checkpoint


async def test_refusals_keep_their_code_reason_and_parameter(tmp_path: Path, tls_dir: Path) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        stream_over(audit.channels["router"]) as router,
    ):
        streamed = await refusal(router.BeginAttempt(begin_request("att_1", "run_nobody"), timeout=60))
        called = await refusal(audit.call("router", "BeginAttempt", begin_request("att_1", "run_nobody")))
    assert (streamed.code, streamed.reason, streamed.param) == (called.code, called.reason, called.param)
    assert streamed.message == called.message


async def test_each_caller_performs_its_own_part_only(tmp_path: Path, tls_dir: Path) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        stream_over(audit.channels["gateway"]) as gateway,
        stream_over(audit.channels["router"]) as router,
        stream_over(audit.channels["conductor"]) as conductor,
    ):
        refused = [
            await refusal(gateway.BeginAttempt(begin_request("att_1", "run_1"), timeout=60)),
            await refusal(gateway.EndAttempt(end_request("att_1", "run_1"), timeout=60)),
            await refusal(router.OpenRun(open_request("run_1"), timeout=60)),
            await refusal(router.Seal(seal_request("run_1"), timeout=60)),
            await refusal(conductor.OpenRun(open_request("run_1"), timeout=60)),
        ]
        await gateway.OpenRun(open_request("run_1"), timeout=60)
    assert [(error.code, error.reason) for error in refused] == [
        (Code.POLICY_DENIED, "CALLER_NOT_ALLOWED")
    ] * 5


async def test_hundreds_at_once_are_each_answered_with_their_own(tmp_path: Path, tls_dir: Path) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        stream_over(audit.channels["gateway"]) as gateway,
    ):
        ids = [f"run_{number}" for number in range(300)]
        await asyncio.gather(*(gateway.OpenRun(open_request(run_id), timeout=60) for run_id in ids))
        sealed = await asyncio.gather(*(gateway.Seal(seal_request(run_id), timeout=60) for run_id in ids))
    assert [answer.receipt.run_id for answer in sealed] == ids


async def test_one_refusal_spoils_no_other_operation(tmp_path: Path, tls_dir: Path) -> None:
    async with (
        running_audit(tmp_path, tls_dir) as audit,
        stream_over(audit.channels["gateway"]) as gateway,
    ):
        answers = await asyncio.gather(
            gateway.OpenRun(open_request("run_1"), timeout=60),
            gateway.OpenRun(open_request("", event_id="e"), timeout=60),
            gateway.Append(pb.AppendRequest(event_id="f", run_id="run_2"), timeout=60),
            gateway.OpenRun(open_request("run_3"), timeout=60),
            return_exceptions=True,
        )
    good = [isinstance(answer, pb.OpenRunResponse) for answer in answers]
    assert good == [True, False, False, True]


async def test_a_killed_audit_fails_what_waits_and_a_new_one_takes_the_next(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with audit_process(tmp_path, tls_dir, lease_default_s=60) as audit:
        channel, _ = audit.stub("gateway")
        async with stream_over(channel) as gateway:
            await gateway.OpenRun(open_request("run_1"), timeout=60)
            audit.process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
            waiting = asyncio.gather(
                *(gateway.OpenRun(open_request(f"run_{n}"), timeout=60) for n in range(2, 8)),
                return_exceptions=True,
            )
            await asyncio.sleep(0.1)
            audit.kill()
            failed = await waiting
            audit.start()
            await audit.ready()
            repeated = [await gateway.OpenRun(open_request(f"run_{n}"), timeout=60) for n in range(1, 8)]
        await channel.close()
    assert {error.code for error in failed if isinstance(error, PodiumError)} == {Code.AUDIT_UNAVAILABLE}
    assert all(answer.leaf_indices for answer in repeated)


async def test_a_draining_audit_answers_what_it_took_and_ends_the_stream(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with audit_process(tmp_path, tls_dir, lease_default_s=60, drain_s=STALL_S) as audit:
        channel, _ = audit.stub("gateway")
        async with stream_over(channel) as gateway:
            await gateway.OpenRun(open_request("run_1"), timeout=60)
            started = asyncio.get_running_loop().time()
            await asyncio.to_thread(audit.kill, signal.SIGTERM)
            took_s = asyncio.get_running_loop().time() - started
        await channel.close()
    assert took_s < SOON_S, "an open stream must not hold a shutdown until the end of its grace"


async def test_what_nobody_waits_for_any_more_is_not_begun(tmp_path: Path, tls_dir: Path) -> None:
    async with audit_process(tmp_path, tls_dir, lease_default_s=60) as audit:
        channel, _ = audit.stub("gateway")
        async with stream_over(channel) as gateway:
            await gateway.OpenRun(open_request("run_1"), timeout=60)
            audit.process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
            late = await refusal(gateway.OpenRun(open_request("run_2"), timeout=0.1))
            audit.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
            again = await gateway.OpenRun(open_request("run_3"), timeout=60)
        await channel.close()
    assert late.code is Code.DEADLINE
    assert again.leaf_indices


async def test_what_was_given_up_before_it_was_sent_is_never_done(tmp_path: Path, tls_dir: Path) -> None:
    async with audit_process(tmp_path, tls_dir, lease_default_s=60) as audit:
        channel, _ = audit.stub("gateway")
        async with stream_over(channel) as gateway:
            await gateway.OpenRun(open_request("run_1"), timeout=60)
            audit.process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
            text = secrets.token_bytes(600_000)
            content = pb.Content(part_id="question", name="question", media_type="text/plain", data=text)
            late = [open_request(f"run_late_{n}", contents=[content]) for n in range(40)]
            given_up = await asyncio.gather(
                *(gateway.OpenRun(request, timeout=0.5) for request in late), return_exceptions=True
            )
            audit.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
            await gateway.OpenRun(open_request("run_2"), timeout=60)
            await asyncio.sleep(0.2)
            unknown = await refusal(gateway.Seal(seal_request("run_late_39"), timeout=60))
        await channel.close()
    assert {error.code for error in given_up if isinstance(error, PodiumError)} == {Code.DEADLINE}
    assert unknown.reason == "RUN_UNKNOWN"
