"""Certificates for tests."""

from pathlib import Path

from podium_cli.local_ca import service_files
from podium_core.runtime.identity import TlsFiles


def tls_of(tls_dir: Path, service: str) -> TlsFiles:
    """Return the TLS files of `service` in the session's `tls_dir`."""
    return service_files(tls_dir, service)
