"""OTLP's JSON is protobuf's but for one thing: ids are hex, not base64 (OTLP specification, JSON)."""

import base64
import json
from typing import Any, Final

_IDS: Final = ("traceId", "spanId", "parentSpanId")


def with_base64_ids(body: bytes) -> dict[str, Any]:
    """Return a request's object with its spans' ids as protobuf's JSON mapping wants them.

    Raises ValueError (RecursionError for JSON that is nested too deeply) when it is no such request.
    """
    fields = json.loads(body)
    if not isinstance(fields, dict):
        raise ValueError("no object")  # noqa: TRY004 - one error for every malformed input
    for resource in _list(fields, "resourceSpans"):
        for scope in _list(resource, "scopeSpans"):
            for span in _list(scope, "spans"):
                span.pop("links", None)  # never kept, and full of ids
                for name in _IDS:
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(str(span[name]))).decode()
    return fields


def _list(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = fields.get(name, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{name} is no list of objects")
    return items
