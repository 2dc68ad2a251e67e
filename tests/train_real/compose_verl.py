"""Composes our verl recipe over verl's own configuration, in an environment that has no more than both.

Run as a script; prints the resolved settings as JSON, and verl's own beside them. verl itself is not imported: that needs torch and Ray.
"""

import importlib.util
import json
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf


def main(recipes: Path) -> None:
    spec = importlib.util.find_spec("verl")
    assert spec is not None
    package = next(iter(spec.submodule_search_locations or ()))
    defaults = Path(package) / "trainer" / "config"
    with initialize_config_dir(str(recipes / "verl"), version_base=None):
        ours = compose("conductor_grpo", overrides=[f"hydra.searchpath=[file://{defaults}]"])
    with initialize_config_dir(str(defaults), version_base=None):
        theirs = compose("ppo_trainer")
    found = {
        "resolved": OmegaConf.to_container(ours, resolve=True),
        "ours": OmegaConf.to_container(ours),
        "theirs": OmegaConf.to_container(theirs),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
