"""Where pool and tenants come from: files by default, a cluster only when told, and its client only then."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from podium_audit.settings import AuditSettings
from podium_router.settings import RouterSettings

TLS: dict[str, Any] = {"tls_cert_file": "c", "tls_key_file": "k", "tls_ca_file": "a"}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"pool_source": "kubernetes"},
        {"pool_source": "kubernetes", "provider_keys_dir": "keys", "pool_file": "pool.yaml"},
        {"pool_file": "pool.yaml", "provider_keys_dir": "keys"},
        {"pool_source": "etcd", "pool_file": "pool.yaml"},
    ],
)
def test_a_router_has_one_source_of_workers(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RouterSettings(**TLS, **values)


@pytest.mark.parametrize("values", [{}, {"tenants_source": "kubernetes", "tenants_file": "tenants.yaml"}])
def test_audit_has_one_source_of_tenants(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="tenants_file"):
        AuditSettings(**TLS, data_dir=Path("data"), **values)


def test_files_are_the_default() -> None:
    settings = RouterSettings(**TLS, pool_file=Path("pool.yaml"))
    assert (settings.pool_source, settings.pool_file) == ("file", Path("pool.yaml"))


def test_who_reads_files_does_not_load_the_clusters_client() -> None:
    program = (
        "import sys, podium_router.__main__, podium_gateway.__main__, podium_audit.__main__;"
        "sys.exit(any(name.partition('.')[0] == 'kubernetes' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
