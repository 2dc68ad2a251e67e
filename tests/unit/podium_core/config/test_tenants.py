"""tenants.yaml: exact, strict, and keys that are compared without telling anything."""

import hmac
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from podium_core.config.tenants import AUDITOR, CLIENT, Tenant, Tenants, load_tenants, new_key
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.limits import Limits
from podium_core.domain.policy import Reach, WorkerFilter
from podium_core.domain.run import Caps

NOW_NS = 1_790_000_000 * 10**9
DIGEST = "0" * 64


def _load(tmp_path: Path, text: str) -> Tenants:
    path = tmp_path / "tenants.yaml"
    path.write_text(text)
    return load_tenants(path)


def _with_key(tmp_path: Path, more: str = "") -> tuple[Tenants, str]:
    token, digest = new_key("k1")
    text = f"tenants: [{{id: acme, keys: [{{id: k1, sha256: {digest}, roles: [client]{more}}}]}}]"
    return _load(tmp_path, text), token


def test_limits_are_those_of_the_tenant_and_of_each_key(tmp_path: Path) -> None:
    tenants = _load(
        tmp_path,
        f"""
tenants:
  - id: acme
    warn_at_percent: [50, 90]
    limits: {{requests_per_minute: 9, tokens_per_minute: 5000, concurrent_runs: 3}}
    keys:
      - {{id: k1, sha256: {DIGEST}, roles: [client], limits: {{concurrent_runs: 2}}, budget_usd_per_month: 5}}
      - {{id: k2, sha256: {DIGEST}, roles: [client], budget_usd_per_month: 0}}
    budget_usd_per_month: 20
  - id: other
""",
    )
    assert tenants.limits_of("acme", "") == Limits(9, 5_000, 3)
    assert tenants.limits_of("acme", "k1") == Limits(concurrent_runs=2)
    for tenant_id, key_id in (("acme", "k2"), ("other", ""), ("other", "k1"), ("nobody", "")):
        assert tenants.limits_of(tenant_id, key_id) == Limits()
    assert [tenants.budget_of("acme", key_id) for key_id in ("", "k1", "k2")] == [20_000_000, 5_000_000, 0]
    for tenant_id, key_id in (("other", ""), ("other", "k1"), ("nobody", ""), ("acme", "k3")):
        assert tenants.budget_of(tenant_id, key_id) is None
    assert [tenant.warn_percents for tenant in tenants.tenants] == [(50, 90), (80,)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("limits: {requests_per_minute: 0}", "limits.requests_per_minute"),
        ("limits: {requests_per_hour: 5}", "limits.requests_per_hour"),
        ("warn_at_percent: [101]", "warn_at_percent"),
        ("warn_at_percent: [80, 50]", "ascending"),
    ],
)
def test_limits_that_make_no_sense_are_refused(tmp_path: Path, text: str, names: str) -> None:
    with pytest.raises(PodiumError, match=names):
        _load(tmp_path, f"tenants:\n  - id: acme\n    {text}\n")


def test_a_whole_file_is_read_exactly(tmp_path: Path) -> None:
    tenants = _load(
        tmp_path,
        f"""
tenants:
  - id: acme
    budget_usd_per_month: "25.10"
    workers:
      only: [a, b]
      except: [b]
    caps: {{max_steps: 3, max_calls: 9, max_tokens: 5000, max_usd: 0.07, max_seconds: 1.5, max_rounds: 2}}
    keys:
      - id: k1
        sha256: {DIGEST}
        roles: [client, auditor]
        expires: 2027-01-01
  - id: other
    keys:
""",
    )
    acme, other = tenants.tenants
    assert acme.budget_usd_micros == 25_100_000
    assert acme.reach == Reach("tenant", WorkerFilter(frozenset({"a", "b"}), frozenset({"b"})))
    assert acme.caps == Caps(3, 9, 5_000, 70_000, 1.5, 2)
    [key] = acme.keys
    assert (key.key_id, key.sha256, key.roles) == ("k1", DIGEST, frozenset({CLIENT, AUDITOR}))
    assert key.expires_ns == int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    assert other == Tenant("other", Caps(max_rounds=8))


