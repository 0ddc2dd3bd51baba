# SPDX-License-Identifier: Apache-2.0
"""`stentor outbox`: Stentor's tables beside an application's, whether a mapping fits, what waits, and once more."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from tests.harness.processes import BIN, HOME, Postgres

EXAMPLES = HOME / "deploy/examples/outbox"
RELAY = "shop_relay"
OWNER = "shop_owner"

MEMO = """
create table memos (id uuid primary key default gen_random_uuid(), title varchar(500) not null);
create table email_outbox (
    id uuid primary key default gen_random_uuid(),
    memo_id uuid not null references memos(id),
    event_type varchar(100) not null,
    payload jsonb not null,
    recipient_email varchar(255) not null,
    notification_type varchar(100) not null,
    status varchar(20) default 'PENDING' not null,
    retry_count integer default 0 not null,
    last_attempt_at timestamptz,
    sent_at timestamptz,
    error_message text,
    idempotency_key varchar(100),
    meta_created_at timestamptz default now() not null,
    meta_updated_at timestamptz
);
insert into memos (id, title) values ('11111111-1111-1111-1111-111111111111', 'T');
"""

HOTEL = """
create schema notification;
create table notification.outbox (id text primary key, tenant_id text not null, subject text not null, payload jsonb not null,
    envelope jsonb not null, ordering_key text not null, enqueued_at timestamptz not null default now(), published_at timestamptz,
    publish_attempts integer not null default 0, last_error text);
