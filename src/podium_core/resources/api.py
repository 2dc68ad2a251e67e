"""A namespace of a Kubernetes cluster through the official client, which is loaded only where it is used."""

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.resources.objects import (
    GROUP,
    VERSION,
    Change,
    ConflictError,
    Json,
    Kind,
    Lease,
    Listing,
    Resource,
    VersionGoneError,
    resource_of,
)

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CALL_S = 10.0
_WATCH_S = 50
_PAGE = 200
_MERGE = "application/merge-patch+json"
_LEASES = ("coordination.k8s.io", "v1")
_REFUSALS = frozenset({400, 405, 406, 413, 415, 422})
_GONE, _CONFLICT, _NOT_FOUND, _UNAUTHORIZED, _FORBIDDEN = 410, 409, 404, 401, 403


async def open_cluster(
    kubeconfig: Path | None, namespace: str, account_dir: Path = _ACCOUNT_DIR
) -> "KubernetesCluster":
    """Return the cluster that a kubeconfig file names; without one, that of the pod this runs in.

    An empty `namespace` means the pod's own. `account_dir` is where a pod finds its service account's token,
    which the client reads again. Raises PodiumError (INVALID_REQUEST): no cluster is named.
    """
    try:
        from kubernetes.aio.client import ApiClient, Configuration  # noqa: PLC0415 - 19 MB, only where used
        from kubernetes.aio.config import ConfigException, load_kube_config  # noqa: PLC0415
        from kubernetes.aio.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415
    except ModuleNotFoundError:
        raise invalid(
            "the pool as resources needs the extra `kubernetes`: pip install 'podium[kubernetes]'",
            reason="CLUSTER_CLIENT_MISSING",
        ) from None
    configuration = Configuration()
    try:
        if kubeconfig is None:
            loader = InClusterConfigLoader(account_dir / "token", account_dir / "ca.crt")  # type: ignore[no-untyped-call]
            loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), client_configuration=configuration, persist_config=False
            )
        client = ApiClient(configuration)  # reads the certificates
    except (ConfigException, OSError):
        raise invalid(
            "no cluster is named: run in a pod with a service account's token, or give a kubeconfig file",
            reason="CLUSTER_UNKNOWN",
        ) from None
    return KubernetesCluster(client, namespace or _own_namespace(account_dir))


