"""The log's tables in PostgreSQL: who may do what to them, and what nobody may do.

Leaves and contents are split up by shelf (retention class and month), so that what is too old goes with its
partition. Whatever must be unique over all shelves stands in small tables that are not split: an event names
the shelf of its leaves. Writers may add; readers see one tenant; triggers refuse changes to everybody, the
tables' owner and replicated sessions among them.
"""

from typing import Final, LiteralString

from podium_audit.stores.postgres.migrations import Steps

WRITER: Final = "podium_audit_writer"
"""The role that adds to the log."""
READER: Final = "podium_audit_reader"
"""The role that reads one tenant's part of it: the one that `podium.tenant_id` names."""
MAX_LEAVES_PER_EVENT: Final = 256

_ROLES: tuple[LiteralString, ...] = (
    # Roles belong to the whole cluster: another database's migration may be making them at this moment.
    """DO $$
    DECLARE wanted text;
    BEGIN
        FOREACH wanted IN ARRAY ARRAY['podium_audit_writer', 'podium_audit_reader'] LOOP
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
                BEGIN
                    EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
                EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
                END;
            END IF;
            IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
                EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
            END IF;
        END LOOP;
        EXECUTE format(
            'GRANT USAGE ON SCHEMA %I TO podium_audit_writer, podium_audit_reader', current_schema());
    END $$""",
)

_TABLES: tuple[LiteralString, ...] = (
    """CREATE TABLE head (
        id smallint PRIMARY KEY CHECK (id = 1),
        size bigint NOT NULL,
        epoch bigint NOT NULL
    ) WITH (fillfactor = 50)""",
    "INSERT INTO head VALUES (1, 0, 0)",
    """CREATE TABLE shelves (shelf integer PRIMARY KEY, dropped_us bigint NOT NULL DEFAULT 0)""",
    """CREATE TABLE runs (
        run_no bigint PRIMARY KEY,
        run_id text NOT NULL UNIQUE,
        tenant_id text NOT NULL,
        principal_id text NOT NULL,
        kind text NOT NULL,
        requested_model text NOT NULL,
        key_no bigint NOT NULL,
        tenant_budget_usd_micros bigint,
        opened_us bigint NOT NULL,
        key_budget_usd_micros bigint,
        shelf integer NOT NULL
    )""",
    "CREATE INDEX runs_of_tenant ON runs (tenant_id, run_no)",
    "CREATE INDEX runs_of_principal ON runs (tenant_id, principal_id, run_no)",
    "CREATE TABLE open_runs (run_no bigint PRIMARY KEY REFERENCES runs (run_no))",
    """CREATE TABLE seals (
        run_no bigint PRIMARY KEY,
        sealed_us bigint NOT NULL,
        outcome text NOT NULL,
        cost_usd_micros bigint NOT NULL,
        attempt_count bigint NOT NULL,
        tenant_id text NOT NULL,
        shelf integer NOT NULL
    )""",
    """CREATE TABLE leaves (
        shelf integer NOT NULL,
        leaf_index bigint NOT NULL,
        run_no bigint,
        tenant_id text NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (shelf, leaf_index)
    ) PARTITION BY LIST (shelf)""",
    "CREATE INDEX leaves_of_run ON leaves (run_no, leaf_index) WHERE run_no IS NOT NULL",
    """CREATE TABLE events (
        event_id text PRIMARY KEY,
        digest bytea NOT NULL,
        first_index bigint NOT NULL UNIQUE,
        leaf_count integer NOT NULL,
        shelf integer NOT NULL
    )""",
    """CREATE TABLE contents (
        shelf integer NOT NULL,
        content_no bigint NOT NULL,
        chunk_no integer NOT NULL,
        tenant_id text NOT NULL,
        sealed bytea NOT NULL,
        PRIMARY KEY (shelf, content_no, chunk_no)
    ) PARTITION BY LIST (shelf)""",
    # Sealed bytes do not get shorter by packing them.
    "ALTER TABLE contents ALTER COLUMN sealed SET STORAGE EXTERNAL",
    """CREATE TABLE tiles (
        level integer NOT NULL,
        tile_index bigint NOT NULL,
        hashes bytea NOT NULL,
        PRIMARY KEY (level, tile_index)
    )""",
    "CREATE TABLE checkpoints (size bigint PRIMARY KEY, note text NOT NULL)",
    # Copies of the leaves about the log itself: they outlive their shelf, and are nobody's secret.
    "CREATE TABLE history (leaf_index bigint PRIMARY KEY, data bytea NOT NULL)",
    """CREATE TABLE leaf_counts (
        tenant_id text PRIMARY KEY,
        leaf_count bigint NOT NULL
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE settled (
        tenant_id text NOT NULL,
        month text NOT NULL,
        usd_micros bigint NOT NULL,
        PRIMARY KEY (tenant_id, month)
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE stops (
        tenant_id text NOT NULL,
        worker_id text NOT NULL,
        since_us bigint NOT NULL,
        PRIMARY KEY (tenant_id, worker_id)
    )""",
    """CREATE TABLE grade_tallies (
        tenant_id text NOT NULL,
        tier text NOT NULL,
        step_count bigint NOT NULL,
        grade_count bigint NOT NULL,
        sum_ppm bigint NOT NULL,
        sum_squares_ppm bigint NOT NULL,
        PRIMARY KEY (tenant_id, tier, step_count)
    )""",
    """CREATE TABLE uses (
        tenant_id text NOT NULL,
        day text NOT NULL,
        principal_id text NOT NULL,
        worker_id text NOT NULL,
        model text NOT NULL,
        requests bigint NOT NULL,
        attempts bigint NOT NULL,
        estimated_attempts bigint NOT NULL,
        unknown_attempts bigint NOT NULL,
        input_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        cached_input_tokens bigint NOT NULL,
        cache_write_input_tokens bigint NOT NULL,
        reasoning_output_tokens bigint NOT NULL,
        cost_usd_micros bigint NOT NULL,
        PRIMARY KEY (tenant_id, day, principal_id, worker_id, model)
    ) WITH (fillfactor = 70)""",
    "CREATE TABLE probe (id smallint PRIMARY KEY, filler bytea NOT NULL)",
)

