"""Checks a manifest against a CRD's structural schema, as an API server does with strict field validation.

What such schemas use of OpenAPI v3, and no more (Kubernetes, "Specifying a structural schema").
"""

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def schema_of(crd: dict[str, Any], version: str) -> dict[str, Any]:
    """Return one served version's schema."""
    (found,) = (v for v in crd["spec"]["versions"] if v["name"] == version and v["served"])
    schema: dict[str, Any] = found["schema"]["openAPIV3Schema"]
    return schema


def problems(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Yield what is wrong with `value`; fields that the schema does not know are wrong too."""
    if value is None:
        if not schema.get("nullable"):
            yield f"{path}: null"
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{path}: neither a number nor a string"
    elif "type" in schema:
        wanted = _TYPES[schema["type"]]
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            yield f"{path}: {type(value).__name__} instead of {schema['type']}"
            return
    yield from _bounds(schema, value, path)
    if isinstance(value, dict):
        yield from _fields(schema, value, path)
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from problems(schema.get("items", {}), item, f"{path}[{number}]")


def _bounds(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{path}: {value} is below {schema['minimum']}"
    if isinstance(value, str | list) and len(value) < schema.get("minLength", schema.get("minItems", 0)):
        yield f"{path}: too short"


def _fields(schema: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name}: missing"
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", False)
    # The root's metadata is validated by the server itself, so CRDs leave it open.
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or (
        not known and schema.get("type") == "object"
    )
    for name, inner in value.items():
        if name in known:
            yield from problems(known[name], inner, f"{path}.{name}")
        elif isinstance(others, dict):
            yield from problems(others, inner, f"{path}.{name}")
        elif not (others or is_open):
            yield f"{path}.{name}: unknown field"
