"""Where pool and tenants are read from: files, or the objects of a cluster."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants
from podium_core.runtime.settings_base import ServiceSettings

_Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
_SourceName = Literal["file", "kubernetes"]


class ClusterSettings(ServiceSettings):
    """Which cluster, where a source is `kubernetes`."""

    cluster_namespace: str = ""
    """With a source kubernetes: the namespace whose objects are read. Empty: the pod's own."""
    cluster_kubeconfig_file: Path | None = None
    """With a source kubernetes: the kubeconfig file of the cluster. Empty: the pod's service account."""
    cluster_status_s: _Seconds = 10.0
    """With a source kubernetes: how often the status of objects is brought up to date, in seconds."""


class TenantsSettings(ClusterSettings):
    """Where tenants are read from."""

    tenants_source: _SourceName = "file"
    """file: tenants_file. kubernetes: the Tenant and Policy objects of a cluster (docs/kubernetes.md)."""
    tenants_file: Path | None = None
    """tenants.yaml: who may call. A change is taken up without a restart. Needed with tenants_source=file."""

    def check(self) -> None:
        """Read the tenants' file, if that is the source."""
        super().check()
        if self.tenants_file is not None:
            load_tenants(self.tenants_file)

    @model_validator(mode="after")
    def _has_its_tenants(self) -> Self:
        if (self.tenants_source == "file") != (self.tenants_file is not None):
            raise ValueError("set tenants_file with tenants_source=file, and only then")
        return self


class PoolSettings(ClusterSettings):
    """Where the pool is read from."""

    pool_source: _SourceName = "file"
    """file: pool_file. kubernetes: the Worker objects of a cluster (docs/kubernetes.md)."""
    pool_file: Path | None = None
    """pool.yaml: the workers. A change is taken up without a restart. Needed with pool_source=file."""
    pool_poll_s: _Seconds = 1.0
    """How often the pool file is looked at, in seconds."""
    provider_keys_dir: Path | None = None
    """Directory where the Secret with the provider keys is mounted. Needed with pool_source=kubernetes."""
    pool_status_lease: str = ""
    """With pool_source=kubernetes: the Lease that decides which router writes the status of workers. Empty:
    every router does, which suits one."""

    def check(self) -> None:
        """Read the pool's file, if that is the source."""
        super().check()
        if self.pool_file is not None:
            load_pool(self.pool_file)

    @model_validator(mode="after")
    def _has_its_pool(self) -> Self:
        if (self.pool_source == "file") != (self.pool_file is not None):
            raise ValueError("set pool_file with pool_source=file, and only then")
        if (self.pool_source == "kubernetes") != (self.provider_keys_dir is not None):
            raise ValueError("set provider_keys_dir with pool_source=kubernetes, and only then")
        return self
