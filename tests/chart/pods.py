"""Pods within rendered objects."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Json = Mapping[str, Any]


class PodTemplate(NamedTuple):
    """One pod that an object makes."""

    kind: str
    name: str
    labels: Mapping[str, str]
    spec: Json

    @property
    def component(self) -> str:
        """Which service it is."""
        return self.labels["app.kubernetes.io/component"]

    @property
    def containers(self) -> list[Json]:
        """All containers, those of the start included."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]


def pods_of(objects: Iterable[Json]) -> Iterator[PodTemplate]:
    """Yield the pod of each workload."""
    for found in objects:
        kind, name = found["kind"], found["metadata"]["name"]
        if kind == "Pod":
            yield PodTemplate(kind, name, found["metadata"]["labels"], found["spec"])
        elif kind in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
            template = found["spec"]["template"]
            yield PodTemplate(kind, name, template["metadata"]["labels"], template["spec"])
        else:
            assert "template" not in found.get("spec", {}), f"{kind} may make pods that nobody looked at"
