# SPDX-License-Identifier: Apache-2.0
"""The five outbox tables of the documents, as they stand there, drained by a relay: from one INSERT to the mail and back into
the row, or to the event on EVENTS."""
import contextlib
import json
import time
import uuid

import psycopg2
import pytest

from tests.harness.outbox import ROLE, Application, Events, prepare
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

ENDS = ("SENT", "FAILED")


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "1,1"}).start()
    prepare(pipeline)
    yield pipeline
    pipeline.stop()


def shape_of(name):
    @pytest.fixture(scope="module", name=name.replace("-", "_"))
    def fixture(pipeline):
        app = Application(pipeline, name)
        relay = app.relay().start()
        pipeline.services[relay.name] = relay
        app.process = relay
        return app
    return fixture


memo = shape_of("memo")
bookworm = shape_of("bookworm")
bookworm_bus = shape_of("bookworm-bus")
tenant_service = shape_of("tenant-service")
hotel = shape_of("hotel")


@pytest.fixture
def events(pipeline):
    events = Events(pipeline)
    yield events
    events.close()


def mails_to(pipeline, address):
    return [mail for mail in pipeline.mailbox.mails(address) if address in mail["To"]]


def wait_row(app, row_id, status, seconds=30):
    wait_until(lambda: app.mail_row(row_id)["status"] in status, seconds, f"{status}\n{dict(app.mail_row(row_id))}\n{app.process.tail(5)}")
    return app.mail_row(row_id)


# ---- E: email_outbox ----


def test_an_insert_becomes_a_mail_and_the_row_says_sent(pipeline, memo):
    row_id = memo.memo("bob@example.com", "memo-1-bob", "Memo Budget Created", "Please read the budget.")
    row = wait_row(memo, row_id, ENDS)
    assert (row["status"], row["error_message"], row["retry_count"]) == ("SENT", None, 0)
    assert row["meta_created_at"] <= row["last_attempt_at"] <= row["sent_at"]
    (mail,) = mails_to(pipeline, "bob@example.com")
    assert mail["Subject"] == "Memo Budget Created"
    assert "Please read the budget." in mail.get_body(("plain",)).get_content()
    (line,) = [line for line in map(json.loads, memo.process.log.read_text().splitlines())
               if line.get("event") == "an outbox row was published" and line["row"] == str(row_id)]
    assert line["mapping"] == "memo" and line["subject"] == "evt.memo.notify"
    assert pipeline.history_count("correlation_id = 'memo-1-bob' AND tenant_id = 'memo' AND status = 'sent'") == 1


def test_doctor_has_a_line_for_an_outboxs_relay(pipeline, memo):
    wait_row(memo, memo.memo("doctor@example.com", "memo-doctor"), ("SENT",))

    def reported(*words):
        checks = json.loads(pipeline.run_cli("doctor", "--json", *words).stdout)["checks"]
        return {check["check"]: check for check in checks if "outbox" in check["check"]}

    url = pipeline.postgres.url(ROLE, memo.database)
    urls, name = ("--outbox-database", url), "projection outbox-memo"
    assert reported() == {}
    wait_until(lambda: reported(*urls)[name]["result"] == "ok", 20, "the relay reading what became of its mails")
    assert "STATUS " in reported(*urls)[name]["text"] and reported(*urls)[name]["text"].endswith(", folding")
    memo.process.stop()
    try:
        assert reported(*urls)[name]["text"].endswith("no process folds it (HINT: is stentor-outbox-relay running?)")
    finally:
        memo.process.start()
    assert reported("--outbox-database", url.replace("dbname=", "dbname=no"))["outbox database"]["result"] == "fail"


def test_a_body_of_html_is_sent_as_html(pipeline, memo):
    row_id = memo.memo("html@example.com", "memo-html", "Page", "<p>See <b>this</b></p>")
    wait_row(memo, row_id, ("SENT",))
    (mail,) = mails_to(pipeline, "html@example.com")
    assert "<b>this</b>" in mail.get_body(("html",)).get_content()


