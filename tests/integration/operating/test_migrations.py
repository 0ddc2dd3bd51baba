# SPDX-License-Identifier: Apache-2.0
"""C, section "CI": "pgtap smoke tests on the migration in an ephemeral Postgres" and "drizzle-kit check (no drift)" (row 33a)."""
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.harness.processes import BIN, HOME, Postgres

FILES = sorted((HOME / "tests" / "pgtap").glob("*.sql"))


@pytest.fixture(name="postgres", scope="module")
def _postgres():
    folder = Path(tempfile.mkdtemp(prefix="stentor-migrations-"))
    os.chmod(folder, 0o755)
    (folder / "postgres").mkdir()
    postgres = Postgres(folder / "postgres")
    postgres.start_installed()
    yield postgres
    postgres.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(name="databases", scope="module")
def _databases(postgres):
    """Of both kinds, with pgTAP: Stentor's own, and an application's."""
    postgres.query("CREATE DATABASE app", database="postgres")
    environment = {"PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME), "STENTOR_DATABASE_URL": postgres.url("postgres", "app")}
    mapping = HOME / "deploy/examples/outbox/memo.json"
    postgres.query((HOME / "deploy/examples/outbox/recipes/memo.sql").read_text(), database="app")
    done = subprocess.run([BIN / "stentor", "outbox", "install", "--mapping", mapping, "--as-superuser"], env=environment, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for database in ("stentor", "app"):
        postgres.query("CREATE EXTENSION pgtap", database=database)
    return {"outbox": "app"}


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_pgtap(postgres, databases, file):
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", "BEGIN", "-f", file, "-c", "ROLLBACK",
         postgres.url("postgres", databases.get(file.stem, "stentor"))], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line for part in done.stdout.splitlines() for line in part.split("|")]  # two tests of one row stand in one line
    passed = [line for line in lines if re.match(r"ok \d+", line)]
    assert [line for line in lines if line.startswith("not ok")] == [], done.stdout
    assert lines[-1] == f"1..{len(passed)}" and len(passed) > 4, done.stdout


def test_each_schema_of_the_migrations_has_a_pgtap_file():
    """C, section "CI": a schema without one would be smoke-tested by nothing."""
    named = {file.stem: set(re.findall(r"\('(\w+)'|\b(\w+)\.\w+", file.read_text())) for file in FILES}
    words = {word for pairs in named.values() for pair in pairs for word in pair}
    assert {folder.name for folder in (HOME / "migrations").iterdir() if folder.is_dir()} - words == set()


# ---- stentor migrate --check ----


def check(postgres, *words, superuser=True, database="stentor"):
    environment = {"PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME), "STENTOR_DATABASE_URL": postgres.url("stentor_owner", database)}
    if superuser:
        environment["STENTOR_SUPERUSER_URL"] = postgres.url("postgres")
    return subprocess.run([BIN / "stentor", "migrate", "--check", *words], env=environment, capture_output=True, text=True, timeout=60)


def found(done):
    return {step["what"]: step["result"] for step in map(json.loads, done.stdout.splitlines())}


def test_a_database_that_the_migrations_made_has_no_drift(postgres):
    done = check(postgres)
    assert done.returncode == 0 and re.fullmatch(r"database +\d{3,} objects are as the migrations make them\n", done.stdout), done.stderr
    assert postgres.query("SELECT count(*) FROM pg_database WHERE datname LIKE 'check%'", database="postgres") == [(0,)], "it leaves nothing"
    postgres.query("CREATE DATABASE check_of_stentor", database="postgres")  # as a killed check leaves it
    assert check(postgres).returncode == 0


DRIFT = [
    ("ALTER TABLE ingest.idempotency_keys ALTER response_body DROP NOT NULL",
     "column ingest.idempotency_keys.response_body", "is 'text collate default, rights default, storage x', should be 'text"
                                                     " collate default not null, rights default, storage x'"),
    ("ALTER TABLE ingest.idempotency_keys ADD note text", "column ingest.idempotency_keys.note", "is not of the migrations"),
    ("DROP INDEX dispatcher.ledger_open", "index dispatcher.ledger_open", "is missing"),
    ("CREATE INDEX quick ON keys.data_keys (created_at)", "index keys.quick", "is not of the migrations"),
    ("DROP POLICY tenant_isolation ON people.recipients", "policy people.recipients.tenant_isolation", "is missing"),
    ("ALTER TABLE people.recipients DISABLE ROW LEVEL SECURITY", "table people.recipients", "differs"),
    ("GRANT SELECT ON keys.data_keys TO stentor_webhook_receiver", "table keys.data_keys", "differs"),
    ("CREATE OR REPLACE FUNCTION stentor.tenants() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT NULL::text[]'",
     "function stentor.tenants()", "differs from what the migrations make"),
    ("ALTER TABLE dispatcher.ledger DROP CONSTRAINT ledger_settled", "constraint dispatcher.ledger.ledger_settled", "is missing"),
    ("DELETE FROM stentor.migrations WHERE schema = 'people' AND number = 1", "migration people/0001 people", "is missing"),
]


def test_the_check_names_each_object_that_differs(postgres):
    postgres.query("CREATE DATABASE drifted TEMPLATE stentor OWNER stentor_owner", database="postgres")
    postgres.query("; ".join(change for change, _, _ in DRIFT), database="drifted")
    done = check(postgres, "--json", database="drifted")
    said = found(done)
    assert done.returncode == 1, done.stderr
    for change, what, result in DRIFT:
        assert said.get(what, "").startswith(result), (change, said)
    assert set(said) == {what for _, what, _ in DRIFT}, "and nothing else"
    assert "database" not in said


def test_partitions_of_the_programs_are_no_drift(postgres):
    postgres.query("SELECT stentor.ensure_partitions('dispatcher.ledger', now() + interval '13 months', now() + interval '14 months')", database="stentor")
    assert check(postgres).returncode == 0


def test_without_a_superuser_the_check_says_what_it_needs(postgres):
    done = check(postgres, superuser=False)
    assert done.returncode == 1 and "the check needs a database of its own (HINT: STENTOR_SUPERUSER_URL)" in done.stderr
