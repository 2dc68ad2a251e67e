"""Shared streams move on, and are sent away, under load: nothing that was asked on them is lost or done twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.router.v1 import router_service_pb2 as pb
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.audit_stream import AuditStream
from podium_core.runtime.grpc_client import open_channel
from podium_gateway.adapters.router_stream import RouterStream
from tests.fakes.audit_service import open_request, running_audit, seal_request
from tests.fakes.router_rig import Rig, router_rig
from tests.fakes.tls import tls_of
from tests.fakes.upstream import Upstream, answer
from tests.fakes.waiting import PATIENCE_S, until

AGE_S = 0.03


async def often(do: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(AGE_S / 3)
        do()


async def test_audit_answers_all_that_is_asked_while_streams_move_and_are_sent_away(
    tmp_path: Path, tls_dir: Path
) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        stream = AuditStream(audit.channels["gateway"], age_s=lambda: AGE_S)

        async def runs(asker: int) -> list[int]:
            leaves = []
            for number in range(20):
                run_id = f"run_{asker}_{number}"
                opened = await stream.OpenRun(open_request(run_id), timeout=PATIENCE_S)
                sealed = await stream.Seal(seal_request(run_id), timeout=PATIENCE_S)
                leaves += [*opened.leaf_indices, *sealed.receipt.leaf_indices[-1:]]
            return leaves

        sending_away = asyncio.create_task(often(audit.audit.servicer.send_away))
        leaves = [leaf for found in await asyncio.gather(*map(runs, range(16))) for leaf in found]
        sending_away.cancel()
        await stream.close()
    assert len(leaves) == len(set(leaves)) == max(leaves) + 1, "each record once, and no other one"


@dataclass(frozen=True, slots=True)
class TwoRouters:
    """Two routers of one pool with one log, each with a key of its own, and a stream to whichever of them."""

    rigs: tuple[Rig, Rig]
    stream: RouterStream

    @property
    def upstream(self) -> Upstream:
        return self.rigs[0].upstream

    async def ask(self, **changes: Any) -> list[pb.CompleteResponse]:
        request = self.rigs[0].request(**changes)
        async with asyncio.timeout(PATIENCE_S):
            return [event async for event in self.stream.complete(request, PATIENCE_S, "")]

    @property
    def counts(self) -> list[int]:
        sent = Counter(request.headers["Authorization"] for request in self.upstream.requests)
        return [sent[f"Bearer {rig.key_path.read_text().strip()}"] for rig in self.rigs]


@asynccontextmanager
async def two_routers(tls_dir: Path, tmp_path: Path, age_s: float = AGE_S) -> AsyncIterator[TwoRouters]:
    async with AsyncExitStack() as stack:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        one = await stack.enter_async_context(router_rig(tls_dir, tmp_path / "one"))
        two = await stack.enter_async_context(
            router_rig(tls_dir, tmp_path / "two", audit_address=one.audit_address)
        )
        two.key_path.write_text("sk-of-the-other")
        two.pool_path.write_text(one.pool_path.read_text().replace(str(one.key_path), str(two.key_path)))
        two.pool.refresh()
        channel = open_channel(f"{one.address},{two.address}", "router", tls_of(tls_dir, "gateway"))
        await stack.enter_async_context(channel)
        stream = RouterStream(channel, age_s=lambda: age_s)
        stack.push_async_callback(stream.close)
        yield TwoRouters((one, two), stream)


async def test_attempts_go_round_the_routers_as_their_stream_moves(tls_dir: Path, tmp_path: Path) -> None:
    async with two_routers(tls_dir, tmp_path) as routers:
        # An answer takes longer than a stream is used.
        routers.upstream.default = answer(*["word "] * 10).but(gap_s=AGE_S / 5)
        answers = []
        async with asyncio.timeout(PATIENCE_S):
            while min(routers.counts) < 20:
                answers += await asyncio.gather(*(routers.ask(stream=True) for _ in range(8)))
    texts = {"".join(event.delta.text for event in events) for events in answers}
    assert texts == {"word " * 10}, "what was under way when the stream moved ends where it began"


async def test_what_comes_too_late_for_a_router_that_stops_is_asked_of_the_other(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with two_routers(tls_dir, tmp_path) as routers:
        routers.upstream.default = answer("here").but(delay_s=0.05)
        asking = [asyncio.create_task(routers.ask()) for _ in range(20)]
        await until(lambda: sum(routers.counts) == 20)
        routers.rigs[0].servicer.close()
        before = routers.counts
        asking += [asyncio.create_task(routers.ask()) for _ in range(40)]
        answers = await asyncio.gather(*asking)
        assert [events[-1].completed.message.text for events in answers] == ["here"] * 60
        assert routers.counts == [before[0], before[1] + 40]


async def test_an_attempt_that_no_router_takes_any_more_fails_in_the_end(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with two_routers(tls_dir, tmp_path) as routers:
        for rig in routers.rigs:
            rig.servicer.close()
        with pytest.raises(PodiumError) as caught:
            await routers.ask()
    assert (caught.value.code, caught.value.reason) == (Code.UNAVAILABLE, "ROUTER_STOPPING")
    assert routers.counts == [0, 0]
