"""What was promised before training, beside what was measured: a bar holds, does not, or was not measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium_train.evaluation.budget import ALL_ITEMS
from podium_train.evaluation.tables import percent, points

Suites = Mapping[str, Mapping[str, Any]]
_LEAST_SEEDS = 3
_NEAR_TEXT_ROUTER = -0.005
_WORKER_TOKENS, _OWN_INCLUDED = 1 / 6, 1 / 3
_VALID = 0.99
_COMPOSITE, _ALONE = 0.90, 0.40
_STEPS = (2.0, 4.0)
_ONE_STEP = 0.90
COMPOSITES, ONE_STEPS = "demo-composite", "demo-one-step"
"""Names of the suites of demo tasks."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One bar. `holds` None: not measured, or on too few training seeds."""

    bar: str
    measured: str
    holds: bool | None


def findings(suites: Suites) -> list[Finding]:
    """Return every bar's finding. Suites are found by name; the last Conductor that each names is judged."""
    return [
        *_exact_bars(suites),
        _tokens(suites),
        _valid(suites),
        *_composite_bars(suites),
        _shuffled(suites),
    ]


def bars_table(suites: Suites) -> str:
    """Return the findings as Markdown."""
    words = {True: "holds", False: "**does not hold**", None: "not shown"}
    rows = [
        f"| {found.bar} | {found.measured or 'not measured'} | {words[found.holds]} |"
        for found in findings(suites)
    ]
    return "\n".join(["| bar | measured | |", "|---|---|---|", *rows])


def _exact_bars(suites: Suites) -> Iterable[Finding]:
    above: Callable[[Mapping[str, Any]], bool] = lambda interval: interval["low"] > 0  # noqa: E731
    near: Callable[[Mapping[str, Any]], bool] = lambda interval: interval["mean"] >= _NEAR_TEXT_ROUTER  # noqa: E731
    for suite, where, reference, holds in (
        ("rg-clean", "held-out items, pools of 3 to 5", "best single", above),
        ("rg-known", "families and workers known", "TF-IDF + logistic", near),
        ("rg-unseen-workers", "unseen workers", "best single", above),
        ("rg-unseen-workers", "unseen workers", "TF-IDF + logistic", above),
        ("rg-unseen-families", "unseen families", "best single", above),
        ("rg-unseen-families", "unseen families", "TF-IDF + logistic", above),
    ):
        margin = "not below by more than 0.5 points" if holds is near else "interval above zero"
        yield _difference(suites, suite, f"{where}: Conductor less {reference}, {margin}", reference, holds)


def _difference(
    suites: Suites,
    suite: str,
    bar: str,
    reference: str,
    holds: Callable[[Mapping[str, Any]], bool],
) -> Finding:
    found = _comparison(suites, suite, reference)
    if found is None:
        return Finding(bar, "", None)
    interval, seeds = found["interval"], len(found["per_seed"])
    between = f"{points(interval['low'])} to {points(interval['high'])}"
    told = f"{points(interval['mean'])} ({between}), seeds: {seeds}"
    if seeds < _LEAST_SEEDS and holds(interval):
        return Finding(bar, f"{told}, too few to tell", None)
    return Finding(bar, told, holds(interval))


def _tokens(suites: Suites) -> Finding:
    bar = "all held-out items: worker tokens at most 1/6 of MoA's, own included 1/3, accuracy not below"
    name = _judged(suites, "rg-all")
    for entry in suites.get("rg-all", {}).get("budgets", ()):
        if entry["system"] == name and entry["subset"] == ALL_ITEMS:
            difference = entry["difference"]["mean"]
            told = f"{entry['worker_tokens']:.3f}, {entry['own_included']:.3f}, {points(difference)}"
            holds = entry["worker_tokens"] <= _WORKER_TOKENS and entry["own_included"] <= _OWN_INCLUDED
            return Finding(bar, told, holds and difference >= 0)
    return Finding(bar, "", None)


def _valid(suites: Suites) -> Finding:
    system = _system(suites, "rg-clean", _judged(suites, "rg-clean"))
    bar = "plans are valid (at least 99 %)"
    if system is None:
        return Finding(bar, "", None)
    return Finding(bar, f"{percent(system['validity'])} %", system["validity"] >= _VALID)


def _composite_bars(suites: Suites) -> Iterable[Finding]:
    bar = (
        "composite tasks, held-out templates: accuracy at least 90 %, best single at most 40 %, 2 to 4 steps"
    )
    ours = _system(suites, COMPOSITES, _judged(suites, COMPOSITES))
    alone = _system(suites, COMPOSITES, "best single")
    if ours is None or alone is None:
        yield Finding(bar, "", None)
    else:
        told = f"{percent(ours['accuracy'])} %, {percent(alone['accuracy'])} %, {ours['calls']:.2f} steps"
        low, high = _STEPS
        holds = (
            ours["accuracy"] >= _COMPOSITE and alone["accuracy"] <= _ALONE and low <= ours["calls"] <= high
        )
        yield Finding(bar, told, holds)
    one = _system(suites, ONE_STEPS, _judged(suites, ONE_STEPS))
    bar = "one-step tasks answered in one step (at least 90 %)"
    if one is None:
        yield Finding(bar, "", None)
    else:
        yield Finding(bar, f"{percent(one['one_call_share'])} %", one["one_call_share"] >= _ONE_STEP)
    previous = _before(suites, COMPOSITES)
    bar = "composite tasks: reinforcement less supervised only, interval above zero"
    yield _difference(suites, COMPOSITES, bar, previous or "", lambda interval: interval["low"] > 0)


def _shuffled(suites: Suites) -> Finding:
    bar = "with shuffled cards the gain on unseen workers vanishes"
    suite = "rg-unseen-workers"
    name = _judged(suites, suite)
    found = _comparison(suites, suite, "best single", system=f"{name}, shuffled cards")
    if found is None:
        return Finding(bar, "", None)
    interval = found["interval"]
    told = f"{points(interval['mean'])} ({points(interval['low'])} to {points(interval['high'])})"
    return Finding(bar, told, interval["low"] <= 0)


def _judged(suites: Suites, suite: str) -> str | None:
    named: Sequence[str] = suites.get(suite, {}).get("conductors", ())
    plain = [name for name in named if not name.endswith("rounds")]
    return plain[-1] if plain else None


def _before(suites: Suites, suite: str) -> str | None:
    named = [name for name in suites.get(suite, {}).get("conductors", ()) if not name.endswith("rounds")]
    return named[-2] if len(named) > 1 else None


def _comparison(
    suites: Suites, suite: str, reference: str, *, system: str | None = None
) -> Mapping[str, Any] | None:
    name = system or _judged(suites, suite)
    entries: Sequence[Mapping[str, Any]] = suites.get(suite, {}).get("comparisons", ())
    return next((e for e in entries if (e["system"], e["reference"]) == (name, reference)), None)


def _system(suites: Suites, suite: str, name: str | None) -> Mapping[str, Any] | None:
    systems: Sequence[Mapping[str, Any]] = suites.get(suite, {}).get("systems", ())
    return next((system for system in systems if system["name"] == name), None)
