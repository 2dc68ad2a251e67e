"""LiveCodeBench and BigCodeBench from their published JSON lines: code, the reference a check to run.

Checks have the form that `podium_train.rewards.code.read_check` reads. LiveCodeBench packs its private cases
as base64 of a compressed pickle of a JSON text: it is read without letting the pickle name anything.
"""

import base64
import binascii
import io
import json
import pickle
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podium_train.outcomes.importers.copies import any_text, found, read_list, words_id
from podium_train.outcomes.importers.imported import Imported
from podium_train.outcomes.questions import QUESTIONS, GraderKind
from podium_train.outcomes.rows import Row

_MAX_UNPACKED_BYTES = 256 * 1024 * 1024
_PROGRAM = "Write a Python program that reads standard input and prints the answer."
_FUNCTION = "Complete this Python code; keep its names:"


def convert_livecodebench(source: Path) -> Imported:
    """Return the problems of every JSON lines file in `source`, with public and private cases."""
    rows = []
    for path in found(source, "*.jsonl"):
        for row in read_list(path):
            cases = [*_cases(row, "public_test_cases"), *_cases(row, "private_test_cases")]
            starter = row.text("starter_code")
            check = _calls(row, cases) if starter else _programs(row, cases)
            asked = f"{_FUNCTION}\n```python\n{starter}\n```" if starter else _PROGRAM
            question = f"{row.text('question_title')}\n\n{row.text('question_content')}\n\n{asked}"
            rows.append(
                _row(
                    words_id("livecodebench", row.text("question_id")),
                    row.text("platform"),
                    row.text("difficulty"),
                    question,
                    check,
                )
            )
    return Imported(QUESTIONS, {"livecodebench": rows})


def convert_bigcodebench(source: Path) -> Imported:
    """Return the problems of every JSON lines file in `source`, asked by their instruct prompts."""
    rows = []
    for path in found(source, "*.jsonl"):
        difficulty = "hard" if "hard" in path.stem.lower() else "standard"
        for row in read_list(path):
            check = {"kind": "shared_tests", "source": row.text("test")}
            name = words_id("bigcodebench", row.text("task_id"))
            rows.append(_row(name, "bigcodebench", difficulty, row.text("instruct_prompt"), check))
    return Imported(QUESTIONS, {"bigcodebench": rows})


class _NothingNamed(pickle.Unpickler):
    """Reads plain values only: a pickle that names a class or function is refused."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not allowed")


def _cases(row: Row, name: str) -> Sequence[Mapping[str, Any]]:
    packed = row.text(name)
    text = packed if packed.lstrip().startswith("[") or not packed else _unpacked(row, name, packed)
    try:
        cases = json.loads(text) if text else []
    except ValueError:
        cases = None
    if not isinstance(cases, list) or not all(_is_case(case) for case in cases):
        raise row.error(f"{name!r} must be a list of cases with 'input' and 'output'")
    return cases


def _is_case(case: object) -> bool:
    return (
        isinstance(case, dict) and isinstance(case.get("input"), str) and isinstance(case.get("output"), str)
    )


def _unpacked(row: Row, name: str, packed: str) -> str:
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(packed, validate=True), _MAX_UNPACKED_BYTES)
        if stream.unconsumed_tail:
            raise row.error(f"{name!r} unpacks to more than {_MAX_UNPACKED_BYTES} bytes")
        value = _NothingNamed(io.BytesIO(data)).load()
    except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError):
        raise row.error(f"{name!r} cannot be unpacked") from None
    if not isinstance(value, str):
        raise row.error(f"{name!r} must unpack to text")
    return value


def _programs(row: Row, cases: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    if not cases:
        raise row.error("the problem has no case")
    return {"kind": "programs", "cases": [{"stdin": c["input"], "stdout": c["output"]} for c in cases]}


def _calls(row: Row, cases: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    try:
        function = json.loads(any_text(row, "metadata"))["func_name"]
        calls = [
            {
                "args": [json.loads(line) for line in case["input"].split("\n") if line.strip()],
                "value": json.loads(case["output"]),
            }
            for case in cases
        ]
    except (ValueError, TypeError, KeyError):
        raise row.error("'metadata' must name the function, and its cases be JSON values") from None
    if not isinstance(function, str) or not calls:
        raise row.error("the problem names no function or has no case")
    return {"kind": "calls", "function": function, "cases": calls}


def _row(
    item_id: str, family: str, difficulty: str, question: str, check: Mapping[str, object]
) -> dict[str, object]:
    return {
        "id": item_id,
        "family": family,
        "category": "code",
        "difficulty": difficulty,
        "q": question,
        "a": json.dumps(check, ensure_ascii=False),
        "grader": GraderKind.CODE,
    }
