"""The HTTP server: routes, error rendering, health."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from podium_core.config.tenants import CLIENT, GRADER
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.runtime.http_server import SERVER, ConnectionLimits, listen
from podium_gateway.admission import Admission
from podium_gateway.answers import Front, RunFailedError
from podium_gateway.budgets import Budgets
from podium_gateway.codecs.grade import decode_grade
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.codecs.openai_models import Offer, model_list, one_model
from podium_gateway.completions_routes import CompletionsRoutes
from podium_gateway.errors import anthropic_error_body, error_body, error_headers, http_row
from podium_gateway.fronts.chat import ChatFront
from podium_gateway.fronts.embeddings import EmbeddingsFront
from podium_gateway.fronts.messages import MessagesFront, counted_tokens
from podium_gateway.fronts.responses import ResponsesFront
from podium_gateway.handler import RunHandler
from podium_gateway.limiter import CLAIMANT, Limiter
from podium_gateway.openapi.document import api_document
from podium_gateway.own_usage import OwnUsage
from podium_gateway.ports import ReadinessPort
from podium_gateway.responses_routes import ResponsesRoutes
from podium_gateway.sse import STREAM
from podium_gateway.telemetry import RunTelemetry

_log = logging.getLogger(__name__)
_NANOS = 1_000_000_000
_PPM = 1_000_000
_JSON = "application/json"
_UNAVAILABLE = 503
_MESSAGES_PATH = "/v1/messages"
_ONCE = ("Authorization", "X-Api-Key", "Idempotency-Key")
_CONNECTIONS = ConnectionLimits()


@dataclass(slots=True)
class Edge:
    """Everything the routes need."""

    handler: RunHandler
    responses: ResponsesRoutes
    completions: CompletionsRoutes
    own_usage: OwnUsage
    readiness: ReadinessPort
    telemetry: RunTelemetry
    clock: Clock
    inner_step_output_tokens: int
    started_s: int = field(init=False)
    """When this gateway began to serve (Unix seconds): the `created` of its models, the same at each call."""

    def __post_init__(self) -> None:
        self.started_s = self.clock.now_ns() // _NANOS

    @property
    def limiter(self) -> Limiter:
        """Knows what is left of everybody's limits."""
        return self.handler.intake.limiter

    @property
    def admission(self) -> Admission:
        """Who is in the house."""
        return self.handler.intake.admission

    def answering(self, front: Front) -> Handler:
        """Return the handler of a route that answers by runs, in one protocol."""

        async def answer(request: web.Request) -> web.StreamResponse:
            return await self.handler.answer(request, front)

        return answer

    async def count_tokens(self, request: web.Request) -> web.Response:
        """Count the tokens of a request for `/v1/messages`."""
        intake = self.handler.intake
        body = await intake.small_body(request, intake.authenticator.principal(request.headers))
        return web.Response(text=await counted_tokens(body), content_type=_JSON)

    async def grade(self, request: web.Request) -> web.Response:
        """Take a grade of a run that has ended, from the key that made it or from its tenant's graders."""
        intake = self.handler.intake
        principal = intake.authenticator.principal(request.headers, CLIENT, GRADER)
        given = decode_grade(await intake.small_body(request, principal))
        run_id = request.match_info["run_id"]
        leaf_index = await self.handler.runs.grades.grade(
            principal.tenant.tenant_id,
            run_id,
            principal.key_id,
            score_ppm=given.score_ppm,
            comment=given.comment,
            of_any_key=GRADER in principal.roles,
        )
        told = {"run_id": run_id, "score": given.score_ppm / _PPM, "leaf_index": leaf_index}
        return web.Response(text=json_text(told), content_type=_JSON)

    async def models(self, request: web.Request) -> web.Response:
        """List what this caller may name."""
        listed = model_list(self._offer(request), created=self.started_s)
        return web.Response(text=json_text(listed), content_type=_JSON)

    async def model(self, request: web.Request) -> web.Response:
        """Describe one model."""
        found = one_model(self._offer(request), request.match_info["model"], created=self.started_s)
        return web.Response(text=json_text(found), content_type=_JSON)

    async def usage(self, request: web.Request) -> web.Response:
        """Tell a key what it, or its tenant, has used."""
        principal = self.handler.intake.authenticator.anybody(request.headers)
        page = await self.own_usage.page(principal, request.query)
        return web.Response(text=json_text(page), content_type=_JSON, headers={"cache-control": "no-store"})

    def _offer(self, request: web.Request) -> Offer:
        handler = self.handler
        reach, pool = handler.intake.authenticator.principal(request.headers).reach, handler.pool.current()
        named = handler.runs.named
        return Offer(
            pool,
            reach,
            self.inner_step_output_tokens,
            named.listed_plans(reach, pool),
            [pin.day for pin in named.listed_pins(pool)],
        )

    async def healthz(self, request: web.Request) -> web.Response:
        """Say that the process lives."""
        del request
        return web.Response(text='{"status":"live"}', content_type=_JSON)

    async def readyz(self, request: web.Request) -> web.Response:
        """Say whether requests can be served, and what stands in the way."""
        del request
        if self.admission.is_draining:
            return web.Response(text='{"status":"draining"}', content_type=_JSON, status=_UNAVAILABLE)
        found = await self.readiness.check()
        body = {"status": found.status, "checks": dict(found.checks)}
        status = 200 if found.is_ready else _UNAVAILABLE
        return web.Response(text=json_text(body), content_type=_JSON, status=status)


