"""The gRPC server of every service: mutual TLS, who may call what, and errors that leak nothing."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from opentelemetry import context as otel_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime import health
from podium_core.runtime.grpc_errors import status_errors
from podium_core.runtime.grpc_transport import (
    DEFAULT_MAX_CONNECTION_AGE_S,
    DEFAULT_MAX_MESSAGE_BYTES,
    server_options,
)
from podium_core.runtime.identity import TlsFiles, caller_of
from podium_core.runtime.live_tls import server_credentials
from podium_core.runtime.settings_base import parse_listen

if TYPE_CHECKING:  # at run time gRPC's handler is no generic class
    _Handler: TypeAlias = grpc.RpcMethodHandler[Any, Any]

_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
_Behavior: TypeAlias = Callable[[Any, _Context], Any]
_Admit: TypeAlias = Callable[[_Context], None]

_trace_context = TraceContextTextMapPropagator()
_HEARD_S = 0.25
"""Until everybody who watches has heard that this replica no longer serves."""
_TRACE_KEYS = frozenset(_trace_context.fields)


class GrpcServer:
    """One listening server. Register servicers on `server`, then `start` it.

    `permissions` maps full method names (`/podium.audit.v1.AuditService/OpenRun`) to the callers that may
    use them; a method that is missing there is open to nobody. `max_concurrent_rpcs` bounds what is
    accepted at once: more is refused, not queued. After `max_connection_age_s` a connection takes no new
    calls. `on_ready` hears when the server takes calls, and when it begins to leave.
    """

    def __init__(
        self,
        *,
        listen: str,
        tls: TlsFiles,
        permissions: Mapping[str, Container[str]],
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        max_concurrent_rpcs: int | None = 2048,
        max_connection_age_s: float = DEFAULT_MAX_CONNECTION_AGE_S,
        on_ready: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._on_ready = on_ready
        host, port = parse_listen(listen)
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._tls = tls
        self._health = health.Health()
        self.server: grpc.aio.Server = grpc.aio.server(
            interceptors=[_Guard(permissions)],
            options=server_options(max_message_bytes, max_connection_age_s),
            maximum_concurrent_rpcs=max_concurrent_rpcs,
        )
        health.add_health(self._health, self.server)

    async def start(self) -> int:
        """Listen and serve; return the bound port.

        Raises PodiumError when a TLS file cannot be used or the address cannot be bound.
        """
        credentials = server_credentials(self._tls)
        try:
            port = self.server.add_secure_port(self._address, credentials)
        except RuntimeError:
            raise PodiumError(
                Code.INVALID_REQUEST,
                f"cannot listen on {self._address}: the address is taken or not this machine's",
                reason="CANNOT_LISTEN",
            ) from None
        await self.server.start()
        self._health.set_serving(True)
        self._on_ready(True)  # noqa: FBT003 - a listener's one argument
        return port

    def set_serving(self, serving: bool) -> None:  # noqa: FBT001 - a setter's one argument
        """Change what the health service says; calls are taken all the same."""
        self._health.set_serving(serving)

    async def leave(self, delay_s: float = 0.0) -> None:
        """Wait `delay_s`, in which names may forget this replica, then tell those who watch its health.

        Calls are taken all the while: a caller may know no other replica yet. Whoever watches, as channels to
        several replicas do, gets a moment to hear it.
        """
        self._on_ready(False)  # noqa: FBT003 - a listener's one argument
        await asyncio.sleep(delay_s)
        self._health.leave()
        await asyncio.sleep(_HEARD_S if self._health.is_watched else 0.0)

    async def stop(self, grace_s: float) -> None:
        """Take no new calls, let running ones end within `grace_s` seconds, cancel the rest."""
        self._on_ready(False)  # noqa: FBT003 - a listener's one argument
        self._health.close()
        await self.server.stop(grace_s)


class _Guard(grpc.aio.ServerInterceptor):
    """Wraps each method's handler once; later calls of the method find it ready."""

    def __init__(self, permissions: Mapping[str, Container[str]]) -> None:
        self._permissions = permissions
        self._guarded: dict[str, _Handler] = {}

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        method = handler_call_details.method
        known = self._guarded.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        guarded = self._guarded[method] = _guard(handler, method, self._admit(method))
        return guarded

    def _admit(self, method: str) -> _Admit:
        if method in health.METHODS:
            return _admit_any_peer
        allowed = self._permissions.get(method, ())

        def admit(context: _Context) -> None:
            caller = caller_of(context)
            if caller not in allowed:
                raise PodiumError(
                    Code.POLICY_DENIED, f"{caller} may not call {method}", reason="CALLER_NOT_ALLOWED"
                )

        return admit


def _admit_any_peer(context: _Context) -> None:
    caller_of(context)


def _guard(handler: "_Handler", method: str, admit: _Admit) -> "_Handler":
    """Return a handler that admits the caller, continues its trace and translates errors."""
    behavior: Any = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    if handler.response_streaming:
        wrapped = _answer_many(behavior, method, admit)
        make: Any = (
            grpc.stream_stream_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_stream_rpc_method_handler
        )
    else:
        wrapped = _answer_once(behavior, method, admit)
        make = (
            grpc.stream_unary_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_unary_rpc_method_handler
        )
    guarded: _Handler = make(wrapped, handler.request_deserializer, handler.response_serializer)
    return guarded


def _answer_once(behavior: _Behavior, method: str, admit: _Admit) -> _Behavior:
    async def answer(request: Any, context: _Context) -> Any:
        async with status_errors(context, method):
            admit(context)
            _continue_trace(context)
            return await behavior(request, context)

    return answer


def _answer_many(behavior: _Behavior, method: str, admit: _Admit) -> _Behavior:
    # Writing here instead of handing gRPC a generator saves one generator per call and, unlike gRPC's
    # own loop, closes the servicer's generator at once when the caller is gone.
    if not inspect.isasyncgenfunction(behavior):
        raise TypeError(f"{method} must be an async generator")

    async def answer(request: Any, context: _Context) -> None:
        async with status_errors(context, method):
            admit(context)
            _continue_trace(context)
            write = context.write
            responses: AsyncGenerator[Any, None] = behavior(request, context)
            async with aclosing(responses):
                async for response in responses:
                    await write(response)

    return answer


def _continue_trace(context: _Context) -> None:
    """Make the caller's span the current one. Each call runs in its own task, so nothing is detached."""
    carrier = {key: value for key, value in context.invocation_metadata() or () if key in _TRACE_KEYS}
    if carrier:
        otel_context.attach(_trace_context.extract(carrier))
