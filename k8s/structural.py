# ruff: noqa: INP001 - beside a script, in no package
"""JSON schemas of pydantic models as the structural schemas that Kubernetes demands.

No references, no unions, a type at every node, unknown fields pruned or refused by the API server, and a
bound on every text and list, from which the API server reckons the cost of CEL rules.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from k8s.cel_rules import MAX_WARNINGS

Schema = dict[str, Any]

_MAX_ITEMS = {
    "skills": 256,
    "modalities": 3,
    "features": 16,
    "reasoning_efforts": 7,
    "only": 400,
    "except": 400,
    "warn_at_percent": MAX_WARNINGS,
    "otlp_senders": 64,
    "keys": 128,
    "roles": 8,
    "tenants": 400,
}
"""Bounds of lists that a file may make as long as it likes: an object lies in etcd, which likes it small."""
_MAX_LENGTHS = {"api_version": 32, "project": 100, "region": 64, "otlp_senders": 63}
_UNIQUE_BY = {"skills": "name", "keys": "id"}
_KEPT = ("description", "type", "format", "enum", "pattern", "minLength", "maxLength", "minItems", "maxItems")
_NONEMPTY = frozenset({"only", "tenants"})
_DATE_CHARS = 10


def structural(
    model: type[BaseModel], *, without: Sequence[str] = (), instead: Mapping[str, Schema] | None = None
) -> Schema:
    """Return the model's schema, less the fields `without`; `instead` replaces its parts by name.

    Raises ValueError where the model leaves a type or a bound open.
    """
    schema = model.model_json_schema(by_alias=True)
    for field in without:
        del schema["properties"][field]
        schema["required"] = [each for each in schema.get("required", ()) if each != field]
    return _Translation({**schema.get("$defs", {}), **(instead or {})}).node(schema, "")


def described(status: Schema, more: Schema) -> Schema:
    """Return an object's schema with more properties, the first before its own."""
    return {**status, "properties": {**more, **status["properties"]}}


class _Translation:
    """Writes every reference out."""

    def __init__(self, parts: Mapping[str, Schema]) -> None:
        self._parts = parts

    def node(self, schema: Schema, field: str) -> Schema:
        """Return the schema of one field."""
        schema = self._resolved(schema)
        result = {key: schema[key] for key in _KEPT if key in schema}
        if "description" in result:
            result["description"] = " ".join(result["description"].split())
        kind = schema.get("type")
        if kind == "object":
            self._object(schema, result)
        elif kind == "array":
            self._array(schema, field, result)
        elif kind == "string":
            _text(schema, field, result)
        elif kind in ("integer", "number"):
            _number(schema, result)
        elif kind != "boolean":
            raise ValueError(f"{field} has no type: {schema}")
        return result

    def _resolved(self, schema: Schema) -> Schema:
        """Follow references; a field that may be null is one that may be left out."""
        while "$ref" in schema or "anyOf" in schema:
            if "$ref" in schema:
                schema = self._parts[schema["$ref"].rpartition("/")[2]]
                continue
            choices = [each for each in schema["anyOf"] if each != {"type": "null"}]
            if len(choices) != 1:
                raise ValueError(f"a structural schema has no unions: {schema}")
            schema = choices[0]
        return schema

    def _object(self, schema: Schema, result: Schema) -> None:
        if required := sorted(schema.get("required", ())):
            result["required"] = required
        result["properties"] = {
            name: self.node(each, name) for name, each in schema.get("properties", {}).items()
        }

    def _array(self, schema: Schema, field: str, result: Schema) -> None:
        bound = schema.get("maxItems", result.pop("maxLength", None)) or _MAX_ITEMS.get(field)
        if bound is None:
            raise ValueError(f"{field} is a list without a bound: add it to _MAX_ITEMS")
        result["maxItems"] = bound
        if field in _NONEMPTY:
            result["minItems"] = 1
        if field in _UNIQUE_BY:
            result["x-kubernetes-list-type"] = "map"
            result["x-kubernetes-list-map-keys"] = [_UNIQUE_BY[field]]
        result["items"] = self.node(schema["items"], field)


def _text(schema: Schema, field: str, result: Schema) -> None:
    if "enum" in schema:
        return
    bound = schema.get("maxLength", _MAX_LENGTHS.get(field))
    if schema.get("format") == "date":
        bound = _DATE_CHARS
    if bound is None:
        raise ValueError(f"{field} is text without a bound: add it to _MAX_LENGTHS")
    result["maxLength"] = bound


def _number(schema: Schema, result: Schema) -> None:
    if schema["type"] == "integer":
        result["format"] = "int64"
    if "exclusiveMinimum" in schema:  # a flag in OpenAPI 3.0, a number in JSON Schema
        result |= {"minimum": schema["exclusiveMinimum"], "exclusiveMinimum": True}
    result |= {key: schema[key] for key in ("minimum", "maximum") if key in schema}
