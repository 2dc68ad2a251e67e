"""The eligible pool: what policy, capability, health and budget leave of all workers, rule by rule."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.plan import StaticPlan
from podium_core.domain.policy import CallerReach, Verdict, WorkerFilter, denying_rule, is_reach_rule
from podium_core.domain.pool import Health, Pool, Worker
from podium_core.domain.run import Question

# Parameters that only a worker with the named feature can honour.
_FEATURE_OF_PARAMETER = {
    "tools": "tools",
    "tool_choice": "tools",
    "parallel_tool_calls": "tools",
    "functions": "tools",
    "logprobs": "logprobs",
    "top_logprobs": "logprobs",
    "logit_bias": "logit_bias",
    "prediction": "prediction",
    "service_tier": "service_tier",
    "verbosity": "verbosity",
}

IMAGE_URLS = "image_urls"
"""The feature of a worker that takes images by address."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What one run asks of a worker.

    `may_share_images`: a plan may show the images to some of its workers and keep them from the others.
    """

    client_filter: WorkerFilter
    reach: CallerReach
    named_worker_id: str | None
    has_images: bool
    has_audio: bool
    features: frozenset[str]
    input_tokens_at_most: int
    max_cost_usd_micros: int | None
    has_money_cap: bool
    makes_embeddings: bool = False
    may_share_images: bool = False


def token_bound(question: Question) -> int:
    """Return an upper bound on the question's input tokens: bytes, since no tokenizer yields more."""
    return sum(len(m.text.encode(errors="replace")) + 16 for m in question.messages)


def demanded_features(parameters: Mapping[str, object]) -> frozenset[str]:
    """Return the worker features without which `parameters` could not be honoured."""
    features = {_FEATURE_OF_PARAMETER[name] for name in parameters if name in _FEATURE_OF_PARAMETER}
    response_format = parameters.get("response_format")
    if isinstance(response_format, Mapping) and response_format.get("type") != "text":
        features.add("json_schema")
    return frozenset(features)


def judge(pool: Pool, demands: Demands) -> tuple[Verdict, ...]:
    """Return one verdict per worker of the pool, in pool order.

    Where images may be shared out, a worker that sees none is left in as soon as another that sees is.
    Raises PodiumError (NOT_FOUND or INVALID_REQUEST) when the request names a worker that does not exist.
    """
    _require_known(pool, demands)
    verdicts = _verdicts(pool, demands)
    if demands.may_share_images and any(verdict.allowed for verdict in verdicts):
        blind = replace(demands, has_images=False, features=demands.features - {IMAGE_URLS})
        return _verdicts(pool, blind)
    return verdicts


def _verdicts(pool: Pool, demands: Demands) -> tuple[Verdict, ...]:
    verdicts = []
    for worker in pool.workers:
        rule_id = _denying_rule(worker, demands)
        verdicts.append(
            Verdict(worker.worker_id, allowed=True)
            if rule_id is None
            else Verdict(worker.worker_id, allowed=False, rule_id=rule_id)
        )
    return tuple(verdicts)


def eligible_workers(pool: Pool, verdicts: tuple[Verdict, ...]) -> tuple[Worker, ...]:
    """Return the allowed workers.

    Raises PodiumError that names every deciding rule: INVALID_REQUEST when the question is too long for all
    that are left, UNAVAILABLE when they are only down, else POLICY_DENIED. Workers that the lists of tenant
    or key keep out are counted by rule, not named.
    """
    allowed = tuple(pool.by_id[v.worker_id] for v in verdicts if v.allowed)
    if allowed:
        return allowed
    own = [v for v in verdicts if not is_reach_rule(v.rule_id)]
    told = ", ".join(_told(verdicts)) or "the pool has no workers"
    # What the caller ruled out does not count: the rest decides what kind of trouble it is.
    deciding = {v.rule_id for v in own if not v.rule_id.startswith("client.")}
    if deciding and deciding <= {"capability.context"}:
        raise PodiumError(
            Code.INVALID_REQUEST,
            f"the messages exceed the context length of every eligible worker ({told}); shorten them",
            reason="CONTEXT_LENGTH_EXCEEDED",
            param="messages",
        )
    if deciding and all(rule.startswith("capability.") for rule in deciding):
        raise PodiumError(
            Code.INVALID_REQUEST,
            f"no eligible worker can take this request ({told}); leave out what they lack",
            reason="NO_CAPABLE_WORKER",
        )
    if deciding and all(rule.startswith("health.") for rule in deciding):
        is_lasting = deciding == {f"health.{Health.UNCONFIGURED.value}"}
        advice = "give the router the keys that pool.yaml names" if is_lasting else "try again later"
        raise PodiumError(
            Code.UNAVAILABLE,
            f"no eligible worker can be called now ({told}); {advice}",
            reason="WORKERS_DOWN",
            retry_after_s=5.0,
        )
    raise PodiumError(
        Code.POLICY_DENIED,
        f"no worker may do this run ({told}); relax the request's limits or ask for another pool",
        reason="NO_ELIGIBLE_WORKER",
    )


