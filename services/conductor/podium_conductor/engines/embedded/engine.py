"""The embedded engine: a small trained model that decides a plan choice by choice, in some milliseconds."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from podium_conductor.engines.embedded.weights import read_weights
from podium_conductor.ports import EngineDescription
from podium_core.domain.plan import Plan, PlanSource
from podium_core.domain.plan_format import parse_plan, render_plan
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER, listed_workers, step_limit
from podium_core.domain.pool import Worker
from podium_core.orchestration.ports import PlanQuery, PlanReply, WorkerChance
from podium_core.plan_model.choices import likeliest
from podium_core.plan_model.deciding import Decided, Deciding, Seen
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.weights import ARRAYS_FILE, SKILLS_FILE, unpacked
from podium_core.plan_model.words import Floats
from podium_core.plan_model.writing import written

_PPM = 1_000_000
_TIERS = (TIER, FAST_TIER, MAX_TIER)
_ACCEPTS = "The answer stands."


class EmbeddedEngine:
    """Plans with a plan model. Deterministic: it takes the likeliest option of every choice.

    A later round accepts the answer there is; only where there is none does it plan again, without the worker
    that gave none when others are left.
    """

    def __init__(self, model: PlanModel, digest: str) -> None:
        self._model = model
        self._digest = digest

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:
        """Return the plan for `query`, with every worker's chance at each step."""
        del deadline_ns  # it asks nobody
        return await asyncio.to_thread(self._plan, query)

    def describe(self) -> EngineDescription:
        """Return the digest of the weights."""
        return EngineDescription(
            "embedded", PlanSource.EMBEDDED, self._digest, tiers=_TIERS, has_probabilities=True
        )

    async def close(self) -> None:
        """Nothing is held."""

    def _plan(self, query: PlanQuery) -> PlanReply:
        if query.round > 0 and query.previous_answer.strip():
            text = f"{_ACCEPTS}\n{render_plan([], [], [])}"
            return self._reply(query, text, [], ())
        listed = listed_workers(query.workers, query.previous_plan, query.seed)
        # Decided in an order that says nothing, written with the numbers that the prompt gives them.
        workers = sorted(_left(query, listed), key=lambda worker: worker.worker_id)
        seen = Seen(self._model, query.question.last.text, workers, step_limit(query.caps))
        decided = Deciding(seen, likeliest).decide()
        worker_ids = [worker.worker_id for worker in workers]
        chances = _chances(decided, worker_ids, [worker.worker_id for worker in query.workers])
        ordinals = [worker.worker_id for worker in listed]
        decided.rows = [ordinals.index(worker_ids[row]) for row in decided.rows]
        return self._reply(query, written(decided), ordinals, chances)

    def _reply(
        self,
        query: PlanQuery,
        text: str,
        worker_ids: Sequence[str],
        chances: tuple[tuple[WorkerChance, ...], ...],
    ) -> PlanReply:
        steps = parse_plan(text, worker_ids, max_steps=step_limit(query.caps), round_index=query.round)
        return PlanReply(
            plan=Plan(steps, PlanSource.EMBEDDED, query.round),
            raw_text=text,
            model_digest=self._digest,
            chances=chances,
            seed=query.seed,
        )


def load_engine(folder: Path) -> EmbeddedEngine:
    """Return the engine for a weights folder.

    Raises PodiumError INVALID_REQUEST: EMBEDDED_WEIGHTS_MISSING or EMBEDDED_WEIGHTS_CORRUPT.
    """
    weights = read_weights(folder)
    wanted = (ARRAYS_FILE, SKILLS_FILE)
    files = {name: (folder / name).read_bytes() for name in wanted if name in weights.files}
    return EmbeddedEngine(unpacked(files), weights.digest)


def _left(query: PlanQuery, workers: Sequence[Worker]) -> Sequence[Worker]:
    """Return the workers to choose from; in a later round without the one whose answer is missing."""
    last = (
        query.previous_plan.steps[-1].worker_id if query.previous_plan and query.previous_plan.steps else ""
    )
    others = [worker for worker in workers if worker.worker_id != last]
    return others if query.round > 0 and others else workers


def _chances(
    decided: Decided, worker_ids: Sequence[str], every_id: Sequence[str]
) -> tuple[tuple[WorkerChance, ...], ...]:
    """Return for each step the chance of every eligible worker; those that were not looked at have none."""

    def of_step(odds: Floats) -> tuple[WorkerChance, ...]:
        ppm = dict(zip(worker_ids, np.rint(odds.astype(np.float64) * _PPM).astype(int).tolist(), strict=True))
        return tuple(WorkerChance(name, ppm.get(name, 0), ppm.get(name, 0)) for name in every_id)

    return tuple(of_step(odds) for odds in decided.odds)
