"""OpenAI's Embeddings: texts or token numbers in, vectors out, as numbers or in base64."""

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from podium_core.domain.run import Message, Question, RunKind
from podium_core.domain.usage import Usage
from podium_gateway.codecs.client_request import ClientRequest, decode_model, worker_of
from podium_gateway.codecs.fields import as_array, as_choice, as_integer, as_string, known_fields, refuse
from podium_gateway.codecs.openai_parameters import decode_parameters
from podium_gateway.codecs.openai_podium import decode_wishes
from podium_gateway.codecs.strict_json import parse_object

_MAX_INPUTS = 2_048
_MAX_TOKENS = 100_000
_MAX_TOKEN = 2**31 - 1
_MAX_DIMENSIONS = 65_536
_FLOAT_BYTES = 4
FIELDS = ("dimensions", "encoding_format", "input", "model", "podium", "user")


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """One decoded request, and whether vectors are wanted in base64."""

    request: ClientRequest
    in_base64: bool


def decode_embeddings_request(body: bytes) -> EmbeddingsRequest:
    """Return what the client asks for.

    Raises PodiumError: INVALID_REQUEST naming the field and what to change, NOT_FOUND for an unknown model.
    """
    given = {name: value for name, value in parse_object(body).items() if value is not None}
    model = decode_model(given.get("model"))
    worker_id = worker_of(model)
    known_fields(given, FIELDS, "the body")
    if worker_id is None:
        # Vectors of different models cannot be compared, so no tier may choose one.
        raise refuse("model", "name the worker that makes the embeddings: worker/<id>")
    inputs = _inputs(given.get("input"))
    form = as_choice(given.get("encoding_format", "float"), "encoding_format", ("base64", "float"))
    passed: dict[str, object] = {}
    if "dimensions" in given:
        passed["dimensions"] = as_integer(
            given["dimensions"], "dimensions", at_least=1, at_most=_MAX_DIMENSIONS
        )
    wishes = decode_wishes(given.get("podium"))
    if wishes.dry_run or wishes.events:
        raise refuse("podium", "embeddings have neither a dry run nor events")
    user = {"user": given["user"]} if "user" in given else {}
    text = "\n".join(item if isinstance(item, str) else str(item) for item in inputs)
    question = Question((Message("user", text, {"role": "user", "content": inputs}),))
    parameters = replace(decode_parameters(user), passed=passed)
    request = ClientRequest(model, worker_id, question, parameters, wishes, RunKind.EMBED)
    return EmbeddingsRequest(request, in_base64=form == "base64")


def embeddings_object(
    vectors: Sequence[bytes], usage: Usage, *, model: str, podium: Mapping[str, object], in_base64: bool
) -> dict[str, object]:
    """Return the body of an answer."""
    return {
        "object": "list",
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(vector).decode() if in_base64 else _numbers(vector),
            }
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": usage.input_tokens, "total_tokens": usage.total_tokens},
        "podium": podium,
    }


def _numbers(vector: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(vector) // _FLOAT_BYTES}f", vector))


def _inputs(value: object) -> list[object]:
    """Return a list of texts, or of arrays of token numbers."""
    if value is None:
        raise refuse("input", "is missing", reason="MISSING_FIELD")
    if isinstance(value, str):
        return [as_string(value, "input", may_be_empty=False)]
    items = as_array(value, "input", at_least=1)
    if isinstance(items[0], int) and not isinstance(items[0], bool):
        return [_tokens(items, "input")]
    if len(items) > _MAX_INPUTS:
        raise refuse("input", f"may hold at most {_MAX_INPUTS} inputs, not {len(items)}")
    if isinstance(items[0], list):
        return [_tokens(item, f"input[{index}]") for index, item in enumerate(items)]
    return [as_string(item, f"input[{index}]", may_be_empty=False) for index, item in enumerate(items)]


def _tokens(value: object, path: str) -> list[object]:
    tokens = as_array(value, path, at_least=1, at_most=_MAX_TOKENS)
    for index, token in enumerate(tokens):
        as_integer(token, f"{path}[{index}]", at_least=0, at_most=_MAX_TOKEN)
    return tokens
