"""The conductor's settings: defaults that work, mistakes that are named."""

from pathlib import Path

import pytest

from podium_conductor.settings import ConductorSettings
from podium_core.runtime.settings_base import describe_settings, load_settings


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in ("CERT", "KEY", "CA"):
        monkeypatch.setenv(f"PODIUM_CONDUCTOR_TLS_{name}_FILE", str(tmp_path / name))
    return monkeypatch


def test_the_defaults_are_complete(environment: pytest.MonkeyPatch) -> None:
    settings = load_settings(ConductorSettings, [])
    assert (settings.listen, settings.engine, settings.max_steps) == ("127.0.0.1:7051", "rules", 5)
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
