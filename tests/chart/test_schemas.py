"""What the chart renders is what an API server takes: under both Helms, for many values and Kubernetes versions."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.chart.rendering import CHART, LEAST, PROFILES, TOOLS, Chart, profile

Json = dict[str, Any]

NEWEST, OLDEST = "1.37.0", "1.27.0"
UNKNOWN = "Couldn't find schema"
CUSTOM = {
    (found["apiVersion"], found["kind"]): found["schema"]
    for found in (
        yaml.safe_load(path.read_text()) for path in Path(__file__).parent.glob("crd_schemas/*.yaml")
    )
}
"""Kinds of other programs that the chart may make; anything else without a schema is a mistake."""

ANYWHERE: list[Json] = [{"podSelector": {}}]
CASES: dict[str, Json] = {
    **{name: profile(name) for name in PROFILES},
    "least": {},
    "model-on-a-volume": {
        "conductor": {
            "engine": "vllm",
            "model": {"volume": {"csi": {"driver": "models.example.com", "readOnly": True}}, "path": "v2"},
        }
    },
    "worker-engine": {"conductor": {"engine": "worker"}},
    "cert-manager": {"tls": {"mode": "cert-manager", "issuerRef": {"name": "ca", "kind": "ClusterIssuer"}}},
    "witness": {
        "witness": {"enabled": True, "name": "w.example/1", "logsConfigMap": "logs"},
        "audit": {"witnessesConfigMap": "witnesses"},
    },
    "spans": {"audit": {"spans": {"enabled": True}}, "networkPolicy": {"spansToAudit": True}},
    "collector": {
        "otlp": {"endpoint": "https://c.monitoring.svc:4317", "serverName": "c"},
        "networkPolicy": {"otlpCollector": {"peers": ANYWHERE}},
    },
    "existing-config": {"existingConfigMap": "mine", "providerKeys": {"existingSecret": "keys"}},
    "resources": {"pool": {"source": "resources"}, "networkPolicy": {"kubernetesApi": {"peers": ANYWHERE}}},
    "open-network": {"networkPolicy": {"enabled": False}},
    "placed": {
        name: {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high",
            "podAnnotations": {"example.com/note": "1"},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        }
        for name in ("gateway", "conductor", "router", "audit")
    },
    "pulled": {"image": {"registry": "mirror.example.com/", "pullSecrets": [{"name": "pull"}]}},
    "asked": {"tests": {"apiKeySecret": "key"}},
    "gate": {"pool": {"workers": LEAST["pool"]["workers"], "gate": {"version": "1"}}},
    "odd-strings": {"gateway": {"env": {"MAX_STEPS": 4, "TELL_WORKER_NAMES": True, "RETRY_MAX_S": 2.5}}},
}


def render(chart: Chart, case: str, kube: str, release: str = "podium") -> str:
    if case in PROFILES:
        done = chart.template(CASES[case], release, kube)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return yaml.safe_dump_all(chart.render(CASES[case], release, kube))


def problems(text: str, kube: str, tmp_path: Path) -> list[str]:
    """Return what an API server of that version would not take."""
    known: list[Json] = []
    custom: list[Json] = []
    for found in yaml.safe_load_all(text):
        if found:
            (custom if (found["apiVersion"], found["kind"]) in CUSTOM else known).append(found)
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(known))
    command = [
        str(TOOLS / "bin" / "kubernetes-validate"),
        "-k",
        kube.rpartition(".")[0],
        "--strict",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    found_wrong = [line for line in lines if UNKNOWN in line or not line.startswith("INFO")]
    return [*found_wrong, *([] if done.returncode in (0, 1) else lines), *_problems_of_custom(custom)]


def _problems_of_custom(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        f"{found['kind']} {error.json_path}: {error.message}"
        for found in objects
        for error in Draft202012Validator(CUSTOM[found["apiVersion"], found["kind"]]).iter_errors(found)
    ]


@pytest.mark.parametrize("kube", [OLDEST, NEWEST])
@pytest.mark.parametrize("case", CASES)
def test_an_api_server_takes_what_is_rendered(chart: Chart, case: str, kube: str, tmp_path: Path) -> None:
    assert problems(render(chart, case, kube), kube, tmp_path) == []


@pytest.mark.parametrize("case", CASES)
def test_both_helms_render_the_same(each_helm: Chart, chart: Chart, case: str) -> None:
    one, other = (yaml.safe_load_all(render(helm, case, NEWEST)) for helm in (each_helm, chart))
    assert _by_name(one) == _by_name(other)


def test_what_no_server_takes_is_noticed(chart: Chart, tmp_path: Path) -> None:
    (good,) = [
        found
        for found in yaml.safe_load_all(render(chart, "laptop", NEWEST))
        if found["kind"] == "Deployment" and found["metadata"]["name"] == "podium-router"
    ]
    misspelt = {**good, "spec": {**good["spec"], "replcas": 2}}
    mistyped = {**good, "spec": {**good["spec"], "replicas": "two"}}
    gone = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "old"}}
    foreign = {"apiVersion": "example.com/v1", "kind": "Unheard", "metadata": {"name": "x"}}
    unissued = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {}, "spec": {}}
    for wrong in (misspelt, mistyped, gone, foreign, unissued):
        assert problems(yaml.safe_dump(wrong), NEWEST, tmp_path), wrong
    assert problems(yaml.safe_dump(good), NEWEST, tmp_path) == []


def test_every_selector_selects_the_pods_of_its_own_workload(chart: Chart) -> None:
    """Schemas cannot see it: an API server refuses a workload whose selector is not among its labels."""
    objects = list(yaml.safe_load_all(render(chart, "laptop", NEWEST)))
    workloads = [found for found in objects if found and found["kind"] in ("Deployment", "StatefulSet")]
    for found in workloads:
        wanted = found["spec"]["selector"]["matchLabels"].items()
        others = [
            other["spec"]["template"]["metadata"]["labels"] for other in workloads if other is not found
        ]
        assert wanted <= found["spec"]["template"]["metadata"]["labels"].items()
        assert not any(wanted <= labels.items() for labels in others)


def test_every_service_leads_to_ports_that_its_pods_name(chart: Chart) -> None:
    for case in ("laptop", "production", "witness", "spans"):
        objects = [found for found in yaml.safe_load_all(render(chart, case, NEWEST)) if found]
        pods = [
            found["spec"]["template"] for found in objects if found["kind"] in ("Deployment", "StatefulSet")
        ]
        for service in (found for found in objects if found["kind"] == "Service"):
            chosen = service["spec"]["selector"].items()
            (pod,) = [each for each in pods if chosen <= each["metadata"]["labels"].items()]
            named = {port["name"]: port for each in pod["spec"]["containers"] for port in each["ports"]}
            for port in service["spec"]["ports"]:
                assert port["protocol"] == "TCP"
                assert named[port["targetPort"]]["containerPort"] == port["port"]


def test_two_releases_of_one_namespace_share_no_name(chart: Chart) -> None:
    first, second = (
        _by_name(yaml.safe_load_all(render(chart, "laptop", NEWEST, name))) for name in ("podium", "b")
    )
    assert not set(first) & set(second)
    assert {name for _, name in second} == {name.replace("podium", "b-podium", 1) for _, name in first}


def test_names_fit_for_the_longest_release(chart: Chart, tmp_path: Path) -> None:
    text = render(chart, "production", NEWEST, "r" * 53)
    assert problems(text, NEWEST, tmp_path) == []
    for kind, name in _by_name(yaml.safe_load_all(text)):
        assert len(name) <= 63, f"{kind} {name}"


def _by_name(objects: Iterable[Json | None]) -> dict[tuple[str, str], Json]:
    return {(found["kind"], found["metadata"]["name"]): found for found in objects if found}


def test_the_chart_brings_the_resource_definitions_of_this_version() -> None:
    theirs = {path.name: path.read_bytes() for path in (CHART / "crds").glob("*.yaml")}
    assert theirs == {
        path.name: path.read_bytes() for path in (CHART.parents[1] / "k8s" / "crds").glob("*.yaml")
    }
