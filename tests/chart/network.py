"""What NetworkPolicy objects allow, computed as the API documents it.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/. A pod that any policy of a direction
selects is isolated in that direction; then only what some rule of such a policy names may pass. A connection needs
both ends' consent. Whether a block of addresses matches pods is up to the plug-in: here it does, the less safe reading.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Json = Mapping[str, Any]
Port = tuple[str, int]
"""Protocol and number."""

Flow = tuple[str, str, int]
"""From, to and the TCP port."""

SERVICE_FLOWS: frozenset[Flow] = frozenset(
    {
        ("gateway", "conductor", 7051),
        ("gateway", "router", 7052),
        ("gateway", "audit", 7053),
        ("router", "audit", 7053),
        ("conductor", "audit", 7053),
    }
)
"""Who calls whom among the services, with the Conductor that ships."""

_POLICY_TYPES = {"Ingress", "Egress"}


@dataclass(frozen=True, slots=True)
class Place:
    """One end of a connection: a pod (with a namespace) or an address outside the cluster."""

    name: str
    address: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """The label that every namespace has."""
        return {"kubernetes.io/metadata.name": self.namespace}


def open_ports(policies: Sequence[Json], source: Place, target: Place, ports: Iterable[Port]) -> set[Port]:
    """Return those of `ports` on which `source` can reach `target`."""
    left = _passing(policies, source, target, "Egress", ports)
    return _passing(policies, target, source, "Ingress", left)


def _passing(
    policies: Sequence[Json], own: Place, other: Place, direction: str, ports: Iterable[Port]
) -> set[Port]:
    """Return the ports on which `own` may exchange with `other` in this direction."""
    mine = [p["spec"] for p in policies if _selects(p, own) and direction in _types(p["spec"])]
    if not own.namespace or not mine:
        return set(ports)
    side = "to" if direction == "Egress" else "from"
    return {
        port
        for port in ports
        for spec in mine
        for rule in spec.get(direction.lower(), [])
        if _names_port(rule, port) and _names_peer(rule, side, own, other)
    }


def _types(spec: Json) -> set[str]:
    types = set(spec["policyTypes"])  # always written out: the default depends on which rules there are
    assert types <= _POLICY_TYPES
    return types


def _selects(policy: Json, pod: Place) -> bool:
    assert policy["apiVersion"] == "networking.k8s.io/v1"
    return bool(pod.namespace == policy["metadata"]["namespace"]) and matches(
        policy["spec"]["podSelector"], pod.labels
    )


def _names_port(rule: Json, port: Port) -> bool:
    if not rule.get("ports"):
        return True
    for entry in rule["ports"]:
        assert set(entry) <= {"protocol", "port"}, "ranges and missing numbers are not used"
        if (entry["protocol"], entry["port"]) == port:
            return True
    return False


def _names_peer(rule: Json, side: str, own: Place, other: Place) -> bool:
    peers = rule.get(side)
    return not peers or any(_is_peer(peer, own, other) for peer in peers)


def _is_peer(peer: Json, own: Place, other: Place) -> bool:
    assert peer
    assert set(peer) <= {"podSelector", "namespaceSelector", "ipBlock"}
    if "ipBlock" in peer:
        assert len(peer) == 1, "an address block stands alone"
        return _holds(peer["ipBlock"], other.address)
    if not other.namespace:
        return False
    if "namespaceSelector" in peer:
        if not matches(peer["namespaceSelector"], other.namespace_labels):
            return False
    elif other.namespace != own.namespace:
        return False
    return matches(peer.get("podSelector", {}), other.labels)


def _holds(block: Json, text: str) -> bool:
    address, cidr = ip_address(text), ip_network(block["cidr"])
    for inner in map(ip_network, block.get("except", [])):
        assert inner.version == cidr.version
        assert inner != cidr
        assert inner.subnet_of(cidr), f"the API refuses {inner}, which is not within {cidr}"  # type: ignore[arg-type]
    return address in cidr and not any(address in ip_network(inner) for inner in block.get("except", []))


def matches(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects `labels`; an empty one selects everything."""
    assert set(selector) <= {"matchLabels", "matchExpressions"}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(entry, labels) for entry in selector.get("matchExpressions") or [])


def _meets(entry: Json, labels: Mapping[str, str]) -> bool:
    value, operator = labels.get(entry["key"]), entry["operator"]
    if operator == "In":
        return value in entry["values"]
    if operator == "NotIn":
        return value not in entry["values"]
    if operator == "Exists":
        return value is not None
    assert operator == "DoesNotExist"
    return value is None
