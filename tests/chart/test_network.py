"""Who can reach whom, port by port: exactly the flows of the design's table, and each optional one only when asked."""

import random
from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

import pytest

from tests.chart.network import SERVICE_FLOWS, Flow, Place, Port, matches, open_ports
from tests.chart.pods import pods_of
from tests.chart.rendering import EVERYTHING, Chart

NAMESPACE = "podium"
PORTS: list[Port] = [
    ("UDP", 53),
    *(
        ("TCP", n)
        for n in (22, 53, 80, 443, 4317, 4318, 5432, 6443, 7051, 7052, 7053, 7061, 8000, 8080, 8081, 9464)
    ),
]
SERVICES = ("gateway", "conductor", "router", "audit")


def own(component: str, number: int) -> Place:
    labels = {"app.kubernetes.io/name": "podium", "app.kubernetes.io/instance": "podium"}
    return Place(
        component, f"10.1.0.{number}", NAMESPACE, {**labels, "app.kubernetes.io/component": component}
    )


def pod(name: str, number: int, namespace: str = "", **labels: str) -> Place:
    return Place(name, f"10.1.1.{number}", namespace or name, {"app": name, **labels})


PODS = [own(name, n) for n, name in enumerate((*SERVICES, "witness", "demo", "migration", "test"), 1)]
OTHERS = [
    pod("neighbour", 1, NAMESPACE),
    Place("other-release", "10.1.1.2", NAMESPACE, {**PODS[0].labels, "app.kubernetes.io/instance": "other"}),
    pod("stranger", 3),
    Place("client", "10.1.1.4", "apps", {"podium.dev/client": "true"}),
    pod("ingress", 5),
    pod("prometheus", 6),
    pod("collector", 7),
    pod("sender", 8),
    pod("siem", 9),
    pod("database", 10),
    pod("model", 11),
    pod("trainer", 12),
    Place("dns", "10.1.1.13", "kube-system", {"k8s-app": "kube-dns"}),
    pod("kube-system-pod", 14, "kube-system"),
    Place("provider", "203.0.113.7"),
    Place("provider-v6", "2001:db8::7"),
    Place("private-model", "10.9.0.4"),
    Place("issuer", "198.51.100.1"),
    Place("api-server", "172.20.0.1"),
    Place("cosigner", "198.51.100.2"),
    Place("authority", "198.51.100.3"),
    Place("worm", "198.51.100.4"),
    Place("metadata", "169.254.169.254"),
    Place("metadata-v6", "fd00:ec2::254"),
    Place("metadata-google-v6", "fd20:ce::254"),
    Place("metadata-azure", "168.63.129.16"),
    Place("metadata-alibaba", "100.100.100.200"),
    Place("metadata-oracle", "192.0.0.192"),
    Place("link-local", "169.254.1.1"),
]
ANYWHERE = ("provider", "provider-v6", "issuer", "cosigner", "authority", "worm")
"""Public addresses: the router may reach providers, whoever they are."""


def to(name: str) -> dict[str, Any]:
    place = next(place for place in OTHERS if place.name == name)
    if place.namespace:
        selector = {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}}
        return {"namespaceSelector": selector, "podSelector": {"matchLabels": dict(place.labels)}}
    return {"ipBlock": {"cidr": f"{place.address}/32"}}


ALWAYS: set[Flow] = {
    *SERVICE_FLOWS,
    ("test", "gateway", 8080),
    ("client", "gateway", 8080),
    *(("router", provider, 443) for provider in ANYWHERE),
    *((place.name, "dns", 53) for place in PODS),
}
SWITCHES: dict[str, tuple[dict[str, Any], set[Flow]]] = {
    "ingressController": ({"peers": [to("ingress")]}, {("ingress", "gateway", 8080)}),
    "readers": ({"peers": [to("siem")]}, {("siem", "audit", 8081)}),
    "prometheus": ({"peers": [to("prometheus")]}, {("prometheus", name, 9464) for name in SERVICES}),
    "otlpCollector": ({"peers": [to("collector")]}, {(name, "collector", 4317) for name in SERVICES}),
    "spanSenders": ({"peers": [to("sender")]}, {("sender", "audit", 4317), ("sender", "audit", 4318)}),
    "workers": (
        {"peers": [to("model"), {"ipBlock": {"cidr": "10.9.0.0/16"}}]},
        {("router", "model", 8000), ("router", "private-model", 8000)},
    ),
    "database": (
        {"peers": [to("database")]},
        {("audit", "database", 5432), ("migration", "database", 5432)},
    ),
    "oidcIssuer": ({"peers": [to("issuer")]}, {("gateway", "issuer", 443), ("audit", "issuer", 443)}),
    "kubernetesApi": (
        {"peers": [to("api-server")]},
        {(name, "api-server", n) for name in ("gateway", "router", "audit") for n in (443, 6443)},
    ),
    "witnesses": ({"peers": [to("cosigner")]}, {("audit", "cosigner", 443)}),
    "timeStampAuthority": ({"peers": [to("authority")]}, {("audit", "authority", 443)}),
    "wormStorage": ({"peers": [to("worm")]}, {("audit", "worm", 443)}),
    "trainers": ({"peers": [to("trainer")]}, {("trainer", "router", 7052), ("trainer", "audit", 7053)}),
}
ALL_SWITCHES = {name: value for name, (value, _) in SWITCHES.items()}


