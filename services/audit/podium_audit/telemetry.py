"""What the log tells operators: a span per record under the caller's, and figures of its commits."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from podium_audit.anchors import COSIGNATURE
from podium_audit.log.log import Figures
from podium_audit.records.commands import Applied
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime import attributes as names


class RecordSpans:
    """Makes the span of each writing call, as a child of the caller's; none without a caller's span."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def record(self, what: str, run_id: str, attempt_id: str = "") -> "RecordSpan":
        """Return a context manager over one call."""
        if not trace.get_current_span().get_span_context().is_valid:
            return RecordSpan(None)
        span = self._tracer.start_span(f"{names.SPAN_RECORD} {what}", kind=SpanKind.SERVER)
        if span.is_recording():
            span.set_attribute(names.RUN_ID, run_id)
            if attempt_id:
                span.set_attribute(names.ATTEMPT_ID, attempt_id)
        return RecordSpan(span)


class RecordSpan:
    """One call under way."""

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def committed(self, applied: Applied) -> None:
        """Note where the record is."""
        if self._span is not None and applied.leaf_indices:
            self._span.set_attribute(names.AUDIT_LEAF_INDEX, applied.leaf_indices[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        if self._span is None:
            return
        if error is not None:
            reason = error.reason if isinstance(error, PodiumError) else Code.INTERNAL.value
            self._span.set_attribute(names.ERROR_TYPE, reason)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class BudgetMetrics:
    """Counts the warnings that a share of a budget is used."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._warnings = meter.create_counter(names.METRIC_BUDGET_WARNINGS, "{warning}")

    def warned(self, tenant_id: str, percent: int) -> None:
        """One share of a tenant's budget is used for the first time this month."""
        self._warnings.add(1, {names.TENANT_ID: tenant_id, names.BUDGET_PERCENT: percent})


class AnchorMetrics:
    """What is tied down outside, by place, and what failed there."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._sizes: dict[tuple[str, str], int] = {}
        self._failures = meter.create_counter(names.METRIC_ANCHOR_FAILURES, "{anchor}")
        meter.create_observable_gauge(names.METRIC_ANCHORED_SIZE, [self._observe])

    def anchored(self, kind: str, name: str, size: int) -> None:
        """The newest anchor of a place holds `size` leaves; 0 for one that has given none yet."""
        self._sizes[kind, name] = size

    def failed(self, kind: str, name: str, *, is_alarm: bool) -> None:
        """A place gave no anchor; `is_alarm`: it may have found the log to be forked."""
        failure = "forked" if is_alarm else "unreached"
        self._failures.add(1, {**_place(kind, name), names.ANCHOR_FAILURE: failure})

    def _observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(size, _place(*place)) for place, size in list(self._sizes.items())]


def _place(kind: str, name: str) -> dict[str, str]:
    """Return the labels of a place: of a witness its name and hash, of no other place where it is."""
    place = "+".join(name.split("+")[:2]) if kind == COSIGNATURE else ""
    return {names.ANCHOR_KIND: kind, names.ANCHOR_PLACE: place}


def watch_health(meter: metrics.Meter, is_healthy: Callable[[], bool]) -> None:
    """Show whether the log can commit."""

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(int(is_healthy()))]

    meter.create_observable_gauge(names.METRIC_AUDIT_HEALTHY, [observe])


class CommitMetrics:
    """Figures of commits and of the log's state, over the metrics API."""

    def __init__(self, meter: metrics.Meter, figures: Callable[[], Figures]) -> None:
        self._figures = figures
        self._seconds = meter.create_histogram(names.METRIC_AUDIT_COMMIT_DURATION, "s")
        self._leaves = meter.create_histogram(
            names.METRIC_AUDIT_COMMIT_RECORDS,
            "{record}",
            explicit_bucket_boundaries_advisory=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
        )
        self._refused = meter.create_counter(names.METRIC_AUDIT_REFUSED, "{commit}")
        gauges: dict[str, Callable[[Figures], int]] = {
            names.METRIC_AUDIT_TREE_SIZE: lambda now: now.leaf_count,
            names.METRIC_AUDIT_RUNS_OPEN: lambda now: now.open_runs,
            names.METRIC_AUDIT_RESERVED: lambda now: now.reserved_usd_micros,
        }
        for name, figure in gauges.items():
            meter.create_observable_gauge(name, [self._observer(figure)])

    def committed(self, *, leaves: int, seconds: float) -> None:
        """One commit succeeded."""
        self._seconds.record(seconds)
        self._leaves.record(leaves)

    def refused(self) -> None:
        """One commit failed, or an operation found no room in the queue or waited in vain."""
        self._refused.add(1)

    def _observer(
        self, figure: Callable[[Figures], int]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _options: [Observation(figure(self._figures()))]
