"""Workers who answered the same sub-question: how far apart they are is recorded, and changes nothing else."""

from podium_core.domain.disagreement import METHOD
from podium_core.orchestration.request import RunRequest
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.worker import FakeWorkers, Reply

from .test_runner import DOWN, Bench, request

TWICE = plan_of(("a", "Solve it.", ()), ("b", "solve  it.", ()), ("c", "Compare.", (0, 1)))


async def _notes(workers: FakeWorkers, asked: RunRequest | None = None) -> list[dict[str, str]]:
    bench = Bench(FakePlanner(TWICE), workers)
    finished = await bench.finish(asked or request())
    assert finished.outcome == "answered"
    return [facts for kind, facts in bench.recorder.only.notes if kind == "disagreement"]


async def test_two_workers_with_two_answers_are_noted_with_method_and_score() -> None:
    workers = FakeWorkers(
        {"a": Reply("The answer is 42."), "b": Reply("The answer is 43."), "c": Reply("42")}
    )
    assert await _notes(workers) == [
        {"method": METHOD, "round": "0", "steps": "0,1", "workers": "a,b", "score_ppm": "1000000"}
    ]


async def test_agreement_is_noted_too() -> None:
    workers = FakeWorkers({"a": Reply("The answer is 42."), "b": Reply("answer: 42"), "c": Reply("42")})
    [facts] = await _notes(workers)
    assert facts["score_ppm"] == "0"


async def test_a_reply_that_never_came_is_no_opinion() -> None:
    workers = FakeWorkers({"a": Reply("The answer is 42."), "b": Reply(error=DOWN), "c": Reply("42")})
    assert await _notes(workers) == []
