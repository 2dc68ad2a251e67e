"""Names in a verified certificate become one caller, or none."""

from typing import Any

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.identity import SERVICES, caller_of, spiffe_id


class PeerContext:
    """A context whose peer presented these names."""

    def __init__(self, *names: bytes) -> None:
        self._auth = {"x509_subject_alternative_name": list(names)} if names else {}

    def auth_context(self) -> dict[str, list[bytes]]:
        return self._auth


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_is_known_by_its_uri(service: str) -> None:
    context: Any = PeerContext(spiffe_id(service).encode(), b"localhost", b"127.0.0.1")
    assert caller_of(context) == service


@pytest.mark.parametrize(
    "names",
    [
        (),
        (b"router.podium.internal", b"localhost"),
        (b"spiffe://example.com/router",),
        (b"https://podium.local/router",),
        (b"spiffe://podium.local/",),
        (b"spiffe://podium.local/router/extra",),
        (b"spiffe://podium.local/rou\xffter",),
        (b"spiffe://podium.local/router", b"spiffe://podium.local/gateway"),
        (b"spiffe://podium.local/router", b"spiffe://example.com/x"),
    ],
)
def test_anything_but_one_podium_identity_is_nobody(names: tuple[bytes, ...]) -> None:
    context: Any = PeerContext(*names)
    with pytest.raises(PodiumError) as failed:
        caller_of(context)
    assert failed.value.code is Code.UNAUTHENTICATED
