"""The `input` items of a Responses request, as the Chat Completions messages that workers are sent.

Reasoning items, and calls of hosted web searches, are left out: what they hold only their own provider can
read, and what came of them stands in the messages after them.
"""

import json
from collections.abc import Mapping, Sequence

from podium_gateway.codecs.fields import as_array, as_choice, as_object, as_string, kind_of, refuse
from podium_gateway.codecs.strict_json import shown

CUSTOM_INPUT = "input"
"""The one argument of the function that stands for a custom tool: its free text."""

_ROLES = ("assistant", "developer", "system", "user")
_FOREIGN = frozenset({"reasoning", "web_search_call"})
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})

_Fields = dict[str, object]


def decode_input(value: object) -> list[_Fields]:
    """Return the messages; raise PodiumError (INVALID_REQUEST) naming the first bad field."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    made: list[_Fields] = []
    pictures: list[object] = []
    if not isinstance(value, list):
        raise refuse("input", f"must be a string or an array of items, not {kind_of(value)}")
    for index, item in enumerate(as_array(value, "input", at_least=1)):
        path = f"input[{index}]"
        fields = as_object(item, path)
        kind = as_string(fields.get("type") or "message", f"{path}.type")
        if kind in _FOREIGN:
            continue
        if kind not in ("function_call_output", "custom_tool_call_output"):
            _show(pictures, made)
        if kind == "message":
            made.append(_message(fields, path))
        elif kind in ("function_call", "custom_tool_call"):
            _add_call(made, _call(fields, kind, path))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            made.append(_output(fields, pictures, path))
        else:
            raise refuse(
                f"{path}.type",
                f"Podium cannot read items of type {shown(kind)}; leave them out",
                reason="UNSUPPORTED_ITEM",
            )
    _show(pictures, made)
    return made


def input_items(messages: Sequence[Mapping[str, object]], response_id: str) -> list[_Fields]:
    """Return messages that `decode_input` has made as the items that a client lists later."""
    made: list[_Fields] = []
    for message in messages:
        role, content = str(message["role"]), message.get("content")
        if role == "tool":
            made.append(
                {
                    "type": "function_call_output",
                    "call_id": message["tool_call_id"],
                    "output": content,
                }
            )
            continue
        if content is not None:
            made.append({"type": "message", "role": role, "content": _listed_parts(content, role)})
        calls = message.get("tool_calls")
        made.extend(
            {"type": "function_call", "call_id": call["id"], **call["function"]}
            for call in (calls if isinstance(calls, list) else ())
        )
    stem = response_id.rpartition("_")[2]
    return [
        {"id": f"in_{stem}_{index}", "status": "completed", **fields} for index, fields in enumerate(made)
    ]


def _listed_parts(content: object, role: str) -> list[_Fields]:
    kind = "output_text" if role == "assistant" else "input_text"
    if not isinstance(content, list):
        return [{"type": kind, "text": content}]
    made: list[_Fields] = []
    for part in content:
        if part["type"] == "text":
            made.append({"type": kind, "text": part["text"]})
        elif part["type"] == "image_url":
            image = part["image_url"]
            made.append(
                {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
            )
        else:
            made.append(part)
    return made


def _show(pictures: list[object], made: list[_Fields]) -> None:
    """Let the user show the images of tool outputs, which hold only text, once all outputs are told."""
    if pictures:
        made.append({"role": "user", "content": list(pictures)})
        pictures.clear()


def _message(fields: Mapping[str, object], path: str) -> _Fields:
    role = as_choice(fields.get("role"), f"{path}.role", _ROLES)
    return {"role": role, "content": _content(fields.get("content"), role, f"{path}.content")}


def _content(value: object, role: str, path: str) -> object:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise refuse(path, f"must be a string or an array of parts, not {kind_of(value)}")
    parts = [_part(item, f"{path}[{index}]") for index, item in enumerate(as_array(value, path, at_least=1))]
    if role == "assistant" or (len(parts) == 1 and parts[0]["type"] == "text"):
        if any(part["type"] != "text" for part in parts):
            raise refuse(path, "an assistant message holds only text")
        return "".join(str(part["text"]) for part in parts)
    return parts


def _part(value: object, path: str) -> _Fields:
    part = as_object(value, path)
    kind = as_string(part.get("type"), f"{path}.type")
    if kind in _TEXT_PARTS:
        return {"type": "text", "text": as_string(part.get("text"), f"{path}.text")}
    if kind == "refusal":
        return {"type": "text", "text": as_string(part.get("refusal"), f"{path}.refusal")}
    if kind == "input_image":
        return _image(part, path)
    if kind == "input_audio":
        return {"type": kind, "input_audio": as_object(part.get("input_audio"), f"{path}.input_audio")}
    raise refuse(
        f"{path}.type",
        f"Podium cannot read parts of type {shown(kind)}; send text or images",
        reason="UNSUPPORTED_ITEM",
    )


def _image(part: Mapping[str, object], path: str) -> _Fields:
    if part.get("image_url") is None:
        raise refuse(f"{path}.image_url", "is missing; uploaded files are not kept, send a data URL")
    image: _Fields = {"url": as_string(part["image_url"], f"{path}.image_url", may_be_empty=False)}
    if part.get("detail") is not None:
        image["detail"] = as_choice(part["detail"], f"{path}.detail", ("auto", "high", "low", "original"))
        if image["detail"] == "original":
            image["detail"] = "high"
    return {"type": "image_url", "image_url": image}


def _call(fields: Mapping[str, object], kind: str, path: str) -> _Fields:
    name = as_string(fields.get("name"), f"{path}.name", may_be_empty=False)
    if kind == "function_call":
        arguments = as_string(fields.get("arguments"), f"{path}.arguments")
    else:
        text = as_string(fields.get("input"), f"{path}.input")
        arguments = json.dumps({CUSTOM_INPUT: text}, ensure_ascii=False)
    call_id = as_string(fields.get("call_id"), f"{path}.call_id", may_be_empty=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _add_call(made: list[_Fields], call: _Fields) -> None:
    """Join the calls of one turn, and what was said before them, into one assistant message."""
    last = made[-1] if made else None
    if last is None or last["role"] != "assistant":
        made.append({"role": "assistant", "content": None, "tool_calls": [call]})
        return
    calls = last.setdefault("tool_calls", [])
    assert isinstance(calls, list)
    calls.append(call)


def _output(fields: Mapping[str, object], pictures: list[object], path: str) -> _Fields:
    call_id = as_string(fields.get("call_id"), f"{path}.call_id", may_be_empty=False)
    output = fields.get("output")
    if not isinstance(output, str):
        texts: list[str] = []
        for index, item in enumerate(as_array(output, f"{path}.output")):
            part = _part(item, f"{path}.output[{index}]")
            if part["type"] == "text":
                texts.append(str(part["text"]))
            else:
                pictures.append(part)
        output = "\n".join(texts)
    return {"role": "tool", "tool_call_id": call_id, "content": output}
