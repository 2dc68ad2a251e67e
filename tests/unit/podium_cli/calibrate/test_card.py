"""Cards go into the pool file whatever style it has, and nothing else in it changes."""

from pathlib import Path

import pytest

from podium_cli.calibrate.card import NewCard, with_cards, write_cards
from podium_cli.failures import CliError
from podium_core.config.pool import load_pool
from podium_core.domain.pool import Skill

CARD = NewCard((Skill("fractions", 857_143, 7, "2026-11-30"), Skill("mean", 900_000, 20, "2026-11-30")), 42)
HEAD = "  - id: w\n    provider: openai-compatible\n    model: m\n    base_url: http://h/v1\n"
STYLES = {
    "no card": HEAD,
    "no card, text after it": HEAD + "    region: eu # near\n\n# the end\n",
    "no value": HEAD + "    card:\n      skills: # to be measured\n",
    "empty card": HEAD + "    card: {}\n    region: eu\n",
    "empty skills": HEAD + "    card:\n      skills: [] # none\n      output_tokens_per_second: 7\n",
    "no skills": HEAD + "    card:\n      output_tokens_per_second: 7 # old\n",
    "flow": HEAD + '    card: {skills: [{name: mean, accuracy: "0.5", n: 1, measured_on: 2020-01-01}, ]}\n',
    "block": HEAD
    + "    card:\n      skills:\n        # the first\n        - name: mean # here\n          n: 1 # few\n"
    + '          accuracy: "0.5" # poor\n          measured_on: 2020-01-01\n        # the last\n    region: eu\n',
    "dash at the key": HEAD
    + '    card:\n      skills:\n      - {name: old, accuracy: "0.5", n: 1, measured_on: 2020-01-01} # kept\n',
    "all in one line": "  - {id: w, provider: openai-compatible, model: m, base_url: 'http://h/v1'} # tiny\n",
    "json": '  - {"id": "w", "provider": "openai-compatible", "model": "m", "base_url": "http://h/v1", "card": {"skills": []}}\n',
    "no newline at the end": HEAD.rstrip("\n"),
}
OTHER = (
    "  - id: w2\n    provider: openai-compatible\n    model: größe 漢字\n    base_url: http://h/v2 # stays\n"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("style", STYLES)
def test_any_style_takes_a_card(style: str, newline: str, tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    body = STYLES[style] if style.startswith("no newline") else STYLES[style] + OTHER
    text = f"# The pool.\nworkers: # all\n{OTHER.replace('w2', 'w1')}{body}".replace("\n", newline)
    path.write_bytes(text.encode())
    before = load_pool(path)

    backup = write_cards(path, {"w": CARD})

    after = load_pool(path)
    assert backup.read_bytes() == text.encode()
    card = after.pool.by_id["w"].card
    skills = {skill.name: skill for skill in card.skills}
    assert (skills["fractions"], skills["mean"], card.output_tokens_per_second) == (*CARD.skills, 42)
    assert {s.name for s in before.pool.by_id["w"].card.skills} <= skills.keys()
    written = path.read_bytes().decode()
    assert {
        part.strip() for line in text.splitlines() if "#" in line for part in [line[line.index("#") :]]
    } <= {line[line.index("#") :].strip() for line in written.splitlines() if "#" in line}
    assert written.count("\n") == written.count(newline)
    for worker_id in before.pool.by_id.keys() - {"w"}:
        assert before.pool.by_id[worker_id] == after.pool.by_id[worker_id]
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["pool.yaml", "pool.yaml.bak"]


def test_only_the_values_change_and_a_second_time_nothing() -> None:
    text = "workers:\n" + STYLES["block"]
    once = with_cards(text, {"w": CARD})
    assert '        - name: mean # here\n          n: 20 # few\n          accuracy: "0.900" # poor\n' in once
    assert '- {name: fractions, accuracy: "0.857143", n: 7, measured_on: 2026-11-30}\n' in once
    assert with_cards(once, {"w": CARD}) == once


def test_the_mode_of_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text("workers:\n" + HEAD)
    path.chmod(0o640)
    write_cards(path, {"w": CARD})
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_linked_file_is_edited_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "real" / "pool.yaml"
    path.write_text("workers:\n" + HEAD)
    link = tmp_path / "pool.yaml"
    link.symlink_to(path)
    write_cards(link, {"w": CARD})
    assert link.is_symlink()
    assert load_pool(path).pool.by_id["w"].card.skills == CARD.skills


def test_a_worker_that_is_gone_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text("workers:\n" + HEAD)
    with pytest.raises(CliError, match="no worker gone"):
        write_cards(path, {"gone": CARD})
    assert path.read_text() == "workers:\n" + HEAD
