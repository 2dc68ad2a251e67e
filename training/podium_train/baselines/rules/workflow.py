"""Turns clauses into steps: who does what, who sees whom, within the step cap."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium_core.domain.pool import Worker
from podium_core.orchestration.planning import best_by_card
from podium_train.baselines.rules.clauses import Clause, Refers, clauses_of
from podium_train.baselines.rules.skills import best_at, worker_for
from podium_train.baselines.rules.words import QUESTION_WORDS

JOIN = "Join all the results together, in order, separated by a semicolon."
"""What the joining step is told when several results stand side by side."""

_USING = "Using the earlier result: "


@dataclass(frozen=True, slots=True)
class Draft:
    """A step before it is written down.

    `skill` is empty where no card shows what the step needs. `part_count` says how many parts of the
    question it answers.
    """

    worker_id: str
    subtask: str
    sees: tuple[int, ...] = ()
    skill: str = ""
    part_count: int = 1


def draft_steps(question: str, workers: Sequence[Worker], max_steps: int) -> list[Draft]:
    """Return 1 to `max_steps` steps that answer `question` with `workers`, of which there is at least one.

    A single step for the whole question has no subtask: the question passes through unchanged.
    """
    clauses = clauses_of(question)
    drafts = _drafts(clauses, workers)
    if not any(draft.skill for draft in drafts):
        return [Draft(best_by_card(workers).worker_id, "")]
    drafts = _joined(drafts, workers)
    if len(drafts) > max_steps:
        drafts = _chains_merged(drafts)
    if len(drafts) > max_steps:
        drafts = _tail_merged(drafts, max_steps)
    is_whole = len(drafts) == 1 and drafts[0].part_count == len(clauses)
    return [replace(drafts[0], subtask="")] if is_whole else drafts


def _drafts(clauses: Sequence[Clause], workers: Sequence[Worker]) -> list[Draft]:
    drafts: list[Draft] = []
    for clause in clauses:
        found = worker_for(clause.text, workers)
        if found is None and not clause.is_command:
            continue  # a remark: every worker sees the whole question anyway
        worker, skill = found or (best_by_card(workers), "")
        sees = _seen(clause, drafts)
        drafts.append(Draft(worker.worker_id, _subtask(clause, has_input=bool(sees)), sees, skill))
    return drafts


def _seen(clause: Clause, drafts: Sequence[Draft]) -> tuple[int, ...]:
    if clause.refers is Refers.NOTHING or not drafts:
        return ()
    if clause.refers is Refers.LATEST:
        return (len(drafts) - 1,)
    ends = _ends(drafts)
    return ends if len(ends) > 1 else tuple(range(len(drafts)))


def _ends(drafts: Sequence[Draft]) -> tuple[int, ...]:
    """Return the steps whose results no other step uses."""
    used = {index for draft in drafts for index in draft.sees}
    return tuple(index for index in range(len(drafts)) if index not in used)


def _subtask(clause: Clause, *, has_input: bool) -> str:
    text = clause.text
    if has_input and not clause.is_explicit:
        return _USING + _sentence(text[:1].lower() + text[1:])
    return _sentence(text[:1].upper() + text[1:])


def _sentence(text: str) -> str:
    if text.endswith(("?", "!", ".")):
        return text
    return f"{text}{'?' if text.split(maxsplit=1)[0].lower() in QUESTION_WORDS else '.'}"


def _joined(drafts: list[Draft], workers: Sequence[Worker]) -> list[Draft]:
    """Add a step that puts the results together when more than one stands at the end."""
    ends = _ends(drafts)
    if len(ends) == 1:
        return drafts
    worker = best_at(("text",), workers) or best_by_card(workers)
    return [*drafts, Draft(worker.worker_id, JOIN, ends, "text", part_count=0)]


def _chains_merged(drafts: Sequence[Draft]) -> list[Draft]:
    """Merge steps that follow each other at the same worker and are of use to nobody else."""
    users = Counter(index for draft in drafts for index in draft.sees)
    merged: list[Draft] = []
    place: dict[int, int] = {}
    for index, draft in enumerate(drafts):
        before = draft.sees[0] if len(draft.sees) == 1 else None
        if before is not None and users[before] == 1 and merged[place[before]].worker_id == draft.worker_id:
            place[index] = place[before]
            earlier = merged[place[before]]
            merged[place[before]] = replace(
                earlier,
                subtask=f"{earlier.subtask} {_continued(draft.subtask)}",
                part_count=earlier.part_count + draft.part_count,
            )
        else:
            place[index] = len(merged)
            merged.append(replace(draft, sees=tuple(sorted({place[seen] for seen in draft.sees}))))
    return merged


def _continued(subtask: str) -> str:
    plain = subtask.removeprefix(_USING)
    return f"Then {plain[:1].lower()}{plain[1:]}"


def _tail_merged(drafts: Sequence[Draft], max_steps: int) -> list[Draft]:
    """Keep the first steps and give all the rest to one last step, which sees everything before it."""
    kept, rest = list(drafts[: max_steps - 1]), drafts[max_steps - 1 :]
    (worker_id, _), *_ = Counter(draft.worker_id for draft in rest).most_common(1)
    subtask = " ".join([rest[0].subtask, *(_continued(draft.subtask) for draft in rest[1:])])
    part_count = sum(draft.part_count for draft in rest)
    return [*kept, Draft(worker_id, subtask, tuple(range(len(kept))), rest[0].skill, part_count)]
