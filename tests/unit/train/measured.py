"""Lines of measurements that tests make up."""

from collections.abc import Sequence

from podium_core.domain.usage import Usage
from podium_train.environments.port import Verdict
from podium_train.evaluation.results import Answered, SuiteRuns, SystemRuns


def line(
    number: int,
    right: bool,
    *workers: str,
    family: str = "",
    verdict: Verdict = Verdict.SCORED,
    exact: bool = True,
    tokens: int = 100,
    own: int = 0,
    difficulty: str = "easy",
) -> Answered:
    return Answered(
        task_id=f"t{number}",
        family=family or f"family {number % 5}",
        difficulty=difficulty,
        pool=("one", "two"),
        verdict=verdict,
        is_right=right,
        is_exact=exact,
        worker_ids=workers or ("one",),
        worker_usage=Usage(0, tokens),
        conductor_usage=Usage(0, own),
        cost_usd_micros=tokens,
    )


def system(name: str, *runs: Sequence[Answered], marks: tuple[str, ...] = ()) -> SystemRuns:
    return SystemRuns(name, tuple(tuple(run) for run in runs), marks)


def suite(*systems: SystemRuns, name: str = "suite", group: str = "") -> SuiteRuns:
    return SuiteRuns(name, "A suite", {runs.name: runs for runs in systems}, group)
