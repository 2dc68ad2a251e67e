"""Grades of finished runs: what is recorded, and what they come to per tenant, tier and number of steps."""

from collections.abc import Iterable
from typing import Any

from podium_audit.ports import GradeTallyRow
from podium_audit.records import contents, limits
from podium_audit.records.commands import Grade, Part
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import GRADE_NOTE, RunState
from podium_core.domain.errors import Code, PodiumError, invalid

PPM = 1_000_000

_MAX_COMMENT_BYTES = 16_384

Tallies = dict[tuple[str, str, int], GradeTallyRow]


def record(run: RunState, command: Grade) -> list[Draft]:
    """Return the record of a grade; it only refers to the run, whose seal stays as it is.

    Raises PodiumError: NOT_FOUND for a run of others, CONFLICT (RUN_OPEN, RUN_ERASED), INVALID_REQUEST.
    """
    is_own = run.row.principal_id == command.principal_id
    if run.row.tenant_id != command.tenant_id or not (is_own or command.of_any_key):
        raise PodiumError(Code.NOT_FOUND, "there is no such run", reason="RUN_UNKNOWN", param="run_id")
    if run.outcome is None:
        raise PodiumError(
            Code.CONFLICT, "the run is still under way: grade it once it has ended", reason="RUN_OPEN"
        )
    if command.score_ppm > PPM:
        raise invalid("a score lies between 0 and 1", param="score")
    limits.check_texts((("principal_id", command.principal_id),))
    facts: dict[str, Any] = {
        "kind": GRADE_NOTE,
        "facts": {"score_ppm": str(command.score_ppm), "principal_id": command.principal_id},
    }
    return [Draft("note", facts, _comment(run, command), in_run=False)]


def changed(tallies: Tallies, run: RunState, before_ppm: int | None, score_ppm: int) -> GradeTallyRow | None:
    """Return the tally of the run's kind with its newest grade in it; None for a run that no plan made."""
    if not run.plans:
        return None
    key = (run.row.tenant_id, run.row.requested_model, len(run.plans[0]))
    old = tallies.get(key) or GradeTallyRow(*key, 0, 0, 0)
    count, total, squares = old.grade_count, old.sum_ppm, old.sum_squares_ppm
    if before_ppm is not None:
        count, total, squares = count - 1, total - before_ppm, squares - _square(before_ppm)
    return GradeTallyRow(*key, count + 1, total + score_ppm, squares + _square(score_ppm))


def by_key(rows: Iterable[GradeTallyRow]) -> Tallies:
    """Return tallies by tenant, tier and number of steps."""
    return {(row.tenant_id, row.tier, row.step_count): row for row in rows}


def _square(ppm: int) -> int:
    return ppm * ppm // PPM


def _comment(run: RunState, command: Grade) -> list[contents.SealedPart]:
    data = command.comment.encode()
    if not data:
        return []
    if len(data) > _MAX_COMMENT_BYTES:
        raise PodiumError(
            Code.TOO_LARGE, f"a comment may take {_MAX_COMMENT_BYTES} bytes, not {len(data)}", param="comment"
        )
    if run.data_key is None:
        raise PodiumError(Code.CONFLICT, "the run's content is erased: it takes no more", reason="RUN_ERASED")
    part = Part(f"{command.event.event_id}/comment", "comment", "text/plain; charset=utf-8", data)
    return [contents.seal(run.data_key, run.row.run_id, part)]
