"""The exact bytes of one provider call, built once: what is recorded is what is sent.

The messages are joined verbatim, never decoded: a JSON round trip would cost time and could change them.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.usage import Price
from podium_router.calls import Piece

_RESERVED = frozenset(
    {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"}
)
_STREAMED = b',"stream":true,"stream_options":{"include_usage":true}'
_SPACE = b" \t\n\r"
_DEVELOPER = re.compile(rb'"role"\s*:\s*"developer"')

MAX_IMAGE_TOKENS = 65_536
"""More than any provider counts for one image; only the reservation uses it, never the settlement."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request body, and the pieces that join to it as the log is told them."""

    data: bytes
    pieces: tuple[Piece, ...]
    sha256: bytes
    messages_bytes: int


@dataclass(frozen=True, slots=True)
class BodyShape:
    """What a worker's provider wants to be told. `model_json` is the model name as JSON text."""

    model_json: bytes
    max_tokens_field: bytes
    knows_developer: bool = False

    @classmethod
    def of(
        cls, provider_model: str, *, max_completion_tokens: bool, knows_developer: bool = False
    ) -> "BodyShape":
        """Return the shape for a model; newer OpenAI models name the token limit and one role differently."""
        field = b"max_completion_tokens" if max_completion_tokens else b"max_tokens"
        return cls(json.dumps(provider_model).encode(), field, knows_developer)


def build_body(
    shape: BodyShape,
    messages: tuple[Piece, ...],
    parameters_json: bytes,
    *,
    max_output_tokens: int,
    stream: bool,
    max_bytes: int,
) -> Body:
    """Return the body of one call.

    Raises PodiumError: INVALID_REQUEST for messages that are no array, or parameters that are no JSON
    object or hold a field the router sets itself; TOO_LARGE above `max_bytes`.
    """
    _check_messages(messages)
    if not shape.knows_developer:
        messages = tuple([_without_developer(piece) for piece in messages])
    head = b'{"model":%b,"messages":' % shape.model_json
    limit = b',"%b":%d' % (shape.max_tokens_field, max_output_tokens)
    fields = _inner_fields(parameters_json)
    tail = limit + (_STREAMED if stream else b"") + (b"," + fields if fields else b"") + b"}"
    messages_bytes = sum(len(piece.data) for piece in messages)
    if len(head) + messages_bytes + len(tail) > max_bytes:
        raise PodiumError(
            Code.TOO_LARGE,
            f"a provider call may take {max_bytes} bytes; shorten the messages",
            param="messages",
        )
    pieces = _merge_new((Piece("", head), *messages, Piece("", tail)))
    data = b"".join([piece.data for piece in pieces])
    return Body(data, pieces, hashlib.sha256(data).digest(), messages_bytes)


def build_embedding_body(shape: BodyShape, inputs: bytes, parameters_json: bytes, *, max_bytes: int) -> Body:
    """Return the body of a call for vectors. `inputs` is the JSON array text of `input`.

    Raises PodiumError: INVALID_REQUEST for inputs that are no array, TOO_LARGE above `max_bytes`.
    """
    _check_messages((Piece("", inputs),))
    fields = _inner_fields(parameters_json)
    tail = b',"encoding_format":"float"' + (b"," + fields if fields else b"") + b"}"
    data = b'{"model":%b,"input":%b%b' % (shape.model_json, inputs, tail)
    if len(data) > max_bytes:
        raise PodiumError(
            Code.TOO_LARGE, f"a provider call may take {max_bytes} bytes; send fewer inputs", param="input"
        )
    return Body(data, (Piece("", data),), hashlib.sha256(data).digest(), len(inputs))


def max_input_tokens(body: Body, *, takes_images: bool) -> int:
    """Return the most tokens a body can hold: one per byte, except in images given by address."""
    input_tokens = len(body.data)
    if takes_images:
        # An image part names it twice: as its type and as its field.
        input_tokens += -(-body.data.count(b'"image_url"') // 2) * MAX_IMAGE_TOKENS
    return input_tokens


def max_cost_usd_micros(
    body: Body, price: Price | None, *, max_output_tokens: int, context_tokens: int, takes_images: bool
) -> int:
    """Return the most the call can cost; 0 for a worker without a price.

    No input is larger than the model's window, when that is known (`context_tokens` above 0).
    """
    if price is None:
        return 0
    input_tokens = max_input_tokens(body, takes_images=takes_images)
    if context_tokens:
        input_tokens = min(input_tokens, context_tokens)
    return price.most_usd_micros(input_tokens, max_output_tokens)


def _without_developer(piece: Piece) -> Piece:
    """Return the piece with `developer` messages made the system's, under which other models know them.

    Inside a JSON string every quote is escaped, so these bytes can only be a key and its value.
    """
    if b'"developer"' not in piece.data:
        return piece
    data = _DEVELOPER.sub(b'"role":"system"', piece.data)
    return piece if data == piece.data else Piece("", data)


def _check_messages(messages: tuple[Piece, ...]) -> None:
    first = next((piece.data for piece in messages if piece.data.strip(_SPACE)), b"")
    last = next((piece.data for piece in reversed(messages) if piece.data.strip(_SPACE)), b"")
    if first.lstrip(_SPACE)[:1] != b"[" or last.rstrip(_SPACE)[-1:] != b"]":
        raise invalid("messages must join to a JSON array", reason="MESSAGES_INVALID", param="messages")


def _inner_fields(parameters_json: bytes) -> bytes:
    """Return what stands between the braces, after checking that it is safe to stand there."""
    if not parameters_json:
        return b""
    try:
        fields: Any = json.loads(parameters_json.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise invalid(
            "parameters_json must be a JSON object", reason="PARAMETERS_INVALID", param="parameters_json"
        )
    clash = sorted(_RESERVED & fields.keys())
    if clash:
        raise invalid(
            f"parameters_json must not hold {clash[0]}: it has its own field",
            reason="PARAMETERS_INVALID",
            param="parameters_json",
        )
    if fields.get("n", 1) != 1:
        raise invalid("n must be 1: an attempt gives one answer", reason="PARAMETERS_INVALID", param="n")
    return parameters_json.strip(_SPACE)[1:-1].strip(_SPACE)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _merge_new(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Join neighbours that are both new, so that the log holds few pieces; drop empty ones."""
    merged: list[Piece] = []
    new: list[bytes] = []
    for piece in pieces:
        if not piece.part_id:
            new.append(piece.data)
            continue
        if new:
            merged.append(Piece("", b"".join(new)))
            new = []
        merged.append(piece)
    if new:
        merged.append(Piece("", b"".join(new)))
    return tuple(merged)