def test_a_bodys_beginning_chooses_its_template(pipeline, memo):
    """Postgres gives the relay only the beginning; the rest of the body is what the application wrote."""
    body = 'He said "yes" \\ no, \u00e9\u20ac\U0001f600\n<p>'
    bodies = {" \n\t\u000b<p>A</p>": "html", body: "plain", " \n ": "plain", "v<p>": "plain"}
    rows = [memo.memo(f"starts{n}@example.com", f"memo-starts-{n}", f'Page "{n}" \\', text) for n, text in enumerate(bodies)]
    for n, (row_id, (text, kind)) in enumerate(zip(rows, bodies.items())):
        wait_row(memo, row_id, ("SENT",))
        (mail,) = mails_to(pipeline, f"starts{n}@example.com")
        assert mail["Subject"] == f'Page "{n}" \\'
        assert (mail.get_body(("html",)) is not None) == (kind == "html")
        assert text.strip() in mail.get_body((kind,)).get_content().replace("\r\n", "\n")


def test_a_refusal_of_the_vendor_fails_the_row_with_its_words(pipeline, memo):
    pipeline.mailbox.answer("550 5.1.1 no such user here")
    row_id = memo.memo("gone@example.com", "memo-gone")
    row = wait_row(memo, row_id, ENDS)
    assert (row["status"], row["retry_count"], row["sent_at"]) == ("FAILED", 1, None)
    assert row["error_message"] == "invalid_address: no such user here"
    memo.sql("UPDATE email_outbox SET status = 'PENDING' WHERE id = %s", row_id)  # of no use: the address is suppressed now
    wait_until(lambda: memo.mail_row(row_id)["error_message"] == "suppressed: hard_bounce", 20, "the suppression")
    assert memo.mail_row(row_id)["status"] == "FAILED"


def test_a_vendor_that_wants_to_be_asked_later_is_counted(pipeline, memo):
    pipeline.mailbox.answer("451 4.3.0 later please", times=2)
    row_id = memo.memo("later@example.com", "memo-later")
    for count in (1, 2):
        wait_until(lambda: memo.mail_row(row_id)["retry_count"] == count, 30, f"retry_count {count}")
        assert memo.mail_row(row_id)["status"] == "SENDING"
        assert "later please" in memo.mail_row(row_id)["error_message"]
    row = wait_row(memo, row_id, ENDS)
    assert (row["status"], row["error_message"], row["retry_count"]) == ("SENT", None, 2)


def test_the_last_retry_fails_the_row(pipeline, memo):
    pipeline.mailbox.answer("451 4.3.0 later please", times=3)
    row = wait_row(memo, memo.memo("never@example.com", "memo-never"), ENDS)
    assert (row["status"], row["retry_count"]) == ("FAILED", 3)
    assert "later please" in row["error_message"]


def test_a_failed_row_that_is_reset_is_a_new_attempt_with_its_key(pipeline, memo):
    pipeline.mailbox.answer("554 5.7.1 not today")
    row_id = memo.memo("reset@example.com", "memo-reset")
    wait_row(memo, row_id, ("FAILED",))
    memo.sql("UPDATE email_outbox SET status = 'PENDING', retry_count = 0, error_message = NULL, meta_updated_at = now() WHERE id = %s", row_id)
    row = wait_row(memo, row_id, ("SENT",))
    assert (row["retry_count"], row["error_message"], row["idempotency_key"]) == (0, None, "memo-reset")
    assert len(mails_to(pipeline, "reset@example.com")) == 1
    wait_until(lambda: pipeline.history_count("correlation_id = 'memo-reset' AND status = 'sent'") == 1, 20, "history")
    assert pipeline.history_count("correlation_id = 'memo-reset'") == 2  # both attempts, under one key


def test_a_row_that_is_reset_while_it_is_under_way_is_sent_once(pipeline, memo):
    pipeline.mailbox.answer("451 4.3.0 later please")
    row_id = memo.memo("twice@example.com", "memo-twice")
    wait_until(lambda: memo.mail_row(row_id)["retry_count"] == 1, 30, "a first attempt")
    memo.sql("UPDATE email_outbox SET status = 'PENDING' WHERE id = %s", row_id)
    wait_row(memo, row_id, ("SENT",))
    time.sleep(2.5)  # a second one would have come by then
    assert len(mails_to(pipeline, "twice@example.com")) == 1
    assert pipeline.history_count("correlation_id = 'memo-twice'") == 1
    assert memo.mail_row(row_id)["status"] == "SENT"


