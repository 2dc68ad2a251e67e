"""Shows how fixed strategies fare under other values of what simulated workers assume.

Over made-up items, or with --data over the dev split of recorded answers, in random pools of 3 to 5.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from podium_train.environments.parametric_sweep import STRATEGIES, SweptRow, swept
from podium_train.environments.replay_sweep import ReplayRow, swept_replay
from podium_train.outcomes.cards import measure_cards
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.pools import TaskMaker, clean_pool
from podium_train.outcomes.splits import Split, select

HELP = "try other values of every constant that simulated workers assume"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--items", type=int, default=400, help="made-up items per value (default 400)")
    parser.add_argument("--seed", type=int, default=1, help="decides items, pools and all luck (default 1)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="sweep what replay assumes, over recorded answers"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="CONSTANT", help="sweep only these")
    parser.add_argument("--to", type=Path, help="also write the table to this file")


def run(arguments: argparse.Namespace) -> int:
    """Sweep and print a Markdown table."""
    if arguments.data is not None:
        text = _over_recorded(arguments)
    else:
        rows = swept(item_count=arguments.items, seed=arguments.seed, constants=arguments.only)
        text = table(rows, item_count=arguments.items, seed=arguments.seed)
    sys.stdout.write(text)
    if arguments.to is not None:
        arguments.to.write_text(text, encoding="utf-8")
    return 0


def _over_recorded(arguments: argparse.Namespace) -> str:
    recorded = read_folder(arguments.data)
    maker = TaskMaker(measure_cards(recorded), clean_pool(recorded.models))
    tasks = maker.draw_all(select(recorded, [Split.DEV]), arguments.seed)[: arguments.items]
    return replay_table(swept_replay(recorded, tasks, arguments.only), len(tasks), arguments.seed)


def replay_table(rows: Sequence[ReplayRow], task_count: int, seed: int) -> str:
    """Return the rows of a sweep over recorded answers as Markdown; assumed values are bold."""
    lines = [
        (
            f"Replay with simulated effects (not exact), {task_count} recorded dev items, seed {seed}; bold:"
            " what is assumed elsewhere. Accuracy in per cent."
        ),
        "",
        "| effect | value | " + " | ".join(STRATEGIES) + " |",
        "|---|---|" + "---|" * len(STRATEGIES),
    ]
    for row in rows:
        value = f"**{row.value:g}**" if row.is_assumed else f"{row.value:g}"
        shares = " | ".join(f"{100 * row.accuracies[label]:.1f}" for label in STRATEGIES)
        lines.append(f"| {row.constant} | {value} | {shares} |")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[SweptRow], *, item_count: int, seed: int) -> str:
    """Return the rows as Markdown; the values that are assumed elsewhere are bold."""
    lines = [
        (
            f"Simulated workers (parametric environment), {item_count} made-up items, seed {seed}; bold: what"
            " is assumed elsewhere. Accuracy in per cent; cost (US cents) and time (seconds, longest chain) a"
            " question of `three, compare`."
        ),
        "",
        "| constant | value | " + " | ".join(STRATEGIES) + " | cost | time | unscorable % |",
        "|---|---|" + "---|" * (len(STRATEGIES) + 3),
    ]
    for row in rows:
        value = f"**{row.value:g}**" if row.is_assumed else f"{row.value:g}"
        shares = " | ".join(f"{100 * row.accuracies[label]:.1f}" for label in STRATEGIES)
        cents = row.costs_usd_micros["three, compare"] / 1e4
        lines.append(
            f"| {row.constant} | {value} | {shares} | {cents:.3f} | {row.times_s['three, compare']:.1f}"
            f" | {100 * row.unscorable_share:.1f} |"
        )
    return "\n".join(lines) + "\n"
