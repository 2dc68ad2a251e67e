"""Envoy in front of replicas: it passes TCP through, holds no certificate, and asks each replica whether it is ready."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.waiting import PATIENCE_S

_LOOK_EVERY = "0.2s"


@dataclass(frozen=True, slots=True)
class Replica:
    """Where one process listens, and where it says whether it is ready."""

    port: int
    ops_port: int


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _listener(name: str, port: int) -> dict[str, Any]:
    proxy = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": name,
        "cluster": name,
        "max_connect_attempts": 3,
    }
    filters = [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}]
    return {"name": name, "address": _address(port), "filter_chains": [{"filters": filters}]}


def _cluster(name: str, replicas: Sequence[Replica]) -> dict[str, Any]:
    endpoints = [
        {
            "endpoint": {
                "address": _address(replica.port),
                "health_check_config": {"port_value": replica.ops_port},
            }
        }
        for replica in replicas
    ]
    check = {
        "timeout": f"{PATIENCE_S}s",
        "interval": _LOOK_EVERY,
        "no_traffic_interval": _LOOK_EVERY,
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "http_health_check": {"path": "/readyz"},
    }
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "health_checks": [check],
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


@contextmanager
def envoy(
    program: Path, home: Path, listeners: Mapping[str, int], replicas: Mapping[str, Sequence[Replica]]
) -> Iterator[None]:
    """Run Envoy inside the block: `listeners` by service, each in front of that service's replicas."""
    file = home / "envoy.json"
    static = {
        "listeners": [_listener(name, port) for name, port in listeners.items()],
        "clusters": [_cluster(name, replicas[name]) for name in listeners],
    }
    file.write_text(json.dumps({"static_resources": static}))
    with (home / "envoy.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "--config-path", file, "--concurrency", "1", "--disable-hot-restart"],
            stdout=log,
            stderr=log,
        )
    try:
        yield
        assert process.poll() is None, (home / "envoy.log").read_text()[-2000:]
    finally:
        process.kill()
        process.wait()
