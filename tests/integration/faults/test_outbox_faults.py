# SPDX-License-Identifier: Apache-2.0
"""Relays that die, that are many, whose application's database or NATS goes away, and whose mapping or rows are wrong."""
import itertools
import json
import random
import time

import psycopg2
import pytest

from tests.harness.length import amount
from tests.harness.outbox import Application, Events
from tests.harness.pipeline import Pipeline
from tests.harness.processes import Postgres, wait_until

numbers = itertools.count(1)
LEASE_S = 3
LEASE = {"STENTOR_OUTBOX_LEASE_MS": 1000 * LEASE_S}


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline()
    pipeline.start(services=["ingest"])
    yield pipeline
    pipeline.stop()


@pytest.fixture
def app(pipeline):
    """A hotel of its own: events, FIFO per ordering key."""
    app = Application(pipeline, "hotel", database=f"hotel_{next(numbers)}")
    relays = []
    make = app.relay

    def relay(instance="", **options):
        relays.append(make(f"-{app.database}{instance}", **{**LEASE, **options}))  # a log of its own
        return relays[-1]
    app.relay = relay
    yield app
    if not pipeline.nats.alive():
        pipeline.nats.start()
    for process in relays:
        if process.alive():
            assert process.stop() == 0, process.tail()


@pytest.fixture
def events(pipeline):
    events = Events(pipeline)
    yield events
    events.close()


def insert(app, count, tag="row", keys=10):
    """`count` rows of `keys` ordering keys, numbered in their order. The database is in their ids: the same id under the
    same mapping would be the same event."""
    app.sql(
        "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key, enqueued_at) SELECT %s || lpad(n::text, 6, '0'),"
        " 'acme', 'room.booked', json_build_object('tag', %s::text, 'n', n), '{}', 'key-' || n %% %s, clock_timestamp()"
        " FROM generate_series(1, %s) AS n", f"{app.database}-{tag}-", tag, keys, count)


def pending(app):
    return app.one("SELECT count(*) FROM notification.outbox WHERE published_at IS NULL")


def wait_published(app, seconds=60):
    wait_until(lambda: pending(app) == 0, seconds, "everything published")


def check_once_and_in_order(stored, count, keys=10, tag="row"):
    numbers = [body["n"] for body in (json.loads(event["data"]) for event in stored if b'"tag"' in event["data"]) if body["tag"] == tag]
    assert sorted(numbers) == list(range(1, count + 1))
    for key in range(keys):
        mine = [number for number in numbers if number % keys == key]
        assert mine == sorted(mine), f"key {key} out of order"


def lines(relay, *levels):
    return [json.loads(line) for line in relay.log.read_text().splitlines() if line.startswith("{") and json.loads(line)["level"] in levels]


# ---- many relays, and dead ones ----


def test_four_relays_on_one_table_publish_each_row_once_and_in_order(app, events):
    relays = [app.relay(f"-{i}", STENTOR_OUTBOX_BATCH="50").start() for i in range(4)]
    for part in range(10):
        insert(app, 300, tag=f"part{part}")
    wait_published(app)
    for part in range(10):
        check_once_and_in_order(events.all(), 300, tag=f"part{part}")
    assert events.count() == 3000
    assert sum(relay.metric("stentor_outbox_relay_published_total") for relay in relays) == 3000
    # A busy machine may leave one without a turn; one alone would be no test.
    assert sum(relay.metric("stentor_outbox_relay_claimed_total") > 0 for relay in relays) >= 2
    assert set(app.sql("SELECT publish_attempts, last_error FROM notification.outbox")) == {(1, None)}


def test_relays_that_are_killed_again_and_again_lose_and_double_nothing(app, events):
    chance = random.Random(7)
    relays = [app.relay(f"-{i}", STENTOR_OUTBOX_BATCH="20").start() for i in range(3)]
    for part in range(12):
        insert(app, 200, tag=f"part{part}", keys=7)
        time.sleep(0.2)
        victim = chance.choice(relays)
        victim.kill()
        victim.start()
    wait_published(app, 90)
    stored = events.each()  # what a dead relay had published and not marked is published again
    assert len(stored) == 2400
    for part in range(12):
        check_once_and_in_order(stored, 200, keys=7, tag=f"part{part}")
    wait_until(lambda: app.one("SELECT count(*) FROM stentor_outbox.claims") == 0, 20, "no claim left")


