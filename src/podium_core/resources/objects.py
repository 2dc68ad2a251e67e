"""Objects as a cluster keeps them, and the port through which they are read and told their status."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = Mapping[str, Any]

GROUP = "podium.dev"
VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object: its name, and what paths and RBAC rules call it."""

    name: str
    plural: str


WORKER = Kind("Worker", "workers")
TENANT = Kind("Tenant", "tenants")
POLICY = Kind("Policy", "policies")


@dataclass(frozen=True, slots=True)
class Resource:
    """One object. `generation` grows with each change of `spec`, `version` with each change at all."""

    kind: Kind
    name: str
    uid: str
    generation: int
    created: str
    version: str
    spec: Json
    status: Json = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How messages name it, such as `Worker fast`."""
        return f"{self.kind.name} {self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """What a watch tells: an object as it is now, or that it is gone; without one, only the version."""

    version: str
    resource: Resource | None = None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind at one version, from which a watch goes on."""

    resources: tuple[Resource, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Lease:
    """Who of several replicas does what only one should do."""

    version: str
    holder: str
    renewed: str


class VersionGoneError(Exception):
    """A watch cannot go on from its version: list again (410 Gone)."""


class ConflictError(Exception):
    """Somebody else has changed the object since it was read (409 Conflict)."""


class Cluster(Protocol):
    """One namespace of a cluster. Every method raises PodiumError when the cluster cannot or will not say."""

    async def list(self, kind: Kind) -> Listing:
        """Return all objects of a kind."""
        ...

    def watch(self, kind: Kind, version: str) -> AsyncGenerator[Change]:
        """Yield changes after `version`, until the server ends the watch. Raises VersionGoneError."""
        ...

    async def write_status(self, resource: Resource, status: Json) -> None:
        """Replace fields of an object's status; an object that is gone is left alone."""
        ...

    async def read_lease(self, name: str) -> Lease:
        """Return a lease."""
        ...

    async def write_lease(self, name: str, lease: Lease, duration_s: int) -> None:
        """Replace a lease that is still as it was read. Raises ConflictError when it is not."""
        ...


def resource_of(kind: Kind, thing: Json) -> Resource:
    """Return what an API server's JSON says. Raises KeyError, TypeError, ValueError: it is no such object."""
    metadata = thing["metadata"]
    return Resource(
        kind,
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        generation=int(metadata.get("generation", 0)),
        created=str(metadata.get("creationTimestamp", "")),
        version=str(metadata["resourceVersion"]),
        spec=dict(thing.get("spec") or {}),
        status=dict(thing.get("status") or {}),
    )
