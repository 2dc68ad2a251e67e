"""What a calibration would ask: which items of which workers, and the most each call can cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from podium_cli.calibrate.journal import CallKey, Journal
from podium_cli.failures import CliError
from podium_core.config.pool import WorkerEntry
from podium_core.domain.errors import PodiumError
from podium_core.domain.pool import Worker
from podium_core.grading.catalogue import MAX_ITEMS, SKILLS, items_of
from podium_core.grading.items import Item

_REQUEST_OVERHEAD_BYTES = 512
"""What surrounds the messages in the request body, the model's name apart."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One item asked of one worker."""

    worker: Worker
    item: Item
    timeout_s: float
    max_output_tokens: int

    @property
    def key(self) -> CallKey:
        """What the log knows the call by."""
        worker, item = self.worker, self.item
        return CallKey(
            worker.worker_id, worker.provider_model, item.item_id, item.digest, self.max_output_tokens
        )

    @property
    def max_cost_usd_micros(self) -> int:
        """The most the call can cost: a token is at least one byte. 0 for a worker without a price."""
        price = self.worker.price
        if price is None:
            return 0
        overhead = _REQUEST_OVERHEAD_BYTES + 6 * len(self.worker.provider_model)
        return price.most_usd_micros(len(self.item.messages) + overhead, self.max_output_tokens)


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command line asks for. Empty tuples mean all."""

    worker_ids: tuple[str, ...]
    skills: tuple[str, ...]
    count: int
    seed: int
    max_output_tokens: int


def calls_of(choice: Choice, entries: Sequence[WorkerEntry]) -> list[PlannedCall]:
    """Return every call, first items first, so that a start cut short has measured all skills alike.

    Raises CliError for unknown workers or skills.
    """
    if not 1 <= choice.count <= MAX_ITEMS:
        raise CliError(f"-n must be 1 to {MAX_ITEMS} items per skill")
    known = {entry.worker.worker_id: entry for entry in entries}
    unknown = [worker_id for worker_id in choice.worker_ids if worker_id not in known]
    if unknown:
        raise CliError(f"the pool has no worker {unknown[0]}", hint=f"it has {', '.join(known)}")
    try:
        items = {skill: items_of(skill, choice.count, choice.seed) for skill in choice.skills or SKILLS}
    except PodiumError as error:
        raise CliError(error.message) from None
    chosen = [known[worker_id] for worker_id in choice.worker_ids or known]
    return [
        _call(choice, entry, items[skill][index])
        for index in range(choice.count)
        for skill in items
        for entry in chosen
    ]


def left_of(calls: Sequence[PlannedCall], journal: Journal) -> list[PlannedCall]:
    """Return the calls that the log does not hold yet."""
    return [call for call in calls if call.key not in journal.ended and call.key not in journal.lost]


def _call(choice: Choice, entry: WorkerEntry, item: Item) -> PlannedCall:
    worker = entry.worker
    limit = worker.card.max_output_tokens or choice.max_output_tokens
    return PlannedCall(worker, item, entry.timeout_s, min(choice.max_output_tokens, limit))
