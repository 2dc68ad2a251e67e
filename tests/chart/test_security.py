"""Every pod meets the restricted pod security standard and more, and no manifest holds a secret."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.pods import PodTemplate, pods_of
from tests.chart.rendering import CHART, EVERYTHING, Chart

Json = Mapping[str, Any]

PROFILES = sorted((CHART / "profiles").glob("*.yaml"))
INSTALLATIONS = {
    "defaults": {},
    "everything": EVERYTHING,
    "resources": {
        "pool": {"source": "resources"},
        "networkPolicy": {"kubernetesApi": {"peers": [{"ipBlock": {"cidr": "10.96.0.1/32"}}]}},
    },
    **{path.stem: yaml.safe_load(path.read_text()) for path in PROFILES},
}

ALLOWED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
"""https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""


@pytest.fixture(scope="module", params=INSTALLATIONS)
def objects(request: pytest.FixtureRequest, chart: Chart) -> list[dict[str, Any]]:
    return chart.render(INSTALLATIONS[request.param])


@pytest.fixture(scope="module")
def pods(objects: list[dict[str, Any]]) -> list[PodTemplate]:
    found = list(pods_of(objects))
    assert {"gateway", "conductor", "router", "audit"} <= {pod.component for pod in found}
    return found


def test_pods_meet_the_restricted_standard(pods: list[PodTemplate]) -> None:
    for pod in pods:
        spec = pod.spec
        assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & {k for k, v in spec.items() if v}, (
            pod.name
        )
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] >= 10_000
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert "sysctls" not in context
        for volume in spec.get("volumes", []):
            assert set(volume) - {"name"} <= ALLOWED_VOLUMES, (pod.name, volume)


def test_containers_meet_the_restricted_standard(pods: list[PodTemplate]) -> None:
    for pod in pods:
        for container in pod.containers:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False, pod.name
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True
            assert context["runAsNonRoot"] is True
            assert not {"privileged", "procMount", "seLinuxOptions", "runAsUser"} & set(context)
            assert all("hostPort" not in port for port in container.get("ports", []))


def test_resources_are_asked_for_and_memory_is_limited(pods: list[PodTemplate]) -> None:
    for pod in pods:
        for container in pod.containers:
            resources = container["resources"]
            assert set(resources["requests"]) >= {"cpu", "memory"}, pod.name
            assert "memory" in resources["limits"]
        for volume in pod.spec.get("volumes", []):
            if "emptyDir" in volume:
                assert "sizeLimit" in volume["emptyDir"], "a folder in memory or on the node has a bound"


def test_services_are_probed_by_more_than_their_port(pods: list[PodTemplate]) -> None:
    for pod in pods:
        if pod.kind in ("Deployment", "StatefulSet"):
            for container in pod.containers:
                for probe in ("livenessProbe", "readinessProbe"):
                    assert "httpGet" in container[probe], (pod.name, probe)


