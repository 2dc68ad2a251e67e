"""Keys in the environment become workers: of each provider's own kind, priced where the price is known."""

import stat
from pathlib import Path

import pytest

from podium_cli.home import Home
from podium_cli.hosted import PROVIDERS, VARIABLES, offers_from_keys, what_is_missing
from podium_cli.known_models import KNOWN_MODELS
from podium_cli.providers import add_to_pool, save_keys
from podium_core.config.pool import PoolFile, load_pool

SECRET = "sk-secret-canary"
ALL = {variable: SECRET for provider in PROVIDERS for variable in provider.variables}
AZURE = {
    "AZURE_OPENAI_API_KEY": SECRET,
    "AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/",
    "AZURE_OPENAI_DEPLOYMENT": "our-gpt",
    "OPENAI_API_VERSION": "2024-10-21",
}
AWS = {"AWS_ACCESS_KEY_ID": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-central-1"}


def pool_of(environment: dict[str, str], directory: Path) -> PoolFile:
    text, _ = add_to_pool("workers:\n", offers_from_keys(environment), frozenset())
    assert SECRET not in text
    file = directory / "pool.yaml"
    file.write_text(text)
    return load_pool(file)


def test_no_key_no_offer() -> None:
    assert offers_from_keys({}) == []
    assert what_is_missing({}) == []


def test_every_provider_becomes_a_worker_that_the_pool_accepts(tmp_path: Path) -> None:
    pool = pool_of({**ALL, **AZURE, **AWS}, tmp_path)
    kinds = {entry.worker.worker_id: entry.provider for entry in pool.entries}
    assert kinds["openai"] == "openai"
    assert (kinds["anthropic"], kinds["gemini"]) == ("anthropic", "gemini")
    assert (kinds["azure"], kinds["bedrock"]) == ("azure", "bedrock")
    assert kinds["openrouter"] == "openai-compatible"
    assert len(kinds) == len(PROVIDERS) + 2
    assert {*ALL, *AZURE, *AWS} <= VARIABLES


def test_known_models_are_priced_and_others_are_not(tmp_path: Path) -> None:
    workers = {
        entry.worker.worker_id: entry.worker for entry in pool_of({**ALL, **AZURE, **AWS}, tmp_path).entries
    }
    for worker in workers.values():
        assert (worker.price is not None) == (worker.provider_model in KNOWN_MODELS)
    price = workers["anthropic"].price
    assert price is not None
    assert price.cost_usd_micros(1_000_000, 1_000_000) == 18_000_000
    assert price.cost_usd_micros(1_000_000, 1_000_000, 1_000_000) == 15_300_000
    assert price.cost_usd_micros(1_000_000, 0, 0, 1_000_000) == 3_750_000
    assert workers["azure"].price is None, "a deployment's name tells no price"


def test_azure_and_bedrock_need_more_than_a_key(tmp_path: Path) -> None:
    (told,) = what_is_missing({"AZURE_OPENAI_API_KEY": SECRET})
    assert "AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_DEPLOYMENT" in told
    (told,) = what_is_missing({**AWS, "AWS_REGION": ""})
    assert "AWS_REGION" in told
    assert offers_from_keys({**AWS, "AWS_SECRET_ACCESS_KEY": ""}) == []
    assert what_is_missing({**AZURE, **AWS}) == []
    (entry,) = pool_of(AZURE, tmp_path).entries
    assert (entry.base_url, entry.api_version) == ("https://acme.openai.azure.com", "2024-10-21")


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        (AWS, {"aws_access_key_id", "aws_secret_access_key"}),
        (
            {**AWS, "AWS_SESSION_TOKEN": SECRET},
            {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"},
        ),
        ({"AWS_BEARER_TOKEN_BEDROCK": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}, {"key"}),
    ],
)
def test_bedrock_takes_either_kind_of_credentials(
    environment: dict[str, str], names: set[str], tmp_path: Path
) -> None:
    (entry,) = pool_of(environment, tmp_path).entries
    assert entry.keys.keys() == names
    assert entry.worker.provider_model.startswith(entry.worker.region[:2])


def test_keys_go_into_files_of_their_owner(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    save_keys(home, offers_from_keys(AWS), AWS)
    for entry in pool_of(AWS, tmp_path).entries:
        for key in entry.keys.values():
            assert key.file is not None
            assert key.file.read_text() == f"{SECRET}\n"
            assert stat.S_IMODE(key.file.stat().st_mode) == 0o600
