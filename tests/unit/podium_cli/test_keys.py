"""`podium keys`: edits of tenants.yaml that keep comments, and secrets that overlap while they are rotated."""

import stat
import time
from pathlib import Path

import pytest

from podium_cli.__main__ import main
from podium_core.config.tenants import Principal, load_tenants, new_key

NANOS = 10**9
_, ALICE = new_key("alice")

BLOCK = f"""\
# Who may call.
tenants:
  - id: acme          # the first customer
    budget_usd_per_month: "25.00"
    keys:
      # Alice left her laptop on a train in March.
      - id: alice
        sha256: {ALICE}   # never the key itself
        roles: [client]
      - id: bob
        sha256: {"1" * 64}
        roles: [client, auditor]
        expires: 2027-01-01
  # A tenant on trial.
  - id: trial
    keys:
"""
FLOW = f'{{"tenants": [{{"id": "acme", "keys": [{{"id": "alice", "sha256": "{ALICE}", "roles": ["client"]}}]}}]}}'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PODIUM_HOME", str(home))
    file = home / "tenants.yaml"
    file.write_text(BLOCK)
    file.chmod(0o640)
    return file


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main(["keys", *words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["keys", *words]) == 1
    return capsys.readouterr().err


def _token(said: str) -> str:
    (token,) = [line.strip() for line in said.splitlines() if line.strip().startswith("podium_")]
    return token


def _principal(file: Path, token: str, now_ns: int | None = None) -> Principal | None:
    return load_tenants(file).authenticate(token, time.time_ns() if now_ns is None else now_ns)


def test_a_created_key_works_and_comments_stay(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _run(capsys, "create", "carol", "--tenant", "acme", "--role", "auditor", "--expires", "2030-01-01")
    token = _token(said)
    principal = _principal(file, token)
    assert principal is not None
    assert (principal.tenant.tenant_id, sorted(principal.roles)) == ("acme", ["auditor"])
    text = file.read_text()
    assert [line for line in BLOCK.splitlines() if line not in text.splitlines()] == []
    assert token not in text
    assert token.split("_", 2)[2] not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_the_first_key_of_a_tenant_is_created(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    principal = _principal(file, _token(_run(capsys, "create", "dave", "--tenant", "trial")))
    assert principal is not None
    assert principal.tenant.tenant_id == "trial"


def test_a_rotated_key_has_two_secrets_for_the_stated_time(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _token(_run(capsys, "create", "ci", "--tenant", "acme"))
    said = _run(capsys, "rotate", "ci", "--overlap", "2h")
    second = _token(said)
    now_ns = time.time_ns()
    later_ns = now_ns + 2 * 3_600 * NANOS
    assert [bool(_principal(file, token, now_ns)) for token in (first, second)] == [True, True]
    assert [bool(_principal(file, token, later_ns)) for token in (first, second)] == [False, True]
    assert "goes on working until 20" in said
    assert "# never the key itself" in file.read_text()
    third = _token(_run(capsys, "rotate", "ci"))
    assert [bool(_principal(file, token, now_ns)) for token in (first, second, third)] == [True, True, True]
    fourth = _token(_run(capsys, "rotate", "ci", "--overlap", "0", "--end-earlier"))
    works = [bool(_principal(file, token, now_ns)) for token in (first, second, third, fourth)]
    assert works == [False, False, False, True]


def test_revoking_takes_the_key_away_and_nothing_else(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(capsys, "revoke", "alice")
    _run(capsys, "revoke", "bob")
    assert [tenant.keys for tenant in load_tenants(file).tenants] == [(), ()]
    assert "# Alice left her laptop" in file.read_text()
    assert "there is no key alice" in _refused(capsys, "revoke", "alice")
    _run(capsys, "create", "alice", "--tenant", "acme")


@pytest.mark.parametrize("keys", [1, 3])
def test_a_file_written_as_json_is_edited_too(
    file: Path, capsys: pytest.CaptureFixture[str], keys: int
) -> None:
    file.write_text(FLOW)
    tokens = [_token(_run(capsys, "create", f"k{number}")) for number in range(keys)]
    tokens[0] = _token(_run(capsys, "rotate", "k0", "--overlap", "0"))
    _run(capsys, "revoke", "alice")
    assert all(_principal(file, token) for token in tokens)
    for number in range(keys):
        _run(capsys, "revoke", f"k{number}")
    assert load_tenants(file).tenants[0].keys == ()


def test_the_command_s_own_key_is_kept_in_step(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = file.with_name("api-key")
    own.write_text(_token(_run(capsys, "create", "local", "--tenant", "acme")) + "\n")
    token = _token(_run(capsys, "rotate", "local", "--overlap", "0"))
    assert own.read_text().strip() == token
    assert _principal(file, token) is not None


def test_what_cannot_be_done_says_why_and_changes_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--tenant: acme, trial" in _refused(capsys, "create", "x")
    assert "there is a key alice already" in _refused(capsys, "create", "alice", "--tenant", "acme")
    assert "there is no tenant nobody" in _refused(capsys, "create", "x", "--tenant", "nobody")
    assert "a key id is" in _refused(capsys, "create", "not a name", "--tenant", "acme")
    assert "no span of time" in _refused(capsys, "rotate", "alice", "--overlap", "soon")
    assert "is no date" in _refused(capsys, "create", "x", "--tenant", "acme", "--expires", "2027-02-31")
    assert file.read_text() == BLOCK
    file.write_text("tenants:\n  - id: a b\n")
    assert "tenants.yaml line 2" in _refused(capsys, "list")
    file.unlink()
    assert "podium up" in _refused(capsys, "list")


def test_the_list_shows_ends_and_lists_but_no_secret(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BLOCK.replace("roles: [client]\n", "roles: [client]\n        regions: {only: [eu]}\n"))
    said = _run(capsys, "list")
    assert "alice" in said
    assert "2027-01-01" in said
    assert "regions only eu" in said
    assert ALICE not in said