def test_the_right_token_is_its_principal(tmp_path: Path) -> None:
    tenants, token = _with_key(tmp_path)
    principal = tenants.authenticate(token, NOW_NS)
    assert principal is not None
    assert (principal.tenant.tenant_id, principal.key_id, principal.roles) == (
        "acme",
        "k1",
        frozenset({CLIENT}),
    )


def test_any_other_token_is_nobody(tmp_path: Path) -> None:
    tenants, token = _with_key(tmp_path)
    others = [
        "",
        token[:-1],
        token + "x",
        token[:-1] + ("A" if token[-1] != "A" else "B"),
        token.replace("k1", "k2"),
        token.upper(),
        f" {token}",
        token + "\n",
        new_key("k1")[0],
        "podium_k1_" + "\N{SNOWMAN}" * 43,
        "x" * 1_000_000,
    ]
    assert [tenants.authenticate(other, NOW_NS) for other in others] == [None] * len(others)


def test_known_and_unknown_key_ids_cost_one_constant_time_comparison_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants, token = _with_key(tmp_path)
    compared = []

    def compare(left: str, right: str) -> bool:
        compared.append((len(left), len(right)))
        return left == right

    monkeypatch.setattr(hmac, "compare_digest", compare)
    tenants.authenticate(token, NOW_NS)
    tenants.authenticate(new_key("k1")[0], NOW_NS)
    tenants.authenticate(new_key("unknown")[0], NOW_NS)
    assert compared == [(64, 64)] * 3


def test_a_key_ends_when_its_day_begins(tmp_path: Path) -> None:
    tenants, token = _with_key(tmp_path, ", expires: 2027-01-01")
    midnight_ns = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    assert tenants.authenticate(token, midnight_ns - 1) is not None
    assert tenants.authenticate(token, midnight_ns) is None


def test_a_rotated_key_keeps_its_old_secret_until_the_stated_second(tmp_path: Path) -> None:
    (old, old_digest), (new, new_digest) = new_key("k1"), new_key("k1")
    until = datetime(2027, 1, 1, 12, 30, tzinfo=UTC)
    tenants = _load(
        tmp_path,
        f"""
tenants:
  - id: acme
    keys:
      - id: k1
        sha256: {new_digest}
        roles: [client]
        previous: [{{sha256: {old_digest}, until: "2027-01-01T12:30:00Z"}}]
""",
    )
    until_ns = int(until.timestamp()) * 10**9

    def names(now_ns: int) -> list[str | None]:
        found = [tenants.authenticate(token, now_ns) for token in (old, new)]
        return [None if each is None else each.key_id for each in found]

    assert names(until_ns - 1) == ["k1", "k1"]
    assert names(until_ns) == [None, "k1"]


def test_a_key_that_has_expired_lets_none_of_its_secrets_in(tmp_path: Path) -> None:
    old, old_digest = new_key("k1")
    previous = f", expires: 2027-01-01, previous: [{{sha256: {old_digest}, until: 2028-01-01}}]"
    tenants, token = _with_key(tmp_path, previous)
    midnight_ns = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    assert tenants.authenticate(old, midnight_ns - 1) is not None
    assert [tenants.authenticate(each, midnight_ns) for each in (old, token)] == [None, None]


def test_lists_of_tenant_and_key_hold_together(tmp_path: Path) -> None:
    token, digest = new_key("k1")
    tenants = _load(
        tmp_path,
        f"""
tenants:
  - id: acme
    regions: {{only: [eu]}}
    keys:
      - {{id: k1, sha256: {digest}, roles: [client], providers: {{except: [fake]}}, workers: {{only: [a b]}}}}
""",
    )
    principal = tenants.authenticate(token, NOW_NS)
    assert principal is not None
    assert principal.reach == (
        Reach("tenant", regions=WorkerFilter(frozenset({"eu"}))),
        Reach("key", WorkerFilter(frozenset({"a b"})), WorkerFilter(excluded=frozenset({"fake"}))),
    )


