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

    def render(self, values: Mapping[str, Any], release: str = "podium") -> list[dict[str, Any]]:
        """Return every object of the release in the namespace `podium`."""
        done = self._template(values, release)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    def refusal(self, values: Mapping[str, Any]) -> str:
        """Return what Helm says when it refuses `values`."""
        done = self._template(values, "podium")
        assert done.returncode != 0, "these values were taken"
        return done.stderr

    def _template(self, values: Mapping[str, Any], release: str) -> "subprocess.CompletedProcess[str]":
        options = [
            "--namespace",
            "podium",
            "--kube-version",
            "1.37.0",
            "--set",
            "tls.mode=secrets",
            "--values",
            "-",
        ]
        return subprocess.run(
            [str(self.helm), "template", release, str(CHART), *options],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
