"""Reads the GBNF that Podium writes and generates random texts from it: a sampler without a model."""

import re
from collections.abc import Sequence
from functools import cache
from random import Random

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{(?:\d+),(?:\d+)\}|[a-z][a-z0-9-]*|\|', re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ALPHABET = [chr(code) for code in range(256)] + list('äß中🙂"\\[]{}<=`é,:')
_MOST_REPEATS = 12

Alternatives = list[list[str]]


def rules_of(grammar: str) -> dict[str, Alternatives]:
    """Return each rule's alternatives as lists of tokens."""
    rules: dict[str, Alternatives] = {}
    for line in grammar.splitlines():
        name, _, body = line.partition(" ::= ")
        alternatives: Alternatives = [[]]
        position = 0
        for match in _TOKEN.finditer(body):
            assert not body[position : match.start()].strip(), f"unread: {body[position : match.start()]!r}"
            position = match.end()
            if match.group() == "|":
                alternatives.append([])
            else:
                alternatives[-1].append(match.group())
        assert not body[position:].strip(), f"unread: {body[position:]!r}"
        assert name not in rules, f"{name} is defined twice"
        rules[name] = alternatives
    return rules


def generate(rules: dict[str, Alternatives], random: Random, name: str = "root") -> str:
    """Return a random text of the rule `name`."""
    tokens = random.choice(rules[name])
    parts: list[str] = []
    for index, token in enumerate(tokens):
        if token.startswith("{"):
            continue
        repeats = _repeats(tokens, index, random)
        parts.extend(_text(rules, token, random) for _ in range(repeats))
    return "".join(parts)


def _repeats(tokens: Sequence[str], index: int, random: Random) -> int:
    following = tokens[index + 1] if index + 1 < len(tokens) else ""
    if not following.startswith("{"):
        return 1
    least, most = map(int, following[1:-1].split(","))
    return most if random.random() < 0.05 else random.randint(least, min(most, _MOST_REPEATS))


@cache
def _allowed(token: str) -> list[str]:
    return [char for char in _ALPHABET if re.fullmatch(token, char)]


def _text(rules: dict[str, Alternatives], token: str, random: Random) -> str:
    if token.startswith('"'):
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)
    if token.startswith("["):
        return random.choice(_allowed(token))
    return generate(rules, random, token)
