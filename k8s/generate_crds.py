# ruff: noqa: INP001 - a script, not a package
"""Writes the definitions of Worker, Tenant and Policy from the models that read pool.yaml and tenants.yaml.

`make crds` runs it; a test fails when a definition is stale. The chart installs the same bytes.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from k8s import cel_rules  # noqa: E402 - needs the path above
from k8s.structural import described, structural  # noqa: E402
from podium_core.config.tenant_sections import PolicySection, TenantSection  # noqa: E402
from podium_core.config.worker_sections import WorkerSection  # noqa: E402

GROUP = "podium.dev"
VERSION = "v1alpha1"
PLACES = (ROOT / "k8s" / "crds", ROOT / "charts" / "podium" / "crds")
_HEADER = "# Generated from src/podium_core/config by `make crds`.\n"

Schema = dict[str, Any]

NAMED_KEY: Schema = {
    "description": "A key of the Secret that holds all provider keys; the router has it mounted.",
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "maxLength": 253, "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$"}},
}
_TIME: Schema = {"type": "string", "format": "date-time", "maxLength": 64}
_CONDITIONS: Schema = {
    "type": "array",
    "maxItems": 8,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": {"type": "string", "maxLength": 64},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "reason": {"type": "string", "maxLength": 64, "pattern": "^[A-Za-z]+$"},
            "message": {"type": "string", "maxLength": 4096},
            "lastTransitionTime": _TIME,
        },
    },
}
_STATUS: Schema = {
    "description": "What Podium makes of the object; written by its services.",
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "conditions": _CONDITIONS,
    },
}
_WORKER_STATUS: Schema = described(
    _STATUS,
    {
        "health": {
            "description": "As the router finds it: paused by its provider, down after failures, or keyless.",
            "type": "string",
            "enum": ["up", "paused", "down", "unconfigured"],
        },
        "lastCalibration": {
            "description": "The newest day on its card.",
            "type": "string",
            "format": "date",
            "maxLength": 10,
        },
    },
)


def _accepted() -> dict[str, str]:
    return {
        "name": "Accepted",
        "type": "string",
        "jsonPath": '.status.conditions[?(@.type=="Accepted")].status',
    }


def _column(name: str, path: str, **more: object) -> dict[str, object]:
    return {"name": name, "type": "string", "jsonPath": path, **more}


_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_COLUMNS: dict[str, list[Mapping[str, object]]] = {
    "Worker": [
        _column("Provider", ".spec.provider"),
        _column("Model", ".spec.model"),
        _column("Region", ".spec.region"),
        _column("Healthy", '.status.conditions[?(@.type=="Ready")].status'),
        _column("Calibrated", ".status.lastCalibration"),
        _column("Health", ".status.health", priority=1),
        _accepted() | {"priority": 1},
        _AGE,
    ],
    "Tenant": [
        _column("Budget", ".spec.budget_usd_per_month"),
        _column("Content", ".spec.content"),
        _accepted(),
        _AGE,
    ],
    "Policy": [_column("Tenants", ".spec.tenants"), _accepted(), _AGE],
}


def definitions() -> dict[str, str]:
    """Return the text of each definition by the name of its file."""
    worker = structural(WorkerSection, without=("id",), instead={"KeySection": NAMED_KEY})
    tenant = structural(TenantSection, without=("id",))
    policy = structural(PolicySection)
    return {
        "workers.yaml": _text("Worker", "workers", worker, _WORKER_STATUS, cel_rules.WORKER),
        "tenants.yaml": _text("Tenant", "tenants", tenant, _STATUS, cel_rules.TENANT),
        "policies.yaml": _text("Policy", "policies", policy, _STATUS, cel_rules.POLICY),
    }


def _text(
    kind: str,
    plural: str,
    spec: Schema,
    status: Schema,
    rules: Mapping[cel_rules.Path, tuple[cel_rules.Rule, ...]],
) -> str:
    schema: Schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    for place, found in rules.items():
        _at(schema, place)["x-kubernetes-validations"] = [
            {"rule": rule.rule, "message": rule.message} for rule in found
        ]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "categories": ["podium"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _COLUMNS[kind],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    return _HEADER + yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


def _at(schema: Schema, place: cel_rules.Path) -> Schema:
    for part in place:
        schema = schema["items"] if part == "*" else schema["properties"][part]
    return schema


class _Dumper(yaml.SafeDumper):
    """Writes everything out: the API server takes no anchors for granted, and neither do readers."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the library's interface
        return True


if __name__ == "__main__":
    for place in PLACES:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in definitions().items():
            (place / name).write_text(text, encoding="utf-8")
