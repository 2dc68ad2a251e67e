"""`/v1/bundle`: some runs, or all of a time, in one file. Each reading is recorded, and the bundle itself."""

import asyncio
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

from aiohttp import web

from podium_audit import pages
from podium_audit.bundles import archive
from podium_audit.bundles.archive import Archive, BundleOf
from podium_audit.reading import run_page
from podium_audit.reading.export import Under
from podium_audit.reading.http import AuditHttp, Glimpse
from podium_audit.reading.run_page import WATCHERS, FoundRun
from podium_audit.records import limits
from podium_audit.records.commands import Applied
from podium_audit.rows.run_search import RunSearch
from podium_core.config.tenants import Principal
from podium_core.domain.errors import Code, PodiumError, invalid

MAX_RUNS: Final = 500
_AT_ONCE: Final = 32
_CHUNK_BYTES: Final = 256 * 1024
_MAX_SIZE: Final = 2**53 - 1
_US_PER_S: Final = 1_000_000
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")


@dataclass(frozen=True, slots=True)
class _Asked:
    run_ids: Sequence[str]
    case_id: str
    from_us: int | None
    before_us: int | None
    with_content: bool
    since: int | None


@dataclass(frozen=True, slots=True)
class BundlePages:
    """Makes one bundle at a time, in a directory of its own beside the log's."""

    http: AuditHttp
    spool_dir: Path
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def add_to(self, app: web.Application) -> None:
        """Add the route."""
        app.router.add_get("/v1/bundle", self._bundle)

    async def _bundle(self, request: web.Request) -> web.StreamResponse:
        asked = _asked(request)
        runs = await self._runs(request[pages.PRINCIPAL], asked)
        if self._turn.locked():
            raise PodiumError(Code.RATE_LIMITED, "another bundle is being made", retry_after_s=5.0)
        async with self._turn:
            # Without a name: whatever happens to this process, no words stay behind.
            with tempfile.TemporaryFile(dir=self.spool_dir) as file:
                try:
                    await self._make(request, asked, runs, file)
                except OSError as error:
                    raise PodiumError(
                        Code.AUDIT_UNAVAILABLE,
                        f"the bundle cannot be made: {error.strerror}",
                        retry_after_s=5.0,
                    ) from None
                return await _send(request, file)

    async def _runs(self, principal: Principal, asked: _Asked) -> list[FoundRun]:
        """Return the runs, oldest first. Raises PodiumError: NOT_FOUND, POLICY_DENIED, TOO_LARGE."""
        tenant_id = principal.tenant.tenant_id
        if asked.run_ids:
            found = await self.http.readers.ask(
                lambda view: [run_page.find(view, principal, run_id) for run_id in asked.run_ids],
                tenant_id=tenant_id,
            )
            runs = [run for run in found if run is not None]
            if len(runs) < len(found):
                raise PodiumError(Code.NOT_FOUND, "there is no such run", param="run")
            return sorted(runs, key=lambda run: run.row.run_no)
        if not principal.roles & WATCHERS:
            raise PodiumError(Code.POLICY_DENIED, "all runs of a time need a key with the role auditor")
        search = RunSearch(tenant_id, opened_from_us=asked.from_us, opened_before_us=asked.before_us)
        rows = await self.http.readers.ask(
            lambda view: view.log.find_runs(search, before_no=None, limit=MAX_RUNS + 1), tenant_id=tenant_id
        )
        if not rows:
            raise PodiumError(Code.NOT_FOUND, "no run was opened in that time")
        if len(rows) > MAX_RUNS:
            raise PodiumError(Code.TOO_LARGE, f"a bundle holds {MAX_RUNS} runs at most: ask for less time")
        return [FoundRun(*row) for row in reversed(rows)]

    async def _make(
        self, request: web.Request, asked: _Asked, runs: Sequence[FoundRun], file: IO[bytes]
    ) -> None:
        principal = request[pages.PRINCIPAL]
        tenant_id = principal.tenant.tenant_id
        own = {run.row.run_id for run in runs if asked.with_content and run_page.is_own(principal, run.row)}
        applied = await self._record_reads(request, runs, own)
        bundle = await self._bundle_of(asked, tenant_id, runs, frozenset(own), applied)
        made = Archive(file)
        chunks = self.http.readers.stream(lambda view: archive.fill(view, made, bundle), tenant_id=tenant_id)
        async with aclosing(chunks):
            async for _ in chunks:
                pass
        manifest = await self.http.readers.ask(
            lambda view: archive.manifest_of(view, made, bundle), tenant_id=tenant_id
        )
        facts = {"manifest_sha256": sha256(manifest).hexdigest(), "run_count": str(len(runs))}
        facts |= {"case_id": asked.case_id} if asked.case_id else {}
        recorded = await self.http.record(request, "", "bundle", Glimpse(bool(own), facts))
        index, note = recorded.leaf_indices[0], recorded.checkpoint
        size = self.http.signer.read(note).size
        await self.http.readers.ask(
            lambda view: archive.finish(view, made, manifest, index, note, size), tenant_id=tenant_id
        )

    async def _record_reads(self, request: web.Request, runs: Sequence[FoundRun], own: set[str]) -> Applied:
        """Record the reading of each run; return the last commit, which holds them all."""
        done: list[Applied] = []
        for at in range(0, len(runs), _AT_ONCE):
            done += await asyncio.gather(
                *(
                    self.http.record(request, run.row.run_id, "export", Glimpse(run.row.run_id in own))
                    for run in runs[at : at + _AT_ONCE]
                )
            )
        return max(done, key=lambda applied: self.http.signer.read(applied.checkpoint).size)

    async def _bundle_of(
        self,
        asked: _Asked,
        tenant_id: str,
        runs: Sequence[FoundRun],
        with_content: frozenset[str],
        applied: Applied,
    ) -> BundleOf:
        signer, anchoring = self.http.signer, self.http.anchoring
        size = signer.read(applied.checkpoint).size
        if asked.since is not None and asked.since > size:
            raise invalid(f"since must be a size that the log has had: it has {size} leaves", param="since")
        newest = await anchoring.newest(size)
        under = Under(signer.origin, signer.vkey, applied.checkpoint, size, asked.since, newest)
        last = await self.http.readers.ask(
            lambda view: archive.span_of(view, runs, size)[1], tenant_id=tenant_id
        )
        stamps = [row for row in await anchoring.first_over(last) if row.size <= size]
        return BundleOf(
            under, tenant_id, runs, with_content, asked.case_id, asked.from_us, asked.before_us, stamps
        )


