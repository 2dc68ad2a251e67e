"""What an API server checks of an object: the definition's schema, unknown fields, lists by key, CEL rules."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import cel
import yaml
from jsonschema import Draft4Validator, FormatChecker

CRDS = Path(__file__).resolve().parents[2] / "k8s" / "crds"
KINDS = {"Worker": "workers", "Tenant": "tenants", "Policy": "policies"}


@cache
def schema_of(kind: str) -> dict[str, Any]:
    """Return the OpenAPI schema of a kind, as the definition holds it."""
    definition = yaml.safe_load((CRDS / f"{KINDS[kind]}.yaml").read_text())
    return cast("dict[str, Any]", definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


@cache
def _validator(kind: str) -> Draft4Validator:
    # OpenAPI 3.0 writes exclusiveMinimum as draft 4 does
    return Draft4Validator(schema_of(kind), format_checker=FormatChecker(["date"]))


def problems(kind: str, thing: dict[str, Any]) -> list[str]:
    """Return what `kubectl apply` would refuse; empty where the object is good."""
    found = [f"{error.json_path}: {error.message}" for error in _validator(kind).iter_errors(thing)]
    if not found:  # as a server does: rules see only what has the right types
        found = list(_walk(schema_of(kind), thing, ()))
    return found


def status_problems(kind: str, status: dict[str, Any]) -> list[str]:
    """Return what is wrong with a status, whatever the spec is."""
    schema = schema_of(kind)["properties"]["status"]
    found = [error.message for error in Draft4Validator(schema).iter_errors(status)]
    return found or list(_walk(schema, status, ("status",)))


def rules(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """Yield each rule of a schema with its place."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule
    for name, each in schema.get("properties", {}).items():
        yield from rules(each, (*path, name))
    if "items" in schema:
        yield from rules(schema["items"], (*path, "*"))


def holds(rule: str, value: object) -> bool:
    """Evaluate one rule; one that cannot be evaluated refuses, as on a server."""
    try:
        return cel.evaluate(rule, {"self": value}) is True
    except (RuntimeError, TypeError, ValueError):
        return False


def _walk(schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[str]:
    place = ".".join(path)
    for rule in schema.get("x-kubernetes-validations", ()):
        if not holds(rule["rule"], value):
            yield f"{place}: {rule['message']}"
    if isinstance(value, dict) and "properties" in schema:
        for name, each in value.items():
            if name in schema["properties"]:
                yield from _walk(schema["properties"][name], each, (*path, name))
            else:
                yield f'unknown field "{place}.{name}"'
    elif isinstance(value, list):
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            names = [each[key] for each in value]
            if len(set(names)) != len(names):
                yield f"{place}: Duplicate value of {key}"
        for index, each in enumerate(value):
            yield from _walk(schema["items"], each, (*path, str(index)))
