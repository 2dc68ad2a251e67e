"""`podium runs --out FILE`: every run that fits, in a file that the same command completes later."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from podium_cli.audit_client import RUN_ID, AuditClient
from podium_cli.failures import CliError

FILTERS: Final[Mapping[str, str]] = {
    "worker": "an attempt was made by this worker",
    "provider": "... by a worker of this provider",
    "region": "... in this region",
    "rule": "this rule kept a worker out, such as tenant.regions.only",
    "outcome": "answered, refused, failed, cancelled, abandoned or open",
    "principal": "asked by this key",
    "model": "this model was asked for",
    "kind": "chat, embed, calibrate, train or probe",
    "from": "opened at this date or time (UTC) or later",
    "to": "opened before this date or time",
    "min_usd": "cost at least this",
    "max_usd": "cost at most this",
}
"""What runs can be found by, with help."""

_KINDS: Final = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_BEGINNINGS: Final = {"jsonl": b'{"run_id"', "csv": b"run_id,"}
_TAIL_BYTES: Final = 64 * 1024


async def write_runs(client: AuditClient, filters: Mapping[str, str], file: Path, console: Console) -> int:
    """Write the runs that fit; the ending of the file's name says how. Newest first.

    A JSON or CSV file that is there already is taken as the beginning, and the older runs are added to it.
    """
    kind = _KINDS.get(file.suffix)
    if kind is None:
        raise CliError(f"{file.name} must end with {', '.join(_KINDS)}", hint="the ending chooses the format")
    try:
        with _opened(file, kind) as out:
            before = _last_run(out, kind)
            total = int((await client.runs(1, before, filters)).get("total") or 0)
            count = await _copy(client, kind, filters, out, before, total, console)
    except OSError as error:
        raise CliError(f"cannot write {file}: {error.strerror}", hint="name another file") from None
    went_on = f", after {before}" if before else ""
    console.print(f"wrote {count} bytes to {file}{went_on}")
    return 0


def _opened(file: Path, kind: str) -> BinaryIO:
    """Open a file for what is to be added; refuse one that holds something else."""
    if not file.exists():
        return file.open("xb+")
    if kind == "parquet":
        raise CliError(f"{file} is there, and a Parquet file cannot be added to", hint="name another file")
    out = file.open("r+b")
    first = out.readline(_TAIL_BYTES)
    if first and not first.startswith(_BEGINNINGS[kind]):
        out.close()
        raise CliError(f"{file} is there and is no list of runs", hint="name another file")
    return out


async def _copy(
    client: AuditClient,
    kind: str,
    filters: Mapping[str, str],
    out: BinaryIO,
    before: str | None,
    total: int,
    console: Console,
) -> int:
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    count = 0
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("runs", total=total)
        async for chunk in client.run_file(kind, filters, before=before):
            out.write(chunk)
            count += len(chunk)
            progress.advance(task, chunk.count(b"\n"))
    return count


def _last_run(out: BinaryIO, kind: str) -> str | None:
    """Return the last whole row's run, cut off what is behind it, and stand at the end; None: begin anew."""
    size = out.seek(0, io.SEEK_END)
    out.seek(max(0, size - _TAIL_BYTES))
    tail = out.read()
    end = tail.rfind(b"\n") + 1
    out.seek(size - len(tail) + end)
    out.truncate()
    line = tail[:end].splitlines()[-1] if tail[:end].strip() else b""
    run_id = _run_of(line, kind)
    if run_id is None:
        out.seek(0)
        out.truncate()
    return run_id


def _run_of(line: bytes, kind: str) -> str | None:
    """Return the run of a row; None for a header or what is no row of ours."""
    try:
        text = line.decode()
        found = json.loads(text)["run_id"] if kind == "jsonl" else next(csv.reader([text]))[0]
    except (ValueError, KeyError, TypeError, StopIteration, IndexError):
        return None
    is_run = isinstance(found, str) and RUN_ID.fullmatch(found) is not None and found != "run_id"
    return found if is_run else None
