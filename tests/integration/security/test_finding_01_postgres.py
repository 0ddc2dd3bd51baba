# SPDX-License-Identifier: Apache-2.0
"""A service's role of Postgres, taken over: it becomes no superuser, gains no right, and reaches what privileges.tsv grants it.
First the function that was found, where the exploit works; then a new installation, and one restored by a superuser and handed over."""
import difflib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg2
import pytest

from tests.harness import privileges
from tests.harness.privileges import stentor, stentor_ok
from tests.harness.processes import HOME, Postgres

SERVICES = ["stentor_ingest", "stentor_gateway", "stentor_renderer", "stentor_dispatcher", "stentor_webhook", "stentor_webhook_receiver",
            "stentor_digest_flusher", "stentor_archiver", "stentor_order_saga", "stentor_cli"]
DENIED = "42501"

# The function of d9095a0, in short: it took any table, and a superuser owned it.
FOUND = """CREATE SCHEMA stentor; GRANT USAGE ON SCHEMA stentor TO PUBLIC;
    CREATE FUNCTION stentor.ensure_partitions(parent regclass, since timestamptz, until timestamptz) RETURNS integer
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
        AS $$ BEGIN
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)',
                       (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = parent), 'month', parent, since, since + interval '1 month');
        RETURN 1;
        END $$"""

# The review's, word by word.
EXPLOIT = [
    "CREATE FUNCTION pg_temp.pwn() RETURNS void VOLATILE LANGUAGE plpgsql AS $$ BEGIN"
    " IF current_user <> session_user THEN EXECUTE 'ALTER ROLE '||quote_ident(session_user)||' SUPERUSER'; END IF; END $$",
    "CREATE FUNCTION pg_temp.evil(ts timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_temp.pwn();"
    " RETURN ts; END $$",
    "CREATE TEMP TABLE trap (created_at timestamptz) PARTITION BY RANGE (pg_temp.evil(created_at))",
    "CREATE TEMP TABLE trap_d PARTITION OF trap DEFAULT",
    "INSERT INTO trap VALUES ('2020-01-01')",
    "SELECT stentor.ensure_partitions('trap', now(), now())",
]

# What no service may do, whatever its part is.
FORBIDDEN = [
    "CREATE SCHEMA own", "CREATE TABLE public.own ()", "CREATE TABLE stentor.own ()", "CREATE TABLE keys.own ()", "CREATE TABLE archiver.own ()",
    "CREATE TEMP TABLE own ()", "CREATE FUNCTION pg_temp.own() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION public.own() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE TYPE public.own AS ENUM ('a')",
    "CREATE EVENT TRIGGER own ON ddl_command_start EXECUTE FUNCTION stentor.tenants()", "CREATE PUBLICATION own",
    "SET ROLE postgres", "SET ROLE stentor_owner", "SET ROLE {other}", "SET ROLE pg_execute_server_program", "SET SESSION AUTHORIZATION postgres",
    "SELECT rolpassword FROM pg_authid", "SELECT * FROM pg_shadow", "SELECT pg_read_file('postgresql.conf')", "SELECT lo_import('/etc/hostname')",
    "SELECT pg_ls_dir('.')", "SELECT pg_reload_conf()",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'", "COPY (SELECT 1) TO PROGRAM 'true'", "COPY (SELECT 1) TO '/tmp/own'",
    "ALTER ROLE {me} SUPERUSER", "ALTER ROLE {me} CREATEROLE", "ALTER ROLE {me} BYPASSRLS", "ALTER ROLE {other} PASSWORD 'own'",
    "ALTER ROLE {other} SET search_path = own", "CREATE ROLE own", "DROP ROLE {other}", "GRANT stentor_owner TO {me}",
    "GRANT pg_execute_server_program TO {me}", "ALTER SYSTEM SET fsync = off", "ALTER DATABASE {database} SET search_path = own",
    "SET session_replication_role = replica", "ALTER FUNCTION stentor.tenants() SECURITY DEFINER",
    "ALTER TABLE keys.data_keys DISABLE ROW LEVEL SECURITY", "DROP POLICY tenant_isolation ON keys.data_keys",
    "ALTER TABLE archiver.notifications OWNER TO {me}", "CREATE TRIGGER own BEFORE INSERT ON archiver.notifications EXECUTE FUNCTION stentor.tenants()",
    "SELECT stentor.isolate('keys.data_keys')", "SELECT stentor.make_rebuild_schema('archiver', 'own', '{{positions}}')",
    "INSERT INTO stentor.migrations VALUES ('stentor', 9, 'own', '')", "ALTER DEFAULT PRIVILEGES FOR ROLE stentor_owner GRANT ALL ON TABLES TO {me}",
]

