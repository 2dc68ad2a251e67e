"""The arithmetic of limits that are handed out in slices: never too much, and everything comes back.

Times are nanoseconds of one monotonic clock. A holder is one gateway process.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from podium_core.domain.limits import WINDOW_S, LimitKind, LimitName

_NS_PER_S = 1_000_000_000
WINDOW_NS = WINDOW_S * _NS_PER_S
_KNOWN_NS = 10 * WINDOW_NS
_GRAIN_NS = _NS_PER_S // 4
"""Uses of the same quarter of a second are kept as one, until its end."""
_RETRY_PLACE_NS = _NS_PER_S


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a holder reports and asks for; the fields are those of `SliceRequest`."""

    used_total: int = 0
    reported_total: int = 0
    in_use: int = 0
    needed: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class Granted:
    """What it gets. `retry_after_ns`: until what was needed can be granted; None when it never can."""

    granted: int
    left: int
    reset_ns: int = 0
    retry_after_ns: int | None = 0


@dataclass(slots=True)
class _Holder:
    """What one holder has reported, and its slice, which counts in full until it says what it used of it."""

    reported_total: int
    seen_ns: int
    slice: int = 0
    counts_until_ns: int = 0


class RateMeter:
    """One limit per 60 seconds.

    A use counts for a window after it was reported, an unreported slice for a window after its end: so in
    any window, whenever holders use their slices, no more is used than the limit. More is used only where a
    holder reports more than its slice had (tokens are known afterwards): that keeps later slices away.
    """

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}
        self._spent: deque[tuple[int, int]] = deque()
        self._spent_total = 0

    def lease(self, holder_id: str, wanted: Wanted, limit: int, now_ns: int, valid_ns: int) -> Granted:
        """Book what the holder used, take its slice back and give it a new one."""
        self._forget(now_ns)
        holder = self._holders.setdefault(holder_id, _Holder(wanted.reported_total, now_ns))
        self._book(wanted.used_total - holder.reported_total, now_ns + WINDOW_NS)
        holder.reported_total, holder.seen_ns, holder.slice = wanted.used_total, now_ns, 0
        left = limit - self._counted
        granted = _share(wanted.needed, wanted.wanted, left)
        if granted:
            holder.slice, holder.counts_until_ns = granted, now_ns + valid_ns + WINDOW_NS
        retry_ns = 0 if granted or not wanted.needed else self._retry_after_ns(wanted.needed, limit, now_ns)
        reset_ns = max((until_ns for until_ns, _ in self._ends()), default=now_ns) - now_ns
        return Granted(granted, max(0, left - granted), reset_ns, retry_ns)

    @property
    def _counted(self) -> int:
        return self._spent_total + sum(holder.slice for holder in self._holders.values())

    def _ends(self) -> Iterator[tuple[int, int]]:
        """When what counts ends to count, and how much that is."""
        yield from self._spent
        for holder in self._holders.values():
            if holder.slice:
                yield holder.counts_until_ns, holder.slice

    def _book(self, amount: int, until_ns: int) -> None:
        if amount > 0:
            until_ns = -(-until_ns // _GRAIN_NS) * _GRAIN_NS
            same = self._spent.pop()[1] if self._spent and self._spent[-1][0] == until_ns else 0
            self._spent.append((until_ns, same + amount))
            self._spent_total += amount
        # Less than was thought: taken off the oldest, so that what is newer counts its whole window.
        while amount < 0 and self._spent:
            oldest_ns, oldest = self._spent.popleft()
            part = min(-amount, oldest)
            self._spent_total -= part
            amount += part
            if oldest > part:
                self._spent.appendleft((oldest_ns, oldest - part))

    def _forget(self, now_ns: int) -> None:
        while self._spent and self._spent[0][0] <= now_ns:
            self._spent_total -= self._spent.popleft()[1]
        for holder_id, holder in tuple(self._holders.items()):
            if holder.slice and holder.counts_until_ns <= now_ns:
                holder.slice = 0
            if not holder.slice and holder.seen_ns + _KNOWN_NS <= now_ns:
                del self._holders[holder_id]

    def _retry_after_ns(self, needed: int, limit: int, now_ns: int) -> int | None:
        left = limit - self._counted
        for until_ns, amount in sorted(self._ends()):
            left += amount
            if left >= needed:
                return until_ns - now_ns
        return None


class PlaceMeter:
    """One limit on runs at a time. A holder that is not heard of in time loses its places."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}

    def lease(self, holder_id: str, wanted: Wanted, limit: int, now_ns: int, valid_ns: int) -> Granted:
        """Set how many places the holder has; those in use stay its own whatever the limit has become."""
        self._forget(now_ns)
        self._places.pop(holder_id, None)
        left = limit - sum(places for places, _ in self._places.values())
        in_use = wanted.in_use
        granted = in_use + _share(wanted.needed - in_use, wanted.wanted - in_use, left - in_use)
        if granted:
            self._places[holder_id] = granted, now_ns + valid_ns
        retry_ns = 0 if granted >= wanted.needed else _RETRY_PLACE_NS
        return Granted(granted, max(0, left - granted), 0, retry_ns)

    def _forget(self, now_ns: int) -> None:
        for holder_id, (_, until_ns) in tuple(self._places.items()):
            if until_ns <= now_ns:
                del self._places[holder_id]


class Slices:
    """The meters of all limits. `limit_of` is asked each time, so a changed file counts at once."""

    def __init__(self, limit_of: Callable[[LimitName], int | None], *, valid_ns: int) -> None:
        self._limit_of = limit_of
        self._valid_ns = valid_ns
        self._rates: dict[LimitName, RateMeter] = {}
        self._places: dict[LimitName, PlaceMeter] = {}

    @property
    def valid_ns(self) -> int:
        """How long a slice lasts."""
        return self._valid_ns

    def lease(
        self, name: LimitName, holder_id: str, wanted: Wanted, now_ns: int
    ) -> tuple[int | None, Granted]:
        """Return the limit and the slice; what is not limited (None) is granted as wanted."""
        limit = self._limit_of(name)
        if limit is None:
            self._rates.pop(name, None)
            self._places.pop(name, None)
            return None, Granted(wanted.wanted, wanted.wanted)
        meter: RateMeter | PlaceMeter
        if name.kind is LimitKind.RUNS:
            meter = self._places.setdefault(name, PlaceMeter())
        else:
            meter = self._rates.setdefault(name, RateMeter())
        return limit, meter.lease(holder_id, wanted, limit, now_ns, self._valid_ns)


def _share(needed: int, wanted: int, left: int) -> int:
    """Return how much of `left` one holder gets: what it needs, and at most half unless it needs more.

    So what is left shrinks geometrically, and little of it lies idle with one holder while another is
    refused.
    """
    if left < needed or left < 1 or wanted < 1:
        return 0
    return max(needed, min(wanted, left // 2))