class KubernetesCluster:
    """The objects of one namespace. A watch lasts `watch_s`; one that is silent for `call_s` more is dead."""

    def __init__(
        self, client: "ApiClient", namespace: str, *, call_s: float = _CALL_S, watch_s: int = _WATCH_S
    ) -> None:
        from kubernetes.aio.client import CustomObjectsApi  # noqa: PLC0415 - as above

        self.client = client
        # Also of leases: it asks for any group, and builds no models.
        self._objects = CustomObjectsApi(client)
        self._namespace = namespace
        self._call_s = call_s
        self._watch_s = watch_s

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()  # type: ignore[no-untyped-call]

    async def list(self, kind: Kind) -> Listing:
        """Return all objects of a kind, page by page."""
        found: list[Resource] = []
        more: str | None = None
        while True:
            try:
                page = await self._ask(
                    self._objects.list_namespaced_custom_object(
                        GROUP, VERSION, self._namespace, kind.plural, limit=_PAGE, _continue=more
                    ),
                    f"list {kind.plural}.{GROUP}",
                )
                found += [resource_of(kind, item) for item in page["items"]]
                version, more = str(page["metadata"]["resourceVersion"]), page["metadata"].get("continue")
            except (VersionGoneError, ConflictError):  # of a page: the list took too long
                raise _unreachable() from None
            except _MissingError:
                raise PodiumError(
                    Code.NOT_FOUND,
                    f"the cluster knows no {kind.plural}.{GROUP}: kubectl apply -f k8s/crds",
                    reason="CLUSTER_LACKS_KIND",
                ) from None
            except (KeyError, TypeError, ValueError):
                raise _unreadable() from None
            if not more:
                return Listing(tuple(found), version)

    async def watch(self, kind: Kind, version: str) -> AsyncGenerator[Change]:
        """Yield changes after `version` until the server ends the watch."""
        response = await self._ask(
            self._objects.list_namespaced_custom_object_without_preload_content(
                GROUP,
                VERSION,
                self._namespace,
                kind.plural,
                watch=True,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=self._watch_s,
            ),
            f"watch {kind.plural}.{GROUP}",
        )
        from aiohttp import ClientError  # noqa: PLC0415 - what the client stands on

        try:
            if response.status != 200:  # noqa: PLR2004 - OK
                _raise(response.status, f"watch {kind.plural}.{GROUP}")
            while True:
                async with asyncio.timeout(self._watch_s + self._call_s):
                    line = await response.content.readline()
                if not line:
                    return
                yield _change(kind, line)
        except _MissingError:
            raise VersionGoneError from None  # the kind was deleted: a list tells
        # ValueError: a line beyond any object's size. Conflicts are of writers, whoever says so here.
        except (ClientError, TimeoutError, OSError, ValueError, ConflictError):
            raise _unreachable() from None
        finally:
            response.close()

    async def write_status(self, resource: Resource, status: Json) -> None:
        """Replace fields of an object's status."""
        try:
            await self._ask(
                self._objects.patch_namespaced_custom_object_status(
                    GROUP,
                    VERSION,
                    self._namespace,
                    resource.kind.plural,
                    resource.name,
                    {"metadata": {"uid": resource.uid}, "status": dict(status)},
                    _content_type=_MERGE,
                ),
                f"patch {resource.kind.plural}/status.{GROUP}",
            )
        except (_MissingError, ConflictError):  # deleted meanwhile, or made anew under the same name
            return

    async def read_lease(self, name: str) -> Lease:
        """Return a lease."""
        try:
            thing = await self._ask(
                self._objects.get_namespaced_custom_object(*_LEASES, self._namespace, "leases", name),
                "get leases",
            )
            spec = thing.get("spec") or {}
            return Lease(
                str(thing["metadata"]["resourceVersion"]),
                str(spec.get("holderIdentity") or ""),
                str(spec.get("renewTime") or ""),
            )
        except _MissingError:
            raise PodiumError(
                Code.NOT_FOUND,
                f"the cluster has no lease {name}: the chart makes it",
                reason="CLUSTER_LACKS_LEASE",
            ) from None
        except (KeyError, TypeError, AttributeError):
            raise _unreadable() from None

    async def write_lease(self, name: str, lease: Lease, duration_s: int) -> None:
        """Replace what a lease says if it is still as it was read."""
        body = {
            "metadata": {"resourceVersion": lease.version},
            "spec": {
                "holderIdentity": lease.holder,
                "renewTime": lease.renewed,
                "leaseDurationSeconds": duration_s,
            },
        }
        await self._ask(
            self._objects.patch_namespaced_custom_object(
                *_LEASES, self._namespace, "leases", name, body, _content_type=_MERGE
            ),
            "patch leases",
        )

    async def _ask(self, call: Coroutine[Any, Any, Any], what: str) -> Any:
        """Await a call of the client; raise what its failure means."""
        from aiohttp import ClientError  # noqa: PLC0415 - what the client stands on
        from kubernetes.aio.client import ApiException  # noqa: PLC0415 - as above

        try:
            async with asyncio.timeout(self._call_s):
                return await call
        except ApiException as error:
            _raise(int(error.status or 0), what)
        except (ClientError, TimeoutError, OSError):
            raise _unreachable() from None
        except ValueError:  # no JSON
            raise _unreadable() from None


class _MissingError(Exception):
    """The cluster has no such object (404)."""


def _change(kind: Kind, line: bytes) -> Change:
    """Return what one line of a watch tells. Raises VersionGoneError, PodiumError."""
    try:
        event = json.loads(line)
        thing = event["object"]
        if event["type"] == "ERROR":
            _raise(int(thing["code"]), f"watch {kind.plural}.{GROUP}")
        if event["type"] == "BOOKMARK":
            return Change(str(thing["metadata"]["resourceVersion"]))
        resource = resource_of(kind, thing)
    except (KeyError, TypeError, ValueError):
        raise _unreadable() from None
    return Change(resource.version, resource, is_gone=event["type"] == "DELETED")


def _raise(status: int, what: str) -> NoReturn:
    if status == _GONE:
        raise VersionGoneError
    if status == _CONFLICT:
        raise ConflictError
    if status == _NOT_FOUND:
        raise _MissingError
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        raise PodiumError(
            Code.POLICY_DENIED,
            f"the cluster does not let this service {what}: see the chart's roles and the mounted token",
            reason="CLUSTER_DENIES",
        )
    if status in _REFUSALS:
        raise PodiumError(
            Code.INTERNAL, f"the cluster refuses to {what} (HTTP {status})", reason="CLUSTER_REFUSES"
        )
    raise _unreachable()


def _unreachable() -> PodiumError:
    return PodiumError(Code.UNAVAILABLE, "the cluster's API does not answer", reason="CLUSTER_UNREACHABLE")


def _unreadable() -> PodiumError:
    return PodiumError(
        Code.UNAVAILABLE, "the cluster's API answers what no API server would", reason="CLUSTER_UNREADABLE"
    )


def _own_namespace(account_dir: Path) -> str:
    try:
        return (account_dir / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        raise invalid(
            "no namespace is known: set CLUSTER_NAMESPACE, or mount the service account's files",
            reason="CLUSTER_UNKNOWN",
        ) from None
