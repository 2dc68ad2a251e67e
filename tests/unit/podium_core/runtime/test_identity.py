"""Names in a verified certificate become one caller, or none."""

from typing import Any

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.identity import SERVICES, caller_of, spiffe_id


class PeerContext:
    """A context whose peer's certificate carries these URI names."""

    def __init__(self, *uris: bytes) -> None:
        self._auth = {"x509_common_name": [b"router"], "peer_dns": [b"router.podium.internal"]}
        if uris:
            self._auth["peer_uri"] = list(uris)

    def auth_context(self) -> dict[str, list[bytes]]:
        return self._auth


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_is_known_by_its_uri(service: str) -> None:
    context: Any = PeerContext(spiffe_id(service).encode())
    assert caller_of(context) == service


@pytest.mark.parametrize(
    "uris",
    [
        (),
        (b"spiffe://example.com/router",),
        (b"https://podium.local/router",),
        (b"spiffe://podium.local/",),
        (b"spiffe://podium.local/router/extra",),
        (b"spiffe://podium.local/rou\xffter",),
        (b"spiffe://podium.local/router", b"spiffe://podium.local/gateway"),
        (b"spiffe://podium.local/router", b"spiffe://example.com/x"),
    ],
)
def test_anything_but_one_podium_identity_is_nobody(uris: tuple[bytes, ...]) -> None:
    context: Any = PeerContext(*uris)
    with pytest.raises(PodiumError) as failed:
        caller_of(context)
    assert failed.value.code is Code.UNAUTHENTICATED
