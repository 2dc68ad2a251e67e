"""A certificate authority for one machine: `podium up` and the tests make theirs in a second.

The CA's private key is discarded unless asked for, so nobody can issue a further identity later.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podium_core.domain.clock import Clock, SystemClock
from podium_core.runtime.identity import TlsFiles, dns_name, spiffe_id

CA_FILE = "ca.pem"
CA_KEY_FILE = "ca-key.pem"

_SERVICE = re.compile(r"[a-z][a-z0-9-]{0,62}")
_LIFETIME = timedelta(days=825)
_CLOCK_SKEW = timedelta(minutes=5)
_NANOS = 1_000_000_000
_LOOPBACK = ("127.0.0.1", "::1")


def create_local_ca(
    directory: Path, services: Iterable[str], *, keep_ca_key: bool = False, clock: Clock | None = None
) -> None:
    """Write `ca.pem` and, per service, `<service>/cert.pem` and `<service>/key.pem` under `directory`.

    Private keys are readable by their owner only. Files that exist are replaced: certificates of an
    earlier CA stop being trusted. Raises ValueError for a name that is no plain lower-case word.
    """
    names = tuple(services)
    for name in names:
        if not _SERVICE.fullmatch(name):
            raise ValueError(f"a service is named by lower-case letters, digits and dashes, not {name!r}")
    now = datetime.fromtimestamp((clock or SystemClock()).now_ns() / _NANOS, UTC)
    authority = _new_authority(now)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(directory / CA_FILE, authority.certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    (directory / CA_KEY_FILE).unlink(missing_ok=True)
    if keep_ca_key:
        _write(directory / CA_KEY_FILE, _pem(authority.key), 0o600)
    for service in names:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _issue(authority, service, key.public_key(), now)
        files = service_files(directory, service)
        files.cert_file.parent.mkdir(exist_ok=True, mode=0o700)
        _write(files.key_file, _pem(key), 0o600)
        _write(files.cert_file, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def service_files(directory: Path, service: str) -> TlsFiles:
    """Return where `create_local_ca` keeps the files of a service."""
    return TlsFiles(directory / service / "cert.pem", directory / service / "key.pem", directory / CA_FILE)


@dataclass(frozen=True, slots=True)
class _Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def _new_authority(now: datetime) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Podium local CA")
    builder = _builder(name, name, key.public_key(), now)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return _Authority(key, builder.sign(key, hashes.SHA256()))


def _issue(
    authority: _Authority, service: str, public_key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.Certificate:
    names: list[x509.GeneralName] = [
        x509.UniformResourceIdentifier(spiffe_id(service)),
        x509.DNSName(dns_name(service)),
        x509.DNSName("localhost"),
        *(x509.IPAddress(ip_address(address)) for address in _LOOPBACK),
    ]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issuer_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = _builder(_name(service), authority.certificate.subject, public_key, now)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(issuer_key_id, critical=False)
    return builder.sign(authority.key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
