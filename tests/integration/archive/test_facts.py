# SPDX-License-Identifier: Apache-2.0
"""A day's facts in object storage, what they cost, and the SQL of deploy/examples/analytics on them in DuckDB."""
import json
import re
import subprocess

import pytest

from tests.harness.processes import HOME, wait_until
from tests.integration.archive.test_parquet_readers import readers  # noqa: F401

DAY = "2026-09-15"
ANALYTICS = HOME / "deploy" / "examples" / "analytics"
INVOICES = "day,channel,vendor,tenant,amount,currency\n2026-09-15,email,ses,*,0.0008,USD\n2026-09-15,sms,twilio,facts-b,0.02,USD\n"
ROWS = """
INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, category, priority, status, status_rank, template, address_hash,
    address, reason, source_event_id, queued_at, rendered_at, sent_at, delivered_at, opened_at, retention_class)
SELECT '2026-09-15T10:00:00Z'::timestamptz + n * interval '1 minute', 'ntf_01K55555' || lpad(n::text, 2, '0') || 'R000000000000000' || t,
    'facts-' || t, CASE WHEN n % 4 = 3 THEN 'sms' ELSE 'email' END, 'transactional', 'normal', CASE WHEN n = 0 THEN 'bounced' ELSE 'delivered'
    END, 7, 'welcome', decode(repeat(lpad(to_hex(n), 2, '0'), 32), 'hex'), 'SECRET-ADDRESS', 'SECRET-REPLY', CASE WHEN n = 1 THEN 'e1' END,
    '2026-09-15T10:00:00.010Z'::timestamptz + n * interval '1 minute', '2026-09-15T10:00:00.030Z'::timestamptz + n * interval '1 minute',
    '2026-09-15T10:00:00.130Z'::timestamptz + n * interval '1 minute', '2026-09-15T10:00:02.130Z'::timestamptz + n * interval '1 minute',
    CASE WHEN n = 2 THEN '2026-09-15T11:02:00.130Z'::timestamptz END, 'R'
FROM generate_series(0, 7) n, (VALUES ('a'), ('b')) v (t) WHERE t = 'a' OR n < 4;
INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome, code,
    enhanced_code, reply, started_at, finished_at, retention_class)
SELECT created_at, id, k, 'dat_' || id || k, tenant_id, channel, CASE channel WHEN 'sms' THEN 'twilio' ELSE 'ses' END,
    CASE WHEN k = 1 AND id LIKE '%01R%' THEN 'rejected_retryable' WHEN status = 'bounced' THEN 'bounce' ELSE 'delivered' END,
    CASE WHEN k = 1 AND id LIKE '%01R%' THEN '451' ELSE '250' END, '4.2.0', 'SECRET-REPLY', rendered_at + (k - 1) * interval '5 seconds',
    rendered_at + (k - 1) * interval '5 seconds' + interval '40 ms', 'R'
FROM archiver.notifications, generate_series(1, 2) k WHERE tenant_id LIKE 'facts-_' AND (k = 1 OR id LIKE '%01R%');
"""


def stentor(place, *words, ok=True):
    done = place.pipeline.run_cli(*words, STENTOR_STORAGE_URL=f"file://{place.folder}", **place.extra)
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done


class Place:
    def __init__(self, pipeline, folder):
        self.pipeline, self.folder, self.extra = pipeline, folder / "objects", {}
        self.invoices = folder / "invoices.csv"
        self.invoices.write_text(INVOICES)

    def objects(self, text="*"):
        return sorted(str(path.relative_to(self.folder)) for path in (self.folder / "facts").glob(f"*/*/*/{text}.parquet"))

    def write(self, **extra):
        self.extra = extra
        try:
            return stentor(self, "facts", "write", "--day", DAY, "--json", ok=not extra)
        finally:
            self.extra = {}


