"""The optional fields of a chat request: each one is passed on, acted on here, or refused by name.

Nothing is dropped in silence. `null` means "not given" everywhere, as the official clients mean it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podium_core.domain.effort import EFFORTS
from podium_core.domain.errors import PodiumError
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

_MAX_STOPS = 4
_MAX_TOOLS = 128
_MAX_METADATA = 16
_MAX_METADATA_KEY = 64
_MAX_METADATA_VALUE = 512
_MAX_NAME = 512
_MAX_ANSWERS = 16
_MAX_SCHEMA_VALUES = 10_000
_MAX_TOP_LOGPROBS = 20
_MAX_BIASES = 1_024
_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the optional fields ask for. `passed` goes into the answering step's provider body."""

    passed: Mapping[str, object]
    max_output_tokens: int | None
    stream: bool
    include_usage: bool
    metadata: Mapping[str, str]
    answer_count: int = 1
    is_stored: bool = False
    subject_id: str = ""
    """The client's own user for whom it asks, by the id the client gave."""


def decode_parameters(body: Mapping[str, object]) -> Parameters:
    """Return the optional fields; raise PodiumError (INVALID_REQUEST) naming the first one to blame."""
    given = {
        name: value
        for name, value in body.items()
        if value is not None and name not in ("model", "messages", "podium")
    }
    passed: dict[str, object] = {}
    for name, value in given.items():
        if name in _PASSED:
            if _PASSED[name](value, name):
                passed[name] = value
        elif name not in _HANDLED:
            _require_harmless(name, value)
    _check_companions(given)
    stream = as_boolean(given.get("stream", False), "stream")
    return Parameters(
        passed=passed,
        max_output_tokens=_max_output_tokens(given),
        stream=stream,
        include_usage=_include_usage(given, stream=stream),
        metadata=decode_metadata(given.get("metadata", {})),
        subject_id=str(passed.get("safety_identifier") or passed.get("user") or ""),
        answer_count=as_integer(given.get("n", 1), "n", at_least=1, at_most=_MAX_ANSWERS),
        is_stored=as_boolean(given.get("store", False), "store"),
    )


def _stop(value: object, param: str) -> bool:
    if isinstance(value, str):
        return bool(as_string(value, param, may_be_empty=False))
    for index, item in enumerate(as_array(value, param, at_most=_MAX_STOPS)):
        as_string(item, f"{param}[{index}]", may_be_empty=False)
    return bool(value)


def _number(low: float, high: float) -> Callable[[object, str], bool]:
    def check(value: object, param: str) -> bool:
        as_number(value, param, at_least=low, at_most=high)
        return True

    return check


def _seed(value: object, param: str) -> bool:
    as_integer(value, param, at_least=-_MAX_INT64 - 1, at_most=_MAX_INT64)
    return True


def _tools(value: object, param: str) -> bool:
    for index, item in enumerate(as_array(value, param, at_most=_MAX_TOOLS)):
        tool = as_object(item, f"{param}[{index}]")
        as_choice(tool.get("type"), f"{param}[{index}].type", ("function",))
        function = as_object(tool.get("function"), f"{param}[{index}].function")
        as_string(function.get("name"), f"{param}[{index}].function.name", at_most=64, may_be_empty=False)
        if function.get("parameters") is not None:
            as_object(function["parameters"], f"{param}[{index}].function.parameters")
    return bool(value)


def _tool_choice(value: object, param: str) -> bool:
    if isinstance(value, str):
        as_choice(value, param, ("auto", "none", "required"))
        return True
    choice = as_object(value, param)
    as_choice(choice.get("type"), f"{param}.type", ("function",))
    function = as_object(choice.get("function"), f"{param}.function")
    as_string(function.get("name"), f"{param}.function.name", may_be_empty=False)
    return True


def _parallel(value: object, param: str) -> bool:
    as_boolean(value, param)
    return True


def _response_format(value: object, param: str) -> bool:
    wanted = as_object(value, param)
    kind = as_choice(wanted.get("type"), f"{param}.type", ("json_object", "json_schema", "text"))
    if kind == "json_schema":
        schema = as_object(wanted.get("json_schema"), f"{param}.json_schema")
        as_string(schema.get("name"), f"{param}.json_schema.name", at_most=64, may_be_empty=False)
        _check_schema(
            as_object(schema.get("schema"), f"{param}.json_schema.schema"), f"{param}.json_schema.schema"
        )
    return kind != "text"


def _check_schema(schema: dict[str, object], param: str) -> None:
    """Refuse a schema that is too large or refers to anything outside itself: nothing is ever fetched."""
    waiting: list[object] = [schema]
    count = 0
    while waiting:
        item = waiting.pop()
        count += 1
        if count > _MAX_SCHEMA_VALUES:
            raise refuse(param, f"may hold at most {_MAX_SCHEMA_VALUES} values")
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
            for name in _REFERENCES:
                if isinstance(target := item.get(name), str) and not target.startswith("#"):
                    raise refuse(param, f"{name} may point into the schema itself only, as #/$defs/name")


def _flag(value: object, param: str) -> bool:
    return as_boolean(value, param)


def _top_logprobs(value: object, param: str) -> bool:
    return as_integer(value, param, at_least=0, at_most=_MAX_TOP_LOGPROBS) > 0


