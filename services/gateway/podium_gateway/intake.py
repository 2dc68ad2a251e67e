"""What every request passes first: the key, a place in the house, and its body within bounds."""

import asyncio
from dataclasses import dataclass

from aiohttp import web

from podium_core.config.tenants import Principal
from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.request import RunRequest
from podium_gateway.admission import Admission, Slot
from podium_gateway.auth import Authenticator
from podium_gateway.limiter import CLAIMANT, Claim, Limiter


@dataclass(frozen=True, slots=True)
class Intake:
    """The door: who may enter, how often, and how much they may bring (bytes, seconds)."""

    authenticator: Authenticator
    admission: Admission
    limiter: Limiter
    max_body_bytes: int
    body_timeout_s: float

    async def small_body(self, request: web.Request, principal: Principal) -> bytes:
        """Return the body of a request that starts no run, read in a place that is given back at once."""
        slot = self.admission.enter(principal.tenant.tenant_id)
        try:
            return await self.body(request, slot)
        finally:
            slot.release()

    async def claim(
        self, request: web.Request, principal: Principal, run_request: RunRequest, slot: Slot
    ) -> Claim:
        """Take a run out of the limits of its key and tenant, until `slot` is given back.

        Raises PodiumError (RATE_LIMITED, AUDIT_UNAVAILABLE); the answer says what is left in any case.
        """
        request[CLAIMANT] = principal
        claim = await self.limiter.claim(principal, run_request)
        slot.also_release(claim.release)
        return claim

    async def body(self, request: web.Request, slot: Slot) -> bytes:
        """Return the body; raise PodiumError (TOO_LARGE, RATE_LIMITED, INVALID_REQUEST).

        Its bytes are held as they come: what is only announced keeps nobody out.
        """
        limit = self.max_body_bytes
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.body_timeout_s):
                async for piece in request.content.iter_any():
                    size += len(piece)
                    if size > limit:
                        raise _too_large(limit)
                    slot.hold(size)
                    pieces.append(piece)
        except TimeoutError:
            raise PodiumError(
                Code.INVALID_REQUEST,
                f"the body did not arrive within {self.body_timeout_s:g} seconds",
                reason="BODY_TIMEOUT",
            ) from None
        except web.RequestPayloadError:
            raise PodiumError(
                Code.INVALID_REQUEST,
                "the body cannot be read: check its length and content-encoding",
                reason="BODY_UNREADABLE",
            ) from None
        return b"".join(pieces)


def _too_large(limit: int) -> PodiumError:
    return PodiumError(
        Code.TOO_LARGE,
        f"the body is larger than {limit} bytes, which is the limit after decompression",
        reason="BODY_TOO_LARGE",
    )
