"""The pool as Worker objects: the same as from the file, kept up with, and one bad object harms no other."""

import asyncio
import json
import random
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podium_core.config.pool import load_pool
from podium_core.domain.errors import Code, PodiumError
from podium_core.resources.api import KubernetesCluster, open_cluster
from podium_core.resources.follower import Follower
from podium_core.resources.objects import WORKER
from podium_core.resources.pool import ClusterPool
from tests.fakes.cluster_api import NAMESPACE, ClusterApi, cluster_api
from tests.fakes.tls import tls_of
from tests.fakes.waiting import until

SPEC: dict[str, Any] = {"provider": "openai-compatible", "model": "m", "base_url": "https://h.example/v1"}
FULL: dict[str, Any] = {
    "provider": "bedrock",
    "model": "big",
    "region": "eu-central-1",
    "aws": {"access_key_id": {"name": "aws-id"}, "secret_access_key": {"name": "aws-secret"}},
    "price": {"input_usd_per_mtok": "0.25", "output_usd_per_mtok": "2", "cached_input_usd_per_mtok": "0.03"},
    "limits": {"max_concurrency": 8, "timeout_s": 30.5, "hedge_learned": True, "tokens_per_minute": 1000},
    "modalities": ["text", "image"],
    "features": ["tools", "json_schema"],
    "reasoning_efforts": ["low", "high"],
    "card": {
        "output_tokens_per_second": 90,
        "skills": [{"name": "maths", "accuracy": "0.915", "n": 40, "measured_on": "2026-11-30"}],
    },
}


@pytest.fixture
async def api() -> AsyncIterator[ClusterApi]:
    async with cluster_api() as server:
        yield server


@asynccontextmanager
async def followed(
    api: ClusterApi, directory: Path, looks: list[tuple[str, str]]
) -> AsyncIterator[ClusterPool]:
    """A pool that is opened and kept up with; it waits hardly at all between attempts."""
    cluster = await open_cluster(api.kubeconfig(directory, "router"), NAMESPACE)
    quick = partial(Follower, chance=random.Random(1), sleep=lambda _s: asyncio.sleep(0.01))
    pool = ClusterPool(cluster, directory, lambda what, look: looks.append((what, look.value)), quick)
    watching = None
    try:
        await pool.open()
        watching = asyncio.create_task(pool.watch())
        await until(lambda: api.watching == 1 or api.is_away)
        yield pool
    finally:
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        await cluster.close()


def ids(pool: ClusterPool) -> list[str]:
    return [entry.worker.worker_id for entry in pool.current.entries]


async def test_the_same_pool_comes_from_objects_and_from_the_file(api: ClusterApi, tmp_path: Path) -> None:
    api.apply("Worker", "small", {**SPEC, "key": {"name": "openai"}})
    api.apply("Worker", "big", FULL)
    aws = {"access_key_id": {"file": "aws-id"}, "secret_access_key": {"file": "aws-secret"}}
    workers = [
        {**FULL, "id": "big", "aws": aws},
        {**SPEC, "id": "small", "key": {"file": "openai"}},
    ]
    path = tmp_path / "pool.yaml"
    path.write_text(json.dumps({"workers": workers}))
    async with followed(api, tmp_path, []) as pool:
        assert pool.current == load_pool(path)
        assert pool.current.pool.pool_digest == load_pool(path).pool.pool_digest
        assert pool.current.entries[1].keys["key"].file == tmp_path / "openai"


async def test_workers_come_change_and_go(api: ClusterApi, tmp_path: Path) -> None:
    looks: list[tuple[str, str]] = []
    async with followed(api, tmp_path, looks) as pool:
        assert ids(pool) == []
        api.apply("Worker", "a", SPEC)
        await until(lambda: ids(pool) == ["a"])
        before = pool.current.pool.pool_digest
        api.apply("Worker", "b", SPEC)
        api.apply("Worker", "a", {**SPEC, "model": "other"})
        await until(
            lambda: ids(pool) == ["a", "b"] and pool.current.entries[0].worker.provider_model == "other"
        )
        assert pool.current.pool.pool_digest != before
        api.delete("Worker", "a")
        await until(lambda: ids(pool) == ["b"])
    assert set(looks) == {("workers", "taken")}