def _logit_bias(value: object, param: str) -> bool:
    biases = as_object(value, param)
    if len(biases) > _MAX_BIASES:
        raise refuse(param, f"may hold at most {_MAX_BIASES} tokens, not {len(biases)}")
    for token, bias in biases.items():
        as_number(bias, f"{param}.{token[:16]}", at_least=-100, at_most=100)
    return bool(biases)


def _choice(*choices: str, idle: tuple[str, ...] = ()) -> Callable[[object, str], bool]:
    """Return the check of a word; one among `idle` asks for nothing."""

    def check(value: object, param: str) -> bool:
        return as_choice(value, param, (*choices, *idle)) not in idle

    return check


def _name(value: object, param: str) -> bool:
    return bool(as_string(value, param, at_most=_MAX_NAME))


def _prediction(value: object, param: str) -> bool:
    prediction = as_object(value, param)
    known_fields(prediction, ("content", "type"), param)
    as_choice(prediction.get("type"), f"{param}.type", ("content",))
    content = prediction.get("content")
    if isinstance(content, str):
        return True
    for index, item in enumerate(as_array(content, f"{param}.content", at_least=1)):
        part = as_object(item, f"{param}.content[{index}]")
        as_choice(part.get("type"), f"{param}.content[{index}].type", ("text",))
        as_string(part.get("text"), f"{param}.content[{index}].text")
    return True


# Checks a value and says whether it asks for anything: a default goes unsent.
_PASSED: Mapping[str, Callable[[object, str], bool]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "stop": _stop,
    "seed": _seed,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "parallel_tool_calls": _parallel,
    "response_format": _response_format,
    "logit_bias": _logit_bias,
    "logprobs": _flag,
    "prediction": _prediction,
    "prompt_cache_key": _name,
    "reasoning_effort": _choice(*EFFORTS),
    "safety_identifier": _name,
    "service_tier": _choice("flex", "priority", "scale", idle=("auto", "default")),
    "top_logprobs": _top_logprobs,
    "user": _name,
    "verbosity": _choice("low", "medium", "high"),
}

_HANDLED = frozenset(
    ("max_completion_tokens", "max_tokens", "metadata", "n", "store", "stream", "stream_options")
)

# Known fields that Podium cannot honour, with the values that ask for nothing.
_HARMLESS: Mapping[str, tuple[object, ...]] = {
    "audio": (),
    "function_call": (),
    "functions": (),
    "modalities": (["text"],),
    "moderation": (),
    "prompt_cache_options": (),
    "prompt_cache_retention": (),
    "web_search_options": (),
}

FIELDS = frozenset(
    ("messages", "model", "podium", *_PASSED, *_HANDLED, *(name for name, idle in _HARMLESS.items() if idle))
)
"""Every field of a body that may have a value: what the API's description lists."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_INSTEAD = {
    "audio": "; workers hear and answer in text: remove it",
    "modalities": '; workers hear and answer in text: send ["text"]',
    "function_call": "; use tool_choice",
    "functions": "; use tools",
}


def _require_harmless(name: str, value: object) -> None:
    harmless = _HARMLESS.get(name)
    if harmless is None:
        raise refuse(name[:64], "unknown parameter; remove it", reason="UNKNOWN_PARAMETER")
    if not any(type(value) is type(known) and value == known for known in harmless):
        hint = _INSTEAD.get(name, "; remove it")
        raise refuse(name, f"Podium cannot honour this parameter{hint}", reason="UNSUPPORTED_PARAMETER")


def _check_companions(given: Mapping[str, object]) -> None:
    if given.get("top_logprobs") and given.get("logprobs") is not True:
        raise refuse("top_logprobs", "is allowed only together with logprobs: true")
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in given and not given.get("tools"):
            raise refuse(name, "is allowed only together with tools")


def _max_output_tokens(given: Mapping[str, object]) -> int | None:
    both = {
        name: as_integer(given[name], name, at_least=1)
        for name in ("max_completion_tokens", "max_tokens")
        if name in given
    }
    if len(set(both.values())) > 1:
        raise refuse("max_tokens", "contradicts max_completion_tokens; send only the latter")
    return next(iter(both.values()), None)


def _include_usage(given: Mapping[str, object], *, stream: bool) -> bool:
    if "stream_options" not in given:
        return False
    if not stream:
        raise refuse("stream_options", "is allowed only when stream is true")
    options = as_object(given["stream_options"], "stream_options")
    known_fields(options, ("include_obfuscation", "include_usage"), "stream_options")
    if as_boolean(options.get("include_obfuscation") or False, "stream_options.include_obfuscation"):
        raise _unsupported("stream_options.include_obfuscation")
    return as_boolean(options.get("include_usage") or False, "stream_options.include_usage")


def _unsupported(param: str) -> PodiumError:
    return refuse(param, "Podium cannot honour this; leave it out", reason="UNSUPPORTED_PARAMETER")


def decode_metadata(value: object) -> Mapping[str, str]:
    """Return the labels of an answer; raise PodiumError (INVALID_REQUEST) naming the one to blame."""
    fields = as_object(value, "metadata")
    if len(fields) > _MAX_METADATA:
        raise refuse("metadata", f"may hold at most {_MAX_METADATA} keys, not {len(fields)}")
    checked: dict[str, str] = {}
    for key, item in fields.items():
        as_string(key, "metadata", at_most=_MAX_METADATA_KEY)
        checked[key] = as_string(item, f"metadata.{key[:64]}", at_most=_MAX_METADATA_VALUE)
    return checked
