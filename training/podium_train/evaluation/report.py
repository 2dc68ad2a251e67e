"""One measurement as a document: what was measured, with which command, on which data. JSON, nothing else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from podium_core.domain.errors import PodiumError, invalid
from podium_train.evaluation.budget import Budget
from podium_train.evaluation.comparison import Comparison
from podium_train.evaluation.metrics import headroom_captured, metrics_of
from podium_train.evaluation.results import SuiteRuns

FORMAT = "podium-train-evaluation/1"
ORACLE = "oracle"
BEST_SINGLE = "best single"


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The runs of one suite and what was concluded from them."""

    runs: SuiteRuns
    conductors: Sequence[str] = field(default_factory=tuple)
    comparisons: Sequence[Comparison] = field(default_factory=tuple)
    budgets: Sequence[Budget] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Provenance:
    """How to make the document again. `digests` names data and weights by SHA-256 (hex)."""

    name: str
    command: str
    measured_on: str
    digests: Mapping[str, str]
    notes: Sequence[str] = ()


def document(provenance: Provenance, suites: Sequence[SuiteReport]) -> dict[str, Any]:
    """Return the JSON document of one measurement."""
    return {"format": FORMAT, **asdict(provenance), "suites": [_suite(suite) for suite in suites]}


def written(content: Mapping[str, Any]) -> str:
    """Return the document as text, with figures cut to what they can mean."""
    return json.dumps(_rounded(content), ensure_ascii=False, indent=1) + "\n"


def read(text: str, name: str) -> dict[str, Any]:
    """Return the document in `text`; raise PodiumError when it is none."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise _no_document(name) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _no_document(name)
    return content


def _no_document(name: str) -> PodiumError:
    return invalid(
        f"{name} is no measurement of `podium-train evaluate` ({FORMAT}); remove it or name others"
    )


def _suite(report: SuiteReport) -> dict[str, Any]:
    runs, positions = report.runs, report.runs.scorable
    accuracies = {name: metrics_of(system, positions).accuracy for name, system in runs.systems.items()}
    return {
        "name": runs.name,
        "title": runs.title,
        "group": runs.group,
        "is_part": runs.is_part,
        "conductors": list(report.conductors),
        "item_count": len(positions),
        "systems": [_system(runs, name, accuracies) for name in runs.systems],
        "comparisons": [asdict(entry) for entry in report.comparisons],
        "budgets": [asdict(entry) for entry in report.budgets],
    }


def _system(runs: SuiteRuns, name: str, accuracies: Mapping[str, float]) -> dict[str, Any]:
    system = runs.systems[name]
    captured = None
    if BEST_SINGLE in accuracies and ORACLE in accuracies:
        captured = headroom_captured(accuracies[name], accuracies[BEST_SINGLE], accuracies[ORACLE])
    return {
        "name": name,
        "marks": list(system.marks),
        "simulated_share": sum(not line.is_exact for line in system.lines) / len(system.lines),
        "headroom_captured": captured,
        **asdict(metrics_of(system, runs.scorable)),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in value]
    return value
