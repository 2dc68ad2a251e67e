"""What a conductor plans with is in the log: since its start, and from each change, also after a log that was away."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium_conductor.model_notes import STARTED, SWITCHED, ModelNotes, appender
from podium_conductor.ports import EngineDescription
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.domain.plan import PlanSource
from tests.fakes.audit_service import running_audit
from tests.fakes.leaves import leaves_in
from tests.fakes.waiting import until

OLD = EngineDescription("vllm", PlanSource.MODEL, "a" * 64, "b" * 64, "c" * 64)
NEW = EngineDescription("vllm", PlanSource.MODEL, "d" * 64, "b" * 64)


async def stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_start_and_switch_are_records_in_order(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        notes = ModelNotes(appender(audit.channels["conductor"]), RandomIds(SystemClock()))
        notes.loaded(STARTED, OLD)
        notes.loaded(SWITCHED, NEW, OLD.model_digest)
        writing = asyncio.create_task(notes.write())
        await until(lambda: len(leaves_in(tmp_path, "note")) == 2)
        await stopped(writing)
        started, switched = (leaf["facts"] for leaf in leaves_in(tmp_path, "note"))
    assert started == {
        "kind": "conductor_model",
        "facts": {
            "cause": "started",
            "engine": "vllm",
            "model_digest": "a" * 64,
            "tokenizer_digest": "b" * 64,
            "template_digest": "c" * 64,
        },
    }
    assert switched["facts"]["cause"] == "switched"
    assert (switched["facts"]["model_digest_before"], switched["facts"]["model_digest"]) == (
        "a" * 64,
        "d" * 64,
    )


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.AUDIT_UNAVAILABLE, Code.DEADLINE])
async def test_a_log_that_is_away_gets_the_same_note_once_it_is_back(code: Code) -> None:
    tried: list[pb.AppendRequest] = []
    pauses: list[float] = []

    async def append(request: pb.AppendRequest) -> None:
        tried.append(request)
        if len(tried) < 12:
            raise PodiumError(code, "away")

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    notes = ModelNotes(append, RandomIds(SystemClock()), sleep)
    notes.loaded(STARTED, OLD)
    notes.loaded(SWITCHED, NEW)
    writing = asyncio.create_task(notes.write())
    await until(lambda: len(tried) == 13)
    await stopped(writing)
    assert len({request.event_id for request in tried[:12]}) == 1
    assert tried[12].note.facts["cause"] == "switched"
    assert pauses == sorted(pauses)
    assert max(pauses) == 30


async def test_a_note_that_is_refused_does_not_keep_the_next_one() -> None:
    taken: list[str] = []

    async def append(request: pb.AppendRequest) -> None:
        if request.note.facts["cause"] == STARTED:
            raise PodiumError(Code.POLICY_DENIED, "no", reason="CALLER_NOT_ALLOWED")
        taken.append(request.note.facts["cause"])

    notes = ModelNotes(append, RandomIds(SystemClock()))
    notes.loaded(STARTED, OLD)
    notes.loaded(SWITCHED, NEW)
    writing = asyncio.create_task(notes.write())
    await until(lambda: taken == [SWITCHED])
    await stopped(writing)
