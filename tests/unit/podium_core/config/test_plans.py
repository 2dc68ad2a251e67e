"""plans.yaml and pins.yaml: exact, strict, every mistake named by its line."""

from pathlib import Path

import pytest

from podium_core.config.pins import Pin, load_pins
from podium_core.config.plans import StaticPlans, load_plans
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step

DIGEST = "a" * 64


def _plans(tmp_path: Path, text: str) -> StaticPlans:
    path = tmp_path / "plans.yaml"
    path.write_text(text)
    return load_plans(path)


def test_a_plan_is_read_exactly(tmp_path: Path) -> None:
    plans = _plans(
        tmp_path,
        """
plans:
  - name: review
    description: Three looks
    steps:
      - worker: a
      - {worker: b, subtask: "Doubt it: find the error.", sees: [0, 0]}
      - {worker: a, subtask: Decide., sees: all, fallback: b}
""",
    )
    (review,) = plans.by_name.values()
    steps = (
        Step("a", ""),
        Step("b", "Doubt it: find the error.", Access((0,))),
        Step("a", "Decide.", Access((0, 1)), "b"),
    )
    assert (review.name, review.description) == ("review", "Three looks")
    assert review.plan == Plan(steps, PlanSource.STATIC)
    assert review.worker_ids == {"a", "b"}


def test_the_digest_changes_with_the_wording_alone(tmp_path: Path) -> None:
    text = "plans: [{name: p, description: one, steps: [{worker: a, subtask: x}]}]"
    digest = _plans(tmp_path, text).by_name["p"].digest
    assert _plans(tmp_path, f"# {text}\n{text.replace('one', 'two')}").by_name["p"].digest == digest
    assert _plans(tmp_path, text.replace("subtask: x", "subtask: y")).by_name["p"].digest != digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plans:\n - steps: [{worker: a}]", "line 2: plans[0].name: this field is required"),
        ("plans:\n - name: p\n   steps: []", "line 3: plans[0].steps: may not be empty"),
        ("plans:\n - name: a/b\n   steps: [{worker: a}]", "line 2: plans[0].name: must be 1 to 64 letters"),
        (
            "plans:\n - name: p\n   steps:\n   - worker: a\n     sees: [0]",
            "line 5: plans[0].steps[0].sees: step 0 may see earlier steps only",
        ),
        (
            "plans:\n - name: p\n   steps:\n   - worker: a\n   - worker: b",
            "line 4: plans[0].steps[0]: no later step sees step 0",
        ),
        (
            "plans:\n - name: p\n   steps:\n   - worker: a\n     fallback: a",
            "line 5: plans[0].steps[0].fallback: the fallback must be another worker",
        ),
        (
            "plans:\n - {name: p, steps: [{worker: a}]}\n - {name: p, steps: [{worker: a}]}",
            "line 3: plans[1].name: there are two plans 'p'",
        ),
        (
            "plans:\n - name: p\n   steps:\n" + "   - worker: a\n     sees: all\n" * 6,
            "line 3: plans[0].steps: ",
        ),
    ],
)
def test_every_mistake_in_plans_is_named_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PodiumError) as failed:
        _plans(tmp_path, text)
    assert failed.value.code is Code.INVALID_REQUEST
    assert said in failed.value.message


def test_pins_are_read_by_day_and_no_day_twice(tmp_path: Path) -> None:
    path = tmp_path / "pins.yaml"
    entry = f"  - {{date: 2026-11-30, pool_digest: {DIGEST}, model_digest: m1}}\n"
    path.write_text(f"pins:\n{entry}")
    assert load_pins(path).by_day == {"2026-11-30": Pin("2026-11-30", DIGEST, "m1")}
    path.write_text(f"pins:\n{entry}{entry}")
    with pytest.raises(PodiumError, match=r"line 3: .*two pins of 2026-11-30"):
        load_pins(path)
    path.write_text("pins:\n  - {date: 2026-11-30, pool_digest: short, model_digest: m1}\n")
    with pytest.raises(PodiumError, match=r"line 2: pins\[0\].pool_digest"):
        load_pins(path)
    path.write_text("pins:\n")
    assert load_pins(path).by_day == {}
