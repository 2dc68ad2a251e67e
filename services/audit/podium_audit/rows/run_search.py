"""What runs can be searched by: facets that a run's end writes down, and the columns of its two rows."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Facet(StrEnum):
    """What a run had; a run may have several of each but outcome and model."""

    WORKER = "worker"
    PROVIDER = "provider"
    REGION = "region"
    RULE = "rule"
    """The id of a rule that kept a worker out."""
    OUTCOME = "outcome"
    MODEL = "model"


class FacetRow(NamedTuple):
    """One value of one facet of one run."""

    tenant_id: str
    facet: str
    value: str
    run_no: int


@dataclass(frozen=True, slots=True)
class RunSearch:
    """Which runs of one tenant are wanted: all conditions hold. Runs have facets from their end on.

    `opened_from_us` is the first moment, `opened_before_us` the first that is too late. `is_open` None: both.
    """

    tenant_id: str
    principal_id: str | None = None
    facets: tuple[tuple[Facet, str], ...] = ()
    kind: str | None = None
    opened_from_us: int | None = None
    opened_before_us: int | None = None
    least_cost_usd_micros: int | None = None
    most_cost_usd_micros: int | None = None
    is_open: bool | None = None
