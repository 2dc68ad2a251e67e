"""The pool as resources: three pods have a token and a role each, and nothing else changes hands."""

import io
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from podium_cli.arguments import build_parser
from podium_cli.home import open_home
from podium_cli.objects import run
from podium_cli.settings import CliSettings
from tests.chart.rendering import CHART, TOOLS, Chart

READERS = {"router", "gateway", "audit"}
VALUES: dict[str, Any] = {
    "pool": {"source": "resources"},
    "networkPolicy": {"kubernetesApi": {"peers": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}},
}
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
ROLES = yaml.safe_load((Path(CHART) / "files" / "roles.yaml").read_text())


def component(thing: dict[str, Any]) -> str:
    return str(thing["metadata"]["labels"]["app.kubernetes.io/component"])


def pods(things: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the pod of each component that runs for good."""
    kinds = ("Deployment", "StatefulSet")
    return {component(each): each["spec"]["template"]["spec"] for each in things if each["kind"] in kinds}


def settings(pod: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}


def has_token(pod: dict[str, Any]) -> bool:
    paths = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    sources = [
        source for volume in pod["volumes"] for source in volume.get("projected", {}).get("sources", ())
    ]
    assert pod["automountServiceAccountToken"] is False
    assert (TOKEN_PATH in paths) == any("serviceAccountToken" in source for source in sources)
    return TOKEN_PATH in paths


def test_by_default_nobody_has_a_token_or_a_role(chart: Chart) -> None:
    things = chart.render({})
    assert not {each["kind"] for each in things} & {"Role", "RoleBinding", "ClusterRole", "Lease"}
    assert not any(has_token(pod) for pod in pods(things).values())


def test_readers_of_objects_have_a_role_of_their_own_and_no_more(chart: Chart) -> None:
    things = chart.render(VALUES)
    assert {name for name, pod in pods(things).items() if has_token(pod)} == READERS
    lease = next(each["metadata"]["name"] for each in things if each["kind"] == "Lease")
    roles = {component(each): each["rules"] for each in things if each["kind"] == "Role"}
    for rules in roles.values():
        for rule in rules:
            assert rule.pop("resourceNames", None) == ([lease] if "leases" in rule["resources"] else None)
    assert roles == ROLES
    assert not [each for each in things if each["kind"].startswith("Cluster")]
    for binding in (each for each in things if each["kind"] == "RoleBinding"):
        name = f"podium-{component(binding)}"
        assert binding["roleRef"]["name"] == name
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": "podium"}]
        assert pods(things)[component(binding)]["serviceAccountName"] == name


def test_settings_name_the_cluster_instead_of_files(chart: Chart) -> None:
    things = chart.render(VALUES)
    router = settings(pods(things)["router"])
    assert router["PODIUM_ROUTER_POOL_SOURCE"] == "kubernetes"
    assert router["PODIUM_ROUTER_PROVIDER_KEYS_DIR"] == "/etc/podium/provider-keys"
    assert router["PODIUM_ROUTER_CLUSTER_NAMESPACE"] == "podium"
    assert router["PODIUM_ROUTER_POOL_STATUS_LEASE"] in {
        each["metadata"]["name"] for each in things if each["kind"] == "Lease"
    }
    for name in ("gateway", "audit"):
        assert settings(pods(things)[name])[f"PODIUM_{name.upper()}_TENANTS_SOURCE"] == "kubernetes"
    every = {name for pod in pods(things).values() for name in settings(pod)}
    assert not {name for name in every if name.endswith(("_POOL_FILE", "_TENANTS_FILE"))}
    config = next(each for each in things if each["kind"] == "ConfigMap" and "plans.yaml" in each["data"])
    assert not {"pool.yaml", "tenants.yaml"} & config["data"].keys()


def test_values_that_nobody_would_read_are_refused(chart: Chart) -> None:
    assert "apply objects" in chart.refusal({**VALUES, "tenants": [{"id": "acme"}]})


def test_kubectl_reads_what_is_written_for_it(tmp_path: Path) -> None:
    """kubectl's YAML is that of 1.1, where a bare key n is the word no."""
    if not (TOOLS / "bin" / "kubectl").exists():
        pytest.skip("needs the tools of `make chart`: PODIUM_TEST_K8S_TOOLS")
    key = {"id": "alice", "sha256": "0" * 64, "roles": ["client"]}
    (tmp_path / "tenants.yaml").write_text(yaml.safe_dump({"tenants": [{"id": "research", "keys": [key]}]}))
    pool = (CHART / "files" / "pool.demo.yaml").read_text()
    (tmp_path / "pool.yaml").write_text(pool.replace("{base_url}", "https://models.example/v1"))
    out = io.StringIO()
    words = ["objects", "--pool", str(tmp_path / "pool.yaml"), "--tenants", str(tmp_path / "tenants.yaml")]
    arguments = build_parser().parse_args(words)
    run(
        arguments,
        Console(file=out, width=1_000, highlight=False, markup=False),
        open_home(tmp_path),
        CliSettings(),
    )
    page = (Path(CHART).parents[1] / "docs" / "kubernetes.md").read_text()
    (sample,) = [
        block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "kind: Worker" in block
    ]
    for text in (out.getvalue(), sample):
        (tmp_path / "objects.yaml").write_text(text)
        done = subprocess.run(
            [
                TOOLS / "bin" / "kubectl",
                "annotate",
                "--local",
                "-f",
                tmp_path / "objects.yaml",
                "a=b",
                "-o",
                "json",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert '"n": ' in done.stdout
        assert '"false"' not in done.stdout
