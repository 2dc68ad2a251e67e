"""Keys: who gets in, and what the others hear."""

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_gateway.auth import Authenticator, tenant_filter
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


def test_a_tenants_workers_become_a_filter() -> None:
    principal = Authenticator(tenants, FakeClock()).principal({"Authorization": f"Bearer {TOKEN}"})
    assert tenant_filter(principal).only is None
