"""The worker port over the router service."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final

import grpc

from podium.router.v1 import router_service_pb2, router_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.ports import (
    Completion,
    Delta,
    EmbedCall,
    Embedded,
    EmbedPort,
    Permitted,
    StepCall,
    WorkerEvent,
    WorkerPort,
)
from podium_core.runtime.grpc_client import call_metadata
from podium_core.runtime.side_thread import aside
from podium_core.wire.run import ATTEMPT_KIND
from podium_core.wire.usage import usage_from_proto
from podium_gateway.adapters.contents import ContentShelf, render
from podium_gateway.adapters.inside import Inside
from podium_gateway.adapters.json_text import json_bytes
from podium_gateway.adapters.router_stream import AttemptEvents, RouterStream

Metadata = tuple[tuple[str, str], ...]

_LONG_CHARS: Final = 128 * 1024
_COMPLETE: Final = "/podium.router.v1.RouterService/Complete"


class RouterWorkers(WorkerPort, EmbedPort):
    """Has the router make attempts. `on_conflict` hears when the router knows another pool.

    While the router restarts, an attempt waits up to `connect_wait_s` for it, since nothing is dispatched
    before; an attempt that loses the router midway fails, and the runner makes another.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        shelf: ContentShelf,
        on_conflict: Callable[[], None],
        connect_wait_s: float = 10.0,
    ) -> None:
        self._channel = channel
        self._connect_wait_s = connect_wait_s
        self._stub: router_service_pb2_grpc.RouterServiceAsyncStub = (
            router_service_pb2_grpc.RouterServiceStub(channel)
        )
        # Takes requests as bytes: the stub would serialise them in the event loop, images and all.
        self._complete: grpc.aio.UnaryStreamMultiCallable[bytes, router_service_pb2.CompleteResponse] = (
            channel.unary_stream(
                _COMPLETE,
                request_serializer=None,
                response_deserializer=router_service_pb2.CompleteResponse.FromString,
            )
        )
        self._stream = RouterStream(channel)
        self._shelf = shelf
        self._on_conflict = on_conflict

    async def close(self) -> None:
        """Let go of the stream."""
        await self._stream.close()

    def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Make one attempt, as the port says, within the trace of whoever calls this."""
        return self._events(call, call_metadata())

    async def _events(self, call: StepCall, metadata: Metadata) -> AsyncGenerator[WorkerEvent, None]:
        await self._connected(call.timeout_s)
        events = await self._asked(call, metadata)
        try:
            with Inside("router"):
                async for message in events:
                    kind = message.WhichOneof("event")
                    if kind == "delta":
                        yield _delta(message.delta)
                    elif kind == "completed":
                        yield _completion(message.completed)
                    elif kind == "permitted":
                        yield Permitted(message.permitted.leaf_index)
        except PodiumError as error:
            if error.code is Code.CONFLICT:
                self._on_conflict()
            raise
        finally:
            events.cancel()

    async def _asked(
        self, call: StepCall, metadata: Metadata
    ) -> "AttemptEvents | grpc.aio.UnaryStreamCall[bytes, router_service_pb2.CompleteResponse]":
        """Ask over the stream that all attempts share; by a call of its own where others would wait."""
        if call.prompt.size_chars < _LONG_CHARS:
            traceparent = dict(metadata).get("traceparent", "")
            return self._stream.complete(self._request(call), call.timeout_s, traceparent)
        request = await aside(call.prompt.size_chars, self._serialized, call)
        return self._complete(request, timeout=call.timeout_s, metadata=metadata)

    async def embed(self, call: EmbedCall) -> Embedded:
        """Make one attempt of kind embed, as the port says."""
        metadata = call_metadata()
        await self._connected(call.timeout_s)
        request = router_service_pb2.EmbedRequest(
            attempt_id=call.attempt_id,
            run_id=call.run_id,
            tenant_id=call.tenant_id,
            worker_id=call.worker_id,
            pool_digest=call.pool_digest,
            input_json=json_bytes(list(call.inputs)),
            dimensions=call.dimensions,
        )
        try:
            with Inside("router"):
                answer = await self._stub.Embed(request, timeout=call.timeout_s, metadata=metadata)
        except PodiumError as error:
            if error.code is Code.CONFLICT:
                self._on_conflict()
            raise
        if len(answer.vectors) != len(call.inputs):
            raise PodiumError(
                Code.PROVIDER_FAILED, "the worker left inputs out", reason="PROVIDER_BAD_ANSWER"
            )
        return Embedded(
            vectors=tuple(answer.vectors),
            usage=usage_from_proto(answer.usage),
            cost_usd_micros=answer.cost_usd_micros,
            latency_us=answer.latency_us,
            served_model=answer.served_model,
        )

    async def _connected(self, timeout_s: float) -> None:
        if self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
            return
        try:
            async with asyncio.timeout(min(self._connect_wait_s, timeout_s)):
                await self._channel.channel_ready()
        except TimeoutError:
            raise PodiumError(
                Code.UNAVAILABLE, "the router service cannot be reached", reason="ROUTER_UNREACHABLE"
            ) from None

    def _serialized(self, call: StepCall) -> bytes:
        return self._request(call).SerializeToString()

    def _request(self, call: StepCall) -> router_service_pb2.CompleteRequest:
        request = router_service_pb2.CompleteRequest(
            attempt_id=call.attempt_id,
            run_id=call.run_id,
            tenant_id=call.tenant_id,
            kind=ATTEMPT_KIND.to_proto(call.kind),
            round=call.round,
            step_index=call.step_index,
            worker_id=call.worker_id,
            pool_digest=call.pool_digest,
            parameters_json=json_bytes(dict(call.parameters)) if call.parameters else b"",
            max_output_tokens=call.max_output_tokens,
            stream=call.stream,
            seen_steps=call.access.steps,
            sees_previous_round=call.access.previous_round,
        )
        for segment in render(call.prompt, self._shelf.get(call.run_id)):
            # Added in place: a message that is handed to another is copied once more.
            request.messages.add(part_id=segment.part_id, data=segment.data)
        return request


def _delta(message: router_service_pb2.Delta) -> Delta:
    return Delta(
        message.text,
        message.reasoning,
        _objects(message.tool_calls_json, "tool calls", "TOOL_CALLS_MALFORMED"),
        message.refusal,
        _objects(message.logprobs_json, "log-probabilities", "LOGPROBS_MALFORMED"),
    )


def _objects(data: bytes, what: str, reason: str) -> tuple[Mapping[str, object], ...]:
    if not data:
        return ()
    try:
        found: Any = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise PodiumError(Code.PROVIDER_FAILED, f"the worker's {what} cannot be read", reason=reason)
    return tuple(found)


def _completion(message: router_service_pb2.Completed) -> Completion:
    return Completion(
        finish_reason=message.finish_reason,
        usage=usage_from_proto(message.usage),
        cost_usd_micros=message.cost_usd_micros,
        latency_us=message.latency_us,
        first_delta_us=message.first_delta_us,
        served_model=message.served_model,
        message=_delta(message.message),
        replay=_replay(message.replay_message_json),
    )


def _replay(data: bytes) -> Mapping[str, object] | None:
    message = json.loads(data) if data else None
    return message if isinstance(message, dict) else None
