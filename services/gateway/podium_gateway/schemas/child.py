"""The process that looks at schemas and answers: one JSON line in, one out, until its input ends.

A schema may hold a pattern that takes for ever, and an answer may be made to meet it: here that costs nobody
but this process, which its parent stops. It opens no file and no connection, and resolves no reference that
leads out of the schema.
"""

import json
import resource
import sys
from typing import Any, NoReturn

from jsonschema import exceptions
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

_MAX_MEMORY_BYTES = 1 << 30
_MAX_ADVICES = 5
_MAX_ADVICE_CHARS = 300


def problem_of(schema: Any, text: str | None) -> dict[str, str]:
    """Return `where` and `advice` for what is wrong with a text, or with the schema itself; {} if nothing.

    `where` is a path into the schema and holds nothing of the text; `advice` is for the text's author.
    """
    try:
        cls = validator_for(schema, default=Draft202012Validator)
        if text is None:
            cls.check_schema(schema)
            return _lost_reference(schema)
        value = json.loads(text, parse_constant=_refuse)
    except exceptions.SchemaError as error:
        path = "/".join(str(step) for step in error.absolute_path)
        return {"where": path, "advice": error.message[:_MAX_ADVICE_CHARS]}
    except RecursionError:
        return {"where": "", "advice": "it is nested too deeply"}
    except ValueError as error:
        return {"where": "", "advice": f"it is not JSON: {error}"[:_MAX_ADVICE_CHARS]}
    try:
        return _breaches(cls(schema, registry=Registry()), value)
    except (Unresolvable, RecursionError):
        return {"where": "", "advice": "the schema cannot be followed"}


def _lost_reference(schema: Any) -> dict[str, str]:
    """Return a reference that leads nowhere."""
    resource_: Resource[Any] = Resource.from_contents(schema, default_specification=DRAFT202012)
    base = resource_.id() or ""
    resolver = Registry().with_resource(base, resource_).resolver(base)
    waiting: list[Any] = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        target: Any = item.get("$ref") if isinstance(item, dict) else None
        try:
            if isinstance(target, str):
                resolver.lookup(target)
        except Unresolvable:
            return {"where": "", "advice": f"the reference {target[:80]} leads nowhere"}
    return {}


def _breaches(validator: Any, value: Any) -> dict[str, str]:
    advices: list[str] = []
    where = ""
    for error in validator.iter_errors(value):
        where = where or "/".join(str(step) for step in error.absolute_schema_path)
        advices.append(f"{error.json_path}: {error.message}"[:_MAX_ADVICE_CHARS])
        if len(advices) == _MAX_ADVICES:
            break
    return {"where": where, "advice": "\n".join(advices)} if advices else {}


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


def main() -> None:
    """Answer line by line."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    sys.stdout.buffer.write(b"{}\n")
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        found = problem_of(asked["schema"], asked["text"])
        sys.stdout.buffer.write(json.dumps(found).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
