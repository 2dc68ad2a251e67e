"""The tools of a Responses request, as the functions that workers know.

A custom tool takes free text, which few workers can be asked for. It becomes a function of one string, and
what comes back is unwrapped, so that the client reads the raw text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from podium_gateway.codecs.fields import (
    as_array,
    as_boolean,
    as_choice,
    as_object,
    as_string,
    known_fields,
    refuse,
)
from podium_gateway.codecs.responses_input import CUSTOM_INPUT
from podium_gateway.codecs.strict_json import shown

_MAX_TOOLS = 128
_MAX_NAME = 64
_FUNCTION_FIELDS = ("defer_loading", "description", "name", "parameters", "strict", "type")
_CUSTOM_FIELDS = ("defer_loading", "description", "format", "name", "type")

_Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class Tools:
    """`functions` are what workers are given; calls of those in `custom` go back as raw text."""

    functions: tuple[_Fields, ...]
    custom: frozenset[str]


def decode_tools(value: object) -> Tools:
    """Return the tools; raise PodiumError (INVALID_REQUEST, reason UNSUPPORTED_TOOL for hosted ones)."""
    functions: list[_Fields] = []
    custom: set[str] = set()
    for index, item in enumerate(as_array(value, "tools", at_most=_MAX_TOOLS)):
        path = f"tools[{index}]"
        tool = as_object(item, path)
        kind = as_string(tool.get("type"), f"{path}.type")
        if kind not in ("custom", "function"):
            raise refuse(
                f"{path}.type",
                f"Podium does not run the hosted tool {shown(kind)}; give functions or custom tools",
                reason="UNSUPPORTED_TOOL",
            )
        name = as_string(tool.get("name"), f"{path}.name", at_most=_MAX_NAME, may_be_empty=False)
        if kind == "custom":
            custom.add(name)
        functions.append(_custom(tool, name, path) if kind == "custom" else _function(tool, name, path))
    return Tools(tuple(functions), frozenset(custom))


def decode_tool_choice(value: object, tools: Tools) -> tuple[Tools, object]:
    """Return the tools that may be called, and the choice among them in Chat Completions' words."""
    if isinstance(value, str):
        return tools, as_choice(value, "tool_choice", ("auto", "none", "required"))
    choice = as_object(value, "tool_choice")
    kind = as_choice(choice.get("type"), "tool_choice.type", ("allowed_tools", "custom", "function"))
    if kind != "allowed_tools":
        name = _known(choice.get("name"), tools, "tool_choice.name")
        return tools, {"type": "function", "function": {"name": name}}
    mode = as_choice(choice.get("mode"), "tool_choice.mode", ("auto", "required"))
    names = set()
    for index, item in enumerate(as_array(choice.get("tools"), "tool_choice.tools", at_least=1)):
        path = f"tool_choice.tools[{index}]"
        names.add(_known(as_object(item, path).get("name"), tools, f"{path}.name"))
    allowed = tuple(function for function in tools.functions if _name(function) in names)
    return Tools(allowed, tools.custom), mode


def raw_input(arguments: str) -> str:
    """Return the free text within the arguments of a custom tool's call; what is no wrapping is the text."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if isinstance(given, dict) and isinstance(given.get(CUSTOM_INPUT), str):
        return str(given[CUSTOM_INPUT])
    return arguments


def _known(value: object, tools: Tools, param: str) -> str:
    name = as_string(value, param, may_be_empty=False)
    if all(_name(function) != name for function in tools.functions):
        raise refuse(param, f"there is no tool {shown(name)} in tools")
    return name


def _name(function: Mapping[str, object]) -> object:
    inner = function["function"]
    assert isinstance(inner, dict)
    return inner["name"]


def _function(tool: Mapping[str, object], name: str, path: str) -> _Fields:
    known_fields(tool, _FUNCTION_FIELDS, path)
    function: _Fields = {"name": name}
    if tool.get("description") is not None:
        function["description"] = as_string(tool["description"], f"{path}.description")
    if tool.get("parameters") is not None:
        function["parameters"] = as_object(tool["parameters"], f"{path}.parameters")
    if tool.get("strict") is not None:
        function["strict"] = as_boolean(tool["strict"], f"{path}.strict")
    return {"type": "function", "function": function}


def _custom(tool: Mapping[str, object], name: str, path: str) -> _Fields:
    known_fields(tool, _CUSTOM_FIELDS, path)
    told = [] if tool.get("description") is None else [as_string(tool["description"], f"{path}.description")]
    if tool.get("format") is not None:
        wanted = as_object(tool["format"], f"{path}.format")
        if as_choice(wanted.get("type"), f"{path}.format.type", ("grammar", "text")) == "grammar":
            syntax = as_choice(wanted.get("syntax"), f"{path}.format.syntax", ("lark", "regex"))
            definition = as_string(wanted.get("definition"), f"{path}.format.definition")
            told.append(f"The text must follow this {syntax} grammar:\n{definition}")
    text = {"type": "string", "description": f"The whole input of {name}, as plain text"}
    parameters = {
        "type": "object",
        "properties": {CUSTOM_INPUT: text},
        "required": [CUSTOM_INPUT],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": "\n\n".join(told), "parameters": parameters},
    }
