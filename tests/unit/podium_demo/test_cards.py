"""The cards in pool.demo.yaml say exactly what a new measurement says."""

from importlib.resources import files
from pathlib import Path

import pytest

from podium_core.config.pool import PoolFile, load_pool
from podium_demo.answer import SPECIALISTS
from podium_demo.measure.grade import SAMPLE_COUNT, is_right, measure
from podium_demo.measure.items import MAKERS, Item

CASES = [(model, skill) for model in SPECIALISTS for skill in MAKERS]


@pytest.fixture(scope="module")
def demo_pool(tmp_path_factory: pytest.TempPathFactory) -> PoolFile:
    path: Path = tmp_path_factory.mktemp("pool") / "pool.yaml"
    text = (files("podium_demo") / "pool.demo.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("{base_url}", "http://127.0.0.1:7070/v1"), encoding="utf-8")
    return load_pool(path)


@pytest.mark.parametrize(("model", "skill"), CASES)
def test_a_card_equals_its_measurement(demo_pool: PoolFile, model: str, skill: str) -> None:
    score = measure(SPECIALISTS[model], skill, lambda: 0)
    card = demo_pool.pool.by_id[model].card
    shown = next(s for s in card.skills if s.name == skill)
    assert (shown.accuracy_ppm, shown.sample_count) == (score.accuracy_ppm, SAMPLE_COUNT)
    assert score.wrong == 0, "an honest specialist declines rather than guesses"
    if skill not in SPECIALISTS[model].skills:
        assert score.declined == SAMPLE_COUNT, "off its skill a specialist declines"


def test_everything_that_shows_the_pool_can_say_demo(demo_pool: PoolFile) -> None:
    assert {w.worker_id for w in demo_pool.pool.workers} == set(SPECIALISTS)
    for worker in demo_pool.pool.workers:
        assert worker.is_demo
        assert worker.worker_id.startswith("demo-")
        assert [s.name for s in worker.card.skills] == list(MAKERS)


def test_amounts_are_right_only_in_their_unit() -> None:
    item = Item("?", "3.1068559 miles")
    assert is_right(item, "about 3.106856 miles")
    assert not is_right(item, "about 3.106856 km")
    assert not is_right(item, "3.2 miles")
    assert not is_right(Item("?", "12"), "12.0")
