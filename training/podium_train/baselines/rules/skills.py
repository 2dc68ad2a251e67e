"""Which skill a clause needs, by its words, and which worker's card is best at it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium_core.domain.pool import Worker

_THRESHOLD = 2
_SCORED_CHARS = 1_000
_STRONG, _WEAK = 2, 1

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_UNIT = (
    r"(?:kilomet(?:re|er)s?|met(?:re|er)s?|centimet(?:re|er)s?|millimet(?:re|er)s?|km|cm|mm|miles?|yards?|feet|"
    r"foot|inch(?:es)?|kilo(?:gram)?s?|kg|grams?|milligrams?|tonnes?|pounds?|lbs?|ounces?|oz|stones?|"
    r"celsius|centigrade|fahrenheit|kelvin)"
)
_TIME = r"(?:milliseconds|seconds|minutes|hours|days|weeks)"


@dataclass(frozen=True, slots=True)
class Topic:
    """A kind of task: the names that cards give its skill, and what tells it from other kinds."""

    skill_names: tuple[str, ...]
    signs: tuple[tuple[re.Pattern[str], int], ...]

    def score(self, text: str) -> int:
        """Return how strongly `text` (lower case) asks for this."""
        return sum(weight for pattern, weight in self.signs if pattern.search(text))


def _topic(names: str, *signs: tuple[str, int]) -> Topic:
    return Topic(tuple(names.split(" ")), tuple((re.compile(pattern), weight) for pattern, weight in signs))


_TOPICS = (
    _topic(
        "arithmetic math",
        (
            r"\b(?:multipl(?:y|ied)|divided?|subtract|minus|plus|times|sum|product|quotient|remainder)\b",
            _STRONG,
        ),
        (r"\b(?:calculate|compute|average|mean of|square|squared|cubed|double|triple|halve|add)\b", _STRONG),
        (
            r"\b(?:percent|percentage|how (?:many|much) (?:more|less|fewer)|modulo|to the power)\b|\d\s*%",
            _STRONG,
        ),
        (r"\b(?:round|increase|decrease|difference|largest|smallest)\b", _STRONG),
        (r"[\d)]\s*(?:[+*/^\u00d7\u00f7]|\*\*|//|- )\s*[\d(.]|\d\s+-\s+\d", _STRONG + _WEAK),
    ),
    _topic(
        "text",
        (
            r"\b(?:reverse|backwards|upper-?\s?case|lower-?\s?case|title case|capitali[sz]e|capitals)\b",
            _STRONG + _WEAK,
        ),
        (
            r"\b(?:letters?|vowels?|consonants?|characters?|palindrome|alphabetically|alphabeti[sz]e)\b",
            _STRONG,
        ),
        (r"\b(?:replace|join|concatenate|combine|repeat|remove|sort)\b|\bhow many words\b", _STRONG),
        (r"\bcount\b.*\b(?:words|digits)\b|\bhow many ['\"]?[a-z]['\"]?(?:'?s)? (?:are|is|do|in)\b", _STRONG),
        (r"\b(?:words?|text|phrase|sentence|string)\b", _WEAK),
    ),
    _topic(
        "dates",
        (r"\b\d{4}-\d{1,2}-\d{1,2}\b", _STRONG + _WEAK),
        (rf"\b{_MONTH}\.? \d|\d(?:st|nd|rd|th)?(?: of)? {_MONTH}\b", _STRONG),
        (
            r"\b(?:weekday|day of the week|day of the year|leap year|what date|which date|calendar)\b",
            _STRONG + _WEAK,
        ),
        (
            r"\b(?:days?|weeks?|months?|years?) (?:from|between|after|before|until|since|to|later|earlier)\b",
            _STRONG,
        ),
        (r"\b(?:add|subtract)\b.*\b(?:days?|weeks?|months?|years?)\b", _STRONG + _WEAK),
        (rf"\bdays (?:are )?(?:there )?(?:are )?in (?:{_MONTH}|\d{{4}})\b", _STRONG),
    ),
    _topic(
        "units",
        (rf"(?:\bto|\bin|\binto|\bhow many) (?:degrees )?{_UNIT}\b", _STRONG),
        (rf"\d ?(?:degrees )?{_UNIT}\b|\bfrom {_UNIT}\b", _STRONG),
        (
            rf"\bhow many {_TIME} (?:are |are there |is )?in\b|\d {_TIME} (?:to|in|into) {_TIME}",
            _STRONG + _WEAK,
        ),
        (r"\bconvert\b", _WEAK),
    ),
    _topic(
        "numerals",
        (
            r"\broman\b|\bbinary\b|\bhexadecimal\b|\bhex\b|\boctal\b|\bordinal\b|\b0[xbo][0-9a-f]+\b",
            _STRONG + _WEAK,
        ),
        (r"\b(?:in|into|as|to) (?:english )?words\b|\bnumber words\b", _STRONG + _WEAK),
        (r"\bspell out\b|\bspell (?:it|the number|the result|\d+)\b|\bnumerals?\b", _STRONG),
        (
            r"\b(?:in|into|to) (?:decimal|digits|figures)\b|\bbase (?:\d+|ten|two)\b|\bwhat number is\b",
            _STRONG,
        ),
    ),
)


def worker_for(text: str, workers: Sequence[Worker]) -> tuple[Worker, str] | None:
    """Return the worker to ask and the skill it is asked for; None when no card shows what `text` needs.

    Among the topics that some card covers with a measured accuracy above zero, the one whose signs `text`
    shows most counts; then the highest accuracy, the lower output price, the id.
    """
    lowered = text[:_SCORED_CHARS].lower()
    scored = [(topic.score(lowered), -order, topic) for order, topic in enumerate(_TOPICS)]
    for score, _, topic in sorted(scored, key=lambda entry: entry[:2], reverse=True):
        if score < _THRESHOLD:
            return None
        best = best_at(topic.skill_names, workers)
        if best is not None:
            return best, topic.skill_names[0]
    return None


def best_at(skill_names: Sequence[str], workers: Sequence[Worker]) -> Worker | None:
    """Return the worker whose card shows the highest accuracy above zero at one of the skills."""

    def accuracy(worker: Worker) -> int:
        return max((s.accuracy_ppm for s in worker.card.skills if s.name in skill_names), default=0)

    def rank(worker: Worker) -> tuple[int, int, str]:
        price = worker.price.output_usd_micros_per_mtok if worker.price else 0
        return -accuracy(worker), price, worker.worker_id

    best = min(workers, key=rank, default=None)
    return best if best is not None and accuracy(best) > 0 else None