async def test_a_bad_object_keeps_its_last_good_version_and_harms_no_other(
    api: ClusterApi, tmp_path: Path
) -> None:
    api.apply("Worker", "a", SPEC)
    api.apply("Worker", "new", {**SPEC, "provider": "azure"}, checked=False)
    looks: list[tuple[str, str]] = []
    async with followed(api, tmp_path, looks) as pool:
        assert ids(pool) == ["a"]
        assert "key is required" in pool.refused["new"]
        api.apply("Worker", "a", {**SPEC, "pricing": "cheap"}, checked=False)
        api.apply("Worker", "b", SPEC)
        await until(lambda: ids(pool) == ["a", "b"] and "a" in pool.refused)
        assert "there is no such field" in pool.refused["a"]
        assert looks[-1] == ("workers", "refused")
        api.apply("Worker", "a", {**SPEC, "model": "better"})
        await until(lambda: "a" not in pool.refused)
        assert pool.current.entries[0].worker.provider_model == "better"
        # made anew under the same name, it has no last good version
        api.delete("Worker", "b")
        api.apply("Worker", "b", {"provider": "azure", "model": "m"}, checked=False)
        await until(lambda: ids(pool) == ["a"])


async def test_a_key_may_not_lead_out_of_the_mounted_secret(api: ClusterApi, tmp_path: Path) -> None:
    for name, key in enumerate(
        ({"name": "../tls/tls.key"}, {"file": "/etc/passwd"}, {"env": "HOME"}, "openai")
    ):
        api.apply("Worker", f"w{name}", {**SPEC, "key": key}, checked=False)
    async with followed(api, tmp_path, []) as pool:
        assert ids(pool) == []
        assert len(pool.refused) == 4


@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_watch_whose_version_is_gone_lists_again(
    api: ClusterApi, tmp_path: Path, in_stream: bool
) -> None:
    api.lists_gone_in_stream = in_stream
    api.apply("Worker", "a", SPEC)
    async with followed(api, tmp_path, []) as pool:
        api.is_away = True
        api.cut()
        await until(lambda: api.watching == 0)
        api.delete("Worker", "a")
        api.apply("Worker", "b", SPEC)
        api.forget()
        api.is_away = False
        await until(lambda: ids(pool) == ["b"])
        assert api.count("list", "workers") == 2


