"""Kill -9 under load: what was acknowledged is there, and what was open is closed."""

import asyncio
import signal
from pathlib import Path

from tests.fakes.audit_load import Told, check, check_money, load
from tests.fakes.audit_process import audit_process
from tests.fakes.waiting import PATIENCE_S


async def test_a_kill_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, tls_dir: Path) -> None:
    told = Told()
    async with audit_process(tmp_path, tls_dir, lease_default_s=1.0, reap_interval_s=0.1) as audit:
        for round_ in range(3):
            loading = asyncio.create_task(load(audit, told, f"r{round_}"))
            await asyncio.sleep(0.7)
            audit.kill(signal.SIGKILL)
            await loading
            audit.start()
            await audit.ready()
            check(audit, told)
        async with asyncio.timeout(PATIENCE_S):
            while audit.rows("SELECT count(*) FROM open_runs") != [(0,)]:
                await asyncio.sleep(0.1)
        assert audit.kill(signal.SIGTERM) == 0
        check(audit, told)
        outcomes = {r["run_id"]: r["facts"]["outcome"] for r in audit.records() if r["type"] == "sealed"}
        assert told.runs <= outcomes.keys()
        assert "abandoned" in outcomes.values()
        check_money(audit)
    assert len(told.receipts) > 30
