"""Allow and deny lists: each refusal has the id of the one rule that made it."""

from dataclasses import replace

import pytest

from podium_core.domain.policy import Reach, WorkerFilter, denying_rule, policy_digest, within_reach
from tests.fakes.pools import worker

EU = replace(worker("eu-1"), region="eu", provider="anthropic")
US = replace(worker("us-1"), region="us", provider="openai-compatible")
NOWHERE = replace(worker("somewhere"), provider="bedrock")


def _only(*names: str) -> WorkerFilter:
    return WorkerFilter(frozenset(names))


def _except(*names: str) -> WorkerFilter:
    return WorkerFilter(excluded=frozenset(names))


@pytest.mark.parametrize(
    ("reach", "rules"),
    [
        (Reach("tenant"), [None, None, None]),
        (Reach("tenant", _only("us-1")), ["tenant.workers.only", None, "tenant.workers.only"]),
        (Reach("key", _except("us-1")), [None, "key.workers.except", None]),
        (Reach("key", providers=_only("bedrock")), ["key.providers.only", "key.providers.only", None]),
        (Reach("tenant", providers=_except("anthropic")), ["tenant.providers.except", None, None]),
        # A region that is not known is no allowed one, and cannot be a forbidden one.
        (Reach("tenant", regions=_only("eu")), [None, "tenant.regions.only", "tenant.regions.only"]),
        (Reach("key", regions=_except("eu")), ["key.regions.except", None, None]),
        (
            Reach("key", _except("eu-1"), regions=_only("us")),
            ["key.workers.except", None, "key.regions.only"],
        ),
    ],
)
def test_the_first_broken_list_names_itself(reach: Reach, rules: list[str | None]) -> None:
    assert [denying_rule((reach,), each) for each in (EU, US, NOWHERE)] == rules


def test_tenant_and_key_both_hold_and_the_tenant_is_named_first() -> None:
    reach = (Reach("tenant", regions=_only("eu", "us")), Reach("key", regions=_except("us")))
    assert [denying_rule(reach, each) for each in (EU, US, NOWHERE)] == [
        None,
        "key.regions.except",
        "tenant.regions.only",
    ]
    assert within_reach(reach, (EU, US, NOWHERE)) == [EU]


def test_the_digest_names_exactly_what_lists_hold() -> None:
    lists = Reach("tenant", _only("us-1", "eu-1"))
    assert policy_digest((lists,)) == policy_digest((Reach("tenant", _only("eu-1", "us-1")),))
    others = [(), (Reach("key", lists.workers),), (Reach("tenant", _except("us-1", "eu-1")),), (lists, lists)]
    assert len({policy_digest(reach) for reach in (*others, (lists,))}) == len(others) + 1
