"""What every page shares: who asks, which parameters it knows, which headers its answer carries."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from podium_core.config.tenants import Principal
from podium_core.domain.errors import invalid
from podium_core.runtime.http_server import SERVER

PRINCIPAL: Final = web.RequestKey("principal", Principal)
HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": SERVER}

_MAX_DIGITS: Final = 16


def query(request: web.Request, *known: str) -> Mapping[str, str]:
    """Return the query's parameters; raise PodiumError (INVALID_REQUEST) for one that is not known."""
    for name in request.query:
        if name not in known:
            allowed = f"one of {', '.join(known)}" if known else "none"
            raise invalid(
                f"unknown query parameter {name[:64]!r}: this page knows {allowed}", param=name[:64]
            )
        if any("\0" in value for value in request.query.getall(name)):
            raise invalid(f"{name} must not hold the character U+0000", param=name)
    return request.query


def number(name: str, text: str | None, *, low: int, high: int, default: int | None = None) -> int:
    """Return a number from `low` to `high`; raise PodiumError (INVALID_REQUEST) for anything else."""
    if text is None and default is not None:
        return default
    is_number = text is not None and len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()
    if text is None or not is_number or not low <= int(text) <= high:
        raise invalid(f"{name} must be a number from {low} to {high}", param=name)
    return int(text)


def flag(name: str, text: str) -> bool:
    """Return true or false; raise PodiumError (INVALID_REQUEST) for anything else."""
    if text not in ("true", "false"):
        raise invalid(f"{name} must be true or false", param=name)
    return text == "true"
