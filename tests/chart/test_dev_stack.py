"""The dev stack of k8s/: manifests that a strict cluster takes, and a database that audit can work with."""

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from podium_audit.migration import MigrationSettings, migrate
from tests.chart.pods import pods_of
from tests.chart.rendering import CHART, Chart, profile, with_defaults
from tests.chart.test_schemas import NEWEST, problems
from tests.fakes.audit_service import running_audit
from tests.fakes.postgres_server import as_owner, find_binaries

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

K8S = CHART.parents[1] / "k8s"
README = (K8S / "README.md").read_text()
DEV_VALUES: dict[str, Any] = yaml.safe_load((K8S / "dev" / "values.yaml").read_text())
MANIFESTS = sorted(path for path in (K8S / "dev").glob("*.yaml") if path.name != "values.yaml")


def on_the_laptop(chart: Chart) -> list[dict[str, Any]]:
    done = chart.template(with_defaults(DEV_VALUES, profile("laptop")))
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: str(path.stem))
def test_a_server_takes_the_manifests(chart: Chart, manifest: Path, tmp_path: Path) -> None:
    assert chart.helm.exists()
    text = manifest.read_text()
    assert problems(text, NEWEST, tmp_path) == []
    for pod in pods_of(yaml.safe_load_all(text)):
        context = pod.spec["securityContext"]
        assert context["runAsNonRoot"]
        assert context["seccompProfile"]["type"] == "RuntimeDefault"
        for container in pod.containers:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"]
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert ":latest" not in container["image"]


def test_the_chart_takes_the_values_of_the_dev_stack(chart: Chart, tmp_path: Path) -> None:
    objects = on_the_laptop(chart)
    assert problems(yaml.safe_dump_all(objects), NEWEST, tmp_path) == []
    replicas = {
        found["metadata"]["name"]: found["spec"].get("replicas") for found in objects if "spec" in found
    }
    assert {replicas[f"podium-{name}"] for name in ("gateway", "conductor", "router", "audit")} == {2}


def test_each_secret_that_the_readme_makes_has_what_pods_read(chart: Chart) -> None:
    made = {
        secret: set(re.findall(r"--from-literal=([\w.-]+)=", options))
        for secret, options in re.findall(r"create secret generic ([\w-]+) ((?:[^\n]*\\\n)*[^\n]*)", README)
    }
    for pod in pods_of(on_the_laptop(chart)):
        for container in pod.containers:
            for entry in container.get("env", []):
                reference = entry.get("valueFrom", {}).get("secretKeyRef")
                if reference and not reference.get("optional"):
                    assert reference["key"] in made[reference["name"]]
        for volume in pod.spec.get("volumes", []):
            for item in volume.get("secret", {}).get("items", []):
                assert item["key"] in made[volume["secret"]["secretName"]]
    assert {"signing.key", "encryption.key"} == made["podium-audit-keys"]


def test_the_readme_names_files_that_there_are() -> None:
    named = re.findall(r"(?:--values|--filename|--config) ((?:k8s|charts)/\S+)", README)
    assert named
    assert all((K8S.parent / name).is_file() for name in named)


async def test_audit_works_with_the_database_that_the_dev_stack_makes(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    (init,) = (
        found
        for found in yaml.safe_load_all((K8S / "dev" / "postgres.yaml").read_text())
        if found["kind"] == "ConfigMap"
    )
    binaries = find_binaries()
    assert binaries is not None
    done = subprocess.run(
        as_owner(
            [str(binaries / "psql"), postgres.url("postgres"), "--set=ON_ERROR_STOP=1", "--set=password=x'y"]
        ),
        input=init["data"]["podium.psql"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    urls: dict[str, Any] = {
        "database_url": postgres.url("podium", "podium"),
        "key_database_url": postgres.url("podium_keys", "podium"),
    }
    assert migrate(MigrationSettings(**urls))
    async with running_audit(tmp_path, tls_dir, **urls) as audit:
        assert (await audit.run("run_1")).cost_usd_micros == 40
