"""Whatever values say: each program takes the settings that its pod gives it."""

import os
from typing import Any

import pytest

from podium_audit.migration import MigrationSettings
from podium_audit.settings import AuditSettings
from podium_audit.witness.settings import WitnessSettings
from podium_conductor.settings import ConductorSettings
from podium_core.runtime.settings_base import ProcessSettings, load_settings
from podium_gateway.settings import GatewaySettings
from podium_router.settings import RouterSettings
from tests.chart.pods import PodTemplate, pods_of
from tests.chart.rendering import EVERYTHING, Chart, with_defaults
from tests.chart.test_schemas import CASES

SETTINGS: dict[str, type[ProcessSettings]] = {
    "gateway": GatewaySettings,
    "conductor": ConductorSettings,
    "router": RouterSettings,
    "audit": AuditSettings,
    "witness": WitnessSettings,
    "migration": MigrationSettings,
}
SECRET = "postgresql://podium@db.example/podium?sslmode=verify-full"


def load(pod: PodTemplate, monkeypatch: pytest.MonkeyPatch) -> ProcessSettings:
    """Return the settings of a pod's program; exits where it would refuse to start."""
    for name in [each for each in os.environ if each.startswith("PODIUM_")]:
        monkeypatch.delenv(name)
    (container,) = pod.containers
    for entry in container["env"]:
        monkeypatch.setenv(entry["name"], entry.get("value", SECRET))
    return load_settings(SETTINGS[pod.component], [])


@pytest.mark.parametrize("case", [*CASES, "everything"])
def test_each_program_takes_its_settings(chart: Chart, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Any] = dict(EVERYTHING) if case == "everything" else CASES[case]
    pods = [pod for pod in pods_of(chart.render(values)) if pod.component in SETTINGS]
    assert {"gateway", "conductor", "router", "audit"} <= {pod.component for pod in pods}
    for pod in pods:
        assert load(pod, monkeypatch)


def test_a_setting_of_ones_own_arrives_and_wins(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"MAX_STEPS": 4, "RETRY_MAX_S": 2.5, "TELL_WORKER_NAMES": True, "LOG_LEVEL": "ERROR"}
    pods = {pod.component: pod for pod in pods_of(chart.render({"gateway": {"env": own}}))}
    settings = load(pods["gateway"], monkeypatch)
    assert isinstance(settings, GatewaySettings)
    assert (settings.max_steps, settings.retry_max_s, settings.tell_worker_names) == (4, 2.5, True)
    assert settings.log_level == "ERROR"


def test_what_a_pod_is_given_to_stop_is_more_than_its_program_takes(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {name: {"drainDelayS": 9, "drainS": 90} for name in ("conductor", "router", "audit")}
    objects = chart.render(with_defaults(slow, {"gateway": {"drainDelayS": 9, "drainTimeoutS": 90}}))
    for pod in pods_of(objects):
        if pod.component in SETTINGS and pod.kind != "Job":
            settings = load(pod, monkeypatch)
            if isinstance(settings, GatewaySettings):
                needed_s = settings.drain_delay_s + settings.drain_timeout_s + settings.seal_wait_s
            else:
                assert isinstance(settings, AuditSettings | ConductorSettings | RouterSettings)
                needed_s = settings.drain_delay_s + settings.drain_s
            assert needed_s >= 99, "the values did not arrive"
            assert pod.spec["terminationGracePeriodSeconds"] >= needed_s + 5
