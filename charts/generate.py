"""What follows from the values of the chart: its schema, and the table of its README (`make chart-docs`).

Brings the pool of the demo programs into the chart too, which cannot read what lies outside of it.

A comment above a key is its description. Every key is known and nothing else is: a value that is misspelt is
refused by name before anything is rendered. Types follow from the defaults, what they cannot say is below.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parent / "podium"
DEMO_POOL: Final = Path(__file__).parents[1] / "src" / "podium_demo" / "pool.demo.yaml"
BEGIN: Final = "<!-- values: written by charts/generate.py -->"
END: Final = "<!-- end of values -->"

Schema = dict[str, Any]

_QUANTITY: Final = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"
_NAME: Final = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$"
_STRINGS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_SCALARS: Final[Schema] = {"type": ["string", "number", "boolean"]}
_RESOURCES: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        part: {
            "type": "object",
            "additionalProperties": {"type": ["string", "integer"], "pattern": _QUANTITY},
        }
        for part in ("requests", "limits")
    },
}
_OBJECTS: Final[Schema] = {"type": "array", "items": {"type": "object"}}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 1_000}

BY_PATH: Final[dict[str, Schema]] = {
    "profile": {"enum": ["standard", "production"]},
    "logLevel": {"enum": ["INFO", "WARNING", "ERROR"]},
    "image.pullPolicy": {"enum": ["IfNotPresent", "Always", "Never"]},
    "conductor.engine": {"enum": ["embedded", "worker", "vllm"]},
    "conductor.model.volume": {"type": "object"},
    "tls.mode": {"enum": ["cert-manager", "secrets"]},
    "pool.source": {"enum": ["files", "resources"]},
    "pool.gate": {"type": "object"},
    "otlp.endpoint": {"type": "string", "pattern": r"^(https?://.+)?$"},
}
"""What a default cannot say, by the whole path of a value."""

BY_NAME: Final[dict[str, Schema]] = {
    "affinity": {"type": "object"},
    "annotations": _STRINGS,
    "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "env": {
        "type": "object",
        "propertyNames": {"pattern": "^[A-Z][A-Z0-9_]*$"},
        "additionalProperties": _SCALARS,
    },
    "existingClaim": {"type": "string", "pattern": _NAME},
    "existingSecret": {"type": "string", "pattern": _NAME},
    "labels": _STRINGS,
    "matchLabels": _STRINGS,
    "nodeSelector": _STRINGS,
    "peers": _OBJECTS,
    "podAnnotations": _STRINGS,
    "replicas": _COUNT,
    "repository": {"type": "string", "pattern": r"^[a-z0-9][a-z0-9._/-]*$"},
    "resources": _RESOURCES,
    "size": {"type": "string", "pattern": _QUANTITY},
    "tolerations": _OBJECTS,
    "topologySpreadConstraints": _OBJECTS,
}
"""The same by a value's last name, wherever it stands."""


@dataclass(frozen=True, slots=True)
class Value:
    """One key of values.yaml: its path, its default and the comment above it."""

    path: str
    default: Any
    description: str

    @property
    def is_branch(self) -> bool:
        """Whether its own keys are values of their own."""
        return isinstance(self.default, dict) and bool(self.default) and self._special() is None

    def schema(self, children: Schema) -> Schema:
        """Return the schema of this value; `children` are those of its keys."""
        special = self._special()
        if special is not None:
            own = special
        elif self.is_branch:
            own = {"type": "object", "additionalProperties": False, "properties": children}
        else:
            own = _type_of(self.default)
        return {"description": self.description, **own} if self.description else own

    def _special(self) -> Schema | None:
        return BY_PATH.get(self.path) or BY_NAME.get(self.path.rpartition(".")[2])


def values_of(text: str) -> list[Value]:
    """Return every key of values.yaml in its order, branches before what is within."""
    lines = text.splitlines()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_walk(root, yaml.safe_load(text), "", lines))


def schema_of(values: list[Value]) -> Schema:
    """Return the JSON schema of the whole."""
    properties: Schema = {value.path: value.schema(_children(value, values)) for value in _top(values)}
    # Helm itself adds `global`, which this chart has no use for.
    properties["global"] = {"type": "object"}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the Podium chart",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def table_of(values: list[Value]) -> str:
    """Return the README's table of values."""
    rows = ["| value | default | what |", "|---|---|---|"]
    for value in values:
        if not value.is_branch:
            default = json.dumps(value.default) if value.default not in ("", None) else '""'
            rows.append(f"| `{value.path}` | `{default}` | {_in_a_cell(_described(value, values))} |")
    return "\n".join(rows) + "\n"


def _described(value: Value, values: list[Value]) -> str:
    if value.description or "." not in value.path:
        return value.description
    parent = next(each for each in values if each.path == value.path.rpartition(".")[0])
    return _described(parent, values)


def _walk(node: yaml.MappingNode, data: dict[str, Any], prefix: str, lines: list[str]) -> Iterator[Value]:
    for key, inner in node.value:
        path = f"{prefix}{key.value}"
        value = Value(
            path, data[key.value], _comment_above(lines, key.start_mark.line, key.start_mark.column)
        )
        yield value
        if value.is_branch:
            yield from _walk(inner, data[key.value], f"{path}.", lines)


def _comment_above(lines: list[str], line: int, column: int) -> str:
    """Return the comment right above a key that begins its line."""
    found: list[str] = []
    if lines[line][:column].strip():
        return ""
    for text in reversed(lines[:line]):
        match = re.fullmatch(rf" {{{column}}}# ?(.*)", text)
        if match is None:
            break
        found.insert(0, match[1])
    return " ".join(found)


def _top(values: list[Value]) -> list[Value]:
    return [value for value in values if "." not in value.path]


def _children(value: Value, values: list[Value]) -> Schema:
    prefix = f"{value.path}."
    inner = [each for each in values if each.path.startswith(prefix) and "." not in each.path[len(prefix) :]]
    return {each.path[len(prefix) :]: each.schema(_children(each, values)) for each in inner}


def _type_of(default: object) -> Schema:
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, int):
        return {"type": "integer", "minimum": 0}
    if isinstance(default, list):
        items = {"type": "integer"} if default and isinstance(default[0], int) else {"type": "object"}
        return {"type": "array", "items": items}
    if isinstance(default, dict):
        return {"type": "object"}
    return {"type": "string"}


def _in_a_cell(text: str) -> str:
    return text.replace("|", r"\|")


def main() -> None:
    """Write the schema, the README's table and the demo pool."""
    values = values_of((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.dumps(schema_of(values), indent=2, ensure_ascii=False) + "\n"
    (CHART / "values.schema.json").write_text(schema, encoding="utf-8")
    (CHART / "files" / DEMO_POOL.name).write_bytes(DEMO_POOL.read_bytes())
    readme = CHART / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{table_of(values)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
