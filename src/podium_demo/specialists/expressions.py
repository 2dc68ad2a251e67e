"""Exact evaluation of arithmetic expressions, with an own tokenizer and a precedence-climbing parser.

Nothing is ever handed to `eval`. Literals, results, exponents and nesting are capped, so that the work is
bounded by the length of the text.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from podium_demo.specialists.answering import Budget, CannotAnswerError, Earlier
from podium_demo.specialists.exact import MAX_NUMBER_BITS, checked, integer, literal, number_in
from podium_demo.specialists.number_words import VOCABULARY, parse
from podium_demo.specialists.references import ONE

_MAX_DEPTH = 50
_REFERENCE = "@"
_PHRASES = tuple(
    (re.compile(pattern), symbol)
    for pattern, symbol in (
        (r"\bthe number (?=[0-9])", " "),
        (r"\b(?:raised )?to the power(?: of)?\b|\braised to\b", " ** "),
        (r"\bdivided by\b|\bover\b|\N{DIVISION SIGN}|\N{FRACTION SLASH}", " / "),
        (r"\bmultiplied by\b|\btimes\b|\N{MULTIPLICATION SIGN}|\N{MIDDLE DOT}", " * "),
        (r"(?<=[0-9) ])x(?=[ 0-9(])", " * "),
        (r"\bplus\b", " + "),
        (r"\bminus\b|\bnegative\b|\N{MINUS SIGN}|\N{EN DASH}", " - "),
        (r"\bmodulo\b|\bmod\b", " mod "),
        (r"\bper ?cent\b", "%"),
        (r"\bsquared\b|\N{SUPERSCRIPT TWO}", " ** 2 "),
        (r"\bcubed\b|\N{SUPERSCRIPT THREE}", " ** 3 "),
        (r"\bsquare root of\b|\bsqrt\b", " root "),
        (r"\bsquare of\b", " square "),
        (r"\bcube of\b", " cube "),
        (r"\bhalf of\b|\bhalf\b", " half "),
        (r"\bdouble\b|\btwice\b", " twice "),
        (r"\btriple\b", " thrice "),
        (r"\bthe\b", " "),
    )
)
_SPELLED = re.compile(
    r"\b(?:" + "|".join(sorted(VOCABULARY - {"and", "a", "minus", "negative"})) + r")\b"
    r"(?:[\s-]+(?:" + "|".join(sorted(VOCABULARY - {"a", "minus", "negative"})) + r")\b)*"
)
_TOKEN = re.compile(
    r"\s*([0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])|[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
    r"|\*\*|//|[-+*/%^()@]|of\b|mod\b|root\b|square\b|cube\b|half\b|twice\b|thrice\b)"
)
_DATE_LIKE = re.compile(r"\b[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\b")
_VAGUE_PERCENT = re.compile(r"[-+]\s*[0-9.]+\s*%\s*(?:$|[-+)])")
_BINARY = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "mod": 2, "of": 2}
_POWER = ("**", "^")
_PREFIXES = ("root", "square", "cube", "half", "twice", "thrice")


def evaluate(text: str, earlier: Earlier, budget: Budget) -> Fraction:
    """Return the exact value of `text`, which must be an arithmetic expression from start to end."""
    return _Parser(_tokens(text.lower(), earlier, budget), budget).whole()


def _tokens(text: str, earlier: Earlier, budget: Budget) -> list[Fraction | str]:
    if _DATE_LIKE.search(text):
        raise CannotAnswerError("that is a date, not a calculation")
    for pattern, symbol in _PHRASES:
        if symbol == " ":  # the articles: references contain them, so those go first
            text = ONE.sub(f" {_REFERENCE} ", text)
        text = pattern.sub(symbol, text)
    text = _SPELLED.sub(_digits, text)
    if _VAGUE_PERCENT.search(text):
        raise CannotAnswerError('adding a bare percentage has two readings; say "increase 200 by 10%"')
    tokens: list[Fraction | str] = []
    position = 0
    text = text.strip()
    while position < len(text):
        budget.spend()
        match = _TOKEN.match(text, position)
        if match is None:
            raise CannotAnswerError("that is not a calculation I can read")
        word = match.group(1)
        if word == _REFERENCE:
            tokens.append(number_in(earlier.latest()))
        else:
            tokens.append(literal(word) if word[-1].isdigit() else word)
        position = match.end()
    return tokens


def _digits(match: re.Match[str]) -> str:
    value = parse(match.group())
    if value is None:
        raise CannotAnswerError("the number words in it do not spell one number")
    return f" {value} "


@dataclass(slots=True)
class _Parser:
    tokens: list[Fraction | str]
    budget: Budget
    position: int = 0
    depth: int = 0

    def whole(self) -> Fraction:
        value = self.binary(1)
        if self.position != len(self.tokens):
            raise CannotAnswerError("that is not a calculation I can read")
        return value

    def peek(self, ahead: int = 0) -> Fraction | str:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self) -> Fraction | str:
        token = self.peek()
        self.position += 1
        return token

    def enter(self) -> None:
        self.budget.spend()
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise CannotAnswerError(f"it is nested more than {_MAX_DEPTH} levels deep")

    def binary(self, level: int) -> Fraction:
        value = self.unary()
        while isinstance(operator := self.peek(), str) and _BINARY.get(operator, 0) >= level:
            self.take()
            right = self.binary(_BINARY[operator] + 1)
            value = checked(_apply(operator, value, right))
        return value

    def unary(self) -> Fraction:
        self.enter()
        sign = self.peek()
        if sign in ("-", "+"):
            self.take()
            value = self.unary() if sign == "+" else -self.unary()
        elif isinstance(sign, str) and sign in _PREFIXES:
            self.take()
            if self.peek() == "of":
                self.take()
            value = checked(_prefixed(sign, self.unary()))
        else:
            value = self.power()
        self.depth -= 1
        return value

    def power(self) -> Fraction:
        value = self.operand()
        if self.peek() in _POWER:
            self.take()
            value = raised(value, self.unary())
        return value

    def operand(self) -> Fraction:
        first = self.take()
        if isinstance(first, Fraction):
            value = first
        elif first == "(":
            value = self.binary(1)
            if self.take() != ")":
                raise CannotAnswerError("a parenthesis is not closed")
        else:
            raise CannotAnswerError("that is not a calculation I can read")
        if self.peek() == "%" and not (isinstance(self.peek(1), Fraction) or self.peek(1) == "("):
            self.take()
            value /= 100
        return value


def _apply(operator: str, left: Fraction, right: Fraction) -> Fraction:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*" | "of":
            return left * right
        case "/":
            return divided(left, right)
        case "//":
            return Fraction(divided(left, right) // 1)
        case _:
            return remainder([left, right])


def _prefixed(name: str, value: Fraction) -> Fraction:
    match name:
        case "root":
            return square_root(value)
        case "square":
            return raised(value, Fraction(2))
        case "cube":
            return raised(value, Fraction(3))
        case "half":
            return value / 2
        case "twice":
            return value * 2
        case _:
            return value * 3


def divided(left: Fraction, right: Fraction) -> Fraction:
    """Return the quotient; decline a division by zero."""
    if right == 0:
        raise CannotAnswerError("it divides by zero")
    return left / right


def remainder(values: list[Fraction]) -> Fraction:
    """Return what is left of the first of two values after division by the second, with the second's sign."""
    return values[0] - values[1] * (divided(values[0], values[1]) // 1)


def raised(value: Fraction, exponent: Fraction) -> Fraction:
    """Return `value` to the power of a whole `exponent`, refusing results that are too large beforehand."""
    power = integer(exponent, "an exponent")
    if power < 0 and value == 0:
        raise CannotAnswerError("it divides by zero")
    size = max(abs(value.numerator), value.denominator)
    if size > 1 and abs(power) * (size.bit_length() - 1) > MAX_NUMBER_BITS:
        raise CannotAnswerError("a number in it would have more than 3,900 digits")
    return checked(value**power) if size > 1 else _small_power(value, power)


def _small_power(value: Fraction, power: int) -> Fraction:
    """Return the power of -1, 0 or 1, for exponents of any size."""
    if value == 0:
        return Fraction(int(power == 0))
    return value if power % 2 else Fraction(1)


def square_root(value: Fraction) -> Fraction:
    """Return the exact square root; decline when it is irrational or not real."""
    if value < 0:
        raise CannotAnswerError("a negative number has no real square root")
    root = Fraction(isqrt(value.numerator), isqrt(value.denominator))
    if root * root != value:
        raise CannotAnswerError("that square root is not rational, and I only give exact answers")
    return root
