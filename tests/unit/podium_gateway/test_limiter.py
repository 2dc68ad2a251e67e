"""Limits at the edge: all or none, no call while a slice lasts, and nothing let in without audit."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from podium_audit.slices import Slices
from podium_core.config.tenants import CLIENT, Key, Principal, Tenant, Tenants
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.limits import Limits
from podium_core.domain.run import Caps, Message, Question, RunKind, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import RunEvent, RunFinished
from podium_core.orchestration.request import RunRequest
from podium_gateway.errors import error_headers
from podium_gateway.limiter import Claim, Limiter, Watch, duration_text
from tests.fakes.ids import FakeClock
from tests.fakes.limits import FakeLimits, slices_of


@dataclass
class _Edge:
    """Some gateways over one audit, for one tenant with the keys k1 and k2."""

    tenant_limits: Limits = field(default_factory=Limits)
    key_limits: Limits = field(default_factory=Limits)
    clock: FakeClock = field(default_factory=FakeClock)
    slices: Slices = field(init=False)
    limiters: list[Limiter] = field(default_factory=list)
    ports: list[FakeLimits] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slices = slices_of(lambda: Tenants((self.tenant,)), self.clock)
        self.add_gateway()

    @property
    def tenant(self) -> Tenant:
        keys = [Key(f"k{n}", "0" * 64, frozenset({CLIENT}), limits=self.key_limits) for n in (1, 2)]
        return Tenant("acme", keys=tuple(keys), limits=self.tenant_limits)

    def principal(self, key_id: str = "k1") -> Principal:
        return Principal(self.tenant, key_id, frozenset({CLIENT}), self.key_limits)

    def add_gateway(self) -> None:
        port = FakeLimits(self.slices, f"gateway_{len(self.ports)}")
        self.ports.append(port)
        self.limiters.append(Limiter(port, self.clock))

    async def claim(self, gateway: int = 0, key_id: str = "k1", text: str = "hi", output: int = 0) -> Claim:
        request = RunRequest(
            run_id="run_1",
            kind=RunKind.CHAT,
            tenant_id="acme",
            principal_id=key_id,
            requested_model="podium",
            tier="podium",
            question=Question((Message("user", text, {}),)),
            caps=Caps(),
            max_output_tokens=output or None,
        )
        return await self.limiters[gateway].claim(self.principal(key_id), request)

    async def refusal(self, gateway: int = 0, key_id: str = "k1", text: str = "hi") -> PodiumError:
        with pytest.raises(PodiumError) as caught:
            await self.claim(gateway, key_id, text)
        return caught.value


async def _granted(claims: Sequence[asyncio.Future[Claim]]) -> int:
    results = await asyncio.gather(*claims, return_exceptions=True)
    refused = [result for result in results if isinstance(result, BaseException)]
    for error in refused:
        assert isinstance(error, PodiumError)
        assert (error.code, error.reason) == (Code.RATE_LIMITED, "RATE_LIMIT_EXCEEDED")
    return len(results) - len(refused)


async def test_without_limits_audit_is_never_asked() -> None:
    edge = _Edge()
    (await edge.claim()).release()
    await edge.limiters[0].renew()
    assert edge.ports[0].calls == []
    assert edge.limiters[0].headers(edge.principal()) == {}


@pytest.mark.parametrize("limits", [Limits(requests_per_minute=10), Limits(concurrent_runs=10)])
@pytest.mark.parametrize("is_keys", [True, False])
async def test_two_gateways_let_exactly_ten_of_fifty_at_once_in(limits: Limits, *, is_keys: bool) -> None:
    """No. 38: two replicas, 50 concurrent calls, a limit of 10. The overshoot is none."""
    edge = _Edge(key_limits=limits) if is_keys else _Edge(tenant_limits=limits)
    edge.add_gateway()
    claims = [asyncio.ensure_future(edge.claim(n % 2)) for n in range(50)]
    assert await _granted(claims) == 10


async def test_while_a_slice_lasts_no_request_costs_a_call() -> None:
    edge = _Edge(key_limits=Limits(requests_per_minute=6_000, concurrent_runs=50))
    for _ in range(3):  # as a steady load does
        for claim in [await edge.claim() for _ in range(20)]:
            claim.release()
        await edge.limiters[0].renew()
    before = len(edge.ports[0].calls)
    for claim in [await edge.claim() for _ in range(20)]:
        claim.release()
    assert len(edge.ports[0].calls) == before


async def test_many_that_wait_at_once_are_asked_for_together() -> None:
    edge = _Edge(tenant_limits=Limits(requests_per_minute=10_000))
    await asyncio.gather(*(edge.claim() for _ in range(200)))
    assert len(edge.ports[0].calls) <= 2


async def test_what_one_limit_refuses_costs_the_other_nothing() -> None:
    """No. 37: rpm=2, parallel=1."""
    edge = _Edge(key_limits=Limits(requests_per_minute=2, concurrent_runs=1))
    first = await edge.claim()
    for _ in range(5):
        error = await edge.refusal()
        assert error.metadata == {"limit": "concurrent_runs", "scope": "key"}
        assert error.retry_after_s == 1.0
        edge.clock.advance(0.3)
    first.release()
    (await edge.claim()).release()
    error = await edge.refusal()
    assert error.metadata["limit"] == "requests_per_minute"


async def test_what_the_tenants_limit_refuses_costs_the_key_nothing() -> None:
    edge = _Edge(tenant_limits=Limits(concurrent_runs=1), key_limits=Limits(requests_per_minute=1))
    other = await edge.claim(key_id="k2")
    for _ in range(3):
        assert (await edge.refusal()).metadata == {"limit": "concurrent_runs", "scope": "tenant"}
        edge.clock.advance(0.3)
    other.release()
    await edge.claim()


async def test_a_refusal_names_the_limit_and_when_and_what_to_change() -> None:
    edge = _Edge(key_limits=Limits(requests_per_minute=1))
    await edge.claim()
    edge.clock.advance(20)
    await edge.limiters[0].renew()
    error = await edge.refusal()
    assert (error.code, error.reason) == (Code.RATE_LIMITED, "RATE_LIMIT_EXCEEDED")
    for word in ("key k1", "1 requests per minute", "try again in", "requests_per_minute raised"):
        assert word in error.message
    assert error.retry_after_s == pytest.approx(60, abs=0.5)
    headers = error_headers(error)
    assert headers["retry-after"] == "60"
    assert "x-should-retry" not in headers


async def test_a_refusal_is_repeated_without_asking_audit_each_time() -> None:
    edge = _Edge(key_limits=Limits(requests_per_minute=1))
    await edge.claim()
    await edge.refusal()
    calls = len(edge.ports[0].calls)
    for _ in range(20):
        await edge.refusal()
    assert len(edge.ports[0].calls) == calls


async def test_tokens_are_reckoned_first_and_counted_when_known() -> None:
    edge = _Edge(key_limits=Limits(tokens_per_minute=1_000))
    claim = await edge.claim(text="x" * 400, output=800)
    headers = edge.limiters[0].headers(edge.principal())
    assert headers["x-ratelimit-remaining-tokens"] == "99"
    with _told(claim) as watch:
        watch(_finished(Usage(100, 20), Usage(300, 30)))
    claim.release()
    headers = edge.limiters[0].headers(edge.principal())
    assert (headers["x-ratelimit-limit-tokens"], headers["x-ratelimit-remaining-tokens"]) == ("1000", "550")


async def test_tokens_beyond_what_was_reckoned_keep_the_next_ones_out() -> None:
    """The stated overshoot: what runs already let in use beyond what was reckoned for them."""
    edge = _Edge(key_limits=Limits(tokens_per_minute=1_000))
    claim = await edge.claim()
    edge.clock.advance(300)
    claim.used(2_500)
    claim.release()
    await edge.limiters[0].renew()
    error = await edge.refusal()
    assert error.metadata["limit"] == "tokens_per_minute"
    edge.clock.advance(61)
    await edge.claim()


async def test_a_question_longer_than_the_limit_is_told_so_and_not_to_retry() -> None:
    edge = _Edge(key_limits=Limits(tokens_per_minute=100))
    error = await edge.refusal(text="x" * 4_000)
    assert error.reason == "REQUEST_OVER_LIMIT"
    assert "counts 1001 tokens" in error.message
    assert error_headers(error)["x-should-retry"] == "false"


async def test_a_large_output_limit_alone_is_let_in() -> None:
    edge = _Edge(key_limits=Limits(tokens_per_minute=100))
    await edge.claim(output=100_000)


async def test_without_audit_nothing_more_is_let_in_and_runs_go_on() -> None:
    edge = _Edge(key_limits=Limits(concurrent_runs=5))
    claim = await edge.claim()
    edge.ports[0].error = PodiumError(Code.AUDIT_UNAVAILABLE, "away")
    edge.clock.advance(5)
    error = await edge.refusal()
    assert (error.code, error.reason) == (Code.AUDIT_UNAVAILABLE, "LIMITS_UNAVAILABLE")
    await edge.limiters[0].renew()
    edge.ports[0].error = None
    others = [await edge.claim() for _ in range(4)]
    assert (await edge.refusal()).metadata["limit"] == "concurrent_runs"
    for each in (claim, *others):
        each.release()


async def test_places_of_a_gateway_that_is_gone_come_back() -> None:
    edge = _Edge(tenant_limits=Limits(concurrent_runs=2))
    edge.add_gateway()
    await edge.claim(0)
    await edge.claim(0)
    assert (await edge.refusal(1)).metadata["limit"] == "concurrent_runs"
    edge.clock.advance(5)
    await edge.claim(1)


async def test_places_of_a_gateway_that_lives_stay_its_own() -> None:
    edge = _Edge(tenant_limits=Limits(concurrent_runs=1))
    edge.add_gateway()
    claim = await edge.claim(0)
    for _ in range(9):
        edge.clock.advance(2)
        await edge.limiters[0].renew()
    assert (await edge.refusal(1)).metadata["limit"] == "concurrent_runs"
    claim.release()
    claim.release()
    await edge.limiters[0].renew()
    await edge.limiters[0].renew()
    edge.clock.advance(0.3)
    await edge.claim(1)


async def test_a_gateway_that_ends_gives_everything_back() -> None:
    edge = _Edge(tenant_limits=Limits(requests_per_minute=8, concurrent_runs=4))
    edge.add_gateway()
    for claim in [await edge.claim(0) for _ in range(3)]:
        claim.release()
    await edge.limiters[0].give_all_back()
    claims = [asyncio.ensure_future(edge.claim(1)) for _ in range(4)]
    assert await _granted(claims) == 4
    assert edge.limiters[1].headers(edge.principal())["x-ratelimit-remaining-requests"] == "1"


async def test_a_waiter_that_is_cancelled_takes_nothing_and_disturbs_nobody() -> None:
    edge = _Edge(key_limits=Limits(requests_per_minute=2))
    waiting = [asyncio.ensure_future(edge.claim()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    assert await _granted(waiting[1:]) == 2


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0ms"), (17, "17ms"), (1_000, "1s"), (8_640, "8.64s"), (360_000, "6m0s")]
)
def test_durations_are_written_as_openai_does(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


@contextmanager
def _told(claim: Claim) -> Generator[Watch, None, None]:
    @contextmanager
    def nobody() -> Generator[Watch, None, None]:
        def watch(_: RunEvent) -> None:
            return None

        yield watch

    with claim.watching(nobody()) as watch:
        yield watch


def _finished(usage: Usage, other: Usage) -> RunFinished:
    return RunFinished("run_1", RunOutcome.ANSWERED, None, (), usage, other, 0, 0, None)
