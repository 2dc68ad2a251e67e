"""Attempts of kind plan through the router: one call, one permit, one whole reply."""

import json
from collections.abc import Sequence

import grpc

from podium.router.v1 import router_service_pb2, router_service_pb2_grpc
from podium_conductor.engines.worker.ports import PlanCall, PlanText
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptKind
from podium_core.runtime.grpc_client import call_metadata
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.wire.run import ATTEMPT_KIND
from podium_core.wire.usage import usage_from_proto


class RouterPlanCalls:
    """Has the router ask a worker for a plan."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: router_service_pb2_grpc.RouterServiceAsyncStub = (
            router_service_pb2_grpc.RouterServiceStub(channel)
        )

    async def complete(self, call: PlanCall) -> PlanText:
        """Return what the worker wrote; raise PodiumError as the router does.

        The error's metadata has `permitted` when the log had said yes: then the attempt may have cost money.
        """
        request = router_service_pb2.CompleteRequest(
            attempt_id=call.attempt_id,
            run_id=call.run_id,
            tenant_id=call.tenant_id,
            kind=ATTEMPT_KIND.to_proto(AttemptKind.PLAN),
            round=call.round,
            worker_id=call.worker_id,
            pool_digest=call.pool_digest,
            messages=[router_service_pb2.Segment(data=_messages_json(call.messages))],
            max_output_tokens=call.max_output_tokens,
        )
        rpc = self._stub.Complete(request, timeout=call.timeout_s, metadata=call_metadata())
        permitted = False
        try:
            with rpc_errors("router"):
                async for message in rpc:
                    kind = message.WhichOneof("event")
                    permitted = permitted or kind == "permitted"
                    if kind == "completed":
                        return _text(message.completed)
        except PodiumError as error:
            if permitted:
                error.metadata["permitted"] = "true"
            raise
        finally:
            rpc.cancel()
        raise PodiumError(Code.PROVIDER_FAILED, "the worker's answer ended early", reason="STREAM_INCOMPLETE")


def _messages_json(messages: Sequence[tuple[str, str]]) -> bytes:
    said = [{"role": role, "content": text} for role, text in messages]
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _text(message: router_service_pb2.Completed) -> PlanText:
    return PlanText(
        message.message.text, usage_from_proto(message.usage), message.cost_usd_micros, message.latency_us
    )
