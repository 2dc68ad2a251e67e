"""The published schema of records and the verifier's own checks: what one takes the other takes."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from podium_verifier import leaf_format
from tests.unit.podium_verifier.exported_run import three_step_run

SCHEMA: dict[str, Any] = json.loads(
    (Path(leaf_format.__file__).parent / "record.schema.json").read_text(encoding="utf-8")
)
TYPES: dict[str, Any] = SCHEMA["$defs"]
VALIDATOR = Draft202012Validator(SCHEMA)


def sample(schema: dict[str, Any]) -> Any:
    """Return something that fits a schema, with every field it knows."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "object":
        return {name: sample(field) for name, field in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample(schema["items"])]
    plain = {"string": "0" * 64 if "pattern" in schema else "text", "integer": 7, "boolean": True}
    return plain[kind]


def takes(kind: str, facts: Any) -> bool:
    """Return whether the verifier takes these facts."""
    try:
        leaf_format.FACTS[kind](facts, "facts")
    except ValueError:
        return False
    return True


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every field within."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def test_both_know_the_same_types() -> None:
    assert set(TYPES) == set(leaf_format.FACTS) == set(SCHEMA["properties"]["type"]["enum"])


@pytest.mark.parametrize("kind", TYPES)
def test_a_record_of_the_schema_is_one_for_the_verifier(kind: str) -> None:
    facts = sample(TYPES[kind])
    assert takes(kind, facts)
    record = {**sample({**SCHEMA, "properties": {**SCHEMA["properties"]}}), "type": kind, "facts": facts}
    assert list(VALIDATOR.iter_errors(record)) == []


@pytest.mark.parametrize("kind", TYPES)
def test_what_breaks_one_breaks_the_other(kind: str) -> None:
    judge = Draft202012Validator(TYPES[kind])
    whole = sample(TYPES[kind])
    for path in list(places(whole)):
        for change in ("drop", "spoil"):
            facts = copy.deepcopy(whole)
            holder = facts
            for key in path[:-1]:
                holder = holder[key]
            if change == "drop" and isinstance(holder, dict):
                del holder[path[-1]]
            else:
                holder[path[-1]] = -1
            if not takes(kind, facts):
                assert not judge.is_valid(facts), f"{kind}: only the verifier minds {change} of {path}"


@pytest.mark.parametrize("kind", [kind for kind in TYPES if TYPES[kind].get("additionalProperties") is False])
def test_a_strange_field_is_strange_to_both(kind: str) -> None:
    facts = {**sample(TYPES[kind]), "strange": 1}
    assert not takes(kind, facts)
    assert not Draft202012Validator(TYPES[kind]).is_valid(facts)


def test_records_of_a_run_fit() -> None:
    run = three_step_run()
    for kind in ("opened", "plan", "attempt_begun", "attempt_ended", "sealed"):
        for record in run.of_type(kind):
            assert list(VALIDATOR.iter_errors(record)) == []


def test_every_field_says_what_it_means() -> None:
    def described(schema: dict[str, Any], path: str) -> Iterator[str]:
        for name, field in schema.get("properties", {}).items():
            if not field.get("description"):
                yield f"{path}.{name}"
            yield from described(field.get("items", field), f"{path}.{name}")

    assert [name for kind, facts in TYPES.items() for name in described(facts, kind)] == []
