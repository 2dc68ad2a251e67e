"""The definitions of Worker, Tenant and Policy: fresh, structural, and refusing what the loaders refuse."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s.generate_crds import PLACES, definitions
from podium_core.domain.errors import PodiumError
from podium_core.resources import specs
from podium_core.resources.objects import Kind, Resource, resource_of
from tests.fakes.crds import CRDS, KINDS, holds, problems, rules, schema_of

DOCS = Path(__file__).resolve().parents[3] / "docs" / "kubernetes.md"
READERS: dict[str, Callable[[Resource], Any]] = {
    "Worker": specs.worker_of,
    "Tenant": specs.tenant_of,
    "Policy": specs.policy_of,
}
DIGEST = "a" * 64
WORKER: dict[str, Any] = {"provider": "openai", "model": "m"}
KEY: dict[str, Any] = {"id": "ci", "sha256": DIGEST, "roles": ["client"]}
NAMED = {"name": "openai"}
AWS = {"access_key_id": NAMED, "secret_access_key": NAMED}
PRICE = {"input_usd_per_mtok": "1.5", "output_usd_per_mtok": "10"}
EMBEDS = {"features": ["embeddings"]}

GOOD: dict[str, list[dict[str, Any]]] = {
    "Worker": [
        WORKER,
        {**WORKER, "provider": "openai-compatible", "base_url": "https://h.example:8443/v1"},
        {**WORKER, "provider": "openai-compatible", "base_url": "http://[::1]:8000"},
        {
            **WORKER,
            "provider": "azure",
            "base_url": "https://x.openai.azure.com",
            "key": NAMED,
            "api_version": "2025",
        },
        {**WORKER, "provider": "anthropic", "key": NAMED},
        {**WORKER, "provider": "vertex", "key": NAMED, "project": "p1", "region": "global"},
        {**WORKER, "provider": "bedrock", "region": "eu-central-1", "aws": AWS},
        {**WORKER, "provider": "bedrock", "region": "eu-central-1", "key": NAMED},
        {**WORKER, "provider": "litellm", "model": "mistral/mistral-small"},
        {**WORKER, "provider": "litellm", "model": "cohere_chat/embed", **EMBEDS},
        {**WORKER, **EMBEDS},
        {
            **WORKER,
            "price": {**PRICE, "cached_input_usd_per_mtok": "0.15", "cache_write_input_usd_per_mtok": "9"},
        },
        {**WORKER, "limits": {"hedge_after_s": 0.5, "hedge_learned": False, "max_concurrency": 4}},
        {
            **WORKER,
            "card": {"skills": [{"name": "maths", "accuracy": "0.9", "n": 20, "measured_on": "2026-11-30"}]},
        },
    ],
    "Tenant": [
        {},
        {"keys": [KEY, {**KEY, "id": "b", "expires": "2028-02-29", "roles": ["operator", "auditor"]}]},
        {"keys": [{**KEY, "previous": [{"sha256": DIGEST, "until": "2027-01-31T12:00:00Z"}]}]},
        {"warn_at_percent": [50, 80, 100], "budget_usd_per_month": "250"},
        {"warn_at_percent": []},
        {"retention": {"evidence_days": 184, "content_days": 184, "conversation_days": 30}},
        {"otlp_senders": ["billing"], "regions": {"only": ["eu"]}, "workers": {"except": ["x"]}},
    ],
    "Policy": [{"regions": {"only": ["eu"]}}, {"tenants": ["acme"], "providers": {"except": ["openai"]}}],
}

BAD: dict[str, list[tuple[dict[str, Any], str]]] = {
    "Worker": [
        ({**WORKER, "provider": "openai-compatible"}, "base_url is required"),
        ({**WORKER, "provider": "azure", "base_url": "https://h"}, "key is required"),
        ({**WORKER, "provider": "anthropic"}, "key is required"),
        ({**WORKER, "api_version": "2025"}, "api_version is for provider azure only"),
        ({**WORKER, "project": "p1"}, "project is for provider vertex only"),
        ({**WORKER, "aws": AWS}, "aws is for provider bedrock only"),
        ({**WORKER, "provider": "bedrock", "key": NAMED}, "region is required"),
        ({**WORKER, "provider": "bedrock", "region": "eu"}, "needs either key"),
        ({**WORKER, "provider": "bedrock", "region": "eu", "aws": AWS, "key": NAMED}, "needs either key"),
        ({**WORKER, "provider": "vertex", "key": NAMED, "region": "eu"}, "needs project and region"),
        (
            {**WORKER, "provider": "vertex", "key": NAMED, "project": "p1", "region": ""},
            "needs project and region",
        ),
        ({**WORKER, "provider": "litellm", "model": "gpt"}, "must look like PREFIX/MODEL"),
        ({**WORKER, "provider": "litellm", "model": "mistral/"}, "must look like PREFIX/MODEL"),
        ({**WORKER, "provider": "anthropic", "key": NAMED, **EMBEDS}, "make no embeddings"),
        ({**WORKER, "provider": "litellm", "model": "mistral/m", **EMBEDS}, "only with the prefixes"),
        ({**WORKER, "price": {**PRICE, "cached_input_usd_per_mtok": "1.6"}}, "may not be above"),
        ({**WORKER, "price": {**PRICE, "cache_write_input_usd_per_mtok": "1.4"}}, "may not be below"),
        ({**WORKER, "price": {**PRICE, "input_usd_per_mtok": 1.5}}, "is not of type 'string'"),
        (
            {**WORKER, "limits": {"hedge_after_s": 1, "hedge_learned": True}},
            "either hedge_after_s or hedge_learned",
        ),
        ({**WORKER, "limits": {"timeout_s": 0}}, "0"),
        ({**WORKER, "key": {"env": "OPENAI_KEY"}}, "'name' is a required property"),
        ({**WORKER, "key": {"name": "../../other"}}, "does not match"),
        (
            {
                **WORKER,
                "card": {"skills": [{"name": "a", "accuracy": "1.1", "n": 1, "measured_on": "2026-01-01"}]},
            },
            "1.1",
        ),
        ({**WORKER, "pricing": PRICE}, "unknown field"),
        ({**WORKER, "base_url": "https://user@h/v1?x=1"}, "does not match"),
    ],
    "Tenant": [
        ({"keys": [{**KEY, "roles": ["operator", "privacy"]}]}, "no key may hold two"),
        ({"keys": [{**KEY, "roles": []}]}, ""),
        ({"keys": [KEY, KEY]}, "Duplicate value of id"),
        ({"keys": [{**KEY, "expires": "2027-02-31"}]}, "no such day"),
        ({"keys": [{**KEY, "previous": [{"sha256": DIGEST, "until": "2027-02-31"}]}]}, "no such day"),
        ({"keys": [{**KEY, "sha256": "podium_ci_secret"}]}, "does not match"),
        ({"warn_at_percent": [80, 50]}, "ascending"),
        ({"warn_at_percent": [80, 80]}, "ascending"),
        ({"retention": {"evidence_days": 183}}, "184 days at least"),
        ({"retention": {"evidence_days": 200, "content_days": 201}}, "content_days may not be more"),
        ({"otlp_senders": ["gateway"]}, "Podium's own services"),
        ({"regions": {"only": []}}, ""),
    ],
    "Policy": [
        ({"tenants": ["acme"]}, "changes nothing"),
        ({"regions": {"only": []}}, ""),
        ({"tenants": [], "regions": {"only": ["eu"]}}, ""),
    ],
}


def resource(kind: str, spec: dict[str, Any], name: str = "it") -> dict[str, Any]:
    return {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": deepcopy(spec),
    }


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.parts[-2])
def test_the_definitions_in_both_places_are_fresh(place: Any) -> None:
    assert {path.name: path.read_text() for path in place.iterdir()} == definitions(), "run 'make crds'"


@pytest.mark.parametrize(("kind", "spec"), [(kind, spec) for kind, specs in GOOD.items() for spec in specs])
def test_a_good_object_is_taken(kind: str, spec: dict[str, Any]) -> None:
    assert problems(kind, resource(kind, spec)) == []


@pytest.mark.parametrize(
    ("kind", "spec", "message"), [(kind, spec, why) for kind, specs in BAD.items() for spec, why in specs]
)
def test_a_bad_object_is_refused_and_told_why(kind: str, spec: dict[str, Any], message: str) -> None:
    found = problems(kind, resource(kind, spec))
    assert found
    assert any(message in each for each in found), found


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_longer_than_an_id_is_refused(kind: str) -> None:
    spec = GOOD[kind][0]
    assert problems(kind, resource(kind, spec, "n" * 64)) == []
    assert "at most 64" in problems(kind, resource(kind, spec, "n" * 65))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_refuses_something_and_lets_something_pass(kind: str) -> None:
    """A rule that holds for every object here, or for none, is not tried at all."""
    things = [resource(kind, spec) for spec in GOOD[kind]] + [resource(kind, spec) for spec, _ in BAD[kind]]
    things += [resource(kind, GOOD[kind][0], "n" * 65)]
    for path, rule in rules(schema_of(kind)):
        outcomes = {holds(rule["rule"], value) for thing in things for value in _values(thing, path)}
        assert outcomes == {True, False}, rule


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_structural_and_bounded(kind: str) -> None:
    definition = yaml.safe_load((CRDS / f"{KINDS[kind]}.yaml").read_text())
    assert definition["spec"].get("preserveUnknownFields", False) is False
    assert definition["spec"]["versions"][0]["subresources"] == {"status": {}}
    for path, node in _nodes(schema_of(kind)):
        assert not {"$ref", "anyOf", "oneOf", "allOf", "not", "additionalProperties"} & node.keys(), path
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        assert node["type"] in {"object", "array", "string", "integer", "number", "boolean"}, path
        if node["type"] == "array":
            assert node["maxItems"] <= 400, path
        if node["type"] == "object" and path != ("metadata",):
            assert node["properties"], path
        if node["type"] == "string" and path[:1] in {("spec",), ("status",)}:
            assert "enum" in node or node["maxLength"] <= 4096, path


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_stands_under_many_items(kind: str) -> None:
    """An API server multiplies a rule's cost by the bounds of the lists it stands under, and refuses dear ones."""
    bounds = {path: node.get("maxItems", 1) for path, node in _nodes(schema_of(kind))}
    for path, rule in rules(schema_of(kind)):
        times = 1
        for end, part in enumerate(path):
            times *= bounds[path[:end]] if part == "*" else 1
        assert times * len(rule["rule"]) < 200_000, rule


