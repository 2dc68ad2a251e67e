"""`podium verify FILE|RUN`: proves an export offline; exports first when given the id of a run."""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from podium_cli.access import audit_client
from podium_cli.audit_client import AuditClient
from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.settings import CliSettings
from podium_verifier.__main__ import asked_of, verify_file


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Verify and return the verifier's own exit code."""
    file = Path(arguments.what)
    asked = asked_of(arguments)
    if _is_file(file):
        return verify_file(file, asked)
    client = audit_client(arguments, home, settings)
    since = _size_of(arguments.checkpoint[0]) if arguments.checkpoint else ""
    target = asyncio.run(_export(client, arguments.what, arguments.out, home, since))
    console.print(f"exported to {target}", soft_wrap=True)
    return verify_file(target, asked if asked.key else replace(asked, key=_pinned(home)))


def _is_file(file: Path) -> bool:
    """Tell a file from a run's id; one that cannot even be looked at is a file, and reading it says why."""
    try:
        return bool(file.suffix) or file.exists()
    except OSError:
        return True


def _size_of(note: Path) -> str:
    """Return the size in a checkpoint that was kept; empty when there is none: the verifier says why."""
    try:
        size = note.read_text().split("\n", 2)[1]
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
    return size if size.isascii() and size.isdigit() else ""


async def _export(client: AuditClient, run: str, out: Path | None, home: Home, since: str) -> Path:
    run_id = await client.resolve(run)
    target = out or _place(home, run_id)
    await client.export(run_id, target, since)
    return target


def _place(home: Home, run_id: str) -> Path:
    home.export_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home.export_dir / f"{run_id}.podium.jsonl"


def _pinned(home: Home) -> str:
    if not home.vkey_file.is_file():
        raise CliError(
            f"the log's key is not in {home.vkey_file}",
            hint="`podium up` keeps it at the first start; for another installation give --key VKEY",
        )
    return str(home.vkey_file)
