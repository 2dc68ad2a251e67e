"""The model list in two dialects at once: OpenAI's `data` and the `models` catalogue that Codex reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from podium_core.domain.plan import MAX_STEPS, StaticPlan
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER
from podium_core.domain.policy import CallerReach, within_reach
from podium_core.domain.pool import EMBEDDINGS_FEATURE, Health, Pool, Worker
from podium_gateway.codecs.model_names import PIN_PREFIX, PLAN_PREFIX, WORKER_PREFIX, model_not_found

_OWNER = "podium"
_DEMO_OWNER = "podium-demo"
_SHARE_PERCENT = 95


@dataclass(frozen=True, slots=True)
class _Model:
    """One row before it is rendered."""

    id: str
    description: str
    context_tokens: int
    max_output_tokens: int
    modalities: frozenset[str]
    features: frozenset[str]
    is_demo: bool
    health: Health


@dataclass(frozen=True, slots=True)
class Offer:
    """What one caller may name: the workers within its reach, operators' plans and pinned days.

    `inner_step_output_tokens` is the room that a plan's window must leave for each step's output.
    """

    pool: Pool
    reach: CallerReach
    inner_step_output_tokens: int
    plans: Sequence[StaticPlan] = ()
    pinned_days: Sequence[str] = ()


def model_list(offer: Offer, *, created: int) -> dict[str, object]:
    """Return every model that this caller may name."""
    models = _models(offer)
    return {
        "object": "list",
        "data": [_openai(model, created) for model in models],
        "models": [
            _codex(model, rank)
            for rank, model in enumerate(models)
            if EMBEDDINGS_FEATURE not in model.features
        ],
    }


def one_model(offer: Offer, model_id: str, *, created: int) -> dict[str, object]:
    """Return one model; raise PodiumError (NOT_FOUND) when this caller may not name it."""
    for model in _models(offer):
        if model.id == model_id:
            return _openai(model, created)
    raise model_not_found(model_id)


def _models(offer: Offer) -> list[_Model]:
    workers, room = within_reach(offer.reach, offer.pool.workers), offer.inner_step_output_tokens
    answering = [worker for worker in workers if not worker.card.makes_embeddings]
    team = _tier(TIER, f"A team of up to {MAX_STEPS} workers, conducted", answering, room)
    tiers = [
        team,
        _tier(FAST_TIER, "One worker, chosen for the question", answering, 0),
        _tier(
            MAX_TIER,
            f"A team of up to {MAX_STEPS} workers, conducted in rounds that revise the answer",
            answering,
            room,
        ),
    ]
    pins = [
        replace(team, id=PIN_PREFIX + day, description=f"{team.description}, as of {day}")
        for day in offer.pinned_days
    ]
    plans = [_static(plan, offer.pool, room) for plan in offer.plans]
    return [*tiers, *pins, *plans, *(_named(worker) for worker in workers)]


def _static(static: StaticPlan, pool: Pool, room: int) -> _Model:
    workers = [pool.by_id[worker_id] for worker_id in sorted(static.worker_ids)]
    answering = pool.by_id[static.plan.steps[-1].worker_id]
    # Each worker gets the question and the outputs that it sees; the tightest one decides.
    windows = [
        pool.by_id[step.worker_id].card.context_tokens - len(step.access.steps) * room
        for step in static.plan.steps
        if pool.by_id[step.worker_id].card.context_tokens
    ]
    description = static.description or f"An operator's plan of {len(static.plan.steps)} steps"
    is_down = any(worker.health is not Health.UP for worker in workers)
    return _Model(
        PLAN_PREFIX + static.name,
        description + _demo_note(_all_demo(workers)),
        max(0, min(windows, default=0)),
        answering.card.max_output_tokens,
        frozenset.intersection(*(worker.card.modalities for worker in workers)),
        answering.card.features,
        _all_demo(workers),
        Health.DOWN if is_down else Health.UP,
    )


def _tier(name: str, description: str, workers: Sequence[Worker], inner_step_output_tokens: int) -> _Model:
    # What a legal plan can hold: the widest worker's window less the histories of all other steps.
    widest = max((w.card.context_tokens for w in workers), default=0)
    histories = (MAX_STEPS - 1) * inner_step_output_tokens
    return _Model(
        name,
        description + _demo_note(_all_demo(workers)),
        max(widest - histories, widest // 2),
        max((w.card.max_output_tokens for w in workers), default=0),
        _union(workers, lambda w: w.card.modalities),
        _union(workers, lambda w: w.card.features),
        _all_demo(workers),
        Health.UP if any(w.health is Health.UP for w in workers) else Health.DOWN,
    )


def _named(worker: Worker) -> _Model:
    return _Model(
        WORKER_PREFIX + worker.worker_id,
        f"The worker {worker.worker_id} alone" + _demo_note(worker.is_demo),
        worker.card.context_tokens,
        worker.card.max_output_tokens,
        worker.card.modalities,
        worker.card.features,
        worker.is_demo,
        worker.health,
    )


def _all_demo(workers: Sequence[Worker]) -> bool:
    return bool(workers) and all(w.is_demo for w in workers)


def _union(workers: Sequence[Worker], part: Callable[[Worker], frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(part(worker) for worker in workers))


def _demo_note(is_demo: bool) -> str:  # noqa: FBT001 - reads well where it is used
    return " (demo: a small rule-based specialist, not a language model)" if is_demo else ""


def _openai(model: _Model, created: int) -> dict[str, object]:
    window = model.context_tokens or None
    return {
        "id": model.id,
        "object": "model",
        "created": created,
        "owned_by": _DEMO_OWNER if model.is_demo else _OWNER,
        "description": model.description,
        # Clients read the window under different names and guess where they find none.
        "context_length": window,
        "context_window": window,
        "max_model_len": window,
        "max_output_tokens": model.max_output_tokens or None,
        "input_modalities": sorted(model.modalities),
        "features": sorted(model.features),
        "demo": model.is_demo,
        "health": model.health.value,
    }


def _codex(model: _Model, rank: int) -> dict[str, object]:
    window = model.context_tokens or None
    return {
        "slug": model.id,
        "display_name": model.id + (" (demo)" if model.is_demo else ""),
        "description": model.description,
        "supported_reasoning_levels": [],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": rank,
        "upgrade": None,
        "base_instructions": "",
        "supports_reasoning_summaries": True,
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": "freeform" if "tools" in model.features else None,
        "truncation_policy": {"mode": "bytes", "limit": 10_000},
        "supports_parallel_tool_calls": "tools" in model.features,
        "context_window": window,
        "effective_context_window_percent": _SHARE_PERCENT,
        "experimental_supported_tools": [],
        "input_modalities": sorted(model.modalities & {"text", "image"}),
    }
