"""The snippets of docs/clients.md, run as they stand, in order, by the official clients against a running Podium."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster, running
from tests.fakes.upstream import Reply, Upstream, answer

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}
_VECTORS = {
    "object": "list",
    "model": "my-embedder",
    "data": [{"object": "embedding", "index": i, "embedding": [0.5, 0.25]} for i in range(2)],
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}
_WORKER = """
  - id: {name}
    provider: openai-compatible
    model: {name}
    base_url: "{base_url}"
    price: {{input_usd_per_mtok: "0.25", output_usd_per_mtok: "2.00"}}
    limits: {{max_output_tokens: 64}}
    features: [{features}]
"""


class _AbleProvider(Upstream):
    """Does what the demo workers cannot: calls a tool, writes JSON, makes embeddings."""

    def _by_model(self, body: bytes) -> Reply:
        fields = json.loads(body)
        if "input" in fields:
            return Reply(json.dumps(_VECTORS).encode())
        if "response_format" in fields:
            return answer('{"product": 391}')
        if "tools" in fields and fields["messages"][-1]["role"] != "tool":
            return answer(finish="tool_calls", tool_calls=[_CALL])
        return answer("Yes: it will rain.")


async def test_every_snippet_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with _AbleProvider() as provider:
        more = "".join(
            _WORKER.format(name=name, features=features, base_url=provider.base_url)
            for name, features in (("my-model", "tools, json_schema"), ("my-embedder", "embeddings"))
        )
        podium = Cluster(tmp_path / "home", more_workers=more)
        with running(podium):
            await podium.wait_ready()
            for name, value in (
                ("OPENAI_BASE_URL", f"{podium.gateway_url}/v1"),
                ("ANTHROPIC_BASE_URL", podium.gateway_url),
                *((f"{who}_API_KEY", podium.api_key) for who in ("OPENAI", "ANTHROPIC", "PODIUM")),
            ):
                monkeypatch.setenv(name, value)
            await asyncio.to_thread(_perform, PAGE.read_text(encoding="utf-8"))
    said = capsys.readouterr().out
    for told in (
        "391\nrun_",
        "goes to demo-arithmetic",
        "Yes: it will rain.",
        '{"product": 391}',
        "completed 391",
        "2 vectors",
        "403 ",
    ):
        assert told in said


def _perform(page: str) -> None:
    snippets = _PYTHON.findall(page)
    assert len(snippets) >= 10
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, PAGE.name, "exec"), names)
