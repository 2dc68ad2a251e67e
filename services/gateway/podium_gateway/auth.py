"""Who is calling: a key, looked up by its hash."""

from collections.abc import Callable, Mapping

from podium_core.config.tenants import CLIENT, Principal, Tenants
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError

_SCHEME = "bearer"


class Authenticator:
    """Finds the principal of a request. `tenants` is asked each time, so a new file counts at once."""

    def __init__(self, tenants: Callable[[], Tenants], clock: Clock) -> None:
        self._tenants = tenants
        self._clock = clock

    def principal(self, headers: Mapping[str, str], *roles: str) -> Principal:
        """Return who sends `headers`, if it has one of `roles` (none named: the role of a client).

        Raises PodiumError: UNAUTHENTICATED without a valid key, POLICY_DENIED for a key that may not call.
        """
        principal = self.anybody(headers)
        wanted = roles or (CLIENT,)
        if principal.roles.isdisjoint(wanted):
            told = " or ".join(f'"{role}"' for role in wanted)
            raise PodiumError(
                Code.POLICY_DENIED,
                f"the key {principal.key_id} lacks the role {told}, which this call needs",
                reason="ROLE_MISSING",
            )
        return principal

    def anybody(self, headers: Mapping[str, str]) -> Principal:
        """Return who sends `headers`, whatever its roles; raise PodiumError (UNAUTHENTICATED) for nobody."""
        principal = self._tenants().authenticate(_token(headers), self._clock.now_ns())
        if principal is None:
            raise _unauthenticated("the API key is wrong, expired or revoked", "INVALID_API_KEY")
        return principal


def _token(headers: Mapping[str, str]) -> str:
    """Return the key: the bearer's, or else the one in the header that Anthropic's clients send."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == _SCHEME and token:
        return token.strip()
    if "Authorization" not in headers and (key := headers.get("x-api-key", "").strip()):
        return key
    raise _unauthenticated('send your API key as "Authorization: Bearer <key>"', "MISSING_API_KEY")


def _unauthenticated(message: str, reason: str) -> PodiumError:
    return PodiumError(Code.UNAUTHENTICATED, message, reason=reason)
