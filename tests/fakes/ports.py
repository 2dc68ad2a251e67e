"""Ports for processes that a test starts, which no other test's server or connection takes meanwhile."""

import random
import socket

_BELOW_OUTGOING = range(20_000, 32_000)
"""Systems take the ports of outgoing connections, and of servers that leave it to them, from above (32768)."""

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
