"""The text form of a plan: free reasoning, then the lists `model_id`, `subtasks`, `access_list`.

Shared by serving and training, so there is no skew between them. The grammar is the RL Conductor paper's
(arXiv 2512.04388, §3 and Fig. 13) with three changes: the last complete triple counts, the step cap is
checked before anything is spent, and each broken rule has its own error.
"""

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import MAX_STEPS, Access, Step

MAX_TEXT_CHARS = 65_536
_MAX_TOKENS = 40_000
_MAX_DEPTH = 3
_MAX_DIGITS = 9


class PlanRule(StrEnum):
    """What a plan text can break. The value is the error's stable reason."""

    TEXT_TOO_LONG = "PLAN_TEXT_TOO_LONG"
    NO_TRIPLE = "PLAN_NO_TRIPLE"
    LIST_UNREADABLE = "PLAN_LIST_UNREADABLE"
    LENGTHS_DIFFER = "PLAN_LENGTHS_DIFFER"
    EMPTY = "PLAN_EMPTY"
    TOO_MANY_STEPS = "PLAN_TOO_MANY_STEPS"
    WORKER_NOT_A_NUMBER = "PLAN_WORKER_NOT_A_NUMBER"
    WORKER_OUT_OF_RANGE = "PLAN_WORKER_OUT_OF_RANGE"
    SUBTASK_NOT_TEXT = "PLAN_SUBTASK_NOT_TEXT"
    ACCESS_MALFORMED = "PLAN_ACCESS_MALFORMED"
    ACCESS_NOT_EARLIER = "PLAN_ACCESS_NOT_EARLIER"


class PlanFormatError(PodiumError):
    """A plan text breaks `rule`. The message can be shown to the Conductor for its next try."""

    def __init__(self, rule: PlanRule, message: str) -> None:
        super().__init__(Code.PLAN_INVALID, message, reason=rule.value)
        self.rule = rule


def render_plan(model_ids: Sequence[int], subtasks: Sequence[str], access: Sequence[Access]) -> str:
    """Return the three lists as text. `model_ids` are ordinals in the pool as listed in the prompt."""
    lists = [["all"] if entry.previous_round else list(entry.steps) for entry in access]
    texts = json.dumps(list(subtasks), ensure_ascii=False)
    # The parser leaves \b and \f alone (models write \beta and \frac unescaped) and drops back-ticks and
    # thinking tags, which a question may well hold: escaped, they survive.
    texts = re.sub(r"\\(\\|b|f)", lambda m: {"b": "\\u0008", "f": "\\u000c"}.get(m[1], m[0]), texts)
    texts = texts.replace("`", "\\u0060").replace("<", "\\u003c")
    return f"model_id = {json.dumps(list(model_ids))}\nsubtasks = {texts}\naccess_list = {json.dumps(lists)}"


