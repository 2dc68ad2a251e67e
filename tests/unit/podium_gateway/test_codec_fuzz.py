"""No request, however strange, gets anything out of the codec but a request or a typed error."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.codecs.client_request import ClientRequest
from podium_gateway.codecs.openai_chat import decode_chat_request
from podium_gateway.errors import error_body, http_row

_NAMES = (
    "model",
    "messages",
    "podium",
    "temperature",
    "stop",
    "seed",
    "n",
    "user",
    "metadata",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "logprobs",
    "functions",
    "role",
    "content",
    "type",
    "text",
    "image_url",
    "url",
    "tool_calls",
    "tool_call_id",
    "function",
    "name",
    "arguments",
    "id",
    "workers",
    "only",
    "except",
    "max_usd",
    "max_calls",
    "rounds",
    "events",
    "dry_run",
    "include_usage",
    "json_schema",
)
_WORDS = (
    "podium",
    "worker/a",
    "user",
    "assistant",
    "tool",
    "system",
    "text",
    "image_url",
    "function",
    "json_schema",
    "auto",
    "0.1",
    "",
)
_TEXT = st.sampled_from(_WORDS) | st.text(max_size=8)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=4), children, max_size=4)
    ),
    max_leaves=12,
)
_MESSAGE = st.fixed_dictionaries(
    {"role": _TEXT, "content": _VALUE},
    optional={"tool_calls": _VALUE, "tool_call_id": _VALUE, "name": _VALUE},
)
_REQUEST = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["podium", "worker/a"]) | _VALUE,
        "messages": st.lists(_MESSAGE, max_size=3) | _VALUE,
    },
    optional={name: _VALUE for name in _NAMES if name not in ("model", "messages")},
)


def _decoded(body: bytes) -> ClientRequest | PodiumError:
    try:
        return decode_chat_request(body)
    except PodiumError as error:
        return error


@settings(max_examples=200, deadline=None)
@given(_REQUEST)
def test_only_typed_errors_come_out(request: dict[str, Any]) -> None:
    chat = _decoded(json.dumps(request).encode())
    if isinstance(chat, PodiumError):
        assert http_row(chat).status in (400, 404)
        json.dumps(error_body(chat))
    else:
        assert [dict(m.fields) for m in chat.question.messages] == request["messages"]
        # What is passed on can be encoded again, whatever a client put into it.
        json.dumps(dict(chat.parameters.passed), ensure_ascii=False, allow_nan=False).encode()
        assert set(chat.parameters.passed) <= set(request)


@settings(max_examples=100, deadline=None)
@given(_REQUEST, st.integers(0, 400), st.binary(max_size=3))
def test_damaged_bodies_too(request: dict[str, Any], place: int, damage: bytes) -> None:
    body = json.dumps(request, ensure_ascii=False).encode(errors="surrogatepass")
    place %= len(body)
    chat = _decoded(body[:place] + damage + body[place + 1 :])
    assert isinstance(chat, ClientRequest) or chat.code in (Code.INVALID_REQUEST, Code.NOT_FOUND)