def test_no_pod_gets_a_token_that_it_does_not_use(
    pods: list[PodTemplate], objects: list[dict[str, Any]]
) -> None:
    uses_api = {"router", "gateway", "audit"} if any(o["kind"] == "Role" for o in objects) else set()
    for pod in pods:
        assert pod.spec["automountServiceAccountToken"] is False, pod.name
        tokens = [
            source
            for volume in pod.spec.get("volumes", [])
            for source in volume.get("projected", {}).get("sources", [])
            if "serviceAccountToken" in source
        ]
        assert not tokens or pod.component in uses_api
        if pod.kind in ("Deployment", "StatefulSet"):
            assert pod.spec["serviceAccountName"].endswith(f"-{pod.component}")
    for account in (o for o in objects if o["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def secrets_of(pod: PodTemplate) -> set[str]:
    """Return every Secret that a pod can read, as a volume or as a variable."""
    mounted = {v["secret"]["secretName"] for v in pod.spec.get("volumes", []) if "secret" in v}
    told = {
        entry["valueFrom"]["secretKeyRef"]["name"]
        for container in pod.containers
        for entry in container.get("env", [])
        if "secretKeyRef" in entry.get("valueFrom", {})
    }
    assert all("envFrom" not in container for container in pod.containers)
    return mounted | told


def test_each_pod_reads_its_own_secrets_only(chart: Chart) -> None:
    found = {pod.component: secrets_of(pod) for pod in pods_of(chart.render(EVERYTHING))}
    assert found == {
        "gateway": {"podium-gateway-tls"},
        "conductor": {"podium-conductor-tls"},
        "router": {"podium-router-tls", "provider-keys"},
        "audit": {"podium-audit-tls", "keys", "db"},
        "migration": {"db"},
        "witness": set(),
        "demo": set(),
        "test": {"key"},
    }


def test_a_password_is_a_file_and_no_variable(chart: Chart) -> None:
    told = [
        entry["valueFrom"]["secretKeyRef"]["key"]
        for pod in pods_of(chart.render(EVERYTHING))
        for container in pod.containers
        for entry in container.get("env", [])
        if "valueFrom" in entry
    ]
    assert {"url", "key-url", "owner-url"} <= set(told)
    assert not [key for key in told if "password" in key]


@pytest.mark.parametrize("profile", ["production", "air-gapped"])
def test_production_runs_images_by_digest(chart: Chart, profile: str) -> None:
    values = INSTALLATIONS[profile]
    for pod in pods_of(chart.render(values)):
        for container in pod.containers:
            assert re.search(r"@sha256:[0-9a-f]{64}$", container["image"]), pod.name
    without = {**values, "router": {**values["router"], "image": {"digest": ""}}}
    assert "router.image.digest" in chart.refusal(without)


# Secrets

KNOWN_SHAPES = [
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bpodium_[a-z0-9-]+_[0-9a-f]{32,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.",
    r"://[^/\s:@]+:[^/\s@]+@",
]
SECRET_NAMES = re.compile(r"(password|passwd|secret|token|api_?key|private_?key|credential)", re.IGNORECASE)
NO_SECRETS = re.compile(
    r"(_file|_dir|_tokens|_tokens_per_minute|secretname|secretref|name|automount.*)$", re.IGNORECASE
)


def texts(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text with where it stands; YAML and JSON within texts are opened."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(inner, f"{path}.{key}")
        if set(value) >= {"name", "value"}:
            yield f"{path}.{value['name']}", str(value["value"])
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, path)
    elif isinstance(value, str):
        yield path, value
        if path.endswith((".yaml", ".json")):
            yield from texts(yaml.safe_load(value), path)


def entropy_bits(text: str) -> float:
    """Return Shannon's entropy per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def suspects(objects: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what looks like a secret. A digest, of an image or of a tenant's key, is none: it opens nothing."""
    found = []
    for path, text in texts(objects):
        plain = re.sub(r"sha256:\s*['\"]?[0-9a-f]{64}", "", text)
        name = path.rpartition(".")[2]
        if (
            any(re.search(shape, plain) for shape in KNOWN_SHAPES)
            or (SECRET_NAMES.search(name) and not NO_SECRETS.search(name) and text)
            or (
                name != "sha256"
                and any(
                    (re.fullmatch(r"[0-9a-f]+", word) and entropy_bits(word) > 3.0)
                    or entropy_bits(word) > 4.5
                    for word in re.findall(r"[A-Za-z0-9+/=_-]{32,}", plain)
                    if re.search(r"[0-9]", word) and "/" not in word
                )
            )
        ):
            found.append((path, text))
    return found


def test_no_manifest_holds_a_secret(objects: list[dict[str, Any]]) -> None:
    assert [o["metadata"]["name"] for o in objects if o["kind"] == "Secret"] == []
    assert suspects(objects) == []


@pytest.mark.parametrize(
    "planted",
    [
        {"spec": {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}},
        {"data": {"pool.yaml": "workers: [{id: w, api_key: abc}]"}},
        {"data": {"x": "postgresql://podium:hunter2@db/podium"}},
        {"data": {"x": "-----BEGIN EC PRIVATE KEY-----"}},
        {"data": {"x": "sk-proj-0123456789abcdefABCDEF"}},
        {"data": {"x": "4f1c9ab27de0835b6a7c11f0e9d8c2b4a5968712340fedcb"}},
        {"data": {"x": "q8Zt0Lr5Xw2Vn7Bc4Md9Kf6Jh3Gs1AqPzTyUeRi"}},
    ],
)
def test_a_secret_in_a_manifest_would_be_found(planted: dict[str, Any]) -> None:
    assert suspects([json.loads(json.dumps(planted))])


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("gateway", {"env": {"DB_PASSWORD": "hunter2"}}),
        ("audit", {"env": {"DATABASE_URL": "postgresql://podium:hunter2@db/podium"}}),
        ("router", {"env": {"X": "sk-proj-0123456789abcdef"}}),
        ("pool", {"workers": [{"id": "w", "api_key": "abcdef"}]}),
        ("pool", {"workers": [{"id": "w", "aws": {"secret_access_key": "abcdef"}}]}),
        ("tenants", [{"id": "t", "keys": [{"id": "k", "key": f"podium_k_{'0' * 40}"}]}]),
        ("otlp", {"endpoint": "https://user:hunter2@collector:4317"}),
    ],
)
def test_a_value_that_would_show_a_secret_is_refused(chart: Chart, section: str, value: Any) -> None:
    told = chart.refusal({section: value})
    assert f"values under `{section}` hold what looks like" in told
    assert "hunter2" not in told, "a terminal is logged too"
    assert "0123456789abcdef" not in told


def test_what_only_names_a_secret_is_no_secret(chart: Chart) -> None:
    worker = {
        "id": "w",
        "key": {"file": "/etc/podium/provider-keys/w"},
        "aws": {"session_token": {"file": "/etc/podium/provider-keys/t"}},
        "limits": {"max_output_tokens": 10, "tokens_per_minute": 5},
        "base_url": "https://host:8443/v1",
    }
    digest = {"id": "k", "sha256": "0f" * 32}
    values = {
        "pool": {"workers": [worker]},
        "tenants": [{"id": "t", "keys": [digest]}],
        "gateway": {"env": {"SOME_PASSWORD_FILE": "/run/secrets/p"}},
    }
    assert suspects(chart.render(values)) == []


def test_both_helms_render_the_same(chart: Chart) -> None:
    older = Chart(chart.helm.with_name("helm3"))
    assert older.render(EVERYTHING) == chart.render(EVERYTHING)


MANIFESTS = sorted(path for path in (CHART.parents[1] / "k8s").rglob("*.yaml") if path.name != "values.yaml")


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_manifest_that_is_checked_in_holds_a_secret(file: Path) -> None:
    found = [document for document in yaml.safe_load_all(file.read_text()) if document]
    assert found
    assert not [document for document in found if document.get("kind") == "Secret"]
    assert suspects(found) == []
