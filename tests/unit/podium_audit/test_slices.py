"""Limits in slices: never above the limit however holders use them, and everything comes back."""

import json
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_audit.slices import PlaceMeter, RateMeter, Slices, Wanted
from podium_core.domain.limits import LimitKind, LimitName
from tests.fakes.ids import FakeClock

S = 10**9
WINDOW = 60 * S
VALID = 5 * S


@dataclass
class _Gateway:
    """A holder that uses its slice at any moment of its life."""

    holder_id: str
    used_total: int = 0
    reported_total: int = 0
    slice: int = 0
    until_ns: int = 0
    uses: list[tuple[int, int]] = field(default_factory=list)

    def use(self, amount: int, now_ns: int) -> None:
        amount = min(amount, self.slice) if now_ns < self.until_ns else 0
        if amount > 0:
            self.slice -= amount
            self.used_total += amount
            self.uses.append((now_ns, amount))

    def lease(self, meter: RateMeter, wanted: int, limit: int, now_ns: int, *, is_lost: bool) -> None:
        asked = Wanted(self.used_total, self.reported_total, 0, min(1, wanted), wanted)
        answer = meter.lease(self.holder_id, asked, limit, now_ns, VALID)
        self.slice = 0
        if not is_lost:
            self.reported_total, self.slice, self.until_ns = self.used_total, answer.granted, now_ns + VALID


def _most_in_a_window(uses: list[tuple[int, int]]) -> int:
    return max(
        (sum(n for at, n in uses if start <= at < start + WINDOW) for start, _ in uses),
        default=0,
    )


@given(limit=st.integers(1, 40), seed=st.integers(0, 2**32), is_lossy=st.booleans())
def test_in_no_window_more_is_used_than_the_limit(limit: int, seed: int, *, is_lossy: bool) -> None:
    """Two gateways, any timing, answers lost on the way, one gateway gone for ever half way."""
    chance = random.Random(seed)
    meter, now_ns = RateMeter(), chance.randrange(10**12)
    gateways = [_Gateway("a"), _Gateway("b"), _Gateway("c")]
    for turn in range(150):
        now_ns += int(chance.expovariate(1.0) * chance.choice((S // 100, S, 20 * S)))
        gateway = chance.choice(gateways[: 2 if turn > 75 else 3])
        if chance.random() < 0.5:
            is_lost = is_lossy and chance.random() < 0.2
            gateway.lease(meter, chance.randint(0, 20), limit, now_ns, is_lost=is_lost)
        else:
            gateway.use(chance.randint(1, 10), now_ns)
    uses = sorted(use for gateway in gateways for use in gateway.uses)
    assert _most_in_a_window(uses) <= limit


@given(
    limit=st.integers(1, 1_000),
    leases=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 99)), max_size=20),
)
def test_everything_comes_back(limit: int, leases: list[tuple[int, int]]) -> None:
    """A window and a slice's life after the last word of anybody, the whole limit is there again."""
    meter = RateMeter()
    used = [0, 0, 0, 0]
    for at, (holder, wanted) in enumerate(leases):
        answer = meter.lease(
            str(holder), Wanted(used[holder], used[holder], 0, 1, wanted), limit, at * S, VALID
        )
        used[holder] += answer.granted
    later = len(leases) * S + VALID + WINDOW
    whole = meter.lease("new", Wanted(0, 0, 0, limit, limit), limit, later, VALID)
    assert (whole.granted, whole.left) == (limit, 0)


def test_an_unused_slice_is_anothers_at_once() -> None:
    meter = RateMeter()
    assert meter.lease("a", Wanted(needed=8, wanted=8), 10, 0, VALID).granted == 8
    assert meter.lease("b", Wanted(needed=8, wanted=8), 10, 0, VALID).granted == 0
    meter.lease("a", Wanted(used_total=2), 10, S, VALID)
    assert meter.lease("b", Wanted(needed=8, wanted=8), 10, S, VALID).granted == 8


def test_a_refusal_says_when_there_will_be_room() -> None:
    meter = RateMeter()
    meter.lease("a", Wanted(needed=3, wanted=3), 3, 0, VALID)
    meter.lease("a", Wanted(used_total=3), 3, S, VALID)
    refused = meter.lease("b", Wanted(needed=2, wanted=2), 3, 11 * S, VALID)
    assert (refused.granted, refused.left, refused.reset_ns) == (0, 0, 50 * S)
    assert refused.retry_after_ns == 50 * S
    assert meter.lease("b", Wanted(needed=4, wanted=4), 3, 11 * S, VALID).retry_after_ns is None
    assert meter.lease("b", Wanted(needed=2, wanted=2), 3, 61 * S, VALID).granted == 2


def test_what_is_used_beyond_a_slice_keeps_later_ones_away() -> None:
    meter = RateMeter()
    meter.lease("a", Wanted(needed=100, wanted=100), 1_000, 0, VALID)
    meter.lease("a", Wanted(used_total=5_000), 1_000, S, VALID)
    assert meter.lease("b", Wanted(needed=1, wanted=1), 1_000, 60 * S, VALID).granted == 0
    assert meter.lease("b", Wanted(needed=1, wanted=1), 1_000, 62 * S, VALID).granted == 1