def test_a_dead_relays_claim_is_adopted_when_its_lease_is_over(app, events):
    dead = app.relay("-dead", STENTOR_CRASH_AT="outbox.claimed")
    dead.start()
    insert(app, 20)
    dead.exit_status(20)
    heir = app.relay("-heir").start()
    insert(app, 5, tag="later")  # rows of keys that the dead relay holds wait for it
    wait_published(app, 30)
    assert heir.metric("stentor_outbox_relay_adopted_total") == 1
    check_once_and_in_order(events.all(), 20)
    order = [json.loads(event["data"])["tag"] for event in events.all() if json.loads(event["data"])["n"] % 10 == 1]
    assert order == ["row", "row", "later"]


# ---- being woken ----


def test_one_notification_per_statement_wakes_at_once(app):
    relay = app.relay(STENTOR_OUTBOX_POLL_MS="60000").start()
    wait_until(lambda: relay.metric("stentor_outbox_relay_listening") == 1, 20, "listening")
    time.sleep(2)  # the pauses between looks are long by now
    before = relay.metric("stentor_outbox_relay_notified_total")
    insert(app, 1000)
    wait_published(app, 10)
    assert relay.metric("stentor_outbox_relay_notified_total") == before + 1


def test_without_a_notification_the_table_is_polled(pipeline):
    app = Application(pipeline, "hotel", wake=False, database=f"hotel_{next(numbers)}")
    relay = app.relay("-polls", STENTOR_OUTBOX_POLL_MS="300").start()
    time.sleep(2)
    insert(app, 10)
    wait_published(app, 5)
    assert relay.metric("stentor_outbox_relay_notified_total") == 0
    assert relay.stop() == 0


def test_an_idle_relay_takes_less_than_a_hundredth_of_a_processor(app):
    relay = app.relay().start()
    insert(app, 10)
    wait_published(app)
    time.sleep(2)
    before, start = relay.metric("process_cpu_seconds_total"), time.monotonic()
    time.sleep(amount(5, 15))
    share = (relay.metric("process_cpu_seconds_total") - before) / (time.monotonic() - start)
    assert share < 0.01, f"{100 * share:.2f} %"


# ---- what goes away ----


def test_the_applications_postgres_is_killed_and_comes_back(pipeline, events):
    postgres = Postgres(pipeline.folder / f"app-pg-{next(numbers)}").start()
    try:
        app = Application(pipeline, "hotel", database="far", postgres=postgres)
        relay = app.relay("-far", STENTOR_OUTBOX_BATCH="50", **LEASE).start()
        for part in range(3):
            insert(app, 500, tag=f"part{part}")
            time.sleep(0.1)
            postgres.kill()
            time.sleep(amount(1.5, 3))
            postgres.start()
        wait_published(app, 60)
        assert len(events.each()) == 1500
        for part in range(3):
            check_once_and_in_order(events.each(), 500, tag=f"part{part}")
        reported = lines(relay, "warn", "error")
        assert len(reported) <= 3 * 5, "\n".join(line["event"] for line in reported)
        assert [line for line in reported if line["level"] == "error"] == []
        relay.wait_ready()  # a second without a break
        assert relay.stop() == 0
    finally:
        postgres.kill()


def test_nats_goes_away_and_comes_back(app, events):
    relay = app.relay(STENTOR_OUTBOX_BATCH="50").start()
    insert(app, 500, tag="before")
    app.pipeline.nats.kill()
    insert(app, 500, tag="meanwhile")
    time.sleep(13)  # longer than a publish waits for its ack
    assert not relay.ready()
    reported = len(lines(relay, "warn", "error"))
    assert reported <= 6, relay.tail()
    app.pipeline.nats.start()
    events.reopen()
    wait_published(app, 60)
    check_once_and_in_order(events.each(), 500, tag="before")
    check_once_and_in_order(events.each(), 500, tag="meanwhile")
    assert len(events.each()) == 1000
    assert lines(relay, "error") == []


