"""A grade as a client sends it: a score from 0 to 1, or pass or fail, and a comment."""

from dataclasses import dataclass

from podium_gateway.codecs.fields import as_boolean, as_number, as_string, refuse
from podium_gateway.codecs.strict_json import parse_object

FIELDS = ("comment", "pass", "score")
MAX_COMMENT = 4_096

_PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class ClientGrade:
    """What the client thinks of a run; the score in millionths."""

    score_ppm: int
    comment: str


def decode_grade(body: bytes) -> ClientGrade:
    """Return the grade; raise PodiumError (INVALID_REQUEST) naming the field to mend."""
    fields = parse_object(body)
    for name in fields:
        if name not in FIELDS:
            told = ", ".join(FIELDS)
            raise refuse(name[:64], f"unknown field; a grade has {told}", reason="UNKNOWN_PARAMETER")
    score, passed = fields.get("score"), fields.get("pass")
    if (score is None) == (passed is None):
        raise refuse("score", 'give either "score", from 0 to 1, or "pass", true or false')
    if passed is not None:
        score_ppm = _PPM if as_boolean(passed, "pass") else 0
    else:
        score_ppm = round(as_number(score, "score", at_least=0, at_most=1) * _PPM)
    comment = fields.get("comment")
    text = "" if comment is None else as_string(comment, "comment", at_most=MAX_COMMENT)
    return ClientGrade(score_ppm, text)
