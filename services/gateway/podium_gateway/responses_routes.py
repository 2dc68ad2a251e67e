"""What can be done with a stored response: read it, follow it, cancel it, delete it."""

from dataclasses import dataclass

from aiohttp import web

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.background import Background
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.listing import list_part, list_wanted
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.codecs.responses_input import input_items
from podium_gateway.intake import Intake
from podium_gateway.stored import StoredResponse, StoredResponses

_JSON = "application/json"
_MAX_NUMBER_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ResponsesRoutes:
    """The routes below `/v1/responses/{id}`."""

    intake: Intake
    stored: StoredResponses
    background: Background

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/v1/responses/{id}", self.read)
        app.router.add_delete("/v1/responses/{id}", self.delete)
        app.router.add_post("/v1/responses/{id}/cancel", self.cancel)
        app.router.add_get("/v1/responses/{id}/input_items", self.input_items)

    async def read(self, request: web.Request) -> web.StreamResponse:
        """Show a response in its present state, or stream its events after `starting_after`."""
        principal = self.intake.authenticator.principal(request.headers)
        response_id = request.match_info["id"]
        if request.query.get("stream") == "true":
            after = _starting_after(request)
            # Following one that another gateway performs asks audit every second, so it takes a place.
            slot = self.intake.admission.enter(principal.tenant.tenant_id)
            try:
                return await self.background.resume(request, principal, response_id, after)
            finally:
                slot.release()
        return _shown(await self.background.read(principal, response_id))

    async def input_items(self, request: web.Request) -> web.Response:
        """List what a response was asked, the last item first unless asked otherwise."""
        principal = self.intake.authenticator.principal(request.headers)
        wanted = list_wanted(request.query, order="desc")
        response_id = request.match_info["id"]
        stored = await self.background.read(principal, response_id)
        if not stored.conversation:
            raise PodiumError(
                Code.CONFLICT,
                f"this response is {stored.response['status']}: what it was asked is kept with its answer",
                reason="RESPONSE_UNANSWERED",
            )
        asked = stored.conversation[slice(*stored.asked)]
        listed = list_part(input_items(asked, response_id), wanted)
        return web.Response(text=json_text(listed), content_type=_JSON)

    async def delete(self, request: web.Request) -> web.Response:
        """Delete a response for good."""
        principal = self.intake.authenticator.principal(request.headers)
        response_id = request.match_info["id"]
        await self.background.delete(principal, response_id)
        told = {"id": response_id, "object": "response", "deleted": True}
        return web.Response(text=json_text(told), content_type=_JSON)

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a background response."""
        principal = self.intake.authenticator.principal(request.headers)
        return _shown(await self.background.cancel(principal, request.match_info["id"]))


def _starting_after(request: web.Request) -> int:
    text = request.query.get("starting_after", "-1")
    if text != "-1" and not (text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER_DIGITS):
        raise refuse("starting_after", "must be the sequence number of the last event that was read")
    return int(text)


def _shown(stored: StoredResponse) -> web.Response:
    return web.Response(text=json_text(stored.response), content_type=_JSON)
