"""Stored responses: what `previous_response_id` continues and `GET /v1/responses/{id}` reads.

They lie in audit (class `conversation`), sealed and deletable, so that any gateway can read them. A response
belongs to the key that asked for it: for every other key it does not exist.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from podium_core.config.tenants import Principal
from podium_core.domain.clock import Clock
from podium_core.domain.conversation import ItemKey, ItemKind
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.codecs.strict_json import shown
from podium_gateway.ports import ConversationPort

UNFINISHED = frozenset({"in_progress", "queued"})
_ID = re.compile(r"resp_[A-Za-z0-9]{1,64}")
_NS_PER_MS = 1_000_000
_MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One response in its present state.

    `conversation` are the chat messages up to and with its answer; those from `asked[0]` to before `asked[1]`
    came with the request itself. `events` are those of its stream, so that
    one that was cut can be resumed. While it is unfinished, its gateway lives until `alive_until_ms` (since
    1970, UTC) at least.
    """

    response: Mapping[str, object]
    conversation: Sequence[Mapping[str, object]] = ()
    events: Sequence[str] = field(default=(), repr=False)
    alive_until_ms: int = 0
    asked: tuple[int, int] = (0, 0)

    @property
    def is_finished(self) -> bool:
        """Whether it will not change any more."""
        return self.response.get("status") not in UNFINISHED


class StoredResponses:
    """Keeps responses for `ttl_s` seconds."""

    def __init__(self, kept: ConversationPort, clock: Clock, ttl_s: float) -> None:
        self._kept = kept
        self._clock = clock
        self._ttl_s = ttl_s

    async def get(self, principal: Principal, response_id: str, *, is_read: bool = False) -> StoredResponse:
        """Return a response; `is_read` records that its owner has read it.

        Raises PodiumError: NOT_FOUND when there is none, or none any more; AUDIT_UNAVAILABLE.
        """
        key = _key(principal, response_id)
        item = await self._kept.get(key)
        held = None if item is None else json.loads(item.data)
        if held is None or held["principal_id"] != principal.key_id:
            raise _unknown(response_id)
        stored = StoredResponse(
            held["response"],
            held["conversation"],
            held["events"],
            held["alive_until_ms"],
            tuple(held["asked"]),
        )
        if not stored.is_finished and stored.alive_until_ms < self._clock.now_ns() // _NS_PER_MS:
            return replace(stored, response={**stored.response, "status": "failed", "error": _GONE})
        if is_read and stored.is_finished:
            await self._kept.get(key, principal_id=principal.key_id)
        return stored

    async def update(
        self, principal: Principal, stored: StoredResponse, run_id: str, *, alive_s: float
    ) -> bool:
        """Keep the next state of a response; return False when it has been deleted, and leave it so.

        Its one writer and whoever deletes it are all that change it. Raises PodiumError (AUDIT_UNAVAILABLE).
        """
        key = _key(principal, str(stored.response["id"]))
        while True:
            if (item := await self._kept.get(key)) is None:
                return False
            try:
                await self.put(principal, stored, run_id, alive_s=alive_s, if_version=item.version)
            except PodiumError as error:
                if error.code is not Code.CONFLICT:
                    raise
            else:
                return True

    async def put(
        self,
        principal: Principal,
        stored: StoredResponse,
        run_id: str,
        *,
        alive_s: float = 0.0,
        if_version: int = 0,
    ) -> None:
        """Keep a response; one that is unfinished counts as lost after `alive_s` seconds.

        With `if_version` only over that version; raises PodiumError (CONFLICT) over any other or none.
        """
        alive_until_ms = self._clock.now_ns() // _NS_PER_MS + round(alive_s * _MS_PER_S)
        held = {
            "principal_id": principal.key_id,
            "response": stored.response,
            "conversation": list(stored.conversation),
            "events": list(stored.events),
            "alive_until_ms": alive_until_ms,
            "asked": list(stored.asked),
        }
        key = _key(principal, str(stored.response["id"]))
        data = json.dumps(held, ensure_ascii=False).encode(errors="replace")
        await self._kept.put(key, data, ttl_s=self._ttl_s, run_id=run_id, if_version=if_version)

    async def delete(self, principal: Principal, response_id: str) -> None:
        """Delete a response for good; raise PodiumError (NOT_FOUND) when there is none."""
        await self.get(principal, response_id)
        await self._kept.delete(_key(principal, response_id), principal_id=principal.key_id)


_GONE = {"code": "server_error", "message": "the gateway that performed this response is gone; ask again"}


def _key(principal: Principal, response_id: str) -> ItemKey:
    if not _ID.fullmatch(response_id):
        raise _unknown(response_id)
    return ItemKey(principal.tenant.tenant_id, ItemKind.RESPONSE, response_id)


def _unknown(response_id: str) -> PodiumError:
    return PodiumError(
        Code.NOT_FOUND,
        f"there is no response {shown(response_id)}, or none any more, for this key",
        reason="RESPONSE_NOT_FOUND",
    )
