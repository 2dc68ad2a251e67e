"""Values: what is misspelt or cannot be is refused by name before anything is rendered."""

import re
from typing import Any

import pytest
import yaml
from charts.generate import schema_of, table_of, values_of

from tests.chart.rendering import CHART, LEAST, PROFILES, Chart, profile, with_defaults

Values = dict[str, Any]

UNKNOWN: list[tuple[Values, str]] = [
    ({"replicas": 2}, "replicas"),
    ({"gateway": {"replica": 2}}, "replica"),
    ({"gateway": {"image": {"sha": ""}}}, "sha"),
    ({"audit": {"keys": {"secret": "x"}}}, "secret"),
    ({"audit": {"persistence": {"sizes": "1Gi"}}}, "sizes"),
    ({"conductor": {"model": {"claim": "x"}}}, "claim"),
    ({"conductor": {"resources": {"limit": {}}}}, "limit"),
    ({"database": {"migration": {"enable": True}}}, "enable"),
    ({"database": {"url": "postgresql://u:secret@db/podium"}}, "url"),
    ({"networkPolicy": {"provider": {}}}, "provider"),
    ({"networkPolicy": {"dns": {"port": 53}}}, "port"),
    ({"monitoring": {"rule": {}}}, "rule"),
    ({"tls": {"issuerRef": {"names": "x"}}}, "names"),
    ({"tls": {"secretNames": {"gate": "x"}}}, "gate"),
    ({"providerKeys": {"openai": "sk-123"}}, "openai"),
    ({"pool": {"worker": []}}, "worker"),
    ({"witness": {"names": "x"}}, "names"),
    ({"tests": {"apiKey": "x"}}, "apiKey"),
]

INVALID: list[tuple[Values, str]] = [
    ({"profile": "prod"}, "profile"),
    ({"logLevel": "DEBUG"}, "logLevel"),
    ({"gateway": {"replicas": 0}}, "replicas"),
    ({"gateway": {"replicas": "two"}}, "replicas"),
    ({"gateway": {"image": {"digest": "latest"}}}, "digest"),
    ({"gateway": {"image": {"repository": "Podium Gateway"}}}, "repository"),
    ({"gateway": {"env": {"max-steps": "4"}}}, "max-steps"),
    ({"gateway": {"env": {"MAX_STEPS": [4]}}}, "MAX_STEPS"),
    ({"gateway": {"resources": {"limits": {"memory": "1 GB"}}}}, "memory"),
    ({"gateway": {"podAnnotations": {"a": 1}}}, "podAnnotations"),
    ({"conductor": {"engine": "gpt"}}, "engine"),
    ({"audit": {"persistence": {"size": "many"}}}, "size"),
    ({"audit": {"keys": {"existingSecret": "Not A Name"}}}, "existingSecret"),
    ({"tls": {"mode": "off"}}, "mode"),
    ({"pool": {"source": "git"}}, "source"),
    ({"pool": {"workers": ["gpt"]}}, "workers"),
    ({"otlp": {"endpoint": "collector:4317"}}, "endpoint"),
    ({"networkPolicy": {"providers": {"ports": ["https"]}}}, "ports"),
    ({"autoscaling": {"maxReplicas": "10"}}, "maxReplicas"),
]

IMPOSSIBLE: list[tuple[Values, str]] = [
    ({"audit": {"replicas": 2}}, "database.existingSecret"),
    ({"database": {"existingSecret": "db"}}, "audit.keys.existingSecret"),
    ({"conductor": {"engine": "vllm"}}, "conductor.model.existingClaim"),
    ({"conductor": {"model": {"existingClaim": "a", "volume": {"emptyDir": {}}}}}, "leave one empty"),
    ({"tls": {"mode": "cert-manager"}}, "tls.issuerRef.name"),
    ({"tenants": []}, "podium keys create"),
    ({"pool": {"workers": []}}, "pool.workers"),
    ({"witness": {"enabled": True}}, "witness.name"),
    ({"ingress": {"enabled": True, "host": "podium.example.com"}}, "ingress.tlsSecret"),
]