def test_fewer_tokens_than_reckoned_are_given_back() -> None:
    meter = RateMeter()
    meter.lease("a", Wanted(needed=900, wanted=900), 1_000, 0, VALID)
    meter.lease("a", Wanted(used_total=900), 1_000, S, VALID)
    meter.lease("a", Wanted(used_total=50), 1_000, 2 * S, VALID)
    assert meter.lease("b", Wanted(needed=950, wanted=950), 1_000, 2 * S, VALID).granted == 950


def test_a_lost_answer_is_not_booked_twice_and_a_restart_books_what_is_new() -> None:
    meter = RateMeter()
    for _ in range(3):
        answer = meter.lease("a", Wanted(used_total=4, reported_total=0), 10, 0, VALID)
    assert answer.left == 6
    after_restart = RateMeter().lease("a", Wanted(used_total=9, reported_total=4), 10, 0, VALID)
    assert after_restart.left == 5


@given(limit=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_places_are_never_given_twice(limit: int, seed: int) -> None:
    chance = random.Random(seed)
    meter, now_ns = PlaceMeter(), 0
    held: dict[str, tuple[int, int, int]] = {}
    for _ in range(100):
        now_ns += int(chance.expovariate(1.0) * S)
        holder = chance.choice("abc")
        places, in_use, until_ns = held.get(holder, (0, 0, 0))
        if now_ns >= until_ns:
            places = in_use = 0  # its gateway is gone, and its runs with it
        in_use = chance.randint(0, places)
        needed = in_use + chance.randint(0, 1)
        asked = Wanted(in_use=in_use, needed=needed, wanted=needed + chance.randint(0, 5))
        answer = meter.lease(holder, asked, limit, now_ns, VALID)
        held[holder] = answer.granted, in_use, now_ns + VALID
        assert answer.granted >= in_use
        assert sum(n for n, _, until in held.values() if now_ns < until) <= limit


def test_places_of_a_holder_that_is_gone_come_back_after_its_slice() -> None:
    meter = PlaceMeter()
    assert meter.lease("a", Wanted(needed=3, wanted=3), 3, 0, VALID).granted == 3
    refused = meter.lease("b", Wanted(needed=1, wanted=1), 3, VALID - 1, VALID)
    assert (refused.granted, refused.retry_after_ns) == (0, S)
    assert meter.lease("b", Wanted(needed=1, wanted=1), 3, VALID, VALID).granted == 1


def test_runs_under_way_keep_their_places_when_the_limit_falls() -> None:
    meter = PlaceMeter()
    meter.lease("a", Wanted(needed=3, wanted=3), 3, 0, VALID)
    kept = meter.lease("a", Wanted(in_use=3, needed=3, wanted=3), 1, S, VALID)
    assert (kept.granted, kept.left) == (3, 0)
    assert meter.lease("b", Wanted(needed=1, wanted=1), 1, S, VALID).granted == 0


@pytest.mark.parametrize("kind", LimitKind)
async def test_what_is_not_limited_is_granted_whole(kind: LimitKind) -> None:
    limits: dict[LimitKind, int] = {kind: 1}
    slices = Slices(lambda name: limits.get(name.kind), FakeClock(), valid_ns=VALID)
    name = LimitName("acme", "", kind)

    async def lease(holder_id: str, amount: int, wanted: int) -> tuple[int | None, int]:
        ((limit, granted),) = await slices.lease(holder_id, [(name, Wanted(needed=amount, wanted=wanted))])
        return limit, granted.granted

    assert await lease("a", 1, 1) == (1, 1)
    assert await lease("b", 1, 1) == (1, 0)
    limits.clear()
    assert await lease("b", 7, 9) == (None, 9)


@given(limit=st.integers(1, 40), seed=st.integers(0, 2**32))
@pytest.mark.parametrize("kind", [RateMeter, PlaceMeter])
def test_a_meter_that_was_written_down_goes_on_as_if_it_had_not(
    kind: type[RateMeter] | type[PlaceMeter], limit: int, seed: int
) -> None:
    chance = random.Random(seed)
    kept, told = kind(), kind()
    now_ns = chance.randrange(10**18)
    used = {"a": 0, "b": 0}
    for _ in range(60):
        now_ns += int(chance.expovariate(1.0) * chance.choice((S // 100, S, 20 * S)))
        holder_id = chance.choice("ab")
        used[holder_id] += chance.randint(0, 5)
        wanted = Wanted(used[holder_id], used[holder_id], chance.randint(0, 2), 1, chance.randint(2, 20))
        told = kind.of(json.loads(json.dumps(told.state())))
        answers = [meter.lease(holder_id, wanted, limit, now_ns, VALID) for meter in (kept, told)]
        assert answers[0] == answers[1]


def test_a_full_window_of_steady_use_takes_little_room() -> None:
    meter, used = RateMeter(), 0
    for turn in range(600):
        used += 150
        meter.lease("gateway_1", Wanted(used, used - 150, 0, 150, 300), 10**6, turn * S // 4, VALID)
    assert len(json.dumps(meter.state(), separators=(",", ":"))) < 2_048
