"""The embedded engine: from a weights folder to a plan, round after round."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from podium_conductor.engines.embedded.engine import EmbeddedEngine, load_engine
from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import PlanSource
from podium_core.domain.run import Caps
from podium_core.orchestration.ports import PlanQuery
from podium_core.plan_model.weights import packed
from tests.fakes.plan_models import random_model
from tests.fakes.pools import question, worker

POOL = tuple(worker(f"w{n}", skills={"arithmetic": 900_000 - 100_000 * n}) for n in range(3))


def query(text: str = "What is 6 times 7?", **more: object) -> PlanQuery:
    fields: dict[str, object] = {"tier": "podium", "seed": 7, "timeout_s": 60.0, **more}
    return PlanQuery("run_1", question(text), POOL, Caps(), **fields)  # type: ignore[arg-type]


def folder_of(parent: Path, files: dict[str, bytes]) -> Path:
    listed = {name: sha256(data).hexdigest() for name, data in files.items()}
    manifest = json.dumps({"format": "podium-embedded/1", "files": listed}).encode()
    folder = parent / sha256(manifest).hexdigest()
    folder.mkdir()
    (folder / "manifest.json").write_bytes(manifest)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


async def test_a_weights_folder_plans_under_its_own_digest(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, packed(random_model()))
    engine = load_engine(folder)
    reply = await engine.plan(query(), 0)
    assert reply.model_digest == folder.name == engine.describe().model_digest
    assert reply.plan.source is PlanSource.EMBEDDED
    assert engine.describe().has_probabilities


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PodiumError) as refused:
        load_engine(folder_of(tmp_path, {"weights.bin": b"abc"}))
    assert refused.value.reason == "EMBEDDED_WEIGHTS_CORRUPT"


async def test_a_later_round_accepts_an_answer_and_replaces_a_missing_one() -> None:
    engine = EmbeddedEngine(random_model(), "e" * 64)
    before = (await engine.plan(query(), 0)).plan
    accepted = await engine.plan(query(round=1, previous_plan=before, previous_answer="42"), 0)
    assert accepted.plan.steps == ()
    again = await engine.plan(query(round=1, previous_plan=before, previous_answer=" "), 0)
    assert again.plan.steps
    assert before.steps[-1].worker_id not in {step.worker_id for step in again.plan.steps}


async def test_a_megabyte_of_question_takes_bounded_time() -> None:
    engine = EmbeddedEngine(random_model(), "e" * 64)
    reply = await engine.plan(query("word, and then " * 70_000), 0)
    assert len(reply.plan.steps) >= 1
