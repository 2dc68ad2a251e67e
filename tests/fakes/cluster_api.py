"""A Kubernetes API server on loopback, as far as Podium asks: lists, watches, status, leases, and who may what.

It checks objects by the definitions of k8s/crds, counts versions and generations as a server does, forgets
history on demand (410), and notes every request with the user who made it.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes.crds import KINDS, problems, status_problems

NAMESPACE = "podium"
_PODIUM = "/apis/podium.dev/v1alpha1/namespaces/{ns}/{plural}"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/{name}"
_KIND_OF = {plural: kind for kind, plural in KINDS.items()}

Thing = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for, as RBAC sees it."""

    user: str
    verb: str
    resource: str


@dataclass(slots=True)
class ClusterApi:
    """One namespace. Tests change its objects as `kubectl` would, and its manners."""

    address: str = ""
    requests: list[Request] = field(default_factory=list)
    is_away: bool = False
    is_silent: bool = False
    ends_watches: bool = False
    grants: Callable[[Request], bool] = lambda request: True
    lists_gone_in_stream: bool = True
    page_size: int = 200
    _objects: dict[tuple[str, str], Thing] = field(default_factory=dict)
    _history: list[tuple[int, str, str, Thing]] = field(default_factory=list)
    _version: int = 100
    _forgotten: int = 0
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _watches: set[asyncio.Transport] = field(default_factory=set)
    _leases: dict[str, Thing] = field(default_factory=dict)

    # --- what people do --------------------------------------------------------------------------

    def apply(self, kind: str, name: str, spec: Thing, *, checked: bool = True) -> Thing:
        """Create an object or replace its spec; raises ValueError with what the server would refuse.

        `checked=False` stands for an object that an older definition let pass.
        """
        known = self._objects.get((KINDS[kind], name))
        thing: Thing = {
            "apiVersion": "podium.dev/v1alpha1",
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": known["metadata"]["uid"] if known else f"uid-{self._version}",
                "generation": known["metadata"]["generation"] + (known["spec"] != spec) if known else 1,
                "creationTimestamp": known["metadata"]["creationTimestamp"] if known else self._moment(),
            },
            "spec": deepcopy(spec),
        }
        if checked and (found := problems(kind, thing)):
            raise ValueError("; ".join(found))
        if known and "status" in known:
            thing["status"] = known["status"]
        self._put("MODIFIED" if known else "ADDED", thing)
        return thing

    def delete(self, kind: str, name: str) -> None:
        """Delete an object."""
        self._put("DELETED", self._objects.pop((KINDS[kind], name)))

    def status(self, kind: str, name: str) -> Thing:
        """Return an object's status."""
        return deepcopy(self._objects[KINDS[kind], name].get("status", {}))

    def condition(self, kind: str, name: str, condition: str) -> tuple[str, str]:
        """Return status and reason of one condition; empty where it has none."""
        found = {each["type"]: each for each in self.status(kind, name).get("conditions", [])}
        return (found[condition]["status"], found[condition]["reason"]) if condition in found else ("", "")

    def make_lease(self, name: str) -> None:
        """Create a lease that nobody holds, as the chart does."""
        self._leases[name] = {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {}}

    def lease_holder(self, name: str) -> str:
        """Return who holds a lease."""
        return str(self._leases[name]["spec"].get("holderIdentity", ""))

    # --- what befalls servers --------------------------------------------------------------------

    def forget(self) -> None:
        """Forget all history: who watches from an older version must list again."""
        self._version += 1
        self._forgotten = self._version
        self._history.clear()

    def cut(self) -> None:
        """Break every connection that watches."""
        for transport in tuple(self._watches):
            transport.abort()

    def count(self, verb: str, resource: str) -> int:
        """Return how often something was asked."""
        return sum((each.verb, each.resource) == (verb, resource) for each in self.requests)

    @property
    def watching(self) -> int:
        """Open watches."""
        return len(self._watches)

    def kubeconfig(self, directory: Path, user: str) -> Path:
        """Write a kubeconfig file for a user whose token is the name."""
        path = directory / f"kubeconfig-{user}"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "it",
                    "clusters": [{"name": "it", "cluster": {"server": self.address}}],
                    "users": [{"name": "it", "user": {"token": user}}],
                    "contexts": [
                        {"name": "it", "context": {"cluster": "it", "user": "it", "namespace": NAMESPACE}}
                    ],
                }
            )
        )
        return path

    # --- the server ------------------------------------------------------------------------------

    def _moment(self) -> str:
        return f"2026-12-01T{self._version // 3600 % 24:02}:{self._version // 60 % 60:02}:{self._version % 60:02}Z"

    def _put(self, event: str, thing: Thing) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        plural = KINDS[thing["kind"]]
        if event != "DELETED":
            self._objects[plural, thing["metadata"]["name"]] = thing
        self._history.append((self._version, plural, event, deepcopy(thing)))
        self._moved.set()
        self._moved = asyncio.Event()

    def allow(self, request: web.Request, verb: str, resource: str) -> None:
        """Note a request; raise what its user gets who may not make it."""
        asked = Request(request.headers.get("Authorization", "").rpartition(" ")[2], verb, resource)
        if self.is_away:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable
        self.requests.append(asked)
        if not self.grants(asked):
            raise web.HTTPForbidden(text=json.dumps({"kind": "Status", "code": 403}))

    async def collection(self, request: web.Request) -> web.StreamResponse:
        """List or watch."""
        plural = request.match_info["plural"]
        is_watch = request.query.get("watch", "").lower() == "true"
        self.allow(request, "watch" if is_watch else "list", plural)
        if plural not in _KIND_OF:
            raise web.HTTPNotFound
        if is_watch:
            return await self._watch(request, plural)
        things = [thing for (of, _), thing in sorted(self._objects.items()) if of == plural]
        start = int(request.query.get("continue", "0"))
        end = start + min(self.page_size, int(request.query.get("limit", "500")))
        metadata = {"resourceVersion": str(self._version)}
        if end < len(things):
            metadata["continue"] = str(end)
        return web.json_response({"kind": "List", "metadata": metadata, "items": things[start:end]})

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        seen = int(request.query["resourceVersion"])
        gone = {
            "type": "ERROR",
            "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"},
        }
        if seen < self._forgotten and not self.lists_gone_in_stream:
            raise web.HTTPGone(text=json.dumps(gone["object"]))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        self._watches.add(transport)
        try:
            if seen < self._forgotten:
                await response.write(json.dumps(gone).encode() + b"\n")
                return response
            if self.ends_watches:
                return response
            if self.is_silent:  # as a connection is whose other end has gone without a word
                await asyncio.Event().wait()
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                while True:
                    moved = self._moved
                    for version, of, event, thing in tuple(self._history):
                        if version > seen and of == plural:
                            await response.write(
                                json.dumps({"type": event, "object": thing}).encode() + b"\n"
                            )
                    seen = self._version
                    bookmark = {"kind": _KIND_OF[plural], "metadata": {"resourceVersion": str(seen)}}
                    await response.write(
                        json.dumps({"type": "BOOKMARK", "object": bookmark}).encode() + b"\n"
                    )
                    await moved.wait()
        except (TimeoutError, ConnectionError):
            return response
        finally:
            self._watches.discard(transport)

    async def patch_status(self, request: web.Request) -> web.Response:
        """Merge a patch into an object's status, and into nothing else."""
        plural, name = request.match_info["plural"], request.match_info["name"]
        self.allow(request, "patch", f"{plural}/status")
        assert request.content_type == "application/merge-patch+json"
        thing = self._objects.get((plural, name))
        if thing is None:
            raise web.HTTPNotFound
        patch = await request.json()
        if patch.get("metadata", {}).get("uid", thing["metadata"]["uid"]) != thing["metadata"]["uid"]:
            raise web.HTTPConflict
        merged = {**thing, "status": _merged(thing.get("status", {}), patch["status"])}
        if found := status_problems(thing["kind"], merged["status"]):
            raise web.HTTPUnprocessableEntity(
                text=json.dumps({"kind": "Status", "code": 422, "message": found})
            )
        self._put("MODIFIED", deepcopy(merged))
        return web.json_response(merged)

    async def lease(self, request: web.Request) -> web.Response:
        """Read a lease, or merge a patch into one that is still as it was read."""
        self.allow(request, request.method.lower(), "leases")
        lease = self._leases.get(request.match_info["name"])
        if lease is None:
            raise web.HTTPNotFound
        if request.method == "PATCH":
            patch = await request.json()
            if patch["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]:
                raise web.HTTPConflict
            lease["spec"] = _merged(lease["spec"], patch["spec"])
            lease["metadata"]["resourceVersion"] = str(int(lease["metadata"]["resourceVersion"]) + 1)
        return web.json_response(lease)


@asynccontextmanager
async def cluster_api(tls: ssl.SSLContext | None = None) -> AsyncIterator[ClusterApi]:
    """Serve an empty namespace."""
    api = ClusterApi()
    app = web.Application()
    objects, lease = (
        _PODIUM.format(ns=NAMESPACE, plural="{plural}"),
        _LEASES.format(ns=NAMESPACE, name="{name}"),
    )
    app.router.add_get(objects, api.collection)
    app.router.add_patch(objects + "/{name}/status", api.patch_status)
    app.router.add_get(lease, api.lease)
    app.router.add_patch(lease, api.lease)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    api.address = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()


def _merged(target: Thing, patch: Thing) -> Thing:
    """RFC 7396."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key, {}), value) if isinstance(value, dict) else value
    return result