def test_what_the_server_takes_the_services_take_too() -> None:
    """The schema says what the loaders say: a good object is in force, and a bad one would not be."""
    for kind, read in READERS.items():
        for number, spec in enumerate(GOOD[kind]):
            read(_read(resource(kind, spec, f"w{number}")))
        for spec, why in BAD[kind]:
            with pytest.raises(PodiumError):
                assert read(_read(resource(kind, spec))) is None, why


def test_the_examples_of_the_documentation_are_good() -> None:
    text = DOCS.read_text(encoding="utf-8")
    things = [
        thing
        for block in re.findall(r"```yaml\n(apiVersion: podium.dev/.*?)```", text, re.DOTALL)
        for thing in yaml.safe_load_all(block)
    ]
    assert {thing["kind"] for thing in things} == set(KINDS)
    for thing in things:
        assert problems(thing["kind"], thing) == []
        READERS[thing["kind"]](_read(thing))


def _read(thing: dict[str, Any]) -> Resource:
    metadata = {**thing["metadata"], "uid": "u", "resourceVersion": "1", "generation": 1}
    return resource_of(Kind(thing["kind"], KINDS[thing["kind"]]), {**thing, "metadata": metadata})


def _values(value: Any, path: tuple[str, ...]) -> list[Any]:
    if not path:
        return [value]
    if path[0] == "*":
        return [found for each in value for found in _values(each, path[1:])]
    return _values(value[path[0]], path[1:]) if path[0] in value else []


def _nodes(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    found = [(path, schema)]
    for name, each in schema.get("properties", {}).items():
        found += _nodes(each, (*path, name))
    return found + (_nodes(schema["items"], (*path, "*")) if "items" in schema else [])
