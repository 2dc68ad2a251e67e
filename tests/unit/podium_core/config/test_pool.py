"""pool.yaml: exact prices, digests that change with what they pin, strict fields."""

from pathlib import Path

import pytest
from yarl import URL

from podium_core.config.pool import KeyReference, PoolFile, load_pool
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Card, Health, Skill, Worker
from podium_core.domain.usage import Price

WORKER = """\
  - id: {id}
    provider: openai-compatible
    model: gpt-x
    base_url: https://api.example.com/v1/
    key: {{env: EXAMPLE_KEY}}
    region: eu
    price: {{input_usd_per_mtok: 0.15, output_usd_per_mtok: "0.60"}}
    limits: {{max_concurrency: 8, timeout_s: 30, context_tokens: 128000, max_output_tokens: 4096}}
    modalities: [text, image]
    features: [tools, json_schema]
    card:
      output_tokens_per_second: 90
      skills:
        - {{name: arithmetic, accuracy: 0.98, n: 200, measured_on: 2026-11-30}}
"""
MINIMAL = "workers:\n - {id: a, provider: openai-compatible, model: m, base_url: 'http://127.0.0.1:1/v1'}\n"


def _load(tmp_path: Path, text: str) -> PoolFile:
    path = tmp_path / "pool.yaml"
    path.write_text(text)
    return load_pool(path)


def _full(*ids: str) -> str:
    return "workers:\n" + "".join(WORKER.format(id=worker_id) for worker_id in ids)


def test_a_whole_worker_is_read_exactly(tmp_path: Path) -> None:
    [entry] = _load(tmp_path, _full("w1")).entries
    assert entry.worker == Worker(
        "w1",
        "openai-compatible",
        "gpt-x",
        Card(
            (Skill("arithmetic", 980_000, 200, "2026-11-30"),),
            context_tokens=128_000,
            max_output_tokens=4_096,
            output_tokens_per_second=90,
            modalities=frozenset({"text", "image"}),
            features=frozenset({"tools", "json_schema"}),
        ),
        Price(150_000, 600_000),
        "eu",
        Health.UP,
        is_demo=False,
        max_concurrency=8,
    )
    assert (entry.base_url, entry.timeout_s) == ("https://api.example.com/v1", 30.0)
    assert (entry.keys, entry.provider) == ({"key": KeyReference(env="EXAMPLE_KEY")}, "openai-compatible")


def test_what_is_left_out_has_bounded_defaults(tmp_path: Path) -> None:
    [entry] = _load(tmp_path, MINIMAL).entries
    assert (entry.keys, entry.worker.price) == ({}, None)
    assert entry.timeout_s > 0
    assert entry.worker.max_concurrency > 0
    assert entry.worker.card.max_output_tokens > 0
    assert entry.worker.card.modalities == frozenset({"text"})


def test_a_key_file_counts_from_the_pool_file(tmp_path: Path) -> None:
    relative = MINIMAL.replace("model: m", "model: m, key: {file: keys/a}")
    absolute = MINIMAL.replace("model: m", "model: m, key: {file: /run/secrets/a}")
    assert _load(tmp_path, relative).entries[0].keys["key"] == KeyReference(file=tmp_path / "keys/a")
    assert _load(tmp_path, absolute).entries[0].keys["key"] == KeyReference(file=Path("/run/secrets/a"))


def test_the_pool_keeps_the_files_order(tmp_path: Path) -> None:
    assert [w.worker_id for w in _load(tmp_path, _full("b", "a")).pool.workers] == ["b", "a"]


@pytest.mark.parametrize(
    ("old", "new", "changes_pool", "changes_price"),
    [
        ("model: gpt-x", "model: gpt-y", True, False),
        ("api.example.com", "api.example.org", True, False),
        ("region: eu", "region: us", True, False),
        ("accuracy: 0.98", "accuracy: 0.97", True, False),
        ("max_output_tokens: 4096", "max_output_tokens: 4097", True, False),
        ("features: [tools, json_schema]", "features: [tools]", True, False),
        ("input_usd_per_mtok: 0.15", "input_usd_per_mtok: 0.16", False, True),
        ("price: {", "price: {cached_input_usd_per_mtok: 0, ", False, True),
        ("env: EXAMPLE_KEY", "file: key", False, False),
        ("input_usd_per_mtok: 0.15", 'input_usd_per_mtok: "0.150"', False, False),
        ("region: eu", "region: eu # comment", False, False),
    ],
)
def test_digests_pin_what_a_plan_and_a_cost_depend_on(
    tmp_path: Path, old: str, new: str, changes_pool: bool, changes_price: bool
) -> None:
    before = _load(tmp_path, _full("a")).pool
    after = _load(tmp_path, _full("a").replace(old, new)).pool
    assert (before.pool_digest != after.pool_digest) is changes_pool
    assert (before.price_digest != after.price_digest) is changes_price