DIGEST = {"digest": "sha256:" + "1" * 64}
PRODUCTION: Values = {
    "profile": "production",
    "database": {"existingSecret": "db"},
    "audit": {"image": DIGEST, "keys": {"existingSecret": "keys"}},
    "gateway": {"image": DIGEST},
    "conductor": {"image": DIGEST},
    "router": {"image": DIGEST},
    "networkPolicy": {"database": {"peers": [{"podSelector": {}}]}},
}


@pytest.mark.parametrize(("values", "name"), UNKNOWN, ids=str)
def test_an_unknown_value_is_refused_by_name(each_helm: Chart, values: Values, name: str) -> None:
    said = each_helm.refusal(values)
    assert re.search(rf"\b{name}\b", said), said
    assert "secret@db" not in said
    assert "sk-123" not in said


@pytest.mark.parametrize(("values", "name"), INVALID, ids=str)
def test_a_value_that_cannot_be_is_refused_by_name(each_helm: Chart, values: Values, name: str) -> None:
    assert name in each_helm.refusal(values)


@pytest.mark.parametrize(("values", "step"), IMPOSSIBLE, ids=str)
def test_values_that_do_not_fit_together_tell_the_next_step(chart: Chart, values: Values, step: str) -> None:
    assert step in chart.refusal(values)


@pytest.mark.parametrize("component", ["gateway", "conductor", "router", "audit"])
def test_production_wants_each_image_by_digest(chart: Chart, component: str) -> None:
    assert chart.render(PRODUCTION)
    tagged = with_defaults({component: {"image": {"tag": "0.1.0", "digest": ""}}}, PRODUCTION)
    assert f"set {component}.image.digest" in chart.refusal(tagged)


def test_production_keeps_the_log_in_postgresql_and_has_no_demo_workers(chart: Chart) -> None:
    on_a_file = with_defaults({"database": {"existingSecret": ""}}, PRODUCTION)
    assert "database.existingSecret" in chart.refusal(on_a_file)
    assert "demo.enabled=false" in chart.refusal(with_defaults({"demo": {"enabled": True}}, PRODUCTION))


def test_the_defaults_ask_for_an_issuer_and_nothing_they_could_know(chart: Chart) -> None:
    """What somebody meets who installs without any value, one after the other."""
    assert "tls.issuerRef.name" in chart.template({}).stderr
    assert "podium keys create" in chart.template({"tls": {"mode": "secrets"}}).stderr
    assert chart.template(LEAST).returncode == 0


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_lints(each_helm: Chart, name: str) -> None:
    done = each_helm.run(
        ["lint", "--strict", str(CHART), "--values", str(CHART / "profiles" / f"{name}.yaml")]
    )
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout + done.stderr
    assert profile(name)


def test_every_value_has_a_description_and_stands_in_the_readme() -> None:
    text = (CHART / "values.yaml").read_text()
    values = values_of(text)
    table = table_of(values)
    bare = [row for row in table.splitlines() if row.endswith("|  |")]
    assert not bare, bare
    assert table in (CHART / "README.md").read_text(), "run `make chart-docs`"


def test_the_schema_follows_from_the_values() -> None:
    text = (CHART / "values.yaml").read_text()
    schema = schema_of(values_of(text))
    assert yaml.safe_load((CHART / "values.schema.json").read_text()) == schema, "run `make chart-docs`"


def test_no_branch_of_the_schema_takes_what_it_does_not_know() -> None:
    """Objects are open only where the names in them are the cluster's or another file's."""
    open_ones = sorted(_open_branches(yaml.safe_load((CHART / "values.schema.json").read_text()), ""))
    assert {path.rpartition(".")[2] for path in open_ones} <= {"affinity", "gate", "global", "volume"}


def _open_branches(schema: Values, path: str) -> list[str]:
    found = [path] if schema.get("type") == "object" and "additionalProperties" not in schema else []
    for name, inner in schema.get("properties", {}).items():
        found += _open_branches(inner, f"{path}.{name}")
    return found
