"""Real workers through a running gateway: each call is a run of its own of the model `worker/<id>`.

So calls pass the same policy, budget and audit log as everybody's. Needs aiohttp, which the extras bring.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import aiohttp

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import Completion, Delta, Permitted, StepCall, WorkerEvent

_MAX_BODY_BYTES = 32 << 20
_OK = 200
_CODE_OF_STATUS = {
    401: Code.UNAUTHENTICATED,
    402: Code.BUDGET_EXHAUSTED,
    403: Code.POLICY_DENIED,
    404: Code.NOT_FOUND,
    413: Code.TOO_LARGE,
    429: Code.RATE_LIMITED,
    504: Code.DEADLINE,
}
_FIRST_SERVER_ERROR = 500


class GatewayWorkers:
    """A `WorkerPort` over a gateway's HTTP API. `session` is the caller's to open and to close."""

    def __init__(self, url: str, key: str, session: aiohttp.ClientSession, clock: Clock) -> None:
        self._url = url.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"
        self._headers = {"authorization": f"Bearer {key}"}
        self._session = session
        self._clock = clock

    async def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Yield the permit and the whole answer; raise PodiumError with the gateway's own reason."""
        started_ns = self._clock.monotonic_ns()
        status, headers, raw = await self._posted(call)
        told = _object(raw)
        if status != _OK or told is None:
            raise _refusal(status, headers, told)
        yield Permitted(0)
        yield _completion(told, (self._clock.monotonic_ns() - started_ns) // 1_000)

    async def _posted(self, call: StepCall) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=call.timeout_s)
        try:
            async with self._session.post(
                self._url, json=_body(call), headers=self._headers, timeout=timeout
            ) as response:
                raw = bytearray()
                async for piece in response.content.iter_any():
                    raw += piece
                    if len(raw) > _MAX_BODY_BYTES:
                        raise PodiumError(
                            Code.PROVIDER_FAILED, "the gateway's answer is too long", reason="ANSWER_TOO_LONG"
                        )
                return response.status, response.headers, bytes(raw)
        except TimeoutError:
            raise PodiumError(
                Code.DEADLINE, "the worker did not answer in time", reason="STEP_DEADLINE"
            ) from None
        except aiohttp.ClientError as error:
            raise PodiumError(
                Code.UNAVAILABLE,
                f"the gateway cannot be reached or broke off ({type(error).__name__}); is it running?",
                reason="GATEWAY_UNREACHABLE",
            ) from None


def _body(call: StepCall) -> dict[str, object]:
    question = dict(call.prompt.question.fields)
    if call.prompt.pieces:
        question["content"] = "".join(piece.text for piece in call.prompt.pieces)
    return {
        **call.parameters,
        "model": f"worker/{call.worker_id}",
        "messages": [
            *(dict(message.fields) for message in call.prompt.history),
            question,
            *(dict(turn.fields) for turn in call.prompt.turns),
        ],
        "max_completion_tokens": call.max_output_tokens,
        "stream": False,
    }


def _completion(told: Mapping[str, Any], latency_us: int) -> Completion:
    try:
        choice, usage = told["choices"][0], told["usage"]
        message = choice["message"]
        return Completion(
            finish_reason=str(choice["finish_reason"]),
            usage=Usage(int(usage["prompt_tokens"]), int(usage["completion_tokens"])),
            cost_usd_micros=int(told["podium"]["cost_usd_micros"]),
            latency_us=latency_us,
            served_model=str(told.get("model", "")),
            message=Delta(str(message.get("content") or ""), str(message.get("reasoning_content") or "")),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise PodiumError(
            Code.PROVIDER_FAILED, "the gateway's answer is not understood", reason="ANSWER_NOT_UNDERSTOOD"
        ) from None


def _refusal(status: int, headers: Mapping[str, str], told: Mapping[str, Any] | None) -> PodiumError:
    error = told.get("error") if told else None
    said = error if isinstance(error, dict) else {}
    code = _CODE_OF_STATUS.get(
        status,
        Code.PROVIDER_FAILED if status >= _FIRST_SERVER_ERROR or status == _OK else Code.INVALID_REQUEST,
    )
    after = headers.get("retry-after", "")
    return PodiumError(
        code,
        f"the gateway answered with the status {status}",
        reason=str(said.get("code") or code.value).upper(),
        metadata={"retryable": "false"} if headers.get("x-should-retry") == "false" else None,
        retry_after_s=float(after) if after.isdecimal() else None,
    )


def _object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