def flows(chart: Chart, values: Mapping[str, Any]) -> set[Flow]:
    """Return every flow that has one end in the release and can pass."""
    policies = [o for o in chart.render(values) if o["kind"] == "NetworkPolicy"]
    places = [*PODS, *OTHERS]
    found = {
        (source.name, target.name, port)
        for source in places
        for target in places
        if source in PODS or target in PODS  # with itself: another replica of it
        for port in open_ports(policies, source, target, PORTS)
    }
    by_udp = {(source, target) for source, target, (protocol, _) in found if protocol == "UDP"}
    assert by_udp == {(place.name, "dns") for place in PODS}, "names are asked for at the cluster's DNS only"
    return {(source, target, number) for source, target, (protocol, number) in found if protocol == "TCP"}


def test_by_default_only_the_flows_of_the_table_pass(chart: Chart) -> None:
    assert flows(chart, {}) == ALWAYS


@pytest.mark.parametrize("switch", SWITCHES)
def test_an_optional_flow_passes_only_when_it_is_asked_for(chart: Chart, switch: str) -> None:
    value, opened = SWITCHES[switch]
    assert not opened & ALWAYS
    assert flows(chart, {"networkPolicy": {switch: value}}) == ALWAYS | opened


def test_all_optional_flows_together_open_nothing_more(chart: Chart) -> None:
    opened = set[Flow]().union(*(flows for _, flows in SWITCHES.values()))
    assert flows(chart, {"networkPolicy": ALL_SWITCHES}) == ALWAYS | opened


def test_a_conductor_that_asks_a_worker_may_call_the_router(chart: Chart) -> None:
    values = {"conductor": {"engine": "worker"}}
    assert flows(chart, values) == ALWAYS | {("conductor", "router", 7052)}


def test_a_witness_of_the_release_is_asked_by_audit(chart: Chart) -> None:
    witness = {"enabled": True, "name": "w.example/1", "logsConfigMap": "logs"}
    values = {"witness": witness, "audit": {"witnessesConfigMap": "witnesses"}}
    assert flows(chart, values) == ALWAYS | {("audit", "witness", 7061)}


def test_demo_workers_are_reached_by_the_router_alone(chart: Chart) -> None:
    assert flows(chart, {"demo": {"enabled": True}}) == ALWAYS | {("router", "demo", 8000)}


def test_spans_go_to_the_release_s_own_audit_when_asked(chart: Chart) -> None:
    spans = {(name, "audit", 4317) for name in SERVICES}
    values = {"networkPolicy": {"spansToAudit": True}, "audit": {"spans": {"enabled": True}}}
    assert flows(chart, values) == ALWAYS | spans


def test_an_installation_without_clients_and_providers_is_shut(chart: Chart) -> None:
    values: dict[str, Any] = {"networkPolicy": {"clients": {"peers": []}, "providers": {"peers": []}}}
    outside = {place.name for place in OTHERS if place.name != "dns"}
    assert flows(chart, values) == {flow for flow in ALWAYS if not outside & set(flow[:2])}


METADATA = [place for place in OTHERS if place.name.startswith("metadata")]


@pytest.mark.parametrize(
    ("switch", "block"),
    [
        *((name, "0.0.0.0/0") for name in (*SWITCHES, "providers")),
        *(("workers", block) for block in ("128.0.0.0/1", "96.0.0.0/3", "169.0.0.0/8", "168.63.129.0/24")),
        ("workers", "::/0"),
    ],
)
def test_no_block_reaches_the_metadata_service(chart: Chart, switch: str, block: str) -> None:
    values: dict[str, Any] = {"networkPolicy": {switch: {"peers": [{"ipBlock": {"cidr": block}}]}}}
    policies = [o for o in chart.render(values) if o["kind"] == "NetworkPolicy"]
    for source in PODS:
        for target in METADATA:
            assert not open_ports(policies, source, target, PORTS), (source.name, target.name)


