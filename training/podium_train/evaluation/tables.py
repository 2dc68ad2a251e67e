"""Measurements as Markdown: what is exact and what is simulated never stand in one table."""

from collections.abc import Mapping, Sequence
from typing import Any

_SYSTEM_HEAD = (
    "| system | accuracy | seeds | valid | if valid | calls | worker tokens | own | $/1000 | headroom |",
    "|---|---|---|---|---|---|---|---|---|---|",
)
_COMPARISON_HEAD = (
    "| system less reference | difference | 95 % interval | per seed | p (Holm) | McNemar | detectable |",
    "|---|---|---|---|---|---|---|",
)
_BUDGET_HEAD = (
    "| system against reference | on | pairs | worker tokens | own included | money | accuracy difference |",
    "|---|---|---|---|---|---|---|",
)
_SHAPE_HEAD = (
    "| system | steps (share of questions) | worker entropy, bits | share of even use | top worker |",
    "|---|---|---|---|---|",
)
_SHAPES_OF = ("best single", "TF-IDF + logistic", "oracle")
_MICROS = 1_000_000
_TINY_P = 0.0001


def suite_section(suite: Mapping[str, Any]) -> str:
    """Return the Markdown of one suite: systems (exact, then simulated), shapes, comparisons, budgets."""
    exact = [system for system in suite["systems"] if not system["simulated_share"]]
    simulated = [system for system in suite["systems"] if system["simulated_share"]]
    parts = [f"### {suite['title']}", f"{suite['item_count']} items."]
    if exact:
        parts.append(_table(_SYSTEM_HEAD, map(_system_row, exact)))
    if simulated:
        parts += [
            "**Simulated** (some effects of verifying, refining or planning are assumed, not recorded):",
            _table(_SYSTEM_HEAD, map(_system_row, simulated)),
        ]
    for title, head, rows in (
        (
            "Shapes of plans:",
            _SHAPE_HEAD,
            [_shape_row(system) for system in suite["systems"] if _has_shape(suite, system)],
        ),
        ("Differences, paired and clustered by family:", _COMPARISON_HEAD, _comparison_rows(suite)),
        ("Spending on the same items:", _BUDGET_HEAD, [_budget_row(entry) for entry in suite["budgets"]]),
    ):
        if rows:
            parts += [title, _table(head, rows)]
    return "\n\n".join(parts)


def percent(value: float) -> str:
    """Return a share as per cent with one decimal."""
    return f"{100 * value:.1f}"


def points(value: float) -> str:
    """Return a difference of shares in percentage points, signed."""
    return f"{100 * value:+.1f}"


def _table(head: Sequence[str], rows: Any) -> str:
    return "\n".join([*head, *rows])


def _system_row(system: Mapping[str, Any]) -> str:
    seeds = system["seeds"]
    between = (
        f"{percent(seeds['lowest'])} to {percent(seeds['highest'])} ({seeds['count']})"
        if seeds["count"] > 1
        else "-"
    )
    marks = f" ({', '.join(system['marks'])})" if system["marks"] else ""
    captured = system["headroom_captured"]
    return _row(
        f"{system['name']}{marks}",
        percent(system["accuracy"]),
        between,
        percent(system["validity"]),
        percent(system["accuracy_given_valid"]),
        f"{system['calls']:.2f}",
        f"{system['worker_tokens']:.0f}",
        f"{system['conductor_tokens']:.0f}",
        f"{system['cost_usd_micros'] * 1000 / _MICROS:.2f}",
        "-" if captured is None else f"{100 * captured:.0f} %",
    )


def _has_shape(suite: Mapping[str, Any], system: Mapping[str, Any]) -> bool:
    """Return whether a system's shapes tell something: those of Conductors, and some to hold them against."""
    of_conductor = any(system["name"].startswith(name) for name in suite["conductors"])
    is_shown = of_conductor or system["name"] in _SHAPES_OF
    return bool(suite["conductors"]) and is_shown and bool(system["worker_shares"])


