"""Skills on tables, JSON, patterns, bits and small programs."""

import re
from datetime import date, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from podium_core.grading.items import Make, Task, json_value, listing, number, text
from podium_core.grading.skills.vocabulary import CITIES, COLOURS, NAMES, WORDS

Row = dict[str, Any]


def _rows(random: Random, count: int) -> list[Row]:
    names = random.sample(NAMES, count)
    return [
        {
            "name": n,
            "city": random.choice(CITIES[:4]),
            "age": random.randint(18, 70),
            "score": random.randint(10, 99),
        }
        for n in names
    ]


def _table(rows: list[Row]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    return "\n".join(lines + ["| " + " | ".join(map(str, row.values())) + " |" for row in rows])


def _lookup(random: Random, level: int) -> Task:
    rows = _rows(random, 2 + 3 * level)
    row, column = random.choice(rows), random.choice(("age", "score"))
    near = [other[column] for other in rows if other is not row][:3]
    return number(f"{_table(rows)}\nWhat is the {column} of {row['name']}?", row[column], *near)


def _aggregate(random: Random, level: int) -> Task:
    rows = _rows(random, 3 + 3 * level)
    city = random.choice(rows)["city"]
    chosen = [row["score"] for row in rows if row["city"] == city]
    kinds = (
        (f"What is the sum of the scores of the people in {city}?", sum(chosen)),
        (f"How many people are in {city}?", len(chosen)),
        (f"What is the highest score of the people in {city}?", max(chosen)),
    )
    asked, value = random.choice(kinds)
    return number(f"{_table(rows)}\n{asked}", value, sum(row["score"] for row in rows), len(rows) + 1)


def _filter(random: Random, level: int) -> Task:
    rows = _rows(random, 3 + 3 * level)
    age, score = random.randint(25, 60), random.randint(30, 80)
    chosen = [row for row in rows if row["age"] > age and (level == 1 or row["score"] < score)]
    also = "" if level == 1 else f" and have a score below {score}"
    asked = f"{_table(rows)}\nWho are older than {age}{also}? Answer with the names, or none."
    return listing(asked, [row["name"] for row in chosen])


def _csv_to_json(random: Random, level: int) -> Task:
    rows = [{k: row[k] for k in ("name", "age", "city")[: 1 + level]} for row in _rows(random, level + 1)]
    written = "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)])
    asked = f"Turn this CSV into a JSON array of objects; ages are numbers.\n{written}"
    return json_value(asked, rows, rows[:-1], [{k: str(v) + "0" for k, v in row.items()} for row in rows])


def _json_path(random: Random, level: int) -> Task:
    orders = [
        {"id": random.randint(100, 999), "buyer": {"name": random.choice(NAMES), "city": random.choice(CITIES)}, "lines": [{"item": random.choice(WORDS), "count": random.randint(1, 9)} for _ in range(level)]}
        for _ in range(level + 1)
    ]  # fmt: skip
    place = random.randrange(len(orders))
    line = random.randrange(level)
    kinds = (
        (f"orders[{place}].buyer.city", orders[place]["buyer"]["city"]),  # type: ignore[index]
        (f"orders[{place}].lines[{line}].item", orders[place]["lines"][line]["item"]),  # type: ignore[index]
    )
    path, gold = random.choice(kinds)
    return text(
        f"orders = {orders!r}\nWhich value is at {path}, counting from 0?",
        str(gold),
        path,
        str(orders[place]["id"]),
    )


def _json_extraction(random: Random, level: int) -> Task:
    name, city, thing = random.choice(NAMES), random.choice(CITIES), random.choice(WORDS)
    count, price = random.randint(2, 40), random.randint(3, 90)
    when = date(2026, 1, 1) + timedelta(days=random.randrange(365))
    told = (
        f"On {when:%-d %B %Y} {name} from {city} ordered {count} pieces of {thing} at {price} dollars each."
    )
    fields: Row = {
        "name": name,
        "count": count,
        "price": price,
        "city": city,
        "item": thing,
        "date": when.isoformat(),
    }
    kept = {key: fields[key] for key in random.sample(list(fields), 1 + level)}
    kinds = {"count": "number", "price": "number", "date": "YYYY-MM-DD"}
    wanted = ", ".join(f"{key} ({kinds.get(key, 'text')})" for key in kept)
    wrong = {key: str(value) + "?" for key, value in kept.items()}
    return json_value(
        f"{told}\nAnswer with one JSON object with exactly these fields: {wanted}.", kept, wrong, {}
    )


def _json_repair(random: Random, level: int) -> Task:
    value: Row = {random.choice(WORDS): random.randint(1, 99) for _ in range(1 + level)}
    value["tags"] = random.sample(COLOURS, level)
    good = str(value).replace("'", '"')
    breaks = (
        lambda t: t[:-1],
        lambda t: t[:-1] + ",}",
        lambda t: t.replace('"', "'"),
        lambda t: t.replace('"', "", 2),
    )
    broken = breaks[random.randrange(len(breaks))](good)
    return json_value(
        f"This is meant to be a JSON object. Write it as valid JSON.\n{broken}", value, {"tags": []}
    )


def _pattern(random: Random, level: int) -> Task:
    kinds = (
        (r"^[a-m]", "search"), (r"[aeiou]$", "search"), (r"(.)\1", "search"), (r"^.{5,6}$", "search"),
        (r"^[^aeiou][aeiou][^aeiou]", "search"), (r"e.?r", "search"), (r"^(b|c|m).*(e|t)", "search"),
        (r"[^aeiou]{3}", "search"),
    )  # fmt: skip
    pattern = random.choice(kinds[: 2 + 2 * level])[0]
    words = random.sample(WORDS, 3 + 2 * level)
    gold = [word for word in words if re.search(pattern, word)]
    asked = f"In which of these words does the regular expression {pattern} find a match? {', '.join(words)}. Answer none if in none."
    return listing(asked, gold)


def _loop(random: Random, level: int) -> Task:
    start, count, step = random.randint(0, 9), random.randint(3, 4 + 2 * level), random.randint(2, 5)
    lines = [f"total = {start}", f"for i in range({count}):"]
    total = start
    if level == 1:
        lines.append(f"    total += i * {step}")
        total += sum(i * step for i in range(count))
    else:
        lines += [f"    if i % {step} == 0:", "        total += i", "    else:", "        total -= 1"]
        for i in range(count):
            total += i if i % step == 0 else -1
    if level == 3:
        lines += ["while total > 5:", "    total -= 4"]
        while total > 5:
            total -= 4
    code = "\n".join([*lines, "print(total)"])
    return number(f"What does this Python program print?\n{code}", total, total + step, total - 1)


def _lists(random: Random, level: int) -> Task:
    values = [random.randint(1, 20) for _ in range(4 + level)]
    a, b = sorted(random.sample(range(len(values) + 1), 2))
    kinds: tuple[tuple[str, list[int]], ...] = (
        (f"print(x[{a}:{b}])", values[a:b]),
        ("print(x[::-1])", values[::-1]),
        (f"print([v * {a + 2} for v in x if v % 2])", [v * (a + 2) for v in values if v % 2]),
        (f"print(sorted(x)[{a}:])", sorted(values)[a:]),
        (
            "print([x[i] - x[i - 1] for i in range(1, len(x))])",
            [q - p for p, q in pairwise(values)],
        ),
        (f"print(x[-{a + 1}:] + x[:{b}:2])", values[-(a + 1) :] + values[:b:2]),
    )
    line, gold = random.choice(kinds[: 2 * level])
    asked = f"What does this Python program print?\nx = {values}\n{line}"
    return listing(asked, [str(v) for v in gold], ordered=True)


def _functions(random: Random, level: int) -> Task:
    a, b, n = random.randint(2, 5), random.randint(1, 6), random.randint(3, 3 + 2 * level)
    if level == 1:
        code, value = f"def f(x):\n    return x * {a} + {b}\n\nprint(f(f({n})))", (n * a + b) * a + b
    elif level == 2:
        code = (
            f"def f(n):\n    if n <= 1:\n        return {b}\n    return f(n - 1) + n * {a}\n\nprint(f({n}))"
        )
        value = b + sum(k * a for k in range(2, n + 1))
    else:
        code = f"def f(n):\n    if n < 2:\n        return n + {b}\n    return f(n - 1) + f(n - 2)\n\nprint(f({n}))"
        p, q = b, b + 1
        for _ in range(n - 1):
            p, q = q, p + q
        value = q
    return number(f"What does this Python program print?\n{code}", value, value + a, value - b)


def _dictionaries(random: Random, level: int) -> Task:
    words = [random.choice(WORDS[:8]) for _ in range(3 + 3 * level)]
    counts = {word: words.count(word) for word in words}
    key = random.choice(words)
    lines = [f"words = {words}", "seen = {}", "for w in words:", "    seen[w] = seen.get(w, 0) + 1"]
    kinds = (
        (f"print(seen[{key!r}])", counts[key]),
        ("print(len(seen))", len(counts)),
        ("print(max(seen.values()))", max(counts.values())),
    )
    line, value = random.choice(kinds)
    code = "\n".join([*lines, line])
    return number(f"What does this Python program print?\n{code}", value, len(words) + 1)


def _bits(random: Random, level: int) -> Task:
    a, b, shift = (
        random.randint(1, 2 ** (2 + 2 * level)),
        random.randint(1, 2 ** (2 + 2 * level)),
        random.randint(1, 4),
    )
    kinds = (
        (f"{a} & {b}", a & b),
        (f"{a} | {b}", a | b),
        (f"{a} ^ {b}", a ^ b),
        (f"{a} << {shift}", a << shift),
        (f"{a} >> {shift}", a >> shift),
    )
    written, value = random.choice(kinds)
    return number(f"In Python, what is {written}?", value, a + b, a & b, a | b)


MAKERS: dict[str, Make] = {
    "table-lookup": _lookup,
    "table-sums": _aggregate,
    "table-filters": _filter,
    "csv-to-json": _csv_to_json,
    "json-paths": _json_path,
    "json-extraction": _json_extraction,
    "json-repair": _json_repair,
    "regular-expressions": _pattern,
    "code-loops": _loop,
    "code-lists": _lists,
    "code-functions": _functions,
    "code-dictionaries": _dictionaries,
    "bit-operations": _bits,
}
