"""What operators see of runs: one span each, one child per stage, and a handful of metrics.

No content, no identities beyond tenant and run. The runner knows only its ObserverPort; the chat and plan
spans are made by the router and the conductor below the context that travels with their calls.
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_core.domain.limits import LimitName
from podium_core.orchestration.events import Planned, RunEvent, RunFinished
from podium_core.orchestration.ports import Facts
from podium_core.orchestration.request import RunRequest
from podium_core.runtime import attributes as names
from podium_core.runtime.telemetry import Telemetry
from podium_gateway.live_run import Watch

_TRACEPARENT = "traceparent"
_propagator = TraceContextTextMapPropagator()


class RunTelemetry:
    """Spans and metrics of runs; also the runner's observer."""

    def __init__(self, telemetry: Telemetry, clock: Clock, trusted_tenants: frozenset[str]) -> None:
        self._tracer = telemetry.tracer
        self._clock = clock
        self._trusted = trusted_tenants
        meter = telemetry.meter
        self._is_tracing = not isinstance(self._tracer, trace.NoOpTracer)
        self._is_counting = not isinstance(meter, metrics.NoOpMeter)
        self._runs = meter.create_counter(names.METRIC_RUNS, "{run}", "Runs by outcome")
        self._active = meter.create_up_down_counter(names.METRIC_RUNS_ACTIVE, "{run}", "Runs under way")
        self._duration = meter.create_histogram(names.METRIC_RUN_DURATION, "s", "From admission to seal")
        self._first_output = meter.create_histogram(
            names.METRIC_RUN_FIRST_OUTPUT, "s", "From admission to the first output a client was sent"
        )
        self._steps = meter.create_histogram(
            names.METRIC_INVOKE_AGENT_DURATION, "s", "Steps, attempts included"
        )
        self._cost = meter.create_counter(names.METRIC_RUN_COST, "{usd_micro}", "What runs cost")
        self._fallbacks = meter.create_counter(names.METRIC_PLAN_FALLBACKS, "{plan}", "Plans by reason")
        self._rounds = meter.create_counter(names.METRIC_ROUNDS, "{round}", "Rounds after the first")
        self._limited = meter.create_counter(names.METRIC_LIMIT_REFUSALS, "{request}", "Refused by a limit")
        self._refusals = meter.create_counter(names.METRIC_REFUSALS, "{request}", "Requests refused")

    def span(self, stage: str, facts: Facts) -> AbstractContextManager[None]:
        """Watch one stage of a run, as `podium_core.orchestration.ports.ObserverPort` asks."""
        if stage == "step" and (self._is_tracing or self._is_counting):
            return self._step(facts)
        if stage == "policy" and self._is_tracing:
            return self._policy(facts)
        return nullcontext()

    @contextmanager
    def watch(self, request: RunRequest, headers: Mapping[str, str]) -> Generator[Watch, None, None]:
        """Watch one run: yields what must be told of each event."""
        parent, links = self._origin(request.tenant_id, headers)
        started_ns = self._clock.monotonic_ns()
        told: list[RunEvent] = []

        def watch(event: RunEvent) -> None:
            if isinstance(event, (Planned, RunFinished)):
                told.append(event)

        self._active.add(1)
        outcome, error_type = "cancelled", ""
        try:
            with self._tracer.start_as_current_span(
                f"{names.SPAN_RUN} {request.tier}",
                context=parent,
                kind=SpanKind.INTERNAL,
                attributes=_run_attributes(request),
                links=links,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                try:
                    yield watch
                except PodiumError as error:
                    outcome, error_type = "refused", error.reason
                    raise
                finally:
                    last = told[-1] if told else None
                    if isinstance(last, RunFinished):
                        outcome = last.outcome.value
                        error_type = last.error.reason if last.error else ""
                    if span.is_recording():
                        _close(span, told, outcome, error_type)
        finally:
            self._count(request, outcome, started_ns, told)

    def first_output(self, request: RunRequest, started_ns: int) -> None:
        """Note that the client has been sent its first output."""
        elapsed_s = (self._clock.monotonic_ns() - started_ns) / 1e9
        self._first_output.record(elapsed_s, {names.TIER: request.tier})

    def refused(self, error: PodiumError) -> None:
        """Note a request that was answered with an error."""
        self._refusals.add(1, {names.ERROR_TYPE: error.reason})

    def limited(self, name: LimitName) -> None:
        """Note a request that a limit of its key or tenant refused."""
        labels = {names.LIMIT_KIND: name.kind.value, names.LIMIT_SCOPE: name.scope}
        self._limited.add(1, {**labels, names.TENANT_ID: name.tenant_id})

    def _count(self, request: RunRequest, outcome: str, started_ns: int, told: list[RunEvent]) -> None:
        labels = {names.RUN_OUTCOME: outcome, names.TIER: request.tier}
        self._active.add(-1)
        self._runs.add(1, labels)
        self._duration.record((self._clock.monotonic_ns() - started_ns) / 1e9, labels)
        for event in told:
            if isinstance(event, RunFinished):
                self._cost.add(event.cost_usd_micros, {names.TENANT_ID: request.tenant_id})
                for result in event.rounds[1:]:
                    self._rounds.add(1, {names.TIER: request.tier, names.ROUND_RESULT: result.effect})
            elif isinstance(event, Planned) and event.reply.fallback_reason:
                reason = {names.PLAN_FALLBACK_REASON: event.reply.fallback_reason}
                self._fallbacks.add(1, {names.TIER: request.tier, **reason})

    def _origin(self, tenant_id: str, headers: Mapping[str, str]) -> tuple[Context | None, list[Link]]:
        """Return the trace to continue (trusted callers only) and the one to link."""
        if _TRACEPARENT not in headers:
            return None, []
        context = _propagator.extract({_TRACEPARENT: headers[_TRACEPARENT]})
        remote = trace.get_current_span(context).get_span_context()
        if not remote.is_valid:
            return None, []
        return (context, []) if tenant_id in self._trusted else (None, [Link(remote)])

    @contextmanager
    def _policy(self, facts: Facts) -> Generator[None, None, None]:
        attributes = {
            names.RUN_ID: facts["run_id"],
            names.POOL_WORKER_COUNT: facts.get("worker_count", 0),
        }
        with self._tracer.start_as_current_span(
            names.SPAN_POLICY, attributes=attributes, record_exception=False, set_status_on_exception=False
        ):
            yield

    @contextmanager
    def _step(self, facts: Facts) -> Generator[None, None, None]:
        worker_id = str(facts["worker_id"])
        started_ns = self._clock.monotonic_ns()
        attributes = {
            names.OPERATION_NAME: names.OPERATION_INVOKE_AGENT,
            names.AGENT_NAME: worker_id,
            names.WORKER_ID: worker_id,
            names.RUN_ID: facts["run_id"],
            names.PLAN_ROUND: facts["round"],
            names.STEP_INDEX: facts["step_index"],
            names.STEP_ACCESS: facts["access"],
            names.STEP_SEES_PREVIOUS_ROUND: facts["sees_previous_round"],
        }
        with self._tracer.start_as_current_span(
            f"{names.SPAN_STEP} {worker_id}",
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ):
            yield
        elapsed_s = (self._clock.monotonic_ns() - started_ns) / 1e9
        self._steps.record(elapsed_s, {names.AGENT_NAME: worker_id})


def _run_attributes(request: RunRequest) -> dict[str, str | bool]:
    return {
        names.OPERATION_NAME: names.OPERATION_INVOKE_WORKFLOW,
        names.REQUEST_MODEL: request.requested_model,
        names.REQUEST_STREAM: request.stream,
        names.RUN_ID: request.run_id,
        names.RUN_KIND: request.kind.value,
        names.TENANT_ID: request.tenant_id,
        names.TIER: request.tier,
    }


def _close(span: Span, told: list[RunEvent], outcome: str, error_type: str) -> None:
    for event in told:
        _describe(span, event)
    span.set_attribute(names.RUN_OUTCOME, outcome)
    if error_type:
        span.set_attribute(names.ERROR_TYPE, error_type)
        span.set_status(StatusCode.ERROR)


def _describe(span: Span, event: RunEvent) -> None:
    """Put an event's facts on the span."""
    if isinstance(event, Planned):
        span.set_attribute(names.PLAN_SOURCE, event.plan.source.value)
        span.set_attribute(names.PLAN_STEP_COUNT, len(event.plan.steps))
        span.set_attribute(names.PLAN_DEPTH, event.plan.depth)
        span.set_attribute(names.POOL_ELIGIBLE_COUNT, sum(v.allowed for v in event.verdicts))
        if excluding := sorted({v.rule_id for v in event.verdicts if not v.allowed}):
            span.set_attribute(names.POLICY_RULE_IDS, excluding)
        if event.reply.fallback_reason:
            span.set_attribute(names.PLAN_FALLBACK_REASON, event.reply.fallback_reason)
    elif isinstance(event, RunFinished):
        span.set_attribute(names.COST_USD_MICROS, event.cost_usd_micros)
        span.set_attributes(names.usage_attributes(event.usage + event.other_usage))