_RIGHTS: tuple[LiteralString, ...] = (
    """GRANT SELECT, INSERT ON runs, seals, leaves, events, contents, checkpoints, history
        TO podium_audit_writer""",
    """GRANT SELECT, INSERT, UPDATE ON tiles, leaf_counts, settled, stops, grade_tallies, uses, probe
        TO podium_audit_writer""",
    "GRANT SELECT, UPDATE ON head TO podium_audit_writer",
    "GRANT SELECT ON shelves, podium_schema TO podium_audit_writer",
    "GRANT SELECT, INSERT, DELETE ON open_runs TO podium_audit_writer",
    "GRANT SELECT ON runs, seals, leaves, contents, uses, tiles, checkpoints, history TO podium_audit_reader",
    "GRANT SELECT (first_index, shelf) ON events TO podium_audit_reader",
    """DO $$
    DECLARE named text;
    BEGIN
        FOREACH named IN ARRAY ARRAY['runs', 'seals', 'leaves', 'contents', 'uses'] LOOP
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
            EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', named);
            EXECUTE format(
                'CREATE POLICY of_writer ON %I TO podium_audit_writer USING (true) WITH CHECK (true)', named);
            EXECUTE format('CREATE POLICY of_owner ON %I TO CURRENT_USER USING (true)', named);
            EXECUTE format(
                'CREATE POLICY of_reader ON %I FOR SELECT TO podium_audit_reader USING'
                ' (tenant_id = nullif(current_setting(''podium.tenant_id'', true), '''')'
                ' OR current_setting(''podium.tenant_id'', true) = ''*'')', named);
        END LOOP;
    END $$""",
)

