"""What runs inside the sandbox: reads one job, limits itself, then runs the foreign code.

Sent to the sandbox's Python as text, so it stands alone: standard library, Python 3.9. It reads its job from
standard input (ten digits of length, then JSON) and reports over a pipe of its own, every line after a nonce.
Nothing it says of the foreign code is believed but values: they are compared outside, with expectations that
never come in here. The limits bind because the kernel keeps hard limits, not because this code is respected.
"""

import ast
import builtins
import importlib
import json
import os
import resource
import sys
import traceback
import types
import unittest
from typing import Any, Callable, Dict, List, Optional  # noqa: UP035 - a sandbox's Python may be older

OUT_OF_MEMORY = 86
_LENGTH_DIGITS = 10
_MAX_REPLY = 1 << 20
_LARGE = 1 << 63


def _read_exactly(count: int) -> bytes:
    read = b""
    while len(read) < count:
        piece = os.read(0, count - len(read))
        if not piece:
            os._exit(0)
        read += piece
    return read


def _limit(limits: Dict[str, int]) -> None:  # noqa: UP006
    cpu_s = limits["cpu_s"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    for kind, name in (
        (resource.RLIMIT_AS, "memory_bytes"),
        (resource.RLIMIT_FSIZE, "file_bytes"),
        (resource.RLIMIT_NPROC, "process_count"),
        (resource.RLIMIT_NOFILE, "open_files"),
    ):
        resource.setrlimit(kind, (limits[name], limits[name]))


def encoded(value: Any) -> Any:
    """Return a value as JSON that keeps types apart; what is no plain value becomes its type's name."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGE:
        return ["int", hex(value)]  # decimal digits are limited, since converting many takes long
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", bytes(value).hex()]
    for kind, name in ((list, "list"), (tuple, "tuple"), (frozenset, "set"), (set, "set")):
        if isinstance(value, kind):
            return [name, *map(encoded, value)]
    if isinstance(value, dict):
        return ["dict", *([encoded(key), encoded(item)] for key, item in value.items())]
    return ["other", type(value).__name__]


def decoded(value: Any) -> Any:
    """Return the value that was encoded."""
    if not isinstance(value, list):
        return value
    kind, rest = value[0], value[1:]
    if kind == "bytes":
        return bytes.fromhex(rest[0])
    if kind == "int":
        return int(rest[0], 16)
    if kind == "dict":
        return {decoded(key): decoded(item) for key, item in rest}
    if kind == "other":
        return object()
    makers: Dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set}  # noqa: UP006
    return makers[kind](map(decoded, rest))


class Channel:
    """The two private pipes: calls or replies come in, lines with the nonce go out."""

    def __init__(self, result_fd: int, nonce: str) -> None:
        self._result_fd = result_fd
        self._nonce = nonce
        self._incoming = os.fdopen(os.dup(0), "rb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)

    def say(self, message: Dict[str, Any]) -> None:  # noqa: UP006
        """Write one line."""
        line = f"{self._nonce} {json.dumps(message)}\n".encode()
        if len(line) > _MAX_REPLY:
            line = f"{self._nonce} {json.dumps({'id': message.get('id'), 'error': 'TooLarge'})}\n".encode()
        while line:
            line = line[os.write(self._result_fd, line) :]

    def hear(self) -> Optional[Dict[str, Any]]:  # noqa: UP006, UP045
        """Return the next line; None at the end."""
        line = self._incoming.readline()
        return json.loads(line) if line else None


def _module(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102 - what a sandbox is for
    return module


def _serve(job: Dict[str, Any], channel: Channel) -> None:  # noqa: UP006
    """Answer calls of one function with what it returns."""
    module = _module(job["source"], "solution")
    found = _named(module, job["function"])
    channel.say({"ready": True})
    while (call := channel.hear()) is not None:
        try:
            called = _named(module, call["function"]) if call.get("function") else found
            value = called(*map(decoded, call["args"]))
            channel.say({"id": call["id"], "value": encoded(value)})
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever foreign code raises is its answer
            channel.say({"id": call["id"], "error": type(error).__name__})


def _named(module: types.ModuleType, function: str) -> Any:
    """Return a function, or a method of a new `Class` or, as LiveCodeBench has it, of a new `Solution`."""
    owner, _, name = function.rpartition(".")
    if not owner and not hasattr(module, name) and hasattr(module, "Solution"):
        owner = "Solution"
    return getattr(getattr(module, owner)() if owner else module, name)


def _share(job: Dict[str, Any], channel: Channel) -> None:  # noqa: UP006
    """Run tests in one interpreter with the code: for tests that patch what the code uses."""
    told = channel.hear() or {}
    module = _module(job["source"], "solution")
    # What the code may have done to the test library is undone by loading it anew.
    for name in [name for name in sys.modules if name.partition(".")[0] == "unittest"]:
        del sys.modules[name]
    fresh = importlib.import_module("unittest")
    exec(compile(told["tests"], "<tests>", "exec"), module.__dict__)  # noqa: S102
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
    cases = [kind for kind in kinds if issubclass(kind, fresh.TestCase) and kind is not fresh.TestCase]
    result = fresh.TestResult()
    fresh.TestSuite(map(fresh.defaultTestLoader.loadTestsFromTestCase, cases)).run(result)
    channel.say({"done": result.wasSuccessful(), "ran": result.testsRun, "skipped": len(result.skipped)})


class Calls:
    """Functions that are called in the sandbox of the code under test."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._count = 0

    def of(self, function: str) -> Callable[..., Any]:
        """Return a function of the code by its name; empty: the one under test."""

        def called(*args: Any) -> Any:
            self._count += 1
            asked = {"call": self._count, "args": [encoded(arg) for arg in args], "function": function}
            self._channel.say(asked)
            reply = self._channel.hear()
            if reply is None:
                raise RuntimeError("the code under test is gone")
            if "error" in reply:
                kind = getattr(builtins, str(reply["error"]), RuntimeError)
                raise kind() if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError()
            return decoded(reply["value"])

        return called


def _unknown_names(tree: ast.Module) -> List[str]:  # noqa: UP006
    """Return the names that tests use and nobody defines: other functions of the code, if anything."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    known = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.alias):
            known.add((node.asname or node.name).partition(".")[0])
    return sorted({node.id for node in names} - known)


def _test(job: Dict[str, Any], channel: Channel) -> None:  # noqa: UP006
    """Run test code whose `candidate` is called in another sandbox."""
    tree = ast.parse(job["source"])
    calls = Calls(channel)
    candidate = calls.of("")
    module = types.ModuleType("tests")
    sys.modules["tests"] = module
    module.__dict__.update({name: calls.of(name) for name in _unknown_names(tree)})
    module.__dict__.update({"candidate": candidate, job["function"].rpartition(".")[2]: candidate})
    exec(compile(tree, "<tests>", "exec"), module.__dict__)  # noqa: S102
    check = getattr(module, "check", None)
    if callable(check):
        check(candidate)
    cases = [
        unittest.defaultTestLoader.loadTestsFromTestCase(kind)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase)
    ]
    result = unittest.TestResult()
    unittest.TestSuite(cases).run(result)
    channel.say({"done": result.wasSuccessful()})


def _program(job: Dict[str, Any], result_fd: int) -> None:  # noqa: UP006
    os.close(result_fd)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(job["source"], "<solution>", "exec"), main.__dict__)  # noqa: S102


Mode = Callable[[Dict[str, Any], Channel], None]  # noqa: UP006


def run(result_fd: int) -> None:
    """Say that the sandbox stands, take the job, and do it."""
    os.write(result_fd, b"up\n")
    job: Dict[str, Any] = json.loads(_read_exactly(int(_read_exactly(_LENGTH_DIGITS))))  # noqa: UP006
    if job["packages"]:
        sys.path.append(job["packages"])
    _limit(job["limits"])
    os.write(result_fd, f"{job['nonce']} begun\n".encode())
    modes: Dict[str, Mode] = {"serve": _serve, "test": _test, "share": _share}  # noqa: UP006
    code = 0
    try:
        if job["mode"] == "program":
            _program(job, result_fd)
        else:
            modes[job["mode"]](job, Channel(result_fd, job["nonce"]))
    except MemoryError:
        code = OUT_OF_MEMORY
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - the traceback is the program's own output
        traceback.print_exc()
        code = 1
    streams: List[Any] = [sys.stdout, sys.stderr]  # noqa: UP006
    for stream in streams:
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code & 0xFF)


if __name__ == "__main__":
    run(int(sys.argv[1]))
