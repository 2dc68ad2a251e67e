"""The API's description says what the decoders take: the same names, the same limits."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from podium_core.domain.errors import PodiumError
from podium_gateway.codecs import (
    anthropic_request,
    embeddings,
    grade,
    openai_chat,
    openai_parameters,
    openai_podium,
    responses_request,
)
from podium_gateway.openapi.document import api_document

SCHEMAS: Mapping[str, Any] = api_document(1_000)["components"]["schemas"]  # type: ignore[index]
Decode = Callable[[dict[str, Any]], object]
_SAID = [{"role": "user", "content": "6 times 7?"}]
_TOOLS = [{"type": "function", "function": {"name": "f"}}]
_JSON_OF = json.dumps

# How each body is decoded, and what a field needs beside itself.
DECODERS: Mapping[str, tuple[Decode, dict[str, Any]]] = {
    "ChatCompletionRequest": (
        lambda body: openai_chat.decode_chat_request(_JSON_OF(body).encode()),
        {"model": "podium", "messages": _SAID, "logprobs": True, "stream": True, "tools": _TOOLS},
    ),
    "ResponseRequest": (
        lambda body: (
            responses_request.previous_response_id(body),
            responses_request.decode_responses_request(body),
        ),
        {"model": "podium", "input": "6 times 7?"},
    ),
    "MessageRequest": (
        lambda body: anthropic_request.decode_messages_request(_JSON_OF(body).encode()),
        {
            "model": "podium",
            "max_tokens": 9,
            "messages": _SAID,
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        },
    ),
    "EmbeddingRequest": (
        lambda body: embeddings.decode_embeddings_request(_JSON_OF(body).encode()),
        {"model": "worker/w", "input": "text"},
    ),
    "PodiumWishes": (openai_podium.decode_wishes, {}),
    "GradeRequest": (lambda body: grade.decode_grade(_JSON_OF(body).encode()), {"score": 1}),
}
FIELDS = {
    "ChatCompletionRequest": openai_parameters.FIELDS,
    "ResponseRequest": responses_request.FIELDS,
    "MessageRequest": anthropic_request.FIELDS,
    "CountRequest": anthropic_request.FIELDS,
    "EmbeddingRequest": embeddings.FIELDS,
    "PodiumWishes": openai_podium.FIELDS,
    "GradeRequest": grade.FIELDS,
}


@pytest.mark.parametrize("name", FIELDS)
def test_the_description_lists_the_fields_that_the_decoder_knows(name: str) -> None:
    assert sorted(SCHEMAS[name]["properties"]) == sorted(FIELDS[name])


def _edges(shape: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield values at the edges of a shape, and whether they are within."""
    for word, edge in _EDGES.items():
        if word in shape:
            yield from edge(shape[word])
    match shape.get("type"):
        case "boolean":
            yield shape.get("const", True), True
            yield "true", False
        case "object":
            yield "text", False
            if shape.get("additionalProperties") is False:
                yield {"nothing_of_the_kind": 1}, False


# By a shape's word: values at the edge that it draws, and whether they are within.
_EDGES: Mapping[str, Callable[[Any], list[tuple[Any, bool]]]] = {
    "minimum": lambda bound: [(bound, True), (bound - 1, False)],
    "maximum": lambda bound: [(bound, True), (bound + 1, False)],
    "enum": lambda words: [*((word, True) for word in words), ("nothing-of-the-kind", False)],
    "maxLength": lambda bound: [("x" * (bound + 1), False)],
    "minLength": lambda bound: [("x" * (bound - 1), False)],
    "maxItems": lambda bound: [(["x"] * (bound + 1), False)],
    "minItems": lambda bound: [([], False)],
    "maxProperties": lambda bound: [({str(index): 1 for index in range(bound + 1)}, False)],
}


def _cases() -> Iterator[Any]:
    for name in DECODERS:
        for field, told in SCHEMAS[name]["properties"].items():
            shape = told["anyOf"][0] if "anyOf" in told else told
            for value, is_within in _edges(shape):
                # Alone these ask for what other rules refuse; the rules have tests of their own.
                if is_within and (field, value) in (("background", True), ("dry_run", True)):
                    continue
                shown = str(value)[:24]
                yield pytest.param(name, field, value, is_within, id=f"{name}.{field}={shown}")


@pytest.mark.parametrize(("name", "field", "value", "is_within"), list(_cases()))
def test_the_limits_in_the_description_are_the_decoders(
    name: str, field: str, value: Any, is_within: bool
) -> None:
    decode, base = DECODERS[name]
    body = {field: value} if field == "pass" else {**base, field: value}
    if is_within:
        decode(body)
        return
    with pytest.raises(PodiumError) as caught:
        decode(body)
    assert field in (caught.value.param or "")


@pytest.mark.parametrize("name", DECODERS)
def test_null_is_taken_for_a_field_that_is_not_required(name: str) -> None:
    decode, base = DECODERS[name]
    required = SCHEMAS[name].get("required", ())
    for field in SCHEMAS[name]["properties"]:
        if field not in required and field not in base:
            decode({**base, field: None})