# ---- what is wrong ----


@pytest.mark.parametrize("change, words", [
    (lambda m: m["moments"]["published"].update({"published_on": "@now"}), ["published_on", "notification.outbox", "moments.published"]),
    (lambda m: m["fields"].update({"data": "body"}), ["body", "notification.outbox", "fields.data"]),
    (lambda m: m.update({"table": "notification.nothing"}), ["notification.nothing"]),
    (lambda m: m.pop("id"), ["id"]),
])
def test_a_mapping_that_does_not_fit_ends_it_with_2_and_says_what_is_missing(app, change, words):
    relay = app.relay(mapping=app.write_mapping("wrong", change))
    relay.start(wait=False)
    assert relay.exit_status(30) == 2, relay.tail()
    (line,) = lines(relay, "error")
    assert all(word in line["error"] for word in words), line


def test_a_database_without_stentors_tables_ends_it_with_2_and_the_remedy(app):
    app.sql("DROP SCHEMA stentor_outbox CASCADE")
    relay = app.relay()
    relay.start(wait=False)
    assert relay.exit_status(30) == 2, relay.tail()
    (line,) = lines(relay, "error")
    assert "stentor outbox install" in line["error"], line


def test_a_row_that_cannot_be_marked_delays_no_other(app, events):
    app.sql("CREATE FUNCTION notification.forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;"
            "CREATE TRIGGER forbid BEFORE UPDATE ON notification.outbox FOR EACH ROW WHEN (old.id LIKE '%row-000007')"
            " EXECUTE FUNCTION notification.forbid()")
    relay = app.relay().start()
    insert(app, 100, keys=100)
    wait_until(lambda: pending(app) == 1, 30, "all others marked")
    insert(app, 50, tag="next", keys=50)
    wait_until(lambda: pending(app) == 1, 30, "the next ones marked")
    wait_until(lambda: app.one("SELECT count(*) FROM stentor_outbox.rejected_rows") == 1, 30, "put aside")
    assert any(line.get("row", "").endswith("row-000007") for line in lines(relay, "error")), relay.tail()
    assert events.count() == 150
    assert [key for key, in app.sql("SELECT row_key FROM stentor_outbox.rejected_rows")] == [f"{app.database}-row-000007"]


def test_a_row_that_cannot_be_claimed_delays_no_other(pipeline):
    app = Application(pipeline, "memo", database=f"memo_{next(numbers)}")
    app.sql("INSERT INTO memos (memo_number_prefix, department_code, title) VALUES ('M', 'D', 'T');"
            "INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type, meta_created_at) SELECT id, 'memo.created',"
            " '{\"subject\": \"a\", \"body\": \"b\"}', 'reader' || n || '@example.com', 'MEMO', now() - (100 - n) * interval '1 s'"
            " FROM memos, generate_series(1, 50) AS n;"
            "CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;"
            "CREATE TRIGGER forbid BEFORE UPDATE ON email_outbox FOR EACH ROW WHEN (old.recipient_email = 'reader7@example.com')"
            " EXECUTE FUNCTION forbid()")
    relay = app.relay(f"-{app.database}", **LEASE).start()
    try:
        wait_until(lambda: app.one("SELECT count(*) FROM email_outbox WHERE status = 'PENDING'") == 1, 30, "all others claimed")
        assert app.sql("SELECT t.recipient_email FROM stentor_outbox.rejected_rows AS f JOIN email_outbox AS t ON t.id::text = f.row_key") == [
            ("reader7@example.com",)]
        assert relay.ready()
    finally:
        assert relay.stop() == 0, relay.tail()


