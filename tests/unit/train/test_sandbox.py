"""Model-written code that tries to cheat or to break out. Skipped, with the reason, where the layers are missing."""

import asyncio
import gzip
import json
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import pytest_asyncio

from podium_train.rewards.code import Calls, CodeGrader, HiddenTests, Programs, read_check
from podium_train.rewards.sandbox import bwrap
from podium_train.rewards.sandbox.bwrap import SandboxUnavailableError, Tools, find_tools
from podium_train.rewards.sandbox.layers import open_sandbox, probe
from podium_train.rewards.sandbox.limits import Limits, Verdict
from podium_train.rewards.sandbox.runner import Sandbox, SandboxSettings

LIMITS = Limits(wall_s=8.0, memory_bytes=512 << 20)
ADD = Calls("add", (((2, 3), 5), ((10, -4), 6)))
ADD_TESTS = HiddenTests(
    "add", "def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(10, -4) == 6\n"
)
ECHO = Programs((("1 2\n", "3\n"), ("5 8\n", "13\n")))


async def missing_layers() -> str:
    try:
        missing = (await probe(find_tools())).missing
    except SandboxUnavailableError as error:
        return error.message
    return "; ".join(f"not so here: the code {layer.value}" for layer in missing)


WHY_NOT = asyncio.run(missing_layers())
needs_layers = pytest.mark.skipif(bool(WHY_NOT), reason=f"no sandbox: {WHY_NOT}")


