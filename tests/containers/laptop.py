"""The laptop profile, as Helm renders it, on podman: each pod as its chart's template says, under its Service's name."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from podium_cli.local_ca import create_local_ca, service_files
from podium_core.config.tenants import new_key
from tests.containers.podman import ROOT, podman
from tests.fakes.waiting import PATIENCE_S, SOON_S

USER = 10001
ORDER = ("demo", "audit", "router", "conductor", "gateway")


@dataclass(slots=True)
class Laptop:
    """One installation. Podman 4 knows no StatefulSet, does not decode Secrets that are volumes and opens every
    containerPort on the host, so `_played` changes just that; the rest of a pod is what the chart renders."""

    home: Path
    network: str
    helm: Path
    api_key: str = ""
    documents: list[dict[str, Any]] = field(default_factory=list)

    def prepare(self) -> None:
        """Make certificates and a tenant, and render the chart with them."""
        create_local_ca(self.home / "tls", ORDER)
        for service in ORDER:
            self._write_secret(service)
        self.api_key, digest = new_key("laptop")
        key = {"id": "laptop", "sha256": digest, "roles": ["client", "auditor"]}
        own = {
            "image": {"registry": "localhost", "pullPolicy": "Never"},
            "gateway": {
                "env": {"MAX_ATTEMPTS_PER_STEP": "1"}
            },  # each waits for a router that cannot be reached
            "tenants": [{"id": "demo", "budget_usd_per_month": "100.00", "keys": [key]}],
        }
        values = self.home / "values.yaml"
        values.write_text(json.dumps(own))
        done = subprocess.run(
            [self.helm, "template", "podium", ROOT / "charts/podium", "--namespace", "podium",
             "--kube-version", "1.37.0", "--values", ROOT / "charts/podium/profiles/laptop.yaml", "--values", values],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.documents = [each for each in yaml.safe_load_all(done.stdout) if each]

    def play(self, *names: str) -> None:
        """Start pods, one for each workload, under the name that the chart's settings call it by."""
        configuration = [each for each in self.documents if each["kind"] == "ConfigMap"]
        for name in names or ORDER:
            file = self.home / f"{name}.yaml"
            file.write_text(yaml.safe_dump_all([*configuration, *self._played(name)]))
            alias = f"alias=podium-{name}.podium.svc,alias=podium-{name}"
            podman("kube", "play", "--network", f"{self.network}:{alias}", str(file))

    def replace(self, name: str) -> None:
        """Take a pod away, and start another one in its place."""
        podman("pod", "rm", "--force", "--time=0", f"podium-{name}")
        self.play(name)

    def url(self, name: str, port: int) -> str:
        """Return where a pod listens, for this machine."""
        shown = json.loads(podman("pod", "inspect", f"podium-{name}").stdout)
        infra = json.loads(podman("inspect", shown["InfraContainerID"]).stdout)[0]
        return f"http://{infra['NetworkSettings']['Networks'][self.network]['IPAddress']}:{port}"

    def wait_ready(self, *names: str, probe: str = "readyz") -> None:
        """Wait until the named services answer a probe, as the kubelet would hear it."""
        deadline = time.monotonic() + 2 * PATIENCE_S
        for name in names:
            url = f"{self.url(name, 9464)}/{probe}"
            while not _is_ready(url):
                assert time.monotonic() < deadline, f"{name}: {self.log_of(name)}"
                time.sleep(0.2)

    def log_of(self, name: str) -> str:
        """Return the end of a pod's log."""
        told = podman("logs", "--tail=40", f"podium-{name}-{name}", check=False)
        return told.stdout + told.stderr

    def remove(self) -> None:
        """Remove every pod and volume of this installation."""
        podman(
            "pod", "rm", "--force", "--ignore", "--time=0", *(f"podium-{name}" for name in ORDER), check=False
        )
        for name in ("podium-audit-data", "podium-audit-keys", "podium-config", "tmp"):
            podman("volume", "rm", "--force", name, check=False)

    def _played(self, name: str) -> list[dict[str, Any]]:
        (workload,) = [
            each
            for each in self.documents
            if each["kind"] in {"Deployment", "StatefulSet"} and each["metadata"]["name"] == f"podium-{name}"
        ]
        template = workload["spec"]["template"]
        spec = template["spec"]
        volumes = spec.setdefault("volumes", [])
        for container in spec["containers"]:
            for field_name in ("ports", "startupProbe", "livenessProbe", "readinessProbe"):
                container.pop(field_name, None)
        for volume in volumes:
            if "secret" in volume:
                secret = volume.pop("secret")
                volume["hostPath"] = {"path": str(self.home / secret["secretName"]), "type": "Directory"}
        claims = []
        for claim in workload["spec"].get("volumeClaimTemplates", []):
            claim_name = f"podium-{name}-{claim['metadata']['name']}"
            owner = {"volume.podman.io/uid": str(USER), "volume.podman.io/gid": str(USER)}  # as fsGroup would
            about = {"name": claim_name, "annotations": owner}
            claims.append({**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about})
            volumes.append(
                {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}}
            )
        about = {"name": f"podium-{name}", "labels": template["metadata"]["labels"]}
        return [*claims, {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}]

    def _write_secret(self, service: str) -> None:
        files = service_files(self.home / "tls", service)
        directory = self.home / f"podium-{service}-tls"
        directory.mkdir()
        named = {"tls.crt": files.cert_file, "tls.key": files.key_file, "ca.crt": files.ca_file}
        for name, source in named.items():
            (directory / name).write_bytes(source.read_bytes())
            (directory / name).chmod(0o444)


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=SOON_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def running(laptop: Laptop) -> Iterator[Laptop]:
    """Run everything inside the block."""
    laptop.remove()
    laptop.prepare()
    try:
        laptop.play()
        laptop.wait_ready("audit", "router", "conductor", "gateway")
        yield laptop
    finally:
        laptop.remove()