def test_cached_input_may_have_its_own_price_and_zero_is_one(tmp_path: Path) -> None:
    for text, cached in (("0.015", 15_000), ("0", 0)):
        priced = _full("a").replace("price: {", f"price: {{cached_input_usd_per_mtok: {text}, ")
        assert _load(tmp_path, priced).pool.workers[0].price == Price(150_000, 600_000, cached)


def test_digests_do_not_depend_on_the_order_of_workers(tmp_path: Path) -> None:
    first, second = _load(tmp_path, _full("a", "b")).pool, _load(tmp_path, _full("b", "a")).pool
    assert (first.pool_digest, first.price_digest) == (second.pool_digest, second.price_digest)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: w1", "id: w/1", "line 2: workers[0].id: must be 1 to 64 letters"),
        ("provider: openai-compatible", "provider: magic", "line 3: workers[0].provider: "),
        ("https://api.example.com/v1/", "ftp://x", "line 5: workers[0].base_url: must look like https://"),
        ("https://api.example.com/v1/", "https://user:pw@x/", "must look like https://"),
        ("https://api.example.com/v1/", "https://x:99999/", "line 5: workers[0].base_url: "),
        ("https://api.example.com/v1/", "https://a\\b/v1", "line 5: workers[0].base_url: must look like"),
        (
            "https://api.example.com/v1/",
            "https://a\u200b.com/v1",
            "line 5: workers[0].base_url: must look like",
        ),
        ("https://api.example.com/v1/", "https://xn--/v1", "line 5: workers[0].base_url: must look like"),
        ("https://api.example.com/v1/", "'https://x/v1 beta'", "line 5: workers[0].base_url: must look like"),
        ("env: EXAMPLE_KEY", 'file: "a\\0b"', "line 6: workers[0].key.file: "),
        ("env: EXAMPLE_KEY", "value: sk-live-123", "line 6: workers[0].key.value: there is no such field"),
        ("env: EXAMPLE_KEY", "env: A, file: b", "line 6: workers[0].key: give either env"),
        ("{env: EXAMPLE_KEY}", "{}", "line 6: workers[0].key: give either env"),
        ("input_usd_per_mtok: 0.15", "input_usd_per_mtok: 0.0000001", "at most six decimals"),
        ("price: {", "price: {cached_input_usd_per_mtok: 0.16, ", "may not be above input_usd_per_mtok"),
        ("price: {", "price: {cache_write_input_usd_per_mtok: 0.14, ", "may not be below input_usd_per_mtok"),
        (', output_usd_per_mtok: "0.60"', "", "workers[0].price.output_usd_per_mtok: this field is required"),
        ("max_concurrency: 8", "max_concurrency: 0", "line 9: workers[0].limits.max_concurrency: "),
        ("timeout_s: 30", "hedge_after_s: soon", "line 9: workers[0].limits.hedge_after_s: "),
        (
            "timeout_s: 30",
            "hedge_after_s: 8, hedge_learned: true",
            "line 9: workers[0].limits: give either hedge_after_s or hedge_learned",
        ),
        ("timeout_s: 30", "timeout_s: inf", "line 9: workers[0].limits.timeout_s: "),
        ("[text, image]", "[text, smell]", "line 10: workers[0].modalities[1]: "),
        ("[tools, json_schema]", "[tool]", "line 11: workers[0].features[0]: "),
        ("accuracy: 0.98", "accuracy: 98", "line 15: workers[0].card.skills[0].accuracy: must be a share"),
        ("2026-11-30", "yesterday", "line 15: workers[0].card.skills[0].measured_on: "),
    ],
)
def test_every_mistake_is_named_by_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = _full("w1")
    assert old in text
    with pytest.raises(PodiumError) as failed:
        _load(tmp_path, text.replace(old, new))
    assert failed.value.code is Code.INVALID_REQUEST
    assert said in failed.value.message
    assert "sk-live-123" not in failed.value.message


def test_two_workers_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match=r"line 16: workers\[1\]\.id: there are two workers 'a'"):
        _load(tmp_path, _full("a", "a"))


@pytest.mark.parametrize(
    "url", ["http://my_model:8000/v1", "https://xn--bcher-kva.example", "http://[::1]:1/v1"]
)
def test_every_address_that_loads_can_be_called(tmp_path: Path, url: str) -> None:
    [entry] = _load(tmp_path, MINIMAL.replace("http://127.0.0.1:1/v1", url)).entries
    assert URL(f"{entry.base_url}/chat/completions").raw_host


def test_no_more_workers_than_a_record_has_verdicts_for(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="at most 400"):
        _load(tmp_path, _full(*(f"w{number}" for number in range(401))))


@pytest.mark.parametrize(
    ("written", "delay_s", "is_learned"),
    [("hedge_after_s: 8", 8.0, False), ("hedge_learned: true", None, True)],
)
def test_a_hedge_waits_as_long_as_is_written_or_learned(
    tmp_path: Path, written: str, delay_s: float | None, is_learned: bool
) -> None:
    [worker] = _load(tmp_path, _full("a").replace("timeout_s: 30", written)).pool.workers
    assert (worker.hedge_after_s, worker.hedge_is_learned) == (delay_s, is_learned)