@pytest_asyncio.fixture
async def sandbox() -> AsyncGenerator[Sandbox, None]:
    box = Sandbox(find_tools(), SandboxSettings(slots=2, limits=LIMITS, start_timeout_s=60.0))
    yield box
    await box.close()


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```\n"


def short(sandbox: Sandbox, wall_s: float = 1.0) -> Sandbox:
    settings = replace(sandbox._settings, limits=replace(LIMITS, wall_s=wall_s), keep_warm=False)
    return Sandbox(sandbox._tools, settings)


# --- honest code ----------------------------------------------------------------------------------


@needs_layers
async def test_right_code_passes_every_kind_of_check_and_wrong_code_none(sandbox: Sandbox) -> None:
    right = fenced("def add(a, b):\n    return a + b")
    wrong = fenced("def add(a, b):\n    return a - b")
    for check in (ADD, ADD_TESTS):
        assert await CodeGrader(sandbox, check).is_right(right) is True
        assert await CodeGrader(sandbox, check).is_right(wrong) is False
    echo = CodeGrader(sandbox, ECHO)
    assert await echo.is_right(fenced("print(sum(map(int, input().split())))")) is True
    assert await echo.is_right(fenced("print(3)")) is False
    assert await echo.is_right("There is no code in this answer, sorry.") is False
    assert await echo.is_right("") is False


@needs_layers
async def test_methods_containers_and_raised_errors_come_out_as_values(sandbox: Sandbox) -> None:
    code = fenced(
        "class Solution:\n    def pair(self, a):\n        return {'a': (a, [1.5, None]), 'b': {1, 2}}"
    )
    check = Calls("Solution.pair", (((7,), {"a": (7, [1.5, None]), "b": {1, 2}}),))
    assert await CodeGrader(sandbox, check).is_right(code) is True
    tests = HiddenTests(
        "f", "try:\n    f(0)\nexcept ZeroDivisionError:\n    pass\nelse:\n    raise AssertionError\n"
    )
    assert await CodeGrader(sandbox, tests).is_right(fenced("def f(x):\n    return 1 / x")) is True
    assert await CodeGrader(sandbox, tests).is_right(fenced("def f(x):\n    return 1")) is False


BIG = read_check(
    json.dumps(
        {
            "kind": "shared_tests",
            "source": "import unittest\nfrom unittest.mock import patch\nclass TestCases(unittest.TestCase):\n"
            "    @patch('os.getcwd', return_value='/there')\n"
            "    def test_patched(self, _):\n        self.assertEqual(where(), '/there')\n"
            "    def test_object(self):\n        self.assertTrue(callable(where))\n",
        }
    )
)


@needs_layers
async def test_tests_that_patch_what_the_code_uses_run_beside_it(sandbox: Sandbox) -> None:
    grader = CodeGrader(sandbox, BIG)
    assert await grader.is_right(fenced("import os\ndef where():\n    return os.getcwd()")) is True
    for wrong in (
        "def where():\n    return '/here'",
        "import os\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "print('passed')\ndef where(): pass",
        "import unittest\nunittest.TestCase.run = lambda self, result=None: result\ndef where(): pass",
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef where(): pass",
        "import unittest\nunittest.TestResult.wasSuccessful = lambda s: True\ndef where(): pass",
        "import unittest.mock, sys\nsys.modules['unittest'].main = None\ndef where(): raise unittest.SkipTest('no')",
    ):
        assert await grader.is_right(fenced(wrong)) is False, wrong


@needs_layers
async def test_human_eval_s_own_solutions_pass_and_empty_ones_fail(sandbox: Sandbox) -> None:
    folder = os.environ.get("PODIUM_TRAIN_DATA")
    file = Path(folder or "nowhere", "questions", "HumanEval.jsonl.gz")
    if not file.is_file():
        pytest.skip("PODIUM_TRAIN_DATA names no data folder with questions/HumanEval.jsonl.gz")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines][::8]
    for problem in problems:
        grader = CodeGrader(sandbox, HiddenTests(problem["entry_point"], problem["test"]))
        assert await grader.is_right(fenced(problem["prompt"] + problem["canonical_solution"])) is True
        assert await grader.is_right(fenced(problem["prompt"] + "    return None\n")) is False


@needs_layers
async def test_tests_may_call_other_functions_of_the_code(sandbox: Sandbox) -> None:
    tests = HiddenTests(
        "undo", "def check(candidate):\n    for n in range(5):\n        assert candidate(redo(n)) == n\n"
    )
    code = "def redo(n):\n    return n + 1\ndef undo(n):\n    return n - {}"
    assert await CodeGrader(sandbox, tests).is_right(fenced(code.format(1))) is True
    assert await CodeGrader(sandbox, tests).is_right(fenced(code.format(2))) is False
    assert await CodeGrader(sandbox, tests).is_right(fenced("def undo(n):\n    return n")) is False


@needs_layers
async def test_solutions_in_classes_and_numbers_in_other_spelling_count(sandbox: Sandbox) -> None:
    code = fenced("class Solution:\n    def twice(self, x):\n        return [2 * y for y in x]")
    assert await CodeGrader(sandbox, Calls("twice", ((([1, 2],), (2, 4)),))).is_right(code) is True
    halves = Programs((("", "0.50 1\n2.0\n"),))
    assert await CodeGrader(sandbox, halves).is_right(fenced("print('.5 1.0')\nprint(2)")) is True
    assert await CodeGrader(sandbox, halves).is_right(fenced("print('.5 1.1')\nprint(2)")) is False


@needs_layers
async def test_packages_can_be_lent_read_only() -> None:
    with TemporaryDirectory() as lent:  # a place that every user can read, unlike pytest's
        Path(lent).chmod(0o755)
        Path(lent, "lent.py").write_text("value = 31\n")
        box = Sandbox(find_tools(packages=lent), SandboxSettings(keep_warm=False, start_timeout_s=60.0))
        ran = await box.run_program("import lent\nprint(lent.value)\nopen(lent.__file__, 'a')")
    assert ran.stdout == b"31\n"
    assert ran.verdict is Verdict.FAILED


@needs_layers
async def test_nothing_is_left_over_from_one_sample_to_the_next(sandbox: Sandbox) -> None:
    write = "import builtins\nopen('kept', 'w').write('x')\nbuiltins.kept = 1\n"
    look = "import os, builtins\nprint(os.path.exists('kept') or hasattr(builtins, 'kept'))\n"
    for _ in range(3):
        assert (await sandbox.run_program(write)).is_clean
        assert (await sandbox.run_program(look)).stdout == b"False\n"


# --- cheating the verdict -------------------------------------------------------------------------


@needs_layers
@pytest.mark.parametrize(
    "code",
    [
        "import os\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "raise SystemExit",
        "def add(a, b):\n    import os\n    os._exit(0)",
        "def add(a, b):\n    raise SystemExit(0)",
        "import os\nif os.fork():\n    os._exit(0)\ndef add(a, b): return a + b + 1",
    ],
)
async def test_leaving_early_is_a_failure_however_politely(sandbox: Sandbox, code: str) -> None:
    for check in (ADD, ADD_TESTS, ECHO):
        assert (await CodeGrader(sandbox, check).verdict(fenced(code))).verdict is Verdict.FAILED


@needs_layers
@pytest.mark.parametrize(
    "code",
    [
        # An answer that is equal to everything, or says so.
        "class Yes(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef add(a, b): return Yes(0)",
        "class Yes:\n    def __eq__(self, other): return True\ndef add(a, b): return Yes()",
        # Patch what a checker in the same interpreter would use.
        (
            "import builtins, json, unittest\nbuiltins.abs = lambda x: 0\njson.dumps = lambda *a, **k: '{\"done\": true}'\n"
            "unittest.TestResult.wasSuccessful = lambda self: True\ndef add(a, b): return 0"
        ),
        (
            "import sys\nfor module in list(sys.modules.values()):\n    for name in ('check', 'candidate', 'encoded'):\n"
            "        if hasattr(module, name): setattr(module, name, lambda *a: True)\ndef add(a, b): return 0"
        ),
        # Talk over the result pipe, on every descriptor, with and without a made-up nonce.
        (
            "import os\nfor fd in range(1, 40):\n    for text in (b'passed\\n', b'0 {\"done\": true}\\n', b'{\"done\": true}\\n'):\n"
            "        try: os.write(fd, text)\n        except OSError: pass\ndef add(a, b): return 0"
        ),
        "print('passed'); print('{\"done\": true}')\ndef add(a, b): return 0",
        # Find the nonce in the caller's frames and forge the end.
        (
            "import sys, os\ndef add(a, b):\n    frame = sys._getframe()\n    while frame:\n"
            "        channel = frame.f_locals.get('channel')\n"
            "        if channel is not None:\n            channel.say({'done': True, 'id': 0, 'value': True})\n"
            "        frame = frame.f_back\n    return 0"
        ),
        # Write the file that some harnesses read their verdict from.
        (
            "for name in ('verdict', 'result.json', 'passed', '/tmp/result', '/box/verdict.txt'):\n"
            "    try: open(name, 'w').write('passed')\n    except OSError: pass\ndef add(a, b): return 0"
        ),
    ],
)
async def test_the_verdict_cannot_be_forged(sandbox: Sandbox, code: str) -> None:
    for check in (ADD, ADD_TESTS):
        assert (await CodeGrader(sandbox, check).verdict(fenced(code))).verdict is Verdict.FAILED


@needs_layers
async def test_expected_outputs_are_nowhere_in_the_sandbox(sandbox: Sandbox) -> None:
    code = (
        "import gc, os, sys\n"
        "seen = [o for o in gc.get_objects() if '13-TERCES' in str(o)[::-1]]\n"
        "files = [os.path.join(d, f) for d, _, fs in os.walk('/box') for f in fs]\n"
        "print(''.join(reversed('13-TERCES')) if seen or files or '13-TERCES' in str(sys.orig_argv)[::-1] else 'no')"
    )
    ran = await CodeGrader(sandbox, Programs((("", "SECRET-31"),))).verdict(fenced(code))
    assert ran.stdout == b"no\n"
    assert ran.verdict is Verdict.FAILED


@needs_layers
async def test_code_cannot_make_its_own_failure_look_like_the_sandbox_s(sandbox: Sandbox) -> None:
    for code in (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal\nos.kill(1, signal.SIGKILL)\nos.kill(-1, signal.SIGKILL)",
        "import os\nos.closerange(0, 256)",
        "import os\nos.close(1); os.close(2); os._exit(255)",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (4096, 4096))\nx = [0] * 10**7",
    ):
        for check in (ADD, ADD_TESTS, ECHO):
            ran = await CodeGrader(sandbox, check).verdict(fenced(code))
            assert ran.verdict in {Verdict.FAILED, Verdict.MEMORY, Verdict.TIMEOUT}, code


# --- using too much -------------------------------------------------------------------------------


@needs_layers
async def test_a_fork_bomb_ends_with_its_sandbox(sandbox: Sandbox) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    ran = await short(sandbox).run_program(code)
    assert ran.verdict is Verdict.TIMEOUT
    assert (await sandbox.run_program("print('still here')")).stdout == b"still here\n"


@needs_layers
async def test_the_number_of_processes_is_bounded(sandbox: Sandbox) -> None:
    code = (
        "import os, time\ncount = 0\ntry:\n    for _ in range(300):\n"
        "        if os.fork() == 0:\n            time.sleep(30)\n            os._exit(0)\n        count += 1\n"
        "except BlockingIOError:\n    print(count)"
    )
    ran = await sandbox.run_program(code)
    assert 0 < int(ran.stdout) < LIMITS.process_count


@needs_layers
async def test_ten_gigabytes_are_refused(sandbox: Sandbox) -> None:
    ran = await sandbox.run_program("x = bytearray(10 << 30)")
    assert ran.verdict is Verdict.MEMORY
    ran = await sandbox.run_program("x = []\nwhile True: x.append(bytearray(1 << 24))")
    assert ran.verdict is Verdict.MEMORY


@needs_layers
async def test_many_processes_cannot_hoard_together_what_each_may_have_alone(sandbox: Sandbox) -> None:
    code = (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n"
        "        kept = bytearray(b'x') * (100 << 20)\n        time.sleep(60)\n        os._exit(0)\n"
        "time.sleep(60)"
    )
    ran = await sandbox.run_program(code)
    assert (ran.verdict, ran.reason) == (Verdict.MEMORY, "together")
    sharing = (
        "import os, time\nkept = bytearray(b'x') * (200 << 20)\nfor _ in range(6):\n    if os.fork() == 0:\n"
        "        time.sleep(1)\n        os._exit(0)\nfor _ in range(6): os.wait()"
    )
    assert (await sandbox.run_program(sharing)).is_clean  # what is shared counts once


@needs_layers
async def test_endless_output_is_cut_off_and_fails(sandbox: Sandbox) -> None:
    for stream in ("stdout", "stderr"):
        ran = await sandbox.run_program(f"import sys\nwhile True: sys.{stream}.write('x' * 4096)")
        assert (ran.verdict, ran.reason) == (Verdict.FAILED, "output_limit")
        assert len(ran.stdout) + len(ran.stderr) <= 2 * LIMITS.output_bytes


@needs_layers
async def test_large_files_are_refused_one_by_one_and_together(sandbox: Sandbox) -> None:
    one = "open('a', 'wb').write(bytes(64 << 20))"
    ran = await sandbox.run_program(one)
    assert ran.verdict is Verdict.FAILED
    many = "for n in range(20): open(str(n), 'wb').write(bytes(2 << 20))"
    ran = await sandbox.run_program(many)
    assert ran.verdict is Verdict.FAILED


@needs_layers
@pytest.mark.parametrize("code", ["while True: pass", "import time\ntime.sleep(60)", "input()\ninput()"])
async def test_code_that_does_not_end_is_killed_in_time(sandbox: Sandbox, code: str) -> None:
    started = time.monotonic()
    ran = await short(sandbox).call(f"def f():\n    exec({code!r})", "f", [[]])
    if "input" in code:  # standard input is empty for code that is called
        assert ran.replies == ({"id": 0, "error": "EOFError"},)
    else:
        assert ran.verdict is Verdict.TIMEOUT
    assert time.monotonic() - started < 40, "not the minute that it sleeps"


@needs_layers
async def test_children_and_signal_handlers_do_not_outlive_the_run(sandbox: Sandbox) -> None:
    code = (
        "import os, signal, time\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU): signal.signal(s, signal.SIG_IGN)\n"
        "os.setpgid(0, 0) if os.fork() == 0 else None\n"
        "time.sleep(60)"
    )
    started = time.monotonic()
    assert (await short(sandbox).run_program(code)).verdict is Verdict.TIMEOUT
    assert time.monotonic() - started < 40, "not the minute that it sleeps"


# --- getting out ----------------------------------------------------------------------------------


@needs_layers
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow",
        "/proc/1/environ",
        "/proc/self/environ",
        "/root",
        "/home",
        "/work",
        "/tmp",
    ],
)
async def test_files_of_the_machine_are_not_there(sandbox: Sandbox, path: str) -> None:
    code = f"import os\nprint(os.path.lexists({path!r}))"
    assert (await sandbox.run_program(code)).stdout == b"False\n"


@needs_layers
async def test_the_environment_is_empty(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_SECRET_FOR_THIS_TEST", "do not tell")
    ran = await sandbox.run_program("import os\nprint(dict(os.environ))")
    assert b"do not tell" not in ran.stdout
    assert b"HOME" not in ran.stdout
    assert b"PATH" not in ran.stdout


@needs_layers
async def test_no_connection_gets_out(sandbox: Sandbox) -> None:
    reached: list[str] = []

    def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("somebody")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = (
        "import socket\n"
        f"for where in (('127.0.0.1', {port}), ('1.1.1.1', 53), ('169.254.169.254', 80)):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM) if where[1] < 100 else (socket.SOCK_STREAM,):\n"
        "        try:\n"
        "            s = socket.socket(socket.AF_INET, kind)\n"
        "            s.settimeout(1)\n"
        "            s.connect(where)\n"
        "            s.send(b'x')\n"
        "            print('reached', where)\n"
        "        except OSError:\n"
        "            pass\n"
    )
    async with server:
        for seccomp in (True, False):
            settings = replace(sandbox._settings, use_seccomp=seccomp, keep_warm=False)
            ran = await Sandbox(sandbox._tools, settings).run_program(code)
            assert ran.is_clean
            assert ran.stdout == b""
    assert reached == []


@needs_layers
async def test_links_out_of_the_work_directory_lead_nowhere(sandbox: Sandbox) -> None:
    code = (
        "import os\n"
        "for number, target in enumerate(('/etc/passwd', '../../../etc/passwd', '/proc/1/root/etc/passwd')):\n"
        "    os.symlink(target, f'link{number}')\n"
        "    try: print(open(f'link{number}').read())\n"
        "    except OSError: pass\n"
        "try:\n    os.symlink('/box', '/usr/escaped')\nexcept OSError:\n    pass\n"
        "print(os.path.lexists('/usr/escaped'))\n"
    )
    ran = await sandbox.run_program(code)
    assert ran.stdout == b"False\n"


@needs_layers
async def test_rights_cannot_be_gained(sandbox: Sandbox) -> None:
    code = (
        "import os, ctypes\n"
        "for attempt in (lambda: os.setuid(0), lambda: os.chroot('/box'), lambda: os.nice(-5)):\n"
        "    try:\n        attempt(); print('gained')\n    except OSError: pass\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.unshare(0x10000000), libc.mount(b'x', b'/box', b'tmpfs', 0, None), libc.ptrace(0, 0, 0, 0))\n"
    )
    ran = await sandbox.run_program(code)
    assert ran.stdout == b"-1 -1 -1\n"


# --- the sandbox's own failures -------------------------------------------------------------------


@needs_layers
async def test_a_sandbox_that_does_not_start_gives_no_grade() -> None:
    broken = Sandbox(Tools("/bin/false", find_tools().python), SandboxSettings(keep_warm=False))
    grader = CodeGrader(broken, ADD)
    assert (await grader.verdict(fenced("def add(a, b): return a + b"))).verdict is Verdict.SANDBOX_ERROR
    assert await grader.is_right(fenced("def add(a, b): return a + b")) is None


@needs_layers
async def test_a_run_that_waits_too_long_for_its_turn_gives_no_grade() -> None:
    settings = SandboxSettings(
        slots=1, queue_timeout_s=0.2, limits=replace(LIMITS, wall_s=3.0), keep_warm=False
    )
    box = Sandbox(find_tools(), settings)
    first = asyncio.create_task(box.run_program("import time\ntime.sleep(30)"))
    await asyncio.sleep(0)
    second = await box.run_program("print(1)")
    assert (second.verdict, second.reason) == (Verdict.SANDBOX_ERROR, "queue_deadline")
    assert (await first).verdict is Verdict.TIMEOUT


@needs_layers
async def test_a_cancelled_run_leaves_its_slot_free(sandbox: Sandbox) -> None:
    tasks = [asyncio.create_task(sandbox.run_program("import time\ntime.sleep(30)")) for _ in range(2)]
    await asyncio.sleep(0.5)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await sandbox.run_program("print(1)")).stdout == b"1\n"


async def test_without_bubblewrap_nothing_runs_unless_it_is_explicitly_unsafe() -> None:
    with pytest.raises(SandboxUnavailableError, match="--unsafe") as refusal:
        async with open_sandbox(bwrap="/nowhere/bwrap"):
            pass
    assert refusal.value.reason == "SANDBOX_UNAVAILABLE"
    assert refusal.value.missing == ("bubblewrap",)
    async with open_sandbox(
        SandboxSettings(start_timeout_s=60.0), bwrap="/nowhere/bwrap", unsafe=True
    ) as box:
        assert (await box.run_program("print(1)")).stdout == b"1\n"


async def test_without_a_python_for_its_user_nothing_runs() -> None:
    with pytest.raises(SandboxUnavailableError, match="--python"):
        find_tools(python="/nowhere/python3")


@needs_layers
async def test_a_required_layer_that_does_not_hold_is_named_and_nothing_runs() -> None:
    tools = find_tools()
    bare = await probe(Tools(None, tools.python))
    assert {layer.name for layer in bare.missing} >= {
        "NETWORK",
        "READ_ONLY_ROOT",
        "HIDDEN_FILES",
        "NAMESPACES",
    }
    if bwrap.identity_of(0).uid is None:
        pytest.skip("only root can weaken a layer and keep the others")
    assert (await probe(tools)).missing == ()
