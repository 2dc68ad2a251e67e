"""`podium pin`: one more dated name, in whatever style the file has."""

from pathlib import Path

import pytest

from podium_cli.first_start import PINS, PLANS
from podium_cli.pin import add_pin
from podium_core.config.pins import Pin, load_pins
from podium_core.config.plans import load_plans

FIRST, SECOND = Pin("2026-11-30", "a" * 64, "m1"), Pin("2026-12-01", "b" * 64, "m2")


@pytest.mark.parametrize("text", [PINS, "", "pins: []\n", "# none yet\n", '{"pins": []}'])
def test_pins_are_added_and_comments_stay(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pins.yaml"
    path.write_text(text)
    add_pin(path, FIRST)
    add_pin(path, SECOND)
    assert load_pins(path).by_day == {FIRST.day: FIRST, SECOND.day: SECOND}
    assert all(line in path.read_text() for line in text.splitlines() if line.startswith("#"))


def test_the_files_of_a_new_home_are_valid_and_their_example_is_too(tmp_path: Path) -> None:
    path = tmp_path / "plans.yaml"
    path.write_text(PLANS)
    assert load_plans(path).by_name == {}
    path.write_text("\n".join(line.removeprefix("#") for line in PLANS.splitlines()[2:]))
    assert load_plans(path).by_name["sum-in-roman"].worker_ids == {"demo-arithmetic", "demo-numerals"}
