"""Responses, described."""

from podium_core.domain.effort import EFFORTS
from podium_gateway.openapi.chat import METADATA, MODEL, SERVICE_TIERS, VERBOSITIES
from podium_gateway.openapi.shapes import (
    ANY_OBJECT,
    COUNT,
    TRUTH,
    Shape,
    answer,
    array,
    body,
    choice,
    component,
    constant,
    described,
    integer,
    listed,
    number,
    one_of,
    or_null,
    record,
    text,
)

_NAME = text(at_most=512)
_SUMMARY = choice("auto", "concise", "detailed", "none")
_TOOL = record(
    {
        "type": choice("custom", "function"),
        "name": text(at_most=64, may_be_empty=False),
        "description": or_null(text()),
        "parameters": or_null(ANY_OBJECT),
        "format": or_null(ANY_OBJECT),
        "strict": or_null(TRUTH),
        "defer_loading": {},
    },
    ("type", "name"),
)

RESPONSE_FIELDS: dict[str, Shape] = {
    "background": described(TRUTH, "Go on without the client; needs store"),
    "client_metadata": described(ANY_OBJECT, "Taken and not used"),
    "include": array(
        choice(
            "code_interpreter_call.outputs",
            "computer_call_output.output.image_url",
            "file_search_call.results",
            "message.input_image.image_url",
            "message.output_text.logprobs",
            "reasoning.encrypted_content",
            "web_search_call.action.sources",
            "web_search_call.results",
        )
    ),
    "input": described(
        one_of(text(), array(record({"type": or_null(text())}, is_open=True), at_least=1)),
        "A text, or items: messages, function_call, custom_tool_call and their outputs",
    ),
    "instructions": text(),
    "max_output_tokens": integer(1, 2**31 - 1),
    "metadata": METADATA,
    "model": MODEL,
    "parallel_tool_calls": TRUTH,
    "podium": component("PodiumWishes"),
    "previous_response_id": text(at_most=256),
    "prompt_cache_key": _NAME,
    "reasoning": record(
        {
            "context": {},
            "effort": or_null(choice(*EFFORTS)),
            "generate_summary": or_null(_SUMMARY),
            "summary": or_null(_SUMMARY),
        }
    ),
    "safety_identifier": _NAME,
    "service_tier": choice(*SERVICE_TIERS),
    "store": TRUTH,
    "stream": TRUTH,
    "stream_options": record({"include_obfuscation": {}}),
    "temperature": number(0, 2),
    "text": record(
        {
            "format": or_null(
                record({"type": choice("json_object", "json_schema", "text")}, ("type",), is_open=True)
            ),
            "verbosity": or_null(choice(*VERBOSITIES)),
        }
    ),
    "tool_choice": one_of(
        choice("auto", "none", "required"),
        record({"type": choice("allowed_tools", "custom", "function")}, ("type",), is_open=True),
    ),
    "tools": array(_TOOL, at_most=128),
    "top_logprobs": integer(0, 20),
    "top_p": number(0, 1),
    "truncation": choice("disabled"),
    "user": _NAME,
}

RESPONSE_SHAPES: dict[str, Shape] = {
    "ResponseRequest": body(RESPONSE_FIELDS, ("model", "input")),
    "Response": answer(
        {
            "id": text(),
            "object": constant("response"),
            "created_at": COUNT,
            "status": choice("cancelled", "completed", "failed", "in_progress", "incomplete", "queued"),
            "error": or_null(ANY_OBJECT),
            "incomplete_details": or_null(ANY_OBJECT),
            "model": text(),
            "output": array(record({"type": text()}, ("type",), is_open=True)),
            "usage": or_null(answer({"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT})),
            "podium": component("PodiumRun"),
        },
        sometimes=("podium",),
    ),
    "ResponseItemList": listed(record({"id": text(), "type": text()}, ("id", "type"), is_open=True)),
    "DeletedResponse": answer(
        {"id": text(), "object": constant("response"), "deleted": {"type": "boolean", "const": True}}
    ),
}
