"""Images in plans: whoever sees them is shown them, the others read a note, and somebody heard has seen them."""

from contextlib import suppress
from dataclasses import replace

import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import StaticPlan
from podium_core.domain.pool import Pool, Worker
from podium_core.domain.run import Caps, Message, Question, RunKind
from podium_core.orchestration.events import Planned, RunEvent
from podium_core.orchestration.ports import StepCall
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from podium_core.orchestration.sight import IMAGE_OMITTED
from tests.fakes.ids import CountingIds
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers

DATA = "data:image/png;base64,AA"
SEES = frozenset({"text", "image"})


def seeing(worker_id: str, *features: str, skill: str = "see") -> Worker:
    return worker(worker_id, modalities=SEES, features=frozenset(features), skills={skill: 500_000})


MIXED = pool(seeing("eye"), worker("pen", skills={"see": 900_000}))


def shown(url: str = DATA, text: str = "what is this?") -> Message:
    content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
    return Message("user", text, {"role": "user", "content": content})


def said(text: str, role: str = "user") -> Message:
    return Message(role, text, {"role": role, "content": text})


def request(*messages: Message, **changes: object) -> RunRequest:
    question = Question(messages or (shown(),))
    base = RunRequest("run_1", RunKind.CHAT, "t", "k", "podium", "podium", question, Caps())
    return replace(base, **changes)  # type: ignore[arg-type]


class Bench:
    """A runner over fakes."""

    def __init__(self, *turns: object) -> None:
        self.planner = FakePlanner(*turns)  # type: ignore[arg-type]
        self.workers, self.recorder = FakeWorkers(), FakeRecorder()
        self.runner = Runner(self.planner, self.workers, self.recorder, SystemClock(), CountingIds())

    async def run(self, asked: RunRequest, of: Pool = MIXED) -> list[RunEvent]:
        return [event async for event in self.runner.run(asked, of)]

    def call(self, worker_id: str) -> StepCall:
        (call,) = self.workers.calls_of(worker_id)
        return call


def text_of(call: StepCall) -> str:
    return "".join(piece.text for piece in call.prompt.pieces) or call.prompt.question.text


async def test_one_worker_looks_and_another_reads_what_it_saw() -> None:
    bench = Bench(plan_of(("eye", "describe it", ()), ("pen", "write it down", (0,))))
    await bench.run(request())
    assert bench.call("eye").prompt.question.image_count == 1
    assert IMAGE_OMITTED not in text_of(bench.call("eye"))
    assert bench.call("pen").prompt.question.image_count == 0
    assert f"what is this?\n{IMAGE_OMITTED}" in text_of(bench.call("pen"))
    assert all(verdict.allowed for verdict in bench.recorder.only.opened.verdicts)


async def test_images_of_earlier_messages_are_noted_in_their_place() -> None:
    bench = Bench(plan_of(("pen", "", ()), ("eye", "", (0,))))
    sound = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
    picture = {"type": "image_url", "image_url": {"url": DATA}}
    both = Message("user", "", {"role": "user", "content": [picture, sound, picture]})
    hears = pool(
        *(replace(w, card=replace(w.card, modalities=w.card.modalities | {"audio"})) for w in MIXED.workers)
    )
    await bench.run(request(both, said("I see.", "assistant"), said("so what is it?")), hears)
    prompt = bench.call("pen").prompt
    note = {"type": "text", "text": f"{IMAGE_OMITTED}\n{IMAGE_OMITTED}"}
    assert prompt.history[0].fields == {"role": "user", "content": [note, sound]}
    assert prompt.history[1:] == (said("I see.", "assistant"),)
    assert prompt.question == said("so what is it?")
    assert bench.call("eye").prompt.history[0] == both


async def test_a_plan_that_looks_at_nothing_is_made_again_by_those_who_see() -> None:
    bench = Bench(plan_of(("eye", "", ()), ("pen", "", ())), plan_of(("eye", "", ())))
    events = await bench.run(request())
    assert [[w.worker_id for w in query.workers] for query in bench.planner.queries] == [
        ["eye", "pen"],
        ["eye"],
    ]
    assert [call.worker_id for call in bench.workers.calls] == ["eye"]
    (planned,) = [event for event in events if isinstance(event, Planned)]
    assert planned.reply.fallback_reason == ""


async def test_without_a_plan_the_one_worker_is_one_that_sees() -> None:
    bench = Bench(PodiumError(Code.PLAN_INVALID, "no", reason="NO"))
    events = await bench.run(request())
    (planned,) = [event for event in events if isinstance(event, Planned)]
    (step,) = planned.reply.plan.steps
    assert (step.worker_id, step.fallback_worker_id) == ("eye", None)


async def test_whoever_stands_in_sees_as_much() -> None:
    workers = pool(
        seeing("eye"), seeing("lens"), worker("pen", skills={"see": 1}), worker("ink", skills={"see": 1})
    )
    bench = Bench(plan_of(("eye", "", ()), ("pen", "", (0,))))
    await bench.run(request(), workers)
    opened = bench.recorder.only.opened
    assert opened.plan is not None
    assert [step.fallback_worker_id for step in opened.plan.plan.steps] == ["lens", "ink"]


async def test_a_later_round_may_build_on_an_answer_that_has_seen() -> None:
    first, later = plan_of(("eye", "", ())), plan_of(("pen", "", ()), round_=1)
    step = replace(later.steps[0], access=replace(later.steps[0].access, previous_round=True))
    bench = Bench(first, replace(later, steps=(step,)))
    await bench.run(request(caps=Caps(max_rounds=2)))
    assert [call.worker_id for call in bench.workers.calls] == ["eye", "pen"]


async def test_an_address_is_shown_to_those_alone_that_fetch_it() -> None:
    bench = Bench(plan_of(("fetches", "", ()), ("eye", "", (0,))))
    await bench.run(request(shown("https://x/y.png")), pool(seeing("fetches", "image_urls"), seeing("eye")))
    assert bench.call("fetches").prompt.question.image_count == 1
    assert bench.call("eye").prompt.question.image_count == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"named_worker_id": "pen"},
        {"tier": "podium-fast"},
        {"caps": Caps(max_steps=1)},
        {"static_plan": StaticPlan("two", plan_of(("eye", "", ()), ("pen", "", (0,))), "digest")},
    ],
)
async def test_where_nobody_can_look_for_it_a_worker_must_see(changes: dict[str, object]) -> None:
    bench = Bench(plan_of(("eye", "", ())))
    with suppress(PodiumError):  # where the blind one was asked for by name
        await bench.run(request(**changes))
    rules = {v.worker_id: v.rule_id for v in bench.recorder.only.opened.verdicts}
    assert rules["pen"] == "capability.image"
    assert bench.workers.calls_of("pen") == []


async def test_where_nobody_sees_everybody_is_told_why() -> None:
    bench = Bench()
    with pytest.raises(PodiumError) as caught:
        await bench.run(request(), pool(worker("pen"), worker("ink")))
    assert caught.value.reason == "NO_CAPABLE_WORKER"
    assert "pen: capability.image, ink: capability.image" in caught.value.message
