"""What the first `podium up` in a home creates: certificates, one demo tenant with a key, the demo pool."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

from podium_cli.failures import CliError
from podium_cli.home import HOST, Home, write_private
from podium_cli.keys import key_entry
from podium_cli.local_ca import CA_FILE, create_local_ca
from podium_core.config.pins import load_pins
from podium_core.config.plans import load_plans
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants, new_key
from podium_core.domain.errors import PodiumError
from podium_core.runtime.identity import SERVICES

DEMO_TENANT = "demo"
DEMO_KEY_ID = "local"

PLANS = """\
# Plans of your own: the model name plan/<name> performs one as it is written, without a Conductor.
# The gateway reads this file again when it changes; docs/config.md lists every field.
plans:
#  - name: sum-in-roman
#    steps:
#      - worker: demo-arithmetic      # without a subtask: the question itself
#      - worker: demo-numerals
#        subtask: Write the result as a Roman numeral.
#        sees: [0]
"""
PINS = """\
# What podium@<date> stands for. `podium pin` adds what is loaded now.
pins:
"""

_TENANTS = """\
# Who may call Podium. Services read this file again when it changes.
# `podium keys create NAME` makes further keys; docs/config.md lists every field.
tenants:
  - id: {tenant}
    keys:
{key}
"""


def prepare(home: Home, demo_port: int) -> bool:
    """Create what is missing in a home and point its demo workers at `demo_port`; say if it was new."""
    is_new = not home.tenants_file.exists()
    home.create()
    if not (home.tls_dir / CA_FILE).exists():
        create_local_ca(home.tls_dir, SERVICES)
    if is_new:
        token, digest = new_key(DEMO_KEY_ID)
        entry = key_entry(DEMO_KEY_ID, digest, ["client", "auditor"])
        write_private(home.api_key_file, f"{token}\n")
        write_private(home.tenants_file, _TENANTS.format(tenant=DEMO_TENANT, key=entry))
    for file, text in ((home.plans_file, PLANS), (home.pins_file, PINS)):
        if not file.exists():
            write_private(file, text)
    if not home.pool_file.exists():
        write_private(home.pool_file, demo_pool(demo_port))
    else:
        _move_demo_workers(home, demo_port)
    return is_new


def check_files(home: Home) -> None:
    """Refuse to start on a broken file; CliError says which line to mend."""
    checks: tuple[tuple[Path, Callable[[Path], object]], ...] = (
        (home.tenants_file, load_tenants),
        (home.pool_file, load_pool),
        (home.plans_file, load_plans),
        (home.pins_file, load_pins),
    )
    for file, load in checks:
        try:
            load(file)
        except PodiumError as error:
            problems = error.message.replace(f"; {file.name} line ", f"\n  {file.name} line ")
            raise CliError(problems, hint=f"mend {file} and try again") from None


def demo_pool(demo_port: int) -> str:
    """Return `pool.yaml` with the demo specialists alone."""
    template = resources.files("podium_demo").joinpath("pool.demo.yaml").read_text(encoding="utf-8")
    return template.replace('"{base_url}"', f'"http://{HOST}:{demo_port}/v1"')


def _move_demo_workers(home: Home, demo_port: int) -> None:
    """The demo provider listens elsewhere than last time: change its address and nothing else."""
    try:
        entries = load_pool(home.pool_file).entries
    except PodiumError:
        return
    text = home.pool_file.read_text(encoding="utf-8")
    for base_url in {entry.base_url for entry in entries if entry.worker.is_demo}:
        text = text.replace(base_url, f"http://{HOST}:{demo_port}/v1")
    write_private(home.pool_file, text)
