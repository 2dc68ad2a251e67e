"""Vectors through a real router: one permit, one request, in numbers or base64 as the provider likes."""

import asyncio
import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2 as pb
from podium_core.config.provider import EMBEDDING_PREFIXES
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_client import call_metadata
from podium_core.runtime.grpc_errors import rpc_errors
from tests.fakes.embedding_formats import CohereUpstream, InvokeUpstream, cohere_vectors, titan_vector
from tests.fakes.router_rig import KEY, Rig, router_rig
from tests.fakes.upstream import Reply, Upstream
from tests.fakes.waiting import SOON_S, STALL_S, until
from tests.fakes.wire_formats import GeminiUpstream

WORKER = {"features": ["embeddings"]}


def _packed(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def _reply(*embeddings: Any, order: tuple[int, ...] | None = None) -> Reply:
    data = [{"object": "embedding", "index": i, "embedding": e} for i, e in enumerate(embeddings)]
    shown = [data[i] for i in order] if order else data
    body = {"data": shown, "model": "served", "usage": {"prompt_tokens": 9, "total_tokens": 9}}
    return Reply(body=json.dumps(body).encode())


async def _embed(rig: Rig, inputs: list[Any], *, caller: str = "gateway", **changes: Any) -> pb.EmbedResponse:
    request = pb.EmbedRequest(
        attempt_id="att_e",
        run_id="run_1",
        tenant_id="acme",
        worker_id="w",
        pool_digest=rig.catalog.pool().pool_digest,
        input_json=json.dumps(inputs).encode(),
    )
    for name, value in changes.items():
        setattr(request, name, value)
    with rpc_errors("router"):
        answer: pb.EmbedResponse = await rig.stub(caller).Embed(request, timeout=60, metadata=call_metadata())
    return answer


async def test_vectors_come_in_the_order_of_their_inputs(tls_dir: Path, tmp_path: Path) -> None:
    in_base64 = base64.b64encode(_packed(0.5, 1.0)).decode()
    async with router_rig(tls_dir, tmp_path, worker=WORKER) as rig:
        rig.upstream.default = _reply([1.5, -2.0], in_base64, order=(1, 0))
        answer = await _embed(rig, ["a", "b"], dimensions=2)
        (seen,) = rig.upstream.requests
        end = await rig.audit.end_of("att_e")
    assert list(answer.vectors) == [_packed(1.5, -2.0), _packed(0.5, 1.0)]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 0)
    assert answer.cost_usd_micros == 9
    assert seen.path == "/v1/embeddings"
    assert seen.fields == {
        "model": "w-model",
        "input": ["a", "b"],
        "encoding_format": "float",
        "dimensions": 2,
    }
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert (end.usage, end.cost_usd_micros) == (answer.usage, 9)
    assert end.outcome == plan_pb2.ATTEMPT_OUTCOME_COMPLETED


@pytest.mark.parametrize(
    "bad",
    [
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]},
        {"data": [{"index": 0, "embedding": "AAA"}]},
        {"data": [{"index": 0, "embedding": [1e60]}]},
        {"choices": []},
    ],
)
async def test_what_is_no_vector_is_a_typed_failure(tls_dir: Path, tmp_path: Path, bad: Any) -> None:
    async with router_rig(tls_dir, tmp_path, worker=WORKER) as rig:
        rig.upstream.default = Reply(body=json.dumps(bad).encode())
        with pytest.raises(PodiumError) as caught:
            await _embed(rig, ["a"])
    assert (caught.value.code, caught.value.reason) == (Code.PROVIDER_FAILED, "PROVIDER_BAD_ANSWER")


async def test_each_worker_does_only_what_it_is_for(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker=WORKER) as rig:
        with pytest.raises(PodiumError) as chat:
            await rig.complete()
        rig.write_pool(w={})
        with pytest.raises(PodiumError) as embed:
            await _embed(rig, ["a"])
        assert rig.upstream.requests == []
    assert {chat.value.reason, embed.value.reason} == {"WORKER_UNSUITABLE"}


async def test_only_the_gateway_may_ask_and_only_for_arrays(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker=WORKER) as rig:
        with pytest.raises(PodiumError) as caller:
            await _embed(rig, ["a"], caller="conductor")
        with pytest.raises(PodiumError) as shape:
            await _embed(rig, [], input_json=b'"a"')
        assert rig.upstream.requests == []
    assert caller.value.code is Code.POLICY_DENIED
    assert shape.value.code is Code.INVALID_REQUEST


async def test_a_hang_up_closes_the_providers_connection(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker=WORKER) as rig:
        rig.upstream.default = _reply([1.0]).but(delay_s=STALL_S)
        asking = asyncio.create_task(_embed(rig, ["a"]))
        (seen,) = await rig.upstream.seen()
        asking.cancel()
        await until(lambda: seen.ended_s is not None, SOON_S)
        end = await rig.audit.end_of("att_e")
    assert seen.was_hung_up
    assert end.outcome == plan_pb2.ATTEMPT_OUTCOME_CANCELLED


