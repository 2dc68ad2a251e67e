"""A request of OpenAI's Responses, decoded: its fields become a chat request's, or are refused by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.run import Question
from podium_gateway.codecs.client_request import ClientRequest, check_last_role, decode_model, worker_of
from podium_gateway.codecs.fields import (
    as_array,
    as_boolean,
    as_choice,
    as_integer,
    as_object,
    as_string,
    known_fields,
    refuse,
)
from podium_gateway.codecs.openai_messages import decode_messages
from podium_gateway.codecs.openai_parameters import decode_parameters
from podium_gateway.codecs.openai_podium import decode_wishes
from podium_gateway.codecs.responses_input import decode_input
from podium_gateway.codecs.responses_tools import Tools, decode_tool_choice, decode_tools

# Fields that mean in Responses what they mean in Chat Completions.
_SAME = frozenset(
    (
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "safety_identifier",
        "service_tier",
        "stream",
        "temperature",
        "top_p",
        "user",
    )
)
_OWN = frozenset(
    (
        "background",
        "client_metadata",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "model",
        "podium",
        "previous_response_id",
        "reasoning",
        "store",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "truncation",
    )
)
FIELDS = _SAME | _OWN
"""Every field of a body that may have a value: what the API's description lists."""

_UNSUPPORTED = frozenset(
    (
        "context_management",
        "conversation",
        "max_tool_calls",
        "moderation",
        "prompt",
        "prompt_cache_options",
        "prompt_cache_retention",
    )
)
_LOGPROBS = "message.output_text.logprobs"
_INSTEAD = {
    "conversation": "go on from a response by previous_response_id, or send the whole conversation as input",
    "prompt": "Podium keeps no prompts; send the text as instructions and input",
}
# What may be included. Podium's answers hold none of it, which asks for nothing, but logprobs they may.
_INCLUDABLE = (
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    _LOGPROBS,
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
)
_SUMMARIES = ("auto", "concise", "detailed")
_MAX_LOGPROBS = 20
_MAX_ID = 256


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """One decoded request. `echo` are the fields that the response repeats.

    `conversation` are its chat messages without the instructions, which hold for one response only;
    those from `asked[0]` to before `asked[1]` came with the request itself.
    """

    request: ClientRequest
    echo: Mapping[str, object]
    custom_tools: frozenset[str]
    wants_summary: bool
    conversation: tuple[Mapping[str, object], ...]
    asked: tuple[int, int]
    is_stored: bool
    is_background: bool


def previous_response_id(fields: Mapping[str, object]) -> str | None:
    """Return the response that a request continues, if any."""
    value = fields.get("previous_response_id")
    return None if value is None else as_string(value, "previous_response_id", at_most=_MAX_ID)


def decode_responses_request(
    fields: Mapping[str, object], earlier: Sequence[Mapping[str, object]] = ()
) -> ResponsesRequest:
    """Return what the client asks for, after the `earlier` messages of the response it continues.

    Raises PodiumError: INVALID_REQUEST naming the field and what to change, NOT_FOUND for an unknown model.
    """
    given = _given(fields)
    model = decode_model(given.get("model"))
    worker_id = worker_of(model)
    if "input" not in given:
        raise refuse("input", "is missing", reason="MISSING_FIELD")
    messages = [*earlier, *decode_input(given["input"])]
    question = _question(given, messages)
    check_last_role(question, worker_id, "input")
    tools = decode_tools(given.get("tools", []))
    chat_fields, summary = _chat_fields(given, tools)
    parameters = decode_parameters(chat_fields)
    wishes = decode_wishes(given.get("podium"))
    is_background = as_boolean(given.get("background", False), "background")
    is_stored = as_boolean(given.get("store", True), "store") and not wishes.dry_run
    if wishes.dry_run and (parameters.stream or is_background):
        raise refuse("podium.dry_run", "a dry run is answered at once; send neither stream nor background")
    if is_background and not is_stored:
        raise refuse("background", "a background response is read later, so it must be stored")
    if wishes.events:
        raise refuse("podium.events", 'ask for the steps with reasoning: {"summary": "auto"}')
    return ResponsesRequest(
        ClientRequest(model, worker_id, question, parameters, wishes),
        _echo(given, is_stored=is_stored),
        tools.custom,
        wants_summary=summary,
        conversation=tuple(messages),
        asked=(len(earlier), len(messages)),
        is_stored=is_stored,
        is_background=is_background,
    )


