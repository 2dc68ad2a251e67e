"""What the rendered manifests tell each program: settings that exist, values and files that it takes.

Reads k8s/rendered, which `make chart` holds against the chart, so it needs none of the chart's tools.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium_cli.local_ca import service_files
from podium_core.config.gate import load_gate
from podium_core.config.pins import load_pins
from podium_core.config.plans import load_plans
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants
from podium_core.runtime.identity import dns_name, spiffe_id
from podium_core.runtime.settings_base import load_settings
from podium_demo.options import options_of
from tests.chart.pods import PodTemplate, pods_of
from tests.chart.rendering import CHART, PROFILES
from tests.chart.test_programs import SETTINGS
from tests.fakes.checkpoint_files import checkpoint

RENDERED = CHART.parents[1] / "k8s" / "rendered"
FROM_SECRETS = {
    "url": "postgresql://podium@db.example/podium?sslmode=verify-full",
    "key-url": "postgresql://podium@db.example/keys?sslmode=verify-full",
    "owner-url": "postgresql://owner@db.example/podium?sslmode=verify-full",
}
READERS = {
    "tenants.yaml": load_tenants,
    "pool.yaml": load_pool,
    "plans.yaml": load_plans,
    "pins.yaml": load_pins,
    "gate.yaml": load_gate,
}


def objects(name: str) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all((RENDERED / f"{name}.yaml").read_text()) if found]


def env_of(pod: PodTemplate) -> dict[str, str]:
    (container,) = pod.containers
    return {
        entry["name"]: entry["value"]
        if "value" in entry
        else FROM_SECRETS[entry["valueFrom"]["secretKeyRef"]["key"]]
        for entry in container.get("env", [])
    }


PODS = [(name, pod) for name in PROFILES for pod in pods_of(objects(name)) if pod.component in SETTINGS]


@pytest.fixture
def root(tmp_path: Path, tls_dir: Path) -> Path:
    """A file system as pods of any profile see it, but for what is theirs alone."""
    keys = tmp_path / "etc/podium/provider-keys"
    keys.mkdir(parents=True)
    (keys / "anthropic").write_text("a key")
    (tmp_path / "models").mkdir()
    checkpoint(tmp_path / "models" / "current")
    for service in ("gateway", "conductor", "router", "audit"):
        files, mount = service_files(tls_dir, service), tmp_path / service
        mount.mkdir()
        shutil.copy(files.cert_file, mount / "tls.crt")
        shutil.copy(files.key_file, mount / "tls.key")
        shutil.copy(files.ca_file, mount / "ca.crt")
    return tmp_path


def enter(root: Path, name: str, pod: PodTemplate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the pod's environment, with paths below `root`, and mount its ConfigMap there."""
    config = root / "etc/podium/config"
    config.mkdir(parents=True)
    for found in objects(name):
        if found["kind"] == "ConfigMap" and found["metadata"]["name"] == "podium-config":
            for file, text in found["data"].items():
                (config / file).write_text(
                    text.replace("/etc/podium/provider-keys", f"{root}/etc/podium/provider-keys")
                )
    (root / "etc/podium/tls").symlink_to(root / pod.component)
    for variable in [each for each in os.environ if each.startswith("PODIUM_")]:
        monkeypatch.delenv(variable)
    for variable, value in env_of(pod).items():
        monkeypatch.setenv(variable, f"{root}{value}" if value.startswith("/") else value)


@pytest.mark.parametrize(("name", "pod"), PODS, ids=lambda value: getattr(value, "name", value))
def test_a_program_could_start_with_what_its_pod_tells_it(
    root: Path,
    name: str,
    pod: PodTemplate,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    enter(root, name, pod, monkeypatch)
    with pytest.raises(SystemExit) as ended:
        load_settings(SETTINGS[pod.component], ["--check-config"])
    assert ended.value.code == 0, capsys.readouterr().err


@pytest.mark.parametrize(("name", "pod"), PODS, ids=lambda value: getattr(value, "name", value))
def test_what_a_program_is_told_to_read_or_write_is_mounted(name: str, pod: PodTemplate) -> None:
    (container,) = pod.containers
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        each["name"] for each in _volumes(name, pod)
    }
    for variable, value in env_of(pod).items():
        if value.startswith("/"):
            place = next((path for path in mounts if value == path or value.startswith(f"{path}/")), None)
            assert place is not None, f"{variable}={value} is nowhere mounted"
            is_written = variable.endswith(("DATA_DIR", "CHECKPOINT_DIR", "HOME"))
            assert not (is_written and mounts[place].get("readOnly")), (
                f"{variable}={value} cannot be written to"
            )


@pytest.mark.parametrize("name", PROFILES)
def test_configuration_is_read_as_it_is_mounted(name: str, tmp_path: Path) -> None:
    (config,) = [
        found
        for found in objects(name)
        if found["kind"] == "ConfigMap" and found["metadata"]["name"] == "podium-config"
    ]
    for file, text in config["data"].items():
        (tmp_path / file).write_text(text)
        assert READERS[file](tmp_path / file), file


def test_demo_workers_are_where_the_chart_serves_them_with_the_cards_they_have() -> None:
    (config,) = [found for found in objects("laptop") if found["metadata"]["name"] == "podium-config"]
    served = yaml.safe_load(config["data"]["pool.yaml"])["workers"]
    known = yaml.safe_load((CHART.parents[1] / "src/podium_demo/pool.demo.yaml").read_text())["workers"]
    assert [(each["id"], each["limits"], each["price"]) for each in served] == [
        (each["id"], each["limits"], each["price"]) for each in known
    ]
    assert [[(skill["name"], skill["n"]) for skill in each["card"]["skills"]] for each in served] == [
        [(skill["name"], skill["n"]) for skill in each["card"]["skills"]] for each in known
    ]
    (demo,) = [pod for pod in pods_of(objects("laptop")) if pod.component == "demo"]
    host, port = options_of(demo.containers[0]["args"]).listen
    (service,) = [
        found
        for found in objects("laptop")
        if (found["kind"], found["metadata"]["name"]) == ("Service", "podium-demo")
    ]
    assert host == "0.0.0.0"
    assert service["spec"]["ports"][0]["port"] == port
    assert {each["base_url"] for each in served} == {f"http://podium-demo.podium.svc:{port}/v1"}


def test_a_certificate_names_the_one_service_that_it_is_for() -> None:
    """By these names each RPC lets a caller in, and a caller knows whom it reached."""
    certificates = [found["spec"] for found in objects("production") if found["kind"] == "Certificate"]
    named = {each["commonName"]: each for each in certificates}
    assert set(named) == {"gateway", "conductor", "router", "audit"}
    for service, spec in named.items():
        assert spec["uris"] == [spiffe_id(service)]
        assert dns_name(service) in spec["dnsNames"]
        assert {"server auth", "client auth"} <= set(spec["usages"])
        assert spec["privateKey"]["rotationPolicy"] == "Always"


def _volumes(name: str, pod: PodTemplate) -> list[dict[str, Any]]:
    claims = [
        template["metadata"]
        for found in objects(name)
        if found["metadata"]["name"] == pod.name and found["kind"] == pod.kind
        for template in found["spec"].get("volumeClaimTemplates", [])
    ]
    return [*pod.spec["volumes"], *claims]