# Rows of two tenants, for each table of which a key alone makes a row.
TWO_TENANTS = [
    "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) SELECT t, substr(sha256(t::bytea), 1, 16), 1,"
    " decode(repeat('00', 60), 'hex') FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, status_rank) SELECT now(), 'ntf_' || t, t, 'email', 'sent', 5"
    " FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome)"
    " SELECT now(), 'ntf_' || t, 1, 'dat_' || t, t, 'email', 'smtp', 'accepted' FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner, lease_until, claimed_at)"
    " SELECT now(), 'ntf_' || t, 1, t, 'sent', 'o', now(), now() FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO ingest.idempotency_keys SELECT t, 's', 'k', '\\x00', 202, '', now() FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO ingest.accept_log (tenant_id, accepted_at, notification_ids, events) SELECT t, now(), '{}', '' FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO people.recipients (tenant_id, recipient_id, updated_at, sequence) SELECT t, 'rcp_' || t, now(), 1 FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload)"
    " SELECT t, t, 'ntf', 'retry', now(), 's', 'e', '' FROM unnest(ARRAY['acme', 'globex']) t",
    "INSERT INTO order_saga.inbox_state (message_id, consumer_id, tenant_id, correlation_id, event_type, sequence, received, receive_count, verdict,"
    " reason) SELECT t, 'c', t, gen_random_uuid(), 'e', 1, now(), 1, 'unmatched', '' FROM unnest(ARRAY['acme', 'globex']) t",
]


class Session:
    """A login that goes on after a refusal."""

    def __init__(self, postgres, role, database="stentor"):
        self.connection = psycopg2.connect(postgres.url(role, database))
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def rows(self, sql, *params):
        self.cursor.execute(sql, params or None)
        return self.cursor.fetchall() if self.cursor.description else []

    def refusal(self, sql):
        """The SQLSTATE; None: it was done."""
        try:
            self.cursor.execute(sql)
        except psycopg2.Error as error:
            return error.pgcode
        return None


def exploit(postgres, role, database):
    """(the statement that was refused or None, whether the role is a superuser now)"""
    refused = None
    with Session(postgres, role, database) as session:
        for statement in EXPLOIT:
            if session.refusal(statement) is not None:
                refused = statement
                break
    return refused, postgres.query("SELECT rolsuper FROM pg_roles WHERE rolname = %s", role, database=database)[0][0]


