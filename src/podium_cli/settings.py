"""What the command reads from its environment. Nothing else in this package looks at it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

_PASSED_ON = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHASHSEED",
    "PYTHONPATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
)


class CliSettings(BaseSettings):
    """Defaults of the command's options."""

    model_config = SettingsConfigDict(
        env_prefix="PODIUM_", extra="ignore", frozen=True, use_attribute_docstrings=True
    )

    home: Path = Path("~/.podium")
    """Where `podium up` keeps its files. `--home` wins over it."""
    url: str = ""
    """Address of a gateway, such as https://podium.example.com. `--url` wins over it."""
    audit_url: str = ""
    """Address of that installation's audit service. `--audit-url` wins over it."""
    api_key: SecretStr = SecretStr("")
    """API key for them. `--api-key` wins over it."""


def service_environment(own: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a service: what any program needs, its own settings, named secrets.

    An allow-list, because only the router may hold provider keys.
    """
    names = (*_PASSED_ON, *secrets)
    inherited = {name: os.environ[name] for name in names if name in os.environ}  # noqa: TID251 - settings
    return {**inherited, **own}


def variables_of(prefix: str) -> list[str]:
    """Return the names of the variables that start with `prefix`."""
    return [name for name in os.environ if name.startswith(prefix)]  # noqa: TID251 - settings


def variables_set(names: Iterable[str]) -> dict[str, str]:
    """Return those of `names` that the environment sets to something, with what they are set to."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}  # noqa: TID251 - settings
