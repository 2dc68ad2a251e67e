"""Anthropic's `system` and `messages`, as the Chat Completions messages that workers are sent.

Thinking blocks of earlier turns are not sent on: no other provider could read them, and Anthropic's own API
leaves them out of the context too. `cache_control` marks are hints, which providers' own caches go without.
"""

import json
from collections.abc import Iterable

from podium_core.domain.run import Message
from podium_gateway.codecs.fields import as_array, as_boolean, as_choice, as_object, as_string, refuse
from podium_gateway.codecs.openai_messages import decode_messages

_ROLES = ("assistant", "system", "user")
_IMAGE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
_BLOCKS = {
    "user": ("document", "image", "text", "tool_result"),
    "assistant": ("redacted_thinking", "text", "thinking", "tool_use"),
    "system": ("text",),
}

_Fields = dict[str, object]


def decode_conversation(system: object, messages: object) -> tuple[Message, ...]:
    """Return the conversation; raise PodiumError (INVALID_REQUEST) naming the first bad field."""
    made: list[_Fields] = []
    if system is not None and (text := _system(system)):
        made.append({"role": "system", "content": text})
    for index, item in enumerate(as_array(messages, "messages", at_least=1)):
        made.extend(_turn(item, f"messages[{index}]"))
    return decode_messages(made)


def _system(value: object) -> str:
    if isinstance(value, str):
        return value
    return _texts(as_array(value, "system"), "system")


def _texts(blocks: list[object], path: str) -> str:
    texts = []
    for index, item in enumerate(blocks):
        where = f"{path}[{index}]"
        block = as_object(item, where)
        as_choice(block.get("type"), f"{where}.type", ("text",))
        texts.append(as_string(block.get("text"), f"{where}.text"))
    return "\n\n".join(texts)


def _turn(value: object, path: str) -> Iterable[_Fields]:
    fields = as_object(value, path)
    role = as_choice(fields.get("role"), f"{path}.role", _ROLES)
    content = fields.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    where = f"{path}.content"
    blocks: list[tuple[str, _Fields, str]] = []
    for index, item in enumerate(as_array(content, where, at_least=1)):
        block = as_object(item, f"{where}[{index}]")
        kind = as_choice(block.get("type"), f"{where}[{index}].type", _BLOCKS[role])
        blocks.append((kind, block, f"{where}[{index}]"))
    return _assistant(blocks) if role == "assistant" else _asking(role, blocks)


def _assistant(blocks: list[tuple[str, _Fields, str]]) -> list[_Fields]:
    texts: list[str] = []
    calls: list[object] = []
    for kind, block, path in blocks:
        if kind == "text":
            texts.append(as_string(block.get("text"), f"{path}.text"))
        elif kind == "tool_use":
            arguments = json.dumps(as_object(block.get("input", {}), f"{path}.input"), ensure_ascii=False)
            name = as_string(block.get("name"), f"{path}.name", may_be_empty=False)
            call_id = as_string(block.get("id"), f"{path}.id", may_be_empty=False)
            function = {"name": name, "arguments": arguments}
            calls.append({"id": call_id, "type": "function", "function": function})
    if not texts and not calls:
        return []
    made: _Fields = {"role": "assistant", "content": "".join(texts) if texts else None}
    if calls:
        made["tool_calls"] = calls
    return [made]


def _asking(role: str, blocks: list[tuple[str, _Fields, str]]) -> list[_Fields]:
    """Return tool results first, since they must follow the calls, then what else the turn holds."""
    results: list[_Fields] = []
    parts: list[object] = []
    for kind, block, path in blocks:
        if kind == "text":
            parts.append({"type": "text", "text": as_string(block.get("text"), f"{path}.text")})
        elif kind == "image":
            parts.append(_image(block, path))
        elif kind == "document":
            parts.append(_document(block, path))
        else:
            results.append(_tool_result(block, parts, path))
    if parts:
        results.append({"role": role, "content": _plain(parts)})
    return results


def _plain(parts: list[object]) -> object:
    """Return one text part as a string, as most clients send it."""
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _tool_result(block: _Fields, parts: list[object], path: str) -> _Fields:
    call_id = as_string(block.get("tool_use_id"), f"{path}.tool_use_id", may_be_empty=False)
    content = block.get("content") or ""
    texts: list[str] = []
    if isinstance(content, str):
        texts.append(content)
    else:
        for index, item in enumerate(as_array(content, f"{path}.content")):
            where = f"{path}.content[{index}]"
            inner = as_object(item, where)
            if as_choice(inner.get("type"), f"{where}.type", ("image", "text")) == "text":
                texts.append(as_string(inner.get("text"), f"{where}.text"))
            else:
                # A tool message holds only text, so its images follow in the user's.
                parts.append(_image(inner, where))
    text = "\n".join(texts)
    if as_boolean(block.get("is_error") or False, f"{path}.is_error"):
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _image(block: _Fields, path: str) -> _Fields:
    source = as_object(block.get("source"), f"{path}.source")
    if as_choice(source.get("type"), f"{path}.source.type", ("base64", "url")) == "url":
        url = as_string(source.get("url"), f"{path}.source.url", may_be_empty=False)
    else:
        media_type = as_choice(source.get("media_type"), f"{path}.source.media_type", _IMAGE_TYPES)
        url = f"data:{media_type};base64,{as_string(source.get('data'), f'{path}.source.data')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _document(block: _Fields, path: str) -> _Fields:
    source = as_object(block.get("source"), f"{path}.source")
    if source.get("type") != "text":
        raise refuse(
            f"{path}.source.type",
            "only documents of plain text can be read; send their text",
            reason="UNSUPPORTED_PARAMETER",
        )
    text = as_string(source.get("data"), f"{path}.source.data")
    title = block.get("title")
    head = "" if title is None else as_string(title, f"{path}.title") + "\n\n"
    return {"type": "text", "text": head + text}
