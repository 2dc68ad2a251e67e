"""Grades code by running it in the sandbox. Expected values stay outside; the code only ever gives values.

Kinds of check, after what benchmarks use: programs fed by standard input (LiveCodeBench), calls of one
function (LiveCodeBench, MBPP), test code that calls `candidate` (HumanEval) in a sandbox of its own, and
unittest cases together with the code (BigCodeBench).
"""

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from podium_core.domain.errors import PodiumError, invalid
from podium_core.grading.extraction import answer_in, last_fence
from podium_train.rewards.sandbox.inside import decoded, encoded
from podium_train.rewards.sandbox.limits import Ran, Verdict
from podium_train.rewards.sandbox.runner import Sandbox

_MAX_CODE_CHARS = 200_000
_CLOSENESS = 1e-6


@dataclass(frozen=True, slots=True)
class Programs:
    """Each case is standard input and the standard output due for it; white space at line ends is free."""

    cases: tuple[tuple[str, str], ...]

    async def run(self, sandbox: Sandbox, source: str) -> Ran:
        """Run every case until one is not passed."""
        ran = Ran(Verdict.FAILED, "no_cases")
        for given, expected in self.cases:
            ran = await sandbox.run_program(source, given.encode())
            if not ran.is_clean:
                return ran
            if not _same_lines(ran.stdout.decode(errors="replace"), expected):
                return Ran(Verdict.FAILED, "output_differs", ran.stdout, ran.stderr)
        return ran


@dataclass(frozen=True, slots=True)
class Calls:
    """Each case is the arguments of one call and the value it must return, as Python values."""

    function: str
    cases: tuple[tuple[tuple[Any, ...], Any], ...]

    async def run(self, sandbox: Sandbox, source: str) -> Ran:
        """Make every call in one sandbox and compare outside of it."""
        ran = await sandbox.call(
            source, self.function, [[encoded(a) for a in args] for args, _ in self.cases]
        )
        if not ran.is_clean:
            return ran
        for reply, (_, expected) in zip(ran.replies, self.cases, strict=True):
            if not (isinstance(reply, dict) and "value" in reply and _equals(reply["value"], expected)):
                return Ran(Verdict.FAILED, "value_differs", ran.stdout, ran.stderr, ran.replies)
        return ran if self.cases else Ran(Verdict.FAILED, "no_cases")


@dataclass(frozen=True, slots=True)
class HiddenTests:
    """Test code that calls `candidate`: asserts, a function `check(candidate)`, or unittest cases."""

    function: str
    source: str

    async def run(self, sandbox: Sandbox, source: str) -> Ran:
        """Run the tests in a sandbox of their own."""
        return await sandbox.test(source, self.function, self.source)


@dataclass(frozen=True, slots=True)
class SharedTests:
    """unittest cases that need the code in their own interpreter (BigCodeBench): weaker, see `Sandbox`."""

    source: str
    test_count: int

    async def run(self, sandbox: Sandbox, source: str) -> Ran:
        """Run the tests together with the code."""
        return await sandbox.test_together(source, self.source, self.test_count)


Check = Programs | Calls | HiddenTests | SharedTests


def read_check(reference: str) -> Check:
    """Return the check that a reference describes.

    A JSON object: `{"kind": "programs", "cases": [{"stdin", "stdout"}]}`, `{"kind": "calls", "function",
    "cases": [{"args", "value"}]}`, `{"kind": "tests", "function", "source"}`, or `{"kind": "shared_tests",
    "source"}` whose unittest cases run in one interpreter with the code.
    Raises INVALID_REQUEST otherwise.
    """
    try:
        told = json.loads(reference)
        return _READERS[told["kind"]](told)
    except (ValueError, TypeError, KeyError, RecursionError, SyntaxError):
        raise _bad() from None


@dataclass(frozen=True, slots=True)
class CodeGrader:
    """An `AnswerGrader` of one check."""

    sandbox: Sandbox
    check: Check

    async def verdict(self, text: str) -> Ran:
        """Return what became of the code in an answer text."""
        source = code_in(text)
        if not source.strip() or len(source) > _MAX_CODE_CHARS:
            return Ran(Verdict.FAILED, "no_code")
        return await self.check.run(self.sandbox, source)

    async def is_right(self, text: str) -> bool | None:
        """Return whether the code passes; None when the sandbox failed before it had begun."""
        ran = await self.verdict(text)
        return None if ran.verdict is Verdict.SANDBOX_ERROR else ran.verdict is Verdict.PASSED


def code_in(text: str) -> str:
    """Return the code of an answer: the last closed fence, else the tagged answer, else all of it."""
    answer = answer_in(text)
    fenced = last_fence(answer.visible)
    if fenced is not None:
        return fenced
    return answer.first if answer.is_tagged else answer.visible


def _equals(value: object, expected: object) -> bool:
    try:
        given = decoded(value)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return False
    return _same(given, expected)


def _same(given: object, expected: object) -> bool:
    if isinstance(expected, float) and isinstance(given, int | float):
        return abs(given - expected) <= _CLOSENESS * max(1.0, abs(expected)) or given == expected
    if isinstance(expected, list | tuple) and isinstance(given, list | tuple):
        return len(given) == len(expected) and all(map(_same, given, expected))
    return bool(given == expected) and isinstance(given, bool) == isinstance(expected, bool)


def _same_lines(given: str, expected: str) -> bool:
    ours, theirs = ([line.strip() for line in text.strip().splitlines()] for text in (given, expected))
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _same_line(given: str, expected: str) -> bool:
    """Return whether two lines are the same, or the same numbers (`2` is `2.0`)."""
    if given == expected:
        return True
    ours, theirs = (_numbers(line) for line in (given, expected))
    return ours is not None and ours == theirs


def _numbers(line: str) -> list[Decimal] | None:
    try:
        numbers = [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None
    return numbers if all(number.is_finite() for number in numbers) else None


def _read_programs(told: Mapping[str, Any]) -> Programs:
    cases = tuple((_text(case["stdin"]), _text(case["stdout"])) for case in told["cases"])
    return Programs(_some(cases))


def _read_calls(told: Mapping[str, Any]) -> Calls:
    cases = tuple((tuple(case["args"]), case["value"]) for case in told["cases"])
    return Calls(_text(told["function"]), _some(cases))


def _read_tests(told: Mapping[str, Any]) -> HiddenTests:
    return HiddenTests(_text(told["function"]), _text(told["source"]))


def _read_shared(told: Mapping[str, Any]) -> SharedTests:
    source = _text(told["source"])
    nodes = [node for kind in ast.parse(source).body if isinstance(kind, ast.ClassDef) for node in kind.body]
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    count = sum(name.startswith("test") for name in names)
    if not count:
        raise _bad()
    return SharedTests(source, count)


def _some(cases: tuple[Any, ...]) -> tuple[Any, ...]:
    if not cases:
        raise _bad()
    return cases


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _bad()
    return value


def _bad() -> PodiumError:
    return invalid(
        "a code task's reference is a JSON object: programs, calls, tests or shared_tests, with a case",
        reason="BAD_REFERENCE",
        param="reference",
    )


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Check]] = {
    "programs": _read_programs,
    "calls": _read_calls,
    "tests": _read_tests,
    "shared_tests": _read_shared,
}
