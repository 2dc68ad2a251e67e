"""demo-text: reversing, casing, counting, sorting, cutting, replacing and joining text."""

import re

from podium_demo.specialists.answering import (
    MAX_RESULT_CHARS,
    Budget,
    CannotAnswerError,
    Earlier,
    Specialist,
)
from podium_demo.specialists.references import core
from podium_demo.specialists.text_operations import (
    Operation,
    counted,
    cut,
    joined,
    occurrences,
    on_subject,
    put_in_order,
    removed,
    repeated,
    replaced,
)

_LEAD = re.compile(
    r"^(?!put together)(?:what is|what's|what are|give(?: me)?|show(?: me)?|find|tell me|work out|take|"
    r"return|print|"
    r"write(?: out)?|spell(?: out)?|say|get|make|put|turn|convert|change)\s+",
    re.IGNORECASE,
)
_MAX_LEADS = 3


def solve(instruction: str, earlier: Earlier, budget: Budget) -> str:
    """Return the text that `instruction` asks for."""
    text = core(instruction)
    for _ in range(_MAX_LEADS):
        text = _LEAD.sub("", text)
    for pattern, operation in _OPERATIONS:
        budget.spend()
        if match := pattern.fullmatch(text):
            answer = operation(match.groupdict(default=""), earlier)
            if len(answer) > MAX_RESULT_CHARS:
                raise CannotAnswerError(f"the answer would be longer than {MAX_RESULT_CHARS} characters")
            return answer
    raise CannotAnswerError("that is not a text task I know")


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _title(text: str) -> str:
    return " ".join(_capitalised(word.lower()) for word in text.split(" "))


def _words_reversed(text: str) -> str:
    return " ".join(reversed(text.split()))


def _is_palindrome(text: str) -> str:
    letters = [character for character in text.lower() if character.isalnum()]
    return "yes" if letters == letters[::-1] else "no"


def _initials(text: str) -> str:
    return "".join(word[0].upper() for word in text.split())


def _rule(pattern: str, operation: Operation) -> tuple[re.Pattern[str], Operation]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), operation


_UNIT = r"(?P<unit>letters?|characters?|digits?|words?|vowels?|consonants?)"
_OF = r"(?:\s+(?:of|in|from))?"
_REST = r"(?:\s+(?P<x>.+?))?"
_TO = r"(?: to| in| into| in all| into all| as| all)?"
_PART = (
    r"""(?P<part>"[^"]+"|'[^']+'|\u201c[^\u201d]+\u201d|\u2018[^\u2019]+\u2019|"""
    r"""[a-z](?=s\b|'s\b|\b))(?:'?s)?"""
)
_OPERATIONS = (
    _rule(
        rf"reverse (?:the )?(?:order of (?:the )?words|word order|words){_OF}{_REST}",
        on_subject(_words_reversed),
    ),
    _rule(rf"reverse{_REST}", on_subject(lambda text: text[::-1])),
    _rule(
        r"(?P<x>.+?)(?: spelled| written)? (?:backwards?|in reverse|reversed)",
        on_subject(lambda text: text[::-1]),
    ),
    _rule(rf"(?:upper-?\s?case){_REST}", on_subject(str.upper)),
    _rule(
        rf"(?P<x>.+?){_TO} (?:upper-?\s?case|capitals|capital letters|caps)(?: letters)?",
        on_subject(str.upper),
    ),
    _rule(rf"(?:lower-?\s?case){_REST}", on_subject(str.lower)),
    _rule(rf"(?P<x>.+?){_TO} (?:lower-?\s?case|small letters)(?: letters)?", on_subject(str.lower)),
    _rule(rf"(?:title-?\s?case){_REST}", on_subject(_title)),
    _rule(rf"(?P<x>.+?){_TO} title-?\s?case", on_subject(_title)),
    _rule(
        rf"capitali[sz]e (?:the )?(?:first letter of )?(?:each|every|all)(?: the)? words?{_OF}{_REST}",
        on_subject(_title),
    ),
    _rule(rf"capitali[sz]e{_REST}", on_subject(_capitalised)),
    _rule(
        rf"how (?:many times|often) does(?: the)?(?: letter| word)? {_PART} (?:occur|appear) in (?P<x>.+)",
        occurrences,
    ),
    _rule(
        r"(?:count|how many)(?: the)?(?: number of)?(?: occurrences of| times)?(?: the)?(?: letters?| word)? "
        rf"{_PART}(?: are there| there are| are| is)?(?: in| of)(?P<x> .+)",
        occurrences,
    ),
    _rule(
        rf"(?:count|how many|number of|the number of)(?: all)?(?: the)?(?: number of)? {_UNIT}"
        rf"(?: are there| there are| are| does| do)?{_OF}{_REST}(?: have| has| contain| contains)?",
        counted,
    ),
    _rule(
        r"(?:sort|alphabeti[sz]e|order|arrange)(?: the)?(?: (?P<unit>words|letters|items|numbers))?"
        rf"{_OF}{_REST}"
        r"(?: (?:alphabetically|in alphabetical order|in (?:ascending )?order))?"
        r"(?P<back> (?:in (?:reverse|descending)(?: alphabetical)? order|backwards|in reverse))?",
        put_in_order,
    ),
    _rule(
        r"(?:the )?(?P<end>first|last)(?: (?P<n>\w+))? "
        rf"(?P<unit>letters?|characters?|digits?|words?){_OF}{_REST}",
        cut,
    ),
    _rule(r"replace (?P<old>.+?) (?:with|by) (?P<new>.+?)(?: in (?P<x>.+))?", replaced),
    _rule(
        r"(?:remove|delete|drop)(?: all)?(?: the)? (?P<unit>spaces?|vowels?|digits?|punctuation)"
        r"(?: (?:from|in|of) (?P<x>.+))?",
        removed,
    ),
    _rule(r"repeat (?P<x>.+) (?P<n>\w+) times", repeated),
    _rule(
        r"(?:join|concatenate|combine|put together)(?: (?P<x>.+?))?(?: together)?(?:,? in order)?"
        r"(?:,? (?:separated by|with|using) (?P<by>.+?)(?: between them)?)?",
        joined,
    ),
    _rule(r"is (?P<x>.+) a palindrome", on_subject(_is_palindrome)),
    _rule(r"(?:the )?(?:acronym|initials)(?: of| for) (?P<x>.+)", on_subject(_initials)),
)
SPECIALIST = Specialist(
    model="demo-text",
    skills=("text",),
    abilities=(
        "reverse, change case, count letters or words, sort, take first or last parts, replace and join text"
    ),
    solve=solve,
)
