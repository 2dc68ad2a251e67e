"""Which event loop a test runs on: asyncio's, and uvloop's too where transports are what is tested."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_ON_BOTH = frozenset({"test_http_server.py"})


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the loops for an asynchronous test. Services run on uvloop, whose transports are its own."""
    if item.path.name in _ON_BOTH:
        return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}
