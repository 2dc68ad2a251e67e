"""What can be typed after `podium objects`."""

import argparse
from pathlib import Path

_EXAMPLES = """examples:
  podium objects > pool.yaml            pool and tenants of the home, as Worker
                                        and Tenant objects of a cluster
  podium objects --namespace podium | kubectl apply -f -
  podium objects --pool pool.yaml --tenants tenants.yaml

Keys are only named: comments at the top say which entries the Secret with the
provider keys needs, and where each key is now. Files stay as they are, so
`podium calibrate` and `podium keys` can go on with them.
"""
OBJECTS = ("objects", "write pool and tenants as objects of a cluster", _EXAMPLES)


def add_to(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    command.add_argument("--pool", type=Path, metavar="FILE", help="pool.yaml, default the home's")
    command.add_argument("--tenants", type=Path, metavar="FILE", help="tenants.yaml, default the home's")
    command.add_argument("--namespace", default="", metavar="NAME", help="of the objects, default none named")
