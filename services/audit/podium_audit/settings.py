"""Everything audit can be told, as environment variables `PODIUM_AUDIT_*`."""

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from podium_core.resources.settings import TenantsSettings
from podium_core.runtime.settings_base import GrpcServiceSettings, check_listen, settings_config

Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
ByteCount = Annotated[int, Field(ge=1_024, le=60 * 1024 * 1024)]
_MS_PER_S = 1_000
_NS_PER_S = 1_000_000_000


def _check_origin(value: str) -> str:
    if not value or any(character.isspace() or character == "+" for character in value):
        raise ValueError("an origin must not be empty or hold spaces or plus signs")
    return value


def _check_optional_listen(value: str) -> str:
    return check_listen(value) if value else value


def _check_database(value: SecretStr) -> SecretStr:
    """Refuse a URL that would let records cross a network in the clear without saying so."""
    text = value.get_secret_value()
    if not text:
        return value
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        raise ValueError("a database URL must look like postgresql://user@host:5432/database") from None
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise ValueError("a database URL must look like postgresql://user@host:5432/database")
    if host not in ("", "127.0.0.1", "::1", "localhost") and "sslmode" not in parse_qs(parts.query):
        raise ValueError("the database is on another machine: say sslmode=verify-full in its URL")
    return value


class AuditSettings(TenantsSettings, GrpcServiceSettings):
    """Audit: writes the tamper-evident log, gives permits, keeps budgets, answers auditors."""

    model_config = settings_config("AUDIT")

    listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7053"
    """host:port of the gRPC server that the other services write to."""
    http_listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:8081"
    """host:port of the HTTP server that people read from."""
    data_dir: Path
    """Directory of the databases that are files. A local file system, not a network one."""
    database_url: Annotated[SecretStr, AfterValidator(_check_database)] = SecretStr("")
    """PostgreSQL database of the log, such as postgresql://podium@db/podium?sslmode=verify-full, for several
    replicas. Empty: a file in data_dir, for one."""
    database_password_file: Path | None = None
    """File with the password of both databases' users, read for each connection. Else the URLs hold it."""
    database_owner_url: Annotated[SecretStr, AfterValidator(_check_database)] = SecretStr("")
    """The same database as the user who owns the log's tables. Empty: database_url's user does, and so may
    take away the triggers that keep the log from being changed."""
    key_database_url: Annotated[SecretStr, AfterValidator(_check_database)] = SecretStr("")
    """PostgreSQL database of the runs' wrapped keys, apart from the log's. Needed with database_url."""
    keys_dir: Path | None = None
    """Directory of the signing key, the key-encryption key and the newest checkpoint. Keep it apart from
    data_dir and back it up apart. Default: `keys` within data_dir, for trying things out."""
    checkpoint_dir: Path | None = None
    """Directory of the newest checkpoint, each replica's own, where keys_dir cannot be written to, such as a
    mounted Secret. Default: keys_dir."""
    tenants_poll_s: Seconds = 1.0
    """How often the tenants file is looked at, in seconds; each read looks too."""
    origin: Annotated[str, AfterValidator(_check_origin)] = "podium.local/audit"
    """The log's name in every checkpoint. It can never change for a log."""
    commit_wait_s: Seconds = 2.0
    """Longest wait for a commit; after it the caller is refused and dispatches nothing."""
    queue_bound: Count = 8_192
    """Commands that may wait for a commit; more are refused at once."""
    batch_limit: Annotated[int, Field(ge=1, le=4_096)] = 256
    """Commands that one commit makes durable at most."""
    seal_wait_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    """How long a seal waits for attempts that are ending before it counts them as unknown."""
    lease_default_s: Seconds = 15.0
    """Lease of a run that asks for none, and of every open run after a restart."""
    lease_max_s: Seconds = 120.0
    """Longest lease a run can ask for."""
    reap_interval_s: Seconds = 1.0
    """How often lapsed runs are looked for."""
    limit_slice_s: Annotated[float, Field(ge=0.5, le=60)] = 5.0
    """How long a gateway may use a slice of a limit. So long a limit's rest may lie with a gateway that does
    not need it, and so long the runs of a gateway that is gone keep their places."""
    max_content_bytes: ByteCount = 32 * 1024 * 1024
    """Largest content part."""
    max_buffered_bytes: Annotated[int, Field(ge=1_024, le=4 * 1024**3)] = 128 * 1024 * 1024
    """Content that may be on its way in at once; more is refused for the moment."""
    max_item_bytes: ByteCount = 32 * 1024 * 1024
    """Largest conversation item: a stored answer, the context of a tool call."""
    sweep_interval_s: Seconds = 30.0
    """How often expired conversation items are deleted; from their expiry on nobody gets them anyway."""
    otlp_grpc_listen: Annotated[str, AfterValidator(_check_optional_listen)] = ""
    """host:port that takes spans over OTLP/gRPC with mutual TLS, usually port 4317. Empty: none are taken."""
    otlp_http_listen: Annotated[str, AfterValidator(_check_optional_listen)] = ""
    """host:port that takes spans over OTLP/HTTP with mutual TLS, usually port 4318. Empty: none are taken."""
    spans_kept_days: Annotated[int, Field(ge=1, le=3_650)] = 30
    """How long spans are kept. They are for operators: no record of the log depends on them."""
    expiry_interval_s: Seconds = 300.0
    """How often the retention of tenants.yaml is taken over, and what has expired is erased."""
    key_backup_days: Annotated[int, Field(ge=0, le=366)] = 7
    """How long backups of run-keys.db are kept, in days. So long after an erasure somebody who holds such a
    backup and the key-encryption key could still undo it; every erasure states it."""
    checkpoint_interval_s: Seconds = 0.5
    """How often the newest checkpoint is written beside the signing key."""
    witnesses_file: Path | None = None
    """File with a line `witness <name> <vkey> <url>` (C2SP tlog-policy) for each witness to ask."""
    witness_interval_s: Seconds = 5.0
    """How often each witness is asked while the log grows."""
    anchor_dir: Path | None = None
    """Directory on storage that overwrites nothing (WORM, object lock); checkpoints are written there."""
    time_stamp_url: str = ""
    """RFC 3161 authority that time-stamps checkpoints. Needs the extra `timestamps`. Empty: none."""
    time_stamp_roots_file: Path | None = None
    """PEM file with the root certificates that the authority's answers are checked against."""
    anchor_interval_s: Seconds = 300.0
    """How often a checkpoint is written to anchor_dir and time-stamped while the log grows."""
    drain_s: Seconds = 5.0
    """How long calls under way may take when the service stops."""

    @property
    def keys(self) -> Path:
        """Where the keys are."""
        return self.keys_dir if self.keys_dir is not None else self.data_dir / "keys"

    @property
    def checkpoints(self) -> Path:
        """Where the newest checkpoint is."""
        return self.checkpoint_dir if self.checkpoint_dir is not None else self.keys

    @property
    def takes_spans(self) -> bool:
        """Whether an address for spans is set."""
        return bool(self.otlp_grpc_listen or self.otlp_http_listen)

    @property
    def lease_default_ms(self) -> int:
        """The default lease in milliseconds."""
        return round(self.lease_default_s * _MS_PER_S)

    @property
    def lease_max_ms(self) -> int:
        """The longest lease in milliseconds."""
        return round(self.lease_max_s * _MS_PER_S)

    @property
    def limit_slice_ns(self) -> int:
        """How long a slice lasts in nanoseconds."""
        return round(self.limit_slice_s * _NS_PER_S)

    @model_validator(mode="after")
    def _check_databases(self) -> Self:
        if bool(self.database_url.get_secret_value()) != bool(self.key_database_url.get_secret_value()):
            raise ValueError("set both database_url and key_database_url, or neither")
        if self.database_owner_url.get_secret_value() and not self.database_url.get_secret_value():
            raise ValueError("database_owner_url needs database_url")
        return self
