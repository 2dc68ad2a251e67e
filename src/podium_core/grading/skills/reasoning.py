"""Skills of logic, order, sets and paths."""

from itertools import pairwise, product
from random import Random

from podium_core.grading.items import Make, Task, listing, number, text
from podium_core.grading.skills.vocabulary import CITIES, NAMES, WORDS

_GROUPS = ("painters", "swimmers", "bakers", "singers", "pilots", "farmers", "dancers", "sailors")


def _formula(random: Random, names: str, depth: int) -> str:
    if depth == 0:
        return random.choice(("", "not ")) + random.choice(names)
    left, right = _formula(random, names, depth - 1), _formula(random, names, depth - 1 - depth // 3)
    return f"({left} {random.choice(('and', 'or'))} {right})"


def _holds(formula: str, values: dict[str, bool]) -> bool:
    """Evaluate a formula of parentheses, `and`, `or`, `not` and single letters."""
    tokens = formula.replace("(", " ( ").replace(")", " ) ").split()
    value, rest = _read(tokens, values)
    assert not rest
    return value


def _read(tokens: list[str], values: dict[str, bool]) -> tuple[bool, list[str]]:
    head, *rest = tokens
    if head == "not":
        value, rest = _read(rest, values)
        return not value, rest
    if head != "(":
        return values[head], rest
    left, (operator, *rest) = _read(rest, values)
    right, (_, *rest) = _read(rest, values)
    return (left and right if operator == "and" else left or right), rest


def _boolean(random: Random, level: int) -> Task:
    names = "PQRS"[: level + 1]
    formula = _formula(random, names, level)
    values = {name: bool(random.randrange(2)) for name in names}
    given = ", ".join(f"{name} is {str(value).lower()}" for name, value in values.items())
    gold = str(_holds(formula, values)).lower()
    wrong = "false" if gold == "true" else "true"
    return text(f"{given}. Is {formula} true or false?", gold, wrong, "unknown")


def _truth_table(random: Random, level: int) -> Task:
    names = "PQR"[: min(3, level + 1)]
    formula = _formula(random, names, level)
    rows = [dict(zip(names, values, strict=True)) for values in product((False, True), repeat=len(names))]
    count = sum(_holds(formula, row) for row in rows)
    asked = (
        f"For how many of the {len(rows)} ways to make {', '.join(names)} true or false is {formula} true?"
    )
    return number(asked, count, len(rows) - count, len(rows) + 1)


def _syllogism(random: Random, level: int) -> Task:
    a, b, c = random.sample(_GROUPS, 3)
    forms = (
        (f"All {a} are {b}. All {b} are {c}.", f"all {a} are {c}", "yes"),
        (f"All {a} are {b}. No {b} are {c}.", f"no {a} are {c}", "yes"),
        (f"All {a} are {b}. All {c} are {b}.", f"all {a} are {c}", "no"),
        (f"Some {a} are {b}. All {b} are {c}.", f"some {a} are {c}", "yes"),
        (f"Some {a} are {b}. Some {b} are {c}.", f"some {a} are {c}", "no"),
        (f"No {a} are {b}. All {c} are {b}.", f"no {c} are {a}", "yes"),
        (f"All {a} are {b}. Some {b} are not {c}.", f"some {a} are not {c}", "no"),
        (f"All {a} are {b}. Some {c} are not {b}.", f"some {c} are not {a}", "yes"),
    )
    premises, conclusion, gold = random.choice(forms[: 2 + 2 * level])
    asked = f"{premises} Does it follow that {conclusion}? Answer yes or no."
    return text(asked, gold, "no" if gold == "yes" else "yes")


def _ordering(random: Random, level: int) -> Task:
    names = random.sample(NAMES, 3 + level)
    pairs = list(pairwise(names))
    random.shuffle(pairs)
    facts = ". ".join(
        f"{a} is taller than {b}" if random.randrange(2) else f"{b} is shorter than {a}" for a, b in pairs
    )
    place = random.randrange(len(names))
    word = ("tallest", "second tallest", "third tallest", "fourth tallest", "fifth tallest", "sixth tallest")[
        place
    ]
    return text(f"{facts}. Who is the {word}?", names[place], *[n for n in names if n != names[place]])


_World = dict[str, bool]


def _is_possible(world: _World, claims: list[tuple[str, str, int]]) -> bool:
    """Say whether everybody who tells the truth in `world` does, and nobody else.

    A claim is (speaker, another's name or nothing, what is said): that the other tells the truth (1) or
    lies (0), or how many tell the truth.
    """
    return all(
        (world[about] == bool(said) if about else sum(world.values()) == said) == world[speaker]
        for speaker, about, said in claims
    )


def _liars(random: Random, level: int) -> Task:
    names = random.sample(NAMES, 1 + level)
    worlds: list[_World] = []
    claims: list[tuple[str, str, int]] = []
    while len(worlds) != 1:
        claims = []
        for speaker in names:
            about = random.choice([n for n in (*names, "") if n != speaker])
            claims.append((speaker, about, random.randrange(2) if about else random.randint(0, len(names))))
        every = (dict(zip(names, v, strict=True)) for v in product((True, False), repeat=len(names)))
        worlds = [world for world in every if _is_possible(world, claims)]
    told = " ".join(f'{speaker} says: "{_claim(about, said)}"' for speaker, about, said in claims)
    asked = f"Each of {', '.join(names)} either always tells the truth or always lies. {told}"
    count = sum(worlds[0].values())
    return number(f"{asked} How many of them tell the truth?", count, len(names) - count)


def _claim(about: str, said: int) -> str:
    if not about:
        return f"Exactly {said} of us tell the truth."
    return f"{about} {'tells the truth' if said else 'lies'}."


def _sets(random: Random, level: int) -> Task:
    values = range(1, 10 + 5 * level)
    a, b = sorted(random.sample(values, 3 + level)), sorted(random.sample(values, 3 + level))
    kinds = {
        "in both A and B": sorted(set(a) & set(b)),
        "in A but not in B": sorted(set(a) - set(b)),
        "in A or B or both": sorted(set(a) | set(b)),
        "in exactly one of A and B": sorted(set(a) ^ set(b)),
    }
    name = random.choice(list(kinds)[: 2 + level])
    asked = f"A = {{{', '.join(map(str, a))}}}, B = {{{', '.join(map(str, b))}}}. Which numbers are {name}? Answer none if there are none."
    return listing(asked, [str(v) for v in kinds[name]])


def _venn(random: Random, level: int) -> Task:
    both, first, second, neither = (random.randint(2, 15 * level) for _ in range(4))
    one, other = random.sample(_GROUPS, 2)
    total = both + first + second + neither
    told = f"Of {total} people, {both + first} are {one}, {both + second} are {other}, and {both} are both."
    kinds = (
        ("How many are neither?", neither),
        (f"How many are {one} only?", first),
        ("How many are exactly one of the two?", first + second),
    )
    asked, value = random.choice(kinds)
    return number(f"{told} {asked}", value, both + first + second, total - value)


def _compare(random: Random, level: int) -> Task:
    whole = random.randint(0, 20)
    values: set[str] = set()
    while len(values) < 3 + level:
        values.add(f"{whole}.{random.randint(1, 10 ** random.randint(1, 3) - 1)}".rstrip("0"))
        values = {v for v in values if not v.endswith(".")}
    listed = random.sample(sorted(values), len(values))
    word, pick = random.choice((("largest", max), ("smallest", min)))
    gold = pick(listed, key=float)
    return text(
        f"Which of these numbers is the {word}: {', '.join(listed)}?", gold, *[v for v in listed if v != gold]
    )


def _directions(random: Random, level: int) -> Task:
    x = y = facing = 0
    moves: list[str] = []
    for _ in range(1 + level):
        steps = random.randint(1, 9)
        x, y = x + steps * (0, 1, 0, -1)[facing], y + steps * (1, 0, -1, 0)[facing]
        turn = random.choice(("left", "right"))
        facing = (facing + (1 if turn == "right" else 3)) % 4
        moves.append(f"walk {steps} steps, turn {turn}")
    gold = ("north", "east", "south", "west")[facing]
    if random.randrange(2):
        near = [d for d in ("north", "east", "south", "west") if d != gold]
        return text(f"You face north. You {'; '.join(moves)}. Which way do you face now?", gold, *near)
    asked = f"You face north. You {'; '.join(moves)}. How many steps are you away from the start, counted along north-south plus east-west?"
    return number(asked, abs(x) + abs(y), abs(x - y) + 3)


def _shortest_path(random: Random, level: int) -> Task:
    towns = random.sample(CITIES, 3 + level)
    roads = {
        (a, b): random.randint(2, 9 * level)
        for i, a in enumerate(towns)
        for b in towns[i + 1 :]
        if b != towns[-1] or a != towns[0]
    }
    best = dict.fromkeys(towns, 10**6) | {towns[0]: 0}
    for _ in towns:
        for (a, b), length in roads.items():
            best[b] = min(best[b], best[a] + length)
            best[a] = min(best[a], best[b] + length)
    listed = random.sample(list(roads.items()), len(roads))
    facts = "; ".join(f"{a}-{b} {length} km" for (a, b), length in listed)
    value = best[towns[-1]]
    return number(
        f"Roads: {facts}. How many km is the shortest way from {towns[0]} to {towns[-1]}?",
        value,
        value + 2,
        sum(roads.values()),
    )


def _swaps(random: Random, level: int) -> Task:
    names, things = random.sample(NAMES, 2 + level), random.sample(WORDS, 2 + level)
    held = dict(zip(names, things, strict=True))
    start = "; ".join(f"{name} has the {thing}" for name, thing in held.items())
    told: list[str] = []
    for _ in range(1 + 2 * level):
        a, b = random.sample(names, 2)
        held[a], held[b] = held[b], held[a]
        told.append(f"{a} and {b} swap")
    name = random.choice(names)
    return text(
        f"{start}. {'. '.join(told)}. What does {name} have now?",
        held[name],
        *[t for t in things if t != held[name]],
    )


MAKERS: dict[str, Make] = {
    "boolean-logic": _boolean,
    "truth-tables": _truth_table,
    "syllogisms": _syllogism,
    "ordering-puzzles": _ordering,
    "truth-tellers": _liars,
    "set-operations": _sets,
    "overlapping-groups": _venn,
    "decimal-comparison": _compare,
    "directions": _directions,
    "shortest-paths": _shortest_path,
    "swap-tracking": _swaps,
}
