"""Chat Completions and the `podium` object, described."""

from podium_core.domain.effort import EFFORTS
from podium_core.domain.plan import MAX_STEPS
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

MODEL = text(
    at_most=256,
    may_be_empty=False,
    about="podium, podium-fast, podium-max, podium@<day>, worker/<id> or plan/<name>: see GET /v1/models",
)
SERVICE_TIERS = ("auto", "default", "flex", "priority", "scale")
VERBOSITIES = ("low", "medium", "high")
METADATA: Shape = {
    "type": "object",
    "maxProperties": 16,
    "propertyNames": {"maxLength": 64},
    "additionalProperties": text(at_most=512),
    "description": "Repeated in the answer's podium object",
}
_NAME = text(at_most=512)
_TEXT_PART = record({"type": constant("text"), "text": text()}, ("type", "text"), is_open=True)
_PARTS = described(
    array(record({"type": text()}, ("type",), is_open=True), at_least=1),
    "text for every role; also image_url and input_audio for a user, refusal for an assistant",
)
_MESSAGE = record(
    {
        "role": choice("assistant", "developer", "system", "tool", "user"),
        "content": or_null(one_of(text(), _PARTS)),
        "name": or_null(text(at_most=256)),
        "tool_call_id": text(about="Required of a tool's message"),
        "tool_calls": or_null(array(ANY_OBJECT, at_least=1)),
    },
    ("role",),
    is_open=True,
)
_FUNCTION = record(
    {
        "name": text(at_most=64, may_be_empty=False),
        "description": text(),
        "parameters": or_null(ANY_OBJECT),
    },
    ("name",),
    is_open=True,
)
_TOOL = record({"type": constant("function"), "function": _FUNCTION}, ("type", "function"), is_open=True)
_NAMED_FUNCTION = record({"name": text(may_be_empty=False)}, ("name",), is_open=True)
_JSON_SCHEMA = record(
    {"name": text(at_most=64, may_be_empty=False), "schema": ANY_OBJECT}, ("name", "schema"), is_open=True
)

CHAT_FIELDS: dict[str, Shape] = {
    "frequency_penalty": number(-2, 2),
    "logit_bias": {"type": "object", "maxProperties": 1_024, "additionalProperties": number(-100, 100)},
    "logprobs": TRUTH,
    "max_completion_tokens": integer(1, 2**31 - 1),
    "max_tokens": integer(1, 2**31 - 1, about="The older name of max_completion_tokens"),
    "messages": described(array(_MESSAGE, at_least=1), "The last one is a user's or a tool's"),
    "metadata": METADATA,
    "modalities": {"type": "array", "const": ["text"]},
    "model": MODEL,
    "n": integer(1, 16, about="Answers of one plan"),
    "parallel_tool_calls": described(TRUTH, "Only together with tools"),
    "podium": component("PodiumWishes"),
    "prediction": record(
        {"type": constant("content"), "content": one_of(text(), array(_TEXT_PART, at_least=1))},
        ("type", "content"),
    ),
    "presence_penalty": number(-2, 2),
    "prompt_cache_key": _NAME,
    "reasoning_effort": choice(*EFFORTS),
    "response_format": one_of(
        record({"type": choice("text", "json_object")}, ("type",), is_open=True),
        record(
            {"type": constant("json_schema"), "json_schema": _JSON_SCHEMA},
            ("type", "json_schema"),
            is_open=True,
        ),
    ),
    "safety_identifier": _NAME,
    "seed": integer(-(2**63), 2**63 - 1),
    "service_tier": choice(*SERVICE_TIERS),
    "stop": one_of(text(may_be_empty=False), array(text(may_be_empty=False), at_most=4)),
    "store": described(TRUTH, "Keep the completion, for this key to list, read and delete"),
    "stream": TRUTH,
    "stream_options": described(
        record(
            {
                "include_usage": or_null(TRUTH),
                "include_obfuscation": or_null({"type": "boolean", "const": False}),
            }
        ),
        "Only together with stream: true",
    ),
    "temperature": number(0, 2),
    "tool_choice": one_of(
        choice("auto", "none", "required"),
        record(
            {"type": constant("function"), "function": _NAMED_FUNCTION}, ("type", "function"), is_open=True
        ),
    ),
    "tools": array(_TOOL, at_most=128),
    "top_logprobs": integer(0, 20, about="Only together with logprobs: true"),
    "top_p": number(0, 1),
    "user": _NAME,
    "verbosity": choice(*VERBOSITIES),
}

_WORKER_IDS = array(text(at_most=128, may_be_empty=False), at_most=1_024)
WISH_FIELDS: dict[str, Shape] = {
    "dry_run": described(TRUTH, "Plan and tell what it may cost; dispatch nothing"),
    "events": described(TRUTH, "Stream an event for the plan and each step; Chat Completions only"),
    "max_calls": integer(1, 2**31 - 1),
    "max_seconds": number(0.001, 86_400),
    "max_steps": integer(1, MAX_STEPS),
    "max_tokens": integer(1, 2**53 - 1),
    "max_usd": described(
        one_of(number(0, 1_000_000), text()),
        'US dollars, as fine as a millionth; a string such as "0.05" too',
    ),
    "rounds": integer(1, 16),
    "workers": record({"only": or_null({**_WORKER_IDS, "minItems": 1}), "except": or_null(_WORKER_IDS)}),
}

CHAT_SHAPES: dict[str, Shape] = {
    "ChatCompletionRequest": body(CHAT_FIELDS, ("model", "messages")),
    "PodiumWishes": body(WISH_FIELDS, ()),
    "PodiumRun": answer(
        {
            "run_id": text(),
            "outcome": text(),
            "dry_run": TRUTH,
            "plan": or_null(ANY_OBJECT),
            "steps": array(ANY_OBJECT),
            "usage": ANY_OBJECT,
            "cost_usd_micros": COUNT,
            "cost_range_usd_micros": ANY_OBJECT,
            "duration_ms": COUNT,
            "caps": ANY_OBJECT,
            "receipt": or_null(ANY_OBJECT),
        },
        sometimes=("outcome", "dry_run", "steps", "cost_usd_micros", "cost_range_usd_micros", "duration_ms"),
        about="What was planned, who did what, what it cost, and the receipt",
    ),
    "DeletedChatCompletion": answer(
        {
            "id": text(),
            "object": constant("chat.completion.deleted"),
            "deleted": {"type": "boolean", "const": True},
        }
    ),
    "ChatCompletionList": listed(component("ChatCompletion")),
    "ChatMessageList": listed(record({"id": text(), "role": text()}, ("id", "role"), is_open=True)),
    "ChatCompletionChange": body({"metadata": METADATA}, ()),
    "ChatCompletion": answer(
        {
            "id": text(),
            "object": constant("chat.completion"),
            "created": COUNT,
            "model": text(),
            "choices": array(
                answer(
                    {
                        "index": COUNT,
                        "message": answer(
                            {
                                "role": constant("assistant"),
                                "content": or_null(text()),
                                "refusal": or_null(text()),
                                "reasoning_content": text(),
                                "tool_calls": array(ANY_OBJECT),
                            },
                            sometimes=("reasoning_content", "tool_calls"),
                        ),
                        "logprobs": or_null(ANY_OBJECT),
                        "finish_reason": text(),
                    }
                )
            ),
            "usage": answer({"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT}),
            "podium": component("PodiumRun"),
        }
    ),
}