async def test_while_the_cluster_is_away_the_last_pool_stays_and_the_log_says_so(
    api: ClusterApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api.apply("Worker", "a", SPEC)
    looks: list[tuple[str, str]] = []
    async with followed(api, tmp_path, looks) as pool:
        api.is_away = True
        api.cut()
        await until(lambda: "the last good version stays in force" in caplog.text)
        assert ids(pool) == ["a"]
        api.apply("Worker", "b", SPEC)
        api.is_away = False
        await until(lambda: ids(pool) == ["a", "b"])
        assert api.count("list", "workers") == 1, "a watch goes on from where it was cut"
    assert ("workers", "unreachable") in looks
    told = [record for record in caplog.records if "stays in force" in record.message]
    assert len(told) == 1, "once for each time that the cluster is away"


async def test_a_watch_that_fell_silent_is_given_up(api: ClusterApi, tmp_path: Path) -> None:
    opened = await open_cluster(api.kubeconfig(tmp_path, "router"), NAMESPACE)
    cluster = KubernetesCluster(opened.client, NAMESPACE, call_s=0.2, watch_s=1)
    follower = Follower(cluster, WORKER, sleep=lambda _s: asyncio.sleep(0.01))
    try:
        await follower.open()
        api.is_silent = True
        following = asyncio.create_task(follower.follow(lambda: None))
        await until(lambda: api.watching)
        api.apply("Worker", "a", SPEC)
        api.is_silent = False
        await until(lambda: "a" in follower.resources)
        following.cancel()
        await asyncio.wait([following])
    finally:
        await opened.close()


async def test_watches_that_end_at_once_are_not_asked_for_without_pause(
    api: ClusterApi, tmp_path: Path
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0.01)

    cluster = await open_cluster(api.kubeconfig(tmp_path, "router"), NAMESPACE)
    follower = Follower(cluster, WORKER, sleep=sleep)
    try:
        await follower.open()
        api.ends_watches = True
        following = asyncio.create_task(follower.follow(lambda: None))
        await until(lambda: api.count("watch", "workers") >= 5)
        assert len(pauses) >= 4
        assert min(pauses) > 0.1
        following.cancel()
        await asyncio.wait([following])
    finally:
        await cluster.close()


async def test_a_server_that_does_not_answer_is_not_waited_for(api: ClusterApi, tmp_path: Path) -> None:
    opened = await open_cluster(api.kubeconfig(tmp_path, "router"), NAMESPACE)
    silent = socket.create_server(("127.0.0.1", 0))  # takes connections and says nothing
    try:
        opened.client.configuration.host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(PodiumError) as caught:
            await KubernetesCluster(opened.client, NAMESPACE, call_s=0.1).list(WORKER)
        assert caught.value.reason == "CLUSTER_UNREACHABLE"
    finally:
        await opened.close()
        silent.close()


async def test_changes_that_come_together_make_one_pool(api: ClusterApi, tmp_path: Path) -> None:
    looks: list[tuple[str, str]] = []
    async with followed(api, tmp_path, looks) as pool:
        for number in range(50):
            api.apply("Worker", f"w{number}", SPEC)
        await until(lambda: len(ids(pool)) == 50)
    assert len(looks) < 10


async def test_many_objects_are_listed_page_by_page(api: ClusterApi, tmp_path: Path) -> None:
    api.page_size = 3
    for number in range(8):
        api.apply("Worker", f"w{number}", SPEC)
    async with followed(api, tmp_path, []) as pool:
        assert len(ids(pool)) == 8
    assert api.count("list", "workers") == 3


async def test_a_pod_finds_its_cluster_by_its_service_account(
    tmp_path: Path, tls_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tls_of(tls_dir, "gateway")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files.cert_file, files.key_file)
    (tmp_path / "ca.crt").write_bytes(files.ca_file.read_bytes())
    (tmp_path / "token").write_text("the-pods-token")
    (tmp_path / "namespace").write_text(f"{NAMESPACE}\n")
    async with cluster_api(tls) as api:
        api.apply("Worker", "a", SPEC)
        host, port = api.address.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        cluster = await open_cluster(None, "", tmp_path)
        try:
            pool = ClusterPool(cluster, tmp_path, lambda *_: None)
            await pool.open()
            assert ids(pool) == ["a"]
        finally:
            await cluster.close()
        assert {each.user for each in api.requests} == {"the-pods-token"}


async def test_the_first_read_says_what_to_change(api: ClusterApi, tmp_path: Path) -> None:
    async def refused() -> PodiumError:
        cluster = await open_cluster(api.kubeconfig(tmp_path, "router"), NAMESPACE)
        try:
            with pytest.raises(PodiumError) as caught:
                await ClusterPool(cluster, tmp_path, lambda *_: None).open()
        finally:
            await cluster.close()
        return caught.value

    api.grants = lambda request: False
    denied = await refused()
    assert (denied.code, denied.reason) == (Code.POLICY_DENIED, "CLUSTER_DENIES")
    assert "list workers.podium.dev" in denied.message
    api.is_away = True
    assert (await refused()).reason == "CLUSTER_UNREACHABLE"
    with pytest.raises(PodiumError) as caught:
        await open_cluster(None, "")  # no pod, no cluster
    assert caught.value.reason == "CLUSTER_UNKNOWN"
