"""`podium replay RUN`: from the record, with today's planner, or live; says what is equal and what is not."""

import argparse
import asyncio
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from podium_cli.access import audit_client, gateway_client
from podium_cli.ask import ask_and_show
from podium_cli.audit_client import AuditClient
from podium_cli.failures import CliError
from podium_cli.gateway_client import Asking
from podium_cli.home import Home
from podium_cli.replay.from_record import Remade, replay_record
from podium_cli.replay.planner import Replanned, replan
from podium_cli.replay.recorded import RecordedRun, read_run
from podium_cli.run_view import RunView
from podium_cli.settings import CliSettings
from podium_cli.words import counted, plain, usd
from podium_core.domain.clock import SystemClock
from podium_core.domain.disagreement import METHOD, disagreement_ppm
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import RandomIds
from podium_verifier.faults import Fault
from podium_verifier.verify import verify_export

_DIFFERS = 1
_PPM = 1_000_000


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Replay; exit code 0 when what was asked for is equal (live: when there is an answer), else 1."""
    recorded = read_run(_export(arguments, home, settings))
    if arguments.planner:
        try:
            made = asyncio.run(replan(recorded, home, RandomIds(SystemClock())))
        except PodiumError as error:
            raise CliError(f"there is no plan: {error.message} ({error.reason})") from None
        return _show_plans(made, console)
    if arguments.live:
        return _live(recorded, arguments, console, home, settings)
    return _show_record(recorded, console)


def _export(arguments: argparse.Namespace, home: Home, settings: CliSettings) -> bytes:
    """Return the bytes of a verified export: a file, or one made now, which the log records as a read."""
    file = Path(arguments.run)
    if file.is_file():
        return _verified(file.read_bytes())
    with tempfile.TemporaryDirectory(prefix="podium-replay-") as folder:
        target = Path(folder) / "run.podium.jsonl"
        asyncio.run(_fetch(audit_client(arguments, home, settings), arguments.run, target))
        return _verified(target.read_bytes())


async def _fetch(client: AuditClient, run_id: str, target: Path) -> None:
    await client.export(await client.resolve(run_id), target)


def _verified(export: bytes) -> bytes:
    fault = verify_export(export)
    if isinstance(fault, Fault):
        raise CliError(f"the record does not verify, so it is not replayed: {fault}")
    return export


def _show_record(recorded: RecordedRun, console: Console) -> int:
    replayed = replay_record(recorded)
    console.print(Text.assemble(("record replay of ", "bold"), recorded.run_id))
    for made in replayed.prompts:
        console.print(_prompt_line(made))
    is_same = replayed.answer == replayed.recorded_answer
    size = len(replayed.recorded_answer or b"")
    verdict = f"equal, all {size} bytes" if is_same else "differs from the recorded one"
    console.print(Text.assemble(("answer ", "bold"), (verdict, "green" if is_same else "red")))
    if replayed.answer:
        console.print(Text(plain(replayed.answer.decode(errors="replace"))))
    return 0 if replayed.is_equal else _DIFFERS


def _prompt_line(made: Remade) -> Text:
    attempt = made.attempt
    line = Text.assemble(
        (f"round {attempt.round} step {attempt.step_index} ", "bold"),
        (plain(attempt.worker_id), "green"),
        "  ",
    )
    if made.skipped:
        return line.append(f"not compared: {made.skipped}", style="dim")
    return line.append(
        f"prompt {made.problem or 'equal to what was sent'}", style="red" if made.problem else ""
    )


def _show_plans(made: list[Replanned], console: Console) -> int:
    matches = 0
    for replanned in made:
        found = replanned.differences
        matches += not found
        said = "; ".join(found) or "the same plan"
        console.print(Text.assemble((f"round {replanned.recorded.plan.round} ", "bold"), plain(said)))
        for change in replanned.changes:
            console.print(Text(f"  changed since: {change}", style="yellow"))
    console.print(f"{matches} of {counted(len(made), 'plan')} match")
    return 0 if matches == len(made) else _DIFFERS


def _live(
    recorded: RecordedRun,
    arguments: argparse.Namespace,
    console: Console,
    home: Home,
    settings: CliSettings,
) -> int:
    client = gateway_client(arguments, home, settings)
    asking = Asking(
        recorded.question.last.text,
        recorded.model,
        messages=tuple(dict(message.fields) for message in recorded.question.messages),
    )
    view = ask_and_show(client, asking, console)
    if view.finished is None:
        return _DIFFERS
    console.print(_comparison(recorded, view))
    return 0


def _comparison(recorded: RecordedRun, view: RunView) -> Table:
    """Return the recorded run and the one made now, side by side."""
    finished = view.finished or {}
    steps = recorded.plans[-1].plan.steps if recorded.plans else ()
    before = (recorded.answer or b"").decode(errors="replace")
    table = Table("", "recorded", "now", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_row("run", recorded.run_id, view.run_id)
    table.add_row("workers", _joined([step.worker_id for step in steps]), _joined(view.workers))
    table.add_row("outcome", recorded.outcome, str(finished.get("outcome")))
    table.add_row("cost", usd(recorded.cost_usd_micros), usd(finished.get("cost_usd_micros", 0)))
    apart = disagreement_ppm([before, view.answer]) / _PPM
    words = "the same bytes" if before == view.answer else f"{apart:.2f} apart ({METHOD})"
    table.add_row("answers", words, "")
    return table


def _joined(worker_ids: list[str]) -> Text:
    return Text(plain(", ".join(worker_ids)))
