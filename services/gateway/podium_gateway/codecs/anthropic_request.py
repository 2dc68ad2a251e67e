"""A request of Anthropic's Messages, decoded: its fields become a chat request's, or are refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.domain.run import Question
from podium_gateway.codecs.anthropic_messages import decode_conversation
from podium_gateway.codecs.client_request import ClientRequest, check_last_role, decode_model, worker_of
from podium_gateway.codecs.fields import (
    as_array,
    as_boolean,
    as_choice,
    as_integer,
    as_number,
    as_object,
    as_string,
    known_fields,
    refuse,
)
from podium_gateway.codecs.openai_parameters import decode_parameters
from podium_gateway.codecs.openai_podium import decode_wishes
from podium_gateway.codecs.strict_json import parse_object, shown

_MAX_TOOLS = 128
FIELDS = frozenset(
    (
        "cache_control",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "podium",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_p",
    )
)
_UNSUPPORTED = frozenset(
    ("container", "context_management", "inference_geo", "mcp_servers", "speed", "top_k", "user_profile_id")
)
_TOOL_CHOICES = {"any": "required", "auto": "auto", "none": "none"}
_EFFORTS = ("high", "low", "max", "medium", "minimal", "none", "xhigh")
# Where a thinking budget, in tokens, begins to mean more effort; the levels are OpenAI's.
_MEDIUM_BUDGET_TOKENS = 4_096
_HIGH_BUDGET_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """One decoded request, and whether its client wants to read the reasoning."""

    request: ClientRequest
    shows_thinking: bool


def decode_messages_request(body: bytes) -> MessagesRequest:
    """Return what the client asks for.

    Raises PodiumError: INVALID_REQUEST naming the field and what to change, NOT_FOUND for an unknown model.
    """
    given = _given(body)
    model = decode_model(given.get("model"))
    worker_id = worker_of(model)
    question = _question(given)
    check_last_role(question, worker_id)
    if "max_tokens" not in given:
        raise refuse("max_tokens", "is missing", reason="MISSING_FIELD")
    fields = _chat_fields(given)
    wishes = decode_wishes(given.get("podium"))
    if wishes.events:
        raise refuse("podium.events", "step events are told on /v1/chat/completions only")
    parameters = decode_parameters(fields)
    if wishes.dry_run and parameters.stream:
        raise refuse("podium.dry_run", "a dry run has nothing to stream; send stream: false")
    thinking = given.get("thinking")
    shows = not (isinstance(thinking, dict) and thinking.get("type") == "disabled")
    return MessagesRequest(ClientRequest(model, worker_id, question, parameters, wishes), shows)


def decode_count_request(body: bytes) -> tuple[Question, list[object]]:
    """Return the conversation and the tools whose tokens are to be counted; raise PodiumError as above."""
    given = _given(body)
    worker_of(decode_model(given.get("model")))
    fields = _chat_fields({name: value for name, value in given.items() if name in ("tools", "tool_choice")})
    return _question(given), as_array(fields.get("tools", []), "tools")


def _given(body: bytes) -> dict[str, object]:
    given = {name: value for name, value in parse_object(body).items() if value is not None}
    for name in given:
        if name in _UNSUPPORTED:
            raise refuse(
                name, "Podium cannot honour this parameter; remove it", reason="UNSUPPORTED_PARAMETER"
            )
        if name not in FIELDS:
            raise refuse(name[:64], "unknown parameter; remove it", reason="UNKNOWN_PARAMETER")
    return given


def _question(given: Mapping[str, object]) -> Question:
    if "messages" not in given:
        raise refuse("messages", "is missing", reason="MISSING_FIELD")
    return Question(decode_conversation(given.get("system"), given["messages"]))


def _chat_fields(given: Mapping[str, object]) -> dict[str, object]:
    """Return the optional fields in Chat Completions' words."""
    fields: dict[str, object] = {}
    if "max_tokens" in given:
        fields["max_completion_tokens"] = as_integer(given["max_tokens"], "max_tokens", at_least=1)
    for name in ("temperature", "top_p"):
        if name in given:
            fields[name] = as_number(given[name], name, at_least=0, at_most=1)
    if "stream" in given:
        fields["stream"] = as_boolean(given["stream"], "stream")
    if given.get("stop_sequences"):
        fields["stop"] = _stops(given["stop_sequences"])
    if "metadata" in given:
        metadata = as_object(given["metadata"], "metadata")
        known_fields(metadata, ("user_id",), "metadata")
        fields["user"] = metadata.get("user_id")
    if "service_tier" in given:
        as_choice(given["service_tier"], "service_tier", ("auto", "standard_only"))
    if given.get("tools"):
        tools = as_array(given["tools"], "tools", at_most=_MAX_TOOLS)
        fields["tools"] = [_tool(item, f"tools[{index}]") for index, item in enumerate(tools)]
    if "tool_choice" in given:
        fields.update(_tool_choice(given["tool_choice"], has_tools="tools" in fields))
    fields.update(_output(given))
    return fields