def test_blocks_of_any_size_leave_out_exactly_what_they_hold_of_the_metadata_addresses(chart: Chart) -> None:
    drawn = random.Random(7)
    kept_out = [IPv4Network(f"{place.address}/32") for place in METADATA if ":" not in place.address]
    kept_out[0] = kept_out[0].supernet(new_prefix=16)
    near = [IPv4Network((int(place[0]), bits), strict=False) for place in kept_out for bits in range(1, 33)]
    far = [IPv4Network((drawn.getrandbits(32), drawn.randint(0, 32)), strict=False) for _ in range(300)]
    blocks = [str(block) for block in near + far if not any(block.subnet_of(place) for place in kept_out)]
    values = {"networkPolicy": {"workers": {"peers": [{"ipBlock": {"cidr": block}} for block in blocks]}}}
    (policy,) = [o for o in chart.render(values) if o["metadata"]["name"] == "podium-workers"]
    peers = policy["spec"]["egress"][0]["to"]
    assert [peer["ipBlock"]["cidr"] for peer in peers] == blocks
    for peer in peers:
        block = IPv4Network(peer["ipBlock"]["cidr"])
        left_out = {IPv4Network(inner) for inner in peer["ipBlock"].get("except", [])}
        assert left_out == {place for place in kept_out if place.subnet_of(block)}, block


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ("169.254.169.254/32", "lies in 169.254.0.0/16"),
        ("169.254.0.0/16", "lies in 169.254.0.0/16"),
        ("168.63.129.16/32", "metadata"),
        ("fd00:ec2::254/128", "metadata address"),
        ("fd00:0ec2::/64", "metadata address"),
        ("fd20:ce::/64", "metadata address"),
        ("fd00::/8", "too wide"),
        ("fc00::/7", "too wide"),
        ("fe80::/10", "too wide"),
        ("::/1", "too wide"),
    ],
)
def test_a_block_of_the_metadata_service_is_refused_by_name(chart: Chart, block: str, says: str) -> None:
    values = {"networkPolicy": {"workers": {"peers": [{"ipBlock": {"cidr": block}}]}}}
    told = chart.refusal(values)
    assert says in told
    assert f"networkPolicy.workers: {block}" in told


def test_node_local_dns_is_reached_and_is_not_the_metadata_service(chart: Chart) -> None:
    values = {"networkPolicy": {"dns": {"nodeLocalAddress": "169.254.20.10"}}}
    policies = [o for o in chart.render(values) if o["kind"] == "NetworkPolicy"]
    cache = Place("cache", "169.254.20.10")
    assert open_ports(policies, PODS[0], cache, PORTS) == {("TCP", 53), ("UDP", 53)}
    assert "metadata" in chart.refusal({"networkPolicy": {"dns": {"nodeLocalAddress": "169.254.169.254"}}})


def test_dns_on_another_port_is_reached_there_alone(chart: Chart) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}
    policies = [
        o
        for o in chart.render({"networkPolicy": {"dns": {"peers": [peer], "ports": [5353]}}})
        if o["kind"] == "NetworkPolicy"
    ]
    resolver = Place("resolver", "10.1.1.99", "openshift-dns")
    every = [*PORTS, ("TCP", 5353), ("UDP", 5353)]
    assert open_ports(policies, PODS[0], resolver, every) == {("TCP", 5353), ("UDP", 5353)}
    assert not open_ports(policies, PODS[0], next(p for p in OTHERS if p.name == "dns"), every)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (
            {"database": {"existingSecret": "db"}, "audit": {"keys": {"existingSecret": "keys"}}},
            "networkPolicy.database.peers",
        ),
        ({"pool": {"source": "resources"}}, "networkPolicy.kubernetesApi.peers"),
        (
            {"ingress": {"enabled": True, "host": "podium.example.com", "tlsSecret": "podium-tls"}},
            "networkPolicy.ingressController.peers",
        ),
        ({"otlp": {"endpoint": "https://collector:4317"}}, "networkPolicy.otlpCollector.peers"),
        ({"networkPolicy": {"spansToAudit": True}}, "audit.spans.enabled"),
    ],
)
def test_what_needs_a_flow_says_so_when_nobody_opened_it(
    chart: Chart, values: dict[str, Any], named: str
) -> None:
    assert named in chart.refusal(values)
    if "networkPolicy" not in values:
        assert chart.render({**values, "networkPolicy": {"enabled": False}})


def test_every_pod_of_the_release_is_under_the_policies_and_has_a_place_in_the_table(chart: Chart) -> None:
    objects = chart.render(EVERYTHING)
    (deny,) = [o for o in objects if o["metadata"]["name"] == "podium-default-deny"]
    assert deny["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & set(deny["spec"])
    numbers = {number for _, number in PORTS}
    found = {pod.component: pod for pod in pods_of(objects)}
    assert set(found) == {place.name for place in PODS}
    for place in PODS:
        labels = found[place.name].labels
        assert matches(deny["spec"]["podSelector"], labels), place.name
        assert place.labels.items() <= labels.items()
        for container in found[place.name].containers:
            assert {port["containerPort"] for port in container.get("ports", [])} <= numbers, place.name


def test_without_policies_there_are_none(chart: Chart) -> None:
    assert not [
        o for o in chart.render({"networkPolicy": {"enabled": False}}) if o["kind"] == "NetworkPolicy"
    ]
