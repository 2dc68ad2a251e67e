"""Containers restarted in turn behind Envoy, under load: no call of a client that never retries fails."""

from pathlib import Path

from tests.containers.replicas import running_containers
from tests.e2e.replicas import REPLICATED
from tests.e2e.test_rolling_restart import Clients, check, records_of
from tests.fakes.postgres_server import PostgresServer


async def test_each_container_restarted_in_turn_fails_no_call(
    tmp_path: Path, postgres: PostgresServer, cache: Path
) -> None:
    program = cache / "envoy" / "bin" / "envoy"
    async with running_containers(tmp_path, postgres, program) as podium:
        clients = Clients(f"http://127.0.0.1:{podium.envoy_ports['gateway']}", podium.headers)
        async with clients.asking(podium):
            for service in REPLICATED:
                for name in (service, f"{service}-2"):
                    assert await podium.restart(name) == 0, podium.log_of(name)
                    await clients.more_answers()
        records = records_of(podium.databases[0])
    facts_of = check(clients, records)
    assert clients.lost == 0
    assert {facts["outcome"] for facts in facts_of["attempt_ended"]} == {"completed"}
