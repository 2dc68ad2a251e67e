"""Which installation a command speaks to: options win over the environment, the environment over the home."""

import argparse

from podium_cli.audit_client import AuditClient
from podium_cli.failures import CliError
from podium_cli.gateway_client import GatewayClient
from podium_cli.home import Home
from podium_cli.settings import CliSettings


def gateway_client(arguments: argparse.Namespace, home: Home, settings: CliSettings) -> GatewayClient:
    """Return a client for the gateway."""
    url, key = _given(arguments, settings, arguments.url or settings.url, "--url")
    return GatewayClient(url or str(home.read_endpoints()["gateway"]), key or home.read_api_key())


def audit_client(arguments: argparse.Namespace, home: Home, settings: CliSettings) -> AuditClient:
    """Return a client for audit."""
    url, key = _given(arguments, settings, arguments.audit_url or settings.audit_url, "--audit-url")
    return AuditClient(url or str(home.read_endpoints()["audit"]), key or home.read_api_key())


def _given(arguments: argparse.Namespace, settings: CliSettings, url: str, option: str) -> tuple[str, str]:
    key = str(arguments.api_key or settings.api_key.get_secret_value())
    if url and not url.startswith(("http://", "https://")):
        raise CliError(f"{url} is no address", hint="an address looks like http://127.0.0.1:8080")
    if url and not key:
        raise CliError(
            f"{option} names another installation, whose API key is missing",
            hint="give --api-key, or set PODIUM_API_KEY",
        )
    return url, key
