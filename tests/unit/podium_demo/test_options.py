"""Where the demo programs listen: on loopback, unless somebody says that it may be more."""

import pytest

from podium_demo.options import options_of


@pytest.mark.parametrize("listen", ["0.0.0.0:7070", "10.1.2.3:7070", "demo.example:7070"])
def test_it_listens_beyond_loopback_only_when_told_to(
    listen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(["--listen", listen])
    assert "--allow-network" in capsys.readouterr().err
    host, _, port = listen.partition(":")
    assert options_of(["--listen", listen, "--allow-network"]).listen == (host, int(port))


@pytest.mark.parametrize(
    ("listen", "found"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80)), ("localhost:8", ("localhost", 8))],
)
def test_loopback_needs_no_leave(listen: str, found: tuple[str, int]) -> None:
    assert options_of(["--listen", listen]).listen == found


@pytest.mark.parametrize("listen", ["7070", ":7070", "127.0.0.1:port", "127.0.0.1:70000", "127.0.0.1:-1"])
def test_what_is_no_address_is_named(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(["--listen", listen])
    assert "--listen" in capsys.readouterr().err
