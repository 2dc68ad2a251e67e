"""Spans from anybody: what is kept, under which name, and what never is."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from podium_audit.intake import decoding
from podium_audit.intake.decoding import decode
from podium_audit.intake.otlp_json import with_base64_ids
from podium_audit.rows.spans import SpanRow

CANARY = "tangerine-4711"


def span(**attributes: Any) -> Span:
    made = Span(
        trace_id=b"t" * 16, span_id=b"s" * 8, name="chat", start_time_unix_nano=5, end_time_unix_nano=9_000
    )
    for name, value in attributes.items():
        made.attributes.append(KeyValue(key=name.replace("__", "."), value=any_value(value)))
    return made


def any_value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    return AnyValue(string_value=value)


def request(*spans: Span) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])


def row_of(*spans: Span, tenant_id: str = "acme") -> SpanRow:
    [row] = decode(request(*spans), tenant_id=tenant_id, sender="app").rows
    return row


def facts_of(**attributes: Any) -> dict[str, Any]:
    return dict(json.loads(row_of(span(**attributes)).attributes_json))


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (
            (
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.output_tokens",
                "gen_ai.provider.name",
                "gen_ai.request.model",
            ),
            "v0.1.0",
        ),
        (
            (
                "gen_ai.usage.prompt_tokens",
                "gen_ai.usage.completion_tokens",
                "gen_ai.system",
                "gen_ai.request.model",
            ),
            "v1.30",
        ),
        (
            ("llm.token_count.prompt", "llm.token_count.completion", "llm.provider", "llm.model_name"),
            "OpenInference",
        ),
    ],
)
def test_three_generations_of_names_come_out_as_one(names: tuple[str, ...], values: str) -> None:
    facts = facts_of(**dict(zip(names, (10, 20, "openai", "gpt"), strict=True)))
    assert facts == {
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt",
    }


def test_a_name_of_today_wins_over_an_older_one_and_a_kind_becomes_an_operation() -> None:
    assert facts_of(gen_ai__system="old", gen_ai__provider__name="new") == {"gen_ai.provider.name": "new"}
    assert facts_of(openinference__span__kind="TOOL") == {"gen_ai.operation.name": "execute_tool"}


def test_content_has_no_way_in() -> None:
    made = span(
        gen_ai__input__messages=CANARY,
        input__value=CANARY,
        llm__input_messages__0__message__content=CANARY,
        exception__message=CANARY,
        user__id=CANARY,
        my__own=CANARY,
    )
    made.events.add(name=CANARY)
    made.status.message = CANARY
    made.status.code = Status.STATUS_CODE_ERROR
    row = row_of(made)
    assert CANARY not in repr(row)
    assert row.is_error


def test_lengths_are_bounded_and_what_is_no_number_is_left_out() -> None:
    facts = facts_of(
        gen_ai__request__model="x" * 10_000,
        gen_ai__request__temperature=float("nan"),
        gen_ai__response__finish_reasons=["stop"] * 100,
    )
    assert len(facts["gen_ai.request.model"]) == 256
    assert "gen_ai.request.temperature" not in facts
    assert len(facts["gen_ai.response.finish_reasons"]) == 16


@pytest.mark.parametrize(
    "changes",
    [
        {"trace_id": b""},
        {"trace_id": bytes(16)},
        {"span_id": b"short"},
        {"parent_span_id": b"12"},
        {"start_time_unix_nano": 0},
        {"end_time_unix_nano": 1},
        {"end_time_unix_nano": 2**64 - 1},
    ],
)
def test_a_span_that_cannot_be_is_refused_and_the_others_stay(changes: dict[str, Any]) -> None:
    bad = span()
    for name, value in changes.items():
        setattr(bad, name, value)
    decoded = decode(request(bad, span()), tenant_id="", sender="router")
    assert (len(decoded.rows), decoded.refused) == (1, 1)


def test_more_spans_than_fit_are_refused_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_SPANS", 3)
    decoded = decode(request(*[span()] * 5), tenant_id="", sender="router")
    assert (len(decoded.rows), decoded.refused) == (3, 2)


def test_a_podium_service_cannot_take_another_name_and_a_tenants_program_has_its_own() -> None:
    made = request(span())
    made.resource_spans[0].resource.attributes.append(KeyValue(key="service.name", value=any_value("shop")))
    assert decode(made, tenant_id="", sender="router").rows[0].service == "router"
    assert decode(made, tenant_id="acme", sender="app").rows[0].service == "shop"


@given(st.binary(max_size=200))
def test_no_bytes_break_the_json_reader(body: bytes) -> None:
    with contextlib.suppress(ValueError, RecursionError):
        with_base64_ids(body)