def parse_plan(
    text: str, worker_ids: Sequence[str], *, max_steps: int = MAX_STEPS, round_index: int = 0
) -> tuple[Step, ...]:
    """Return the steps of the last complete triple in `text`.

    `worker_ids[k]` is the worker listed as `Model id k`. No steps means "accept the previous round's
    answer" and is valid only when `round_index` > 0. Raises PlanFormatError and nothing else.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise PlanFormatError(
            PlanRule.TEXT_TOO_LONG, f"the plan text is longer than {MAX_TEXT_CHARS} characters"
        )
    models, subtasks, access = _last_triple(text)
    if not len(models) == len(subtasks) == len(access):
        raise PlanFormatError(
            PlanRule.LENGTHS_DIFFER,
            f"the lists have {len(models)}, {len(subtasks)} and {len(access)} entries; they must be equal",
        )
    if not models and round_index == 0:
        raise PlanFormatError(PlanRule.EMPTY, "three empty lists accept an earlier answer; there is none yet")
    if len(models) > max_steps:
        raise PlanFormatError(
            PlanRule.TOO_MANY_STEPS, f"the plan has {len(models)} steps; at most {max_steps} are allowed"
        )
    return tuple(
        Step(
            _worker(models[i], worker_ids, i),
            _subtask(subtasks[i], i),
            _access(access[i], i, round_index),
        )
        for i in range(len(models))
    )


# --- finding the lists -------------------------------------------------------------------------------

_THINK_TAG = re.compile(r"<(/?)think>", re.IGNORECASE)
_LABEL = re.compile(
    r"(?<![A-Za-z0-9_])[\"'*]{0,3}(model[_ ]ids?|subtasks?|access(?:[_ ]list)?)[\"'*]{0,3}"
    r"\s{0,20}[:=]\s{0,20}(?=\[)",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\u201c[^\u201d]*\u201d|[\[\],]|[^\s\[\],\"'\u201c]+|[\"'\u201c]",
    re.DOTALL,
)
_OPENING_QUOTES = "\"'\N{LEFT DOUBLE QUOTATION MARK}"

_Value = int | str | list["_Value"]


class _Unreadable(Exception):  # noqa: N818 - internal signal, never leaves this module
    pass


def _last_triple(text: str) -> tuple[list[_Value], list[_Value], list[_Value]]:
    cleaned = _without_thinking(text).replace("`", "")
    found: dict[str, list[_Value] | None] = {}
    triple: dict[str, list[_Value] | None] | None = None
    position, tokens_left = 0, _MAX_TOKENS
    # The token budget keeps hostile texts (thousands of lists that never close) linear.
    while tokens_left > 0 and (label := _LABEL.search(cleaned, position)):
        kind = label.group(1)[0].lower()
        value, position, tokens_left = _read_list(cleaned, label.end(), tokens_left)
        found[kind] = value
        if len(found) == len("msa"):
            triple, found = found, {}
    if triple is None:
        raise PlanFormatError(
            PlanRule.NO_TRIPLE, "no complete triple of model_id, subtasks and access_list lists was found"
        )
    lists = []
    for kind, name in (("m", "model_id"), ("s", "subtasks"), ("a", "access_list")):
        value = triple[kind]
        if value is None:
            raise PlanFormatError(PlanRule.LIST_UNREADABLE, f"the list {name} cannot be read")
        lists.append(value)
    return lists[0], lists[1], lists[2]


def _without_thinking(text: str) -> str:
    """Return `text` without its closed `<think>` blocks."""
    kept: list[str] = []
    start, opened = 0, -1
    for tag in _THINK_TAG.finditer(text):
        if not tag.group(1) and opened < 0:
            opened = tag.start()
        elif tag.group(1) and opened >= 0:
            kept.append(text[start:opened])
            start, opened = tag.end(), -1
    return " ".join([*kept, text[start:]])


def _read_list(text: str, start: int, tokens_left: int) -> tuple[list[_Value] | None, int, int]:
    """Read the bracketed list at `start`.

    Return the list (None: unreadable), where scanning goes on, and how many tokens are left to read.
    """
    stack: list[list[_Value]] = []
    readable, after_value = True, False
    for token in itertools.islice(_TOKEN.finditer(text, start), tokens_left):
        word = token.group()
        tokens_left -= 1
        if word == "[":
            inner: list[_Value] = []
            if stack:
                stack[-1].append(inner)
            stack.append(inner)
            readable, after_value = readable and len(stack) <= _MAX_DEPTH and not after_value, False
        elif word == "]":
            closed, after_value = stack.pop(), True
            if not stack:
                return (closed if readable else None), token.end(), tokens_left
        elif word == ",":
            readable, after_value = readable and after_value, False
        else:
            readable = _take(word, stack[-1], after_value=after_value) and readable
            after_value = True
    return None, start + 1, tokens_left


def _take(word: str, into: list[_Value], *, after_value: bool) -> bool:
    """Append the scalar `word`; adjacent strings join, as in Python. Return whether it was readable."""
    try:
        value = _scalar(word)
    except _Unreadable:
        return False
    if not after_value:
        into.append(value)
        return True
    last = into[-1] if into else None
    if isinstance(last, str) and isinstance(value, str):
        into[-1] = last + value
        return True
    return False


def _scalar(word: str) -> int | str:
    if word[0] in _OPENING_QUOTES:
        if len(word) == 1:
            raise _Unreadable
        return _unescape(word[1:-1])
    if word.lower() == "all":
        return "all"
    number = word.removeprefix("-")
    if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS:
        return int(word)
    raise _Unreadable


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


def _unescape(body: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if len(code) > 1:
            return chr(int(code[1:], 16))
        if code in "\\\"'/":
            return code
        return _ESCAPED.get(code, match.group())

    text = _ESCAPE.sub(replace, body)
    # JSON writes characters beyond the BMP as surrogate pairs; a lone surrogate is no text.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- judging the entries -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _At:
    step_index: int

    def error(self, rule: PlanRule, message: str) -> PlanFormatError:
        return PlanFormatError(rule, f"step {self.step_index}: {message}")


def _worker(value: _Value, worker_ids: Sequence[str], step_index: int) -> str:
    ordinal = _as_int(value)
    if ordinal is None:
        raise _At(step_index).error(PlanRule.WORKER_NOT_A_NUMBER, "the model id must be a number")
    if not 0 <= ordinal < len(worker_ids):
        raise _At(step_index).error(
            PlanRule.WORKER_OUT_OF_RANGE, f"model id {ordinal} is not in 0..{len(worker_ids) - 1}"
        )
    return worker_ids[ordinal]


def _subtask(value: _Value, step_index: int) -> str:
    if not isinstance(value, str):
        raise _At(step_index).error(PlanRule.SUBTASK_NOT_TEXT, "the subtask must be a quoted text")
    return value.strip()


def _access(value: _Value, step_index: int, round_index: int) -> Access:
    entries = value if isinstance(value, list) else [value]
    if "all" in entries:
        return Access(tuple(range(step_index)), previous_round=round_index > 0)
    steps: set[int] = set()
    for entry in entries:
        seen = _as_int(entry)
        if seen is None:
            raise _At(step_index).error(
                PlanRule.ACCESS_MALFORMED, 'access must be [], ["all"] or a list of step numbers'
            )
        if not 0 <= seen < step_index:
            raise _At(step_index).error(
                PlanRule.ACCESS_NOT_EARLIER, f"it may see only steps before itself, not {seen}"
            )
        steps.add(seen)
    return Access(tuple(sorted(steps)))


def _as_int(value: _Value) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        plausible = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
        return int(text) if plausible else None
    return value if isinstance(value, int) else None
