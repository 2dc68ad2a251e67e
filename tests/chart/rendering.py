"""The chart as Helm renders it. Needs the tools of `make chart`."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "podium"
TOOLS = Path(os.environ.get("PODIUM_TEST_K8S_TOOLS", "/nonexistent"))
PROFILES = sorted(path.stem for path in (CHART / "profiles").glob("*.yaml"))
NOBODY = {"id": "alice", "sha256": "0" * 64, "roles": ["client"]}
WORKER = {"id": "w", "provider": "openai-compatible", "model": "m", "base_url": "http://m.models.svc:8000/v1"}
LEAST: Mapping[str, Any] = {
    "tls": {"mode": "secrets"},
    "tenants": [{"id": "research", "keys": [NOBODY]}],
    "pool": {"workers": [WORKER]},
}
"""The values without which the chart installs nothing."""


def profile(name: str) -> dict[str, Any]:
    """Return the values of a profile that the chart brings."""
    found: dict[str, Any] = yaml.safe_load((CHART / "profiles" / f"{name}.yaml").read_text())
    return found


def _least_for(values: Mapping[str, Any]) -> Mapping[str, Any]:
    from_objects = values.get("pool", {}).get("source") == "resources"
    return {"tls": LEAST["tls"]} if from_objects or "existingConfigMap" in values else LEAST


def with_defaults(values: Mapping[str, Any], defaults: Mapping[str, Any] = LEAST) -> dict[str, Any]:
    """Return values laid over others, as Helm lays one file over another."""
    merged = dict(defaults)
    for key, value in values.items():
        below = merged.get(key)
        is_deep = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = with_defaults(value, below) if is_deep and below is not None else value
    return merged


PEERS: dict[str, Any] = {"peers": [{"namespaceSelector": {}}]}
EVERYTHING: dict[str, Any] = {
    "conductor": {"engine": "vllm", "model": {"existingClaim": "models"}},
    "audit": {
        "spans": {"enabled": True},
        "witnessesConfigMap": "witnesses",
        "keys": {"existingSecret": "keys"},
    },
    "database": {"existingSecret": "db", "hasCa": True},
    "providerKeys": {"existingSecret": "provider-keys"},
    "witness": {"enabled": True, "name": "w.example/1", "logsConfigMap": "logs"},
    "demo": {"enabled": True},
    "otlp": {"endpoint": "https://collector:4317"},
    "autoscaling": {"enabled": True},
    "ingress": {"enabled": True, "host": "podium.example", "tlsSecret": "podium-example"},
    "tests": {"apiKeySecret": "key"},
    "monitoring": {
        "serviceMonitor": {"enabled": True},
        "rules": {"enabled": True},
        "dashboard": {"enabled": True},
    },
    "networkPolicy": dict.fromkeys(("database", "ingressController", "otlpCollector", "prometheus"), PEERS),
}
"""Values of an installation that has every part."""


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart under one Helm."""

    helm: Path

    def render(
        self, values: Mapping[str, Any], release: str = "podium", kube: str = "1.37.0"
    ) -> list[dict[str, Any]]:
        """Return every object of the release in the namespace `podium`."""
        done = self.template(with_defaults(values, _least_for(values)), release, kube)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    def refusal(self, values: Mapping[str, Any]) -> str:
        """Return what Helm says when it refuses `values`."""
        done = self.template(with_defaults(values, _least_for(values)))
        assert done.returncode == 1, "these values were taken"
        return done.stderr

    def template(
        self, values: Mapping[str, Any], release: str = "podium", kube: str = "1.37.0"
    ) -> "subprocess.CompletedProcess[str]":
        """Return what Helm makes of exactly these values."""
        return self.run(
            ["template", release, str(CHART), "--kube-version", kube, "--values", "-"], json.dumps(values)
        )

    def run(self, arguments: list[str], text: str = "") -> "subprocess.CompletedProcess[str]":
        """Run Helm in the namespace `podium`, `text` on its standard input."""
        return subprocess.run(
            [str(self.helm), *arguments, "--namespace", "podium"],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
