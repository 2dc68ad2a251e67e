"""The audit service over HTTP, for people and their tools: list, read and export runs.

Every read is a record, committed before the answer is made, one that is refused too. A run that the key may
not see does not exist. Nothing internal leaves: errors are `{"error": {"code", "message"}}`.
"""

import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from aiohttp import web

from podium_audit import pages
from podium_audit.custody import approvals
from podium_audit.intake.span_intake import MAX_SHOWN, SpanIntake
from podium_audit.intake.waterfall import waterfall
from podium_audit.log.group_commit import GroupCommit, unavailable
from podium_audit.ports import StoreError
from podium_audit.proofs.anchoring import Anchoring
from podium_audit.proofs.proof_pages import ProofPages
from podium_audit.reading import export, run_page
from podium_audit.reading.failed_logins import FailedLogins
from podium_audit.reading.run_page import FoundRun
from podium_audit.records import limits
from podium_audit.records.commands import Applied, Event, RecordRead
from podium_audit.stores.readers import Readers
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.config.tenants import INVESTIGATOR, Principal, Tenants
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.ids import IdFactory
from podium_core.runtime.http_status import HTTP_STATUS_OF_CODE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50
_MAX_SIZE: Final = 2**53 - 1
_MAX_READS: Final = 64
_MAX_READS_OF_TENANT: Final = 16
_BEARER: Final = "Bearer "
_NS_PER_US: Final = 1_000
_OPEN: Final = ("/healthz", "/readyz")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Glimpse:
    """How much of what is read its reader gets to see, and what the record of the read adds."""

    with_content: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)


class Pages(Protocol):
    """More pages of the same application, behind the same admission."""

    def add_to(self, app: web.Application) -> None:
        """Add their routes."""
        ...


@dataclass(frozen=True, slots=True)
class AuditHttp:
    """The pages and what they need."""

    commit: GroupCommit
    readers: Readers
    signer: CheckpointSigner
    tenants: Callable[[], Tenants]
    clock: Clock
    ids: IdFactory
    anchoring: Anchoring
    failed_logins: FailedLogins
    intake: SpanIntake | None = None
    more: Sequence[Pages] = ()

    def application(self) -> web.Application:
        """Return the application, ready to be served."""
        admission = _Admission(self.tenants, self.clock, self.failed_logins)
        app = web.Application(middlewares=[_errors, admission.middleware])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/v1/runs/{run_id}", self._show)
        app.router.add_get("/v1/runs/{run_id}/export", self._export)
        app.router.add_get("/v1/runs/{run_id}/spans", self._spans)
        ProofPages(self.readers, self.anchoring).add_to(app)
        app.router.add_get("/v1/vkey", self._vkey)
        for each in self.more:
            each.add_to(app)
        return app

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"}, headers=pages.HEADERS)

    async def _readyz(self, _request: web.Request) -> web.Response:
        if self.commit.is_healthy:
            return web.json_response({"status": "ready"}, headers=pages.HEADERS)
        return web.json_response({"status": "the log cannot commit"}, status=503, headers=pages.HEADERS)

    async def _show(self, request: web.Request) -> web.Response:
        query = pages.query(request, "approval")
        found = await self._find(request, "show")
        glimpse = await self._glimpse(request, found, query.get("approval", ""))
        applied = await self.record(request, found.row.run_id, "show", glimpse)
        page = await self.readers.ask(
            lambda view: run_page.run_page(
                view, found, applied.checkpoint, with_content=glimpse.with_content
            ),
            tenant_id=found.row.tenant_id,
        )
        text = json.dumps(page, ensure_ascii=False)
        return web.Response(text=text, content_type="application/json", headers=pages.HEADERS)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        query = pages.query(request, "content", "since", "approval")
        wants = pages.flag("content", query.get("content", "true"))
        since = pages.number("since", query["since"], low=0, high=_MAX_SIZE) if "since" in query else None
        found = await self._find(request, "export")
        glimpse = await self._glimpse(request, found, query.get("approval", "")) if wants else Glimpse()
        if "content" in query and wants and not glimpse.with_content:
            raise PodiumError(
                Code.POLICY_DENIED,
                "this key may not read the content of that run: ask without it, or with an approval",
                reason="CONTENT_NOT_ALLOWED",
            )
        applied = await self.record(request, found.row.run_id, "export", glimpse)
        size = self.signer.read(applied.checkpoint).size
        if since is not None and since > size:
            raise invalid(f"since must be a size that the log has had: it has {size} leaves", param="since")
        anchors = await self.anchoring.newest(size)
        signer = self.signer
        under = export.Under(signer.origin, signer.vkey, applied.checkpoint, size, since, anchors)
        wanted = export.ExportOf(found, under, glimpse.with_content)
        chunks = self.readers.stream(lambda view: export.lines(view, wanted), tenant_id=found.row.tenant_id)
        async with aclosing(chunks):
            return await send(request, chunks, f"{found.row.run_id}.podium.jsonl", "application/x-ndjson")

    async def _spans(self, request: web.Request) -> web.Response:
        pages.query(request)
        found = await self._find(request, "spans")
        if self.intake is None:
            raise PodiumError(
                Code.NOT_FOUND, "no spans are kept here: set PODIUM_AUDIT_OTLP_GRPC_LISTEN to take them"
            )
        await self.record(request, found.row.run_id, "spans", Glimpse())
        rows = await self.intake.of_run(found.row.run_id, found.row.tenant_id)
        page = {
            "run_id": found.row.run_id,
            "spans": waterfall(rows[:MAX_SHOWN], found.row.run_id),
            "complete": len(rows) <= MAX_SHOWN,
        }
        return web.json_response(page, headers=pages.HEADERS)

    async def _vkey(self, request: web.Request) -> web.Response:
        pages.query(request)
        return web.Response(text=self.signer.vkey + "\n", headers=pages.HEADERS)

    async def _find(self, request: web.Request, action: str) -> FoundRun:
        run_id, principal = request.match_info["run_id"], request[pages.PRINCIPAL]
        found = await self.readers.ask(
            lambda view: run_page.find(view, principal, run_id), tenant_id=principal.tenant.tenant_id
        )
        if found is None:
            asked_for = {"asked_for": run_id} if limits.is_id(run_id) else {}
            await self.record(request, "", f"{action}_refused", Glimpse(facts=asked_for))
            raise PodiumError(Code.NOT_FOUND, "there is no such run")
        return found

    async def _glimpse(self, request: web.Request, found: FoundRun, approval_id: str) -> Glimpse:
        """Return what of a run the key may see: content only of its own, or for a case that was approved."""
        principal, row = request[pages.PRINCIPAL], found.row
        if not approval_id:
            return Glimpse(with_content=run_page.is_own(principal, row))
        tenant_id = principal.tenant.tenant_id
        granted = await self.readers.ask(
            lambda view: view.log.controls(approvals.APPROVAL, tenant_id), tenant_id=tenant_id
        )
        try:
            approval = approvals.check(
                granted if INVESTIGATOR in principal.roles else (),
                approval_id,
                action=approvals.READ_CONTENT,
                target=row.run_id,
                principal_id=principal.key_id,
                now_us=self.clock.now_ns() // _NS_PER_US,
            )
        except PodiumError:
            await self.record(request, row.run_id, "content_refused", Glimpse())
            raise
        return Glimpse(
            with_content=True, facts={"case_id": approval.case_id, "approval_id": approval.approval_id}
        )

    async def record(self, request: web.Request, run_id: str, action: str, glimpse: Glimpse) -> Applied:
        """Record a read before it is answered; without a run, of the tenant. Raises PodiumError."""
        principal = request[pages.PRINCIPAL]
        command = RecordRead(
            Event.own(self.ids.new("evt")),
            run_id,
            principal.key_id,
            action,
            glimpse.with_content,
            principal.tenant.tenant_id,
            glimpse.facts,
        )
        return await self.commit.submit(command)


