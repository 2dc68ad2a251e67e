"""The table of telemetry names is one vocabulary without twins."""

import dataclasses

from podium_core.domain.usage import Usage, UsageSource
from podium_core.runtime import attributes


def _names(prefix: str = "") -> list[str]:
    return [
        value
        for name, value in vars(attributes).items()
        if name.isupper() and isinstance(value, str) and name.startswith(prefix)
    ]


def test_every_name_is_ours_or_the_conventions() -> None:
    for name in _names():
        known = name.startswith(("gen_ai.", "podium.", "error.", "server.", "http."))
        assert known or name in {"invoke_workflow", "policy", "plan", "invoke_agent", "chat", "embeddings"}


def test_no_two_attributes_or_metrics_share_a_name() -> None:
    dotted = [name for name in _names() if "." in name]
    assert len(dotted) == len(set(dotted))


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
