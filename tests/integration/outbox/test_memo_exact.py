# SPDX-License-Identifier: Apache-2.0
"""E, the memo service's email_outbox, to the letter (memo-exact.json): states while a mail is retried, attempts, gauges, templates by type."""
import contextlib
import time

import pytest

from tests.harness.outbox import MAPPINGS, Application, prepare
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until

LATER = "451 4.3.0 later please"


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "3600"}).start()  # the mapping's own is another
    prepare(pipeline)
    yield pipeline
    pipeline.stop()


@pytest.fixture(name="app", scope="module")
def _app(pipeline):
    return Application(pipeline, "memo", mapping=MAPPINGS / "memo-exact.json", database="app_memo_exact")


@contextlib.contextmanager
def relays(app, count, waits="1s"):
    def change(mapping):
        mapping["retries"] = {"max_attempts": 5, "waits": [waits]}
        mapping["fields"]["template"] = {
            "column": "event_type", "with": "notification_type", "names": {"memo.closed MEMO_CLOSED": "memo-closed"},
            "else": mapping["fields"]["template"]}

    started = [app.relay(f"-{n}", mapping=app.write_mapping(f"exact-{waits}", change)).start() for n in range(count)]
    try:
        yield started
    finally:
        for relay in started:
            relay.stop()


def states(app, row_id, end, seconds=30):
    """Each state of the row as it is seen, without repeats, until it ends so: [("PENDING", 0) ...]."""
    seen = []
    until = time.monotonic() + seconds
    while not seen or seen[-1][0] not in end:
        assert time.monotonic() < until, seen
        row = app.mail_row(row_id)
        if seen[-1:] != [(row["status"], row["retry_count"])]:
            seen.append((row["status"], row["retry_count"]))
        time.sleep(0.02)
    return seen


def claimed(started):
    return sum(relay.metric("stentor_outbox_relay_claimed_total") for relay in started)


def mails_to(pipeline, address):
    return [mail for mail in pipeline.mailbox.mails(address) if address in mail["To"]]


def test_a_row_is_pending_between_retries_and_failed_at_the_fifth_attempt(pipeline, app):
    """E, section 5: status := "PENDING"; if j.retryCount+1 >= 5 { status = "FAILED" } (rows E09, E10, E42, finding 11)."""
    with relays(app, 1) as (relay,):
        pipeline.mailbox.answer(LATER, times=5)
        row_id = app.memo("never@example.com", "exact-never")
        seen = states(app, row_id, ("FAILED", "SENT"))
        assert [state for state in seen if state[1] > 0] == [("PENDING", 1), ("PENDING", 2), ("PENDING", 3), ("PENDING", 4), ("FAILED", 5)]
        assert set(seen[:-5]) <= {("PENDING", 0), ("SENDING", 0)}
        assert "later please" in app.mail_row(row_id)["error_message"]
        assert claimed([relay]) == 1
        wait_until(lambda: relay.metric("stentor_outbox_relay_failed_rows") == 1, 30, "the gauge of FAILED rows (row E37)")
        pipeline.mailbox.answer(LATER, times=1)
        waiting = app.memo("once@example.com", "exact-once")
        assert states(app, waiting, ("SENT", "FAILED"))[-1] == ("SENT", 1)
        (mail,), (tried,) = mails_to(pipeline, "once@example.com"), pipeline.mailbox.refusals("once@example.com")
        assert tried["Message-ID"] == mail["Message-ID"], "the key that a provider may drop a double by (rows E32, E41)"


def test_four_relays_do_not_claim_what_is_retried_and_do_claim_what_an_operator_sets_back(pipeline, app):
    """E, section 8: UPDATE email_outbox SET status = 'PENDING', retry_count = 0 ... (item 19 of the issue)."""
    reset = "UPDATE email_outbox SET status = 'PENDING', retry_count = 0, error_message = NULL, meta_updated_at = now() WHERE id = %s"
    with relays(app, 4, waits="7s") as started:
        pipeline.mailbox.answer(LATER)
        row_id = app.memo("retried@example.com", "exact-retried")
        wait_until(lambda: app.mail_row(row_id)["retry_count"] == 1, 30, "the first failed attempt")
        time.sleep(1.5)  # each of the four polls once a second
        assert (app.mail_row(row_id)["status"], claimed(started)) == ("PENDING", 1), "none takes it"
        app.sql(reset, row_id)
        wait_until(lambda: claimed(started) == 2, 5, "the claim of what the operator set back")
        assert states(app, row_id, ("SENT", "FAILED"))[-1][0] == "SENT"
        assert len(mails_to(pipeline, "retried@example.com")) == 1, "the same request: not sent twice"
        before = claimed(started)
        pipeline.mailbox.answer("554 5.7.1 not today")
        failed = app.memo("failed@example.com", "exact-failed")
        assert states(app, failed, ("FAILED",))[-1] == ("FAILED", 1)
        app.sql(reset, failed)
        assert states(app, failed, ("SENT",))[-1] == ("SENT", 0)
        assert claimed(started) == before + 2 and len(mails_to(pipeline, "failed@example.com")) == 1


def test_the_gauges_show_the_retry_counts(pipeline, app):
    """E, section 9: "Track gauges for status='PENDING', status='FAILED', and retry counts" (rows E36 to E38)."""
    with relays(app, 1, waits="1h") as (relay,):
        pipeline.mailbox.answer(LATER)
        row_id = app.memo("counted@example.com", "exact-counted")
        wait_until(lambda: app.mail_row(row_id)["retry_count"] == 1, 20, "the first failed attempt")
        wait_until(lambda: relay.metric('stentor_outbox_relay_retrying_rows{attempts="1"}') == 1, 30, "the gauge of retry counts")
        assert relay.metric("stentor_outbox_relay_retrying_rows") == 1 and relay.metric("stentor_outbox_relay_backlog") == 0
        assert app.mail_row(row_id)["status"] == "PENDING"


def test_the_types_of_a_row_choose_its_template(pipeline, app):
    """E, section 3: event_type, notification_type (row E15); another type goes out with the words that stand in the row."""
    text = pipeline.folder / "memo-closed.txt"
    text.write_text("The memo is closed.\n{{body}}")
    pipeline.cli("template", "put", "memo-closed", "--subject", "Closed: {{subject}}", "--text", text, tenant="memo")
    with relays(app, 1):
        closed = app.memo("closed@example.com", "exact-closed", "Budget", "See you.")
        app.sql("INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type, idempotency_key)"
                " SELECT memo_id, 'memo.closed', payload, 'typed@example.com', 'MEMO_CLOSED', 'exact-typed' FROM email_outbox WHERE id = %s", closed)
        typed = app.one("SELECT id FROM email_outbox WHERE idempotency_key = 'exact-typed'")
        for row_id in (closed, typed):
            assert states(app, row_id, ("SENT", "FAILED"))[-1][0] == "SENT", app.mail_row(row_id)["error_message"]
        assert mails_to(pipeline, "closed@example.com")[0]["Subject"] == "Budget"
        (mail,) = mails_to(pipeline, "typed@example.com")
        assert mail["Subject"] == "Closed: Budget" and "The memo is closed." in mail.get_content()


def test_a_payload_without_a_body_says_exactly_that(app):
    """Row E44, finding 11: it said "fields.template (column 'payload') is not a template's key"."""
    with relays(app, 1):
        row_id = app.memo("bodyless@example.com", "exact-bodyless", payload={"subject": "x"})
        assert states(app, row_id, ("FAILED",))[-1] == ("FAILED", 0)
        assert app.mail_row(row_id)["error_message"] == "fields.template (column 'payload') has no member 'body'"