class _Admission:
    """Lets requests of known keys in, a bounded number at a time, until their readers have the answer."""

    def __init__(self, tenants: Callable[[], Tenants], clock: Clock, failed_logins: FailedLogins) -> None:
        self._tenants = tenants
        self._clock = clock
        self._failed_logins = failed_logins
        self._reads: Counter[str] = Counter()

    @property
    def middleware(self) -> Any:
        """The middleware, as aiohttp wants it."""

        @web.middleware
        async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path in _OPEN:
                return await handler(request)
            principal = request[pages.PRINCIPAL] = self._authenticate(request)
            with self._place(principal.tenant.tenant_id):
                response = await handler(request)
                await response.prepare(request)
                await response.write_eof()
            return response

        return admit

    @contextmanager
    def _place(self, tenant_id: str) -> Iterator[None]:
        if self._reads.total() >= _MAX_READS or self._reads[tenant_id] >= _MAX_READS_OF_TENANT:
            raise PodiumError(Code.RATE_LIMITED, "too many reads at once", retry_after_s=1.0)
        self._reads[tenant_id] += 1
        try:
            yield
        finally:
            self._reads[tenant_id] -= 1

    def _authenticate(self, request: web.Request) -> Principal:
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_BEARER) if header.startswith(_BEARER) else ""
        tenants = self._tenants()
        principal = tenants.authenticate(token, self._clock.now_ns())
        if principal is None:
            if header:  # without any, it is no login: a probe, a browser that looks
                self._failed_logins.failed(tenants.claimed_by(token))
            raise PodiumError(
                Code.UNAUTHENTICATED, "send a valid key of this installation as: Authorization: Bearer <key>"
            )
        return principal


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except PodiumError as error:
        return refusal(error)
    except StoreError as error:
        _log.error("a read failed", exc_info=error)
        return refusal(unavailable())
    except web.HTTPException as error:
        code = Code.NOT_FOUND if error.status == web.HTTPNotFound.status_code else Code.INVALID_REQUEST
        return refusal(PodiumError(code, error.reason), error.status)
    except ConnectionError:
        raise  # the reader is gone
    except Exception as error:  # noqa: BLE001 - the edge: nothing internal may leave
        _log.error("a request failed unexpectedly", exc_info=error, extra={"route": request.path})
        return refusal(PodiumError(Code.INTERNAL, "internal error"))


def refusal(error: PodiumError, status: int | None = None) -> web.Response:
    """Return the answer to an error; `status` overrides that of the error's code."""
    headers = dict(pages.HEADERS)
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    body = {"error": {"code": error.code.value, "message": error.message}}
    return web.json_response(body, status=status or HTTP_STATUS_OF_CODE[error.code], headers=headers)


async def send(
    request: web.Request, chunks: AsyncGenerator[bytes, None], filename: str, media_type: str
) -> web.StreamResponse:
    """Stream chunks; a failure after the first one cuts the connection, so the file is plainly not whole."""
    first = await anext(chunks, b"")
    response = web.StreamResponse(
        headers={**pages.HEADERS, "Content-Disposition": f'attachment; filename="{filename}"'}
    )
    response.content_type = media_type
    await response.prepare(request)
    try:
        await response.write(first)
        async for chunk in chunks:
            await response.write(chunk)
    except StoreError as error:
        _log.error("an export broke off", exc_info=error)
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response
