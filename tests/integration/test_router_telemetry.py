"""One `chat` span per attempt, in the caller's trace, continued to the provider, without a word of content."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from podium_core.domain.errors import PodiumError
from podium_core.runtime import attributes as names
from tests.fakes.router_rig import KEY, Rig, router_rig
from tests.fakes.upstream import answer, refusal

CANARY = "canary-question-8c1e"
ANSWER_CANARY = "canary-answer-77aa"


class Recorded:
    """Spans and metrics of one test."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")
        self._reader = InMemoryMetricReader()
        self.meter = MeterProvider([self._reader], shutdown_on_exit=False).get_meter("test")

    @property
    def chats(self) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.kind is SpanKind.CLIENT]

    def metrics(self) -> dict[str, list[Any]]:
        data: Any = self._reader.get_metrics_data()
        found: dict[str, list[Any]] = {}
        for resource in data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = list(metric.data.data_points)
        return found


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def stepping(rig: Rig, tracer: trace.Tracer, **changes: Any) -> trace.SpanContext:
    """Make an attempt inside a step span, as the gateway does."""
    with tracer.start_as_current_span(names.SPAN_STEP) as step:
        await rig.complete(rig.request(CANARY, **changes))
        return step.get_span_context()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_span_of_a_good_attempt(stream: bool, tls_dir: Path, tmp_path: Path) -> None:
    recorded = Recorded()
    async with router_rig(tls_dir, tmp_path, tracer=recorded.tracer, meter=recorded.meter) as rig:
        rig.upstream.default = answer(ANSWER_CANARY, reasoning=ANSWER_CANARY)
        step = await stepping(rig, recorded.tracer, stream=stream, round=1, step_index=2)
        (span,) = recorded.chats
        assert span.name == "chat w-model"
        assert span.parent is not None
        assert (span.parent.trace_id, span.parent.span_id) == (step.trace_id, step.span_id)
        sent = rig.upstream.requests[0].headers["traceparent"]
        context = span.get_span_context()
        assert context is not None
        assert sent.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")
        found = facts(span)
        assert (
            found
            | {
                names.OPERATION_NAME: "chat",
                names.PROVIDER_NAME: "openai-compatible",
                names.REQUEST_MODEL: "w-model",
                names.RESPONSE_MODEL: "served-model",
                names.RESPONSE_ID: "chatcmpl-1",
                names.RESPONSE_FINISH_REASONS: ("stop",),
                names.REQUEST_STREAM: stream,
                names.USAGE_INPUT_TOKENS: 12,
                names.USAGE_OUTPUT_TOKENS: 5,
                names.USAGE_CACHE_READ_INPUT_TOKENS: 4,
                names.USAGE_REASONING_OUTPUT_TOKENS: 2,
                names.ATTEMPT_ID: "att_1",
                names.RUN_ID: "run_1",
                names.PLAN_ROUND: 1,
                names.STEP_INDEX: 2,
                names.COST_USD_MICROS: 22,
                names.ATTEMPT_OUTCOME: "completed",
                names.POOL_DIGEST: rig.catalog.pool().pool_digest,
            }
            == found
        )
        assert (names.RESPONSE_TIME_TO_FIRST_CHUNK in found) is stream


async def test_the_span_of_a_failed_attempt(tls_dir: Path, tmp_path: Path) -> None:
    recorded = Recorded()
    async with router_rig(tls_dir, tmp_path, tracer=recorded.tracer, meter=recorded.meter) as rig:
        rig.upstream.default = refusal(500)
        with pytest.raises(PodiumError):
            await stepping(rig, recorded.tracer)
        (span,) = recorded.chats
        found = facts(span)
        assert found[names.ERROR_TYPE] == "PROVIDER_FAILED"
        assert found[names.HTTP_RESPONSE_STATUS_CODE] == 500
        assert found[names.RESPONSE_FINISH_REASONS] == ("error",)
        assert span.status.is_ok is False
        assert span.events == ()


async def test_no_attempt_no_span(tls_dir: Path, tmp_path: Path) -> None:
    recorded = Recorded()
    async with router_rig(tls_dir, tmp_path, tracer=recorded.tracer) as rig:
        with pytest.raises(PodiumError):
            await stepping(rig, recorded.tracer, worker_id="nobody")
        assert recorded.chats == []


async def test_nothing_of_the_content_or_the_key_is_told(tls_dir: Path, tmp_path: Path) -> None:
    recorded = Recorded()
    async with router_rig(tls_dir, tmp_path, tracer=recorded.tracer, meter=recorded.meter) as rig:
        for reply in (answer(ANSWER_CANARY), refusal(401, KEY), answer(ANSWER_CANARY).but(cut=True)):
            for stream in (False, True):
                rig.upstream.script.append(reply)
                try:
                    await stepping(rig, recorded.tracer, stream=stream)
                except PodiumError:
                    continue
        assert len(recorded.chats) == 6
        told = "".join(span.to_json() for span in recorded.chats) + str(recorded.metrics())
        for secret in (CANARY, ANSWER_CANARY, KEY):
            assert secret not in told


async def test_metrics_count_what_was_used(tls_dir: Path, tmp_path: Path) -> None:
    recorded = Recorded()
    async with router_rig(tls_dir, tmp_path, meter=recorded.meter) as rig:
        await rig.complete(rig.request(stream=True))
        await rig.complete()
        rig.upstream.script.append(refusal(429))
        with pytest.raises(PodiumError):
            await rig.complete()
        found = recorded.metrics()
        assert sum(point.value for point in found[names.METRIC_INPUT_TOKENS]) == 24
        assert sum(point.value for point in found[names.METRIC_CACHE_READ_INPUT_TOKENS]) == 8
        assert sum(point.value for point in found[names.METRIC_ATTEMPT_COST]) == 44
        assert sum(point.value for point in found[names.METRIC_ATTEMPTS_ACTIVE]) == 0
        attempts = {
            point.attributes[names.ATTEMPT_OUTCOME]: point.value for point in found[names.METRIC_ATTEMPTS]
        }
        assert attempts == {"completed": 2, "failed": 1}
        assert {point.attributes[names.WORKER_ID] for point in found[names.METRIC_ATTEMPTS]} == {"w"}
        assert sum(point.count for point in found[names.METRIC_INFERENCE_DURATION]) == 3
        assert sum(point.count for point in found[names.METRIC_TIME_TO_FIRST_CHUNK]) == 1


async def test_without_telemetry_no_trace_is_sent(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path) as rig:
        await rig.complete()
        assert "traceparent" not in rig.upstream.requests[0].headers
