"""`podium show RUN`: one run as the log tells it: who was allowed, who did what, what it cost."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from podium_cli.access import audit_client
from podium_cli.audit_client import AuditClient
from podium_cli.home import Home
from podium_cli.record_view import RecordView
from podium_cli.settings import CliSettings
from podium_core.config.pool import load_pool
from podium_core.domain.errors import PodiumError
from podium_core.domain.pool import Worker


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Show the run; the read is recorded in the log."""
    client = audit_client(arguments, home, settings)
    page = asyncio.run(_read(client, arguments.run, arguments.approval))
    workers = _workers(home)
    view = RecordView(
        page,
        frozenset(worker.worker_id for worker in workers if worker.is_demo),
        {worker.worker_id: worker.card for worker in workers},
    )
    for part in view.render(with_content=arguments.content):
        console.print(part)
    return 0


async def _read(client: AuditClient, run: str, approval_id: str) -> Mapping[str, Any]:
    return await client.run(await client.resolve(run), approval_id)


def _workers(home: Home) -> Sequence[Worker]:
    """Return the workers of the home's pool file: the log itself knows no cards and no demo marks."""
    try:
        return load_pool(home.pool_file).pool.workers
    except PodiumError:
        return ()
