"""The model list: both dialects, honest windows, demo workers labelled, tenants kept apart."""

from dataclasses import replace
from typing import Any

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.policy import CallerReach, Reach, WorkerFilter
from podium_gateway.codecs.openai_models import Offer, model_list, one_model
from tests.fakes.pools import pool, worker

DEMO = replace(worker("sums", context_tokens=8_192), is_demo=True)
WIDE = worker("wide", context_tokens=200_000, features=frozenset({"tools"}))
POOL = pool(DEMO, WIDE)
ALL: CallerReach = ()
TIERS = ["podium", "podium-fast", "podium-max"]


def _listed(reach: CallerReach = ALL) -> dict[str, Any]:
    return model_list(Offer(POOL, reach, 4_096), created=1)


def test_both_dialects_name_the_same_models_and_windows() -> None:
    listed = _listed()
    assert [m["id"] for m in listed["data"]] == [*TIERS, "worker/sums", "worker/wide"]
    assert [m["slug"] for m in listed["models"]] == [*TIERS, "worker/sums", "worker/wide"]
    assert [m["context_window"] for m in listed["data"]] == [m["context_window"] for m in listed["models"]]


def test_the_tiers_window_leaves_room_for_histories() -> None:
    windows = [m["context_window"] for m in _listed()["data"][:3]]
    assert windows == [200_000 - 4 * 4_096, 200_000, 200_000 - 4 * 4_096]


def test_the_catalogue_offers_freeform_patches_only_where_tools_can_be_called() -> None:
    patches = {m["slug"]: m["apply_patch_tool_type"] for m in _listed()["models"]}
    assert (patches["podium"], patches["worker/wide"], patches["worker/sums"]) == (
        "freeform",
        "freeform",
        None,
    )
    assert all(m["supports_reasoning_summaries"] for m in _listed()["models"])


def test_demo_workers_say_so() -> None:
    by_id = {m["id"]: m for m in _listed()["data"]}
    assert by_id["worker/sums"]["demo"]
    assert by_id["worker/sums"]["owned_by"] == "podium-demo"
    assert "demo" in by_id["worker/sums"]["description"]
    assert not by_id["worker/wide"]["demo"]
    assert not by_id["podium"]["demo"]


def test_a_tenant_sees_only_its_workers() -> None:
    listed = _listed((Reach("tenant", WorkerFilter(only=frozenset({"sums"}))),))
    assert [m["id"] for m in listed["data"]] == [*TIERS, "worker/sums"]
    assert listed["data"][0]["demo"]
    with pytest.raises(PodiumError) as caught:
        one_model(
            Offer(POOL, (Reach("key", WorkerFilter(excluded=frozenset({"wide"}))),), 1),
            "worker/wide",
            created=1,
        )
    assert caught.value.code is Code.NOT_FOUND


def test_one_model_is_its_row_of_the_list() -> None:
    assert one_model(Offer(POOL, ALL, 4_096), "worker/wide", created=1) == _listed()["data"][4]


def test_an_empty_pool_still_lists_the_tier() -> None:
    listed: dict[str, Any] = model_list(Offer(pool(), ALL, 1), created=1)
    assert listed["data"][0]["health"] == "down"
