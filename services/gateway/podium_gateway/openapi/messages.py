"""Anthropic's Messages, described."""

from podium_gateway.openapi.chat import MODEL
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
    number,
    one_of,
    or_null,
    record,
    text,
)

_BLOCKS = array(record({"type": text()}, ("type",), is_open=True))
_MESSAGE = record(
    {"role": choice("assistant", "system", "user"), "content": one_of(text(), _BLOCKS)},
    ("role", "content"),
    is_open=True,
)
_TOOL = record(
    {
        "cache_control": {},
        "description": or_null(text()),
        "input_schema": ANY_OBJECT,
        "name": text(at_most=64, may_be_empty=False),
        "strict": or_null(TRUTH),
        "type": or_null(constant("custom")),
    },
    ("input_schema", "name"),
)

MESSAGE_FIELDS: dict[str, Shape] = {
    "cache_control": described({}, "Taken and not used"),
    "max_tokens": integer(1, 2**31 - 1),
    "messages": array(_MESSAGE, at_least=1),
    "metadata": record({"user_id": or_null(text(at_most=512))}),
    "model": MODEL,
    "output_config": record(
        {
            "effort": or_null(choice("high", "low", "max", "medium", "minimal", "none", "xhigh")),
            "format": or_null(
                record(
                    {"type": constant("json_schema"), "schema": ANY_OBJECT}, ("schema", "type"), is_open=True
                )
            ),
        }
    ),
    "podium": component("PodiumWishes"),
    "service_tier": choice("auto", "standard_only"),
    "stop_sequences": array(text(may_be_empty=False), at_most=4),
    "stream": TRUTH,
    "system": one_of(text(), _BLOCKS),
    "temperature": number(0, 1),
    "thinking": record(
        {"type": choice("adaptive", "disabled", "enabled"), "budget_tokens": integer(1, 2**31 - 1)},
        ("type",),
        is_open=True,
    ),
    "tool_choice": record(
        {
            "type": choice("any", "auto", "none", "tool"),
            "name": text(may_be_empty=False),
            "disable_parallel_tool_use": or_null(TRUTH),
        },
        ("type",),
    ),
    "tools": array(_TOOL, at_most=128),
    "top_p": number(0, 1),
}

MESSAGE_SHAPES: dict[str, Shape] = {
    "MessageRequest": body(MESSAGE_FIELDS, ("max_tokens", "messages", "model")),
    "CountRequest": body(MESSAGE_FIELDS, ("messages", "model")),
    "Message": answer(
        {
            "id": text(),
            "type": constant("message"),
            "role": constant("assistant"),
            "model": text(),
            "content": _BLOCKS,
            "stop_reason": or_null(text()),
            "stop_sequence": or_null(text()),
            "usage": answer({"input_tokens": COUNT, "output_tokens": COUNT}),
            "podium": component("PodiumRun"),
        }
    ),
    "TokenCount": answer({"input_tokens": COUNT, "podium": ANY_OBJECT}),
}
