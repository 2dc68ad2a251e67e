"""The log's tables. `user_version` counts schema versions; an unknown one is refused, never guessed at."""

from podium_audit.stores import sqlite_custody

SCHEMA_VERSION = 8

_STOPS = """CREATE TABLE stops (
        tenant_id TEXT NOT NULL,
        worker_id TEXT NOT NULL,
        since_us INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, worker_id)
    ) STRICT, WITHOUT ROWID"""

_GRADE_TALLIES = """CREATE TABLE grade_tallies (
        tenant_id TEXT NOT NULL,
        tier TEXT NOT NULL,
        step_count INTEGER NOT NULL,
        grade_count INTEGER NOT NULL,
        sum_ppm INTEGER NOT NULL,
        sum_squares_ppm INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, tier, step_count)
    ) STRICT, WITHOUT ROWID"""

_USES = """CREATE TABLE uses (
        tenant_id TEXT NOT NULL,
        day TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        worker_id TEXT NOT NULL,
        model TEXT NOT NULL,
        requests INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        estimated_attempts INTEGER NOT NULL,
        unknown_attempts INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_input_tokens INTEGER NOT NULL,
        cache_write_input_tokens INTEGER NOT NULL,
        reasoning_output_tokens INTEGER NOT NULL,
        cost_usd_micros INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, day, principal_id, worker_id, model)
    ) STRICT, WITHOUT ROWID"""

_KEY_BUDGET = "ALTER TABLE runs ADD COLUMN key_budget_usd_micros INTEGER"

_FACETS = """CREATE TABLE run_facets (
        tenant_id TEXT NOT NULL,
        facet TEXT NOT NULL,
        value TEXT NOT NULL,
        run_no INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, facet, value, run_no)
    ) STRICT, WITHOUT ROWID"""

_RUN_INDEXES = (
    "CREATE INDEX runs_of_tenant ON runs (tenant_id, run_no, opened_us)",
    "CREATE INDEX runs_of_principal ON runs (tenant_id, principal_id, run_no, opened_us)",
)


def _facets_of(facet: str, table: str, value: str, where: str) -> str:
    """Return what fills one facet of the runs of an older log from its leaves."""
    return (
        "WITH texts AS (SELECT run_no, CAST(data AS TEXT) AS text FROM leaves WHERE run_no IS NOT NULL)"  # noqa: S608 - constants
        f" INSERT OR IGNORE INTO run_facets SELECT runs.tenant_id, '{facet}', {value} AS value, runs.run_no"
        f" FROM runs JOIN seals USING (run_no) {table} WHERE {where} AND value != ''"
    )


_ATTEMPTS = "JOIN texts ON texts.run_no = runs.run_no"
_IS_ATTEMPT = "json_extract(text, '$.type') = 'attempt_begun'"
_FILL_FACETS = (
    *(
        _facets_of(facet, _ATTEMPTS, f"json_extract(text, '$.facts.{name}')", _IS_ATTEMPT)
        for facet, name in (("worker", "worker_id"), ("provider", "provider"), ("region", "region"))
    ),
    _facets_of(
        "rule",
        f"{_ATTEMPTS} JOIN json_each(text, '$.facts.verdicts') AS verdict",
        "json_extract(verdict.value, '$.rule_id')",
        "json_extract(text, '$.type') = 'opened' AND NOT json_extract(verdict.value, '$.allowed')",
    ),
    _facets_of("outcome", "", "outcome", "1"),
    _facets_of("model", "", "requested_model", "1"),
)

STEPS = {
    1: (_STOPS,),
    2: (_USES,),
    3: (_GRADE_TALLIES,),
    4: (_KEY_BUDGET,),
    5: (*sqlite_custody.STATEMENTS, sqlite_custody.FILL_READS),
    6: (
        _FACETS,
        "DROP INDEX runs_of_tenant",
        "DROP INDEX runs_of_principal",
        *_RUN_INDEXES,
        *_FILL_FACETS,
    ),
    7: (sqlite_custody.SUBJECTS,),
}
"""By the version they start from: what brings an older log to the next version."""

STATEMENTS = (
    """CREATE TABLE runs (
        run_no INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        tenant_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        requested_model TEXT NOT NULL,
        key_no INTEGER NOT NULL,
        tenant_budget_usd_micros INTEGER,
        opened_us INTEGER NOT NULL,
        key_budget_usd_micros INTEGER
    ) STRICT""",
    *_RUN_INDEXES,
    _FACETS,
    """CREATE TABLE open_runs (run_no INTEGER PRIMARY KEY REFERENCES runs (run_no)) STRICT""",
    """CREATE TABLE seals (
        run_no INTEGER PRIMARY KEY REFERENCES runs (run_no),
        sealed_us INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        cost_usd_micros INTEGER NOT NULL,
        attempt_count INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE leaves (
        leaf_index INTEGER PRIMARY KEY,
        run_no INTEGER REFERENCES runs (run_no),
        data BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX leaves_of_run ON leaves (run_no) WHERE run_no IS NOT NULL",
    """CREATE TABLE events (
        event_id TEXT PRIMARY KEY,
        digest BLOB NOT NULL,
        first_index INTEGER NOT NULL REFERENCES leaves (leaf_index),
        leaf_count INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE TABLE contents (content_no INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT",
    """CREATE TABLE tiles (
        level INTEGER NOT NULL,
        tile_index INTEGER NOT NULL,
        hashes BLOB NOT NULL,
        PRIMARY KEY (level, tile_index)
    ) STRICT""",
    "CREATE TABLE checkpoints (size INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT",
    """CREATE TABLE leaf_counts (
        tenant_id TEXT PRIMARY KEY,
        leaf_count INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE settled (
        tenant_id TEXT NOT NULL,
        month TEXT NOT NULL,
        usd_micros INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, month)
    ) STRICT, WITHOUT ROWID""",
    _STOPS,
    _GRADE_TALLIES,
    _USES,
    *sqlite_custody.STATEMENTS,
    sqlite_custody.SUBJECTS,
    "CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB NOT NULL) STRICT",
    *(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for table in ("leaves", "events", "checkpoints", "seals")
        for verb in ("UPDATE", "DELETE")
    ),
)