_APPEND_ONLY: tuple[LiteralString, ...] = (
    """CREATE FUNCTION podium_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND TG_NARGS > 0 THEN
            IF EXISTS (SELECT FROM shelves WHERE shelf = OLD.shelf AND dropped_us > 0) THEN
                RETURN OLD;
            END IF;
        END IF;
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END $$""",
    # What is left of a shelf in the tables that are not split may go once the shelf is marked as dropped.
    """DO $$
    DECLARE named text; argument text;
    BEGIN
        FOR named, argument IN VALUES ('checkpoints', ''), ('history', ''), ('runs', '''shelf'''),
                ('seals', '''shelf'''), ('events', '''shelf''') LOOP
            EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I'
                ' FOR EACH ROW EXECUTE FUNCTION podium_append_only(%s)', named, argument);
            EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I'
                ' FOR EACH STATEMENT EXECUTE FUNCTION podium_append_only()', named);
            EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER append_only', named);
            EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER no_truncate', named);
        END LOOP;
        FOREACH named IN ARRAY ARRAY['leaves', 'contents'] LOOP
            EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I'
                ' FOR EACH STATEMENT EXECUTE FUNCTION podium_append_only()', named);
            EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER no_truncate', named);
        END LOOP;
    END $$""",
)

_TILE: tuple[LiteralString, ...] = (
    # The newest leaves have no tile yet. A reader of one tenant still needs the others' hashes, no more.
    """CREATE FUNCTION podium_leaf_hashes(first bigint, past bigint) RETURNS bytea LANGUAGE sql STABLE
        SECURITY DEFINER SET search_path FROM CURRENT AS $$
        SELECT coalesce(string_agg(sha256('\\x00'::bytea || data), ''::bytea ORDER BY leaf_index), ''::bytea)
        FROM leaves WHERE leaf_index >= first AND leaf_index < past AND shelf = ANY (ARRAY(
            SELECT shelf FROM events WHERE first_index > first - 256 AND first_index < past))
    $$""",
    "REVOKE ALL ON FUNCTION podium_leaf_hashes FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION podium_leaf_hashes TO podium_audit_writer, podium_audit_reader",
)

_CUSTODY: tuple[LiteralString, ...] = (
    """CREATE TABLE controls (
        tenant_id text NOT NULL,
        kind text NOT NULL,
        item_id text NOT NULL,
        stands boolean NOT NULL,
        body text NOT NULL,
        PRIMARY KEY (tenant_id, kind, item_id)
    )""",
    "CREATE INDEX controls_standing ON controls (tenant_id, kind, item_id) WHERE stands",
    # Numbers and ids of runs of every tenant: whoever finishes an erasure needs no more.
    """CREATE TABLE erasures (
        run_no bigint PRIMARY KEY,
        run_id text NOT NULL,
        tenant_id text NOT NULL,
        key_no bigint NOT NULL,
        begun_index bigint NOT NULL,
        erased_index bigint
    )""",
    "CREATE INDEX erasures_pending ON erasures (begun_index) WHERE erased_index IS NULL",
    """CREATE TABLE reads (
        leaf_index bigint PRIMARY KEY,
        tenant_id text NOT NULL,
        time_us bigint NOT NULL,
        principal_id text NOT NULL,
        action text NOT NULL,
        run_id text NOT NULL,
        with_content boolean NOT NULL,
        case_id text NOT NULL
    )""",
    "CREATE INDEX reads_of_tenant ON reads (tenant_id, leaf_index)",
    "GRANT SELECT, INSERT, UPDATE ON controls, erasures TO podium_audit_writer",
    "GRANT SELECT, INSERT ON reads TO podium_audit_writer",
    "GRANT DELETE ON contents TO podium_audit_writer",
    "GRANT SELECT ON controls, reads, erasures TO podium_audit_reader",
    """DO $$
    DECLARE named text;
    BEGIN
        FOREACH named IN ARRAY ARRAY['controls', 'reads'] LOOP
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
            EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', named);
            EXECUTE format(
                'CREATE POLICY of_writer ON %I TO podium_audit_writer USING (true) WITH CHECK (true)', named);
            EXECUTE format('CREATE POLICY of_owner ON %I TO CURRENT_USER USING (true)', named);
            EXECUTE format(
                'CREATE POLICY of_reader ON %I FOR SELECT TO podium_audit_reader USING'
                ' (tenant_id = nullif(current_setting(''podium.tenant_id'', true), ''''))', named);
        END LOOP;
    END $$""",
    # Content goes with its partition, or once its run's erasure is on record.
    """CREATE OR REPLACE FUNCTION podium_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND TG_NARGS > 0 THEN
            IF EXISTS (SELECT FROM shelves WHERE shelf = OLD.shelf AND dropped_us > 0) THEN
                RETURN OLD;
            END IF;
        END IF;
        IF TG_OP = 'DELETE' AND TG_TABLE_NAME LIKE 'contents%' THEN
            IF EXISTS (SELECT FROM leaves JOIN erasures USING (run_no) WHERE shelf = OLD.shelf
                    AND leaf_index = OLD.content_no / 256 AND erased_index IS NOT NULL) THEN
                RETURN OLD;
            END IF;
        END IF;
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END $$""",
    """CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON reads
        FOR EACH ROW EXECUTE FUNCTION podium_append_only()""",
    "ALTER TABLE reads ENABLE ALWAYS TRIGGER append_only",
)