create index outbox_pending on notification.outbox (enqueued_at) where published_at is null;
"""


@pytest.fixture(scope="module")
def postgres():
    folder = tempfile.mkdtemp(prefix="stentor-outbox.")
    server = Postgres(folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres):
    """A database of its own, with E's and C's tables and a role for the relay."""
    postgres.query("DROP DATABASE IF EXISTS shop WITH (FORCE)", database="postgres")
    for role in (RELAY, OWNER):
        postgres.query(f"DROP ROLE IF EXISTS {role}", database="postgres")
        postgres.query(f"CREATE ROLE {role} LOGIN", database="postgres")
    postgres.query(f"GRANT {RELAY} TO {OWNER}", database="postgres")
    postgres.query(f"CREATE DATABASE shop OWNER {OWNER}", database="postgres")
    database = Database(postgres)
    database.sql(f"SET ROLE {OWNER};" + MEMO + HOTEL)
    return database


class Database:
    def __init__(self, postgres):
        self.postgres = postgres

    def sql(self, text):
        return self.postgres.query(text, database="shop")

    def run(self, *words, mapping="memo", role=OWNER):
        path = mapping if os.path.isabs(str(mapping)) else EXAMPLES / f"{mapping}.json"
        return subprocess.run(
            [BIN / "stentor", "outbox", *words, "--mapping", path], capture_output=True, text=True, timeout=60,
            env={"STENTOR_DATABASE_URL": self.postgres.url(database="shop", role=role), "STENTOR_HOME": str(HOME)})

    def ok(self, *words, mapping="memo"):
        done = self.run(*words, mapping=mapping)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *words, mapping="memo"):
        return json.loads(self.ok(*words, "--json", mapping=mapping))

    def mail(self, status="PENDING", error=None):
        return self.postgres.query(
            "INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type, status, error_message)"
            " VALUES ('11111111-1111-1111-1111-111111111111', 'e', '{}', 'a@b.c', 'N', %s, %s) RETURNING id::text",
            status, error, database="shop")[0][0]


def test_install_is_safe_to_repeat_and_gives_the_relay_what_it_needs(database):
    files = len(list((HOME / "migrations" / "stentor_outbox").glob("*.sql")))
    assert f"{files} applied" in database.ok("install", "--role", RELAY)
    assert f"0 applied, {files} were there" in database.ok("install", "--role", RELAY, "--wake")
    steps = [json.loads(line) for line in database.ok("install", "--role", RELAY, "--wake", "--json").splitlines()]
    assert {"step": f"role {RELAY}", "result": "may relay"} in steps
    assert database.run("check", "--role", RELAY).returncode == 0
    assert database.sql("SELECT count(*) FROM pg_trigger WHERE tgname = 'stentor_outbox_wake_memo'")[0][0] == 1
    database.mail()  # the trigger runs


def test_finding_01_install_makes_nothing_that_a_superuser_owns_without_the_option(database):
    for command in (["install"], ["check"], ["show"], ["retry", "--failed"]):
        done = database.run(*command, role="postgres")
        assert done.returncode == 1 and "'postgres' is a superuser" in done.stderr and "--as-superuser" in done.stderr, done.stderr
    assert database.sql("SELECT to_regnamespace('stentor_outbox') IS NULL") == [(True,)]
    database.ok("install", "--role", RELAY)
    owners = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'stentor_outbox'::regnamespace"
    assert database.sql(owners) == [(OWNER,)]
    assert database.run("install", "--as-superuser", role="postgres").returncode == 0
    # What an older release had a superuser make is handed over by the file that the bootstrap runs.
    database.sql("ALTER TABLE stentor_outbox.claims OWNER TO postgres; ALTER FUNCTION stentor_outbox.wake() OWNER TO postgres")
    database.sql(f"BEGIN; SET stentor.new_owner = {OWNER}; SET stentor.schemas = 'stentor,stentor_outbox';"
                 + (HOME / "migrations/hand_over.sql").read_text() + "COMMIT")
    assert database.sql(owners) == [(OWNER,)]
    database.ok("install", "--role", RELAY, "--wake")


def test_check_names_everything_that_is_missing(database):
    done = database.run("check")
    assert done.returncode == 1
    assert "table 'stentor_outbox.claims' is missing (of Stentor) (HINT: stentor outbox install --mapping FILE)" in done.stdout
    database.ok("install")
    database.sql("ALTER TABLE email_outbox DROP COLUMN sent_at, ALTER COLUMN retry_count TYPE text")
    reported = json.loads(database.run("check", "--json").stdout)
    assert reported["fits"] is False and reported["mapping"] == "memo"
    assert "column 'sent_at' of table 'public.email_outbox' is missing (mapping field moments.sent.sent_at)" in reported["problems"]
    assert ("column 'retry_count' of table 'public.email_outbox' is text, not a number (mapping field moments.retrying.retry_count)"
            in reported["problems"])
    reported = json.loads(database.run("check", "--json", mapping="bookworm").stdout)  # A's table is not there at all
    assert reported["problems"] == ["table 'public.outboxes' is missing (mapping field id)"]


def changed(tmp_path, change):
    mapping = json.loads((EXAMPLES / "memo.json").read_text())
    change(mapping)
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(mapping))
    return path


@pytest.mark.parametrize("change, words", [
    (lambda m: m["moments"]["sent"].update(status="posted"), 'moments.sent: postgres: invalid input value for enum mail_status: "posted"'),
    (lambda m: m["moments"]["failed"].update(retry_count="many"),
     'moments.failed: postgres: invalid input syntax for type integer: "many"'),
    (lambda m: m["fields"].update(to="retry_count->who"),
     "column 'retry_count' of table 'public.email_outbox' is integer, not JSON or text (mapping field fields.to)"),
    (lambda m: m["fields"].update(variables="meta_created_at"),
     "column 'meta_created_at' of table 'public.email_outbox' is timestamp with time zone, not JSON or text (mapping field fields.variables)"),
])
def test_check_tries_what_is_written_and_wants_json_where_it_is_read(database, tmp_path, change, words):
    database.sql("CREATE TYPE mail_status AS ENUM ('PENDING', 'SENDING', 'SENT', 'FAILED')")
    database.sql("ALTER TABLE email_outbox ALTER status DROP DEFAULT, ALTER status TYPE mail_status USING status::mail_status")
    database.ok("install")
    database.ok("check", mapping=changed(tmp_path, lambda m: None))
    done = database.run("check", mapping=changed(tmp_path, change))
    assert (done.returncode, done.stdout) == (1, words + "\n")


def test_check_says_who_may_ask_as_another_role(database):
    database.ok("install", "--role", RELAY)
    database.sql("DROP ROLE IF EXISTS outbox_owner; CREATE ROLE outbox_owner LOGIN")
    done = database.run("check", "--role", RELAY, role="outbox_owner")
    assert done.returncode == 1 and "(HINT: a member of the role may ask for it" in done.stderr
    assert database.run("check", role=RELAY).returncode == 0


def test_check_knows_rights_and_indexes(database):
    database.ok("install")
    done = database.run("check", "--role", RELAY)
    assert done.returncode == 1 and "no right to SELECT column 'id' of table 'public.email_outbox' (mapping field id)" in done.stdout
    assert "no right to USAGE of the schema, to read column 'claim_id' of table 'stentor_outbox.claims'" in done.stdout
    reported = database.json("check")
    assert reported["fits"] is True
    assert reported["missing_index"] == "CREATE INDEX ON \"public\".\"email_outbox\" (\"meta_created_at\") WHERE \"status\" = 'PENDING'"
    database.sql(reported["missing_index"])
    assert database.json("check")["missing_index"] is None
    assert database.json("check", mapping="hotel")["missing_index"] is None


def test_show_tells_what_waits_and_what_failed(database):
    database.ok("install")
    database.mail()
    failed = database.mail("FAILED", "550 no such user")
    database.sql("INSERT INTO stentor_outbox.claims VALUES ('c1', 'memo', 'relay-1', now(), now() - interval '1 s', '{a,b}', '{1,1}', '{}')")
    reported = database.json("show")
    assert (reported["mapping"], reported["pending"], reported["refused"], reported["publish"]) == ("memo", 1, 0, "request")
    assert reported["oldest_at"].endswith("Z")
    assert [(claim["relay"], claim["rows"], claim["expired"]) for claim in reported["claims"]] == [("relay-1", 2, True)]
    assert [(row["key"], row["reason"]) for row in reported["failed_rows"]] == [(failed, "550 no such user")]
    text = database.ok("show")
    assert f"failed {failed}" in text and "550 no such user" in text and "pending 1" in text
    assert database.json("show", "--limit", "0")["failed_rows"] == []


def test_retry_resets_a_failed_row_as_the_document_says(database):
    database.ok("install")
    failed, sent = database.mail("FAILED", "550"), database.mail("SENT")
    database.sql("INSERT INTO stentor_outbox.requests (mapping, row_key, attempt, notification_id, state, made_at, ended_at)"
                 f" VALUES ('memo', '{failed}', 1, 'n1', 'failed', now(), now()), ('memo', '{sent}', 1, 'n2', 'sent', now(), now())")
    assert database.run("retry").returncode == 2
    assert database.run("retry", sent).returncode == 3
    assert database.run("retry", "not-a-uuid").returncode == 1
    assert database.json("retry", failed)["retried"] == [failed]
    assert database.sql("SELECT id::text FROM email_outbox WHERE status = 'PENDING'") == [(failed,)]
    assert database.json("retry", sent, "--force")["retried"] == [sent]
    database.sql("UPDATE email_outbox SET status = 'FAILED'")
    assert sorted(database.json("retry", "--failed")["retried"]) == sorted([failed, sent])


def test_retry_frees_refused_events(database):
    database.ok("install", mapping="hotel")
    database.sql("INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key)"
                 " SELECT 'row' || n, 'acme', 's', '{}', '{}', 'k' FROM generate_series(1, 3) AS n")
    database.sql("INSERT INTO stentor_outbox.rejected_rows VALUES ('hotel', 'row1', 'why', now()), ('hotel', 'row2', 'why', now())")
    shown = database.json("show", mapping="hotel")
    assert (shown["pending"], shown["refused"]) == (1, 2) and {row["key"] for row in shown["refused_rows"]} == {"row1", "row2"}
    assert "row1 will be published again" in database.ok("retry", "row1", mapping="hotel")
    assert database.json("retry", "--all-refused", mapping="hotel")["retried"] == ["row2"]
    assert database.run("retry", "row3", mapping="hotel").returncode == 3
    assert "--failed is for requests" in database.run("retry", "--failed", mapping="hotel").stderr
    assert database.json("show", mapping="hotel")["pending"] == 3


@pytest.mark.parametrize("refused, left", [("@reason", "why"), ("bad", "bad")])
def test_retry_sets_back_a_row_that_its_refusal_took_out(database, tmp_path, refused, left):
    """The column that says so is one of those that make a row pending."""
    mapping = json.loads((EXAMPLES / "hotel.json").read_text())
    mapping["pending"]["last_error"] = None
    mapping["moments"]["refused"] = {"last_error": refused}
    if refused == "bad":  # surely not what is pending, so the relay does not remember it
        mapping["pending"]["last_error"] = ""
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(mapping))
    database.ok("install", mapping=path)
    database.sql("INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key, last_error, published_at)"
                 f" SELECT 'row' || n, 'acme', 's', '{{}}', '{{}}', 'k', '{left}', CASE WHEN n = 2 THEN now() END FROM generate_series(1, 2) AS n")
    if refused == "@reason":
        database.sql("INSERT INTO stentor_outbox.rejected_rows VALUES ('hotel', 'row1', 'why', now()), ('hotel', 'row2', 'why', now())")
    database.ok("retry", "row1", mapping=path)
    assert database.json("show", mapping=path)["pending"] == 1
    database.run("retry", "row2", mapping=path)  # which the application has marked itself
    assert database.json("show", mapping=path)["pending"] == 1
    assert database.sql("SELECT last_error FROM notification.outbox WHERE id = 'row2'") == [(left,)]


@pytest.mark.parametrize("refused", ["INVALID", None])
def test_retry_sets_back_a_request_of_a_refusal_of_its_own(database, tmp_path, refused):
    path = changed(tmp_path, lambda m: refused and m["moments"].update(refused={"status": refused}))
    database.ok("install")
    row = database.mail(refused or "FAILED")
    assert database.json("retry", row, mapping=path)["retried"] == [row]
    assert database.sql("SELECT status FROM email_outbox") == [("PENDING",)]


def test_retry_leaves_alone_what_went_out_and_looks_like_a_refusal(database, tmp_path):
    """Both are done with: the one column that says so is the same."""
    path = changed(tmp_path, lambda m: (m["moments"]["sent"].update(status="DONE"), m["moments"].update(refused={"status": "DONE"})))
    database.ok("install")
    sent = database.mail("DONE")
    assert database.run("retry", sent, mapping=path).returncode == 3
    assert database.sql("SELECT status FROM email_outbox") == [("DONE",)]


def test_retry_leaves_alone_what_was_sent_and_looks_as_if_it_had_failed(database, tmp_path):
    path = changed(tmp_path, lambda m: (m["moments"]["sent"].update(status="DONE"), m["moments"]["failed"].update(status="DONE")))
    database.ok("install")
    sent, failed = database.mail("DONE"), database.mail("DONE", "550 no such user")
    for number, (row, state) in enumerate(((sent, "sent"), (failed, "failed"))):
        database.sql("INSERT INTO stentor_outbox.requests (mapping, row_key, attempt, notification_id, state, made_at)"
                     f" VALUES ('memo', '{row}', 1, 'ntf_{number}', '{state}', now())")
    assert database.run("retry", sent, mapping=path).returncode == 3
    assert database.json("retry", failed, mapping=path)["retried"] == [failed]
    assert database.sql("SELECT id::text FROM email_outbox WHERE status = 'PENDING'") == [(failed,)]
    assert database.json("retry", sent, "--force", mapping=path)["retried"] == [sent]


def test_retry_leaves_alone_what_is_under_way_and_looks_like_a_refusal(database, tmp_path):
    path = changed(tmp_path, lambda m: m["moments"].update(refused={"status": "SENDING", "error_message": "@reason"}))
    database.ok("install")
    row = database.mail("SENDING", "450 a try before")
    assert database.run("retry", row, mapping=path).returncode == 3
    assert database.sql("SELECT status FROM email_outbox") == [("SENDING",)]


def test_retry_tells_a_refused_event_from_a_published_one_by_its_reason(database, tmp_path):
    mapping = json.loads((EXAMPLES / "hotel.json").read_text())
    mapping["moments"]["refused"] = {"published_at": "@now", "last_error": "@reason"}
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(mapping))
    database.ok("install", mapping=path)
    database.sql("INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key, last_error, published_at)"
                 " VALUES ('out', 'acme', 's', '{}', '{}', 'k', NULL, now()), ('refused', 'acme', 's', '{}', '{}', 'k', 'why', now())")
    assert database.run("retry", "out", mapping=path).returncode == 3
    assert database.json("retry", "refused", mapping=path)["retried"] == ["refused"]
    assert database.sql("SELECT id FROM notification.outbox WHERE published_at IS NULL") == [("refused",)]


def test_retry_sets_back_a_request_whose_refusal_only_gives_a_reason(database, tmp_path):
    """The row stands as `claimed` left it; that it does not fit is remembered."""
    path = changed(tmp_path, lambda m: m["moments"].update(refused={"error_message": "@reason"}))
    database.ok("install")
    row, under_way = database.mail("SENDING", "why"), database.mail("SENDING", "450 a try before")
    database.sql(f"INSERT INTO stentor_outbox.rejected_rows VALUES ('memo', '{row}', 'why', now())")
    assert database.run("retry", under_way, mapping=path).returncode == 3
    assert database.json("retry", row, mapping=path)["retried"] == [row]
    assert database.sql("SELECT id::text FROM email_outbox WHERE status = 'PENDING'") == [(row,)]


def test_a_mapping_that_cannot_be_read_names_its_member(database, tmp_path):
    mapping = json.loads((EXAMPLES / "memo.json").read_text())
    mapping["moments"]["sent"]["sent_at"] = "@soon"
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(mapping))
    done = database.run("check", mapping=str(broken))
    assert done.returncode == 1 and "moments.sent.sent_at: '@soon' must be one of" in done.stderr
    assert "cannot open" in database.run("check", mapping=str(tmp_path / "none.json")).stderr
