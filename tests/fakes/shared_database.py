"""A PostgreSQL database with everything that replicas of audit share in it."""

from podium_audit.stores.postgres.log_store import Database, PostgresStore


def shared_database(url: str) -> Database:
    """Return the way to a database, its tables made."""
    database = Database(url, lock_s=5)
    store = PostgresStore(database)
    store.open()
    store.close()
    return database