def test_a_row_that_cannot_be_written_back_delays_no_other(memo):
    memo.sql("CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation USING MESSAGE = 'not sent'; END $$;"
             "CREATE TRIGGER forbid BEFORE UPDATE ON email_outbox FOR EACH ROW WHEN (new.recipient_email = 'stuck3@example.com' AND"
             " new.status = 'SENT') EXECUTE FUNCTION forbid()")
    rows = [memo.memo(f"stuck{n}@example.com", f"stuck-{n}") for n in range(6)]
    for n in (0, 1, 2, 4, 5):
        wait_row(memo, rows[n], ("SENT",))
    wait_until(lambda: memo.one("SELECT count(*) FROM stentor_outbox.rejected_rows WHERE row_key = %s", rows[3]) == 1, 60, "put aside")
    assert "not sent" in memo.one("SELECT reason FROM stentor_outbox.rejected_rows WHERE row_key = %s", rows[3])
    memo.sql("DROP TRIGGER forbid ON email_outbox")
    assert memo.one("SELECT state FROM stentor_outbox.requests WHERE row_key = %s", rows[3]) == "sent"
    wait_row(memo, memo.memo("unstuck@example.com", "stuck-after"), ("SENT",))


@contextlib.contextmanager
def under_way(pipeline, memo, tag, count):
    """Rows that are claimed and published; their mails are sent when the block ends."""
    dispatcher = pipeline.services["dispatcher"]
    dispatcher.pause()
    try:
        rows = [memo.memo(f"{tag}{n}@example.com", f"{tag}-{n}") for n in range(count)]
        published = "SELECT count(*) FROM stentor_outbox.requests WHERE state = 'published' AND row_key = ANY (%s)"
        wait_until(lambda: memo.one(published, rows) == count, 30, "all under way")
        yield rows
    finally:
        dispatcher.pause(False)


def test_a_right_that_is_gone_for_a_while_stops_nothing_for_good(pipeline, memo):
    with under_way(pipeline, memo, "right", 1) as (row_id,):
        memo.sql(f"REVOKE UPDATE ON email_outbox FROM {ROLE}")
    wait_until(lambda: memo.one("SELECT state FROM stentor_outbox.requests WHERE row_key = %s", row_id) == "sent", 30, "its letter")
    time.sleep(2)
    assert memo.mail_row(row_id)["status"] == "SENDING"
    memo.sql(f"GRANT UPDATE ON email_outbox TO {ROLE}")
    wait_row(memo, row_id, ("SENT",), 60)


def test_a_row_that_the_application_holds_holds_up_no_other(pipeline, memo):
    connection = psycopg2.connect(memo.postgres.url(database=memo.database))
    try:
        with connection.cursor() as cursor:
            with under_way(pipeline, memo, "held", 4) as rows:
                cursor.execute("SELECT FROM email_outbox WHERE id = %s FOR UPDATE", (rows[0],))
            for row_id in rows[1:]:
                wait_row(memo, row_id, ("SENT",))
            wait_until(lambda: memo.one("SELECT count(*) FROM stentor_outbox.pending_feedback") == 1, 20, "one is left")
            assert memo.mail_row(rows[0])["status"] == "SENDING"
        connection.rollback()
        wait_row(memo, rows[0], ("SENT",))
    finally:
        connection.close()


def test_a_row_that_is_sent_and_reset_is_sent_again(pipeline, memo):
    row_id = memo.memo("again@example.com", "memo-again")
    wait_row(memo, row_id, ("SENT",))
    memo.sql("UPDATE email_outbox SET status = 'PENDING' WHERE id = %s", row_id)
    wait_until(lambda: len(mails_to(pipeline, "again@example.com")) == 2, 30, "a second mail")
    wait_row(memo, row_id, ("SENT",))


def test_rows_that_do_not_fit_fail_with_the_reason_and_the_next_go_on(pipeline, memo):
    bad = [memo.memo("not an address", "bad-1"), memo.memo("bad2@example.com", "bad-2", payload={"subject": "x"}),
           memo.memo("bad3@example.com", "bad-3", payload=["no", "object"])]
    good = memo.memo("after@example.com", "good-1")
    wait_row(memo, good, ("SENT",))
    reasons = [wait_row(memo, row_id, ("FAILED",))["error_message"] for row_id in bad]
    assert "recipient_email" in reasons[0] and "payload" in reasons[1] and "payload" in reasons[2], reasons
    assert len(mails_to(pipeline, "after@example.com")) == 1


