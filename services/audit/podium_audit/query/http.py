"""Lists of runs over HTTP: filtered pages with a total, and whole lists as files."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from podium_audit import pages
from podium_audit.query import tables
from podium_audit.query.parameters import FILTERS, search_of
from podium_audit.query.tables import MEDIA_TYPES, Page
from podium_audit.reading import run_page
from podium_audit.reading.http import DEFAULT_LIMIT, MAX_LIMIT, AuditHttp, Glimpse, send
from podium_audit.rows.run_search import RunSearch
from podium_audit.stores.readers import View
from podium_core.config.tenants import Principal
from podium_core.domain.errors import invalid

_EXPORTED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class RunLists:
    """`/v1/runs`, and `/v1/runs.jsonl`, `.csv` and `.parquet`, as part of `base`."""

    base: AuditHttp

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/v1/runs", self._page)
        app.router.add_get("/v1/runs.{format:jsonl|csv|parquet}", self._file)

    async def _page(self, request: web.Request) -> web.Response:
        query = pages.query(request, "limit", "before", *FILTERS)
        limit = pages.number("limit", query.get("limit"), low=1, high=MAX_LIMIT, default=DEFAULT_LIMIT)
        principal, search = self._asked(request)
        await self._record(request, "search" if set(query) & set(FILTERS) else "list")
        page = await self.base.readers.ask(
            lambda view: _page_of(view, principal, search, query.get("before"), limit),
            tenant_id=principal.tenant.tenant_id,
        )
        return web.json_response(page, headers=pages.HEADERS)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        query = pages.query(request, "before", "header", *FILTERS)
        kind = request.match_info["format"]
        with_header = pages.flag("header", query.get("header", "true"))
        write = tables.writer(kind, with_header=with_header)
        principal, search = self._asked(request)
        await self._record(request, "export_list")
        before = query.get("before")
        chunks = self.base.readers.stream(
            lambda view: write(_all_pages(view, search, _before_no(view, principal, before))),
            tenant_id=principal.tenant.tenant_id,
        )
        async with aclosing(chunks):
            return await send(request, chunks, f"runs.{kind}", MEDIA_TYPES[kind])

    @staticmethod
    def _asked(request: web.Request) -> tuple[Principal, RunSearch]:
        principal: Principal = request[pages.PRINCIPAL]
        owner = None if principal.roles & run_page.WATCHERS else principal.key_id
        tenant_id = principal.tenant.tenant_id
        return principal, search_of(request.query, tenant_id=tenant_id, principal_id=owner)

    async def _record(self, request: web.Request, action: str) -> None:
        """Record who looked for what kind of run; the values that were looked for stay out of the log."""
        named = ",".join(sorted(set(request.query) & set(FILTERS)))
        await self.base.record(request, "", action, Glimpse(facts={"filters": named} if named else {}))


def _page_of(
    view: View, principal: Principal, search: RunSearch, before: str | None, limit: int
) -> dict[str, Any]:
    rows = view.log.find_runs(search, before_no=_before_no(view, principal, before), limit=limit + 1)
    return {
        "runs": [run_page.summary(row, seal) for row, seal in rows[:limit]],
        "total": view.log.count_runs(search),
        "next_before": rows[limit - 1][0].run_id if len(rows) > limit else None,
    }


def _all_pages(view: View, search: RunSearch, before_no: int | None) -> Iterator[Page]:
    while rows := view.log.find_runs(search, before_no=before_no, limit=_EXPORTED_AT_ONCE):
        yield [run_page.summary(row, seal) for row, seal in rows]
        before_no = rows[-1][0].run_no


def _before_no(view: View, principal: Principal, before: str | None) -> int | None:
    """Return the number of the run before which a page begins; raise PodiumError when it is none to see."""
    if before is None:
        return None
    found = run_page.find(view, principal, before)
    if found is None:
        raise invalid("before must be the id of a run that this key may see", param="before")
    return found.row.run_no
