"""Skills of calculation with numbers."""

import math
from fractions import Fraction
from random import Random

from podium_core.grading.items import Make, Task, number, shown, text
from podium_core.grading.skills.vocabulary import GOODS, NAMES

_SIZES = {1: 99, 2: 9_999, 3: 9_999_999}
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def _addition(random: Random, level: int) -> Task:
    terms = [random.randint(10, _SIZES[level]) for _ in range(level + 1)]
    signs = [1, *(random.choice((1, -1)) for _ in terms[1:])]
    written = str(terms[0]) + "".join(
        f" {'+' if s > 0 else '-'} {t}" for s, t in zip(signs[1:], terms[1:], strict=True)
    )
    total = sum(s * t for s, t in zip(signs, terms, strict=True))
    return number(f"What is {written}?", total, sum(terms), total + 10, total - 100)


def _multiplication(random: Random, level: int) -> Task:
    a, b = random.randint(12, 99 * 10 ** (level - 1)), random.randint(12, 99 * 10 ** (level // 3))
    return number(f"What is {a} times {b}?", a * b, a * b + 10, a * b - b, a + b)


def _division(random: Random, level: int) -> Task:
    divisor = random.randint(3, 12 * 10 ** (level - 1) // 2 + 6)
    value = random.randint(10 ** (level + 1), 10 ** (level + 2))
    if random.randrange(2):
        return number(
            f"What is the remainder when {value} is divided by {divisor}?", value % divisor, value // divisor
        )
    asked = f"How many whole times does {divisor} fit into {value}?"
    return number(asked, value // divisor, value % divisor, value // divisor + 2)


def _expression(random: Random, depth: int) -> tuple[str, int]:
    if depth == 0:
        value = random.randint(2, 15)
        return str(value), value
    left, a = _expression(random, depth - 1)
    right, b = _expression(random, 0)
    operator = random.choice("+-*")
    result = {"+": a + b, "-": a - b, "*": a * b}[operator]
    return (f"({left}) {operator} {right}" if depth > 1 else f"{left} {operator} {right}"), result


def _operation_order(random: Random, level: int) -> Task:
    left, a = _expression(random, level)
    b, c = random.randint(2, 12), random.randint(2, 12)
    sign = random.choice((1, -1))
    written = f"({left}) {'+' if sign > 0 else '-'} {b} * {c}"
    return number(f"Evaluate {written}.", a + sign * b * c, (a + sign * b) * c)


def _fractions(random: Random, level: int) -> Task:
    a = Fraction(random.randint(1, 4 * level + 4), random.randint(2, 4 * level + 4))
    b = Fraction(random.randint(1, 4 * level + 4), random.randint(2, 4 * level + 4))
    operator = random.choice("+-*/")
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[operator]
    question = f"What is {_over(a)} {operator.replace('/', 'divided by')} {_over(b)}? Answer as a fraction or an integer."
    mediant = Fraction(a.numerator + b.numerator, a.denominator + b.denominator)
    task = number(question, value, mediant, 1 / value if value else 1, value + Fraction(1, value.denominator))
    return Task(task.question, task.grader, _over(value), task.traps)


def _over(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value.numerator)


def _decimals(random: Random, level: int) -> Task:
    places = 10**level
    a, b = Fraction(random.randint(1, 99 * places), places), Fraction(random.randint(1, 99 * 10), 10)
    operator = random.choice("+-*")
    value = {"+": a + b, "-": a - b, "*": a * b}[operator]
    return number(
        f"What is {shown(a)} {operator} {shown(b)}? Give the exact decimal.", value, value * 10, value / 10
    )


def _percent_of(random: Random, level: int) -> Task:
    percent = Fraction(
        random.randint(2, 19) * 5 if level == 1 else random.randint(3, 97), 2 if level == 3 else 1
    )
    base = random.randint(2, 99) * (20 if level == 1 else 5)
    value = base * percent / 100
    return number(f"What is {shown(percent)}% of {base}?", value, value * 10, base - value)


def _percent_change(random: Random, level: int) -> Task:
    start = random.randint(2, 40) * 10 * level
    percent = random.randint(1, 15) * 5
    is_rise = bool(random.randrange(2))
    end = Fraction(start) * (100 + (percent if is_rise else -percent)) / 100
    if level == 1:
        verb = "rises" if is_rise else "falls"
        return number(
            f"A price of {start} {verb} by {percent}%. What is it then?", end, end + 5, start + percent
        )
    asked = f"A value goes from {start} to {shown(end)}. By how many per cent did it {'rise' if is_rise else 'fall'}?"
    return number(asked, percent, percent + 5, 100 - percent, percent=True)


def _powers(random: Random, level: int) -> Task:
    base, power = random.randint(2, 5 + 5 * level), random.randint(2, 2 + level)
    if random.randrange(2):
        return number(
            f"What is {base} to the power of {power}?", base**power, base * power, base ** (power - 1)
        )
    root = random.randint(4, 12 * 10 ** (level - 1))
    return number(f"What is the positive square root of {root * root}?", root, root * root // 2, root + 2)


def _modular(random: Random, level: int) -> Task:
    base, power, modulus = (
        random.randint(2, 12),
        random.randint(3, 4 + 8 * level),
        random.randint(5, 9 + 10 * level),
    )
    value = pow(base, power, modulus)
    return number(
        f"What is {base}^{power} modulo {modulus}?", value, (value + 1) % modulus, base * power % modulus
    )


def _divisors(random: Random, level: int) -> Task:
    shared = random.randint(2, 12 * level)
    a, b = shared * random.randint(2, 6 * level), shared * random.randint(2, 6 * level)
    if random.randrange(2):
        return number(f"What is the greatest common divisor of {a} and {b}?", math.gcd(a, b), math.lcm(a, b))
    return number(f"What is the least common multiple of {a} and {b}?", math.lcm(a, b), math.gcd(a, b), a * b)


def _primes(random: Random, level: int) -> Task:
    factors = sorted(random.choice(_PRIMES[: 4 + 4 * level]) for _ in range(level + 1))
    value = math.prod(factors)
    if level < 3 and random.randrange(2):
        start = random.randint(10, 80 * level)
        end = start + random.randint(10, 40)
        count = sum(all(n % d for d in range(2, math.isqrt(n) + 1)) for n in range(start, end + 1))
        return number(f"How many prime numbers are there from {start} to {end}, both included?", count)
    return number(f"What is the largest prime factor of {value}?", factors[-1], factors[0], value)


def _proportion(random: Random, level: int) -> Task:
    unit_price, first, second = (
        random.randint(2, 9 * level),
        random.randint(2, 9),
        random.randint(10, 30 * level),
    )
    goods, name = random.choice(GOODS), random.choice(NAMES)
    value = unit_price * second
    asked = f"{name} pays {unit_price * first} coins for {first} {goods}. What do {second} {goods} cost at that price?"
    return number(asked, value, unit_price * first + second, unit_price * first * second)


def _work_problem(random: Random, level: int) -> Task:
    name, other = random.sample(NAMES, 2)
    goods = random.choice(GOODS)
    start, given, bags, each = (random.randint(3, 12 * level) for _ in range(4))
    total = start + bags * each
    kept = total - min(given, total)
    asked = (
        f"{name} has {start} {goods} and buys {bags} bags with {each} {goods} each."
        f" Then {name} gives {min(given, total)} of them to {other}."
    )
    if level > 1:
        kept *= 2
        asked += f" A friend doubles what {name} has left."
    return number(f"{asked} How many {goods} does {name} have now?", kept, total, start + bags + each)


def _digit_sum(random: Random, level: int) -> Task:
    value = random.randint(10 ** (2 * level), 10 ** (2 * level + 2))
    total = sum(map(int, str(value)))
    return number(f"What is the sum of the digits of {value}?", total, len(str(value)), total + 9)


def _rounding(random: Random, level: int) -> Task:
    places = random.randrange(level)
    value = Fraction(
        random.randint(1, 10 ** (level + 4)) * 10 + random.choice((1, 2, 3, 4, 6, 7, 8, 9)), 10**4
    )
    scaled = value * 10**places
    rounded = Fraction(math.floor(scaled + Fraction(1, 2)), 10**places)
    other = Fraction(math.floor(scaled), 10**places)
    target = "the nearest integer" if places == 0 else f"{places} decimal place{'s' * (places > 1)}"
    return number(f"Round {shown(value)} to {target}.", rounded, other, other + Fraction(1, 10**places))


def _big_compare(random: Random, level: int) -> Task:
    a, b = random.randint(2, 3 + 3 * level), random.randint(2, 3 + 3 * level)
    m, n = random.randint(2, 4 + level), random.randint(2, 4 + level)
    left, right = a**m, b**n
    gold = "equal" if left == right else "first" if left > right else "second"
    others = [word for word in ("first", "second", "equal") if word != gold]
    return text(f"Which is larger: {a}^{m} or {b}^{n}? Answer first, second or equal.", gold, *others)


MAKERS: dict[str, Make] = {
    "addition": _addition,
    "multiplication": _multiplication,
    "division": _division,
    "operation-order": _operation_order,
    "fractions": _fractions,
    "decimals": _decimals,
    "percent-of": _percent_of,
    "percent-change": _percent_change,
    "powers-and-roots": _powers,
    "modular-arithmetic": _modular,
    "divisors-and-multiples": _divisors,
    "primes": _primes,
    "proportion": _proportion,
    "word-problems": _work_problem,
    "digit-sums": _digit_sum,
    "rounding": _rounding,
    "power-comparison": _big_compare,
}
