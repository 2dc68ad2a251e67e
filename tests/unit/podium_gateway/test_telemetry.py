"""What operators see of a run: a span per stage, whose trace it is, outcomes counted, no content."""

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.policy import Reach, WorkerFilter
from podium_core.domain.run import Caps, RunKind
from podium_core.orchestration.request import RunRequest
from podium_core.orchestration.runner import Runner
from podium_core.runtime.telemetry import Telemetry
from podium_gateway.telemetry import RunTelemetry
from tests.fakes.ids import CountingIds, FakeClock
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, question, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
POOL = pool(worker("alpha"), worker("beta"), worker("gamma"))
CANARY = "canaryword"


class Observed:
    """A telemetry whose spans and metrics stay in memory."""

    def __init__(self, *trusted: str) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meter = MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False).get_meter("test")
        self.clock = FakeClock()
        self.runs = RunTelemetry(
            Telemetry(provider.get_tracer("test"), meter), self.clock, frozenset(trusted)
        )

    async def run(self, headers: dict[str, str] | None = None, reply: Reply | None = None) -> None:
        """Perform one run of two steps in a task of its own, as the edge does."""
        planner = FakePlanner(plan_of(("alpha", "compute", ()), ("beta", "say", (0,))))
        workers = FakeWorkers(default=reply or Reply(CANARY))
        ids = CountingIds()
        runner = Runner(planner, workers, FakeRecorder(), self.clock, ids, observer=self.runs)
        request = RunRequest(
            "run_1",
            RunKind.CHAT,
            "acme",
            "key-1",
            "podium",
            "podium",
            question(CANARY),
            Caps(max_attempts_per_step=1),
            reach=(Reach("tenant", WorkerFilter(excluded=frozenset({"gamma"}))),),
        )

        async def watched() -> None:
            with self.runs.watch(request, headers or {}) as watch:
                async for event in runner.run(request, POOL):
                    watch(event)

        await asyncio.create_task(watched())

    def spans(self) -> dict[str, ReadableSpan]:
        """Return the finished spans by name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def metric(self, name: str) -> list[Any]:
        """Return a metric's data points."""
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return [point for m in metrics if m.name == name for point in m.data.data_points]


async def test_a_run_holds_policy_and_steps() -> None:
    observed = Observed()
    await observed.run()
    spans = observed.spans()
    assert set(spans) == {"invoke_workflow podium", "policy", "invoke_agent alpha", "invoke_agent beta"}
    run = spans["invoke_workflow podium"]
    assert run.parent is None
    for name in ("policy", "invoke_agent alpha", "invoke_agent beta"):
        parent = spans[name].parent
        assert parent is not None
        assert parent.span_id == run.context.span_id
    attributes = dict(run.attributes or {})
    assert attributes["podium.run.outcome"] == "answered"
    assert attributes["podium.plan.step_count"] == 2
    assert attributes["podium.plan.source"] == "rules"
    assert attributes["podium.policy.rule_ids"] == ("tenant.workers.except",)
    seen = [
        dict(spans[f"invoke_agent {name}"].attributes or {})["podium.step.access"]
        for name in ("alpha", "beta")
    ]
    assert seen == [(), (0,)]
    assert attributes["gen_ai.usage.output_tokens"] == 10
    assert CANARY not in "".join(span.to_json() for span in observed.exporter.get_finished_spans())


async def test_a_strangers_trace_is_linked_and_a_trusted_one_continued() -> None:
    strange, trusted = Observed(), Observed("acme")
    for observed in (strange, trusted):
        await observed.run({"traceparent": TRACEPARENT})
    run = strange.spans()["invoke_workflow podium"]
    assert run.parent is None
    assert [f"{link.context.trace_id:032x}" for link in run.links] == [TRACEPARENT[3:35]]
    assert run.context.trace_id != run.links[0].context.trace_id
    parent = trusted.spans()["invoke_workflow podium"].parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == TRACEPARENT[36:52]


@pytest.mark.parametrize("header", ["", "00-0-0-00", "nonsense"])
async def test_a_broken_traceparent_is_no_trace(header: str) -> None:
    observed = Observed("acme")
    await observed.run({"traceparent": header})
    run = observed.spans()["invoke_workflow podium"]
    assert run.parent is None
    assert not run.links


async def test_a_failed_run_is_an_error_by_its_reason_without_its_text() -> None:
    observed = Observed()
    await observed.run(reply=Reply(error=PodiumError(Code.PROVIDER_FAILED, CANARY)))
    run = observed.spans()["invoke_workflow podium"]
    attributes = dict(run.attributes or {})
    assert attributes["error.type"] == "PROVIDER_FAILED"
    assert attributes["podium.run.outcome"] == "failed"
    assert not run.status.is_ok
    assert CANARY not in run.to_json()


async def test_runs_are_counted_by_outcome() -> None:
    observed = Observed()
    await observed.run()
    await observed.run(reply=Reply(error=PodiumError(Code.PROVIDER_FAILED, "x")))
    by_outcome = {p.attributes["podium.run.outcome"]: p.value for p in observed.metric("podium.runs")}
    assert by_outcome == {"answered": 1, "failed": 1}
    assert [p.value for p in observed.metric("podium.runs.active")] == [0]
    assert sum(p.count for p in observed.metric("podium.run.duration")) == 2
    steps = {
        p.attributes["gen_ai.agent.name"]: p.count for p in observed.metric("gen_ai.invoke_agent.duration")
    }
    assert steps == {"alpha": 2, "beta": 2}
