"""The engine itself: drafts a workflow, writes it as plan text, and serves what the parser reads from it."""

from hashlib import sha256
from importlib.resources import files
from random import Random

from podium_conductor.engines.rules.workflow import Draft, draft_steps
from podium_conductor.ports import EngineDescription
from podium_core.domain.plan import Access, Plan, PlanSource
from podium_core.domain.plan_format import parse_plan, render_plan
from podium_core.orchestration.ports import PlanQuery, PlanReply

_PACKAGE = "podium_conductor.engines.rules"


class RulesEngine:
    """Plans by rules. Deterministic: the same question, cards, caps and seed give the same text."""

    def __init__(self) -> None:
        self._digest = _source_digest()

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:  # noqa: ARG002 - asks nobody
        """Return the plan for `query`; a later round accepts the answer there is."""
        worker_ids = sorted(worker.worker_id for worker in query.workers)
        Random(query.seed).shuffle(worker_ids)  # noqa: S311 - reproducible, not secret
        drafts: list[Draft] = []
        if query.round == 0:
            drafts = draft_steps(query.question.last.text, query.workers, query.caps.max_steps)
        text = _written(drafts, worker_ids)
        steps = parse_plan(text, worker_ids, max_steps=query.caps.max_steps, round_index=query.round)
        return PlanReply(
            plan=Plan(steps, PlanSource.RULES, query.round),
            raw_text=text,
            model_digest=self._digest,
            seed=query.seed,
        )

    def describe(self) -> EngineDescription:
        """Return the digest of the rules."""
        return EngineDescription("rules", PlanSource.RULES, self._digest)

    async def close(self) -> None:
        """Nothing is held."""


def _written(drafts: list[Draft], worker_ids: list[str]) -> str:
    """Return the reasoning and the three lists."""
    lists = render_plan(
        [worker_ids.index(draft.worker_id) for draft in drafts],
        [draft.subtask for draft in drafts],
        [Access(draft.sees) for draft in drafts],
    )
    return f"{_reasoning(drafts)}\n{lists}"


def _reasoning(drafts: list[Draft]) -> str:
    if not drafts:
        return "By rules, not by a model: the answer stands."
    skills = ", ".join(draft.skill or "none on any card" for draft in drafts)
    return f"By rules, not by a model. Steps: {len(drafts)}. Skills they need: {skills}."


def _source_digest() -> str:
    """Return the digest over the names and bytes of this package's source files."""
    digest = sha256()
    for name in sorted(entry.name for entry in files(_PACKAGE).iterdir() if entry.name.endswith(".py")):
        data = (files(_PACKAGE) / name).read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
