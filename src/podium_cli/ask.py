"""`podium ask`: one question, its plan and steps live, then answer, cost and receipt."""

import argparse
import asyncio
import sys

from rich.console import Console
from rich.live import Live

from podium_cli.access import gateway_client
from podium_cli.failures import CliError
from podium_cli.gateway_client import Asking, GatewayClient
from podium_cli.home import Home
from podium_cli.run_view import RunView
from podium_cli.settings import CliSettings
from podium_cli.words import plain


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Ask what the command line says; exit code 1 when there is no answer."""
    client = gateway_client(arguments, home, settings)
    asking = Asking(_question(arguments.question), _model(arguments), _podium_fields(arguments))
    if arguments.answer_only:
        view = asyncio.run(_listen(client, asking, RunView()))
        answer = plain(view.answer) if sys.stdout.isatty() else view.answer
        sys.stdout.write(f"{answer}\n" if answer else "")
    else:
        view = ask_and_show(client, asking, console)
    return 0 if succeeded(view) else 1


def ask_and_show(client: GatewayClient, asking: Asking, console: Console) -> RunView:
    """Ask and show what happens as it happens; return the view when it is over."""
    view = RunView()

    async def show() -> None:
        view.demo_workers = await client.demo_workers()
        with Live(console=console, refresh_per_second=12, transient=True) as live:
            async for news in client.ask(asking):
                view.take(news)
                live.update(view.render(is_live=True))
        console.print(view.render())

    try:
        asyncio.run(show())
    except KeyboardInterrupt:
        view.stop()
        console.print(view.render())
        if view.run_id:
            console.print(
                f"\nThe run is cancelled; `podium show {view.run_id}` tells what it did and what it cost."
            )
        raise
    return view


def succeeded(view: RunView) -> bool:
    """Say whether the run was sealed with an answer."""
    return view.error is None and view.finished is not None and view.finished.get("outcome") == "answered"


async def _listen(client: GatewayClient, asking: Asking, view: RunView) -> RunView:
    async for news in client.ask(asking):
        view.take(news)
    if view.error is not None:
        raise CliError(str(view.error.get("message")))
    return view


def _question(words: list[str]) -> str:
    question = sys.stdin.read() if words == ["-"] else " ".join(words)
    if not question.strip():
        raise CliError(
            "there is no question", hint='podium ask "What is 17 * 23?", or - to read it from stdin'
        )
    return question


def _model(arguments: argparse.Namespace) -> str:
    return f"worker/{arguments.worker}" if arguments.worker else str(arguments.model)


def _podium_fields(arguments: argparse.Namespace) -> dict[str, object]:
    fields: dict[str, object] = {
        name: value
        for name in ("max_usd", "max_steps", "max_calls", "max_seconds")
        if (value := getattr(arguments, name)) is not None
    }
    workers = {"only": arguments.only, "except": arguments.exclude}
    if any(workers.values()):
        fields["workers"] = {name: ids for name, ids in workers.items() if ids}
    return fields
