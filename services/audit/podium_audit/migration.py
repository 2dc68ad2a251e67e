"""`podium-audit migrate`: changes the tables of the log ahead of the replicas of a new version."""

from pathlib import Path
from typing import Final

from pydantic import SecretStr

from podium_audit.ports import StoreError
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.settings_base import ProcessSettings, settings_config

MIGRATE: Final = ["migrate"]
"""The words of the command line."""


class MigrationSettings(ProcessSettings):
    """What the job is told; the settings of the same name that audit has."""

    model_config = settings_config("AUDIT")

    database_url: SecretStr
    """PostgreSQL database of the log."""
    database_owner_url: SecretStr = SecretStr("")
    """The same database as the user who owns the tables."""
    database_password_file: Path | None = None
    """File with the password of database_url's user."""
    key_database_url: SecretStr = SecretStr("")
    """Not used: the tables of wrapped keys belong to the user who writes them, and replicas make them."""


def migrate(settings: MigrationSettings) -> str:
    """Make or change the tables of the log; return what to say. Raises PodiumError."""
    try:
        from podium_audit.stores.postgres.log_store import Database, migrate_log  # noqa: PLC0415 - an extra's driver
    except ModuleNotFoundError:
        raise PodiumError(
            Code.INVALID_REQUEST,
            "migrating needs PostgreSQL's driver: install podium[postgres]",
            reason="POSTGRES_DRIVER_MISSING",
        ) from None
    database = Database(
        settings.database_url.get_secret_value(),
        lock_s=1.0,
        owner_url=settings.database_owner_url.get_secret_value(),
        password_file=settings.database_password_file,
    )
    try:
        migrate_log(database)
    except StoreError as error:
        raise PodiumError(
            Code.UNAVAILABLE, f"the tables cannot be changed: {error}", reason="MIGRATION_FAILED"
        ) from None
    return "the log's tables are those of this version\n"
