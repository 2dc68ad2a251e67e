"""`podium show RUN`: one run as the log tells it: who was allowed, who did what, what it cost."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from podium_cli.access import audit_client
from podium_cli.audit_client import AuditClient
from podium_cli.home import Home
from podium_cli.record_view import RecordView
from podium_cli.settings import CliSettings
from podium_core.config.pool import load_pool
from podium_core.domain.errors import PodiumError


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Show the run; the read is recorded in the log."""
    client = audit_client(arguments, home, settings)
    page = asyncio.run(_read(client, arguments.run))
    view = RecordView(page, _demo_workers(home))
    for part in view.render(with_content=arguments.content):
        console.print(part)
    return 0


async def _read(client: AuditClient, run: str) -> Mapping[str, Any]:
    return await client.run(await client.resolve(run))


def _demo_workers(home: Home) -> frozenset[str]:
    """Return the workers that the home's pool marks as demo; the log itself knows no such mark."""
    try:
        pool = load_pool(home.pool_file).pool
    except PodiumError:
        return frozenset()
    return frozenset(worker.worker_id for worker in pool.workers if worker.is_demo)
