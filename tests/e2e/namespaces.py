"""A network of its own for each service, on a switch that nothing else is on, with cuts as the kernel makes them."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

_ADDRESS = "10.77.0.{}"


@dataclass(slots=True)
class Namespaces:
    """Network namespaces of this test; `addresses` by name."""

    names: tuple[str, ...]
    tag: str = field(default_factory=lambda: f"podium-{secrets.token_hex(3)}")
    addresses: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.addresses = {name: _ADDRESS.format(number) for number, name in enumerate(self.names, 1)}

    def within(self, name: str) -> tuple[str, ...]:
        """Return the command that runs another one there."""
        return ("ip", "netns", "exec", f"{self.tag}-{name}")

    def create(self) -> None:
        """Make all of them, each with one link to the switch, which has a namespace too."""
        switch = f"{self.tag}-switch"
        try:
            _run("ip", "netns", "add", switch)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        _run("ip", "-n", switch, "link", "add", "switch", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "switch", "up")
        for number, name in enumerate(self.names):
            own, port = f"{self.tag}-{name}", f"port{number}"
            _run("ip", "netns", "add", own)
            _run(
                "ip", "-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch
            )
            _run("ip", "-n", switch, "link", "set", port, "master", "switch", "up")
            _run("ip", "-n", own, "address", "add", f"{self.addresses[name]}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                _run("ip", "-n", own, "link", "set", link, "up")

    def set_link(self, name: str, state: str) -> None:
        """Pull the plug (`down`), or put it in (`up`)."""
        _run("ip", "-n", f"{self.tag}-{name}", "link", "set", "eth0", state)

    def filter(self, name: str, *rule: str) -> None:
        """Change the packet filter there."""
        _run(*self.within(name), "iptables", "--wait", *rule)

    def remove(self) -> None:
        """Delete all of them."""
        for name in (*self.names, "switch"):
            subprocess.run(["ip", "netns", "delete", f"{self.tag}-{name}"], check=False, capture_output=True)


@contextmanager
def namespaces(*names: str) -> Iterator[Namespaces]:
    """Make them for the block; skip the test where that is not possible."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "iptables"))):
        pytest.skip("network namespaces need root, iproute2 and iptables")
    made = Namespaces(names)
    try:
        made.create()
        yield made
    finally:
        made.remove()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