def _question(given: Mapping[str, object], messages: Sequence[Mapping[str, object]]) -> Question:
    if not messages:
        raise refuse("input", "holds no message", reason="MISSING_FIELD")
    text = as_string(given.get("instructions", ""), "instructions")
    instructions = [{"role": "system", "content": text}] if text else []
    return Question(decode_messages([*instructions, *messages]))


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if name in _UNSUPPORTED:
            problem = f"Podium cannot honour this parameter; {_INSTEAD.get(name, 'remove it')}"
            raise refuse(name, problem, reason="UNSUPPORTED_PARAMETER")
        if name not in _SAME and name not in _OWN:
            raise refuse(name[:64], "unknown parameter; remove it", reason="UNKNOWN_PARAMETER")
    return given


def _chat_fields(given: Mapping[str, object], tools: Tools) -> tuple[dict[str, object], bool]:
    """Return the optional fields in Chat Completions' words, and whether summaries are wanted."""
    fields = {name: value for name, value in given.items() if name in _SAME}
    if "max_output_tokens" in given:
        limit = as_integer(given["max_output_tokens"], "max_output_tokens", at_least=1)
        fields["max_completion_tokens"] = limit
    if "tool_choice" in given:
        tools, choice = decode_tool_choice(given["tool_choice"], tools)
        if tools.functions or choice not in ("auto", "none"):
            fields["tool_choice"] = choice
    if tools.functions:
        fields["tools"] = list(tools.functions)
    else:
        fields.pop("parallel_tool_calls", None)
    _check_harmless(given)
    if given.get("top_logprobs"):
        param = "top_logprobs"
        fields[param] = as_integer(given[param], param, at_least=0, at_most=_MAX_LOGPROBS)
    if given.get("top_logprobs") or _LOGPROBS in as_array(given.get("include", []), "include"):
        fields["logprobs"] = True
    fields.update(_text(given.get("text", {})))
    effort, wants_summary = _reasoning(given.get("reasoning", {}))
    if effort is not None:
        fields["reasoning_effort"] = effort
    return fields, wants_summary


def _check_harmless(given: Mapping[str, object]) -> None:
    """Check fields that ask for nothing of a worker."""
    for index, item in enumerate(as_array(given.get("include", []), "include")):
        as_choice(item, f"include[{index}]", _INCLUDABLE)
    if "truncation" in given:
        as_choice(given["truncation"], "truncation", ("disabled",))
    options = as_object(given.get("stream_options", {}), "stream_options")
    known_fields(options, ("include_obfuscation",), "stream_options")
    if "parallel_tool_calls" in given:
        as_boolean(given["parallel_tool_calls"], "parallel_tool_calls")
    if "client_metadata" in given:
        as_object(given["client_metadata"], "client_metadata")


def _text(value: object) -> dict[str, object]:
    text = as_object(value, "text")
    known_fields(text, ("format", "verbosity"), "text")
    fields: dict[str, object] = {}
    if text.get("verbosity") is not None:
        fields["verbosity"] = as_choice(text["verbosity"], "text.verbosity", ("high", "low", "medium"))
    if text.get("format") is None:
        return fields
    wanted = as_object(text["format"], "text.format")
    kind = as_choice(wanted.get("type"), "text.format.type", ("json_object", "json_schema", "text"))
    if kind == "json_schema":
        as_string(wanted.get("name"), "text.format.name", at_most=64, may_be_empty=False)
        as_object(wanted.get("schema"), "text.format.schema")
        schema = {name: item for name, item in wanted.items() if name != "type" and item is not None}
        known_fields(schema, ("description", "name", "schema", "strict"), "text.format")
        fields["response_format"] = {"type": kind, "json_schema": schema}
    elif kind == "json_object":
        fields["response_format"] = {"type": kind}
    return fields


def _reasoning(value: object) -> tuple[str | None, bool]:
    reasoning = as_object(value, "reasoning")
    known_fields(reasoning, ("context", "effort", "generate_summary", "summary"), "reasoning")
    wants_summary = False
    for name in ("generate_summary", "summary"):
        if reasoning.get(name) is not None:
            wanted = as_choice(reasoning[name], f"reasoning.{name}", (*_SUMMARIES, "none"))
            wants_summary = wanted != "none"
    effort = reasoning.get("effort")
    return None if effort is None else as_string(effort, "reasoning.effort", at_most=64), wants_summary


def _echo(given: Mapping[str, object], *, is_stored: bool) -> dict[str, object]:
    """Return the fields that a response repeats, with the defaults of those that were not given."""
    defaults: dict[str, object] = {
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }
    return {
        "background": given.get("background", False),
        "previous_response_id": given.get("previous_response_id"),
        "store": is_stored,
        **{name: given.get(name, default) for name, default in defaults.items()},
    }
