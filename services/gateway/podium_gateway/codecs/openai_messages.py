"""The `messages` of a chat request: checked by role, kept exactly as they came.

Every message stays the decoded object itself, so that what a worker reads is what the client wrote.
"""

import re

from podium_core.domain.run import Message
from podium_gateway.codecs.fields import as_array, as_choice, as_object, as_string, refuse

ROLES = ("assistant", "developer", "system", "tool", "user")

_IMAGE_DETAILS = ("auto", "high", "low")
_AUDIO_FORMATS = ("mp3", "wav")
_MAX_ADDRESS = 8_192
# Podium fetches neither: bytes go to workers that see, addresses to those that also fetch for themselves.
_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_IMAGE_DATA = re.compile(r"data:image/[a-z0-9.+-]{1,32};base64,", re.IGNORECASE)
_PART_TYPES = {
    "user": ("image_url", "input_audio", "text"),
    "assistant": ("refusal", "text"),
}
_TEXT_ONLY = ("text",)


def decode_messages(value: object) -> tuple[Message, ...]:
    """Return the conversation; raise PodiumError (INVALID_REQUEST) naming the first bad field."""
    items = as_array(value, "messages", at_least=1)
    return tuple(_message(item, f"messages[{index}]") for index, item in enumerate(items))


def _message(value: object, path: str) -> Message:
    fields = as_object(value, path)
    if "role" not in fields:
        raise refuse(f"{path}.role", "is missing", reason="MISSING_FIELD")
    role = as_choice(fields["role"], f"{path}.role", ROLES)
    if fields.get("name") is not None:
        as_string(fields["name"], f"{path}.name", at_most=256)
    if role == "tool":
        as_string(fields.get("tool_call_id"), f"{path}.tool_call_id", may_be_empty=False)
    if fields.get("tool_calls") is not None:
        _check_tool_calls(fields["tool_calls"], role, f"{path}.tool_calls")
    return Message(role, _text(fields, role, path), fields)


def _text(fields: dict[str, object], role: str, path: str) -> str:
    content = fields.get("content")
    param = f"{path}.content"
    if isinstance(content, str):
        return content
    if content is None:
        if role == "assistant" and (fields.get("tool_calls") or fields.get("refusal")):
            return ""
        raise refuse(param, "is missing; send a string or an array of parts", reason="MISSING_FIELD")
    if not isinstance(content, list):
        raise refuse(param, "must be a string or an array of parts")
    parts = as_array(content, param, at_least=1)
    allowed = _PART_TYPES.get(role, _TEXT_ONLY)
    texts = [_part_text(part, allowed, f"{param}[{index}]") for index, part in enumerate(parts)]
    return "\n".join(text for text in texts if text is not None)


def _part_text(value: object, allowed: tuple[str, ...], path: str) -> str | None:
    part = as_object(value, path)
    kind = as_choice(part.get("type"), f"{path}.type", allowed)
    if kind == "text":
        return as_string(part.get("text"), f"{path}.text")
    if kind == "refusal":
        return as_string(part.get("refusal"), f"{path}.refusal")
    if kind == "input_audio":
        _check_audio(part.get("input_audio"), f"{path}.input_audio")
    else:
        _check_image(part.get("image_url"), f"{path}.image_url")
    return None


def _check_image(value: object, path: str) -> None:
    image = as_object(value, path)
    url = as_string(image.get("url"), f"{path}.url", may_be_empty=False)
    is_address = _ADDRESS.match(url) is not None
    if not is_address and _IMAGE_DATA.match(url) is None:
        raise refuse(f"{path}.url", "must begin with data:image/...;base64, or be an http or https address")
    if is_address and len(url) > _MAX_ADDRESS:
        raise refuse(f"{path}.url", f"an address may be at most {_MAX_ADDRESS} characters long")
    if image.get("detail") is not None:
        as_choice(image["detail"], f"{path}.detail", _IMAGE_DETAILS)


def _check_audio(value: object, path: str) -> None:
    audio = as_object(value, path)
    as_string(audio.get("data"), f"{path}.data", may_be_empty=False)
    as_choice(audio.get("format"), f"{path}.format", _AUDIO_FORMATS)


def _check_tool_calls(value: object, role: str, path: str) -> None:
    if role != "assistant":
        raise refuse(path, "only an assistant message has tool calls")
    for index, item in enumerate(as_array(value, path, at_least=1)):
        call = as_object(item, f"{path}[{index}]")
        as_string(call.get("id"), f"{path}[{index}].id", may_be_empty=False)
        as_choice(call.get("type", "function"), f"{path}[{index}].type", ("function",))
        function = as_object(call.get("function"), f"{path}[{index}].function")
        as_string(function.get("name"), f"{path}[{index}].function.name", may_be_empty=False)
        as_string(function.get("arguments"), f"{path}[{index}].function.arguments")
