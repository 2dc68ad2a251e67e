"""What a provider wants back with its own message when the conversation goes on: signatures of its reasoning.

Podium does not read them. Anthropic refuses a tool result whose turn lost its thinking blocks, Gemini one
whose call lost its thought signature; OpenRouter (`reasoning_details`) and Gemini's OpenAI surface
(`extra_content`) are the same under other names.
"""

import json
from typing import Final, cast

_Json = dict[str, object]

_LISTS: Final = ("reasoning_details",)
_CALL_FIELDS: Final = ("extra_content", "provider_specific_fields")
_SIGNATURES: Final = "thought_signatures"


class Replay:
    """Collects these fields from deltas or from a whole message."""

    __slots__ = ("_blocks", "_calls", "_lists", "_signatures")

    def __init__(self) -> None:
        self._blocks: list[_Json] = []
        self._lists: dict[str, list[object]] = {}
        self._signatures: list[object] = []
        self._calls: dict[int, _Json] = {}

    def take(self, output: _Json) -> None:
        """Take what one delta or message holds; anything that is not shaped as expected is left out."""
        for block in _objects(output.get("thinking_blocks")):
            self._take_block(block)
        for name in _LISTS:
            if items := _objects(output.get(name)):
                self._lists.setdefault(name, []).extend(items)
        own = output.get("provider_specific_fields")
        if isinstance(own, dict) and isinstance(own.get(_SIGNATURES), list):
            self._signatures.extend(cast("list[object]", own[_SIGNATURES]))
        for position, call in enumerate(_objects(output.get("tool_calls"))):
            extras = {name: call[name] for name in _CALL_FIELDS if call.get(name)}
            if extras:
                index = call.get("index")
                self._calls.setdefault(index if type(index) is int else position, {}).update(extras)

    def message_json(self, text: str, tool_calls: tuple[_Json, ...]) -> bytes:
        """Return the whole assistant message to put back; empty when text and tool calls say it all."""
        extras: _Json = dict(self._lists)
        if self._blocks:
            extras["thinking_blocks"] = self._blocks
        if self._signatures:
            extras["provider_specific_fields"] = {_SIGNATURES: self._signatures}
        if not (extras or self._calls):
            return b""
        calls = [{**call, **self._calls.get(index, {})} for index, call in enumerate(tool_calls)]
        message: _Json = {"role": "assistant", "content": text or None, **extras}
        if calls:
            message["tool_calls"] = calls
        return json.dumps(message, separators=(",", ":")).encode()

    def _take_block(self, block: _Json) -> None:
        """Take a piece of a thinking block; its signature comes last and closes it."""
        last = self._blocks[-1] if self._blocks else None
        is_open = last is not None and last.get("type") == "thinking" and not last.get("signature")
        if last is None or not is_open or block.get("type") != "thinking":
            self._blocks.append({name: value for name, value in block.items() if name != "index"})
            return
        last["thinking"] = f"{last.get('thinking') or ''}{block.get('thinking') or ''}"
        if block.get("signature"):
            last["signature"] = block["signature"]


def _objects(value: object) -> list[_Json]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("_Json", item) for item in items if isinstance(item, dict)]
