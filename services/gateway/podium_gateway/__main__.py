"""Starts the gateway: settings, logs, telemetry, service."""

import sys

from podium_core.domain.clock import SystemClock
from podium_core.domain.ids import RandomIds
from podium_core.runtime.logs import configure_logging
from podium_core.runtime.service import run_service, until_stopped
from podium_core.runtime.settings_base import load_settings
from podium_core.runtime.telemetry import configure_telemetry
from podium_gateway.service import running_gateway
from podium_gateway.settings import GatewaySettings

_SERVICE = "gateway"
_SWITCH_INTERVAL_S = 0.0005
"""How long the event loop waits for the thread that works on large bodies. It waits at every event, and
Python's usual 5 ms at each of them would add up before a health check is answered."""


def main() -> None:
    """Run until SIGTERM or SIGINT, then drain."""
    settings = load_settings(GatewaySettings, sys.argv[1:])
    configure_logging(_SERVICE, settings.log_level)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)

    async def serve() -> None:
        telemetry = configure_telemetry(_SERVICE, settings)
        clock = SystemClock()
        try:
            async with running_gateway(settings, telemetry, clock, RandomIds(clock)) as gateway:
                try:
                    await until_stopped(*gateway.parts)
                finally:
                    await gateway.drain()
        finally:
            telemetry.shutdown()

    run_service(serve)


if __name__ == "__main__":
    main()
