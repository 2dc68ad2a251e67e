"""What can be done with stored chat completions: list them, read, relabel and delete each."""

from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

from podium_gateway.codecs.fields import as_string, refuse
from podium_gateway.codecs.listing import list_object, list_part, list_wanted
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.codecs.openai_parameters import decode_metadata
from podium_gateway.codecs.strict_json import parse_object
from podium_gateway.completions import CompletionFilter, StoredCompletions
from podium_gateway.intake import Intake

_JSON = "application/json"
_PATH = "/v1/chat/completions"
_LABEL = ("metadata[", "]")
_OTHERS = ("model", "metadata[<name>]")


@dataclass(frozen=True, slots=True)
class CompletionsRoutes:
    """The routes of stored completions."""

    intake: Intake
    stored: StoredCompletions

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get(_PATH, self.list)
        app.router.add_get(f"{_PATH}/{{id}}", self.read)
        app.router.add_post(f"{_PATH}/{{id}}", self.update)
        app.router.add_delete(f"{_PATH}/{{id}}", self.delete)
        app.router.add_get(f"{_PATH}/{{id}}/messages", self.messages)

    async def list(self, request: web.Request) -> web.Response:
        """List the key's completions, oldest first unless asked otherwise."""
        principal = self.intake.authenticator.principal(request.headers)
        only, rest = _filter(request.query)
        wanted = list_wanted(rest, others=_OTHERS)
        # Looking through many is work, so it takes a place as a run does.
        slot = self.intake.admission.enter(principal.tenant.tenant_id)
        try:
            found, has_more = await self.stored.listed(principal, wanted, only)
        finally:
            slot.release()
        return _told(list_object(found, has_more=has_more))

    async def read(self, request: web.Request) -> web.Response:
        """Show a completion."""
        principal = self.intake.authenticator.principal(request.headers)
        return _told(await self.stored.get(principal, request.match_info["id"]))

    async def update(self, request: web.Request) -> web.Response:
        """Replace a completion's metadata, which is all that can change."""
        principal = self.intake.authenticator.principal(request.headers)
        fields = parse_object(await self.intake.small_body(request, principal))
        for name in fields:
            if name != "metadata":
                raise refuse(name[:64], "only metadata can be changed", reason="UNKNOWN_PARAMETER")
        given = fields.get("metadata")
        metadata = decode_metadata({} if given is None else given)
        return _told(await self.stored.update(principal, request.match_info["id"], metadata))

    async def delete(self, request: web.Request) -> web.Response:
        """Delete a completion for good."""
        principal = self.intake.authenticator.principal(request.headers)
        name = request.match_info["id"]
        await self.stored.delete(principal, name)
        return _told({"id": name, "object": "chat.completion.deleted", "deleted": True})

    async def messages(self, request: web.Request) -> web.Response:
        """List the messages that a completion answers."""
        principal = self.intake.authenticator.principal(request.headers)
        wanted = list_wanted(request.query)
        return _told(list_part(await self.stored.messages(principal, request.match_info["id"]), wanted))


def _filter(query: Mapping[str, str]) -> tuple[CompletionFilter, dict[str, str]]:
    """Return the filter, and what else is asked."""
    head, tail = _LABEL
    labels = {
        name.removeprefix(head).removesuffix(tail): value
        for name, value in query.items()
        if name.startswith(head) and name.endswith(tail)
    }
    rest = {
        name: value
        for name, value in query.items()
        if name != "model" and not (name.startswith(head) and name.endswith(tail))
    }
    model = as_string(query.get("model", ""), "model", at_most=256)
    return CompletionFilter(model, decode_metadata(labels)), rest


def _told(body: Mapping[str, object]) -> web.Response:
    return web.Response(text=json_text(body), content_type=_JSON, headers={"cache-control": "no-store"})
