import json
import stat
from pathlib import Path

import pytest

from podium_cli.failures import CliError
from podium_cli.home import open_home, write_private
from podium_cli.ports import DEFAULT_PORTS, choose_ports, endpoints_of, is_free, save_ports, saved_ports


def test_a_home_keeps_secrets_to_its_owner(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    home.create()
    write_private(home.api_key_file, "podium_x\n")
    write_private(home.api_key_file, "podium_y\n")
    assert home.read_api_key() == "podium_y"
    assert stat.S_IMODE(home.api_key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.directory.stat().st_mode) == 0o700


def test_a_home_that_was_never_started_says_how_to_start_it(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    with pytest.raises(CliError, match="no Podium has been started") as failure:
        home.read_endpoints()
    assert "podium up" in failure.value.hint
    with pytest.raises(CliError, match="API key") as failure:
        home.read_api_key()
    assert "podium up" in failure.value.hint
    home.tenants_file.write_text("tenants:\n")
    with pytest.raises(CliError, match="API key") as failure:
        home.read_api_key()
    assert "podium keys create" in failure.value.hint


def test_one_command_at_a_time_holds_a_home(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    with home.locked(), pytest.raises(CliError, match="busy"), home.locked():
        pass
    with home.locked():
        pass


def test_endpoints_say_where_everything_is(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    assert saved_ports(home) == {}
    save_ports(home, DEFAULT_PORTS)
    assert saved_ports(home) == dict(DEFAULT_PORTS)
    endpoints = home.read_endpoints()
    assert endpoints["gateway"] == "http://127.0.0.1:8080"
    assert endpoints["grpc"]["audit"] == "127.0.0.1:7053"
    assert endpoints["metrics"]["router"] == "http://127.0.0.1:9466/metrics"
    home.endpoints_file.write_text(json.dumps(endpoints_of(DEFAULT_PORTS) | {"ports": {"gateway": "x"}}))
    assert saved_ports(home) == {}


def test_free_ports_differ_and_stay(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    ports = choose_ports(home, free_ports=True)
    assert set(ports) == set(DEFAULT_PORTS)
    assert len(set(ports.values())) == len(ports)
    assert all(is_free(port) for port in ports.values())
    save_ports(home, ports)
    assert choose_ports(home, free_ports=True) == ports
