"""The ids that clients see on tool calls: short, signed, and enough to find the worker that asked.

An id is `pod_` and 34 characters of URL-safe base64: the run (16 bytes), the call's index (1) and 8 bytes of
HMAC-SHA256 over both under the tenant's own key. Worker and upstream id are not in it: they are kept, sealed,
under the run. Forty characters is what the strictest provider takes (OpenAI Chat Completions).
"""

import base64
import binascii
import hmac
from dataclasses import dataclass

PREFIX = "pod_"
KEY_BYTES = 32
MAX_INDEX = 255

_RUN_PREFIX = "run_"
_RUN_BYTES = 16
_MAC_BYTES = 8
_LENGTH = 34
_LABEL = b"podium-tool-call/1\x00"


@dataclass(frozen=True, slots=True)
class ToolCallName:
    """What an id stands for: one call of one run."""

    run_id: str
    index: int


def is_ours(call_id: str) -> bool:
    """Say whether an id looks like one that a Podium made; any other is plain history."""
    return call_id.startswith(PREFIX) and len(call_id) == len(PREFIX) + _LENGTH


def tool_call_id(key: bytes, name: ToolCallName) -> str:
    """Return the id of a call. Raises ValueError when the run's id or the index does not fit one."""
    plain = bytes.fromhex(name.run_id.removeprefix(_RUN_PREFIX)) + bytes([name.index])
    if len(plain) != _RUN_BYTES + 1:
        raise ValueError("a run id has 32 hexadecimal digits")
    return PREFIX + base64.urlsafe_b64encode(plain + _mac(key, plain)).decode().rstrip("=")


def read_tool_call_id(key: bytes, call_id: str) -> ToolCallName | None:
    """Return what an id stands for; None unless this key made exactly this id."""
    if not is_ours(call_id):
        return None
    try:
        data = base64.b64decode(call_id[len(PREFIX) :] + "==", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    plain, mac = data[: _RUN_BYTES + 1], data[_RUN_BYTES + 1 :]
    name = ToolCallName(_RUN_PREFIX + plain[:_RUN_BYTES].hex(), plain[_RUN_BYTES])
    # The last character has bits to spare: an id is only what was given out, character by character.
    same = hmac.compare_digest(tool_call_id(key, name), call_id)
    return name if hmac.compare_digest(mac, _mac(key, plain)) and same else None


def _mac(key: bytes, plain: bytes) -> bytes:
    return hmac.digest(key, _LABEL + plain, "sha256")[:_MAC_BYTES]
