"""Workers on the wire: whole, as the router lists them, and as the cards that the conductor is shown."""

from collections.abc import Iterable
from dataclasses import replace

from podium.conductor.v1 import conductor_service_pb2
from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2
from podium_core.domain.errors import invalid
from podium_core.domain.pool import Card, Health, LiveEstimate, Pool, Skill, Worker
from podium_core.domain.usage import Price
from podium_core.wire.enums import EnumTable

_MS_PER_S = 1_000

WORKER_HEALTH = EnumTable(Health, router_service_pb2.WorkerHealth, "WORKER_HEALTH")


def pool_to_proto(pool: Pool) -> router_service_pb2.ListWorkersResponse:
    """Return `pool` as the router's answer."""
    return router_service_pb2.ListWorkersResponse(
        workers=[worker_to_proto(worker) for worker in pool.workers],
        pool_digest=pool.pool_digest,
        price_digest=pool.price_digest,
    )


def pool_from_proto(message: router_service_pb2.ListWorkersResponse) -> Pool:
    """Return the pool in `message`; raise PodiumError (INVALID_REQUEST) when it is not well formed."""
    if not message.pool_digest or not message.price_digest:
        raise invalid("a pool needs its digests", param="pool_digest")
    workers = tuple(worker_from_proto(worker) for worker in message.workers)
    try:
        return Pool(workers, message.pool_digest, message.price_digest)
    except ValueError as error:  # the domain's own words
        raise invalid(f"pool: {error}", param="workers") from None


def worker_to_proto(worker: Worker) -> router_service_pb2.Worker:
    """Return `worker` as a message."""
    card, price = worker.card, worker.price
    return router_service_pb2.Worker(
        worker_id=worker.worker_id,
        provider_model=worker.provider_model,
        provider=worker.provider,
        region=worker.region,
        is_demo=worker.is_demo,
        health=WORKER_HEALTH.to_proto(worker.health),
        has_price=price is not None,
        input_usd_micros_per_mtok=price.input_usd_micros_per_mtok if price else 0,
        output_usd_micros_per_mtok=price.output_usd_micros_per_mtok if price else 0,
        cached_input_usd_micros_per_mtok=price.cached_input_usd_micros_per_mtok if price else None,
        cache_write_input_usd_micros_per_mtok=price.cache_write_input_usd_micros_per_mtok if price else None,
        context_tokens=card.context_tokens,
        max_output_tokens=card.max_output_tokens,
        modalities=sorted(card.modalities),
        features=sorted(card.features),
        reasoning_efforts=card.reasoning_efforts,
        skills=_skills_to_proto(card.skills),
        output_tokens_per_second=card.output_tokens_per_second,
        max_concurrency=worker.max_concurrency,
        live=None if worker.live is None else _live_to_proto(worker.live),
        hedge_after_ms=0 if worker.hedge_after_s is None else max(1, round(worker.hedge_after_s * _MS_PER_S)),
        hedge_is_learned=worker.hedge_is_learned,
    )


def worker_from_proto(message: router_service_pb2.Worker) -> Worker:
    """Return the worker in `message`; raise PodiumError (INVALID_REQUEST) without id or known health."""
    if not message.worker_id:
        raise invalid("every worker needs an id", param="worker_id")
    return Worker(
        worker_id=message.worker_id,
        provider=message.provider,
        provider_model=message.provider_model,
        card=replace(
            _card(message, frozenset(message.features)), reasoning_efforts=tuple(message.reasoning_efforts)
        ),
        price=_price(message) if message.has_price else None,
        region=message.region,
        health=WORKER_HEALTH.from_proto(message.health),
        is_demo=message.is_demo,
        max_concurrency=message.max_concurrency,
        live=_live_from_proto(message.live) if message.HasField("live") else None,
        hedge_after_s=message.hedge_after_ms / _MS_PER_S if message.hedge_after_ms else None,
        hedge_is_learned=message.hedge_is_learned,
    )


def card_to_proto(worker: Worker, *, with_names: bool = False) -> conductor_service_pb2.Card:
    """Return what the conductor is told of `worker`: no provider and model unless `with_names`, no region."""
    card, price = worker.card, worker.price
    return conductor_service_pb2.Card(
        worker_id=worker.worker_id,
        skills=_skills_to_proto(card.skills),
        input_usd_micros_per_mtok=price.input_usd_micros_per_mtok if price else 0,
        output_usd_micros_per_mtok=price.output_usd_micros_per_mtok if price else 0,
        context_tokens=card.context_tokens,
        output_tokens_per_second=card.output_tokens_per_second,
        modalities=sorted(card.modalities),
        is_demo=worker.is_demo,
        provider=worker.provider if with_names else "",
        provider_model=worker.provider_model if with_names else "",
        max_output_tokens=card.max_output_tokens,
        has_price=price is not None,
    )


def card_from_proto(message: conductor_service_pb2.Card) -> Worker:
    """Return a worker that knows only its card; raise PodiumError (INVALID_REQUEST) without an id.

    A price of zero counts only when the card says that it is known.
    """
    if not message.worker_id:
        raise invalid("every card needs a worker's id", param="cards")
    price = Price(message.input_usd_micros_per_mtok, message.output_usd_micros_per_mtok)
    return Worker(
        worker_id=message.worker_id,
        provider=message.provider,
        provider_model=message.provider_model,
        card=_card(message, frozenset()),
        price=price if message.has_price or price != Price(0, 0) else None,
        is_demo=message.is_demo,
    )


def _price(message: router_service_pb2.Worker) -> Price:
    has_cached_rate = message.HasField("cached_input_usd_micros_per_mtok")
    has_write_rate = message.HasField("cache_write_input_usd_micros_per_mtok")
    return Price(
        message.input_usd_micros_per_mtok,
        message.output_usd_micros_per_mtok,
        message.cached_input_usd_micros_per_mtok if has_cached_rate else None,
        message.cache_write_input_usd_micros_per_mtok if has_write_rate else None,
    )


def _live_to_proto(live: LiveEstimate) -> router_service_pb2.LiveEstimate:
    return router_service_pb2.LiveEstimate(
        answer_count=live.answer_count,
        output_tokens_per_second=live.output_tokens_per_second,
        output_tokens_per_answer=live.output_tokens_per_answer,
        answer_p95_ms=live.answer_p95_ms,
        first_output_p95_ms=live.first_output_p95_ms,
    )


def _live_from_proto(message: router_service_pb2.LiveEstimate) -> LiveEstimate:
    return LiveEstimate(
        message.answer_count,
        message.output_tokens_per_second,
        message.output_tokens_per_answer,
        message.answer_p95_ms,
        message.first_output_p95_ms,
    )


def _skills_to_proto(skills: Iterable[Skill]) -> list[plan_pb2.Skill]:
    return [
        plan_pb2.Skill(
            name=skill.name,
            accuracy_ppm=skill.accuracy_ppm,
            sample_count=skill.sample_count,
            measured_on=skill.measured_on,
        )
        for skill in skills
    ]


def _card(message: router_service_pb2.Worker | conductor_service_pb2.Card, features: frozenset[str]) -> Card:
    return Card(
        skills=_skills_from_proto(message.skills),
        context_tokens=message.context_tokens,
        max_output_tokens=message.max_output_tokens,
        output_tokens_per_second=message.output_tokens_per_second,
        modalities=frozenset(message.modalities),
        features=features,
    )


def _skills_from_proto(messages: Iterable[plan_pb2.Skill]) -> tuple[Skill, ...]:
    return tuple(
        Skill(skill.name, skill.accuracy_ppm, skill.sample_count, skill.measured_on) for skill in messages
    )
