"""The arguments of `podium bundle`."""

import argparse
from pathlib import Path

BUNDLE = """examples:
  podium bundle RUN RUN2 --case C-17     these runs, for a case
  podium bundle --from 2026-11-01 --to 2026-12-01
                                         all runs opened in November, and every
                                         record of the tenant with them
  podium verify bundle.podium.zip        prove it, offline

The file holds exports, proofs, the log's key, the format's page and a verifier;
`unzip -p FILE README.txt` says how to go on without Podium. Its digest is a
leaf of the log. All runs of a time need a key with the role auditor, and the
words of others' runs are left out.
"""


def add_to(bundle: argparse.ArgumentParser) -> None:
    """Add what it takes besides where audit is."""
    bundle.add_argument("run", nargs="*", metavar="RUN", help="ids of runs")
    bundle.add_argument("--case", default="", metavar="ID", help="the case it belongs to; it is recorded")
    bundle.add_argument(
        "--from", dest="since", metavar="TIME", help="UTC day, or second: 2026-11-30T12:00:00Z"
    )
    bundle.add_argument("--to", dest="until", metavar="TIME", help="the first moment that is too late")
    bundle.add_argument("--no-content", action="store_true", help="leave the words out")
    bundle.add_argument(
        "--out", type=Path, default=Path("bundle.podium.zip"), metavar="FILE", help="where to"
    )
