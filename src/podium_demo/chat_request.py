"""Reads the body of POST /v1/chat/completions: what is used, what is accepted, what is refused by name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from podium_demo.answer import SPECIALISTS
from podium_demo.api_errors import ApiError, invalid
from podium_demo.specialists.answering import Specialist

_MAX_MESSAGES = 10_000
_MAX_STOPS = 4
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_TEXT_PARTS = frozenset({"text", "input_text", "refusal"})
_UNSUPPORTED = ("tools", "functions", "audio", "prediction", "web_search_options")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat request for one specialist. `messages` are (role, text) pairs, oldest first."""

    specialist: Specialist
    messages: tuple[tuple[str, str], ...]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    stops: tuple[str, ...]


def decode_body(body: bytes) -> dict[str, object]:
    """Return the JSON object in `body`; raise ApiError when it is none."""
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        raise invalid("the body is not valid JSON", code="invalid_json") from None
    if not isinstance(decoded, dict):
        raise invalid("the body must be a JSON object", code="invalid_json")
    return cast("dict[str, object]", decoded)


def read_request(body: Mapping[str, object]) -> ChatRequest:
    """Return the request in `body`; raise ApiError naming the field to change."""
    for name in _UNSUPPORTED:
        if body.get(name):
            raise invalid(f"demo specialists do not support {name}", param=name, code="unsupported_parameter")
    if body.get("n") not in (None, 1):
        raise invalid("demo specialists give one choice; set n to 1", param="n", code="unsupported_value")
    if body.get("logprobs"):
        raise invalid(
            "demo specialists have no log-probabilities", param="logprobs", code="unsupported_parameter"
        )
    response_format = body.get("response_format")
    if isinstance(response_format, dict) and response_format.get("type") not in (None, "text"):
        raise invalid(
            "demo specialists answer in plain text only", param="response_format", code="unsupported_value"
        )
    options = body.get("stream_options")
    return ChatRequest(
        specialist=find_specialist(body.get("model")),
        messages=_messages(body.get("messages")),
        stream=_boolean(body, "stream"),
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=_max_tokens(body),
        stops=_stops(body.get("stop")),
    )


def find_specialist(model: object) -> Specialist:
    """Return the specialist named `model`; raise ApiError (404) listing the names there are."""
    if not isinstance(model, str) or not model:
        raise invalid("name the model to use", param="model")
    if model not in SPECIALISTS:
        raise ApiError(
            404,
            f"there is no such demo model; use one of {', '.join(SPECIALISTS)}",
            param="model",
            code="model_not_found",
        )
    return SPECIALISTS[model]


def _messages(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise invalid("give at least one message", param="messages")
    if len(value) > _MAX_MESSAGES:
        raise invalid(f"give at most {_MAX_MESSAGES} messages", param="messages")
    return tuple(_message(message, f"messages[{index}]") for index, message in enumerate(value))


def _message(value: object, place: str) -> tuple[str, str]:
    if not isinstance(value, dict):
        raise invalid(f"{place} must be an object", param=place)
    role, content = value.get("role"), value.get("content")
    if role not in _ROLES:
        raise invalid(f"{place}.role must be one of {', '.join(sorted(_ROLES))}", param=f"{place}.role")
    if content is None and role == "assistant":
        return role, ""
    if isinstance(content, str):
        return role, content
    if not isinstance(content, list):
        raise invalid(f"{place}.content must be text or a list of parts", param=f"{place}.content")
    return role, "\n".join(_part(part, f"{place}.content[{index}]") for index, part in enumerate(content))


def _part(value: object, place: str) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    text = value.get(kind if kind == "refusal" else "text") if isinstance(value, dict) else None
    if kind not in _TEXT_PARTS or not isinstance(text, str):
        raise invalid(f"{place} must be a text part; demo specialists take text only", param=place)
    return text


def _boolean(body: Mapping[str, object], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid(f"{name} must be true or false", param=name)
    return value is True


def _max_tokens(body: Mapping[str, object]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise invalid(f"{name} must be a whole number of at least 1", param=name)
        return value
    return None


def _stops(value: object) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value
    if stops is None:
        return ()
    if not isinstance(stops, list) or len(stops) > _MAX_STOPS or not all(isinstance(s, str) for s in stops):
        raise invalid(f"stop must be a text or a list of at most {_MAX_STOPS} texts", param="stop")
    return tuple(stop for stop in stops if stop)
