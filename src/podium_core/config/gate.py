"""`gate.yaml`: for which plans it was measured that they beat one worker at equal money."""

from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from podium_core.config.yaml_file import ListOf, Section, read_document
from podium_core.domain.gate import GateRow, GateTable
from podium_core.domain.plan import MAX_STEPS

_MILLION = 1_000_000


class _RowSection(Section):
    tier: Literal["podium", "podium-max"]
    steps: Annotated[int, Field(ge=2, le=MAX_STEPS)]
    difference_low: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
    n: Annotated[int, Field(ge=1)]
    measured_on: date


class _GateFile(Section):
    rows: ListOf[_RowSection] = ()


def load_gate(path: Path) -> GateTable:
    """Return what `gate.yaml` says; raise PodiumError (INVALID_REQUEST) naming line and mistake."""
    document = read_document(path, _GateFile)
    seen: set[tuple[str, int]] = set()
    rows: list[GateRow] = []
    for index, row in enumerate(document.content.rows):
        if (row.tier, row.steps) in seen:
            raise document.error(
                ("rows", index), f"there are two rows for {row.tier} with {row.steps} steps; keep one"
            )
        seen.add((row.tier, row.steps))
        low_ppm = round(row.difference_low * _MILLION)
        rows.append(GateRow(row.tier, row.steps, low_ppm, row.n, row.measured_on.isoformat()))
    return GateTable(tuple(rows), sha256(repr(rows).encode()).hexdigest())
