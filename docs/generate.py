# ruff: noqa: INP001 - a script, not a package
"""Writes the pages of docs/ that come from code: errors.md, config.md, telemetry.md, log-manual.md.

`make docs` runs it; a test fails when a page is stale, or when a setting or attribute has no meaning.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs.generated import config_page, errors_page, log_manual_page, telemetry_page  # noqa: E402 - needs the path above


def pages() -> dict[Path, str]:
    """Return every generated page by its place."""
    docs = ROOT / "docs"
    return {
        docs / "errors.md": errors_page.render(ROOT),
        docs / "config.md": config_page.render(),
        docs / "telemetry.md": telemetry_page.render(),
        docs / "log-manual.md": log_manual_page.render(ROOT),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
