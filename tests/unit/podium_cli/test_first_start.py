import stat
from pathlib import Path

import pytest

from podium_cli.failures import CliError
from podium_cli.first_start import check_files, demo_pool, prepare
from podium_cli.home import Home, open_home
from podium_cli.ports import DEFAULT_PORTS
from podium_cli.services import SERVICES
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def test_the_first_start_makes_everything_a_local_podium_needs(home: Home) -> None:
    assert prepare(home, 7070)
    check_files(home)
    principal = load_tenants(home.tenants_file).authenticate(home.read_api_key(), 0)
    assert principal is not None
    assert principal.tenant.tenant_id == "demo"
    assert principal.roles == {"client", "auditor"}
    entries = load_pool(home.pool_file).entries
    assert len(entries) >= 3
    assert all(entry.worker.is_demo and entry.base_url == "http://127.0.0.1:7070/v1" for entry in entries)
    for secret in (home.api_key_file, home.tls_dir / "router" / "key.pem"):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_later_starts_change_nothing_but_the_demo_s_address(home: Home) -> None:
    prepare(home, 7070)
    key, certificate = home.read_api_key(), (home.tls_dir / "ca.pem").read_bytes()
    own = '  - {id: own, provider: openai-compatible, model: m, base_url: "http://127.0.0.1:9/v1"}\n'
    home.pool_file.write_text(home.pool_file.read_text() + own)
    assert not prepare(home, 7171)
    assert (home.read_api_key(), (home.tls_dir / "ca.pem").read_bytes()) == (key, certificate)
    urls = {entry.worker.worker_id: entry.base_url for entry in load_pool(home.pool_file).entries}
    assert urls.pop("own") == "http://127.0.0.1:9/v1"
    assert set(urls.values()) == {"http://127.0.0.1:7171/v1"}


def test_a_broken_file_is_named_before_anything_starts(home: Home) -> None:
    prepare(home, 7070)
    home.tenants_file.write_text("tenants:\n  - id: demo\n    colour: red\n")
    with pytest.raises(CliError, match=r"tenants\.yaml line 3"):
        check_files(home)


def test_the_demo_pool_is_the_packaged_one() -> None:
    assert "base_url" in demo_pool(1)
    assert '"{base_url}"' not in demo_pool(1)


def test_every_service_gets_its_own_settings_and_only_the_router_keys(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    prepare(home, 7070)
    home.pool_file.write_text(
        home.pool_file.read_text()
        + "  - {id: gpt, provider: openai-compatible, model: m, base_url: 'https://h/v1', key: {env: OPENAI_API_KEY}}\n"
    )
    for service in SERVICES:
        environment = service.environment(home, DEFAULT_PORTS)
        own = [name for name in environment if name.startswith("PODIUM_")]
        assert all(name.startswith(f"PODIUM_{service.name.upper()}_") for name in own)
        assert ("OPENAI_API_KEY" in environment) == (service.name == "router")
        assert environment.get(f"PODIUM_{service.name.upper()}_OPS_LISTEN", "127.0.0.1").startswith(
            "127.0.0.1"
        )
