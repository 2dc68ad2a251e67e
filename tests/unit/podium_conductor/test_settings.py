"""The conductor's settings: defaults that work, mistakes that are named."""

from pathlib import Path

import pytest

from podium_conductor.settings import ConductorSettings
from podium_core.runtime.settings_base import describe_settings, load_settings
from tests.fakes.checkpoint_files import checkpoint
from tests.fakes.tls import tls_of


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in ("CERT", "KEY", "CA"):
        monkeypatch.setenv(f"PODIUM_CONDUCTOR_TLS_{name}_FILE", str(tmp_path / name))
    return monkeypatch


def test_the_defaults_are_complete(environment: pytest.MonkeyPatch) -> None:
    settings = load_settings(ConductorSettings, [])
    assert (settings.listen, settings.engine, settings.max_steps) == ("127.0.0.1:7051", "embedded", 5)
    assert settings.planning_limits.max_running == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_STEPS", "6"),
        ("MAX_STEPS", "0"),
        ("ENGINE", "magic"),
        ("LISTEN", "nowhere"),
        ("MAX_PLAN_S", "nan"),
        ("COLOUR", "red"),
    ],
)
def test_mistakes_are_named(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    environment.setenv(f"PODIUM_CONDUCTOR_{name}", value)
    with pytest.raises(SystemExit) as stopped:
        load_settings(ConductorSettings, [])
    assert stopped.value.code == 2
    assert f"PODIUM_CONDUCTOR_{name}" in capsys.readouterr().err


def test_every_setting_is_explained() -> None:
    text = describe_settings(ConductorSettings)
    assert "PODIUM_CONDUCTOR_MAX_CONCURRENT_PLANS" in text
    assert "\n      \n" not in text


@pytest.mark.parametrize(
    ("engine", "said"),
    [("vllm", "needs PODIUM_CONDUCTOR_MODEL_PATH")],
)
def test_an_engine_with_a_model_needs_its_folder(
    environment: pytest.MonkeyPatch, tls_dir: Path, capsys: pytest.CaptureFixture[str], engine: str, said: str
) -> None:
    tls = tls_of(tls_dir, "conductor")
    for name, path in (("CERT", tls.cert_file), ("KEY", tls.key_file), ("CA", tls.ca_file)):
        environment.setenv(f"PODIUM_CONDUCTOR_TLS_{name}_FILE", str(path))
    environment.setenv("PODIUM_CONDUCTOR_ENGINE", engine)
    with pytest.raises(SystemExit) as stopped:
        load_settings(ConductorSettings, ["--check-config"])
    assert stopped.value.code == 1
    assert said in capsys.readouterr().err


def test_a_checkpoint_is_checked_without_being_loaded(
    environment: pytest.MonkeyPatch, tls_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = tls_of(tls_dir, "conductor")
    for name, path in (("CERT", tls.cert_file), ("KEY", tls.key_file), ("CA", tls.ca_file)):
        environment.setenv(f"PODIUM_CONDUCTOR_TLS_{name}_FILE", str(path))
    environment.setenv("PODIUM_CONDUCTOR_ENGINE", "vllm")
    environment.setenv("PODIUM_CONDUCTOR_MODEL_PATH", str(checkpoint(tmp_path / "model")))
    with pytest.raises(SystemExit) as stopped:
        load_settings(ConductorSettings, ["--check-config"])
    assert stopped.value.code == 0
    (tmp_path / "model" / "model.safetensors").write_bytes(b"short")
    with pytest.raises(SystemExit) as stopped:
        load_settings(ConductorSettings, ["--check-config"])
    assert (stopped.value.code, "damaged" in capsys.readouterr().err) == (1, True)
