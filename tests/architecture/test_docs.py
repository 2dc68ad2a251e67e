"""The pages that come from code are fresh, complete, and their examples work."""

from pathlib import Path

from docs.generate import pages
from docs.generated.config_page import (
    PINS_EXAMPLE,
    PLANS_EXAMPLE,
    POOL_EXAMPLE,
    SERVICES,
    TENANTS_EXAMPLE,
)
from podium_core.config.pins import load_pins
from podium_core.config.plans import load_plans
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants
from podium_core.domain.errors import Code


def test_generated_pages_are_fresh() -> None:
    stale = [path.name for path, text in pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs` and commit"


def test_every_code_and_every_setting_has_its_row() -> None:
    text = {path.name: text for path, text in pages().items()}
    assert [code for code in Code if f"| `{code}` |" not in text["errors.md"]] == []
    names = [
        f"{cls.model_config['env_prefix']}{name}".upper() for cls in SERVICES for name in cls.__annotations__
    ]
    assert [
        name for name in names if f"`{name}`" not in text["config.md"] and not name.endswith("MODEL_CONFIG")
    ] == []


def test_the_examples_of_all_files_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_text(TENANTS_EXAMPLE)
    (tmp_path / "pool.yaml").write_text(POOL_EXAMPLE)
    (tmp_path / "plans.yaml").write_text(PLANS_EXAMPLE)
    (tmp_path / "pins.yaml").write_text(PINS_EXAMPLE)
    assert load_plans(tmp_path / "plans.yaml").by_name["draft-and-check"].plan.depth == 2
    assert list(load_pins(tmp_path / "pins.yaml").by_day) == ["2026-11-30"]
    assert load_tenants(tmp_path / "tenants.yaml").tenants[0].budget_usd_micros == 25_000_000
    assert load_pool(tmp_path / "pool.yaml").entries[0].worker.card.skills[0].accuracy_ppm == 980_000