def test_what_the_gate_suppresses_fails_the_row(pipeline, memo):
    pipeline.cli("suppress", "add", "barred@example.com", "--reason", "manual", tenant="memo")
    row = wait_row(memo, memo.memo("barred@example.com", "memo-barred"), ENDS)
    assert row["status"] == "FAILED" and "manual" in row["error_message"], dict(row)
    assert mails_to(pipeline, "barred@example.com") == []


def test_a_command_that_ingest_refuses_fails_the_row(pipeline, memo):
    def change(mapping):
        mapping["name"] = "nowhere"
        mapping["fields"]["template"] = {"value": "no-such-template"}
    app = Application(pipeline, "memo", database="app_nowhere")
    app.process = app.relay(mapping=app.write_mapping("nowhere", change)).start()
    row = wait_row(app, app.memo("lost@example.com", "memo-lost"), ENDS)
    assert row["status"] == "FAILED" and "no-such-template" in row["error_message"], dict(row)
    assert app.process.stop() == 0


# ---- A: outboxes ----


def test_bookworms_mails_go_in_their_sequence_and_say_sent(pipeline, bookworm, events):
    bookworm.sql(
        "INSERT INTO outboxes (id, to_name, to_email, subject, body, is_sent, created_at) SELECT gen_random_uuid(), 'Reader', 'reader' || n ||"
        " '@example.com', 'Order ' || n, CASE WHEN n = 13 THEN '' ELSE '<p>Thank you.</p>' END, false, now() FROM generate_series(1, 50) AS n")
    wait_until(lambda: bookworm.one("SELECT count(*) FROM outboxes WHERE is_sent") == 49, 60, "49 sent")
    rows = bookworm.rows("SELECT * FROM outboxes ORDER BY sequence_number")
    assert all(row["sent_at"] > row["created_at"] for row in rows if row["is_sent"])
    (unsent,) = [row for row in rows if not row["is_sent"]]
    assert unsent["subject"] == "Order 13" and unsent["sent_at"] is None
    (refused,) = bookworm.sql("SELECT row_key, reason FROM stentor_outbox.rejected_rows")
    assert refused[0] == str(unsent["id"]) and "body" in refused[1], refused
    proto = messages(pipeline)
    keys = {str(row["id"]): row["sequence_number"] for row in rows}
    commands = [event for event in events.all() if event["subject"] == "evt.bookworm.notify"]
    order = [keys[str_id] for str_id in (str(proto.NotifyCommand.FromString(event["data"]).correlation_id) for event in commands) if str_id in keys]
    assert len(order) == 49 and order == sorted(order)
    (mail,) = mails_to(pipeline, "reader7@example.com")
    assert mail["Subject"] == "Order 7" and "Reader" in mail["To"]


# ---- B and C: events ----


def test_tenant_services_rows_become_events_of_their_tenant(tenant_service, events):
    tenant_service.sql(
        "INSERT INTO outbox (id, aggregate_id, aggregate_type, event_type, payload, headers) SELECT"
        " '01HZ' || upper(lpad(to_hex(n), 22, '0')), 'agg-' || n %% 3, 'invoice', 'invoice.issued', json_build_object('n', n),"
        " '{\"tenant_id\": \"acme\"}' FROM generate_series(1, 60) AS n".replace("%%", "%"))
    wait_until(lambda: tenant_service.one("SELECT count(*) FROM outbox WHERE published_at IS NULL") == 0, 30, "all published")
    found = events.all()
    assert len(found) == 60 and {event["subject"] for event in found} == {"evt.acme.invoice.issued"}
    numbers = [json.loads(event["data"])["n"] for event in found]
    for key in range(3):
        mine = [number for number in numbers if number % 3 == key]
        assert mine == sorted(mine), key
    assert found[0]["headers"]["ce-id"].startswith("01HZ") and found[0]["headers"]["ce-type"] == "invoice.issued"


