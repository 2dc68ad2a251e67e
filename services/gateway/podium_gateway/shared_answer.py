"""One answer for everybody who asks for it with the same key: told once, kept, and read by any number."""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from podium_core.domain.errors import PodiumError
from podium_gateway.sse import ClientGoneError, EventStream

_JSON = "application/json"


class SharedAnswer:
    """Text that grows until it is whole. Everyone reads it from its beginning, at their own pace."""

    def __init__(self, fingerprint: str, *, is_stream: bool) -> None:
        self.fingerprint = fingerprint
        self.is_stream = is_stream
        self.headers: Mapping[str, str] = {}
        self._texts: list[str] = []
        self._is_whole = False
        self._error: PodiumError | None = None
        self._readers: set[asyncio.Event] = set()
        self._moved = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether something was told, so that a failure can be no status code any more."""
        return bool(self._texts)

    @property
    def is_whole(self) -> bool:
        """Whether nothing more comes."""
        return self._is_whole

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join(self._texts)

    def add(self, text: str) -> None:
        """Tell more."""
        if text:
            self._texts.append(text)
            self._wake()

    def end(self, error: PodiumError | None = None) -> None:
        """Nothing more comes. `error` is for readers who have been told nothing."""
        self._is_whole, self._error = True, error
        self._wake()

    @property
    def has_readers(self) -> bool:
        """Whether anybody reads."""
        return bool(self._readers)

    async def until_read(self, wanted: bool) -> None:  # noqa: FBT001 - the one thing to say
        """Return as soon as somebody reads, or nobody does."""
        while self.has_readers != wanted:
            self._moved.clear()
            await self._moved.wait()

    async def read(self, request: web.Request, stall_timeout_s: float) -> web.StreamResponse:
        """Answer one request with it; raise PodiumError while nothing has been sent."""
        news = asyncio.Event()
        self._readers.add(news)
        self._moved.set()
        try:
            if self.is_stream:
                return await self._stream(request, news, stall_timeout_s)
            while not self._is_whole:
                await _next(news)
            if self._error is not None:
                raise self._error
            return web.Response(text=self.text, content_type=_JSON, headers=self.headers)
        finally:
            self._readers.discard(news)
            self._moved.set()

    async def _stream(
        self, request: web.Request, news: asyncio.Event, stall_timeout_s: float
    ) -> web.StreamResponse:
        while not (self._texts or self._is_whole):
            await _next(news)
        if self._error is not None and not self._texts:
            raise self._error
        stream = EventStream(request, self.headers, stall_timeout_s)
        sent = 0
        try:
            while True:
                text, sent = "".join(self._texts[sent:]), len(self._texts)
                if text:
                    await stream.send(text)
                elif self._is_whole:
                    break
                else:
                    await _next(news)
            if self._error is None:
                await stream.close()
            else:
                stream.abort()
        except ClientGoneError:
            pass
        return stream.response

    def _wake(self) -> None:
        for news in self._readers:
            news.set()


async def _next(news: asyncio.Event) -> None:
    await news.wait()
    news.clear()
