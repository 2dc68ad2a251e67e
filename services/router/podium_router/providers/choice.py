"""Which client makes a worker's calls."""

from collections.abc import Iterable

from podium_core.config.provider import is_translated
from podium_router.ports import ProviderCall, ProviderRequest
from podium_router.providers.exchange import Exchange
from podium_router.providers.library import Library
from podium_router.providers.litellm import LitellmClient
from podium_router.providers.native import NativeClient


class Providers:
    """All providers: OpenAI's protocol is spoken natively, every other in translation."""

    def __init__(self, exchange: Exchange) -> None:
        self._native = NativeClient(exchange)
        self._library = Library()
        self._translated = LitellmClient(exchange, self._library)

    async def load(self, kinds: Iterable[str]) -> None:
        """Load the translating library, if any of `kinds` needs it, before the first call does.

        It takes seconds and 200 MB, and imports more with the first call of each kind: one is translated
        here and thrown away.
        """
        for kind in sorted(filter(is_translated, set(kinds))):
            await self._translated.warm_up(kind)

    async def prepare(self, request: ProviderRequest) -> ProviderCall:
        """Put a call into its provider's words. Raises PodiumError (INVALID_REQUEST)."""
        if is_translated(request.kind):
            return await self._translated.prepare(request)
        return await self._native.prepare(request)
