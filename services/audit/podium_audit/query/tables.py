"""A long list of runs as a file that grows page by page: JSON lines, CSV or Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from podium_core.domain.errors import invalid

COLUMNS: Final = (
    "run_id",
    "kind",
    "principal_id",
    "requested_model",
    "opened_us",
    "sealed_us",
    "outcome",
    "cost_usd_micros",
    "attempt_count",
)

MEDIA_TYPES: Final = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}

_NUMBERS: Final = frozenset({"opened_us", "sealed_us", "cost_usd_micros", "attempt_count"})
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

Page = list[Mapping[str, Any]]
Write = Callable[[Iterable[Page]], Iterator[bytes]]


def writer(kind: str, *, with_header: bool) -> Write:
    """Return what turns pages of runs into a file's bytes; `with_header` concerns CSV alone.

    Raises PodiumError (INVALID_REQUEST) for Parquet where its library is not installed.
    """
    if kind == "jsonl":
        return _jsonl
    if kind == "csv":
        return lambda pages: _csv(pages, with_header=with_header)
    return _parquet()


def _jsonl(pages: Iterable[Page]) -> Iterator[bytes]:
    for page in pages:
        yield b"".join([json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in page])


def _csv(pages: Iterable[Page], *, with_header: bool) -> Iterator[bytes]:
    text = io.StringIO()
    rows = csv.writer(text)
    if with_header:
        rows.writerow(COLUMNS)
    for page in pages:
        rows.writerows([[_harmless(row[name]) for name in COLUMNS] for row in page])
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    if text.tell():
        yield text.getvalue().encode()


def _harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe keeps it text."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _parquet() -> Write:
    try:
        import pyarrow as pa  # noqa: PLC0415 - 150 MB, and only some installations have it
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise invalid(
            "Parquet cannot be written here: install podium[parquet] for audit, or ask for jsonl or csv",
            param="format",
            reason="PARQUET_NOT_INSTALLED",
        ) from None
    schema = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in COLUMNS])

    def write(pages: Iterable[Page]) -> Iterator[bytes]:
        sink = io.BytesIO()
        with parquet.ParquetWriter(_Drain(sink), schema, compression="zstd") as file:
            for page in pages:
                file.write_table(pa.Table.from_pylist([dict(row) for row in page], schema=schema))
                yield _taken(sink)
        yield _taken(sink)

    return write


class _Drain(io.RawIOBase):
    """A file whose bytes are taken away as they come, and whose position goes on all the same."""

    def __init__(self, sink: io.BytesIO) -> None:
        super().__init__()
        self._sink = sink
        self._place = 0

    def writable(self) -> bool:
        """It only takes."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes."""
        size = self._sink.write(data)
        self._place += size
        return size

    def tell(self) -> int:
        """Return how many bytes came in all."""
        return self._place


def _taken(sink: io.BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data
