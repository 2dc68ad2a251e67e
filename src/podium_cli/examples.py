"""How to call a running Podium, in lines to copy."""

import shutil
import sys
from pathlib import Path

from rich.console import Console

from podium_cli.home import Home

QUESTION = "What is 17 * 23?"


def show(console: Console, home: Home, run_id: str = "") -> None:
    """Print how to call the gateway of `home` from curl and Python, and what to look at next."""
    url = str(home.read_endpoints()["gateway"])
    for line in _lines(url, home, run_id or "last"):
        console.print(line, soft_wrap=True)


def _lines(url: str, home: Home, run_id: str) -> list[str]:
    podium = _program()
    option = f" --home {_short(home.directory)}" if home.directory != Path("~/.podium").expanduser() else ""
    body = f'{{"model": "podium", "messages": [{{"role": "user", "content": "{QUESTION}"}}]}}'
    return [
        "",
        "Call it from curl:",
        f'  curl {url}/v1/chat/completions -H "Authorization: Bearer $(cat {home.api_key_file})" \\',
        f"    -H 'Content-Type: application/json' -d '{body}'",
        "",
        "Call it from Python (pip install openai):",
        "  from openai import OpenAI",
        f'  client = OpenAI(base_url="{url}/v1", api_key=open("{home.api_key_file}").read().strip())',
        f'  messages = [{{"role": "user", "content": "{QUESTION}"}}]',
        '  reply = client.chat.completions.create(model="podium", messages=messages)',
        "  print(reply.choices[0].message.content)",
        "",
        "Look at what it did, and stop it:",
        f"  {podium} show{option} {run_id}",
        f"  {podium} verify{option} {run_id}",
        f"  {podium} down{option}",
    ]


def _short(directory: Path) -> Path:
    """Return how the home can be called from here."""
    return directory.relative_to(Path.cwd()) if directory.is_relative_to(Path.cwd()) else directory


def _program() -> str:
    """Return how this command can be called again from here."""
    if shutil.which("podium"):
        return "podium"
    program = Path(sys.argv[0])
    return str(program) if program.name == "podium" else f"{sys.executable} -m podium_cli"