async def _send(request: web.Request, file: IO[bytes]) -> web.StreamResponse:
    headers = {**pages.HEADERS, "Content-Disposition": 'attachment; filename="bundle.podium.zip"'}
    response = web.StreamResponse(headers=headers)
    response.content_type = "application/zip"
    response.content_length = file.seek(0, os.SEEK_END)
    await response.prepare(request)
    file.seek(0)
    while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
        await response.write(chunk)
    await response.write_eof()
    return response


def _asked(request: web.Request) -> _Asked:
    query = pages.query(request, "run", "case", "from", "to", "content", "since")
    run_ids = request.query.getall("run", [])
    case_id = query.get("case", "")
    if case_id:
        limits.check_id("case", case_id)
    if bool(run_ids) == ("from" in query and "to" in query) or ("from" in query) != ("to" in query):
        raise invalid("name runs (run=…, again and again), or a time (from=…&to=…)", param="run")
    if len(run_ids) > MAX_RUNS:
        raise PodiumError(Code.TOO_LARGE, f"a bundle holds {MAX_RUNS} runs at most", param="run")
    if len(set(run_ids)) < len(run_ids):
        raise invalid("a run is named twice", param="run")
    since = pages.number("since", query["since"], low=0, high=_MAX_SIZE) if "since" in query else None
    return _Asked(
        run_ids,
        case_id,
        _moment("from", query),
        _moment("to", query),
        pages.flag("content", query.get("content", "true")),
        since,
    )


def _moment(name: str, query: Mapping[str, str]) -> int | None:
    """Return microseconds since 1970 of a UTC day or second."""
    text = query.get(name)
    if text is None:
        return None
    try:
        if not _MOMENT.fullmatch(text):
            raise ValueError  # noqa: TRY301 - one exit
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * _US_PER_S
    except ValueError:
        raise invalid(
            f"{name} must be a UTC day or second: 2026-11-30 or 2026-11-30T12:00:00Z", param=name
        ) from None
