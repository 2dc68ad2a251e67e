"""Reading a YAML file, or an object of a cluster, into a typed model; a file's mistakes are named by line.

All scalars are read as text and the model decides what they mean, so `0.10` stays exact, `no` stays a
word, and a date stays what was written. Anchors, duplicate keys and tags are refused.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar, cast

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from podium_core.domain.errors import PodiumError, invalid

MAX_FILE_BYTES = 4 * 1024 * 1024

Place = tuple[str | int, ...]
"""Where in a document: keys and list indices from the top."""

_MAX_PROBLEMS = 5
_NULLS = frozenset({"", "~", "null"})
_IDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MESSAGES: Final = {
    "extra_forbidden": "there is no such field",
    "missing": "this field is required",
    "model_type": "must be a mapping of fields",
    "model_attributes_type": "must be a mapping of fields",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "too_short": "may not be empty",
    "string_type": "must be plain text",
}
"""The words for what pydantic says in terms of Python."""


class Section(BaseModel):
    """A mapping of a configuration file: unknown fields are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


M = TypeVar("M", bound=Section)
T = TypeVar("T")


def _check_ident(value: str) -> str:
    if not _IDENT.fullmatch(value):
        raise ValueError(
            "must be 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
        )
    return value


def _none_to_empty(value: object) -> object:
    return () if value is None else value


def written(pattern: str, *, max_length: int) -> WithJsonSchema:
    """Say in JSON schemas how a value is written that a function reads; ECMA and RE2 know the pattern."""
    schema: dict[str, Any] = {"type": "string", "pattern": pattern, "maxLength": max_length}
    return WithJsonSchema(schema, mode="validation")


Ident = Annotated[
    str, AfterValidator(_check_ident), written("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", max_length=64)
]
"""A name that may stand in a URL, a model name or a header."""

ListOf = Annotated[tuple[T, ...], BeforeValidator(_none_to_empty)]
"""A list; the field may be there without a value."""


@dataclass(frozen=True, slots=True)
class Document(Generic[M]):
    """A valid file or object, and the lines its parts stand on; an object has none."""

    content: M
    name: str
    lines: dict[Place, int]

    def error(self, place: Place, message: str) -> PodiumError:
        """Return the error that blames `place` in this file."""
        return invalid(
            f"{_where(self.name, self.lines, place)}: {_dotted(place)}: {message}", reason="CONFIG_INVALID"
        )


def read_document(path: Path, model: type[M]) -> Document[M]:
    """Return the file's content as `model`.

    Raises PodiumError (INVALID_REQUEST) that names the file, the line and the mistake; up to five at once.
    """
    name = path.name
    node = _compose(name, _read(path))
    lines: dict[Place, int] = {(): 1}
    data = _Builder(name, lines).build(node, ()) if node is not None else {}
    return _checked(data, model, name, lines)


def read_texts(path: Path) -> dict[str, Any]:
    """Return a mapping whose file loads, as plain data with all scalars as text. Raises PodiumError."""
    node = _compose(path.name, _read(path))
    data = _Builder(path.name, {}).build(node, ()) if node is not None else {}
    return data if isinstance(data, dict) else {}


def check_object(data: object, model: type[M], name: str) -> Document[M]:
    """Return plain data that came from no file as `model`.

    Raises PodiumError (INVALID_REQUEST) that names `name` and the mistakes; up to five at once.
    """
    return _checked(data, model, name, {})


def _checked(data: object, model: type[M], name: str, lines: dict[Place, int]) -> Document[M]:
    try:
        return Document(model.model_validate(data), name, lines)
    except ValidationError as error:
        problems = sorted(
            (_line_of(lines, found["loc"]), _explain(found["loc"], found["type"], found["msg"]))
            for found in _causes(error.errors(include_url=False, include_input=False))
        )
    shown = "; ".join(
        f"{name} line {line}: {text}" if lines else f"{name}: {text}"
        for line, text in problems[:_MAX_PROBLEMS]
    )
    hidden = len(problems) - _MAX_PROBLEMS
    raise invalid(f"{shown}; and {hidden} more" if hidden > 0 else shown, reason="CONFIG_INVALID")


class _Builder:
    """Turns nodes into plain data and notes the line of every place."""

    def __init__(self, name: str, lines: dict[Place, int]) -> None:
        self._name = name
        self._lines = lines
        self._seen: set[int] = set()

    def build(self, node: yaml.Node, place: Place) -> object:
        """Return the node as dict, list, str or None."""
        self._lines.setdefault(place, _line(node))
        if id(node) in self._seen:
            raise _error(self._name, _line(node), "anchors and aliases are not supported: write it out")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        value = self._text(node)
        return None if node.style is None and value.lower() in _NULLS else value

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _error(self._name, _line(key_node), "a field's name must be plain text")
            key = self._text(key_node)
            if key in result:
                raise _error(self._name, _line(key_node), f"{_dotted((*place, key))} is given twice")
            self._lines[(*place, key)] = _line(key_node)
            result[key] = self.build(value_node, (*place, key))
        return result

    def _text(self, node: yaml.ScalarNode) -> str:
        text = cast("str", node.value)
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise _error(self._name, _line(node), "no valid YAML: an escape names half a character")
        return text


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise invalid(f"cannot read {path.name}: {error.strerror}", reason="CONFIG_UNREADABLE") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(path.name, line, "the file must be UTF-8 text") from None
    if len(data) > MAX_FILE_BYTES:
        raise _error(path.name, 1, f"the file may take {MAX_FILE_BYTES} bytes")
    return text


def _compose(name: str, text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_TextLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _error(name, mark.line + 1 if mark else 1, f"no valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError):  # the latter from escapes beyond Unicode
        raise _error(name, 1, "no valid YAML: it holds characters that YAML forbids") from None
    except RecursionError:
        raise _error(name, 1, "nested too deeply") from None


class _TextLoader(yaml.BaseLoader):
    """Resolves nothing, so scalars stay text. Pure Python: it cannot crash on deep nesting."""


def _causes(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out lists that only seem too short because their items are wrong."""
    places = [each["loc"] for each in found]
    return [
        each
        for each in found
        if each["type"] != "too_short"
        or not any(place[: len(each["loc"])] == each["loc"] != place for place in places)
    ]


def _explain(place: Place, kind: str, message: str) -> str:
    return f"{_dotted(place)}: {_MESSAGES.get(kind, message.removeprefix('Value error, '))}"


def _dotted(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".") or "the file"


def _where(name: str, lines: dict[Place, int], place: Place) -> str:
    return f"{name} line {_line_of(lines, place)}" if lines else name


def _line_of(lines: dict[Place, int], place: Place) -> int:
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 0)


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def _error(name: str, line: int, message: str) -> PodiumError:
    return invalid(f"{name} line {line}: {message}", reason="CONFIG_INVALID")
