"""The local CA: right names, private keys private, nobody left who could issue more."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from podium_cli.local_ca import CA_FILE, CA_KEY_FILE, create_local_ca, service_files
from tests.fakes.ids import FakeClock


def _certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_certificate_names_its_service_and_is_signed_by_the_ca(tmp_path: Path) -> None:
    create_local_ca(tmp_path, ["router", "audit"])
    files = service_files(tmp_path, "audit")
    certificate = _certificate(files.cert_file)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://podium.local/audit"]
    assert names.get_values_for_type(x509.DNSName) == ["audit.podium.internal", "localhost"]
    certificate.verify_directly_issued_by(_certificate(files.ca_file))
    key = serialization.load_pem_private_key(files.key_file.read_bytes(), None)
    assert key.public_key() == certificate.public_key()


def test_a_services_certificate_can_issue_nothing(tmp_path: Path) -> None:
    create_local_ca(tmp_path, ["router"])
    extensions = _certificate(service_files(tmp_path, "router").cert_file).extensions
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_private_keys_are_the_owners_only(tmp_path: Path) -> None:
    create_local_ca(tmp_path / "pki", ["router"], keep_ca_key=True)
    keys = [tmp_path / "pki" / CA_KEY_FILE, service_files(tmp_path / "pki", "router").key_file]
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600, 0o600]
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


def test_the_ca_key_is_not_kept_unless_asked_for(tmp_path: Path) -> None:
    create_local_ca(tmp_path, ["router"])
    assert not (tmp_path / CA_KEY_FILE).exists()
    assert all(b"PRIVATE" not in path.read_bytes() for path in tmp_path.glob("*.pem"))


def test_a_second_ca_replaces_the_first(tmp_path: Path) -> None:
    create_local_ca(tmp_path, ["router"], keep_ca_key=True)
    first = (tmp_path / CA_FILE).read_bytes()
    create_local_ca(tmp_path, ["router"])
    assert (tmp_path / CA_FILE).read_bytes() != first
    assert not (tmp_path / CA_KEY_FILE).exists()


def test_certificates_are_valid_from_the_given_time(tmp_path: Path) -> None:
    clock = FakeClock(wall_ns=1_700_000_000 * 10**9)
    create_local_ca(tmp_path, ["router"], clock=clock)
    certificate = _certificate(service_files(tmp_path, "router").cert_file)
    now = datetime.fromtimestamp(1_700_000_000, UTC)
    assert certificate.not_valid_before_utc < now < certificate.not_valid_after_utc


@pytest.mark.parametrize("service", ["../gateway", "", "a/b", "Router", "a b"])
def test_a_name_that_is_no_service_is_refused(tmp_path: Path, service: str) -> None:
    with pytest.raises(ValueError, match="service"):
        create_local_ca(tmp_path, [service])
