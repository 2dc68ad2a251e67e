"""Channel arguments that servers and clients must agree on."""

import json
from typing import Final

DEFAULT_MAX_MESSAGE_BYTES = 64 * 1024 * 1024

_HEADER_BYTES = 32 * 1024
_PINGS_MS = (20_000, 5_000)
"""How often a silent peer is pinged, and how long it may take to answer."""
_PING_AT_MOST_EVERY_MS = 5_000
_PING_TIMEOUT_OF_SEVERAL_MS = 3_000
_RECONNECT_FIRST_MS = 50
_RECONNECT_MAX_MS = 1_000
_CONNECT_TIMEOUT_MS = 5_000
_RESOLVE_AT_MOST_EVERY_MS = 1_000
"""By default 30 seconds: so long a replica that has come would be unknown after a connection ended."""

DEFAULT_MAX_CONNECTION_AGE_S = 15.0
_OLD_CONNECTION_S = 3_600
"""How long calls go on, on a connection that takes no new ones: the longest that any may take."""
_MS_PER_S = 1_000

_SERVICE_CONFIG: Final = json.dumps(
    {"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}
)
"""Go round all replicas, and leave out those whose health service says they do not serve."""

Options = list[tuple[str, str | int]]

_BALANCING: Final[Options] = [
    ("grpc.service_config", _SERVICE_CONFIG),
    # Of any ping, of those that measure bandwidth too: while one is out, a minute by default, no other is.
    ("grpc.http2.ping_timeout_ms", _PING_TIMEOUT_OF_SEVERAL_MS),
    # By default two, then one a minute while nothing is sent.
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.dns_min_time_between_resolutions_ms", _RESOLVE_AT_MOST_EVERY_MS),
]


def server_options(
    max_message_bytes: int, max_connection_age_s: float = DEFAULT_MAX_CONNECTION_AGE_S
) -> Options:
    """Return the arguments of a server: bounded messages, pings allowed, no shared ports.

    After `max_connection_age_s`, give or take a tenth, a connection takes no new calls: its client asks again
    who the replicas are, and connects anew. Calls that run on it end there.
    """
    return [
        *_both(max_message_bytes),
        ("grpc.so_reuseport", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", _PING_AT_MOST_EVERY_MS),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_connection_age_ms", int(max_connection_age_s * _MS_PER_S)),
        ("grpc.max_connection_age_grace_ms", _OLD_CONNECTION_S * _MS_PER_S),
    ]


def client_options(target_name: str, *, may_be_several: bool = False) -> Options:
    """Return the arguments of a channel whose server must prove to be `target_name`.

    Where it may be several servers, calls go round all that say they serve, and one that is frozen or cut off
    is given up within ten seconds: there are others to ask.
    """
    keepalive = (_PING_AT_MOST_EVERY_MS, _PING_TIMEOUT_OF_SEVERAL_MS) if may_be_several else _PINGS_MS
    balancing = _BALANCING if may_be_several else []
    return [
        *balancing,
        *_both(DEFAULT_MAX_MESSAGE_BYTES, keepalive),
        ("grpc.ssl_target_name_override", target_name),
        ("grpc.default_authority", target_name),
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_FIRST_MS),
        # Despite its name this bounds one connection attempt, TLS handshake included.
        ("grpc.min_reconnect_backoff_ms", _CONNECT_TIMEOUT_MS),
        ("grpc.max_reconnect_backoff_ms", _RECONNECT_MAX_MS),
        ("grpc.enable_http_proxy", 0),
    ]


def _both(max_message_bytes: int, pings_ms: tuple[int, int] = _PINGS_MS) -> Options:
    every_ms, timeout_ms = pings_ms
    return [
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_metadata_size", _HEADER_BYTES),
        ("grpc.absolute_max_metadata_size", 2 * _HEADER_BYTES),
        ("grpc.keepalive_time_ms", every_ms),
        ("grpc.keepalive_timeout_ms", timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