def _description(edge: Edge, max_body_bytes: int) -> Handler:
    """Return the handler of the API's description. Any valid key reads it: strangers learn no version."""
    told = json_text(api_document(max_body_bytes))

    async def description(request: web.Request) -> web.Response:
        edge.handler.intake.authenticator.anybody(request.headers)
        return web.Response(text=told, content_type=_JSON)

    return description


def build_app(edge: Edge, max_body_bytes: int) -> web.Application:
    """Return the application with every route."""
    app = web.Application(client_max_size=max_body_bytes, middlewares=[_render_errors(edge.telemetry)])
    app.router.add_post("/v1/chat/completions", edge.answering(ChatFront(edge.completions.stored)))
    edge.completions.add_to(app)
    app.router.add_post("/v1/responses", edge.answering(ResponsesFront(edge.responses.stored)))
    edge.responses.add_to(app)
    app.router.add_post("/v1/embeddings", edge.answering(EmbeddingsFront()))
    app.router.add_post(_MESSAGES_PATH, edge.answering(MessagesFront()))
    app.router.add_post(f"{_MESSAGES_PATH}/count_tokens", edge.count_tokens)
    app.router.add_post("/v1/podium/runs/{run_id}/grade", edge.grade)
    app.router.add_get("/v1/models", edge.models)
    # Worker names contain a slash.
    app.router.add_get("/v1/models/{model:.+}", edge.model)
    app.router.add_get("/v1/podium/usage", edge.usage)
    app.router.add_get("/openapi.json", _description(edge, max_body_bytes))
    app.router.add_get("/healthz", edge.healthz)
    app.router.add_get("/readyz", edge.readyz)
    app.on_response_prepare.append(_final_touch(edge.admission, edge.limiter, edge.handler.runs.budgets))
    return app


async def serve(
    app: web.Application, host: str, port: int, limits: ConnectionLimits = _CONNECTIONS
) -> tuple[web.AppRunner, int]:
    """Listen and return the running server with its bound port; raise PodiumError if the port is taken.

    A hang-up reaches the handler at once: that is what cancels the run.
    """
    return await listen(app, host, port, refuse=error_response, limits=limits)


def _render_errors(telemetry: RunTelemetry) -> Middleware:
    @web.middleware
    async def render_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            _refuse_repeated(request)
            return await handler(request)
        except PodiumError as error:
            telemetry.refused(error)
            return error_response(error, request.path)
        except web.HTTPException as error:
            response = error_response(_routing_error(request, error), request.path)
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
            return response
        except Exception:  # noqa: BLE001 - the edge's last line: nothing internal may leave
            _log.exception("a request failed unexpectedly")
            stream = request.get(STREAM)
            if stream is not None and stream.is_open:
                stream.abort()
                cut: web.StreamResponse = stream.response
                return cut
            failure = PodiumError(Code.INTERNAL, "unexpected")
            telemetry.refused(failure)
            return error_response(failure, request.path)

    return render_errors


def _refuse_repeated(request: web.Request) -> None:
    """Refuse a header that comes twice where whoever stands in front may have read the other one."""
    for name in _ONCE:
        if len(request.headers.getall(name, ())) > 1:
            raise invalid(f"the header {name} may come once", reason="HEADER_REPEATED", param=name)


def error_response(error: PodiumError, path: str = "") -> web.Response:
    """Return the response for an error that comes before the first byte, in the dialect of the path."""
    body = anthropic_error_body(error) if path.startswith(_MESSAGES_PATH) else error_body(error)
    if isinstance(error, RunFailedError):
        body["podium"] = error.podium
    return web.Response(
        status=http_row(error).status,
        text=json_text(body),
        content_type=_JSON,
        headers=error_headers(error),
    )


def _routing_error(request: web.Request, error: web.HTTPException) -> PodiumError:
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return PodiumError(
            Code.INVALID_REQUEST,
            f"this URL takes {allowed}, not {request.method}",
            reason="METHOD_NOT_ALLOWED",
        )
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return PodiumError(Code.TOO_LARGE, "the body is too large", reason="BODY_TOO_LARGE")
    return PodiumError(
        Code.NOT_FOUND,
        "there is nothing at this URL; the API is POST /v1/chat/completions, /v1/responses, /v1/messages, "
        "/v1/embeddings and GET /v1/models",
        reason="UNKNOWN_URL",
    )


def _final_touch(
    admission: Admission, limiter: Limiter, budgets: Budgets
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    async def touch(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = SERVER
        claimant = request.get(CLAIMANT)
        if claimant is not None:
            response.headers.update(limiter.headers(claimant))
            response.headers.update(budgets.headers(claimant.tenant.tenant_id, claimant.key_id))
        if admission.is_draining:
            # Kept connections would bring the next request back to a gateway that is going away.
            response.headers["Connection"] = "close"
            response.force_close()

    return touch
