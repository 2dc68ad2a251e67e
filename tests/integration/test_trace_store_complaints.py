"""What users of other trace stores have complained of, where no other test stands for it yet."""

import asyncio
import base64
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from sqlite3 import connect

import pytest

from podium.audit.v1 import audit_service_pb2 as pb
from podium_audit.intake import span_intake
from podium_audit.intake.decoding import decode
from podium_audit.rows.run_search import Facet, RunSearch
from podium_audit.stores.run_search_sql import selection
from podium_audit.stores.sqlite import SqliteStore
from podium_core.domain.errors import PodiumError
from tests.fakes.audit_service import open_request, running_audit, seal_request
from tests.fakes.waiting import PATIENCE_S
from tests.unit.podium_audit.intake.test_decoding import request, span

MEGABYTES = 1 << 20


async def test_a_prompt_of_ten_megabytes_is_kept_whole_and_its_facts_with_it(
    tmp_path: Path, tls_dir: Path
) -> None:
    prompt = b"".join(b"%09d" % number for number in range(10 * MEGABYTES // 9))
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.call("gateway", "OpenRun", open_request("run_1", plan=None, contents=[]))
        header = pb.PutContentHeader(
            event_id="run_1.put",
            run_id="run_1",
            part_id="question",
            name="question",
            media_type="text/plain",
            size_bytes=len(prompt),
        )
        chunks = [prompt[at : at + MEGABYTES] for at in range(0, len(prompt), MEGABYTES)]

        async def messages():  # type: ignore[no-untyped-def]
            yield pb.PutContentRequest(header=header)
            for chunk in chunks:
                yield pb.PutContentRequest(chunk=chunk)

        await audit.stubs["gateway"].method("PutContent")(messages(), timeout=60)  # type: ignore[no-untyped-call]
        await audit.call("gateway", "Seal", seal_request("run_1"))
        _, export = await audit.get("/v1/runs/run_1/export", "key1")
        lines = [json.loads(line) for line in export.splitlines()]
        [kept] = [line for line in lines if line["line"] == "content" and line["part_id"] == "question"]
        assert hashlib.sha256(base64.b64decode(kept["data"])).digest() == hashlib.sha256(prompt).digest()
        leaves = [json.loads(line["leaf"]) for line in lines if line["line"] == "leaf"]
        assert max(len(line["leaf"]) for line in lines if line["line"] == "leaf") < 65_536
        assert [leaf["type"] for leaf in leaves][:3] == ["opened", "content", "sealed"]


async def test_a_workflow_of_more_spans_than_fit_says_that_it_is_not_whole(
    tmp_path: Path, tls_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_intake, "MAX_SHOWN", 3)
    monkeypatch.setattr("podium_audit.reading.http.MAX_SHOWN", 3)
    async with running_audit(tmp_path, tls_dir, otlp_grpc_listen="127.0.0.1:0") as audit:
        await audit.run("run_1")
        intake = audit.audit.intake
        assert intake is not None
        for count, whole in ((3, True), (5, False)):
            made = [span(podium__run__id="run_1") for _ in range(count)]
            for number, each in enumerate(made, 1):
                each.span_id = number.to_bytes(8, "big")
            intake.take(decode(request(*made), tenant_id="", sender="router").rows)
            _, page = await audit.get("/v1/runs/run_1/spans")
            assert (len(page["spans"]), page["complete"]) == (3, whole)


@pytest.mark.parametrize(
    "search",
    [
        RunSearch("acme"),
        RunSearch("acme", "key1"),
        RunSearch("acme", facets=((Facet.WORKER, "w"),)),
        RunSearch("acme", "key1", ((Facet.WORKER, "w"), (Facet.RULE, "r")), opened_from_us=5),
        RunSearch("acme", opened_from_us=5, opened_before_us=9),
    ],
)
def test_no_list_reads_a_whole_table_or_sorts_one(tmp_path: Path, search: RunSearch) -> None:
    store = SqliteStore(tmp_path / "log.db", busy_s=5)
    store.open()
    store.close()
    found = selection(search, with_rows=True, before_no=7)
    query = f"SELECT * {found.text} ORDER BY {found.run_no} DESC LIMIT 50"
    text = query.format(**{name: f":{name}" for name in found.values})
    with connect(tmp_path / "log.db") as database:
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {text}", dict(found.values))]
    assert not [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step], plan


async def test_audit_keeps_answering_while_many_wait(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir, queue_bound=8, commit_wait_s=0.5) as audit:
        await audit.run("run_0")
        with connect(tmp_path / "data" / "log.db") as database:
            database.execute("BEGIN EXCLUSIVE")
            opening = [audit.call("gateway", "OpenRun", open_request(f"run_{n}")) for n in range(1, 200)]
            refused = await asyncio.gather(*opening, return_exceptions=True)
            assert all(isinstance(each, Exception) for each in refused)
            assert (await audit.get("/healthz"))[0] == 200
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(PodiumError):
                    await audit.run("run_last")
                    break
                await asyncio.sleep(0.05)
