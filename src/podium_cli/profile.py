"""`podium profile`: the configuration that points a client at this gateway, ready to be copied.

No profile holds the key: each names the variable that does.
"""

import argparse
import asyncio
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from podium_cli.access import gateway_client
from podium_cli.home import Home
from podium_cli.settings import CliSettings

KEY_VARIABLE = "PODIUM_API_KEY"
_PATIENCE_MS = 7_200_000
"""A plan may take minutes; clients that wait less give up work that is paid for."""
_TIERS = ("podium", "podium-fast", "podium-max")


@dataclass(frozen=True, slots=True)
class Profile:
    """What every client is told: the gateway, how its key gets into the variable, and the tiers' windows."""

    url: str
    key_command: str
    models: tuple[Mapping[str, Any], ...]

    @property
    def v1(self) -> str:
        """The base address of OpenAI's protocols."""
        return f"{self.url}/v1"


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Print the profile of one client; raise CliError when the gateway cannot be asked for its models."""
    client = gateway_client(arguments, home, settings)
    models = asyncio.run(client.models())
    shown = Profile(client.url, _key_command(arguments, home, settings), _tiers(models))
    console.print(PROFILES[arguments.client](shown), soft_wrap=True)
    return 0


def _key_command(arguments: argparse.Namespace, home: Home, settings: CliSettings) -> str:
    if arguments.url or settings.url:
        return f"export {KEY_VARIABLE}=..."
    return f'export {KEY_VARIABLE}="$(cat {shlex.quote(str(home.api_key_file))})"'


def _tiers(models: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple(model for model in models if model.get("id") in _TIERS)


def codex(profile: Profile) -> str:
    """Return what goes into `~/.codex/config.toml`."""
    window = next((model.get("context_window") for model in profile.models if model["id"] == "podium"), None)
    window_line = [f"model_context_window = {window}"] if window else []
    return "\n".join(
        [
            f"# ~/.codex/config.toml; before starting codex: {profile.key_command}",
            'model = "podium"',
            'model_provider = "podium"',
            'model_reasoning_summary = "auto"  # shows the steps of the plan while they run',
            *window_line,
            'web_search = "disabled"  # Podium runs no hosted tools',
            "",
            "[model_providers.podium]",
            'name = "Podium"',
            f"base_url = {json.dumps(profile.v1)}",
            f'env_key = "{KEY_VARIABLE}"',
            'wire_api = "responses"',
            f"stream_idle_timeout_ms = {_PATIENCE_MS}",
            "stream_max_retries = 0  # another try is another run, paid for again",
        ]
    )


def opencode(profile: Profile) -> str:
    """Return `opencode.json`."""
    models = {
        model["id"]: {
            "name": f"Podium: {model['id']}",
            "tool_call": "tools" in model.get("features", ()),
            "limit": {
                "context": model.get("context_window") or 0,
                "output": model.get("max_output_tokens") or 0,
            },
        }
        for model in profile.models
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Podium",
        "options": {
            "baseURL": profile.v1,
            "apiKey": f"{{env:{KEY_VARIABLE}}}",
            "timeout": _PATIENCE_MS,
        },
        "models": models,
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "model": "podium/podium",
        "small_model": "podium/podium-fast",
        "provider": {"podium": provider},
    }
    return json.dumps(config, indent=2)


def openai(profile: Profile) -> str:
    """Return the variables that OpenAI's SDKs read."""
    return "\n".join(
        [
            profile.key_command,
            f"export OPENAI_BASE_URL={shlex.quote(profile.v1)}",
            f'export OPENAI_API_KEY="${KEY_VARIABLE}"',
            "# models: podium, podium-fast, podium-max; client.models.list() tells them all",
        ]
    )


def anthropic(profile: Profile) -> str:
    """Return the variables that Anthropic's SDKs and Claude Code read."""
    return "\n".join(
        [
            profile.key_command,
            f"export ANTHROPIC_BASE_URL={shlex.quote(profile.url)}",
            f'export ANTHROPIC_API_KEY="${KEY_VARIABLE}"',
            "export ANTHROPIC_MODEL=podium",
            "export ANTHROPIC_SMALL_FAST_MODEL=podium-fast",
            f"export API_TIMEOUT_MS={_PATIENCE_MS}",
        ]
    )


def langchain(profile: Profile) -> str:
    """Return lines of Python."""
    return "\n".join(
        [
            f"# pip install langchain-openai; before: {profile.key_command}",
            "import os",
            "from langchain_openai import ChatOpenAI",
            "",
            "model = ChatOpenAI(",
            '    model="podium",',
            f"    base_url={json.dumps(profile.v1)},",
            f'    api_key=os.environ["{KEY_VARIABLE}"],',
            "    max_retries=0,  # another try is another run, paid for again",
            ")",
        ]
    )


PROFILES: Mapping[str, Callable[[Profile], str]] = {
    "anthropic": anthropic,
    "codex": codex,
    "langchain": langchain,
    "openai": openai,
    "opencode": opencode,
}
