"""Settings: defaults that serve, and refusals that name the variable."""

from pathlib import Path

import pytest

from podium_core.runtime.settings_base import describe_settings, load_settings
from podium_gateway.settings import GatewaySettings
from tests.fakes.gateway import gateway_settings


def test_defaults_are_the_documented_ports_and_limits() -> None:
    settings = gateway_settings()
    assert settings.listen == "127.0.0.1:8080"
    assert (settings.conductor_address, settings.router_address, settings.audit_address) == (
        "127.0.0.1:7051",
        "127.0.0.1:7052",
        "127.0.0.1:7053",
    )
    assert settings.runner_limits.seal_timeout_s == settings.seal_wait_s == 15.0
    assert settings.first_byte_s < 1
    assert settings.keep_alive_s <= 10


def test_every_setting_is_described() -> None:
    assert all(field.description for field in GatewaySettings.model_fields.values())
    assert "PODIUM_GATEWAY_MAX_BODY_BYTES" in describe_settings(GatewaySettings)


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE", "TENANTS_FILE"):
        monkeypatch.setenv(f"PODIUM_GATEWAY_{name}", str(Path("x")))
    monkeypatch.setenv("PODIUM_GATEWAY_LISTEN", "nowhere")
    monkeypatch.setenv("PODIUM_GATEWAY_LISTENN", "127.0.0.1:1")
    with pytest.raises(SystemExit) as caught:
        load_settings(GatewaySettings, [])
    assert caught.value.code == 2
    errors = capsys.readouterr().err
    assert "PODIUM_GATEWAY_LISTEN: a listen address must be host:port" in errors
    assert "PODIUM_GATEWAY_LISTENN" in errors
