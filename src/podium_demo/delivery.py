"""Puts a reply on the wire, with the fault that a test may have asked for."""

import asyncio

from aiohttp import web

from podium_demo.chat_response import Reply, stream_events, whole_body
from podium_demo.faults import Fault

_MAX_HANG_S = 600.0
_NO_FAULT = Fault(model="*", kind="none")
_STREAM_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_WHOLE_HEADERS = {"Content-Type": "application/json; charset=utf-8"}


async def before_reply(request: web.Request, fault: Fault | None) -> bool:
    """Do what a fault asks for before the first byte; return whether a reply is still to be sent.

    Raises ApiError for a `status` fault.
    """
    if fault is None:
        return True
    if fault.kind == "status":
        raise fault.error()
    if fault.kind == "delay":
        await asyncio.sleep(fault.seconds)
    is_early = fault.after_deltas is None and fault.after_bytes is None
    if fault.kind in ("cut", "hang") and is_early:
        await _give_up(request, fault)
        return False
    return True


async def send_whole(
    request: web.Request, reply: Reply, headers: dict[str, str], fault: Fault | None
) -> web.StreamResponse:
    """Send the reply as one JSON body."""
    body = whole_body(reply)
    response = web.StreamResponse(headers=headers | _WHOLE_HEADERS)
    response.content_length = len(body)
    await response.prepare(request)
    fault = fault or _NO_FAULT
    if fault.kind in ("cut", "hang"):
        # A whole body has no deltas: it breaks in its middle unless the fault says where.
        place = len(body) // 2 if fault.after_bytes is None else fault.after_bytes
        await _break(request, response, body[:place], fault)
        return response
    await _write(response, body, fault)
    await response.write_eof()
    return response


async def send_stream(
    request: web.Request, reply: Reply, headers: dict[str, str], fault: Fault | None, *, include_usage: bool
) -> web.StreamResponse:
    """Send the reply as server-sent events."""
    events, lead = stream_events(reply, include_usage=include_usage)
    response = web.StreamResponse(headers=headers | _STREAM_HEADERS)
    await response.prepare(request)
    fault = fault or _NO_FAULT
    if fault.kind in ("cut", "hang"):
        kept = b"".join(events if fault.after_deltas is None else events[: lead + fault.after_deltas])
        await _break(request, response, kept[: fault.after_bytes], fault)
        return response
    if fault.kind == "split":
        await _write(response, b"".join(events), fault)
    else:
        for index, event in enumerate(events):
            if fault.between_seconds and index >= lead:
                await asyncio.sleep(fault.between_seconds)
            await response.write(event)
    await response.write_eof()
    return response


async def _write(response: web.StreamResponse, body: bytes, fault: Fault) -> None:
    size = fault.chunk_bytes if fault.kind == "split" else len(body)
    for start in range(0, len(body), size):
        await response.write(body[start : start + size])
        if fault.kind == "split":
            await asyncio.sleep(fault.between_seconds)


async def _break(request: web.Request, response: web.StreamResponse, kept: bytes, fault: Fault) -> None:
    if kept:
        await response.write(kept)
    await _give_up(request, fault)


async def _give_up(request: web.Request, fault: Fault) -> None:
    """Close the connection without ending the body: at once, or for a hang when nobody left before."""
    if fault.kind == "hang":
        await asyncio.sleep(_MAX_HANG_S)
    if request.transport is not None:
        request.transport.abort()