@pytest.fixture(scope="module")
def postgres():
    folder = Path(tempfile.mkdtemp(prefix="stentor-finding-01-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg").start()
    yield server
    server.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def fresh(postgres):
    privileges.install(postgres, "fresh")
    for statement in TWO_TENANTS:
        postgres.query(statement, database="fresh")
    return "fresh"


@pytest.fixture(scope="module")
def found(postgres, fresh):
    """The exploit works on the function that was found: this test's own proof that it would be seen. It leaves two superusers."""
    postgres.query("CREATE DATABASE found", database="postgres")
    postgres.query(FOUND, database="found")
    for role in ("stentor_archiver", "stentor_dispatcher"):
        assert exploit(postgres, role, "found") == (None, True)


@pytest.fixture(scope="module")
def restored(postgres, fresh, found):
    """A backup of the new installation, restored without its owners: everything belongs to the superuser. One function is another role's."""
    postgres.query("CREATE DATABASE restored", database="postgres")
    dump = subprocess.run(["pg_dump", "--no-owner", "-d", postgres.url("postgres", fresh)], check=True, capture_output=True).stdout
    subprocess.run(["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", postgres.url("postgres", "restored")], input=dump, check=True, capture_output=True)
    postgres.query("CREATE ROLE analyst; GRANT CREATE, USAGE ON SCHEMA archiver TO analyst; SET ROLE analyst;"
                   " CREATE FUNCTION archiver.count_all() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT 1::bigint'", database="restored")
    return "restored"


@pytest.fixture(scope="module")
def handed_over(postgres, restored):
    """The same database with what an operator does: the first try ends with what the incident left."""
    done = stentor(postgres, "migrate", "--bootstrap", role="postgres", database=restored)
    assert done.returncode == 1 and "role 'stentor_archiver' is a superuser: find out since when and why" in done.stderr, done.stderr
    assert "ALTER ROLE stentor_archiver NOSUPERUSER" in done.stderr
    postgres.query("ALTER ROLE stentor_archiver NOSUPERUSER; ALTER ROLE stentor_dispatcher NOSUPERUSER", database=restored)
    with Session(postgres, "postgres", restored) as busy:
        busy.rows("BEGIN; LOCK TABLE archiver.notifications IN ROW EXCLUSIVE MODE")
        done = stentor(postgres, "migrate", "--bootstrap", role="postgres", database=restored)
    assert done.returncode == 1 and "archiver.notifications is in use, nothing was changed: try again" in done.stderr, done.stderr
    assert postgres.query("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'digest_flusher'", database=restored) == [("postgres",)]
    steps = stentor_ok(postgres, "migrate", "--bootstrap", role="postgres", database=restored)
    assert "roles, rights and owner are set up" in steps and "0 applied" in steps
    return restored


@pytest.fixture(params=["handed_over", "fresh"])
def database(request):
    return request.getfixturevalue(request.param)


# ---- as whom migrations run ----


def test_finding_01_without_the_bootstrap_migrate_says_what_is_missing(postgres):
    postgres.query("CREATE DATABASE empty", database="postgres")
    for role, words in (("postgres", "'postgres' is a superuser"), ("stentor_owner", 'role "stentor_owner" does not exist')):
        done = stentor(postgres, "migrate", role=role, database="empty")
        assert done.returncode == 1 and words in done.stderr and "stentor migrate --bootstrap" in done.stderr, done.stderr
    postgres.query("CREATE ROLE guest LOGIN", database="postgres")
    done = stentor(postgres, "migrate", role="guest", database="empty")
    assert done.returncode == 1 and "permission denied" in done.stderr and "stentor migrate --bootstrap" in done.stderr, done.stderr
    done = stentor(postgres, "migrate", "--bootstrap", role="guest", database="empty")
    assert done.returncode == 1 and "bootstrap.sql" in done.stderr and "permission denied" in done.stderr, done.stderr
    assert postgres.query("SELECT to_regnamespace('stentor') IS NULL", database="empty") == [(True,)]


def test_finding_01_a_restored_database_is_refused_until_it_is_handed_over(postgres, restored):
    done = stentor(postgres, "migrate", role="postgres", database=restored)
    assert done.returncode == 1 and "'postgres' is a superuser" in done.stderr and "stentor migrate --bootstrap" in done.stderr


def owner_of_functions(postgres, database):
    """What `stentor doctor` says of it."""
    checks = json.loads(stentor(postgres, "doctor", "--json", role="stentor_cli", database=database).stdout)["checks"]
    return next((check["result"], check["text"]) for check in checks if check["check"] == "postgres owner")


def test_finding_01_doctor_knows_a_database_that_was_not_handed_over(postgres, restored):
    result, text = owner_of_functions(postgres, restored)
    assert result == "fail" and "functions run as a superuser" in text and "stentor migrate --bootstrap" in text


def test_finding_01_a_restored_database_is_handed_over_whole_and_once(postgres, handed_over):
    count = "SELECT (SELECT count(*) FROM archiver.notifications) + (SELECT count(*) FROM dispatcher.ledger)"
    assert postgres.query(count, database=handed_over) == [(4,)]
    theirs = postgres.query("SELECT proowner::regrole::text FROM pg_proc WHERE oid = 'archiver.count_all()'::regprocedure", database=handed_over)
    assert theirs == [("analyst",)], "a function of another role would run with the owner's rights"
    postgres.query("DROP FUNCTION archiver.count_all(); REVOKE ALL ON SCHEMA archiver FROM analyst", database=handed_over)
    assert owner_of_functions(postgres, handed_over) == ("ok", "no function runs as a superuser")
    before = privileges.of_stentor(postgres, handed_over)
    steps = stentor_ok(postgres, "migrate", "--bootstrap", role="postgres", database=handed_over)
    assert "0 applied" in steps and privileges.of_stentor(postgres, handed_over) == before
    assert "0 applied" in stentor_ok(postgres, "migrate", database=handed_over)


def test_finding_01_the_owner_is_no_superuser_and_cannot_become_one(postgres, database):
    with Session(postgres, "stentor_owner", database) as session:
        for statement in ("ALTER ROLE stentor_owner SUPERUSER", "CREATE ROLE own", "GRANT pg_execute_server_program TO stentor_owner",
                          "COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_read_file('postgresql.conf')", "SET ROLE stentor_ingest",
                          f"ALTER DATABASE {database} SET search_path = own", "ALTER ROLE stentor_dispatcher SET enable_seqscan = off"):
            assert session.refusal(statement) == DENIED, statement


def test_finding_01_settings_of_roles_are_the_bootstraps():
    """stentor_owner may not change another role, so no migration does."""
    bootstrap = (HOME / "migrations" / "bootstrap.sql").read_text()
    assert len([line for line in bootstrap.splitlines() if line.startswith("ALTER ROLE stentor_")]) == 4
    for path in (HOME / "migrations").glob("*/*.sql"):
        assert "ALTER ROLE" not in path.read_text(), path


# ---- who may do what ----


def test_finding_01_every_right_stands_in_the_table(postgres, handed_over, fresh):
    postgres.query("DROP FUNCTION IF EXISTS archiver.count_all(); REVOKE ALL ON SCHEMA archiver FROM analyst", database=handed_over)
    wanted = privileges.table()
    found = privileges.of_stentor(postgres, fresh) + privileges.of_application(postgres)
    difference = "\n".join(difflib.unified_diff(wanted, found, "migrations/privileges.tsv", "a new installation", lineterm="", n=0))
    assert not difference, f"{difference}\nif it has to be so: /usr/bin/python3 -m tests.harness.privileges"
    difference = "\n".join(difflib.unified_diff(privileges.of_stentor(postgres, fresh), privileges.of_stentor(postgres, handed_over),
                                                "a new installation", "one that was handed over", lineterm="", n=0))
    assert not difference, difference


def test_finding_01_definer_functions_have_a_search_path_and_no_public_caller():
    lines = [line.split("\t") for line in privileges.table()]
    definers = {name for kind, name, who, *rights in lines if kind == "function" and who == "owner" and "SECURITY DEFINER" in rights[0]}
    assert len(definers) > 30
    for kind, name, who, *rights in lines:
        if name in definers and who == "owner":
            assert rights[0] == "stentor_owner SECURITY DEFINER search_path=pg_catalog, pg_temp", name
        assert kind != "function" or who != "PUBLIC" or name == "stentor_outbox.wake()", name  # a trigger: it cannot be called
        # A table of the caller's is one that it chose by name: of those that take one, a service may call one, and that one looks.
        takes_relation = kind == "function" and any(word in name.split("(")[1] for word in ("regclass", "name", "oid"))
        assert not takes_relation or name not in definers or name.startswith("stentor.ensure_partitions(regclass"), name


@pytest.mark.parametrize("role", ["stentor_archiver", "stentor_dispatcher"])
def test_finding_01_the_exploit_gets_nowhere(postgres, database, role):
    assert exploit(postgres, role, database) == (EXPLOIT[0], False)
    # Where temporary tables are allowed after all, the function looks at what it is given.
    postgres.query(f"GRANT TEMPORARY ON DATABASE {database} TO {role}", database=database)
    try:
        assert exploit(postgres, role, database) == (EXPLOIT[-1], False)
        with Session(postgres, role, database) as session:
            session.rows("CREATE TEMP TABLE ledger (created_at timestamptz) PARTITION BY RANGE (created_at)")
            assert session.refusal("SELECT stentor.ensure_partitions('pg_temp.ledger', now(), now())") == DENIED
    finally:
        postgres.query(f"REVOKE TEMPORARY ON DATABASE {database} FROM {role}", database=database)


def test_finding_01_partitions_are_made_of_ones_own_tables_alone(postgres, database):
    calls = {"stentor_archiver": ["archiver.notifications", "archiver.delivery_attempts"], "stentor_dispatcher": ["dispatcher.ledger"]}
    every = {table for tables in calls.values() for table in tables}
    for role, tables in calls.items():
        with Session(postgres, role, database) as session:
            for table in tables:
                call = "SELECT stentor.ensure_partitions('%s', '2039-01-01Z', '2039-02-01Z')" % table
                made = 2 if role == "stentor_dispatcher" else 6  # one for each class
                assert session.rows(call) == [(made,)] and session.rows(call) == [(0,)]
                for time in ("-infinity", "infinity"):
                    session.rows("SET statement_timeout = '5s'")  # it went on for ever
                    assert session.refusal(f"SELECT stentor.ensure_partitions('{table}', '{time}', '{time}')") == "P0001"
            for table in every - set(tables) | {"digest_flusher.due_work", "pg_catalog.pg_class", "keys.data_keys", "archiver.notifications_record_y2039m01"}:
                assert session.refusal(f"SELECT stentor.ensure_partitions('{table}', now(), now())") == DENIED, (role, table)


@pytest.mark.parametrize("role", SERVICES)
def test_finding_01_a_service_does_nothing_that_it_was_not_granted(postgres, database, role):
    before = privileges.of_stentor(postgres, database)
    other = "stentor_cli" if role != "stentor_cli" else "stentor_ingest"
    with Session(postgres, role, database) as session:
        for statement in FORBIDDEN:
            assert session.refusal(statement.format(me=role, other=other, database=database)) == DENIED, statement
    with Session(postgres, "postgres", database) as admin:
        tables = admin.rows(
            "SELECT c.oid::regclass::text, quote_ident(a.attname), array(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p"
            " WHERE has_table_privilege(%s, c.oid, p)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON"
            " a.attrelid = c.oid AND a.attnum = 2 WHERE c.relkind IN ('r', 'p') AND n.nspname IN"
            " ('stentor', 'keys', 'ingest', 'dispatcher', 'digest_flusher', 'archive', 'archiver', 'people', 'order_saga')", role)
        functions = admin.rows(
            "SELECT p.oid::regprocedure::text, n.nspname || '.' || p.proname || '(' || array_to_string(array(SELECT 'NULL::' || t::regtype FROM"
            " unnest(p.proargtypes::oid[]) t), ', ') || ')', has_function_privilege(%s, p.oid, 'EXECUTE') FROM pg_proc p"
            " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef"
            " AND p.prorettype <> 'trigger'::regtype", role)  # no statement can call one of these
    assert len(tables) > 60 and len(functions) > 30
    statements = {"SELECT": "SELECT FROM {t}", "INSERT": "INSERT INTO {t} DEFAULT VALUES", "UPDATE": "UPDATE {t} SET {c} = NULL",
                  "DELETE": "DELETE FROM {t}", "TRUNCATE": "TRUNCATE {t}"}
    with Session(postgres, role, database) as session:
        for table, column, granted in tables:
            for privilege in statements.keys() - set(granted):
                statement = statements[privilege].format(t=table, c=column)
                assert session.refusal(statement) == DENIED, statement
        for name, call, granted in functions:
            if not granted:
                assert session.refusal(f"SELECT * FROM {call}") == DENIED, name
        # Handing on what it has: not refused by Postgres, but without an effect.
        session.refusal("GRANT ALL ON ALL TABLES IN SCHEMA keys TO PUBLIC")
        session.refusal("GRANT EXECUTE ON FUNCTION stentor.tenants() TO PUBLIC")
    assert privileges.of_stentor(postgres, database) == before


@pytest.mark.parametrize("role", SERVICES)
def test_finding_01_a_service_reads_the_tenants_that_it_names(postgres, database, role):
    seen = 0
    with Session(postgres, role, database) as session:
        for statement in TWO_TENANTS:
            table = statement.split()[2]
            session.rows("SET app.tenant_id = ''")
            if session.refusal(f"SELECT FROM {table}") == DENIED:
                continue
            seen += 1
            assert session.rows(f"SELECT tenant_id FROM {table}") == []
            session.rows("SET app.tenant_id = 'acme'")
            assert session.rows(f"SELECT DISTINCT tenant_id FROM {table}") == [("acme",)], table
            session.refusal("SET row_security = off")  # then Postgres refuses what a policy would have to cut
            assert session.refusal(f"SELECT FROM {table}") == DENIED
            session.rows("RESET row_security")
    assert seen >= {"stentor_webhook_receiver": 0, "stentor_webhook": 0, "stentor_archiver": 2, "stentor_order_saga": 2, "stentor_ingest": 4, "stentor_gateway": 2, "stentor_cli": 5}.get(role, 1)


def test_gateway_reads_people_and_writes_nothing_of_ingest(postgres, database):
    with Session(postgres, "stentor_gateway", database) as session:
        session.rows("SET app.tenant_id = 'acme'")
        assert session.rows("SELECT recipient_id FROM people.recipients") == [("rcp_acme",)]
        for table in ("recipients", "addresses", "preferences", "consents", "positions"):
            for statement in (f"INSERT INTO people.{table} DEFAULT VALUES", f"DELETE FROM people.{table}", f"TRUNCATE people.{table}"):
                assert session.refusal(statement) == DENIED, statement
        assert session.refusal("UPDATE people.recipients SET name = NULL") == DENIED
        assert session.refusal("UPDATE people.positions SET sequence = 0") == DENIED
        assert session.refusal("SELECT people.forget_lost_tail(1)") == DENIED
        assert session.refusal("DELETE FROM keys.data_keys") == session.refusal("UPDATE keys.data_keys SET wrapped = NULL") == DENIED
        assert session.refusal("SELECT keys.rewrap('{}', '{}', '{}', '{}')") == DENIED
        for table in ("ingest.accept_log", "ingest.idempotency_keys", "ingest.batches", "dispatcher.ledger", "archiver.notifications", "digest_flusher.due_work"):
            assert session.refusal(f"SELECT FROM {table}") == DENIED, table


def test_ingest_has_no_right_that_nothing_of_it_uses(postgres, database):
    with Session(postgres, "stentor_ingest", database) as session:
        session.rows("SET app.tenant_id = 'acme'")
        assert session.refusal("DELETE FROM people.addresses") is None  # the fold writes a record's addresses as a whole
        for statement in ("UPDATE people.addresses SET label = ''", "UPDATE ingest.batch_parts SET broken = 0", "DELETE FROM ingest.batch_parts",
                          "DELETE FROM people.positions", "UPDATE keys.data_keys SET wrapped = NULL", "DELETE FROM keys.data_keys",
                          "INSERT INTO keys.master_keys DEFAULT VALUES", "SELECT FROM stentor.migrations"):
            assert session.refusal(statement) == DENIED, statement


def test_finding_01_other_roles_of_the_cluster_do_not_enter(postgres, database):
    postgres.query("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN", database="postgres")
    with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
        Session(postgres, "stranger", database)
