"""Skills of algebra, number systems, counting, chance and shapes."""

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

from podium_core.grading.items import Make, Task, number, text
from podium_core.grading.skills.vocabulary import COLOURS

_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
    (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_DIGITS = "0123456789abcdef"


def _linear(random: Random, level: int) -> Task:
    x = Fraction(random.randint(-12, 12), level if level > 2 else 1)
    a, b, c = random.randint(2, 9), random.randint(1, 30), random.randint(1, 9) if level > 1 else 0
    a += c
    right = (a - c) * x + b
    side = f"{_signed_term(c, 'x')} " if c else ""
    end = f"+ {right}" if c and right >= 0 else f"- {-right}" if c else f"{right}"
    return number(f"Solve for x: {a}x + {b} = {side}{end}", x, -x, x + 2)


def _signed_term(factor: int, name: str) -> str:
    return f"{'' if factor == 1 else factor}{name}"


def _system(random: Random, level: int) -> Task:
    x, y = random.randint(-9 * level, 9 * level), random.randint(-9 * level, 9 * level)
    a, b = random.randint(1, 3 * level + 1), random.randint(1, 3 * level + 1)
    c, d = random.randint(1, 3 * level + 1), -random.randint(1, 3 * level + 1)
    asked, other = random.choice((("x", "y"), ("y", "x")))
    values = {"x": x, "y": y}
    written = f"{a}x + {b}y = {a * x + b * y} and {c}x - {-d}y = {c * x + d * y}"
    return number(f"Given {written}, what is {asked}?", values[asked], values[other], -values[asked])


def _quadratic(random: Random, level: int) -> Task:
    first, second = random.sample(range(-5 * level, 5 * level + 1), 2)
    larger, smaller = max(first, second), min(first, second)
    b, c = -(first + second), first * second
    asked, value, trap = random.choice((("larger", larger, smaller), ("smaller", smaller, larger)))
    middle = f"{'+' if b >= 0 else '-'} {abs(b)}x {'+' if c >= 0 else '-'} {abs(c)}"
    return number(f"What is the {asked} solution of x^2 {middle} = 0?", value, trap, -value)


def _polynomial(random: Random, level: int) -> Task:
    factors = [random.randint(-6, 6) or 1 for _ in range(level + 2)]
    x = random.randint(-4, 6)
    value = sum(f * x**p for p, f in enumerate(factors))
    written = " + ".join(f"({f})x^{p}" for p, f in reversed(list(enumerate(factors))))
    return number(f"Evaluate {written} at x = {x}.", value, sum(factors), value + factors[-1])


def _expansion(random: Random, level: int) -> Task:
    a, b, c, d = (
        random.randint(1, 2 * level),
        random.randint(-9, 9) or 2,
        random.randint(1, 2 * level),
        random.randint(-9, 9) or 3,
    )
    parts = {"x^2": a * c, "x": a * d + b * c, "constant": b * d}
    asked = random.choice(list(parts))
    name = "constant term" if asked == "constant" else f"coefficient of {asked}"
    written = f"({a}x {'+' if b > 0 else '-'} {abs(b)})({c}x {'+' if d > 0 else '-'} {abs(d)})"
    return number(f"Expand {written}. What is the {name}?", parts[asked], *parts.values(), a * d - b * c)


def _in_base(value: int, base: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _bases(random: Random, level: int) -> Task:
    base = random.choice(((2, 16), (2, 8, 16), (3, 5, 7, 12))[level - 1])
    value = random.randint(17, 10 ** (level + 1) * 2)
    written = _in_base(value, base)
    if random.randrange(2):
        return number(f"Write the base-{base} number {written} in decimal.", value, value + base, value - 1)
    asked = f"Write the decimal number {value} in base {base}, digits only."
    return text(asked, written, _in_base(value + 1, base), str(value), written[::-1])


def _to_roman(value: int) -> str:
    result = ""
    for amount, letters in _ROMAN:
        result += letters * (value // amount)
        value %= amount
    return result


def _roman(random: Random, level: int) -> Task:
    value = random.randint(4, (60, 500, 3999)[level - 1])
    if random.randrange(2):
        return number(f"What number is the Roman numeral {_to_roman(value)}?", value, value + 1, value + 10)
    return text(f"Write {value} as a Roman numeral.", _to_roman(value), _to_roman(value + 1), str(value))


def _in_words(value: int) -> str:
    if value < len(_ONES):
        return _ONES[value]
    if value < 100:
        ten, one = divmod(value, 10)
        return _TENS[ten] + (f"-{_ONES[one]}" if one else "")
    if value < 1000:
        hundred, rest = divmod(value, 100)
        return f"{_ONES[hundred]} hundred" + (f" and {_in_words(rest)}" if rest else "")
    thousand, rest = divmod(value, 1000)
    joint = " and " if 0 < rest < 100 else " "
    return f"{_in_words(thousand)} thousand" + (f"{joint}{_in_words(rest)}" if rest else "")


def _number_words(random: Random, level: int) -> Task:
    value = random.randint(10**level, 10 ** (2 * level))
    written = _in_words(value)
    return number(f"Write in digits: {written}", value, value + 10, value * 10, value + 1)


def _arithmetic_sequence(random: Random, level: int) -> Task:
    start, step = random.randint(-20, 40), random.randint(2, 9 * level)
    terms = [start + step * k for k in range(4)]
    place = random.randint(6, 10 * level)
    value = start + step * (place - 1)
    written = ", ".join(map(str, terms))
    return number(
        f"A sequence begins {written} and goes on evenly. What is its term number {place}?",
        value,
        value + step,
    )


def _next_term(random: Random, level: int) -> Task:
    a, b = random.randint(1, 9), random.randint(2, 5)
    makers: tuple[Callable[[int], int], ...] = (
        lambda k: a * b**k,
        lambda k: a + k * k * b,
        lambda k: a + b * k * (k + 1) // 2 + k,
        lambda k: a + b * k if k % 2 == 0 else 50 - a * k,
    )
    make = makers[random.randrange(level + 1)]
    terms = [make(k) for k in range(7)]
    return number(
        f"What number comes next: {', '.join(map(str, terms[:6]))}, ...?", terms[6], 2 * terms[5] - terms[4]
    )


def _combinatorics(random: Random, level: int) -> Task:
    n = random.randint(4, 5 + 3 * level)
    k = random.randint(2, min(n - 1, 2 + level))
    kinds = (
        (
            f"In how many ways can {k} of {n} people be chosen for a committee?",
            math.comb(n, k),
            math.perm(n, k),
        ),
        (f"In how many ways can {k} of {n} runners take places 1 to {k}?", math.perm(n, k), math.comb(n, k)),
        (
            f"How many codes of {k} symbols can be made from {n} symbols, repeats allowed?",
            n**k,
            math.perm(n, k),
        ),
    )
    asked, value, trap = random.choice(kinds)
    return number(asked, value, trap, n * k)


def _probability(random: Random, level: int) -> Task:
    counts = {colour: random.randint(2, 5 + 2 * level) for colour in random.sample(COLOURS, 3)}
    total, colour = sum(counts.values()), random.choice(list(counts))
    held = counts[colour]
    bag = ", ".join(f"{count} {name}" for name, count in counts.items())
    if level == 1:
        value, trap, what = (
            Fraction(held, total),
            Fraction(held, total - held),
            f"one ball drawn at random is {colour}",
        )
    else:
        value = Fraction(held * (held - 1), total * (total - 1))
        trap, what = (
            Fraction(held * held, total * total),
            f"two balls drawn without putting back are both {colour}",
        )
    task = number(
        f"A bag holds balls: {bag}. What is the probability that {what}? Answer as a fraction.", value, trap
    )
    return Task(task.question, task.grader, f"{value.numerator}/{value.denominator}", task.traps)


def _statistics(random: Random, level: int) -> Task:
    values = [random.randint(1, 30 * level) for _ in range(3 + 2 * level)]
    ordered = sorted(values)
    measures = {
        "median": Fraction(ordered[len(ordered) // 2]),
        "range (largest minus smallest)": Fraction(ordered[-1] - ordered[0]),
        "sum": Fraction(sum(values)),
    }
    asked = random.choice(list(measures))
    return number(
        f"What is the {asked} of {', '.join(map(str, values))}?", measures[asked], *measures.values()
    )


def _mean(random: Random, level: int) -> Task:
    count = random.choice((4, 5, 8, 10)) if level > 1 else 4
    values = [random.randint(1, 25 * level) for _ in range(count)]
    mean = Fraction(sum(values), count)
    return number(
        f"What is the mean of {', '.join(map(str, values))}?", mean, sorted(values)[count // 2], mean + 2
    )


def _geometry(random: Random, level: int) -> Task:
    a, b, h = (random.randint(3, 12 * level) for _ in range(3))
    angle, other = random.randint(20, 80), random.randint(20, 80)
    kinds = (
        (f"What is the area of a rectangle with sides {a} and {b}?", Fraction(a * b), Fraction(2 * (a + b))),
        (f"What is the perimeter of a rectangle with sides {a} and {b}?", Fraction(2 * (a + b)), Fraction(a * b)),
        (f"What is the area of a triangle with base {a} and height {h}?", Fraction(a * h, 2), Fraction(a * h)),
        (f"What is the volume of a box of {a} by {b} by {h}?", Fraction(a * b * h), Fraction(a * b + h)),
        (f"What is the area of a trapezium with parallel sides {a} and {b} and height {h}?", Fraction((a + b) * h, 2), Fraction((a + b) * h)),
        (f"Two angles of a triangle are {angle} and {other} degrees. What is the third, in degrees?", Fraction(180 - angle - other), Fraction(360 - angle - other)),
    )  # fmt: skip
    asked, value, trap = random.choice(kinds[: 2 * level])
    return number(asked, value, trap)


def _matrices(random: Random, level: int) -> Task:
    a, b, c, d = (random.randint(-3 * level, 5 * level) for _ in range(4))
    if random.randrange(2):
        return number(
            f"What is the determinant of the matrix [[{a}, {b}], [{c}, {d}]]?", a * d - b * c, a * d + b * c
        )
    x, y = random.randint(-5, 9), random.randint(-5, 9)
    row = random.randrange(2)
    values = (a * x + b * y, c * x + d * y)
    asked = f"The matrix [[{a}, {b}], [{c}, {d}]] is multiplied by the column vector [{x}, {y}]. What is entry {row + 1} of the result?"
    return number(asked, values[row], values[1 - row])


MAKERS: dict[str, Make] = {
    "linear-equations": _linear,
    "equation-systems": _system,
    "quadratic-equations": _quadratic,
    "polynomial-values": _polynomial,
    "polynomial-expansion": _expansion,
    "number-bases": _bases,
    "roman-numerals": _roman,
    "number-words": _number_words,
    "arithmetic-sequences": _arithmetic_sequence,
    "next-term": _next_term,
    "combinatorics": _combinatorics,
    "probability": _probability,
    "median-and-range": _statistics,
    "mean": _mean,
    "geometry": _geometry,
    "matrices": _matrices,
}
