"""checkov reads the rendered profiles: every finding is mended or stands in a list with its reason."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.chart.rendering import CHART

CHECKOV = Path(os.environ.get("PODIUM_TEST_CHECKOV", "/nonexistent"))
RENDERED = CHART.parents[1] / "k8s" / "rendered"
EXCEPTIONS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("checkov_exceptions.yaml").read_text()
)


class Finding(NamedTuple):
    check: str
    profile: str
    resource: str


@pytest.fixture(scope="module")
def findings() -> set[Finding]:
    if not CHECKOV.exists():
        pytest.skip("needs the checkov of `make chart`: PODIUM_TEST_CHECKOV")
    done = subprocess.run(
        [CHECKOV, "--directory", RENDERED, "--framework", "kubernetes", "secrets", "--skip-download", "--output", "json"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    reports = json.loads(done.stdout)
    reports = reports if isinstance(reports, list) else [reports]
    assert sum(report["summary"]["passed"] for report in reports) > 1_000, "it read the manifests"
    assert not sum(report["summary"]["parsing_errors"] for report in reports)
    return {
        Finding(found["check_id"], Path(found["file_path"]).stem, found["resource"])
        for report in reports
        for found in report["results"]["failed_checks"]
    }


def covers(entry: dict[str, Any], finding: Finding) -> bool:
    return (
        entry["check"] == finding.check
        and finding.profile in entry["profiles"]
        and re.fullmatch(entry["resources"], finding.resource) is not None
    )


def test_every_finding_is_an_exception_with_a_reason(findings: set[Finding]) -> None:
    assert [found for found in sorted(findings) if not any(covers(e, found) for e in EXCEPTIONS)] == []


def test_no_exception_outlives_its_finding(findings: set[Finding]) -> None:
    for entry in EXCEPTIONS:
        for profile in entry["profiles"]:
            assert any(covers(entry, found) for found in findings if found.profile == profile), (
                entry,
                profile,
            )


@pytest.mark.parametrize("entry", EXCEPTIONS, ids=lambda entry: entry["check"])
def test_an_exception_gives_its_reason_and_keeps_production_strict(entry: dict[str, Any]) -> None:
    assert set(entry) == {"check", "profiles", "resources", "reason"}
    assert len(entry["reason"].split()) >= 8
    assert set(entry["profiles"]) <= {path.stem for path in RENDERED.glob("*.yaml")}
