"""When a certificate ends, read from the file."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.errors import PodiumError
from podium_core.runtime.live_tls import expires_at_s

KEY = ec.generate_private_key(ec.SECP256R1())
END = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)


def certificate(end: datetime, name: str = "x", serial: int = 1) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(KEY.public_key())
    )
    builder = builder.serial_number(serial).not_valid_before(end - timedelta(days=1)).not_valid_after(end)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@given(
    end=st.datetimes(datetime(1960, 1, 1), datetime(2200, 1, 1)),  # noqa: DTZ001 - made aware below
    name=st.text("abcdefgh", min_size=1, max_size=64),
    serial=st.integers(1, 2**158),
)
@settings(max_examples=60)
def test_it_is_what_a_library_for_certificates_reads(end: datetime, name: str, serial: int) -> None:
    end = end.replace(microsecond=0, tzinfo=UTC)
    assert expires_at_s(certificate(end, name, serial)) == int(end.timestamp())


WHOLE = certificate(END)


def test_of_a_chain_it_is_the_first_one() -> None:
    chain = b"a comment\n" + certificate(END) + certificate(END + timedelta(days=900))
    assert expires_at_s(chain) == int(END.timestamp())


@given(st.binary(max_size=200))
def test_what_is_no_certificate_is_refused(noise: bytes) -> None:
    with pytest.raises(PodiumError):
        expires_at_s(noise)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_one_is_read_or_refused(changes: list[tuple[int, int]]) -> None:
    pem = bytearray(WHOLE)
    for place, byte in changes:
        pem[place % len(pem)] = byte
    with contextlib.suppress(PodiumError):
        expires_at_s(bytes(pem))
