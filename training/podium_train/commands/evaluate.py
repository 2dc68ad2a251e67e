"""Measure systems: every baseline, and any number of Conductors, on the same recorded items or demo tasks.

Writes NAME.json and NAME-*.png into the folder of --to, and gate.yaml there when a Conductor was measured
(gate-demo.yaml for the demo specialists).
`podium-train results` makes the page of such a folder.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import invalid
from podium_core.domain.plan import MAX_STEPS
from podium_train.baselines.lineup import NAMES, Lineup, TextRouters
from podium_train.baselines.scorers import source_of
from podium_train.environments.demo import DemoEnvironment
from podium_train.environments.replay import ReplayEnvironment
from podium_train.evaluation.conclusions import concluded
from podium_train.evaluation.conductors import conductor_systems, named_path
from podium_train.evaluation.demo_suites import best_specialist, demo_suites, demo_systems
from podium_train.evaluation.digests import folder_digest
from podium_train.evaluation.gating import with_rival, write_gate
from podium_train.evaluation.local_model import local_model
from podium_train.evaluation.measuring import Entrant, measured
from podium_train.evaluation.prompted import PromptedWriter
from podium_train.evaluation.report import Provenance, SuiteReport, document, written
from podium_train.evaluation.saving import not_saved, save
from podium_train.evaluation.suites import Suite, SuiteMaker, evenly
from podium_train.evaluation.systems import ABLATION, PROMPTED, RIVAL, Conducted, System, Trial
from podium_train.evaluation.trials import DirectTrial, ReplayTrial
from podium_train.outcomes.cards import Grain, measure_cards
from podium_train.outcomes.folder import read_folder

HELP = "measure baselines and Conductors on recorded answers"
_CONCURRENCY = 8
_NANOSECONDS = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--data", type=Path, help="folder of recorded answers")
    parser.add_argument("--demo", type=int, metavar="N", help="N tasks of the demo specialists instead")
    parser.add_argument("--to", type=Path, required=True, help="folder for the measurement")
    parser.add_argument("--name", help="name of the measurement (default: replay, or demo)")
    parser.add_argument("--systems", default=",".join(NAMES), help=f"baselines, of {', '.join(NAMES)}")
    parser.add_argument(
        "--conductor",
        type=named_path,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="a Conductor's weights; the same NAME again is another training seed of it",
    )
    parser.add_argument(
        "--prompted",
        type=named_path,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="an instruction model that plans by prompt alone, in a folder that transformers reads",
    )
    parser.add_argument("--most-items", type=int, help="at most so many items a suite, drawn evenly")
    parser.add_argument("--ablations", default="", help="names of --conductor to take things away from")
    parser.add_argument("--rounds", type=int, default=1, help="also measure Conductors with so many rounds")
    parser.add_argument("--suites", default="", help="only suites whose names begin so (comma-separated)")
    parser.add_argument("--size-items", type=int, default=600, help="items per pool size (default: 600)")
    parser.add_argument("--card-samples", type=int, help="cards as so many graded items a skill show them")
    parser.add_argument("--grain", choices=[grain.value for grain in Grain], default=Grain.FAMILY_LEVEL.value)
    parser.add_argument("--seed", type=int, default=1, help="draws pools and resamples (default: 1)")
    parser.add_argument("--resamples", type=int, default=10_000)


def run(arguments: argparse.Namespace) -> int:
    """Measure, write, and say where."""
    if (arguments.data is None) == (arguments.demo is None):
        raise invalid("name recorded answers with --data or a number of demo tasks with --demo, one of both")
    if arguments.demo is not None:
        _demo(arguments)
    else:
        _replay(arguments)
    return 0


def _replay(arguments: argparse.Namespace) -> None:
    recorded = read_folder(arguments.data)
    rack = measure_cards(recorded, Grain(arguments.grain))
    suites = _chosen(
        SuiteMaker(recorded, rack, arguments.seed, arguments.card_samples, arguments.size_items).suites(),
        arguments,
    )
    sources = {source_of(task.task_id) for suite in suites for task in suite.tasks}
    recorded = recorded.keep(item for item in recorded.items if item.source in sources)
    widest = max(len(task.workers) for suite in suites for task in suite.tasks)
    trial = ReplayTrial(ReplayEnvironment(recorded, max_steps=max(MAX_STEPS, widest + 1)))
    lineup = Lineup(recorded, trial, _listed(arguments.systems), _text_routers())
    conductors = with_rival(_conductors(arguments, trial), lineup.best, trial)
    prompted = _prompted(arguments, trial)
    reports: list[SuiteReport] = []
    for suite in suites:
        baselines = [*lineup.systems(suite.tasks, is_whole=suite.is_whole), *prompted]
        reports += _measured(arguments, suite, baselines, conductors)
    _write(arguments, reports, {"data": folder_digest(arguments.data, "*_outcomes/*")})
    write_gate(arguments.to / "gate.yaml", reports, seed=arguments.seed, today=_today())


def _demo(arguments: argparse.Namespace) -> None:
    trial = DirectTrial(DemoEnvironment())
    best = asyncio.run(best_specialist(trial, arguments.seed))
    conductors = with_rival(_conductors(arguments, trial), best, trial)
    prompted = _prompted(arguments, trial)
    reports: list[SuiteReport] = []
    for suite in _chosen(demo_suites(arguments.demo, arguments.seed), arguments):
        reports += _measured(arguments, suite, [*demo_systems(trial, best), *prompted], conductors)
    _write(arguments, reports, {})
    write_gate(arguments.to / "gate-demo.yaml", reports, seed=arguments.seed, today=_today())


def _conductors(arguments: argparse.Namespace, trial: Trial) -> list[Entrant]:
    return conductor_systems(arguments.conductor, trial, _listed(arguments.ablations), arguments.rounds)


def _prompted(arguments: argparse.Namespace, trial: Trial) -> list[System]:
    return [
        Conducted(entry.name, (PromptedWriter(local_model(entry.path)),), trial, marks=(PROMPTED,))
        for entry in arguments.prompted
    ]


def _measured(
    arguments: argparse.Namespace,
    suite: Suite,
    baselines: Sequence[System],
    conductors: Sequence[Entrant],
) -> list[SuiteReport]:
    """Return the suite's report, and those of its levels where pools are drawn."""
    kept = [e for e in conductors if suite.is_ablated or not {ABLATION, RIVAL} & set(e.system.marks)]
    entrants = [*map(Entrant, baselines), *kept]
    runs = asyncio.run(measured(suite, entrants, concurrency=_CONCURRENCY, told=_tell))
    names = [e.system.name for e in conductors if not {ABLATION, RIVAL} & set(e.system.marks)]
    parts = [runs] if runs.group or suite.is_whole else [runs, *runs.levels()]
    return [
        concluded(part, names, seed=arguments.seed, resamples=arguments.resamples, is_whole=suite.is_whole)
        for part in parts
    ]


