"""The `plan` span and the figures of planning. Numbers and names only, never the question or the plan."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Protocol

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.util.types import AttributeValue

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.ports import PlanQuery, PlanReply
from podium_core.runtime import attributes as names

_NANOS_PER_S = 1_000_000_000


class ModelLoad(Protocol):
    """What a language model in this process is doing."""

    @property
    def running(self) -> int:
        """Texts that are being generated."""
        ...

    @property
    def waiting(self) -> int:
        """Texts that wait for a place."""
        ...

    @property
    def kv_cache(self) -> float:
        """Used share of the memory for prompts."""
        ...


def watch_load(meter: metrics.Meter, load: Callable[[], ModelLoad]) -> None:
    """Offer the model's load as gauges."""

    def gauge(name: str, unit: str, description: str, read: Callable[[ModelLoad], float]) -> None:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(read(load()))]

        meter.create_observable_gauge(name, [observe], unit, description)

    gauge(names.METRIC_MODEL_RUNNING, "{text}", "Texts being generated", lambda seen: seen.running)
    gauge(names.METRIC_MODEL_WAITING, "{text}", "Texts that wait for a place", lambda seen: seen.waiting)
    gauge(names.METRIC_MODEL_CACHE, "1", "Used share of the prompt memory", lambda seen: seen.kv_cache)


class PlanWatch:
    """One plan under way."""

    __slots__ = ("_span", "source")

    def __init__(self, span: Span) -> None:
        self._span = span
        self.source = ""

    def planned(self, reply: PlanReply) -> None:
        """Note the plan that was made."""
        plan = reply.plan
        self.source = plan.source.value
        if self._span.is_recording():
            self._span.set_attributes(
                {
                    names.PLAN_SOURCE: plan.source.value,
                    names.PLAN_STEP_COUNT: len(plan.steps),
                    names.PLAN_DEPTH: plan.depth,
                    names.PLAN_GENERATION_COUNT: reply.generation_count,
                    names.CONDUCTOR_MODEL_DIGEST: reply.model_digest,
                    **names.usage_attributes(reply.usage),
                }
            )


class PlanTelemetry:
    """Makes one span per plan, below the caller's run, and counts plans."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock
        self._plans = meter.create_counter(names.METRIC_PLANS, "{plan}", "Plans by source and failure")
        self._duration = meter.create_histogram(names.METRIC_PLAN_DURATION, "s", "From request to plan")

    @contextmanager
    def watch(self, query: PlanQuery) -> Generator[PlanWatch, None, None]:
        """Watch the making of one plan."""
        attributes: dict[str, AttributeValue] = {
            names.OPERATION_NAME: names.OPERATION_PLAN,
            names.RUN_ID: query.run_id,
            names.TIER: query.tier,
            names.PLAN_ROUND: query.round,
            names.POOL_ELIGIBLE_COUNT: len(query.workers),
        }
        started_ns = self._clock.monotonic_ns()
        labels: dict[str, str] = {}
        with self._tracer.start_as_current_span(
            names.SPAN_PLAN,
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            watch = PlanWatch(span)
            labels[names.ERROR_TYPE] = Code.INTERNAL.value
            try:
                yield watch
                del labels[names.ERROR_TYPE]
            except PodiumError as error:
                labels[names.ERROR_TYPE] = error.reason
                raise
            finally:
                if names.ERROR_TYPE in labels:
                    span.set_attribute(names.ERROR_TYPE, labels[names.ERROR_TYPE])
                    span.set_status(StatusCode.ERROR)
                else:
                    labels[names.PLAN_SOURCE] = watch.source
                self._plans.add(1, labels)
                self._duration.record((self._clock.monotonic_ns() - started_ns) / _NANOS_PER_S, labels)
