"""What each stage of training gains, one under the other: the Conductors in the order they were named."""

from collections.abc import Mapping, Sequence
from typing import Any

from podium_train.evaluation.tables import percent, points

_SUITES = ("rg-clean", "rg-unseen-workers", "rg-unseen-families", "demo-composite", "demo-one-step")
_TOLD = """\
Rows of one setting are measured on the same items. What a stage gains is its row less that of the Conductor
it started from. Plans of the embedded policy are written from its choices, so even an untrained one writes
the format: training gains it nothing there."""


def stages_section(suites: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the Markdown of the settings that several Conductors stand in; empty without any."""
    rows = [row for name in _SUITES if name in suites for row in _rows(suites[name])]
    if not rows:
        return ""
    head = (
        "| setting | Conductor | valid | accuracy | steps | less those before it |\n|---|---|---|---|---|---|"
    )
    return "\n".join(["## Stages of training\n", _TOLD, "", head, *rows, ""])


def _rows(suite: Mapping[str, Any]) -> list[str]:
    names: Sequence[str] = suite["conductors"]
    if len(names) < 2:  # noqa: PLR2004 - one stage gains over nothing
        return []
    systems = {system["name"]: system for system in suite["systems"]}
    return [
        f"| {suite['title']} | {name} | {percent(systems[name]['validity'])} | "
        f"{percent(systems[name]['accuracy'])} | {systems[name]['calls']:.2f} | "
        f"{_gains(suite, name, names[:place]) or '-'} |"
        for place, name in enumerate(names)
    ]


def _gains(suite: Mapping[str, Any], name: str, before: Sequence[str]) -> str:
    told = []
    for entry in suite["comparisons"]:
        if entry["system"] == name and entry["reference"] in before:
            interval = entry["interval"]
            told.append(
                f"{entry['reference']}: {points(interval['mean'])} "
                f"({points(interval['low'])} to {points(interval['high'])})"
            )
    return "; ".join(told)
