"""The demo pool as workers, with the cards that the demo provider ships."""

from functools import lru_cache
from importlib.resources import files

import yaml

from podium_core.domain.pool import Card, Skill, Worker
from podium_core.domain.usage import Price

_MILLION = 1_000_000


@lru_cache(maxsize=1)
def demo_workers() -> tuple[Worker, ...]:
    """Return the demo specialists as workers."""
    text = (files("podium_demo") / "pool.demo.yaml").read_text(encoding="utf-8")
    return tuple(
        Worker(
            worker_id=entry["id"],
            provider=entry["provider"],
            provider_model=entry["model"],
            card=Card(
                skills=tuple(
                    Skill(
                        skill["name"],
                        round(_MILLION * float(skill["accuracy"])),
                        skill["n"],
                        str(skill["measured_on"]),
                    )
                    for skill in entry["card"]["skills"]
                )
            ),
            price=Price(
                round(_MILLION * float(entry["price"]["input_usd_per_mtok"])),
                round(_MILLION * float(entry["price"]["output_usd_per_mtok"])),
            ),
            is_demo=True,
        )
        for entry in yaml.safe_load(text)["workers"]
    )
