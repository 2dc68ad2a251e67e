import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium_cli import processes
from podium_cli.home import Home, open_home
from podium_cli.processes import Process


@contextmanager
def sleeper(home: Home) -> Iterator[Process]:
    home.create()
    child = processes.spawn(home, "sleeper", [sys.executable, "-c", "import time; time.sleep(60)"], {})
    process = processes.find(home, "sleeper")
    assert process is not None
    yield process
    child.kill()
    child.wait()


def test_a_service_is_found_again_and_stopped(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    with sleeper(home) as process:
        assert processes.wait_gone([process], 0.1, time.sleep) == [process]
        processes.send(process, signal.SIGTERM)
        assert processes.wait_gone([process], 10.0, time.sleep) == []
        processes.send(process, signal.SIGTERM)
    processes.forget(home, "sleeper")
    assert processes.find(home, "sleeper") is None


def test_a_later_process_with_the_same_pid_is_not_taken_for_the_service(tmp_path: Path) -> None:
    with sleeper(open_home(tmp_path)) as process:
        stranger = Process("sleeper", process.pid, "another birth")
        assert not stranger.is_alive
        processes.send(stranger, signal.SIGKILL)
        assert process.is_alive


def test_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert processes.last_lines(log) == []
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(5000)) + b"\xff end\n")
    assert processes.last_lines(log, 2) == ["line 4999", "\ufffd end"]