@pytest.fixture(scope="module")
def place(pipeline, tmp_path_factory):
    query = pipeline.postgres.query
    query(f"SELECT stentor.ensure_partitions(t::regclass, '{DAY}', now()) FROM unnest(ARRAY['archiver.notifications', 'archiver.delivery_attempts']) t")
    query(ROWS)
    place = Place(pipeline, tmp_path_factory.mktemp("facts"))
    stentor(place, "costs", "set", "email", "ses", "--price", "0.0001", "--currency", "USD", "--from", "2026-01-01T00:00:00Z")
    stentor(place, "costs", "set", "email", "ses", "--price", "0.00005", "--currency", "USD", "--from", "2026-01-01T00:00:00Z", "--tenant", "facts-b")
    stentor(place, "costs", "import-invoice", place.invoices)
    place.first = json.loads(place.write().stdout)
    yield place
    for table in ("delivery_attempts", "notifications"):
        query(f"DELETE FROM archiver.{table} WHERE tenant_id LIKE 'facts-_'")
    query("DELETE FROM archive.unit_costs; DELETE FROM archive.invoiced")


def test_a_day_is_written_by_tenant_without_bodies_and_addresses(place):
    found = place.objects()
    assert len(found) == 4 and place.first["objects"] == "4" and place.first["rows"] == "26"
    pattern = r"facts/(notifications|delivery_attempts)_facts/tenant=facts-[ab]/day=2026-09-15/part-00000-[0-9a-f]{16}\.parquet"
    assert all(re.fullmatch(pattern, key) for key in found), found
    for key in found:
        assert b"SECRET" not in (place.folder / key).read_bytes()


def test_the_same_rows_give_the_same_objects(place):
    before = place.objects()
    again = json.loads(place.write().stdout)
    assert place.objects() == before and again["replaced"] == "0"


def test_what_changed_replaces_the_object_also_when_the_process_died_between_the_two(place):
    query = place.pipeline.postgres.query
    before = place.objects()
    query("UPDATE archiver.notifications SET status = 'opened' WHERE tenant_id = 'facts-a' AND id LIKE '%04R%'")
    died = place.write(STENTOR_CRASH_AT="facts.stored")
    assert died.returncode < 0 and len(place.objects()) == len(before) + 1
    assert json.loads(place.write().stdout)["replaced"] == "1"
    after = place.objects()
    assert len(after) == len(before) and len(set(after) - set(before)) == 1
    query("UPDATE archiver.notifications SET status = 'delivered' WHERE tenant_id = 'facts-a' AND id LIKE '%04R%'")
    place.write()
    assert place.objects() == before


def test_what_came_late_for_a_sealed_period_is_in_the_facts(place):
    query = place.pipeline.postgres.query
    mine = "created_at >= '2026-09-15' AND created_at < '2026-09-16' AND tenant_id = 'facts-a'"
    query(f"""INSERT INTO archiver.late_notifications (created_at, id, tenant_id, channel, status, status_rank, clicked_at, retention_class)
        SELECT created_at, id, tenant_id, channel, 'clicked', 9, sent_at + interval '90 seconds', retention_class
        FROM archiver.notifications WHERE {mine} AND id LIKE '%04R%'""")
    query(f"""INSERT INTO archiver.late_notifications (created_at, id, tenant_id, channel, status, status_rank, retention_class)
        SELECT created_at + interval '1 second', replace(id, '04R', '99R'), tenant_id, 'email', 'sent', 4, retention_class
        FROM archiver.notifications WHERE {mine} AND id LIKE '%04R%'""")
    columns = "created_at, retention_class, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome, started_at, finished_at"
    query(f"""INSERT INTO archiver.late_attempts ({columns}) SELECT {columns.replace("outcome", "'complaint'")}
        FROM archiver.delivery_attempts WHERE {mine} AND notification_id LIKE '%04R%'""")
    query(f"""INSERT INTO archiver.late_attempts ({columns})
        SELECT created_at, retention_class, notification_id, 2, id || 'b', tenant_id, channel, vendor, 'rejected_terminal', started_at, finished_at
        FROM archiver.delivery_attempts WHERE {mine} AND notification_id LIKE '%05R%'""")
    try:
        span = "'2026-09-15', '2026-09-16'"
        facts = dict((id[12:15], rest) for id, *rest in query(
            f"SELECT notification_id, status, template, click_s, attempts FROM archive.notifications_facts({span}) WHERE tenant_id = 'facts-a'"))
        assert facts["04R"] == ["clicked", "welcome", 90, 1] and facts["99R"] == ["sent", None, None, 0] and len(facts) == 9
        assert facts["05R"] == ["delivered", "welcome", None, 2]
        outcomes = query(f"SELECT outcome FROM archive.delivery_attempts_facts({span}) WHERE notification_id LIKE '%04R%' AND tenant_id = 'facts-a'")
        assert outcomes == [("complaint",)]
        assert json.loads(place.write().stdout)["rows"] == "28"
    finally:
        query("DELETE FROM archiver.late_notifications; DELETE FROM archiver.late_attempts")
    place.write()


