"""What each kind of provider needs in pool.yaml, and what it is told when that is missing."""

from pathlib import Path

import pytest

from podium_core.config.pool import load_pool
from podium_core.domain.errors import PodiumError

VERTEX = "provider: vertex, model: gemini-2.5-flash, project: our-project"
KEY = "key: {file: token}"


def _url(tmp_path: Path, fields: str) -> str:
    file = tmp_path / "pool.yaml"
    file.write_text(f"workers:\n  - {{id: w, {fields}}}\n")
    return load_pool(file).entries[0].base_url


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("europe-west4", "https://europe-west4-aiplatform.googleapis.com"),
        ("global", "https://aiplatform.googleapis.com"),
    ],
)
def test_vertex_is_reached_at_its_project_and_location(tmp_path: Path, region: str, host: str) -> None:
    place = f"/v1/projects/our-project/locations/{region}/publishers/google"
    assert _url(tmp_path, f"{VERTEX}, region: {region}, {KEY}") == host + place
    private = "https://vertex.internal.example"
    url = _url(tmp_path, f"{VERTEX}, region: {region}, base_url: '{private}/', {KEY}")
    assert url == private + place


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (f"{VERTEX}, {KEY}", "provider vertex needs project and region"),
        (
            f"{VERTEX.replace(', project: our-project', '')}, region: global, {KEY}",
            "needs project and region",
        ),
        (f"{VERTEX}, region: global", "key is required for provider vertex"),
        (f"{VERTEX}, region: global, {KEY}, features: [embeddings]", "vertex makes no embeddings"),
        (f"provider: gemini, model: m, project: p, {KEY}", "project is for provider vertex only"),
        (
            f"provider: litellm, model: mistral/m, {KEY}, features: [embeddings]",
            "makes no embeddings with mistral: use provider openai-compatible",
        ),
    ],
)
def test_what_is_missing_or_out_of_place_is_named(tmp_path: Path, fields: str, said: str) -> None:
    with pytest.raises(PodiumError) as refused:
        _url(tmp_path, fields)
    assert said in refused.value.message
