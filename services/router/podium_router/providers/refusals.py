"""How providers of other protocols refuse: where they put their waits, and how they say "too long"."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from podium_core.domain.errors import PodiumError
from podium_router.providers.exchange import Exchange

_TOO_LONG: Final = re.compile(
    r"prompt is too long"  # Anthropic
    r"|input length and `max_tokens` exceed context limit"  # Anthropic
    r"|input token count .{0,40}exceeds the maximum"  # Gemini
    r"|input is too long for requested model"  # Bedrock
    r"|too many (input )?tokens"  # Bedrock, Cohere
    r"|maximum context length",  # OpenAI's sentence, which many repeat
    re.IGNORECASE,
)
_MAX_SEARCHED_CHARS: Final = 8_192
_DELAY: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
_CLIENT_ERRORS: Final = range(400, 500)


def provider_refusal(
    exchange: Exchange, status: int, headers: Mapping[str, str], body: object
) -> PodiumError:
    """Return the error for an HTTP answer other than success; no text of the provider's is in it."""
    if status in _CLIENT_ERRORS and _TOO_LONG.search(json.dumps(body)[:_MAX_SEARCHED_CHARS]):
        body = {"error": {"code": "context_length_exceeded"}}
    delay = _retry_delay(body)
    if delay is not None and "retry-after" not in headers:
        headers = {"retry-after": delay}
    return exchange.refused(status, headers, body)


def _retry_delay(body: object) -> str | None:
    """Return the wait that Google puts into the body (google.rpc.RetryInfo), in seconds."""
    error = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (match := _DELAY.fullmatch(delay)):
            return match[1]
    return None
