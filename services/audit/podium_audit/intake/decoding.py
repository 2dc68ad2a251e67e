"""OTLP requests as rows: ids checked, attributes by allow-list, lengths bounded, no events, no texts."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from podium_audit.intake.names import kept
from podium_audit.rows.spans import SpanRow
from podium_core.runtime import attributes

MAX_SPANS = 10_000
"""Most spans of one request."""

_TRACE_ID_BYTES, _SPAN_ID_BYTES = 16, 8
_MAX_NAME = 128
_MAX_TEXT = 256
_MAX_ITEMS = 16
_MAX_ATTRIBUTES = 128
_MAX_INT = (1 << 63) - 1
_SERVICE_NAME = "service.name"


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of a request, and how many of its spans were refused."""

    rows: tuple[SpanRow, ...]
    refused: int


def decode(request: trace_service_pb2.ExportTraceServiceRequest, *, tenant_id: str, sender: str) -> Decoded:
    """Return a request's spans as rows.

    A Podium service (`tenant_id` empty) is `sender` whatever it calls itself. Refused are spans whose ids or
    times cannot be, and all beyond `MAX_SPANS`.
    """
    rows: list[SpanRow] = []
    refused = 0
    for resource_spans in request.resource_spans:
        named = _values(resource_spans.resource.attributes).get(_SERVICE_NAME)
        service = str(named)[:_MAX_NAME] if tenant_id and named else sender
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                if len(rows) < MAX_SPANS and _is_well_formed(span):
                    rows.append(_row(span, tenant_id, service))
                else:
                    refused += 1
    return Decoded(tuple(rows), refused)


def _is_well_formed(span: Span) -> bool:
    return (
        len(span.trace_id) == _TRACE_ID_BYTES
        and any(span.trace_id)
        and len(span.span_id) == _SPAN_ID_BYTES
        and any(span.span_id)
        and len(span.parent_span_id) in (0, _SPAN_ID_BYTES)
        and 0 < span.start_time_unix_nano <= span.end_time_unix_nano <= _MAX_INT
    )


def _row(span: Span, tenant_id: str, service: str) -> SpanRow:
    facts = kept(_values(span.attributes))
    run_id = facts.pop(attributes.RUN_ID, "")
    return SpanRow(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tenant_id,
        run_id if isinstance(run_id, str) else "",
        service,
        span.name[:_MAX_NAME],
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == Status.STATUS_CODE_ERROR,
        json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False),
    )


def _values(pairs: Iterable[KeyValue]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for pair in pairs:
        if len(found) == _MAX_ATTRIBUTES:
            break
        value = _value(pair.value)
        if value is not None:
            found[pair.key] = value
    return found


def _value(value: AnyValue) -> object:
    """Return a scalar or a short list of scalars; None for anything else."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value[:_MAX_TEXT]
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            is_number = value.double_value - value.double_value == 0
            return value.double_value if is_number else None
        case "array_value":
            items = [_value(item) for item in value.array_value.values[:_MAX_ITEMS]]
            return [item for item in items if isinstance(item, (str, bool, int, float))]
    return None
