from pathlib import Path

import pytest

from podium_cli.__main__ import main

POOL = """
workers:
  - {id: alpha, provider: openai-compatible, model: m, base_url: "http://127.0.0.1:9/v1"}
"""
TENANTS = f"""
tenants:
  - id: research
    keys:
      - {{id: alice, sha256: {"0" * 64}, roles: [client]}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "pool.yaml").write_text(POOL)
    (tmp_path / "tenants.yaml").write_text(TENANTS)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "there_is"),
    [(["--worker", "alpah"], "alpha"), (["--worker", "alpha", "--tenant", "reserach"], "research")],
)
def test_a_misspelt_stop_is_no_stop(
    words: list[str], there_is: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(home), "stop", *words]) == 1
    said = capsys.readouterr().err
    assert words[-1] in said
    assert there_is in said


@pytest.mark.parametrize("broken", ["pool.yaml", "tenants.yaml"])
def test_a_broken_file_hinders_no_stop(broken: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / broken).write_text("oops: [")
    words = ["--worker", "alpah"] if broken == "pool.yaml" else ["--all", "--tenant", "reserach"]
    assert main(["--home", str(home), "stop", *words]) == 1
    assert "no Podium has been started" in capsys.readouterr().err, "it got as far as looking for audit"
