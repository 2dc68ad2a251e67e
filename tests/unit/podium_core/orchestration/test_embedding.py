"""A run of kind embed: what its one step says when its time is over."""

import asyncio

import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.run import AttemptOutcome, Caps, RunKind, RunOutcome
from podium_core.orchestration.events import RunFinished
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.runner import Runner
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.ids import CountingIds
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers
from tests.unit.podium_core.orchestration.test_runner import request

VECTORS = pool(worker("bge", features=frozenset({"embeddings"})))


@pytest.mark.parametrize(
    ("caps", "step_timeout_s", "reason"),
    [(Caps(max_duration_s=0.05), 5.0, "RUN_DEADLINE"), (Caps(), 0.05, "STEP_DEADLINE")],
)
async def test_time_that_is_over_is_said_to_be_the_runs_or_the_steps(
    caps: Caps, step_timeout_s: float, reason: str
) -> None:
    runner = Runner(
        FakePlanner(plan_of(("bge", "", ()))),
        FakeWorkers(),
        FakeRecorder(),
        SystemClock(),
        CountingIds(),
        RunnerLimits(step_timeout_s=step_timeout_s),
        embedder=FakeEmbedder(gate=asyncio.Event()),
    )
    asked = request(kind=RunKind.EMBED, caps=caps, named_worker_id="bge")
    *_, finished = [event async for event in runner.run(asked, VECTORS)]
    assert isinstance(finished, RunFinished)
    assert (finished.outcome, finished.error and finished.error.reason) == (RunOutcome.FAILED, reason)
    assert [a.outcome for a in finished.steps[0].attempts] == [AttemptOutcome.TIMED_OUT]
