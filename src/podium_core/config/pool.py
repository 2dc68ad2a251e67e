"""`pool.yaml`: the workers, where they are reached, what they cost and what is known of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from podium_core.config.provider import is_translated
from podium_core.config.worker_sections import PoolSection, WorkerSection
from podium_core.config.yaml_file import Document, M, Place, read_document
from podium_core.domain.pool import Card, Pool, Skill, Worker


@dataclass(frozen=True, slots=True)
class KeyReference:
    """Where a provider key is: in an environment variable, or in a file. Exactly one is set.

    A relative path in `pool.yaml` counts from the directory of that file.
    """

    env: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of one worker's calls beside its total time and its concurrency.

    Seconds: None leaves it to the router's settings. Per minute: None means not limited.
    """

    connect_timeout_s: float | None = None
    first_token_timeout_s: float | None = None
    idle_timeout_s: float | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """A worker together with how the router reaches it.

    `base_url` has no trailing slash. `keys` holds what the provider must be shown: `key`, or for AWS
    `aws_access_key_id`, `aws_secret_access_key` and perhaps `aws_session_token`. `timeout_s` bounds a whole
    call.
    """

    worker: Worker
    base_url: str
    keys: Mapping[str, KeyReference]
    timeout_s: float
    limits: CallLimits = CallLimits()
    api_version: str = ""

    @property
    def provider(self) -> str:
        """The kind of provider, such as `openai-compatible`."""
        return self.worker.provider

    @property
    def is_translated(self) -> bool:
        """Whether its provider speaks a protocol other than OpenAI's."""
        return is_translated(self.provider)


@dataclass(frozen=True, slots=True)
class PoolFile:
    """All workers of one version of the file, in its order."""

    entries: tuple[WorkerEntry, ...]
    pool: Pool


def load_pool(path: Path) -> PoolFile:
    """Return what `pool.yaml` says; raise PodiumError (INVALID_REQUEST) naming line and mistake."""
    document = read_document(path, PoolSection)
    _refuse_duplicates(document)
    return pool_of(document.content.workers, path.parent)


def pool_of(sections: Sequence[WorkerSection], directory: Path) -> PoolFile:
    """Return the pool of these workers, whose ids differ; key files count from `directory`."""
    entries = tuple(_entry(section, directory) for section in sections)
    pool = Pool(
        tuple(entry.worker for entry in entries),
        pool_digest=_pool_digest(sections),
        price_digest=_price_digest(sections),
    )
    return PoolFile(entries, pool)


def _entry(section: WorkerSection, directory: Path) -> WorkerEntry:
    price = section.price
    worker = Worker(
        worker_id=section.id,
        provider=section.provider,
        provider_model=section.model,
        card=_card(section),
        price=None if price is None else price.price,
        region=section.region,
        is_demo=section.demo,
        max_concurrency=section.limits.max_concurrency,
        hedge_after_s=section.limits.hedge_after_s,
        hedge_is_learned=section.limits.hedge_learned,
    )
    limits = section.limits
    return WorkerEntry(
        worker,
        section.provider_fields.resolved_url,
        _keys(section, directory),
        limits.timeout_s,
        CallLimits(
            connect_timeout_s=limits.connect_timeout_s,
            first_token_timeout_s=limits.first_token_timeout_s,
            idle_timeout_s=limits.idle_timeout_s,
            requests_per_minute=limits.requests_per_minute,
            tokens_per_minute=limits.tokens_per_minute,
        ),
        section.api_version or "",
    )


def _card(section: WorkerSection) -> Card:
    return Card(
        skills=tuple(
            Skill(skill.name, skill.accuracy, skill.n, skill.measured_on.isoformat())
            for skill in section.card.skills
        ),
        context_tokens=section.limits.context_tokens,
        max_output_tokens=section.limits.max_output_tokens,
        output_tokens_per_second=section.card.output_tokens_per_second,
        modalities=frozenset(section.modalities),
        features=frozenset(section.features),
        reasoning_efforts=section.reasoning_efforts,
    )


def _keys(section: WorkerSection, directory: Path) -> dict[str, KeyReference]:
    named = {"key": section.key}
    if section.aws is not None:
        named["aws_access_key_id"] = section.aws.access_key_id
        named["aws_secret_access_key"] = section.aws.secret_access_key
        named["aws_session_token"] = section.aws.session_token
    return {
        name: KeyReference(key.env, None if key.file is None else directory / key.file)
        for name, key in named.items()
        if key is not None
    }


def _pool_digest(sections: Sequence[WorkerSection]) -> str:
    """Everything that a plan or a dispatch depends on. Keys rotate and prices change without a new plan."""
    return _digest([section.model_dump(mode="json", exclude={"key", "aws", "price"}) for section in sections])


def _price_digest(sections: Sequence[WorkerSection]) -> str:
    return _digest([section.model_dump(mode="json", include={"id", "price"}) for section in sections])


def _digest(workers: list[dict[str, object]]) -> str:
    ordered = sorted(workers, key=lambda worker: str(worker["id"]))
    return sha256(json.dumps(ordered, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _refuse_duplicates(document: Document[PoolSection]) -> None:
    worker_ids: set[str] = set()
    for index, worker in enumerate(document.content.workers):
        place = ("workers", index)
        if worker.id in worker_ids:
            raise document.error((*place, "id"), f"there are two workers {worker.id!r}")
        worker_ids.add(worker.id)
        refuse_duplicate_skills(document, worker, place)


def refuse_duplicate_skills(document: Document[M], worker: WorkerSection, place: Place) -> None:
    """Raise PodiumError that blames the second of two skills with one name; `place` is the worker's."""
    names: set[str] = set()
    for number, skill in enumerate(worker.card.skills):
        if skill.name in names:
            raise document.error(
                (*place, "card", "skills", number, "name"), f"there are two skills {skill.name!r}"
            )
        names.add(skill.name)
