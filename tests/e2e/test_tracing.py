"""A collector sees run ⊃ {policy, plan, step ⊃ chat} across four processes, and no content."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.e2e.cluster import SERVICES, Cluster, running
from tests.fakes.otlp_receiver import OtlpReceiver

CANARY = "canarywordthatisnowhereelse"
QUESTION = f"Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters. {CANARY}"


@dataclass(frozen=True, slots=True)
class Seen:
    """One received span and the service that sent it."""

    service: str
    span: Span

    @property
    def id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent(self) -> str:
        return self.span.parent_span_id.hex()

    @property
    def attributes(self) -> dict[str, Any]:
        kinds = {pair.key: pair.value.WhichOneof("value") for pair in self.span.attributes}
        return {
            pair.key: getattr(pair.value, kinds[pair.key] or "string_value") for pair in self.span.attributes
        }


def children(spans: list[Seen], parent: Seen) -> list[Seen]:
    return [span for span in spans if span.parent == parent.id]


async def test_spans_of_one_run_form_one_tree_without_content(tmp_path: Path) -> None:
    with OtlpReceiver() as collector:
        traced = {name: {f"PODIUM_{name.upper()}_OTLP_ENDPOINT": collector.endpoint} for name in SERVICES}
        traced["demo"] = {}
        with running(Cluster(tmp_path, traced)) as podium:
            await podium.wait_ready()
            body = {"model": "podium", "messages": [{"role": "user", "content": QUESTION}]}
            url = f"{podium.gateway_url}/v1/chat/completions"
            session = aiohttp.ClientSession(headers=podium.headers)
            async with session, session.post(url, json=body) as answer:
                assert answer.status == 200, await answer.text()
                run_id = answer.headers["x-podium-run-id"]
                planned = (await answer.json())["podium"]["plan"]["steps"]
        # Services flush what they hold when they stop.
        spans = [Seen(service, span) for service, span in collector.spans]

    (run,) = [span for span in spans if span.span.name.startswith("invoke_workflow")]
    assert run.parent == ""
    assert run.attributes["podium.run.id"] == run_id
    of_run = [span for span in spans if span.span.trace_id == run.span.trace_id]
    names = [span.span.name.split(" ")[0] for span in children(of_run, run)]
    assert names.count("policy") == 1
    assert names.count("plan") == 1
    steps = [span for span in children(of_run, run) if span.span.name.startswith("invoke_agent")]
    assert len(steps) == len(planned) > 1
    for step in steps:
        (chat,) = [span for span in children(of_run, step) if span.span.name.startswith("chat")]
        assert chat.service != step.service
        assert chat.span.start_time_unix_nano >= step.span.start_time_unix_nano
        assert chat.attributes["gen_ai.usage.input_tokens"] > 0
    assert len({span.service for span in of_run}) == 4
    assert CANARY.encode() not in b"".join(collector.requests)
    assert podium.api_key.encode() not in b"".join(collector.requests)
