"""Who is calling: services know each other by the SPIFFE id in the peer's verified certificate.

The TLS handshake has already checked the certificate against the one trusted CA when these functions
run; here its URI name becomes the short service name that permissions are written in.
"""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import grpc

from podium_core.domain.errors import Code, PodiumError

TRUST_DOMAIN = "podium.local"
SERVICES = ("gateway", "conductor", "router", "audit", "cli")
"""Every identity that Podium itself issues certificates for."""

_ID_PREFIX = f"spiffe://{TRUST_DOMAIN}/".encode()
_URIS_KEY = "peer_uri"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of one service: its certificate chain, its private key, and the CA that it trusts."""

    cert_file: Path
    key_file: Path
    ca_file: Path

    def read(self) -> tuple[bytes, bytes, bytes]:
        """Return (certificate, key, CA) as PEM bytes; raise PodiumError naming what cannot be read."""
        return (
            _read("the TLS certificate", self.cert_file),
            _read("the TLS key", self.key_file),
            _read("the TLS CA certificate", self.ca_file),
        )

    def check(self) -> None:
        """Raise PodiumError when a file cannot be read, is no PEM, or key and certificate do not match."""
        self.read()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_cert_chain(self.cert_file, self.key_file)
        except ssl.SSLError:
            raise _unusable("the TLS certificate and key are no matching pair of PEM files") from None
        try:
            context.load_verify_locations(self.ca_file)
        except ssl.SSLError:
            raise _unusable("the TLS CA certificate is no PEM certificate") from None


def spiffe_id(service: str) -> str:
    """Return the URI name that the service's certificate carries."""
    return _ID_PREFIX.decode() + service


def dns_name(service: str) -> str:
    """Return the DNS name that clients insist on, whatever address they dial."""
    return f"{service}.podium.internal"


def caller_of(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """Return the caller's service name; raise PodiumError (UNAUTHENTICATED) without exactly one."""
    auth: Mapping[str, Iterable[bytes]] = context.auth_context()
    return _known(_caller_from_uris(tuple(auth.get(_URIS_KEY, ()))))


def caller_of_certificate(uris: Iterable[str]) -> str:
    """Return the name in a verified certificate's URI names; raise PodiumError (UNAUTHENTICATED) as above."""
    return _known(_caller_from_uris(tuple(uri.encode() for uri in uris)))


def _known(caller: str | None) -> str:
    if caller is None:
        raise PodiumError(
            Code.UNAUTHENTICATED,
            "connect with a client certificate that carries exactly one Podium identity",
            reason="CALLER_UNKNOWN",
        )
    return caller


@lru_cache(maxsize=256)
def _caller_from_uris(uris: tuple[bytes, ...]) -> str | None:
    if len(uris) != 1 or not uris[0].startswith(_ID_PREFIX):
        return None
    service = uris[0].removeprefix(_ID_PREFIX)
    return service.decode() if service.replace(b"-", b"").isalnum() else None


def _unusable(message: str) -> PodiumError:
    return PodiumError(Code.INVALID_REQUEST, message, reason="TLS_UNUSABLE")


def _read(what: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PodiumError(
            Code.INVALID_REQUEST,
            f"cannot read {what} file {path}: {error.strerror}",
            reason="FILE_UNREADABLE",
        ) from None
