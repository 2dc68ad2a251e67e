"""The process behind `mathematics`: JSON lines of reference and answer in, Math-Verify's word out.

A process of its own, since SymPy can hang or grow on a text that a stranger's model wrote; it is killed then.
"""

import json
import resource
import sys

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

_MEMORY_BYTES = 4 << 30


def judge(reference: str, answer: str) -> str:
    """Return `right`, `wrong`, or `no_reference` when the reference itself is not understood."""
    configs = [LatexExtractionConfig(), ExprExtractionConfig()]
    gold = parse(_as_math(reference), extraction_config=configs, parsing_timeout=None, raise_on_error=False)
    if not gold:
        return "no_reference"
    given = parse(answer, extraction_config=configs, parsing_timeout=None, raise_on_error=False)
    return "right" if given and verify(gold, given, timeout_seconds=None, raise_on_error=False) else "wrong"


def _as_math(reference: str) -> str:
    return reference if "$" in reference or "\\boxed" in reference else f"${reference}$"


def main() -> None:
    """Answer line by line until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    # The first parse builds the parser, which takes seconds: done before anybody waits for an answer.
    sys.stdout.write("ready\n" if judge("1/2", "\\boxed{0.5}") == "right" else "broken\n")
    sys.stdout.flush()
    for line in sys.stdin:
        pair = json.loads(line)
        try:
            said = judge(pair["reference"], pair["answer"])
        except (MemoryError, RecursionError):
            said = "wrong"
        sys.stdout.write(said + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
