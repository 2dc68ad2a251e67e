"""The gateway's conversation port, held against the fake and against audit over gRPC, on both its stores."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.conversation import ItemKey, ItemKind, ItemRange
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.runtime.grpc_client import open_channel
from podium_gateway.adapters.conversations import AuditConversations
from podium_gateway.ports import ConversationPort
from tests.fakes.audit_service import running_audit
from tests.fakes.conversations import FakeConversations
from tests.fakes.tls import tls_of
from tests.fakes.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

KEY = ItemKey("acme", ItemKind.IDEMPOTENCY, "key_1")


@pytest.fixture(params=["fake", "audit", "audit on PostgreSQL"])
async def port(
    request: pytest.FixtureRequest, tmp_path: Path, tls_dir: Path
) -> AsyncIterator[ConversationPort]:
    if request.param == "fake":
        yield FakeConversations()
        return
    named: dict[str, Any] = {}
    if request.param != "audit":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        named = {"database_url": postgres.new_database(), "key_database_url": postgres.new_database()}
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        channel = open_channel(audit.address, "audit", tls_of(tls_dir, "gateway"))
        clock = SystemClock()
        yield AuditConversations(channel, clock, RandomIds(clock), wait_s=5)
        await channel.close()


async def test_what_is_put_is_got_until_it_is_deleted(port: ConversationPort) -> None:
    assert await port.get(KEY) is None
    version = await port.put(KEY, b"one", ttl_s=None, run_id="run_1")
    item = await port.get(KEY)
    assert item is not None
    assert (item.data, item.version, item.run_id, item.expires_at_ms) == (b"one", version, "run_1", 0)
    assert await port.delete(KEY)
    assert await port.get(KEY) is None
    assert not await port.delete(KEY)


async def test_another_tenant_finds_nothing(port: ConversationPort) -> None:
    await port.put(KEY, b"one", ttl_s=60)
    theirs = ItemKey("other", KEY.kind, KEY.item_id)
    assert await port.get(theirs) is None
    assert not await port.delete(theirs)
    assert (await port.join(theirs, b"two", ttl_s=60)).holder is None


async def test_the_first_to_join_is_what_all_others_get(port: ConversationPort) -> None:
    joined = await asyncio.gather(*(port.join(KEY, b"%d" % number, ttl_s=60) for number in range(8)))
    assert sum(each.holder is None for each in joined) == 1
    assert len({each.version for each in joined}) == 1
    assert len({each.holder.data for each in joined if each.holder is not None}) == 1


async def test_what_expires_is_gone_and_may_be_joined_anew(port: ConversationPort) -> None:
    await port.join(KEY, b"one", ttl_s=0.05)
    async with asyncio.timeout(PATIENCE_S):
        while await port.get(KEY) is not None:
            await asyncio.sleep(0.01)
    assert (await port.join(KEY, b"two", ttl_s=60)).holder is None


async def test_a_change_of_what_was_changed_meanwhile_is_refused(port: ConversationPort) -> None:
    old = await port.put(KEY, b"one", ttl_s=60)
    new = await port.put(KEY, b"two", ttl_s=60, if_version=old)
    for change in (
        port.put(KEY, b"three", ttl_s=60, if_version=old),
        port.delete(KEY, if_version=old),
    ):
        with pytest.raises(PodiumError) as caught:
            await change
        assert (caught.value.code, caught.value.reason) == (Code.CONFLICT, "ITEM_CHANGED")
    assert await port.delete(KEY, if_version=new)


async def test_items_are_listed_by_id_within_their_prefix(port: ConversationPort) -> None:
    kind = ItemKind.COMPLETION
    for name in ("a:3", "a:1", "a:2", "b:1", "a"):
        await port.put(ItemKey("acme", kind, name), name.encode(), ttl_s=60)
    await port.put(ItemKey("other", kind, "a:4"), b"theirs", ttl_s=60)
    await port.put(ItemKey("acme", ItemKind.RESPONSE, "a:5"), b"another kind", ttl_s=60)
    await port.put(ItemKey("acme", kind, "a:6"), b"short-lived", ttl_s=0.01)
    await asyncio.sleep(0.05)
    first = await port.page(ItemRange("acme", kind, "a:"), 2)
    assert ([(name, item.data) for name, item in first.items], first.has_more) == (
        [("a:1", b"a:1"), ("a:2", b"a:2")],
        True,
    )
    rest = await port.page(ItemRange("acme", kind, "a:", "a:2"), 2)
    assert ([name for name, _ in rest.items], rest.has_more) == (["a:3"], False)
    last = await port.page(ItemRange("acme", kind, "a:", is_descending=True), 2)
    assert ([name for name, _ in last.items], last.has_more) == (["a:3", "a:2"], True)
    first = await port.page(ItemRange("acme", kind, "a:", "a:2", is_descending=True), 2)
    assert ([name for name, _ in first.items], first.has_more) == (["a:1"], False)


async def test_a_page_holds_only_what_fits_a_message(port: ConversationPort) -> None:
    if isinstance(port, FakeConversations):
        pytest.skip("only a message has a size")
    for number in range(4):
        await port.put(ItemKey("acme", ItemKind.COMPLETION, f"a:{number}"), b"x" * 900_000, ttl_s=60)
    page = await port.page(ItemRange("acme", ItemKind.COMPLETION, "a:"), 100)
    assert (len(page.items), page.has_more) == (2, True)
