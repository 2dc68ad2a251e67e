"""demo-numerals: whole numbers from one notation into another."""

import re

from podium_demo.specialists.answering import Budget, CannotAnswerError, Earlier, Specialist
from podium_demo.specialists.exact import integer, number_in
from podium_demo.specialists.notations import Notation, read, recognise, written
from podium_demo.specialists.references import core, points_at_all, points_at_one
from podium_demo.specialists.subjects import unquoted

_NAMES = (
    (r"roman", Notation.ROMAN),
    (r"binary|base 2|base two", Notation.BINARY),
    (r"hexadecimal|hex|base 16|base sixteen", Notation.HEXADECIMAL),
    (r"octal|base 8|base eight", Notation.OCTAL),
    (r"ordinal words?|ordinal in words|ordinal number in words|spelled-out ordinal", Notation.ORDINAL_WORDS),
    (r"ordinal", Notation.ORDINAL),
    (r"english words|english|words|word form|number words", Notation.WORDS),
    (
        r"decimal|base 10|base ten|arabic|digits|figures|(?:plain|ordinary|normal) number|number|integer",
        Notation.DECIMAL,
    ),
)
_NAME = "|".join(pattern for pattern, _ in _NAMES)
_SUFFIX = r"(?:[ -](?:notation|numerals?|numbers?|form|format|system|digits|representation))?"
_FORMAT = rf"(?:(?:a|an|the|its) )?({_NAME}){_SUFFIX}"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_LEAD = _compiled(
    r"^(?:what is|what's|what would be|what does|write(?: down| out)?|convert|express|show(?: me)?|"
    r"give(?: me)?|represent|translate|render|put|change|turn|how do you (?:write|say|spell)|"
    r"how would you write|tell me|find|spell(?: out)?|say|calculate|compute|work out)\b\s*"
)
_SPELL = _compiled(r"(?:spell(?: out)?|write out|say) (.+?)(?: out)?(?: (?:in|as) (?:english )?words)?")
_FROM_TO = _compiled(rf"(.*?)\s*\bfrom {_FORMAT} (?:in|to|into|as) {_FORMAT}")
_TO = _compiled(rf"(.*?)\s*\b(?:in|to|into|as|using) {_FORMAT}")
_OF = _compiled(rf"(?:the )?({_NAME}){_SUFFIX}(?: equivalent| value)? (?:of|for) (.+)")
_VALUE = _compiled(
    r"(?:(?:what |the )?(?:number|value)(?: is| of| does| represented by)? (.+?)"
    r"(?: represent| mean| stand for)?|(.+) (?:represent|mean|stand for))"
)
_TYPED = _compiled(rf"(?:the )?({_NAME}){_SUFFIX}:? (.+)")
_SPOKEN = {Notation.WORDS, Notation.ORDINAL_WORDS}


def solve(instruction: str, earlier: Earlier, budget: Budget) -> str:
    """Return the number that `instruction` names, written as it asks."""
    text = core(instruction)
    budget.spend(len(_NAMES))
    if (match := _SPELL.fullmatch(text)) and _TO.fullmatch(match.group(1)) is None:
        return _convert(match.group(1), None, Notation.WORDS, earlier)
    bare = _LEAD.sub("", text)
    if match := _FROM_TO.fullmatch(bare):
        return _convert(match.group(1), _notation(match.group(2)), _notation(match.group(3)), earlier)
    if match := _TO.fullmatch(bare):
        return _convert(match.group(1), None, _notation(match.group(2)), earlier)
    if match := _OF.fullmatch(bare):
        return _convert(match.group(2), None, _notation(match.group(1)), earlier)
    if match := _VALUE.fullmatch(bare):
        return _convert(match.group(1) or match.group(2), None, Notation.DECIMAL, earlier)
    if bare != text and (match := _TYPED.fullmatch(bare)):
        return _convert(match.group(2), _notation(match.group(1)), Notation.DECIMAL, earlier)
    raise CannotAnswerError("that does not ask for a number in another notation")


def _notation(name: str) -> Notation:
    return next(notation for pattern, notation in _NAMES if re.fullmatch(pattern, name, re.IGNORECASE))


def _convert(operand: str, source: Notation | None, target: Notation, earlier: Earlier) -> str:
    operand = operand.strip()
    if points_at_all(operand):
        return "; ".join(_one(result, source, target) for result in earlier.every())
    if not operand or points_at_one(operand):
        return _one(earlier.latest(), source, target)
    return written(_value(operand, source, target), target)


def _one(result: str, source: Notation | None, target: Notation) -> str:
    """Convert an earlier result, which may carry a sentence around its number."""
    if source is None and recognise(result) is None:
        return written(integer(number_in(result), "a number to convert"), target)
    return written(_value(result, source, target), target)


def _value(operand: str, source: Notation | None, target: Notation) -> int:
    operand = unquoted(operand) or operand
    if source is None and (match := _TYPED.fullmatch(operand)):
        source, operand = _notation(match.group(1)), unquoted(match.group(2)) or match.group(2)
        if match.group(1).lower() in ("number", "integer"):
            source = None
    if source in _SPOKEN or source is Notation.ORDINAL:
        source = None
    if source is not None:
        return read(operand, source)
    found = recognise(operand)
    if found is None:
        raise CannotAnswerError("I cannot read the number in it")
    value, notation = found
    if notation is target is Notation.DECIMAL:
        raise CannotAnswerError(
            "I cannot tell in which notation the number is; say, for example, binary 1010"
        )
    return value


SPECIALIST = Specialist(
    model="demo-numerals",
    skills=("numerals",),
    abilities=(
        "convert whole numbers between digits, Roman numerals, binary, octal, hexadecimal, words and ordinals"
    ),
    solve=solve,
)
