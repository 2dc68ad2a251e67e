"""Answers held to a contract: one repair on the run's account, then an error that keeps the answer."""

from dataclasses import dataclass

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptKind, Caps, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.contract import Breach, ToolContract
from podium_core.orchestration.events import AnswerDelta, RunFinished, StepEnded
from podium_core.orchestration.outputs import Output
from podium_core.orchestration.ports import Delta
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.worker import FakeWorkers, Reply
from tests.unit.podium_core.orchestration.test_runner import DOWN, Bench, request, text_of


@dataclass(frozen=True)
class Shouting:
    """The answer is in capitals."""

    is_streamable: bool = False

    def opens(self, delta: Delta) -> bool:
        return delta.text.isupper()

    async def breach(self, output: Output) -> Breach | None:
        if output.text.isupper():
            return None
        return Breach(PodiumError(Code.PROVIDER_FAILED, "not loud", reason="NOT_LOUD"), "louder!")


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OTHER = {"index": 0, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}


async def test_a_breach_gets_one_repair_on_the_runs_account() -> None:
    plan = plan_of(("a", "first", ()), ("b", "second", (0,)))
    workers = FakeWorkers({"a": Reply("quiet"), "b": (Reply("soft"), Reply("LOUD"))})
    bench = Bench(FakePlanner(plan), workers)
    finished = await bench.finish(request(contract=Shouting()))
    assert finished.answer is not None
    assert (finished.answer.text, finished.outcome) == ("LOUD", RunOutcome.ANSWERED)
    first, repair = bench.workers.calls_of("b")
    assert (first.kind, repair.kind) == (AttemptKind.STEP, AttemptKind.REPAIR)
    assert text_of(repair) == text_of(first)
    assert [(turn.role, turn.text) for turn in repair.prompt.turns] == [
        ("assistant", "soft"),
        ("user", "louder!"),
    ]
    assert len(bench.workers.calls_of("a")) == 1
    assert finished.usage == Usage(10, 5)
    assert finished.other_usage == Usage(20, 10)
    assert finished.cost_usd_micros == 21


@pytest.mark.parametrize("second", [Reply("still soft"), Reply(error=DOWN)])
async def test_what_stays_in_breach_is_an_error_that_keeps_the_answer(second: Reply) -> None:
    workers = FakeWorkers({"a": (Reply("soft"), second)})
    finished = await Bench(FakePlanner(), workers).finish(request(contract=Shouting()))
    assert finished.outcome is RunOutcome.FAILED
    assert finished.error is not None
    assert finished.error.reason == "NOT_LOUD"
    (step,) = finished.steps
    assert (step.ok, step.text) == (False, second.text if second.error is None else "soft")
    assert len(workers.calls) == 2


@pytest.mark.parametrize("caps", [Caps(max_attempts_per_step=1), Caps(max_calls=1)])
async def test_a_repair_keeps_within_the_caps(caps: Caps) -> None:
    workers = FakeWorkers({"a": Reply("soft")})
    finished = await Bench(FakePlanner(), workers).finish(request(contract=Shouting(), caps=caps))
    assert finished.error is not None
    assert finished.error.reason == "NOT_LOUD"
    assert [call.kind for call in workers.calls] == [AttemptKind.STEP] + [AttemptKind.REPAIR] * 0


@pytest.mark.parametrize("cut", ["length", "content_filter"])
async def test_an_answer_cut_short_stays_what_it_is(cut: str) -> None:
    workers = FakeWorkers({"a": Reply("sof", finish_reason=cut)})
    finished = await Bench(FakePlanner(), workers).finish(request(contract=Shouting()))
    assert finished.answer is not None
    assert finished.answer.finish_reason == cut
    assert len(workers.calls) == 1


async def test_what_may_need_a_repair_comes_in_one_piece() -> None:
    workers = FakeWorkers({"a": (Reply("soft words"), Reply("LOUD WORDS"))})
    events = await Bench(FakePlanner(), workers).events(request(contract=Shouting(), stream=True))
    assert [event.delta.text for event in events if isinstance(event, AnswerDelta)] == ["LOUD WORDS"]
    assert not any(call.stream for call in workers.calls)


async def test_a_demanded_call_streams_once_it_has_begun() -> None:
    thinking = Reply("let me see", tool_calls=(CALL,), finish_reason="tool_calls")
    workers = FakeWorkers({"a": (Reply("just words"), thinking)})
    asked = request(contract=ToolContract("f"), stream=True)
    events = await Bench(FakePlanner(), workers).events(asked)
    deltas = [event.delta for event in events if isinstance(event, AnswerDelta)]
    assert "".join(delta.text for delta in deltas) == "let me see"
    assert [delta.tool_calls for delta in deltas if delta.tool_calls] == [(CALL,)]
    assert all(call.stream for call in workers.calls)
    assert len(workers.calls) == 2


@pytest.mark.parametrize(
    ("contract", "calls", "is_kept"),
    [
        (ToolContract(), (), False),
        (ToolContract(), (OTHER,), True),
        (ToolContract("f"), (OTHER,), False),
        (ToolContract("f"), (CALL,), True),
        (ToolContract(is_forbidden=True), (CALL,), False),
        (ToolContract(is_forbidden=True), (), True),
    ],
)
async def test_tool_choice_is_obeyed_or_refused_by_name(
    contract: ToolContract, calls: tuple[dict[str, object], ...], is_kept: bool
) -> None:
    workers = FakeWorkers({"a": Reply("words", tool_calls=calls)})
    finished = await Bench(FakePlanner(), workers).finish(request(contract=contract))
    if is_kept:
        assert finished.answer is not None
        assert len(workers.calls) == 1
    else:
        assert finished.error is not None
        assert (finished.error.reason, finished.error.param) == ("TOOL_CHOICE_NOT_MET", "tool_choice")
        assert len(workers.calls) == 2


# --- several answers -------------------------------------------------------------------------------


async def test_several_answers_are_several_attempts_of_one_plan() -> None:
    plan = plan_of(("a", "first", ()), ("b", "second", (0,)))
    workers = FakeWorkers({"b": (Reply("one two"), Reply("uno due"), Reply("eins zwei"))})
    bench = Bench(FakePlanner(plan), workers)
    events = await bench.events(request(answer_count=3, stream=True))
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert len(bench.planner.queries) == 1
    assert (len(workers.calls_of("a")), len(workers.calls_of("b"))) == (1, 3)
    assert [answer.choice for answer in finished.answers] == [0, 1, 2]
    streamed: dict[int, str] = {}
    for event in events:
        if isinstance(event, AnswerDelta):
            streamed[event.choice] = streamed.get(event.choice, "") + event.delta.text
    assert streamed == {answer.choice: answer.text for answer in finished.answers}
    assert sorted(streamed.values()) == ["eins zwei", "one two", "uno due"]
    # The prompt counts once; what reading it again took is told beside it.
    assert finished.usage == Usage(10, 15)
    assert finished.other_usage == Usage(30, 5)
    assert finished.cost_usd_micros == 28
    assert len([event for event in events if isinstance(event, StepEnded)]) == 4
    assert bench.recorder.only.opened.caps.max_attempts_per_step == 9


async def test_fewer_answers_than_asked_for_are_none() -> None:
    workers = FakeWorkers(
        {"a": (Reply("one"), Reply(error=PodiumError(Code.PROVIDER_FAILED, "x", reason="X")))}
    )
    capped = request(answer_count=2, caps=Caps(max_attempts_per_step=1))
    finished = await Bench(FakePlanner(), workers).finish(capped)
    assert finished.outcome is RunOutcome.FAILED
    assert finished.answers == ()
