"""OTLP over HTTP: POST /v1/traces with protobuf or JSON, over TLS with the sender's certificate."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from podium_audit import pages
from podium_audit.intake.decoding import decode
from podium_audit.intake.otlp_json import with_base64_ids
from podium_audit.intake.otlp_servicer import answer_to
from podium_audit.intake.senders import sender_of
from podium_audit.intake.span_intake import SpanIntake
from podium_core.config.tenants import Tenants
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.runtime.http_status import HTTP_STATUS_OF_CODE
from podium_core.runtime.identity import caller_of_certificate

_MAX_BODY_BYTES: Final = 8 << 20
_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"


class OtlpHttp:
    """The one page."""

    def __init__(self, intake: SpanIntake, tenants: Callable[[], Tenants]) -> None:
        self._intake = intake
        self._tenants = tenants

    def application(self) -> web.Application:
        """Return the application, to be served over TLS only."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_post("/v1/traces", self._traces)
        return app

    async def _traces(self, request: web.Request) -> web.Response:
        media_type = _JSON if request.content_type == _JSON else _PROTOBUF
        try:
            sender = sender_of(_caller(request), self._tenants)
            try:
                body = await request.read()
            except web.HTTPRequestEntityTooLarge:
                raise PodiumError(Code.TOO_LARGE, f"send at most {_MAX_BODY_BYTES} bytes at once") from None
            decoded = decode(_read(body, media_type), tenant_id=sender.tenant_id, sender=sender.name)
            self._intake.take(decoded.rows)
        except PodiumError as error:
            return refusal(error)
        return _response(answer_to(decoded), media_type)


def refusal(error: PodiumError) -> web.Response:
    """Return the answer to an error: a status that senders know, and what to change."""
    headers = dict(pages.HEADERS)
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    return web.json_response(
        {"message": error.message}, status=HTTP_STATUS_OF_CODE[error.code], headers=headers
    )


def _caller(request: web.Request) -> str:
    certificate: dict[str, Any] | None = request.get_extra_info("peercert")
    names = (certificate or {}).get("subjectAltName", ())
    return caller_of_certificate([name for kind, name in names if kind == "URI"])


def _read(body: bytes, media_type: str) -> trace_service_pb2.ExportTraceServiceRequest:
    message = trace_service_pb2.ExportTraceServiceRequest()
    try:
        if media_type == _JSON:
            json_format.ParseDict(with_base64_ids(body), message, ignore_unknown_fields=True)
        else:
            message.ParseFromString(body)
    except (DecodeError, json_format.ParseError, ValueError, RecursionError):
        raise invalid(
            f"the body is no ExportTraceServiceRequest as {media_type}", reason="BODY_UNREADABLE"
        ) from None
    return message


def _response(answer: Message, media_type: str) -> web.Response:
    if media_type == _JSON:
        return web.Response(
            text=json_format.MessageToJson(answer, indent=None), content_type=_JSON, headers=pages.HEADERS
        )
    return web.Response(
        body=answer.SerializeToString(),
        content_type=_PROTOBUF,
        status=HTTPStatus.OK,
        headers=pages.HEADERS,
    )