def test_a_table_that_lets_nothing_be_marked_for_a_while_costs_a_few_tries_and_nothing_is_put_aside(app, events):
    app.sql("CREATE SEQUENCE notification.refusals; GRANT USAGE ON SEQUENCE notification.refusals TO app_relay;"
            "CREATE FUNCTION notification.forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('notification.refusals');"
            " RAISE EXCEPTION 'not now'; END $$;"
            "CREATE TRIGGER forbid BEFORE UPDATE ON notification.outbox FOR EACH ROW EXECUTE FUNCTION notification.forbid()")
    relay = app.relay().start()
    insert(app, 300, keys=300)
    time.sleep(amount(6, 12))
    assert app.one("SELECT last_value FROM notification.refusals") < 120  # each failing transaction is one
    assert pending(app) == 300
    assert sum("marking of published rows" in line["event"] for line in lines(relay, "warn")) <= 2, relay.tail()
    assert not lines(relay, "error"), relay.tail()
    assert app.one("SELECT count(*) FROM stentor_outbox.rejected_rows") == 0
    app.sql("DROP TRIGGER forbid ON notification.outbox")
    wait_published(app, 40)
    assert events.count() == 300
    assert relay.metric("stentor_outbox_relay_adopted_total") == 0


def test_a_row_that_the_application_holds_is_marked_later_and_holds_up_no_other(app, events):
    insert(app, 100, keys=100)
    connection = psycopg2.connect(app.postgres.url(database=app.database))
    try:
        relay = app.relay(STENTOR_CRASH_AT="outbox.published")
        relay.start(wait=False)  # its rows are there already
        relay.exit_status(30)  # all are published, none is marked
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM notification.outbox WHERE id LIKE '%%row-000007' FOR UPDATE")
            heir = app.relay("-heir").start()
            wait_until(lambda: pending(app) == 1, 30, "all others marked")
            time.sleep(LEASE_S + 1)
            assert app.one("SELECT count(*) FROM stentor_outbox.claims WHERE claimed_until > now()") == 1
        connection.rollback()
        wait_published(app, 10)
        wait_until(lambda: app.one("SELECT count(*) FROM stentor_outbox.claims") == 0, 10, "the claim released")
        assert heir.metric("stentor_outbox_relay_adopted_total") == 1
        assert len({event["headers"]["Nats-Msg-Id"] for event in events.all()}) == 100  # stored again, under the same ids
    finally:
        connection.close()


# ---- what waits, and what is old ----


@pytest.mark.long
def test_the_backlog_is_counted_and_logged_once_when_it_crosses_the_alert(app):
    mapping = app.write_mapping("alert", lambda m: m.update({"backlog_alert": 100}))
    insert(app, 300)
    app.pipeline.nats.kill()
    relay = app.relay(mapping=mapping)
    relay.start(wait=False)
    wait_until(lambda: relay.metric("stentor_outbox_relay_backlog") == 300, 30, "the backlog")
    assert relay.metric("stentor_outbox_relay_oldest_seconds") > 0
    time.sleep(11)  # counted again
    alerts = [line for line in lines(relay, "warn") if "reached its alert" in line["event"]]
    assert len(alerts) == 1 and alerts[0]["rows"] == 300 and alerts[0]["alert"] == 100
    app.pipeline.nats.start()
    wait_published(app, 30)
    wait_until(lambda: relay.metric("stentor_outbox_relay_backlog") == 0, 30, "the backlog gone")
    assert sum("below half of its alert" in line["event"] for line in lines(relay, "info")) == 1


def test_old_rows_go_in_small_batches_and_what_is_not_published_stays(app):
    mapping = app.write_mapping("keep", lambda m: m.update({"keep": {"published": "1s"}}))
    app.sql("INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key) VALUES"
            " ('bad', 'acme', 'blanks in it', '{}', '{}', 'k')")
    relay = app.relay(mapping=mapping, STENTOR_OUTBOX_KEEP_MS="300").start()
    insert(app, 1200)
    wait_until(lambda: app.one("SELECT count(*) FROM notification.outbox") == 1, 60, "the old gone")
    assert app.sql("SELECT id FROM notification.outbox") == [("bad",)]
    assert relay.metric("stentor_outbox_relay_deleted_total") >= 1200
