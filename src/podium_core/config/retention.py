"""How long a tenant's records, words and stored answers are kept: floors and ceilings are checked here."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from podium_core.config.yaml_file import Section

EVIDENCE_FLOOR_DAYS = 184
"""Six months in the longest case: EU AI Act, Articles 19 and 26(6)."""
_CEILING_DAYS = 3_660
_CONVERSATION_CEILING_DAYS = 400


@dataclass(frozen=True, slots=True)
class Retention:
    """Days, each None for as long as nobody erases. Words go with the records at the latest."""

    evidence_days: int | None = None
    content_days: int | None = None
    conversation_days: int | None = None

    @property
    def words_days(self) -> int | None:
        """When a run's words go, in days after its seal."""
        days = [each for each in (self.content_days, self.evidence_days) if each is not None]
        return min(days, default=None)

    def is_shorter_than(self, other: "Retention") -> bool:
        """Whether anything of the record is kept for less long than under the other."""
        pairs = ((self.evidence_days, other.evidence_days), (self.words_days, other.words_days))
        return any(mine is not None and (theirs is None or mine < theirs) for mine, theirs in pairs)


def _check_floor(days: int | None) -> int | None:
    if days is not None and days < EVIDENCE_FLOOR_DAYS:
        raise ValueError(f"evidence is kept for {EVIDENCE_FLOOR_DAYS} days at least, six months")
    return days


class RetentionSection(Section):
    """`retention` of a tenant in tenants.yaml."""

    evidence_days: Annotated[
        Annotated[int, Field(ge=1, le=_CEILING_DAYS)] | None, AfterValidator(_check_floor)
    ] = None
    content_days: Annotated[int, Field(ge=1, le=_CEILING_DAYS)] | None = None
    conversation_days: Annotated[int, Field(ge=1, le=_CONVERSATION_CEILING_DAYS)] | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        evidence, content = self.evidence_days, self.content_days
        if evidence is not None and content is not None and content > evidence:
            raise ValueError("content_days may not be more than evidence_days: words go with their record")
        return self

    def retention(self) -> Retention:
        """Return what it says."""
        return Retention(self.evidence_days, self.content_days, self.conversation_days)