async def test_a_translated_provider_makes_them_too(tls_dir: Path, tmp_path: Path) -> None:
    worker = {**WORKER, "provider": "gemini", "model": "gemini-embedding-001"}
    async with router_rig(tls_dir, tmp_path, worker=worker, upstream=GeminiUpstream()) as rig:
        rig.upstream.default = Reply(b'{"embeddings": [{"values": [0.5, -1]}, {"values": [2, 0]}]}')
        answer = await _embed(rig, ["one", "zwei"])
        assert [struct.unpack("<2f", vector) for vector in answer.vectors] == [(0.5, -1.0), (2.0, 0.0)]
        assert answer.usage.source == plan_pb2.USAGE_SOURCE_ESTIMATED  # it counts none
        (seen,) = rig.upstream.requests
        assert seen.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
        assert rig.audit.bodies[seen.attempt_id] == seen.body


TITAN = {"provider": "bedrock", "model": "amazon.titan-embed-text-v2:0", "region": InvokeUpstream.region}


async def test_bedrocks_titan_makes_one_and_counts_it(tls_dir: Path, tmp_path: Path) -> None:
    async with router_rig(tls_dir, tmp_path, worker={**WORKER, **TITAN}, upstream=InvokeUpstream()) as rig:
        rig.upstream.default = titan_vector([0.5, -1], 7)
        answer = await _embed(rig, ["ein Text"])
        (seen,) = rig.upstream.requests
        _check_log(rig)
    assert list(answer.vectors) == [_packed(0.5, -1.0)]
    assert (answer.usage.input_tokens, answer.usage.source) == (7, plan_pb2.USAGE_SOURCE_PROVIDER)
    assert answer.cost_usd_micros == 7
    assert seen.fields["inputText"] == "ein Text"


async def test_several_inputs_for_a_model_of_one_are_refused_before_anything_is_paid(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path, worker={**WORKER, **TITAN}, upstream=InvokeUpstream()) as rig:
        with pytest.raises(PodiumError) as refused:
            await _embed(rig, ["one", "two"])
        assert (rig.upstream.requests, rig.audit.begun) == ([], {})
    assert (refused.value.code, refused.value.reason) == (Code.INVALID_REQUEST, "INPUTS_UNSUPPORTED")
    assert refused.value.param == "input"


async def test_bedrocks_cohere_makes_several_under_a_signature(tls_dir: Path, tmp_path: Path) -> None:
    secret, access = tmp_path / "secret", tmp_path / "access"
    secret.write_text(InvokeUpstream.secret)
    access.write_text("AKIACANARY")
    aws = {"access_key_id": {"file": str(access)}, "secret_access_key": {"file": str(secret)}}
    worker = {**WORKER, **TITAN, "model": "eu.cohere.embed-v4:0", "key": None, "aws": aws}
    async with router_rig(tls_dir, tmp_path, worker=worker, upstream=InvokeUpstream()) as rig:
        rig.upstream.default = cohere_vectors([[0.5, -1], [2, 0]], 11)
        answer = await _embed(rig, ["one", "zwei"])
        (seen,) = rig.upstream.requests
        _check_log(rig)
    assert list(answer.vectors) == [_packed(0.5, -1.0), _packed(2.0, 0.0)]
    assert seen.fields["texts"] == ["one", "zwei"]


@pytest.mark.parametrize("prefix", sorted(EMBEDDING_PREFIXES))
async def test_prefixes_that_make_them(tls_dir: Path, tmp_path: Path, prefix: str) -> None:
    worker = {**WORKER, "provider": "litellm", "model": f"{prefix}/an-embedder"}
    is_cohere = prefix == "cohere_chat"
    upstream = CohereUpstream() if is_cohere else Upstream()
    async with router_rig(tls_dir, tmp_path, worker=worker, upstream=upstream) as rig:
        vectors = [[1.5, -2.0], [0.5, 1.0]]
        upstream.default = cohere_vectors(vectors, 9) if is_cohere else _reply(*vectors)
        answer = await _embed(rig, ["one", "zwei"])
        _check_log(rig)
    assert list(answer.vectors) == [_packed(1.5, -2.0), _packed(0.5, 1.0)]
    assert (answer.usage.input_tokens, answer.usage.source) == (9, plan_pb2.USAGE_SOURCE_PROVIDER)


async def test_token_numbers_are_refused_where_the_provider_takes_texts(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with router_rig(tls_dir, tmp_path, worker={**WORKER, **TITAN}, upstream=InvokeUpstream()) as rig:
        with pytest.raises(PodiumError) as refused:
            await _embed(rig, [[1, 2, 3]])
        assert rig.upstream.requests == []
    assert refused.value.reason == "INPUTS_UNSUPPORTED"


def _check_log(rig: Rig) -> None:
    """One attempt was one request, of the very bytes that the log holds, and nothing was wrong with it."""
    (seen,) = rig.upstream.requests
    assert getattr(rig.upstream, "problems", []) == []
    assert rig.audit.bodies[seen.attempt_id] == seen.body
    assert KEY not in str(rig.audit.bodies)
