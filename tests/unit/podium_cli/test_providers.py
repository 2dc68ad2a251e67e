from pathlib import Path

import pytest

from podium_cli.hosted import Offer
from podium_cli.providers import add_to_pool, offers_from_servers
from podium_cli.settings import service_environment
from podium_core.config.pool import load_pool

OFFERS = [
    Offer("openai", "", "openai", "gpt-5-mini", ("key: {env: OPENAI_API_KEY}",)),
    Offer("ollama-x", "", "openai-compatible", 'odd "name": x', ("base_url: http://127.0.0.1:11434/v1",)),
]


def test_offers_make_entries_that_the_pool_accepts(tmp_path: Path) -> None:
    text, added = add_to_pool("workers:\n", OFFERS, frozenset())
    file = tmp_path / "pool.yaml"
    file.write_text(text)
    pool = load_pool(file)
    assert [entry.worker.worker_id for entry in pool.entries] == ["openai", "ollama-x"]
    assert pool.entries[0].keys["key"].env == "OPENAI_API_KEY"
    assert pool.entries[1].worker.provider_model == 'odd "name": x'
    assert added == OFFERS
    assert add_to_pool(text, OFFERS, frozenset(pool.pool.by_id)) == (text, [])


async def test_no_server_no_offer() -> None:
    assert await offers_from_servers({"ollama": 1}) == []


def test_only_the_router_s_own_keys_pass_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PODIUM_GATEWAY_LISTEN", "0.0.0.0:1")
    environment = service_environment({"PODIUM_AUDIT_LISTEN": "127.0.0.1:1"})
    assert "OPENAI_API_KEY" not in environment
    assert "PODIUM_GATEWAY_LISTEN" not in environment
    assert environment["PODIUM_AUDIT_LISTEN"] == "127.0.0.1:1"
    assert service_environment({}, ["OPENAI_API_KEY"])["OPENAI_API_KEY"] == "sk-secret"
