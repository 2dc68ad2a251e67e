"""Settings: complete, known and valid, or the service does not start."""

from pathlib import Path

import pytest

from podium_core.domain.errors import PodiumError
from podium_core.runtime.settings_base import (
    ServiceSettings,
    load_settings,
    parse_listen,
    settings_config,
)
from tests.fakes.tls import tls_of


class RouterSettings(ServiceSettings):
    """What the router is told."""

    model_config = settings_config("ROUTER")

    listen: str = "127.0.0.1:7052"
    """Where to listen."""
    max_calls: int = 3
    """Calls at once."""


@pytest.fixture
def environment(tls_dir: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    tls = tls_of(tls_dir, "router")
    monkeypatch.setenv("PODIUM_ROUTER_TLS_CERT_FILE", str(tls.cert_file))
    monkeypatch.setenv("PODIUM_ROUTER_TLS_KEY_FILE", str(tls.key_file))
    monkeypatch.setenv("PODIUM_ROUTER_TLS_CA_FILE", str(tls.ca_file))
    return monkeypatch


def _refusal(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 2) -> str:
    with pytest.raises(SystemExit) as exited:
        load_settings(RouterSettings, argv)
    assert exited.value.code == status
    return capsys.readouterr().err


def test_variables_with_the_services_prefix_are_read(environment: pytest.MonkeyPatch, tls_dir: Path) -> None:
    environment.setenv("PODIUM_ROUTER_MAX_CALLS", "7")
    environment.setenv("PODIUM_GATEWAY_MAX_CALLS", "8")
    environment.setenv("PODIUM_ROUTER_LOG_LEVEL", "warning")
    settings = load_settings(RouterSettings, [])
    assert (settings.max_calls, settings.listen, settings.log_level) == (7, "127.0.0.1:7052", "WARNING")
    assert settings.tls == tls_of(tls_dir, "router")


def test_nothing_is_exported_unless_asked_for(environment: pytest.MonkeyPatch) -> None:
    settings = load_settings(RouterSettings, [])
    assert (settings.otlp_endpoint, settings.ops_listen) == ("", "")


def test_an_unknown_variable_is_refused_by_name(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("PODIUM_ROUTER_MAX_CALS", "7")
    assert "PODIUM_ROUTER_MAX_CALS: there is no such setting" in _refusal(capsys)


def test_every_mistake_is_named_and_no_value_shown(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("PODIUM_ROUTER_MAX_CALLS", "hunter2")
    environment.delenv("PODIUM_ROUTER_TLS_KEY_FILE")
    said = _refusal(capsys)
    assert "PODIUM_ROUTER_MAX_CALLS: " in said
    assert "PODIUM_ROUTER_TLS_KEY_FILE: Field required" in said
    assert "hunter2" not in said


def test_help_lists_every_setting_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        load_settings(RouterSettings, ["--help"])
    assert exited.value.code == 0
    said = capsys.readouterr().out
    for name, field in RouterSettings.model_fields.items():
        assert f"PODIUM_ROUTER_{name.upper()}" in said
        assert field.description
        assert field.description in said
    assert "(default: 127.0.0.1:7052)" in said
    assert "(required)" in said


def test_check_config_says_whether_the_service_could_start(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as exited:
        load_settings(RouterSettings, ["--check-config"])
    assert exited.value.code == 0
    environment.setenv("PODIUM_ROUTER_TLS_CERT_FILE", str(tmp_path / "none.pem"))
    assert "cannot read the TLS certificate file" in _refusal(capsys, "--check-config", status=1)
    environment.delenv("PODIUM_ROUTER_TLS_CERT_FILE")
    assert "PODIUM_ROUTER_TLS_CERT_FILE" in _refusal(capsys, "--check-config", status=1)


def test_arguments_are_no_settings(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "unknown argument --port" in _refusal(capsys, "--port", "1")


def test_settings_do_not_change(environment: pytest.MonkeyPatch) -> None:
    settings = load_settings(RouterSettings, [])
    with pytest.raises(ValueError, match="frozen"):
        settings.max_calls = 4


@pytest.mark.parametrize(
    ("endpoint", "insecure", "is_valid"),
    [
        ("http://127.0.0.1:4317", "0", True),
        ("http://[::1]:4317", "0", True),
        ("http://localhost:4317", "0", True),
        ("https://collector:4317", "0", True),
        ("http://collector:4317", "0", False),
        ("http://collector:4317", "1", True),
        ("collector:4317", "1", False),
        ("ftp://collector", "1", False),
    ],
)
def test_spans_leave_the_machine_encrypted_or_on_purpose(
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    endpoint: str,
    insecure: str,
    is_valid: bool,
) -> None:
    environment.setenv("PODIUM_ROUTER_OTLP_ENDPOINT", endpoint)
    environment.setenv("PODIUM_ROUTER_OTLP_INSECURE", insecure)
    if is_valid:
        assert load_settings(RouterSettings, []).otlp_endpoint == endpoint
    else:
        assert "otlp_endpoint" in _refusal(capsys)


def test_a_bad_metrics_address_is_refused(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("PODIUM_ROUTER_OPS_LISTEN", "9466")
    assert "PODIUM_ROUTER_OPS_LISTEN: a listen address must be host:port" in _refusal(capsys)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("127.0.0.1:7052", ("127.0.0.1", 7052)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("router:80", ("router", 80)),
    ],
)
def test_listen_addresses(text: str, parsed: tuple[str, int]) -> None:
    assert parse_listen(text) == parsed


@pytest.mark.parametrize(
    "text", ["", ":80", "host", "host:", "host:x", "host:65536", "::1:80", "h:-1", "h:٣"]
)
def test_other_texts_are_no_listen_address(text: str) -> None:
    with pytest.raises(PodiumError, match="host:port"):
        parse_listen(text)