_FACETS: tuple[LiteralString, ...] = (
    """CREATE TABLE run_facets (
        tenant_id text NOT NULL,
        facet text NOT NULL,
        value text NOT NULL,
        run_no bigint NOT NULL,
        PRIMARY KEY (tenant_id, facet, value, run_no)
    )""",
    """INSERT INTO run_facets
        WITH texts AS (
            SELECT runs.tenant_id, runs.run_no, outcome, requested_model,
                convert_from(data, 'UTF8')::jsonb AS leaf
            FROM leaves JOIN runs USING (run_no) JOIN seals USING (run_no))
        SELECT DISTINCT tenant_id, facet, value, run_no FROM texts, LATERAL (
            SELECT facet, value FROM (VALUES
                ('worker', leaf -> 'facts' ->> 'worker_id'),
                ('provider', leaf -> 'facts' ->> 'provider'),
                ('region', leaf -> 'facts' ->> 'region')) AS attempt (facet, value)
            WHERE leaf ->> 'type' = 'attempt_begun'
            UNION ALL SELECT 'rule', verdict ->> 'rule_id'
            FROM jsonb_array_elements(CASE WHEN leaf ->> 'type' = 'opened'
                THEN leaf -> 'facts' -> 'verdicts' ELSE '[]' END) AS verdict
            WHERE NOT (verdict ->> 'allowed')::boolean
            UNION ALL VALUES ('outcome', outcome), ('model', requested_model)) AS found
        WHERE value != ''""",
    "GRANT SELECT, INSERT ON run_facets TO podium_audit_writer",
    "GRANT SELECT ON run_facets TO podium_audit_reader",
    "ALTER TABLE run_facets ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE run_facets FORCE ROW LEVEL SECURITY",
    "CREATE POLICY of_writer ON run_facets TO podium_audit_writer USING (true) WITH CHECK (true)",
    "CREATE POLICY of_owner ON run_facets TO CURRENT_USER USING (true)",
    """CREATE POLICY of_reader ON run_facets FOR SELECT TO podium_audit_reader USING
        (tenant_id = nullif(current_setting('podium.tenant_id', true), ''))""",
    "DROP INDEX runs_of_tenant",
    "DROP INDEX runs_of_principal",
    "CREATE INDEX runs_of_tenant ON runs (tenant_id, run_no) INCLUDE (opened_us)",
    "CREATE INDEX runs_of_principal ON runs (tenant_id, principal_id, run_no) INCLUDE (opened_us)",
)

_SUBJECTS: tuple[LiteralString, ...] = (
    """CREATE TABLE subjects (
        tenant_id text NOT NULL,
        subject text NOT NULL,
        run_no bigint NOT NULL,
        PRIMARY KEY (tenant_id, subject, run_no)
    )""",
    "GRANT SELECT, INSERT ON subjects TO podium_audit_writer",
    "GRANT SELECT ON subjects TO podium_audit_reader",
    "ALTER TABLE subjects ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE subjects FORCE ROW LEVEL SECURITY",
    "CREATE POLICY of_writer ON subjects TO podium_audit_writer USING (true) WITH CHECK (true)",
    "CREATE POLICY of_owner ON subjects TO CURRENT_USER USING (true)",
    """CREATE POLICY of_reader ON subjects FOR SELECT TO podium_audit_reader
        USING (tenant_id = nullif(current_setting('podium.tenant_id', true), ''))""",
)

STEPS: Final[Steps] = (
    (*_ROLES, *_TABLES, *_RIGHTS, *_APPEND_ONLY, *_TILE),
    _CUSTODY,
    _FACETS,
    _SUBJECTS,
)
