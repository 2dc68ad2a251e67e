"""Planning keeps its bounds: time, number, steps, and the caller's patience."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, StatusCode

from podium_conductor.planning import Planning, PlanningLimits
from podium_conductor.telemetry import PlanTelemetry
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import PlanSource
from podium_core.domain.plan_format import PlanFormatError, PlanRule
from podium_core.orchestration.ports import PlanQuery
from podium_core.runtime import attributes as names
from tests.fakes.engine import FakeEngine
from tests.fakes.ids import FakeClock

from .planned import ENGINE, query

LIMITS = PlanningLimits()
METER = NoOpMeterProvider().get_meter("test")
CANARY = "Count the letters in the word tangerine, then write the result in Roman numerals"


def planning(
    engine: FakeEngine, *, limits: PlanningLimits = LIMITS, clock: FakeClock | None = None
) -> Planning:
    clock = clock or FakeClock()
    return Planning(
        engine, PlanTelemetry(NoOpTracerProvider().get_tracer("test"), METER, clock), clock, limits
    )


async def test_a_plan_names_the_tokenizer_and_the_template_that_made_it() -> None:
    reply = await planning(FakeEngine()).plan(query("hi"))
    assert (reply.tokenizer_digest, reply.template_digest) == ("1" * 64, "2" * 64)


async def test_a_plan_made_before_a_switch_does_not_name_the_new_models_parts() -> None:
    engine = FakeEngine()
    loaded = replace(engine.describe(), model_digest="e" * 64)
    engine.describe = lambda: loaded  # type: ignore[method-assign]
    reply = await planning(engine).plan(query("hi"))
    assert (reply.model_digest, reply.template_digest) == ("f" * 64, "")


async def test_the_engine_gets_the_deadline_and_the_tighter_step_cap() -> None:
    deadlines: list[int] = []

    async def behave(_: PlanQuery, deadline_ns: int) -> None:
        deadlines.append(deadline_ns)
        clock.advance(0.25)

    clock = FakeClock(steady_ns=1_000)
    engine = FakeEngine(behave)
    limits = PlanningLimits(max_steps=3, max_plan_s=2.0)
    reply = await planning(engine, limits=limits, clock=clock).plan(query("hi", max_steps=4))
    await planning(engine, limits=limits, clock=clock).plan(replace(query("hi", max_steps=2), timeout_s=1.0))
    assert [q.caps.max_steps for q in engine.queries] == [3, 2]
    assert deadlines == [1_000 + 2_000_000_000, 250_001_000 + 1_000_000_000]
    assert reply.latency_us == 250_000


async def test_time_ends_with_a_deadline_and_stops_the_engine() -> None:
    async def hang(_: PlanQuery, __: int) -> None:
        await asyncio.Event().wait()

    engine = FakeEngine(hang)
    with pytest.raises(PodiumError) as failed:
        await planning(engine).plan(replace(query("hi"), timeout_s=0.01))
    assert (failed.value.code, failed.value.reason) == (Code.DEADLINE, "PLAN_DEADLINE")
    assert engine.cancelled == 1


async def test_no_time_at_all_is_a_deadline_too() -> None:
    with pytest.raises(PodiumError) as failed:
        await planning(FakeEngine(lambda _, __: asyncio.sleep(0))).plan(replace(query("hi"), timeout_s=0.0))
    assert failed.value.code is Code.DEADLINE


async def test_a_caller_that_leaves_stops_the_engine_and_frees_its_place() -> None:
    started, free = asyncio.Event(), asyncio.Event()

    async def behave(_: PlanQuery, __: int) -> None:
        if not free.is_set():
            started.set()
            await asyncio.Event().wait()

    engine = FakeEngine(behave)
    service = planning(engine, limits=PlanningLimits(max_running=1))
    leaving = asyncio.create_task(service.plan(query("hi")))
    await started.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    free.set()
    assert engine.cancelled == 1
    assert (await service.plan(query("hi"))).plan.steps


async def test_plans_under_way_and_waiting_are_bounded() -> None:
    gate = asyncio.Event()

    async def wait(_: PlanQuery, __: int) -> None:
        await gate.wait()

    engine = FakeEngine(wait)
    service = planning(engine, limits=PlanningLimits(max_running=2, max_waiting=3))
    running = [asyncio.create_task(service.plan(query("hi"))) for _ in range(5)]
    await asyncio.sleep(0)
    with pytest.raises(PodiumError) as failed:
        await service.plan(query("hi"))
    assert (failed.value.code, failed.value.reason) == (Code.RATE_LIMITED, "PLANS_QUEUE_FULL")
    assert failed.value.retry_after_s == 1.0
    gate.set()
    await asyncio.gather(*running)
    assert engine.most_running == 2
    assert (await service.plan(query("hi"))).plan.source is PlanSource.MODEL, "the queue is free again"


async def test_queries_that_make_no_sense_are_refused() -> None:
    asked = query("hi")
    for broken in (replace(asked, workers=asked.workers * 2), replace(asked, round=1)):
        with pytest.raises(PodiumError) as failed:
            await planning(FakeEngine()).plan(broken)
        assert failed.value.code is Code.INVALID_REQUEST


async def test_a_broken_plan_names_its_rule() -> None:
    async def break_rule(_: PlanQuery, __: int) -> None:
        raise PlanFormatError(PlanRule.NO_TRIPLE, "no lists")

    with pytest.raises(PodiumError) as failed:
        await planning(FakeEngine(break_rule)).plan(query("hi"))
    assert (failed.value.code, failed.value.reason) == (Code.PLAN_INVALID, "PLAN_NO_TRIPLE")


def _watched(behave: FakeEngine | None) -> tuple[Planning, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = PlanTelemetry(provider.get_tracer("test"), METER, FakeClock())
    return Planning(behave or ENGINE, telemetry, FakeClock(), PlanningLimits()), exporter


def _facts(attributes: Mapping[str, object] | None) -> dict[str, object]:
    return dict(attributes or {})


async def test_the_span_says_what_was_planned_but_never_the_question() -> None:
    service, exporter = _watched(None)
    await service.plan(query(CANARY))
    (span,) = exporter.get_finished_spans()
    facts = _facts(span.attributes)
    assert span.name == names.SPAN_PLAN
    assert facts[names.PLAN_SOURCE] == "embedded"
    assert facts[names.PLAN_STEP_COUNT] == 2
    assert facts[names.RUN_ID] == "run_1"
    assert facts[names.CONDUCTOR_MODEL_DIGEST] == ENGINE.describe().model_digest
    assert "tangerine" not in span.to_json()


async def test_the_span_of_a_failure_names_the_reason_only() -> None:
    async def break_rule(_: PlanQuery, __: int) -> None:
        raise PodiumError(Code.UNAVAILABLE, "tangerine", reason="MODEL_GONE")

    service, exporter = _watched(FakeEngine(break_rule))
    with pytest.raises(PodiumError):
        await service.plan(query(CANARY))
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert _facts(span.attributes)[names.ERROR_TYPE] == "MODEL_GONE"
    assert "tangerine" not in span.to_json()
