"""Pools and questions for tests."""

from podium_core.domain.pool import Card, Health, Pool, Skill, Worker
from podium_core.domain.run import Message, Question
from podium_core.domain.usage import Price


def worker(
    worker_id: str,
    *,
    skills: dict[str, int] | None = None,
    price: Price | None = Price(1_000_000, 2_000_000),
    features: frozenset[str] = frozenset(),
    health: Health = Health.UP,
    max_output_tokens: int = 100,
    context_tokens: int = 0,
    modalities: frozenset[str] = frozenset({"text"}),
) -> Worker:
    """Return a worker with a small card; `skills` maps names to accuracies in millionths."""
    measured = tuple(Skill(name, ppm, 10, "2026-11-30") for name, ppm in (skills or {}).items())
    card = Card(measured, context_tokens, max_output_tokens, modalities=modalities, features=features)
    return Worker(worker_id, "fake", f"{worker_id}-model", card, price, health=health)


def pool(*workers: Worker) -> Pool:
    """Return a pool with made-up digests."""
    return Pool(workers, "pool-digest", "price-digest")


def question(text: str = "What is 6 times 7?", *earlier: tuple[str, str]) -> Question:
    """Return a question after earlier (role, text) messages."""
    said = [*earlier, ("user", text)]
    return Question(tuple(Message(role, words, {"role": role, "content": words}) for role, words in said))