def test_a_new_key_is_a_long_random_token_and_its_hash() -> None:
    token, digest = new_key("team-a.1_x")
    assert token.startswith("podium_team-a.1_x_")
    assert len(token) - len("podium_team-a.1_x_") == 43
    assert digest == sha256(token.encode()).hexdigest()
    assert new_key("team-a.1_x")[0] != token
    with pytest.raises(ValueError, match="a key id is"):
        new_key("no spaces")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "tenants.yaml line 1: tenants: this field is required"),
        ("[]", "tenants.yaml line 1: the file: must be a mapping of fields"),
        ("tenants: []", "tenants.yaml line 1: tenants: "),
        ("tenants: acme", "tenants.yaml line 1: tenants: must be a list"),
        ("tenants:\n - id: acme\n   kees: []", "line 3: tenants[0].kees: there is no such field"),
        ("tenants:\n - keys: []", "line 2: tenants[0].id: this field is required"),
        ("tenants:\n - id: a b", "line 2: tenants[0].id: must be 1 to 64 letters"),
        ("tenants:\n - id: a\n - id: a", "line 3: tenants[1].id: there are two tenants 'a'"),
        (
            "tenants:\n - id: a\n   budget_usd_per_month: lots",
            "line 3: tenants[0].budget_usd_per_month: must be",
        ),
        ("tenants:\n - id: a\n   budget_usd_per_month: -1", "must be a decimal number"),
        ("tenants:\n - id: a\n   budget_usd_per_month: 0.0000001", "may have at most six decimals"),
        ("tenants:\n - id: a\n   budget_usd_per_month: 1e3", "must be a decimal number"),
        ("tenants:\n - id: a\n   budget_usd_per_month: " + "9" * 1_100_000, "must be a decimal number"),
        ("tenants:\n - id: a\n   workers:\n     only: []", "line 4: tenants[0].workers.only: an empty list"),
        ("tenants:\n - id: a\n   caps: {max_steps: 6}", "line 3: tenants[0].caps.max_steps: "),
        ("tenants:\n - id: a\n   caps: {max_calls: 0}", "line 3: tenants[0].caps.max_calls: "),
        ("tenants:\n - id: a\n   caps: {max_seconds: nan}", "line 3: tenants[0].caps.max_seconds: "),
        ("tenants:\n - id: a\n   id: b", "line 3: tenants[0].id is given twice"),
        (
            "tenants:\n - id: a\n   retention: {evidence_days: 183}",
            "line 3: tenants[0].retention.evidence_days: evidence is kept for 184 days at least",
        ),
        (
            "tenants:\n - id: a\n   retention: {evidence_days: 200, content_days: 201}",
            "line 3: tenants[0].retention: content_days may not be more than evidence_days",
        ),
        (
            "tenants:\n - id: a\n   retention: {conversation_days: 401}",
            "line 3: tenants[0].retention.conversation_days: ",
        ),
        (
            f"tenants:\n - id: a\n   keys:\n   - {{id: k, sha256: {DIGEST}, roles: [privacy, operator]}}",
            "line 4: tenants[0].keys[0].roles: no key may hold both operator and privacy",
        ),
        ("tenants:\n - id: a\n   keys: [1]", "line 3: tenants[0].keys[0]: must be a mapping"),
        (
            f"tenants:\n - id: a\n   keys:\n   - {{id: k, sha256: {DIGEST}, roles: []}}",
            "line 4: tenants[0].keys[0].roles: ",
        ),
        (
            f"tenants:\n - id: a\n   keys:\n   - {{id: k, sha256: {DIGEST}, roles: [admin]}}",
            "line 4: tenants[0].keys[0].roles[0]: ",
        ),
        (
            "tenants:\n - id: a\n   keys:\n   - {id: k, sha256: podium_k_abc, roles: [client]}",
            "line 4: tenants[0].keys[0].sha256: must be the key's SHA-256 in 64 hex digits",
        ),
        (
            "tenants:"
            + "".join(
                f"\n - {{id: {tenant}, keys: [{{id: k, sha256: {DIGEST}, roles: [client]}}]}}"
                for tenant in "ab"
            ),
            "line 3: tenants[1].keys[0].id: there are two keys 'k'",
        ),
    ],
)
def test_every_mistake_is_named_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PodiumError) as failed:
        _load(tmp_path, text)
    assert failed.value.code is Code.INVALID_REQUEST
    assert said in failed.value.message
    assert "podium_k_abc" not in failed.value.message
    assert str(tmp_path) not in failed.value.message
