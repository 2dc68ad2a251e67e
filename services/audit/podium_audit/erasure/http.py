"""Erasures, holds, approvals and reads over HTTP: what privacy officers and auditors do, each by its role."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podium_audit import pages
from podium_audit.custody import approvals, holds, policies
from podium_audit.custody.approvals import CHANGE_RETENTION, READ_CONTENT, RELEASE_HOLD, approval_of
from podium_audit.erasure.eraser import AT_ONCE, Eraser, Order
from podium_audit.pseudonyms import MAX_SUBJECT_CHARS, Pseudonyms
from podium_audit.reading.http import DEFAULT_LIMIT, MAX_LIMIT, AuditHttp, Glimpse
from podium_audit.records.commands import (
    CustodyCommand,
    Event,
    GiveApproval,
    PlaceHold,
    ReleaseHold,
    RequestApproval,
)
from podium_audit.rows.custody import ControlRow, KeptRun
from podium_audit.stores.readers import View
from podium_core.config.tenants import AUDITOR, CUSTODIAN, INVESTIGATOR, PRIVACY, Principal
from podium_core.domain.errors import Code, PodiumError, invalid

M = TypeVar("M", bound=BaseModel)

_REQUESTERS: Final[Mapping[str, frozenset[str]]] = {
    READ_CONTENT: frozenset({INVESTIGATOR}),
    RELEASE_HOLD: frozenset({PRIVACY}),
    CHANGE_RETENTION: frozenset({PRIVACY}),
}
_APPROVERS: Final[Mapping[str, frozenset[str]]] = {
    READ_CONTENT: frozenset({PRIVACY, CUSTODIAN}),
    RELEASE_HOLD: frozenset({PRIVACY}),
    CHANGE_RETENTION: frozenset({PRIVACY}),
}
_DEFAULT_VALID_S: Final = 86_400
_US_PER_S: Final = 1_000_000
_NS_PER_US: Final = 1_000
_MAX_INDEX: Final = 2**53
_NEVER_US: Final = 2**62
_MAX_FOUND: Final = 1_024

Ident = Annotated[str, Field(min_length=1, max_length=128)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ErasureBody(_Body):
    run_ids: Annotated[list[Ident], Field(max_length=AT_ONCE)] = []
    subject_id: Annotated[str, Field(max_length=MAX_SUBJECT_CHARS)] = ""
    everything: bool = False
    basis: Ident
    case_id: Annotated[str, Field(max_length=128)] = ""


class _HoldBody(_Body):
    case_id: Ident
    run_ids: Annotated[list[Ident], Field(max_length=holds.MAX_RUNS)] = []
    everything: bool = False


class _ReleaseBody(_Body):
    approval_id: Ident


class _ApprovalBody(_Body):
    action: Ident
    target: Ident
    case_id: Ident
    valid_s: Annotated[int, Field(ge=60, le=7 * 86_400)] = _DEFAULT_VALID_S


class _Wanted(NamedTuple):
    """Runs to erase now, how many wait for another call, and whether these are all there are."""

    now: list[str]
    later: int
    is_all: bool


@dataclass(frozen=True, slots=True)
class CustodyPages:
    """The pages, and the application that they belong to."""

    base: AuditHttp
    eraser: Eraser
    pseudonyms: Pseudonyms

    def add_to(self, app: web.Application) -> None:
        """Add their routes."""
        app.router.add_post("/v1/erasures", self._erase)
        app.router.add_get("/v1/holds", self._holds)
        app.router.add_post("/v1/holds", self._hold)
        app.router.add_post("/v1/holds/{hold_id}/release", self._release)
        app.router.add_get("/v1/approvals", self._approvals)
        app.router.add_post("/v1/approvals", self._request)
        app.router.add_post("/v1/approvals/{approval_id}/approve", self._approve)
        app.router.add_get("/v1/reads", self._reads)
        app.router.add_get("/v1/retention", self._retention)

    async def _erase(self, request: web.Request) -> web.Response:
        principal = _only(request, PRIVACY)
        body = await _read(request, _ErasureBody)
        order = Order(principal.tenant.tenant_id, principal.key_id, body.basis, body.case_id)
        wanted = await self._wanted(order.tenant_id, body)
        done = await self.eraser.erase(wanted.now, order)
        erased = [each for each in done if not each.refusal]
        refused = [each for each in done if each.refusal]
        answer: dict[str, Any] = {
            "erased": [{"run_id": each.run_id, "leaf_index": each.leaf_index} for each in erased],
            "refused": [
                {"run_id": each.run_id, "leaf_index": each.leaf_index, "reason": each.refusal}
                for each in refused
            ],
            "remaining": wanted.later,
            "final_after_days": self.eraser.key_backup_days,
        }
        if body.subject_id and wanted.is_all and not refused:
            await self.pseudonyms.forget(order.tenant_id, body.subject_id)
            answer["forgotten"] = True
        status = HTTPStatus.CONFLICT if refused and not erased else HTTPStatus.OK
        if status is HTTPStatus.CONFLICT:
            message = "a legal hold protects what was to be erased; the refusal is on record"
            answer["error"] = {"code": Code.CONFLICT.value, "message": message}
        return web.json_response(answer, status=status, headers=pages.HEADERS)

    async def _wanted(self, tenant_id: str, body: _ErasureBody) -> _Wanted:
        """Return which runs to erase by this call, and how many after it; those under a hold come last."""
        if bool(body.run_ids) + bool(body.subject_id) + body.everything != 1:
            raise invalid("name run_ids, or subject_id, or say everything: true", param="run_ids")
        if body.run_ids:
            return _Wanted(list(dict.fromkeys(body.run_ids)), 0, is_all=False)
        pseudonym = ""
        if body.subject_id:
            pseudonym = await self.pseudonyms.find(tenant_id, body.subject_id) or ""
            if not pseudonym:
                raise PodiumError(Code.NOT_FOUND, "no run is for such a user", reason="SUBJECT_UNKNOWN")

        def found(view: View) -> tuple[list[KeptRun], list[ControlRow]]:
            if pseudonym:
                rows = view.log.runs_of_subject(tenant_id, pseudonym, _MAX_FOUND)
            else:
                rows = view.log.expired_runs(
                    tenant_id, sealed_before_us=_NEVER_US, after_no=0, limit=_MAX_FOUND
                )
            return rows, view.log.controls(holds.HOLD, tenant_id)

        rows, held = await self.base.readers.ask(found, tenant_id=tenant_id)
        free = [row.run_id for row in rows if not holds.over(held, row.run_id)]
        now = (free or [row.run_id for row in rows])[:AT_ONCE]
        return _Wanted(now, max(0, len(free) - AT_ONCE), is_all=len(now) == len(rows))

    async def _holds(self, request: web.Request) -> web.Response:
        principal = _only(request, AUDITOR, PRIVACY)
        pages.query(request)
        tenant_id = principal.tenant.tenant_id
        rows = await self.base.readers.ask(
            lambda view: view.log.controls(holds.HOLD, tenant_id), tenant_id=tenant_id
        )
        told = [holds.hold_of(row) for row in rows]
        page = [
            {
                "hold_id": hold.hold_id,
                "case_id": hold.case_id,
                "principal_id": hold.principal_id,
                "placed_us": hold.placed_us,
                "run_ids": hold.run_ids,
                "everything": not hold.run_ids,
            }
            for hold in told
        ]
        return web.json_response({"holds": page, "total": len(page)}, headers=pages.HEADERS)

    async def _hold(self, request: web.Request) -> web.Response:
        principal = _only(request, PRIVACY)
        body = await _read(request, _HoldBody)
        if bool(body.run_ids) == body.everything:
            raise invalid("name run_ids, or say everything: true", param="run_ids")
        hold_id = self.base.ids.new("hold")
        run_ids = tuple(dict.fromkeys(body.run_ids))
        event, tenant_id = self._event(), principal.tenant.tenant_id
        index = await self._submit(
            PlaceHold(event, tenant_id, hold_id, body.case_id, principal.key_id, run_ids)
        )
        return web.json_response({"hold_id": hold_id, "leaf_index": index}, headers=pages.HEADERS)

    async def _release(self, request: web.Request) -> web.Response:
        principal = _only(request, PRIVACY)
        body = await _read(request, _ReleaseBody)
        command = ReleaseHold(
            self._event(),
            principal.tenant.tenant_id,
            request.match_info["hold_id"],
            principal.key_id,
            body.approval_id,
        )
        return web.json_response({"leaf_index": await self._submit(command)}, headers=pages.HEADERS)

    async def _approvals(self, request: web.Request) -> web.Response:
        principal = _only(request, AUDITOR, CUSTODIAN, INVESTIGATOR, PRIVACY)
        pages.query(request)
        tenant_id = principal.tenant.tenant_id
        rows = await self.base.readers.ask(
            lambda view: view.log.controls(approvals.APPROVAL, tenant_id), tenant_id=tenant_id
        )
        standing = [told for told in map(approval_of, rows) if told.expires_us > self._now_us]
        page = [
            {
                "approval_id": each.approval_id,
                "action": each.action,
                "target": each.target,
                "case_id": each.case_id,
                "requested_by": each.requested_by,
                "expires_us": each.expires_us,
                "approved_by": each.approved_by or None,
            }
            for each in standing
        ]
        return web.json_response({"approvals": page, "total": len(page)}, headers=pages.HEADERS)

    async def _request(self, request: web.Request) -> web.Response:
        body = await _read(request, _ApprovalBody)
        if body.action not in _REQUESTERS:
            raise invalid(f"action must be one of {', '.join(_REQUESTERS)}", param="action")
        principal = _only(request, *_REQUESTERS[body.action])
        approval_id = self.base.ids.new("apr")
        expires_us = self._now_us + body.valid_s * _US_PER_S
        command = RequestApproval(
            self._event(),
            principal.tenant.tenant_id,
            approval_id,
            body.action,
            body.target,
            body.case_id,
            principal.key_id,
            expires_us,
        )
        index = await self._submit(command)
        answer = {"approval_id": approval_id, "leaf_index": index, "expires_us": expires_us}
        return web.json_response(answer, headers=pages.HEADERS)

    async def _approve(self, request: web.Request) -> web.Response:
        approval_id = request.match_info["approval_id"]
        principal = _only(request, CUSTODIAN, PRIVACY)
        tenant_id = principal.tenant.tenant_id
        rows = await self.base.readers.ask(
            lambda view: view.log.controls(approvals.APPROVAL, tenant_id), tenant_id=tenant_id
        )
        for row in rows:
            if row.item_id == approval_id:
                _only(request, *_APPROVERS[approval_of(row).action])
        command = GiveApproval(self._event(), tenant_id, approval_id, principal.key_id)
        return web.json_response({"leaf_index": await self._submit(command)}, headers=pages.HEADERS)

    async def _reads(self, request: web.Request) -> web.Response:
        principal = _only(request, AUDITOR, PRIVACY)
        query = pages.query(request, "limit", "before")
        limit = pages.number("limit", query.get("limit"), low=1, high=MAX_LIMIT, default=DEFAULT_LIMIT)
        before = pages.number("before", query.get("before"), low=0, high=_MAX_INDEX, default=_MAX_INDEX)
        tenant_id = principal.tenant.tenant_id
        await self.base.record(request, "", "list_reads", Glimpse())
        rows, total = await self.base.readers.ask(
            lambda view: (
                view.log.reads(tenant_id, before_index=before, limit=limit + 1),
                view.log.count_reads(tenant_id),
            ),
            tenant_id=tenant_id,
        )
        page = [{name: value for name, value in row._asdict().items() if name != "tenant_id"} for row in rows]
        answer = {
            "reads": page[:limit],
            "total": total,
            "next_before": rows[limit - 1].leaf_index if len(rows) > limit else None,
        }
        return web.json_response(answer, headers=pages.HEADERS)

    async def _retention(self, request: web.Request) -> web.Response:
        principal = _only(request, AUDITOR, PRIVACY)
        pages.query(request)
        tenant_id, wanted = principal.tenant.tenant_id, principal.tenant.retention
        rows = await self.base.readers.ask(
            lambda view: view.log.controls(policies.POLICY, tenant_id), tenant_id=tenant_id
        )
        standing = policies.policy_of(rows)
        answer = {
            "standing": asdict(standing),
            "wanted": asdict(wanted),
            "approval_target": policies.target_of(tenant_id, wanted)
            if wanted.is_shorter_than(standing)
            else None,
        }
        return web.json_response(answer, headers=pages.HEADERS)

    async def _submit(self, command: CustodyCommand) -> int:
        return (await self.base.commit.submit(command)).leaf_indices[0]

    def _event(self) -> Event:
        return Event.own(self.base.ids.new("evt"))

    @property
    def _now_us(self) -> int:
        return self.base.clock.now_ns() // _NS_PER_US


def _only(request: web.Request, *roles: str) -> Principal:
    """Return the caller if it has one of the roles; raise PodiumError (POLICY_DENIED) otherwise."""
    principal = request[pages.PRINCIPAL]
    if not principal.roles.intersection(roles):
        raise PodiumError(
            Code.POLICY_DENIED,
            f"this takes a key with the role {' or '.join(sorted(roles))}",
            reason="ROLE_MISSING",
        )
    return principal


async def _read(request: web.Request, model: type[M]) -> M:
    """Return the body; raise PodiumError (INVALID_REQUEST) naming the field that is wrong."""
    try:
        return model.model_validate_json(await request.read())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise invalid(f"{field}: {first['msg']}", param=field) from None
