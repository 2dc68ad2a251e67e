"""The `chat` span and the counters of provider calls. Numbers and names only, never content."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from podium_core.domain.clock import Clock
from podium_core.domain.pool import Health
from podium_core.runtime import attributes as names
from podium_core.runtime.attributes import usage_attributes
from podium_router.attempt import Attempt

_US_PER_S: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_TRACEPARENT: Final = "traceparent"
_PROVIDER_NAMES: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
}
"""What the GenAI conventions call them; the others have the same name there."""

_trace_context = TraceContextTextMapPropagator()


def watch_workers(meter: metrics.Meter, healths: Callable[[], Mapping[str, Health]]) -> None:
    """Offer the health of each worker as a gauge: 1 under the health that it has now."""

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(1, {names.WORKER_ID: worker_id, names.WORKER_HEALTH: health.value})
            for worker_id, health in healths().items()
        ]

    meter.create_observable_gauge(names.METRIC_WORKERS, [observe], "{worker}", "Workers by health")


class ChatTelemetry:
    """Makes one span per provider call and counts what the calls used."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock
        self._is_counting = not isinstance(meter, metrics.NoOpMeter)
        self._duration = meter.create_histogram(names.METRIC_INFERENCE_DURATION, "s")
        self._first_chunk = meter.create_histogram(names.METRIC_TIME_TO_FIRST_CHUNK, "s")
        self._attempts = meter.create_counter(names.METRIC_ATTEMPTS, "{attempt}")
        self._active = meter.create_up_down_counter(names.METRIC_ATTEMPTS_ACTIVE, "{attempt}")
        self._waiting = meter.create_up_down_counter(names.METRIC_QUEUE_WAITING, "{attempt}")
        self._waited = meter.create_histogram(names.METRIC_QUEUE_DURATION, "s")
        self._cost = meter.create_counter(names.METRIC_ATTEMPT_COST, "{usd_micro}")
        self._tokens = {
            field: meter.create_counter(metric, "{token}")
            for field, (_, metric) in names.USAGE_FIELDS.items()
        }

    @contextmanager
    def queued(self, worker_id: str) -> Generator[None, None, None]:
        """Measure the wait for a place at a worker."""
        if not self._is_counting:
            yield
            return
        labels = {names.WORKER_ID: worker_id}
        started_ns = self._clock.monotonic_ns()
        self._waiting.add(1, labels)
        try:
            yield
        finally:
            self._waiting.add(-1, labels)
            self._waited.record((self._clock.monotonic_ns() - started_ns) / _NS_PER_S, labels)

    def begin(self, attempt: Attempt, leaf_index: int) -> Span:
        """Begin the span of an attempt, as a child of the caller's."""
        name = f"{names.SPAN_CHAT} {attempt.route.worker.provider_model}"
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT)
        if span.is_recording():
            span.set_attributes(_request_attributes(attempt, leaf_index))
        self._active.add(1)
        return span

    def ended(self, span: Span, attempt: Attempt) -> None:
        """Close the span of an attempt and count it."""
        if span.is_recording():
            span.set_attributes(_response_attributes(attempt))
            if attempt.error is not None:
                span.set_status(Status(StatusCode.ERROR))
        span.end()
        self._active.add(-1)
        if self._is_counting:
            self._count(attempt)

    def _count(self, attempt: Attempt) -> None:
        worker = attempt.route.worker
        usage = attempt.usage
        labels = {
            names.OPERATION_NAME: names.OPERATION_CHAT,
            names.PROVIDER_NAME: _PROVIDER_NAMES.get(worker.provider, worker.provider),
            names.REQUEST_MODEL: worker.provider_model,
        }
        ours = {names.WORKER_ID: worker.worker_id, names.ATTEMPT_KIND: attempt.call.kind.value}
        for field, counter in self._tokens.items():
            if count := getattr(usage, field):
                counter.add(count, labels)
        self._cost.add(attempt.cost_usd_micros, ours)
        self._attempts.add(1, {**ours, names.ATTEMPT_OUTCOME: attempt.outcome.value})
        if attempt.first_delta_us:
            self._first_chunk.record(attempt.first_delta_us / _US_PER_S, labels)
        if attempt.error is not None:
            labels = {**labels, names.ERROR_TYPE: attempt.error.reason}
        self._duration.record(attempt.latency_us / _US_PER_S, labels)


def traceparent(span: Span) -> str:
    """Return the header that makes the provider's spans children of `span`; empty when not recording."""
    if not span.is_recording():
        return ""
    carrier: dict[str, str] = {}
    _trace_context.inject(carrier, trace.set_span_in_context(span))
    return carrier.get(_TRACEPARENT, "")


def _request_attributes(attempt: Attempt, leaf_index: int) -> dict[str, AttributeValue]:
    call, route = attempt.call, attempt.route
    worker = route.worker
    return {
        names.OPERATION_NAME: names.OPERATION_CHAT,
        names.PROVIDER_NAME: _PROVIDER_NAMES.get(worker.provider, worker.provider),
        names.REQUEST_MODEL: worker.provider_model,
        names.REQUEST_MAX_TOKENS: attempt.max_output_tokens,
        names.REQUEST_STREAM: call.stream,
        names.SERVER_ADDRESS: route.url.raw_host or "",
        names.SERVER_PORT: route.url.port or 0,
        names.RUN_ID: call.run_id,
        names.ATTEMPT_ID: call.attempt_id,
        names.ATTEMPT_KIND: call.kind.value,
        names.PLAN_ROUND: call.round,
        names.STEP_INDEX: call.step_index,
        names.WORKER_ID: worker.worker_id,
        names.WORKER_IS_DEMO: worker.is_demo,
        names.POOL_DIGEST: route.pool_digest,
        names.AUDIT_LEAF_INDEX: leaf_index,
    }


def _response_attributes(attempt: Attempt) -> dict[str, AttributeValue]:
    facts: dict[str, AttributeValue] = {
        names.ATTEMPT_OUTCOME: attempt.outcome.value,
        names.COST_USD_MICROS: attempt.cost_usd_micros,
        # A call that was cut still ends its one choice: in an error.
        names.RESPONSE_FINISH_REASONS: (attempt.answer.finish_reason or "error",),
        **usage_attributes(attempt.usage),
    }
    if attempt.response_id:
        facts[names.RESPONSE_ID] = attempt.response_id
    if attempt.served_model:
        facts[names.RESPONSE_MODEL] = attempt.served_model
    if attempt.first_delta_us:
        facts[names.RESPONSE_TIME_TO_FIRST_CHUNK] = attempt.first_delta_us / _US_PER_S
    if attempt.error is not None:
        facts[names.ERROR_TYPE] = attempt.error.reason
        if "status" in attempt.error.metadata:
            facts[names.HTTP_RESPONSE_STATUS_CODE] = int(attempt.error.metadata["status"])
    return facts
