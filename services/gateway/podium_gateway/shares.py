"""What this gateway has of one limit: a slice that it may use alone until it ends."""

from dataclasses import dataclass, field

from podium_core.domain.limits import WINDOW_S, LimitKind, LimitName
from podium_gateway.ports import Slice, SliceRequest

_NS_PER_MS = 1_000_000
_WINDOW_NS = WINDOW_S * 1_000 * _NS_PER_MS
_REFUSAL_NS = 250 * _NS_PER_MS
"""For so long a refusal is repeated without asking again."""


@dataclass(slots=True)
class Share:
    """The slice of one limit, what was used of it, and who waits for more. All times are monotonic ns.

    `free` may be taken until `until_ns`; below zero more was used than was granted. `claims` counts the
    requests under way that have taken from it, `taken` what they took since the last renewal.
    """

    name: LimitName
    limit: int | None = None
    free: int = 0
    until_ns: int = 0
    used_total: int = 0
    reported_total: int = 0
    in_use: int = 0
    claims: int = 0
    taken: int = 0
    taken_before: int = 0
    left: int = 0
    reset_at_ns: int = 0
    waiting: list[int] = field(default_factory=list)
    is_due: bool = False
    refused: int = 0
    refused_until_ns: int = 0
    retry_at_ns: int | None = None
    _asked: SliceRequest | None = None

    @property
    def is_rate(self) -> bool:
        """Whether it counts per minute, not at a time."""
        return self.name.kind is not LimitKind.RUNS

    def has(self, amount: int, now_ns: int) -> bool:
        """Whether so much can be taken now."""
        return self.free >= amount and now_ns < self.until_ns

    def is_refused(self, amount: int, now_ns: int) -> bool:
        """Whether so much was refused just now."""
        return bool(self.refused) and amount >= self.refused and now_ns < self.refused_until_ns

    def take(self, amount: int, now_ns: int) -> None:
        """Use so much of the slice."""
        self.free -= amount
        self.taken += amount
        self.claims += 1
        if self.is_rate:
            self.used_total += amount
            self.reset_at_ns = now_ns + _WINDOW_NS
        else:
            self.in_use += amount

    def correct(self, more: int) -> None:
        """Count more, or with a negative number less, than was taken at first."""
        self.free -= more
        self.used_total += more

    def release(self) -> None:
        """A request is over; where places are counted, its place is free again."""
        self.claims -= 1
        if not self.is_rate:
            self.in_use -= 1
            self.free += 1

    def remaining(self, now_ns: int) -> int:
        """What may still be asked for, as far as this gateway knows."""
        own = self.free if now_ns < self.until_ns else 0
        return max(0, self.left + own)

    def is_idle(self, now_ns: int) -> bool:
        """Whether nothing is held, used or waited for: audit need not hear of it."""
        is_held = self.free > 0 and now_ns < self.until_ns
        is_told = self.used_total == self.reported_total
        return not (self.in_use or self.waiting or is_held) and is_told

    def request(self) -> SliceRequest:
        """Give the slice up and ask for the next: what waits, and twice what was taken of late."""
        wanted = sum(self.waiting) + 2 * max(self.taken, self.taken_before)
        needed = min(self.waiting, default=0)
        if not self.is_rate:
            needed, wanted = self.in_use + needed, self.in_use + wanted
        self.free = min(self.free, 0)
        if self.is_due:
            self.is_due, self.taken_before, self.taken = False, self.taken, 0
        self._asked = SliceRequest(
            self.name, self.used_total, self.reported_total, self.in_use, needed, max(needed, wanted)
        )
        return self._asked

    def receive(self, slice_: Slice, sent_ns: int, now_ns: int) -> None:
        """Take the next slice in; its time counts from when it was asked for, so it ends here first."""
        asked = self._asked
        if asked is None:
            raise RuntimeError("a slice came that nobody asked for")
        self._asked = None
        self.limit, self.left = slice_.limit, slice_.left
        self.until_ns = sent_ns + slice_.valid_ms * _NS_PER_MS
        self.reset_at_ns = now_ns + slice_.reset_ms * _NS_PER_MS
        self.reported_total = asked.used_total
        used_since = self.used_total - asked.used_total if self.is_rate else self.in_use
        self.free = slice_.granted - used_since
        self.refused = 0
        if slice_.granted < asked.needed:
            self.refused = asked.needed - asked.in_use
            self.refused_until_ns = now_ns + _REFUSAL_NS
            retry_ns = slice_.retry_after_ms * _NS_PER_MS
            self.retry_at_ns = now_ns + retry_ns if retry_ns else None

    def lose(self) -> None:
        """No slice came: what was given up may be another's by now."""
        self._asked = None
        self.until_ns = 0