def require_planned(static: StaticPlan, pool: Pool, verdicts: Sequence[Verdict], max_steps: int) -> None:
    """Refuse an operator's plan that cannot be performed as it is: its workers are never replaced.

    Raises PodiumError: UNAVAILABLE when its workers are only down, else POLICY_DENIED.
    """
    steps = static.plan.steps
    if len(steps) > max_steps:
        raise PodiumError(
            Code.POLICY_DENIED,
            f"plan/{static.name} has {len(steps)} steps, and {max_steps} are allowed; raise max_steps",
            reason="STATIC_PLAN_TOO_LONG",
        )
    needed = {step.worker_id for step in steps}
    denied = [v for v in verdicts if v.worker_id in needed and not v.allowed]
    missing = sorted(needed - pool.by_id.keys())
    rules = _told(denied) + [f"{worker_id}: not in the pool" for worker_id in missing]
    if rules:
        is_down = len(denied) == len(rules) and all(v.rule_id.startswith("health.") for v in denied)
        raise PodiumError(
            Code.UNAVAILABLE if is_down else Code.POLICY_DENIED,
            f"plan/{static.name} needs workers that may not do this run ({', '.join(rules)}); a static plan "
            "never changes its workers",
            reason="WORKERS_DOWN" if is_down else "STATIC_PLAN_BLOCKED",
            retry_after_s=5.0 if is_down else None,
        )


def _told(denied: Sequence[Verdict]) -> list[str]:
    """Return the rules with their workers; those out of the caller's reach are counted, not named."""
    others = Counter(v.rule_id for v in denied if is_reach_rule(v.rule_id))
    named = [f"{v.worker_id}: {v.rule_id}" for v in denied if not is_reach_rule(v.rule_id)]
    return named + [f"{count} out of reach: {rule_id}" for rule_id, count in sorted(others.items())]


def _require_known(pool: Pool, demands: Demands) -> None:
    named = demands.named_worker_id
    if named is not None and named not in pool.by_id:
        raise PodiumError(
            Code.NOT_FOUND,
            f"there is no worker {named!r}; GET /v1/models lists what there is",
            reason="MODEL_NOT_FOUND",
            param="model",
        )
    only = demands.client_filter.only or frozenset()
    unknown = sorted((only | demands.client_filter.excluded) - pool.by_id.keys())
    if unknown:
        raise invalid(
            f"podium.workers names {unknown[0]!r}, which is not in the pool; GET /v1/models lists what is",
            reason="UNKNOWN_WORKER",
            param="podium.workers",
        )


def _denying_rule(worker: Worker, demands: Demands) -> str | None:
    if (rule_id := denying_rule(demands.reach, worker)) is not None:
        return rule_id
    if (broken := demands.client_filter.broken_by(worker.worker_id)) is not None:
        return f"client.{broken}"
    if demands.named_worker_id not in (None, worker.worker_id):
        return "client.named"
    return _lacking_capability(worker, demands) or _poor_health(worker) or _unaffordable(worker, demands)


def _lacking_capability(worker: Worker, demands: Demands) -> str | None:
    card = worker.card
    if card.makes_embeddings != demands.makes_embeddings:
        return "capability.embeddings" if demands.makes_embeddings else "capability.chat"
    if demands.has_images and "image" not in card.modalities:
        return "capability.image"
    if demands.has_audio and "audio" not in card.modalities:
        return "capability.audio"
    missing = sorted(demands.features - card.features)
    if missing:
        return f"capability.{missing[0]}"
    # Bytes bound tokens from above about fourfold; a quarter can hardly be too many, and the provider
    # itself refuses what is.
    is_one_text = not demands.makes_embeddings  # the window of an embedding worker is for each of many
    if is_one_text and card.context_tokens and demands.input_tokens_at_most // 4 > card.context_tokens:
        return "capability.context"
    return None


def _poor_health(worker: Worker) -> str | None:
    return None if worker.health is Health.UP else f"health.{worker.health.value}"


def _unaffordable(worker: Worker, demands: Demands) -> str | None:
    if not demands.has_money_cap:
        return None
    if worker.price is None:
        return "price.unknown"
    cap = demands.max_cost_usd_micros
    least = worker.price.cost_usd_micros(demands.input_tokens_at_most, 1)
    return "budget.unaffordable" if cap is not None and least > cap else None
