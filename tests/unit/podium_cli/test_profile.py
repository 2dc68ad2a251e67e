import json
import tomllib
from typing import Any

import pytest

from podium_cli.profile import KEY_VARIABLE, PROFILES, Profile

MODELS: tuple[dict[str, Any], ...] = (
    {"id": "podium", "context_window": 111_616, "max_output_tokens": 8_192, "features": ["tools"]},
    {"id": "podium-fast", "context_window": 128_000, "max_output_tokens": 8_192, "features": []},
)
PROFILE = Profile("http://127.0.0.1:8080", f'export {KEY_VARIABLE}="$(cat /home/me/key)"', MODELS)


@pytest.mark.parametrize("client", sorted(PROFILES))
def test_every_profile_names_the_gateway_and_where_the_key_is(client: str) -> None:
    shown = PROFILES[client](PROFILE)
    assert "http://127.0.0.1:8080" in shown
    assert KEY_VARIABLE in shown


def test_codex_waits_long_and_does_not_pay_twice() -> None:
    config = tomllib.loads(PROFILES["codex"](PROFILE))
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:8080/v1"
    assert (provider["wire_api"], provider["env_key"]) == ("responses", KEY_VARIABLE)
    assert provider["stream_idle_timeout_ms"] == 7_200_000
    assert provider["stream_max_retries"] == 0
    assert (config["model_context_window"], config["web_search"]) == (111_616, "disabled")


def test_opencode_learns_the_windows_it_compacts_by() -> None:
    config = json.loads(PROFILES["opencode"](PROFILE))
    provider = config["provider"]["podium"]
    assert provider["models"]["podium"]["limit"] == {"context": 111_616, "output": 8_192}
    assert provider["models"]["podium"]["tool_call"] is True
    assert provider["options"]["baseURL"] == "http://127.0.0.1:8080/v1"
    assert config["small_model"] == "podium/podium-fast"


def test_the_lines_of_python_are_python() -> None:
    compile(PROFILES["langchain"](PROFILE), "profile", "exec")
