"""Reading local copies of public data: JSON, JSON lines, CSV and zipped JSON, with every defect named."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from podium_train.outcomes.rows import Row, malformed, missing, read_rows

MAX_UNZIPPED_BYTES = 512 * 1024 * 1024


def read_list(path: Path) -> list[Row]:
    """Return the objects of a JSON file that holds a list, or of a file of JSON lines."""
    if path.suffix in {".jsonl", ".xz"}:
        return list(read_rows(path))
    if path.suffix == ".zip":
        return _rows(path.name, _unzipped(path))
    return _rows(path.name, _text(path))


def read_table(path: Path, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield a CSV file's records as objects; `names` None takes them from the first record."""
    csv.field_size_limit(2**24)
    try:
        records = csv.reader(io.StringIO(_text(path)), strict=True)
        header = list(names) if names is not None else next(records, [])
        for record in records:
            place = f"{path.name}:{records.line_num}"
            if len(record) != len(header):
                raise malformed(place, f"{len(record)} fields, {len(header)} are due")
            yield Row(place, dict(zip(header, record, strict=True)))
    except csv.Error as error:
        raise malformed(path.name, f"it is not CSV: {error}") from None


def found(folder: Path, *patterns: str) -> list[Path]:
    """Return the files that match any of the patterns, at least one, in order of their names."""
    if not folder.is_dir():
        raise missing(f"{folder.name or 'the source'} is no folder")
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    if not paths:
        raise missing(f"{folder.name} holds no {' or '.join(patterns)}; is it the copy's right folder?")
    return paths


def objects(row: Row, name: str) -> list[Row]:
    """Return a field that lists objects, each with its place."""
    rows = []
    for number, value in enumerate(row.listed(name)):
        if not isinstance(value, dict):
            raise row.error(f"{name!r} {number} must be an object")
        rows.append(Row(f"{row.place} {name} {number}", value))
    return rows


def any_text(row: Row, *names: str) -> str:
    """Return the first of these fields that is there, as text; names match in any case."""
    by_name = {name.casefold(): value for name, value in row.fields.items()}
    for name in names:
        value = by_name.get(name.casefold())
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(int(value) if float(value).is_integer() else value)
    raise row.error(f"{' or '.join(repr(name) for name in names)} is missing")


def words_id(*parts: object) -> str:
    """Return an id of these parts with slashes, every part without any of its own."""
    return "/".join(str(part).replace("/", "-").strip() for part in parts)


def _rows(place: str, text: str) -> list[Row]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise malformed(place, "it is not JSON") from None
    if isinstance(values, dict):
        values = [values]
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise malformed(place, "it must be a list of objects")
    return [Row(f"{place} entry {number}", value) for number, value in enumerate(values)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise malformed(path.name, "it is not UTF-8 text") from None
    except OSError as error:
        raise missing(f"{path.name} cannot be read: {error.strerror}") from None


def _unzipped(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [one for one in archive.infolist() if one.filename.endswith(".json")]
            if len(inside) != 1 or inside[0].file_size > MAX_UNZIPPED_BYTES:
                raise malformed(path.name, "it must hold one JSON file of at most 512 MiB")
            return archive.read(inside[0]).decode()
    except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError, OSError):
        raise malformed(path.name, "it is no readable zip file of UTF-8 text") from None
