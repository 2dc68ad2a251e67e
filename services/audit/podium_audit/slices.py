"""The arithmetic of limits that are handed out in slices: never too much, and everything comes back.

Times are nanoseconds of one monotonic clock. A holder is one gateway process.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from podium_core.domain.clock import Clock
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


Wish = tuple[LimitName, Wanted]
Lease = tuple[int | None, Granted]
"""The limit (None: not limited), and the slice of it."""


class Meters(Protocol):
    """Hands out slices, from this process's memory or from what all replicas share."""

    @property
    def valid_ns(self) -> int:
        """How long a slice lasts."""
        ...

    async def lease(self, holder_id: str, wishes: Sequence[Wish]) -> list[Lease]:
        """Book what the holder used and return its new slices, in the order of the wishes.

        Raises PodiumError (AUDIT_UNAVAILABLE) when the meters cannot be read or written now.
        """
        ...


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

    @classmethod
    def of(cls, state: dict[str, Any], shift_ns: int = 0) -> Self:
        """Return the meter that `state` told of, its times moved by `shift_ns`."""
        meter = cls()
        for holder_id, total, seen_ns, amount, until_ns in state["holders"]:
            meter._holders[holder_id] = _Holder(total, seen_ns + shift_ns, amount, until_ns + shift_ns)
        grain = 0
        for step, amount in state["spent"]:
            grain += step
            meter._spent.append((grain * _GRAIN_NS + shift_ns, amount))
            meter._spent_total += amount
        return meter

    def state(self) -> dict[str, Any]:
        """Return what `of` makes the same meter from, as JSON can hold it; uses take a few bytes each."""
        holders = [
            [holder_id, holder.reported_total, holder.seen_ns, holder.slice, holder.counts_until_ns]
            for holder_id, holder in self._holders.items()
        ]
        spent, before = [], 0
        for until_ns, amount in self._spent:
            grain = -(-until_ns // _GRAIN_NS)
            spent.append([grain - before, amount])
            before = grain
        return {"holders": holders, "spent": spent}

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

    @classmethod
    def of(cls, state: dict[str, Any], shift_ns: int = 0) -> Self:
        """Return the meter that `state` told of, its times moved by `shift_ns`."""
        meter = cls()
        for holder_id, places, until_ns in state["holders"]:
            meter._places[holder_id] = places, until_ns + shift_ns
        return meter

    def state(self) -> dict[str, Any]:
        """Return what `of` makes the same meter from, as JSON can hold it."""
        return {"holders": [[holder_id, *place] for holder_id, place in self._places.items()]}

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


Meter = RateMeter | PlaceMeter


def meter_class(name: LimitName) -> type[RateMeter] | type[PlaceMeter]:
    """Return the kind of meter that keeps a limit."""
    return PlaceMeter if name.kind is LimitKind.RUNS else RateMeter


class Slices:
    """The meters of all limits in memory. `limit_of` is asked each time, so a changed file counts at once."""

    def __init__(self, limit_of: Callable[[LimitName], int | None], clock: Clock, *, valid_ns: int) -> None:
        self._limit_of = limit_of
        self._clock = clock
        self._valid_ns = valid_ns
        self._meters: dict[LimitName, Meter] = {}

    @property
    def valid_ns(self) -> int:
        """How long a slice lasts."""
        return self._valid_ns

    async def lease(self, holder_id: str, wishes: Sequence[Wish]) -> list[Lease]:
        """Return the slices. Waits for nothing, so a call is one step of the event loop."""
        now_ns = self._clock.monotonic_ns()
        return [self._lease(name, holder_id, wanted, now_ns) for name, wanted in wishes]

    def _lease(self, name: LimitName, holder_id: str, wanted: Wanted, now_ns: int) -> Lease:
        limit = self._limit_of(name)
        if limit is None:
            self._meters.pop(name, None)
            return unlimited(wanted)
        meter = self._meters.setdefault(name, meter_class(name)())
        return limit, meter.lease(holder_id, wanted, limit, now_ns, self._valid_ns)


def unlimited(wanted: Wanted) -> Lease:
    """Return what is granted of what is not limited: all that is wanted."""
    return None, Granted(wanted.wanted, wanted.wanted)


def _share(needed: int, wanted: int, left: int) -> int:
    """Return how much of `left` one holder gets: what it needs, and at most half unless it needs more.

    So what is left shrinks geometrically, and little of it lies idle with one holder while another is
    refused.
    """
    if left < needed or left < 1 or wanted < 1:
        return 0
    return max(needed, min(wanted, left // 2))
