"""Certificates that are renewed on disk while the service runs: new connections use the newest good pair.

cert-manager and others renew weeks before the end and never tell the process. A Secret mounted as a volume
changes all its files at once, by one rename; files written one after the other are taken once they match.
"""

import base64
import calendar
import logging
import re
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import grpc

from podium_core.domain.errors import Code, PodiumError
from podium_core.file_stamp import FileStamp, stamp_of
from podium_core.runtime.identity import TlsFiles

_log = logging.getLogger(__name__)
_Stamp = tuple[FileStamp | None, ...]
_CERTIFICATE: Final = re.compile(b"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_VERSION_TAG: Final = 0xA0
_UTC_TIME_TAG: Final = 0x17
_LONG_LENGTH: Final = 0x80
_CENTURY_TURNS: Final = 50


@dataclass(frozen=True, slots=True)
class Pems:
    """One good version: PEM bytes, and when the certificate ends (seconds since 1970)."""

    certificate: bytes
    key: bytes
    ca: bytes
    expires_at_s: int


class LiveTls:
    """The newest good version of a service's TLS files. May be asked from any thread."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files. Raises PodiumError when they cannot be used."""
        self.files = files
        self._lock = threading.Lock()
        # Before the content: a change in between is seen as a change later.
        self._stamp = _stamp(files)
        self._current = _load(files)

    def fresh(self) -> Pems:
        """Look at the files now; a version that cannot be used is logged once and changes nothing."""
        with self._lock:
            stamp = _stamp(self.files)
            if stamp != self._stamp:
                self._stamp = stamp
                self._look()
            return self._current

    def _look(self) -> None:
        file = str(self.files.cert_file)
        try:
            self._current = _load(self.files)
        except PodiumError as error:
            _log.error("kept the last good certificate: %s", error.message, extra={"file": file})
        else:
            _log.info("read a new certificate", extra={"file": file})


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Return what a gRPC server proves itself with, asking every client for a certificate of the same CA.

    Raises PodiumError when the files cannot be used now.
    """
    live = LiveTls(files)
    given = live.fresh()

    def renewed() -> Any:  # None, which the stubs do not know, means the same as before
        nonlocal given  # gRPC asks at each handshake, one at a time
        newest = live.fresh()
        if newest is given:
            return None
        given = newest
        return _configuration(newest)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(given), renewed, require_client_authentication=True
    )


def client_credentials(pems: Pems) -> grpc.ChannelCredentials:
    """Return what a client proves itself with, and whom it believes."""
    return grpc.ssl_channel_credentials(pems.ca, pems.key, pems.certificate)


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the same for a server of Python's own TLS.

    Raises PodiumError when the files cannot be used now.
    """
    live = LiveTls(files)
    given, newest = live.fresh(), _context(files)
    entry = newest

    def renew(connection: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        nonlocal given, newest
        pems = live.fresh()
        if pems is not given:
            try:
                given, newest = pems, _context(files)
            except (ssl.SSLError, OSError):  # replaced once more meanwhile: at the next handshake
                _log.info("a certificate changed while it was read", extra={"file": str(files.cert_file)})
        connection.context = newest

    entry.sni_callback = renew
    return entry


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.cert_file, files.key_file)
    context.load_verify_locations(files.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _configuration(pems: Pems) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pems.key, pems.certificate)], pems.ca)


def _load(files: TlsFiles) -> Pems:
    """Return what was checked: files that change between the look and the reading are no version yet."""
    before = files.read()
    files.check()
    if files.read() != before:
        raise PodiumError(
            Code.INVALID_REQUEST, "the TLS files change as they are read", reason="TLS_UNUSABLE"
        )
    certificate, key, ca = before
    return Pems(certificate, key, ca, expires_at_s(certificate))


def _stamp(files: TlsFiles) -> _Stamp:
    return tuple(stamp_of(path) for path in (files.cert_file, files.key_file, files.ca_file))


def expires_at_s(pem: bytes) -> int:
    """Return when the first certificate of a PEM file ends, in seconds since 1970.

    Raises PodiumError when there is none. Reads just as far into it (RFC 5280, 4.1) as that takes: a
    library for certificates would be the only use that most services had for it.
    """
    found = _CERTIFICATE.search(pem)
    try:
        whole = base64.b64decode(b"".join(found[1].split()), validate=True) if found else b""
        _, certificate, _ = _item(whole)
        _, fields, _ = _item(certificate)
        tag, _, rest = _item(fields)
        if tag == _VERSION_TAG:
            _, _, rest = _item(rest)  # the serial number
        for _ in ("signature", "issuer"):
            _, _, rest = _item(rest)
        _, validity, _ = _item(rest)
        _, _, rest = _item(validity)  # not before
        tag, moment, _ = _item(rest)
        return _seconds(tag, moment.decode("ascii"))
    except (ValueError, IndexError):
        raise PodiumError(
            Code.INVALID_REQUEST, "the TLS certificate is no X.509 certificate", reason="TLS_UNUSABLE"
        ) from None


def _item(der: bytes) -> tuple[int, bytes, bytes]:
    """Return (tag, content, what follows) of the first item; raise IndexError or ValueError."""
    tag, length, start = der[0], der[1], 2
    if length & _LONG_LENGTH:
        start += length & ~_LONG_LENGTH
        length = int.from_bytes(der[2:start])
    if len(der) < start + length:
        raise ValueError("cut off")
    return tag, der[start : start + length], der[start + length :]


def _seconds(tag: int, moment: str) -> int:
    if tag == _UTC_TIME_TAG:  # two digits of the year, RFC 5280, 4.1.2.5.1
        moment = ("20" if int(moment[:2]) < _CENTURY_TURNS else "19") + moment
    return calendar.timegm(time.strptime(moment, "%Y%m%d%H%M%SZ"))