def _stops(value: object) -> list[str]:
    stops = as_array(value, "stop_sequences", at_most=4)
    return [
        as_string(item, f"stop_sequences[{index}]", may_be_empty=False) for index, item in enumerate(stops)
    ]


def _tool(value: object, path: str) -> dict[str, object]:
    tool = as_object(value, path)
    kind = as_string(tool.get("type") or "custom", f"{path}.type")
    if kind != "custom":
        raise refuse(
            f"{path}.type",
            f"Podium does not run the hosted tool {shown(kind)}; give tools with an input_schema",
            reason="UNSUPPORTED_TOOL",
        )
    known = ("cache_control", "description", "input_schema", "name", "strict", "type")
    known_fields(tool, known, path)
    name = as_string(tool.get("name"), f"{path}.name", at_most=64, may_be_empty=False)
    function: dict[str, object] = {"name": name}
    if tool.get("description") is not None:
        function["description"] = as_string(tool["description"], f"{path}.description")
    function["parameters"] = as_object(tool.get("input_schema"), f"{path}.input_schema")
    if tool.get("strict") is not None:
        function["strict"] = as_boolean(tool["strict"], f"{path}.strict")
    return {"type": "function", "function": function}


def _tool_choice(value: object, *, has_tools: bool) -> dict[str, object]:
    choice = as_object(value, "tool_choice")
    known_fields(choice, ("disable_parallel_tool_use", "name", "type"), "tool_choice")
    kind = as_choice(choice.get("type"), "tool_choice.type", (*_TOOL_CHOICES, "tool"))
    if not has_tools:
        if kind in ("auto", "none"):
            return {}
        raise refuse("tool_choice", "is allowed only together with tools")
    fields: dict[str, object] = {}
    if kind == "tool":
        name = as_string(choice.get("name"), "tool_choice.name", may_be_empty=False)
        fields["tool_choice"] = {"type": "function", "function": {"name": name}}
    else:
        fields["tool_choice"] = _TOOL_CHOICES[kind]
    param = "tool_choice.disable_parallel_tool_use"
    if as_boolean(choice.get("disable_parallel_tool_use") or False, param):
        fields["parallel_tool_calls"] = False
    return fields


def _output(given: Mapping[str, object]) -> dict[str, object]:
    """Return how much to think and in which shape to answer."""
    fields: dict[str, object] = {}
    if "thinking" in given:
        thinking = as_object(given["thinking"], "thinking")
        kind = as_choice(thinking.get("type"), "thinking.type", ("adaptive", "disabled", "enabled"))
        if kind == "enabled":
            budget = as_integer(thinking.get("budget_tokens"), "thinking.budget_tokens", at_least=1)
            fields["reasoning_effort"] = _effort(budget)
    if "output_config" in given:
        config = as_object(given["output_config"], "output_config")
        known_fields(config, ("effort", "format"), "output_config")
        if config.get("effort") is not None:
            fields["reasoning_effort"] = as_choice(config["effort"], "output_config.effort", _EFFORTS)
        if config.get("format") is not None:
            wanted = as_object(config["format"], "output_config.format")
            as_choice(wanted.get("type"), "output_config.format.type", ("json_schema",))
            schema = as_object(wanted.get("schema"), "output_config.format.schema")
            named = {"name": "answer", "schema": schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": named}
    return fields


def _effort(budget_tokens: int) -> str:
    if budget_tokens < _MEDIUM_BUDGET_TOKENS:
        return "low"
    return "medium" if budget_tokens < _HIGH_BUDGET_TOKENS else "high"