def test_a_day_of_which_a_unit_was_removed_stays(place):
    query = place.pipeline.postgres.query
    query("INSERT INTO archive.units (id, kind, class, starts_at, ends_at, state, owner_epoch) VALUES"
          " ('notifications/brief/2026-09', 'notifications', 'B', '2026-09-01', '2026-10-01', 'open', 1)")
    query("ALTER TABLE archive.units DISABLE TRIGGER USER; UPDATE archive.units SET state = 'removed' WHERE id = 'notifications/brief/2026-09'")
    try:
        refused = stentor(place, "facts", "write", "--day", DAY, ok=False)
        assert refused.returncode == 1 and "no longer in the database" in refused.stderr
        assert len(place.objects()) == 4
    finally:
        query("DELETE FROM archive.units WHERE id = 'notifications/brief/2026-09'; ALTER TABLE archive.units ENABLE TRIGGER USER")


def test_each_day_is_due_when_it_is_over_and_once_more_after_a_week(place):
    query = place.pipeline.postgres.query
    query("DELETE FROM archive.facts_days")
    due = []
    for _ in range(10):
        day = query("SELECT archive.facts_due()")[0][0]
        if day is None:
            break
        due.append(day)
        query("INSERT INTO archive.facts_days VALUES (%s, now(), 0, 0, 0)", day)
    today = query("SELECT (now() AT TIME ZONE 'UTC')::date")[0][0]
    assert [(today - day).days for day in due] == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    query("UPDATE archive.facts_days SET written_at = day + interval '1 day'")
    assert (today - query("SELECT archive.facts_due()")[0][0]).days == 9
    place.write()
    assert query(f"SELECT rows, objects FROM archive.facts_days WHERE day = '{DAY}'") == [(26, 4)]


def test_the_archiver_writes_the_days_by_itself(tmp_path):
    from tests.harness.pipeline import Pipeline
    pipeline = Pipeline()
    pipeline.extra = {"STENTOR_STORAGE_URL": f"file://{tmp_path}/objects", "STENTOR_FACTS": "true", "STENTOR_ARCHIVE_EVERY_S": "1"}
    pipeline.start()
    try:
        wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM archive.facts_days")[0][0] == 9, 30, "nine days written")
    finally:
        pipeline.stop()


