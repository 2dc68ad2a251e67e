"""JSON Schema in few words, as OpenAPI 3.1 takes it (draft 2020-12)."""

from collections.abc import Iterable, Mapping, Sequence

Shape = dict[str, object]

TRUTH: Shape = {"type": "boolean"}
ANY_OBJECT: Shape = {"type": "object"}
COUNT: Shape = {"type": "integer", "minimum": 0}


def text(*, at_most: int | None = None, may_be_empty: bool = True, about: str = "") -> Shape:
    """Return the shape of a string; `at_most` counts characters."""
    shape: Shape = {"type": "string"}
    if at_most is not None:
        shape["maxLength"] = at_most
    if not may_be_empty:
        shape["minLength"] = 1
    return described(shape, about)


def choice(*words: str) -> Shape:
    """Return the shape of one word among `words`."""
    return {"type": "string", "enum": list(words)}


def integer(low: int, high: int | None = None, *, about: str = "") -> Shape:
    """Return the shape of an integer within bounds, both included."""
    bound = {} if high is None else {"maximum": high}
    return described({"type": "integer", "minimum": low, **bound}, about)


def number(low: float, high: float, *, about: str = "") -> Shape:
    """Return the shape of a number within bounds, both included."""
    return described({"type": "number", "minimum": low, "maximum": high}, about)


def array(items: Shape, *, at_least: int = 0, at_most: int | None = None) -> Shape:
    """Return the shape of an array."""
    shape: Shape = {"type": "array", "items": items}
    if at_least:
        shape["minItems"] = at_least
    if at_most is not None:
        shape["maxItems"] = at_most
    return shape


def one_of(*shapes: Shape) -> Shape:
    """Return the shape of what has any of `shapes`."""
    return {"anyOf": list(shapes)}


def record(
    fields: Mapping[str, Shape], required: Iterable[str] = (), *, is_open: bool = False, about: str = ""
) -> Shape:
    """Return the shape of an object; an open one may hold more than is told."""
    shape: Shape = {"type": "object", "properties": dict(fields)}
    if needed := sorted(required):
        shape["required"] = needed
    if not is_open:
        shape["additionalProperties"] = False
    return described(shape, about)


def answer(fields: Mapping[str, Shape], *, sometimes: Sequence[str] = (), about: str = "") -> Shape:
    """Return the shape of an object that Podium makes: it has all fields but some, and may have more."""
    return record(fields, set(fields) - set(sometimes), is_open=True, about=about)


def listed(items: Shape) -> Shape:
    """Return the shape of a part of a list."""
    return answer(
        {
            "object": constant("list"),
            "data": array(items),
            "first_id": or_null(text()),
            "last_id": or_null(text()),
            "has_more": TRUTH,
        }
    )


def constant(word: str) -> Shape:
    """Return the shape of one certain string."""
    return {"type": "string", "const": word}


def or_null(shape: Shape) -> Shape:
    """Return the shape of what may also be null."""
    return {"anyOf": [shape, {"type": "null"}]}


def body(fields: Mapping[str, Shape], required: Iterable[str]) -> Shape:
    """Return the shape of a request's body: null means "not given" wherever a field is not required."""
    needed = frozenset(required)
    return record(
        {name: shape if name in needed else or_null(shape) for name, shape in sorted(fields.items())}, needed
    )


def component(name: str) -> Shape:
    """Return a reference to a shape that the document holds once."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(shape: Shape, about: str) -> Shape:
    """Return the shape with a description, if there is one."""
    return {**shape, "description": about} if about else shape