def _write(arguments: argparse.Namespace, reports: Sequence[SuiteReport], digests: Mapping[str, str]) -> None:
    named = [*arguments.conductor, *arguments.prompted]
    digests = {**digests, **{entry.label: folder_digest(entry.path) for entry in named}}
    content = document(
        Provenance(_name(arguments), command_line(arguments), _today().date().isoformat(), digests), reports
    )
    path = arguments.to / f"{_name(arguments)}.json"
    save(path, written(content))
    sys.stdout.write(f"{path}\n")
    if find_spec("matplotlib") is None:
        sys.stderr.write("no plots: matplotlib is not installed (requirements/train.txt)\n")
        return
    from podium_train.evaluation.plots import draw  # noqa: PLC0415 - an optional, heavy library

    try:
        pictures = draw(content, arguments.to)
    except OSError as error:
        raise not_saved(path.with_suffix(".png"), error) from None
    for picture in pictures:
        sys.stdout.write(f"{picture}\n")


def _name(arguments: argparse.Namespace) -> str:
    return arguments.name or ("replay" if arguments.demo is None else "demo")


def command_line(arguments: argparse.Namespace) -> str:
    """Return the command that makes the measurement again, without this machine's folders."""
    asked = ["--data", "DATA"] if arguments.demo is None else ["--demo", str(arguments.demo)]
    words = ["podium-train", "evaluate", *asked, "--to", arguments.to.name]
    for option, default in _DEFAULTS.items():
        value = getattr(arguments, option)
        if value != default:
            words += [f"--{option.replace('_', '-')}", str(value)]
    for option, entries in (("--conductor", arguments.conductor), ("--prompted", arguments.prompted)):
        for entry in entries:
            words += [option, f"{entry.name}={entry.path.name}"]
    return " ".join(f'"{word}"' if " " in word else word for word in words)


_DEFAULTS = {
    "name": None,
    "systems": ",".join(NAMES),
    "ablations": "",
    "rounds": 1,
    "suites": "",
    "most_items": None,
    "size_items": 600,
    "card_samples": None,
    "grain": Grain.FAMILY_LEVEL.value,
    "seed": 1,
    "resamples": 10_000,
}


def _text_routers() -> TextRouters | None:
    if find_spec("sklearn") is None:
        return None
    from podium_train.baselines.text_routers import LogisticRouter, NeighbourRouter  # noqa: PLC0415 - optional

    return TextRouters(LogisticRouter, NeighbourRouter)


def _chosen(suites: Sequence[Suite], arguments: argparse.Namespace) -> list[Suite]:
    wanted = tuple(_listed(arguments.suites))
    chosen = [suite for suite in suites if not wanted or suite.name.startswith(wanted)]
    if not chosen:
        known = ", ".join(suite.name for suite in suites) or "none, as no item is held out"
        raise invalid(f"--suites names no suite that this data folder has items for; it has {known}")
    if arguments.most_items is None:
        return chosen
    return [replace(suite, tasks=evenly(suite.tasks, arguments.most_items)) for suite in chosen]


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _today() -> datetime:
    return datetime.fromtimestamp(SystemClock().now_ns() / _NANOSECONDS, UTC)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