def test_hotels_rows_become_events_and_count_their_tries(hotel, events):
    hotel.sql(
        "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key) SELECT 'evt-' || lpad(n::text, 4, '0'), 'acme',"
        " 'melmastoon.reservation.confirmed.v1', json_build_object('n', n), '{}', 'res-' || n % 4 FROM generate_series(1, 80) AS n")
    hotel.sql("INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key) VALUES"
              " ('bad-tenant', 'No Tenant!', 'x.y', '{}', '{}', 'k'), ('bad-type', 'acme', 'with blanks in it', '{}', '{}', 'res-1'),"
              " ('bad-data', 'acme', 'x.y', '[1]', '{}', 'res-1')")
    wait_until(lambda: hotel.one("SELECT count(*) FROM notification.outbox WHERE published_at IS NULL") == 3, 30, "all published that fit")
    rows = hotel.rows("SELECT * FROM notification.outbox WHERE published_at IS NOT NULL")
    assert {(row["publish_attempts"], row["last_error"]) for row in rows} == {(1, None)}
    found = [event for event in events.all() if event["subject"] == "evt.acme.melmastoon.reservation.confirmed.v1"]
    numbers = [json.loads(event["data"])["n"] for event in found]
    assert sorted(numbers) == list(range(1, 81))
    for key in range(4):
        mine = [number for number in numbers if number % 4 == key]
        assert mine == sorted(mine), key
    wait_until(lambda: hotel.one("SELECT count(*) FROM notification.outbox WHERE last_error IS NOT NULL") == 3, 20, "the reasons")
    reasons = dict(hotel.sql("SELECT id, last_error FROM notification.outbox WHERE published_at IS NULL"))
    assert "tenant" in reasons["bad-tenant"] and "type" in reasons["bad-type"] and "payload" in reasons["bad-data"], reasons


# ---- A and D: MassTransit ----


def test_masstransits_messages_go_in_the_order_of_their_outbox(bookworm_bus, events):
    app = bookworm_bus
    outboxes = [str(uuid.uuid4()) for _ in range(3)]
    for outbox in outboxes:
        app.sql("INSERT INTO outbox_state (outbox_id, lock_id, created) VALUES (%s, gen_random_uuid(), now())", outbox)
    consumer = str(uuid.uuid4())
    inbox = str(uuid.uuid4())
    app.sql("INSERT INTO inbox_state (message_id, consumer_id, lock_id, received, receive_count, consumed) VALUES (%s, %s, gen_random_uuid(), now(), 1, now())",
            inbox, consumer)
    insert = ("INSERT INTO outbox_message (message_id, message_type, body, content_type, enqueue_time, sent_time, outbox_id, inbox_message_id,"
              " inbox_consumer_id) SELECT gen_random_uuid(), 'urn:message:BookWorm.Contracts:UserCheckedOutIntegrationEvent',"
              " json_build_object('message', json_build_object('orderId', n, 'fullName', 'Ann')), 'application/vnd.masstransit+json', now(), now(),"
              " (('{' || %s || '}')::uuid[])[n % 4 + 1], CASE WHEN n % 4 = 3 THEN %s::uuid END,"
              " CASE WHEN n % 4 = 3 THEN %s::uuid END FROM generate_series(1, 100) AS n")
    app.sql(insert.replace("n % 4", "n %% 4"), ",".join(outboxes), inbox, consumer)
    wait_until(lambda: events.count() == 100, 30, "all published")
    found = events.all()
    assert {event["subject"] for event in found} == {"evt.bookworm.UserCheckedOut"}
    assert set(json.loads(found[0]["data"])) == {"order_id", "full_name"}
    numbers = [json.loads(event["data"])["order_id"] for event in found]
    for part in range(4):
        mine = [number for number in numbers if number % 4 == part]
        assert mine == sorted(mine), part
    wait_until(lambda: app.one("SELECT count(*) FROM outbox_state WHERE delivered IS NOT NULL") == 3, 20, "the states")
    last = dict(app.sql("SELECT outbox_id::text, max(sequence_number) FROM outbox_message WHERE outbox_id IS NOT NULL GROUP BY 1"))
    assert dict(app.sql("SELECT outbox_id::text, last_sequence_number FROM outbox_state")) == last
    assert app.sql("SELECT delivered IS NOT NULL, last_sequence_number FROM inbox_state") == [
        (True, app.one("SELECT max(sequence_number) FROM outbox_message WHERE inbox_message_id IS NOT NULL"))]
    assert all(event["headers"]["ce-id"] for event in found)
