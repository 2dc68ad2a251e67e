"""The weights that ship are whole, small, quick, and answer the questions that Podium shows itself with."""

import asyncio
import time
from dataclasses import replace

from podium_conductor.engines.embedded.engine import load_engine
from podium_conductor.engines.embedded.weights import read_weights, shipped_folder
from podium_core.domain.plan_prompt import listed_workers
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from tests.fakes.pools import question, worker
from tests.unit.podium_conductor.planned import ENGINE, WORKERS, plan, query


def test_they_are_whole_and_small() -> None:
    folder = shipped_folder()
    assert read_weights(folder).digest == folder.name
    assert sum(path.stat().st_size for path in folder.iterdir()) < 40_000_000


def test_thirty_two_workers_with_a_hundred_skills_are_planned_for_in_time() -> None:
    skills = {f"skill number {n}": 10_000 * (n % 97) for n in range(100)}
    pool = tuple(worker(f"w{n}", skills=skills) for n in range(32))
    asked = PlanQuery("run_1", question("Add 2 and 3, then reverse it."), pool, Caps(), "podium", 7, 60.0)
    # A fifth of a second here; threads that wait for a core of a busy machine count as work.
    assert _planned_for_s(asked) < 5.0


def _planned_for_s(asked: PlanQuery) -> float:
    """Return how long a new engine works on a plan, in seconds of processor."""
    engine = load_engine(shipped_folder())
    started = time.process_time()
    asyncio.run(engine.plan(asked, 0))
    return time.process_time() - started


def test_the_text_numbers_workers_as_the_prompt_lists_them() -> None:
    asked = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters."
    for seed in range(5):
        reply = plan(asked, seed=seed)
        listed = [worker.worker_id for worker in listed_workers(WORKERS, None, seed)]
        numbers = reply.raw_text.splitlines()[1].removeprefix("model_id = [").removesuffix("]").split(", ")
        assert [listed[int(number)] for number in numbers] == [step.worker_id for step in reply.plan.steps]


def test_a_cap_on_calls_is_a_cap_on_steps() -> None:
    asked = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters."
    capped = replace(query(asked), caps=Caps(max_calls=2))
    assert len(asyncio.run(ENGINE.plan(capped, 0)).plan.steps) <= 2
