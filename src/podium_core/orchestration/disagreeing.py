"""Which steps of a round answered the same sub-question, and how far their replies are apart."""

from collections.abc import Iterator, Mapping

from podium_core.domain.disagreement import METHOD, disagreement_ppm
from podium_core.domain.plan import Plan
from podium_core.orchestration.events import StepResult


def disagreements(plan: Plan, results: Mapping[int, StepResult]) -> Iterator[Mapping[str, str]]:
    """Yield the facts of a note for each sub-question that at least two workers answered.

    Steps share a sub-question when their subtasks are the same words and they see the same steps.
    """
    asked: dict[tuple[str, tuple[int, ...], bool], list[int]] = {}
    for index, step in enumerate(plan.steps):
        access = step.access
        same = " ".join(step.subtask.casefold().split()), access.steps, access.previous_round
        asked.setdefault(same, []).append(index)
    for indices in asked.values():
        answered = [results[index] for index in indices if index in results and results[index].ok]
        if len({result.worker_id for result in answered}) > 1:
            yield {
                "method": METHOD,
                "round": str(plan.round),
                "steps": ",".join(str(result.step_index) for result in answered),
                "workers": ",".join(result.worker_id for result in answered),
                "score_ppm": str(disagreement_ppm([result.words for result in answered])),
            }
