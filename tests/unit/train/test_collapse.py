"""The figures of a batch, and the alarms that stop a run."""

import pytest

from podium_core.domain.usage import Usage
from podium_train.environments.port import Outcome, PerformedStep, Verdict
from podium_train.learning.collapse import CollapseLimits, CollapseWatch, figures_of


def scored(*workers: str, right: bool) -> Outcome:
    steps = tuple(PerformedStep(worker, "", right, Usage(), 0, 0) for worker in workers)
    return Outcome(Verdict.SCORED, 1.0 if right else 0.5, is_right=right, steps=steps)


INVALID = Outcome(Verdict.INVALID, 0.0, reason="PLAN_NO_TRIPLE")
UNSCORABLE = Outcome(Verdict.UNSCORABLE, None, reason="DEADLINE")


def test_accuracy_given_valid_is_kept_apart_from_validity() -> None:
    figures = figures_of(
        [scored("a", right=True), scored("a", "b", right=False), INVALID, INVALID, UNSCORABLE]
    )
    assert figures.unscorable_share == pytest.approx(0.2)
    assert figures.validity == 0.5
    assert figures.accuracy == 0.25
    assert figures.accuracy_given_valid == 0.5
    assert figures.step_shares == {1: 0.5, 2: 0.5}
    assert figures.mean_steps == 1.5
    assert figures.worker_entropy_bits == pytest.approx(0.9183, abs=1e-4)


def test_nothing_is_said_of_a_batch_without_a_valid_plan() -> None:
    assert figures_of([INVALID]).as_metrics() == {"unscorable_share": 0.0, "validity": 0.0, "accuracy": 0.0}
    assert figures_of([UNSCORABLE]).as_metrics() == {"unscorable_share": 1.0}


def alarm_after(limits: CollapseLimits, *batches: dict[str, float]) -> tuple[int, str] | None:
    watch = CollapseWatch(limits)
    for number, batch in enumerate(batches, start=1):
        if alarm := watch.see(batch):
            return number, alarm
    return None


@pytest.mark.parametrize(
    ("healthy", "collapsed", "why"),
    [
        ({"clipped_share": 0.1}, {"clipped_share": 1.0}, "token cap"),
        ({"validity": 0.9}, {"validity": 0.1}, "validity"),
        ({"accuracy_given_valid": 0.8}, {"accuracy_given_valid": 0.2}, "accuracy given valid"),
        ({"worker_entropy_bits": 1.5}, {"worker_entropy_bits": 0.0}, "worker entropy"),
        ({"steps/1": 0.5, "steps/2": 0.5}, {"steps/1": 1.0}, "one number of steps"),
    ],
)
def test_a_lasting_collapse_stops_the_run_and_says_which(
    healthy: dict[str, float], collapsed: dict[str, float], why: str
) -> None:
    limits = CollapseLimits(window=3, grace=3, min_worker_entropy_bits=0.5, max_one_count_share=0.9)
    found = alarm_after(limits, *[healthy] * 5, *[collapsed] * 4)
    assert found is not None
    assert why in found[1]
    assert found[0] > 6, "one bad batch is no collapse"
    assert alarm_after(limits, *[healthy] * 20) is None


def test_the_first_iterations_are_never_judged() -> None:
    limits = CollapseLimits(window=2, grace=4, max_clipped_share=0.5)
    assert alarm_after(limits, *[{"clipped_share": 1.0}] * 4) is None
    found = alarm_after(limits, *[{"clipped_share": 1.0}] * 5)
    assert found is not None
    assert found[0] == 5


def test_figures_that_are_missing_raise_no_alarm() -> None:
    limits = CollapseLimits(window=2, grace=0, min_worker_entropy_bits=1.0, max_one_count_share=0.1)
    assert alarm_after(limits, *[{"reward": 0.0}] * 10) is None
