"""Proofs over HTTP: any key may ask how the log grew; its leaves are for keys that may see all of it."""

import base64
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from podium_audit import pages
from podium_audit.proofs import tile_pages
from podium_audit.proofs.anchoring import Anchoring
from podium_audit.stores.readers import EVERY_TENANT, Readers, View
from podium_audit.tree.tiles import TileNodes
from podium_core.config.tenants import EXAMINER
from podium_core.domain import merkle
from podium_core.domain.errors import Code, PodiumError

_FOR_EVER = {**pages.HEADERS, "Cache-Control": "private, max-age=31536000, immutable"}


@dataclass(frozen=True, slots=True)
class ProofPages:
    """`/checkpoint` and `/tile/…` as C2SP tlog-tiles names them, `/v1/consistency` and `/v1/anchors`."""

    readers: Readers
    anchoring: Anchoring

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/checkpoint", self.checkpoint)
        app.router.add_get("/v1/checkpoint", self.checkpoint)
        app.router.add_get("/v1/consistency", self._consistency)
        app.router.add_get("/v1/anchors", self._anchors)
        app.router.add_get("/tile/{level}/{name:.+}", self._tile)

    async def checkpoint(self, request: web.Request) -> web.Response:
        """Answer with the newest checkpoint."""
        pages.query(request)
        newest = await self.readers.ask(lambda view: view.log.checkpoint(), tenant_id="")
        if newest is None:
            raise PodiumError(Code.NOT_FOUND, "the log is empty: it has no checkpoint yet")
        return web.Response(text=newest.note, headers=pages.HEADERS)

    async def _consistency(self, request: web.Request) -> web.Response:
        asked = pages.query(request, "from", "to")
        size = await self._size()
        to = pages.number("to", asked.get("to"), low=0, high=size, default=size)
        old = pages.number("from", asked.get("from"), low=0, high=to)
        proof = await self.readers.ask(lambda view: consistency(view, old, to), tenant_id="")
        return web.json_response(proof, headers=pages.HEADERS)

    async def _anchors(self, request: web.Request) -> web.Response:
        pages.query(request)
        rows = await self.anchoring.newest(await self._size())
        anchors = [{**row._asdict(), "data": _text(row.data)} for row in rows]
        return web.json_response({"anchors": anchors}, headers=pages.HEADERS)

    async def _tile(self, request: web.Request) -> web.Response:
        pages.query(request)
        level = request.match_info["level"]
        if EXAMINER not in request[pages.PRINCIPAL].roles:
            raise PodiumError(
                Code.POLICY_DENIED, "tiles span every tenant: they need a key with the role examiner"
            )
        place = tile_pages.parse_place(level, request.match_info["name"])
        read = tile_pages.entries if level == "entries" else tile_pages.hashes
        size = await self._size()
        data = None
        if place is not None:
            found = place
            data = await self.readers.ask(lambda view: read(view.log, found, size), tenant_id=EVERY_TENANT)
        if data is None:
            raise PodiumError(Code.NOT_FOUND, "there is no such tile")
        return web.Response(body=data, content_type="application/octet-stream", headers=_FOR_EVER)

    async def _size(self) -> int:
        return await self.readers.ask(_newest_size, tenant_id="")


def consistency(view: View, old_size: int, size: int) -> dict[str, Any]:
    """Return the proof that the log of `size` leaves continues that of `old_size`. Raises StoreError."""
    nodes = TileNodes(view.log)
    return {
        "from": old_size,
        "from_root": _text(merkle.root_of(old_size, nodes)),
        "to": size,
        "to_root": _text(merkle.root_of(size, nodes)),
        "proof": [_text(item) for item in merkle.consistency_path(old_size, size, nodes)],
    }


def _newest_size(view: View) -> int:
    newest = view.log.checkpoint()
    return newest.size if newest is not None else 0


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
