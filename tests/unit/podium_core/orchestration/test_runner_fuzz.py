"""Any plan over any workers behaving in any way: the run ends, sealed, within its caps, without surprises."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.run import Caps, RunKind, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import AnswerDelta, RunFinished
from podium_core.orchestration.limits import RunnerLimits
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from tests.fakes.ids import CountingIds
from tests.fakes.planner import FakePlanner
from tests.fakes.pools import pool, question, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

HEDGES = {"a": None, "b": 0.0, "c": 0.001}
IDS = tuple(HEDGES)
POOL = pool(
    *(replace(worker(name, skills={"x": 500_000}), hedge_after_s=wait) for name, wait in HEDGES.items())
)
LIMITS = RunnerLimits(retry_base_s=0, retry_max_s=0, step_timeout_s=5)

errors = st.sampled_from(list(Code)).map(lambda code: PodiumError(code, "scripted"))
replies = st.builds(
    Reply,
    text=st.text(max_size=20),
    error=st.none() | errors,
    pieces_before_error=st.integers(0, 2),
    permitted=st.booleans(),
    usage=st.builds(Usage, st.integers(0, 50), st.integers(0, 50)),
    cost_usd_micros=st.integers(0, 40),
)
caps = st.builds(
    Caps,
    max_calls=st.none() | st.integers(0, 6),
    max_tokens=st.none() | st.integers(0, 5_000),
    max_cost_usd_micros=st.none() | st.integers(0, 5_000),
    max_rounds=st.integers(1, 3),
    max_attempts_per_step=st.integers(1, 3),
    quorum=st.none() | st.integers(1, 3),
    straggler_wait_s=st.none() | st.just(0.001),
)


@st.composite
def rounds(draw: st.DrawFn, round_index: int) -> Plan:
    count = draw(st.integers(0 if round_index else 1, 5))
    steps = []
    for index in range(count):
        seen = draw(st.sets(st.integers(0, index - 1))) if index else set()
        previous = bool(round_index) and draw(st.booleans())
        steps.append(
            Step(draw(st.sampled_from(IDS)), draw(st.text(max_size=5)), Access(tuple(sorted(seen)), previous))
        )
    return Plan(tuple(steps), PlanSource.RULES, round_index)


turns = st.tuples(*(st.one_of(rounds(index), errors) for index in range(3)))


@settings(max_examples=150, deadline=None)
@given(turns, st.lists(replies, min_size=1, max_size=8), caps, st.booleans())
async def test_every_run_ends_sealed_and_within_its_caps(
    planned: tuple[Plan | PodiumError, ...], script: list[Reply], limits: Caps, stream: bool
) -> None:
    workers = FakeWorkers({name: script[i::3] or script for i, name in enumerate(IDS)})
    recorder = FakeRecorder()
    runner = Runner(FakePlanner(*planned), workers, recorder, SystemClock(), CountingIds(), LIMITS)
    asked = RunRequest(
        "run", RunKind.CHAT, "t", "k", "podium", "podium", question("q"), limits, stream=stream
    )
    try:
        events = [event async for event in runner.run(asked, POOL)]
    except PodiumError:
        assert all(run.is_closed for run in recorder.runs.values())
        assert workers.calls == []
        return
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert recorder.only.sealed is not None
    assert recorder.only.sealed.outcome is finished.outcome
    assert (finished.error is None) == (finished.outcome is RunOutcome.ANSWERED)
    assert limits.max_calls is None or len(workers.calls) <= limits.max_calls
    assert len({call.attempt_id for call in workers.calls}) == len(workers.calls)
    assert {end for end, _ in workers.log} <= {"begun", "completed", "failed", "cancelled"}
    assert sum(1 for end, _ in workers.log if end == "begun") * 2 == len(workers.log)
    if stream and finished.answer is not None and finished.outcome is RunOutcome.ANSWERED:
        streamed = "".join(e.delta.text for e in events if isinstance(e, AnswerDelta))
        assert streamed == finished.answer.text