def test_what_is_wrong_is_named(place, tmp_path):
    for words, why in ((["facts", "write", "--day", "2026-02-30"], "no day"), (["facts", "write", "--day", "2999-01-01"], "not over yet"),
                       (["facts", "write", "--day", DAY, "--to", "2026-09-14"], "before --day"),
                       (["costs", "set", "email", "ses", "--price", "1,5", "--currency", "USD"], "no amount"),
                       (["costs", "set", "email", "ses", "--price", "1", "--currency", "USDX"], "--currency 'USDX' is no code of three capitals such as EUR"),
                       (["costs", "set", "email", "ses", "--price", "1", "--currency", "USD", "--unit", "pony"], "--unit 'pony' is none of message, segment"),
                       (["costs", "set", "email", "nobody", "--price", "1", "--currency", "USD"], "'nobody' is no vendor; 'stentor channel list' names them"),
                       (["costs", "set", "sms", "ses", "--price", "1", "--currency", "USD"], "ses is of channel email, not of sms"),
                       (["costs", "set", "fax", "ses", "--price", "1", "--currency", "USD"], "'fax' is no channel: email, sms")):
        refused = stentor(place, *words, ok=False)
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr
    price = ("email", "ses", "--from", "2031-01-01T00:00:00Z", "--country", "+43")
    stentor(place, "costs", "set", *price, "--price", "7", "--currency", "USD")
    assert "2031-01-01T00:00:00Z" in stentor(place, "costs", "list").stdout
    stentor(place, "costs", "delete", *price)
    listed = stentor(place, "costs", "list").stdout
    assert "2031" not in listed and listed.count("email") == 2, "the others stay"
    gone = stentor(place, "costs", "delete", *price, ok=False)
    assert gone.returncode == 3 and "'stentor costs list' shows them" in gone.stderr
    bad = tmp_path / "bad.csv"
    bad.write_text(INVOICES + "2026-09-16,email,ses,*,five,USD\n")
    refused = stentor(place, "costs", "import-invoice", bad, ok=False)
    assert "line 4: 'five' is no amount" in refused.stderr and "nothing was imported" in refused.stderr


def test_duckdb_and_postgres_say_the_same(place, readers):  # noqa: F811
    done = subprocess.run(["node", readers.with_name("query.mjs"), place.folder / "facts", place.invoices, ANALYTICS / "duckdb.sql"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    model = [[str(row[name]) for name in row] for row in found["cost model"]]
    assert model == [[str(value) for value in row] for row in place.pipeline.postgres.query(
        "SELECT * FROM archive.cost_model_v1('2026-09-15', '2026-09-16') WHERE tenant LIKE 'facts-_' ORDER BY day, tenant, channel, vendor")]
    # 6 mails of a cost 600 millionths, 3 of b half of that each: the invoice of 800 is shared out 4 to 1.
    assert [row[1:4] + row[5:] for row in model] == [
        ["facts-a", "email", "ses", "7", "6", "0", "600", "640", "40"], ["facts-a", "sms", "twilio", "2", "2", "2", "0", "None", "None"],
        ["facts-b", "email", "ses", "4", "3", "0", "150", "160", "10"], ["facts-b", "sms", "twilio", "1", "1", "1", "0", "20000", "None"]]
    assert found["delivered by day and channel"] == [
        {"day": DAY, "channel": "email", "notifications": "9", "delivered": "7", "bounced": "2", "opened_percent": 22.2},
        {"day": DAY, "channel": "sms", "notifications": "3", "delivered": "3", "bounced": "0", "opened_percent": 0}]
    assert found["how long it took"][0] == {"channel": "email", "p50_ms": "130", "p99_ms": "130"}
    assert found["why vendors refused"] == [{"vendor": "ses", "outcome": "rejected_retryable", "code_class": "4", "attempts": "2"}]
    check_declared_columns(found)


def check_declared_columns(found):
    """Trino's and Athena's tables have the files' columns, in their order."""
    words = {"VARCHAR": {"VARCHAR", "string"}, "BIGINT": {"BIGINT", "bigint"}, "INTEGER": {"INTEGER", "int"}, "BOOLEAN": {"BOOLEAN", "boolean"},
             "TIMESTAMP WITH TIME ZONE": {"TIMESTAMP", "timestamp"}}
    for file in ("trino.sql", "athena.sql"):
        text = (ANALYTICS / file).read_text()
        for table in ("notifications_facts", "delivery_attempts_facts"):
            body = re.search(rf"stentor\.{table} \(\n(.*?)\n\)", text, re.S)[1]
            declared = [line.strip(" ,").split(" ") for line in body.splitlines()]
            declared = [pair for pair in declared if pair[0] not in ("tenant", "day")]
            columns = [pair for pair in found[table].items() if pair[0] not in ("tenant", "day")]
            assert [name for name, _ in declared] == [name for name, _ in columns]
            assert all(kind in words[duck] for (_, kind), (_, duck) in zip(declared, columns)), declared
