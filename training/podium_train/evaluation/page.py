"""docs/results.md, written from stored measurements and by nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podium_train.evaluation.bars import bars_table
from podium_train.evaluation.report import read
from podium_train.evaluation.stages import stages_section
from podium_train.evaluation.tables import grid_section, suite_section

_HEAD = """\
# Results

Written by `podium-train evaluate` and `podium-train results` from the measurements in [results/](results/);
not edited by hand.

- *Exact*: a solving step returns its worker's recorded answer, an aggregating step the vote over the recorded
  answers it sees. *Simulated* rows also use assumed effects of checking, correcting or planning, and stand in
  tables of their own.
- Differences are paired by item; intervals resample families, then items (10,000 times). Invalid plans are
  wrong answers. *Detectable* is the smallest true difference that would have shown (power 80 %).
- Several training seeds: means, and each seed apart. p values are adjusted by Holm within a table.
- Recordings hold no token counts: tokens are characters / 4 of visible text. Prices are assumed constants
  (`outcomes/assumed_prices.py`). Headroom is the share of oracle less best single that was captured.
- *Best single* and all routers but one are told an item's level (easy or hard); no Conductor is. Baselines
  do not learn from held-out workers and score them by their cards' mean; those that *know all* learnt from
  them too.
"""


def page(folder: Path) -> str:
    """Return the page of every measurement (`*.json`) in `folder`, in order of their names.

    Raises PodiumError naming a file that is no measurement.
    """
    documents = [read(path.read_text(encoding="utf-8"), path.name) for path in sorted(folder.glob("*.json"))]
    # A suite may be in several documents; the ones without a Conductor judge none.
    judged = {
        suite["name"]: suite for document in documents for suite in document["suites"] if suite["conductors"]
    }
    bars = ["## Bars\n", bars_table(judged), ""] if judged else []
    stages = [stages_section(judged)] if judged else []
    return "\n".join([_HEAD, *bars, *stages, *(_document(document, folder) for document in documents)])


def _document(document: Mapping[str, Any], folder: Path) -> str:
    digests = ", ".join(f"{name} `{digest[:12]}`" for name, digest in document["digests"].items())
    parts = [
        f"## {document['name']}",
        f"```console\n$ {document['command']}\n```",
        f"Measured on {document['measured_on']}.{f' {digests}.' if digests else ''}",
        *document["notes"],
    ]
    for group in dict.fromkeys(suite["group"] or suite["name"] for suite in document["suites"]):
        members = [suite for suite in document["suites"] if (suite["group"] or suite["name"]) == group]
        if members[0]["group"]:
            parts.append(grid_section(members))
            parts += _picture(folder, f"{document['name']}-{group}.png")
            continue
        parts += [suite_section(suite) for suite in members]
        parts += _pictures(document["name"], members, folder)
    return "\n\n".join(parts) + "\n"


def _pictures(name: str, suites: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    found = [
        f"[{kind}]({folder.name}/{path.name})"
        for suite in suites
        for kind in ("pareto", "steps", "workers")
        if (path := folder / f"{name}-{suite['name']}-{kind}.png").is_file()
    ]
    return [f"Plots: {', '.join(found)}."] if found else []


def _picture(folder: Path, name: str) -> list[str]:
    return [f"Plot: [accuracy by pool size]({folder.name}/{name})."] if (folder / name).is_file() else []
