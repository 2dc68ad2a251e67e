"""Keys: who gets in, and what the others hear."""

from pathlib import Path

import pytest

from podium_core.config.tenants import load_tenants, new_key
from podium_core.config.watched import Watched
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.auth import Authenticator
from tests.fakes.gateway import AUDITOR_TOKEN, TOKEN, tenants
from tests.fakes.ids import FakeClock


def _principal_of(header: str | None) -> str:
    authenticator = Authenticator(tenants, FakeClock())
    headers = {} if header is None else {"Authorization": header}
    return authenticator.principal(headers).key_id


def test_a_bearer_key_is_known() -> None:
    assert _principal_of(f"Bearer {TOKEN}") == "key-1"
    assert _principal_of(f"bearer  {TOKEN} ") == "key-1"


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN],
    ids=["none", "empty", "no token", "blank token", "other scheme", "no scheme"],
)
def test_a_missing_key_is_asked_for(header: str | None) -> None:
    with pytest.raises(PodiumError) as caught:
        _principal_of(header)
    assert (caught.value.code, caught.value.reason) == (Code.UNAUTHENTICATED, "MISSING_API_KEY")


@pytest.mark.parametrize(
    "token",
    ["' OR '1'='1", f"{TOKEN}x", TOKEN[:-1], "podium_key-1_", "é" * 50],
    ids=["sql", "longer", "shorter", "no secret", "not ascii"],
)
def test_a_wrong_key_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(PodiumError) as caught:
        _principal_of(f"Bearer {token}")
    assert (caught.value.code, caught.value.reason) == (Code.UNAUTHENTICATED, "INVALID_API_KEY")
    assert token not in caught.value.message


def test_an_auditor_may_not_call() -> None:
    with pytest.raises(PodiumError) as caught:
        _principal_of(f"Bearer {AUDITOR_TOKEN}")
    assert caught.value.code is Code.POLICY_DENIED


def test_a_key_counts_from_the_moment_it_is_in_the_file_and_no_longer(tmp_path: Path) -> None:
    """Key changes are never cached: the kind of BerriAI/litellm#39808, five minutes of 401 after a rotation."""
    file = tmp_path / "tenants.yaml"
    tokens, digests = zip(*(new_key("k1") for _ in range(2)), strict=True)

    def write(digest: str, more: str = "") -> None:
        new = tmp_path / "new"
        new.write_text(
            f"tenants: [{{id: acme, keys: [{{id: k1, sha256: {digest}, roles: [client]{more}}}]}}]"
        )
        new.replace(file)

    write(digests[0])
    watched = Watched(file, load_tenants)
    authenticator = Authenticator(watched.fresh, FakeClock())

    def works() -> list[bool]:
        found = []
        for token in tokens:
            try:
                found.append(authenticator.principal({"Authorization": f"Bearer {token}"}).key_id == "k1")
            except PodiumError as error:
                found.append(error.code is not Code.UNAUTHENTICATED)
        return found

    assert works() == [True, False]
    write(digests[1], f", previous: [{{sha256: {digests[0]}, until: 2999-01-01}}]")
    assert works() == [True, True]
    write(digests[1])
    assert works() == [False, True]
    file.write_text("tenants: [")
    assert works() == [False, True], "a broken file keeps the last good one in force"
