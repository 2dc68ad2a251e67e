"""Ports for processes that a test starts, none of which another test's connections can sit on meanwhile."""

import random
import socket

_BELOW_OUTGOING = range(20_000, 32_000)
"""Systems take the local ports of outgoing connections from above (Linux 32768, others 49152)."""

_chance = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on and that this process was not given before."""
    found: list[int] = []
    while len(found) < count:
        port = _chance.choice(_BELOW_OUTGOING)
        if port not in _given and _is_free(port):
            _given.add(port)
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
