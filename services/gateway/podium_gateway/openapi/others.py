"""Embeddings, models, grades, usage and health, described."""

from podium_gateway.codecs.grade import MAX_COMMENT
from podium_gateway.openapi.chat import MODEL
from podium_gateway.openapi.shapes import (
    ANY_OBJECT,
    COUNT,
    TRUTH,
    Shape,
    answer,
    array,
    body,
    choice,
    component,
    constant,
    described,
    integer,
    number,
    one_of,
    or_null,
    record,
    text,
)
from podium_gateway.ports import USAGE_COUNTS

_TEXT = text(may_be_empty=False)
_TOKENS = array(integer(0, 2**31 - 1), at_least=1, at_most=100_000)

EMBEDDING_FIELDS: dict[str, Shape] = {
    "dimensions": integer(1, 65_536),
    "encoding_format": choice("base64", "float"),
    "input": described(
        one_of(
            _TEXT,
            array(_TEXT, at_least=1, at_most=2_048),
            _TOKENS,
            array(_TOKENS, at_least=1, at_most=2_048),
        ),
        "Texts, or arrays of token numbers",
    ),
    "model": described(MODEL, "worker/<id>: vectors of different models cannot be compared"),
    "podium": component("PodiumWishes"),
    "user": text(at_most=512),
}

GRADE_FIELDS: dict[str, Shape] = {
    "comment": text(at_most=MAX_COMMENT),
    "pass": described(TRUTH, "Either this or score"),
    "score": number(0, 1, about="Either this or pass"),
}

_MODEL_OBJECT = answer(
    {
        "id": text(),
        "object": constant("model"),
        "created": COUNT,
        "owned_by": text(),
        "description": text(),
        "context_length": or_null(COUNT),
        "context_window": or_null(COUNT),
        "max_model_len": or_null(COUNT),
        "max_output_tokens": or_null(COUNT),
        "input_modalities": array(text()),
        "features": array(text()),
        "demo": TRUTH,
        "health": text(),
    }
)
_COUNTS = dict.fromkeys(USAGE_COUNTS, COUNT)
_USAGE_ROW = answer(
    {"day": text(), "key": text(), "worker": or_null(text()), "model": text(), **_COUNTS},
    sometimes=("day", "key", "worker", "model"),
)
_MONEY = answer(
    {
        "month": text(),
        "budget_usd_micros": or_null(COUNT),
        "spent_usd_micros": COUNT,
        "reserved_usd_micros": COUNT,
        "left_usd_micros": or_null(COUNT),
    },
    about="A month of the tenant or the key, in millionths of a US dollar",
)

OTHER_SHAPES: dict[str, Shape] = {
    "EmbeddingRequest": body(EMBEDDING_FIELDS, ("input", "model")),
    "EmbeddingList": answer(
        {
            "object": constant("list"),
            "data": array(
                answer(
                    {
                        "object": constant("embedding"),
                        "index": COUNT,
                        "embedding": one_of(text(), array({"type": "number"})),
                    }
                )
            ),
            "model": text(),
            "usage": answer({"prompt_tokens": COUNT, "total_tokens": COUNT}),
            "podium": component("PodiumRun"),
        }
    ),
    "GradeRequest": body(GRADE_FIELDS, ()),
    "Grade": answer({"run_id": text(), "score": number(0, 1), "leaf_index": COUNT}),
    "Model": _MODEL_OBJECT,
    "ModelList": answer(
        {
            "object": constant("list"),
            "data": array(component("Model")),
            "models": described(array(ANY_OBJECT), "The catalogue that Codex reads"),
        }
    ),
    "Usage": answer(
        {
            "object": constant("podium.usage"),
            "tenant": text(),
            "key": or_null(text()),
            "from": text(),
            "to": text(),
            "total": answer(_COUNTS),
            "rows": array(_USAGE_ROW),
            "money": _MONEY,
            "key_money": or_null(_MONEY),
        }
    ),
    "Health": answer({"status": text(), "checks": record({}, is_open=True)}, sometimes=("checks",)),
}
