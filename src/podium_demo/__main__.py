"""`podium-demo-provider`: runs the demo provider until it is stopped."""

import sys
from collections.abc import Sequence

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.runtime.service import run_service, until_stopped
from podium_demo.options import options_of
from podium_demo.server import DemoServer


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = options_of(argv)

    async def serve() -> None:
        clock = SystemClock()
        server = DemoServer(
            clock, RandomIds(clock), request_log=options.request_log, allow_faults=options.allow_faults
        )
        host, port = options.listen
        try:
            await server.start(host, port)
        except OSError as error:
            raise PodiumError(
                Code.UNAVAILABLE, f"cannot listen on {host} port {port}: {error.strerror or 'is it in use?'}"
            ) from None
        sys.stdout.write(f"demo provider (specialist programs, not language models): {server.base_url}\n")
        sys.stdout.flush()
        try:
            await until_stopped()
        finally:
            await server.stop()

    run_service(serve)


if __name__ == "__main__":
    main()