def _shape_row(system: Mapping[str, Any]) -> str:
    steps = ", ".join(f"{count}: {percent(share)} %" for count, share in system["steps"].items())
    top = max(system["worker_shares"], key=lambda worker: system["worker_shares"][worker])
    return _row(
        system["name"],
        steps,
        f"{system['worker_entropy']:.2f}",
        f"{100 * system['used_entropy_share']:.0f} %",
        f"{top} {percent(system['worker_shares'][top])} %",
    )


def _comparison_rows(suite: Mapping[str, Any]) -> list[str]:
    return [_comparison_row(entry) for entry in suite["comparisons"]]


def _comparison_row(entry: Mapping[str, Any]) -> str:
    interval = entry["interval"]
    return _row(
        f"{entry['system']} less {entry['reference']}",
        points(interval["mean"]),
        f"{points(interval['low'])} to {points(interval['high'])}",
        ", ".join(map(points, entry["per_seed"])) if len(entry["per_seed"]) > 1 else "-",
        _p(entry["holm_p"]),
        ", ".join(map(_p, entry["mcnemar"])),
        f"{100 * interval['detectable']:.1f}",
    )


def _p(value: float) -> str:
    return f"< {_TINY_P}" if value < _TINY_P else f"{value:.4f}"


def _budget_row(entry: Mapping[str, Any]) -> str:
    difference = entry["difference"]
    return _row(
        f"{entry['system']} : {entry['reference']}",
        entry["subset"],
        str(entry["pair_count"]),
        f"{entry['worker_tokens']:.3f}",
        f"{entry['own_included']:.3f}",
        f"{entry['money']:.3f}",
        f"{points(difference['mean'])} ({points(difference['low'])} to {points(difference['high'])})",
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def grid_section(suites: Sequence[Mapping[str, Any]]) -> str:
    """Return the Markdown of suites that differ in one number: accuracy per system and suite, then gains."""
    labels = [suite["title"].rpartition(": ")[2] for suite in suites]
    title = suites[0]["title"].rpartition(": ")[0]
    head = (_row("accuracy", *labels), f"|---|{'---|' * len(suites)}")
    names = list(dict.fromkeys(system["name"] for suite in suites for system in suite["systems"]))
    counts = f"{' / '.join(str(suite['item_count']) for suite in suites)} items."
    parts = [f"By level, {counts}"] if suites[0]["is_part"] else [f"### {title}", counts]
    for is_simulated in (False, True):
        rows = [row for name in names if (row := _grid_row(suites, name, is_simulated=is_simulated))]
        if rows:
            parts += ["**Simulated:**"] if is_simulated else []
            parts.append(_table(head, rows))
    gains = _gain_rows(suites)
    if gains:
        parts.append(_table((_row("difference (95 % interval)", *labels), head[1]), gains))
    return "\n\n".join(parts)


def _grid_row(suites: Sequence[Mapping[str, Any]], name: str, *, is_simulated: bool) -> str | None:
    cells = [_system_named(suite, name) for suite in suites]
    if any(bool(system and system["simulated_share"]) for system in cells) is not is_simulated:
        return None
    return _row(name, *("-" if system is None else percent(system["accuracy"]) for system in cells))


def _system_named(suite: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    return next((system for system in suite["systems"] if system["name"] == name), None)


def _gain_rows(suites: Sequence[Mapping[str, Any]]) -> list[str]:
    pairs = list(
        dict.fromkeys(
            (entry["system"], entry["reference"]) for suite in suites for entry in suite["comparisons"]
        )
    )
    return [_row(f"{pair[0]} less {pair[1]}", *(_gain(suite, pair) for suite in suites)) for pair in pairs]


def _gain(suite: Mapping[str, Any], pair: tuple[str, str]) -> str:
    for entry in suite["comparisons"]:
        if (entry["system"], entry["reference"]) == pair:
            interval = entry["interval"]
            return f"{points(interval['mean'])} ({points(interval['low'])} to {points(interval['high'])})"
    return "-"
