"""The table of telemetry names is one vocabulary without twins."""

import ast
import dataclasses
import itertools
import re
from pathlib import Path

from podium_core.domain.usage import Usage, UsageSource
from podium_core.runtime import attributes

ROOT = Path(__file__).parents[4]


def _names() -> dict[str, str]:
    return {
        name: value
        for name, value in vars(attributes).items()
        if name.isupper() and isinstance(value, str) and "." in value
    }


def test_every_name_is_ours_or_the_conventions() -> None:
    for name in _names().values():
        assert name.startswith(("gen_ai.", "podium.", "error.", "server.", "http."))


def test_no_two_attributes_or_metrics_share_a_name() -> None:
    assert len(set(_names().values())) == len(_names())


def test_every_name_of_ours_says_what_it_means() -> None:
    body = ast.parse(Path(attributes.__file__).read_text()).body
    explained = {
        first.target.id
        for first, second in itertools.pairwise(body)
        if isinstance(first, ast.AnnAssign)
        and isinstance(first.target, ast.Name)
        and isinstance(second, ast.Expr)
    }
    ours = {name for name, value in _names().items() if value.startswith("podium.")}
    assert ours - explained == set()


def test_every_name_is_emitted_by_some_service() -> None:
    sources = [path.read_text() for top in ("src", "services") for path in (ROOT / top).rglob("*.py")]
    used = {word for text in sources for word in re.findall(r"\b(?:names|attributes)\.([A-Z_]+)", text)}
    of_usage = {value for pair in attributes.USAGE_FIELDS.values() for value in pair} | {
        attributes.USAGE_SOURCE
    }
    unused = {name for name, value in _names().items() if value not in of_usage} - used
    assert unused == set(), "what nobody emits is no documentation"


def test_every_count_of_usage_has_its_attribute_and_counter() -> None:
    counts = {field.name for field in dataclasses.fields(Usage)} - {"source"}
    assert set(attributes.USAGE_FIELDS) == counts


def test_usage_shows_subsets_only_when_there_are_some() -> None:
    usage = Usage(10, 5, cached_input_tokens=4, source=UsageSource.ESTIMATED)
    assert attributes.usage_attributes(usage) == {
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "podium.usage.source": "estimated",
    }


def test_duration_buckets_are_the_conventions() -> None:
    assert attributes.DURATION_BUCKETS_S[0] == 0.01
    assert attributes.DURATION_BUCKETS_S[-1] == 81.92
