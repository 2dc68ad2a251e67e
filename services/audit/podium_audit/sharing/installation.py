"""Everything that replicas share in PostgreSQL, put together from the settings."""

from collections.abc import Callable

from podium_audit.key_ports import KeyWrapper
from podium_audit.settings import AuditSettings
from podium_audit.sharing.leases import SharedLeases
from podium_audit.sharing.meters import SharedMeters
from podium_audit.stores.postgres.anchors import PostgresAnchors
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.conversations import PostgresConversations
from podium_audit.stores.postgres.item_keys import PostgresItemKeys
from podium_audit.stores.postgres.leases import PostgresLeases
from podium_audit.stores.postgres.log_schema import WRITER
from podium_audit.stores.postgres.log_store import Database, PostgresStore
from podium_audit.stores.postgres.meters import PostgresMeters
from podium_audit.stores.postgres.pseudonyms import PostgresPseudonyms
from podium_audit.stores.postgres.run_keys import PostgresKeyReader, PostgresRunKeys
from podium_audit.stores.postgres.shelves import PostgresShelves
from podium_audit.stores.postgres.spans import PostgresSpans
from podium_audit.stores.readers import View
from podium_core.domain.clock import Clock
from podium_core.domain.limits import LimitName


class Installation:
    """Makes the parts of one replica; each has sessions of its own, connected when it is opened."""

    def __init__(self, settings: AuditSettings, wrapper: KeyWrapper) -> None:
        self._settings = settings
        self._wrapper = wrapper
        self._database = Database(
            settings.database_url.get_secret_value(),
            lock_s=settings.commit_wait_s,
            owner_url=settings.database_owner_url.get_secret_value(),
            password_file=settings.database_password_file,
        )

    def log_store(self) -> PostgresStore:
        """Return the writer's store."""
        return PostgresStore(self._database)

    def run_keys(self) -> PostgresRunKeys:
        """Return the keys, to hand out and to look up."""
        return PostgresRunKeys(self._key_session(), self._wrapper)

    def pseudonyms(self) -> PostgresPseudonyms:
        """Return the pseudonyms of the people that runs are for."""
        return PostgresPseudonyms(self._key_session())

    def conversations(self) -> PostgresConversations:
        """Return the conversation items."""
        return PostgresConversations(self._session(), PostgresItemKeys(self._key_session()))

    def shelves(self) -> PostgresShelves:
        """Return the months of the log, to be dropped whole."""
        return PostgresShelves(self._database.owner())

    def spans(self) -> PostgresSpans:
        """Return the spans that operators sent."""
        return PostgresSpans(self._session())

    def anchors(self) -> PostgresAnchors:
        """Return the anchors of checkpoints."""
        return PostgresAnchors(self._session())

    def view(self) -> View:
        """Open a view for one reading thread."""
        reader = self._database.reader()
        key_reader = PostgresKeyReader(self._key_session(), self._wrapper)

        def close() -> None:
            reader.close()
            key_reader.close()

        return View(reader, key_reader, close)

    def leases(self, clock: Clock) -> SharedLeases:
        """Return the leases of open runs."""
        settings = self._settings
        return SharedLeases(
            PostgresLeases(self._session()),
            PostgresLeases(self._session()),
            clock,
            default_ms=settings.lease_default_ms,
            max_ms=settings.lease_max_ms,
            wait_s=settings.commit_wait_s,
        )

    def meters(self, limit_of: Callable[[LimitName], int | None]) -> SharedMeters:
        """Return the meters of limits."""
        return SharedMeters(
            PostgresMeters(self._session()),
            limit_of,
            valid_ns=self._settings.limit_slice_ns,
            wait_s=self._settings.commit_wait_s,
        )

    def _session(self) -> Session:
        return self._database.session(WRITER)

    def _key_session(self) -> Session:
        settings = self._settings
        return Session(
            settings.key_database_url.get_secret_value(),
            wait_s=settings.commit_wait_s,
            password_file=settings.database_password_file,
            by_index=True,
        )
