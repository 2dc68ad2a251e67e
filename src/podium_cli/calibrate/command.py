"""`podium calibrate`: from the command line to measured cards in `pool.yaml`."""

import argparse
import asyncio
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from podium_cli.calibrate.card import new_card, write_cards
from podium_cli.calibrate.journal import Ended, Journal
from podium_cli.calibrate.measure import Measuring, Stop
from podium_cli.calibrate.plan import Choice, PlannedCall, calls_of, left_of
from podium_cli.calibrate.results import scores_of
from podium_cli.calibrate.services import Services
from podium_cli.calibrate.view import progress_of, show_plan, show_scores
from podium_cli.failures import CliError
from podium_cli.home import HOST, Home
from podium_cli.local_ca import service_files
from podium_cli.ports import saved_ports
from podium_cli.settings import CliSettings
from podium_cli.words import usd
from podium_core.config.money import to_millionths
from podium_core.config.pool import PoolFile, load_pool
from podium_core.config.tenants import Tenant, load_tenants
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.grading.result import Grade

_POOL_WAIT_S = 10.0
_POOL_PAUSE_S = 0.5
_NS_PER_S = 1_000_000_000


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Measure and write; exit code 1 when it stopped early, so that nothing was written."""
    pool_path: Path = arguments.pool or home.pool_file
    try:
        pool, cap = load_pool(pool_path), to_millionths(arguments.max_usd)
    except PodiumError as error:
        raise CliError(error.message) from None
    except ValueError as error:
        raise CliError(f"--max-usd {error}") from None
    calls = calls_of(_choice(arguments), pool.entries)
    _refuse_unpriced(calls, is_allowed=arguments.unpriced)
    journal = Journal(arguments.log or home.directory / "calibration.jsonl")
    try:
        if arguments.again:
            journal.forget_lost()
        left = left_of(calls, journal)
        if arguments.dry_run:
            show_plan(console, calls, left)
            return 0
        stop = asyncio.run(_measure(arguments, console, home, pool, journal, left, cap)) if left else None
        return _finish(arguments, console, pool_path, calls, journal, stop)
    finally:
        journal.close()


def _choice(arguments: argparse.Namespace) -> Choice:
    return Choice(
        worker_ids=tuple(dict.fromkeys(arguments.worker or ())),
        skills=tuple(dict.fromkeys(arguments.skill or ())),
        count=arguments.count,
        seed=arguments.seed,
        max_output_tokens=arguments.max_output_tokens,
    )


def _refuse_unpriced(calls: Sequence[PlannedCall], *, is_allowed: bool) -> None:
    unpriced = dict.fromkeys(call.worker.worker_id for call in calls if call.worker.price is None)
    if unpriced and not is_allowed:
        raise CliError(
            f"the pool has no price for {', '.join(unpriced)}, so --max-usd cannot hold for them",
            hint="add the price to the pool file, choose others with --worker, or say --unpriced",
        )


async def _measure(
    arguments: argparse.Namespace,
    console: Console,
    home: Home,
    pool: PoolFile,
    journal: Journal,
    left: Sequence[PlannedCall],
    cap: int,
) -> Stop | None:
    clock = SystemClock()
    async with _services(arguments, home, clock) as services:
        await _await_pool(services, pool)
        with progress_of(console) as bar:
            task = bar.add_task("measuring", total=len(left), right=0, spent=usd(journal.spent_usd_micros))
            right = 0

            def on_end(_: PlannedCall, ended: Ended) -> None:
                nonlocal right
                right += ended.grade == Grade.RIGHT
                bar.update(task, advance=1, right=right, spent=usd(journal.spent_usd_micros))

            measuring = Measuring(
                services, journal, clock, RandomIds(clock), cap_usd_micros=cap, on_end=on_end
            )
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, _once(loop, measuring))
            loop.add_signal_handler(signal.SIGTERM, measuring.interrupt)
            await measuring.run(left, arguments.concurrency)
    return measuring.stop


def _once(loop: asyncio.AbstractEventLoop, measuring: Measuring) -> Callable[[], None]:
    """Return what the first Ctrl-C does: end in peace. The second one ends at once."""

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        measuring.interrupt()

    return interrupt


def _services(arguments: argparse.Namespace, home: Home, clock: SystemClock) -> Services:
    ports = {} if arguments.router and arguments.audit else saved_ports(home) or home.read_endpoints()
    router = arguments.router or f"{HOST}:{ports['router']}"
    audit = arguments.audit or f"{HOST}:{ports['audit']}"
    tenant = _tenant(arguments, home)
    try:
        return Services(
            router,
            audit,
            service_files(arguments.tls or home.tls_dir, "cli"),
            clock,
            tenant_id=tenant.tenant_id,
            budget_usd_micros=tenant.budget_usd_micros,
        )
    except PodiumError as error:
        raise CliError(error.message) from None


def _tenant(arguments: argparse.Namespace, home: Home) -> Tenant:
    """Return who pays: the named tenant, or the only one there is."""
    try:
        tenants = load_tenants(arguments.tenants or home.tenants_file).tenants
    except PodiumError as error:
        raise CliError(error.message, hint="name the file with --tenants") from None
    chosen = [t for t in tenants if arguments.tenant in ("", t.tenant_id)]
    if len(chosen) != 1:
        raise CliError(
            "say with --tenant who pays", hint=f"there are {', '.join(t.tenant_id for t in tenants)}"
        )
    return chosen[0]


async def _await_pool(services: Services, pool: PoolFile) -> None:
    """Wait until the router has this very pool: what is measured must be what the card is about."""
    clock = SystemClock()
    end_ns = clock.monotonic_ns() + int(_POOL_WAIT_S * _NS_PER_S)
    while True:
        try:
            served = await services.pool()
        except PodiumError as error:
            raise CliError(
                f"the router cannot be asked: {error.message}", hint="start it with `podium up`"
            ) from None
        if served.pool_digest == pool.pool.pool_digest:
            return
        if clock.monotonic_ns() > end_ns:
            raise CliError("the router serves another pool than this file", hint="name its file with --pool")
        await asyncio.sleep(_POOL_PAUSE_S)


def _finish(
    arguments: argparse.Namespace,
    console: Console,
    pool_path: Path,
    calls: Sequence[PlannedCall],
    journal: Journal,
    stop: Stop | None,
) -> int:
    scores = scores_of(calls, journal)
    for worker_id, score in scores.items():
        show_scores(console, worker_id, score)
    left = sum(score.left for score in scores.values())
    if stop is not None or left:
        raise CliError(
            f"stopped early: {stop.reason if stop else 'some calls failed'};"
            f" {left} calls are left and no card is written",
            hint=_advice(stop),
        )
    measured_on = datetime.fromtimestamp(SystemClock().now_ns() / _NS_PER_S, UTC).date()
    cards = {worker_id: new_card(score, measured_on) for worker_id, score in scores.items()}
    if arguments.no_write:
        return 0
    backup = write_cards(pool_path, cards)
    console.print(
        f"Wrote the cards of {', '.join(cards)} to {pool_path}; the former text is in {backup.name}.",
        soft_wrap=True,
    )
    return 0


def _advice(stop: Stop | None) -> str:
    if stop is not None and stop.is_cap:
        return "the same command with a higher --max-usd goes on; nothing is paid twice"
    if stop is not None and stop.error is not None and stop.error.reason == "CALLER_NOT_ALLOWED":
        return "start the router with PODIUM_ROUTER_ALLOW_CLI=true while you calibrate"
    return "the same command goes on where this one stopped; nothing is paid twice"
