# SPDX-License-Identifier: Apache-2.0
"""A notification that failed for good waits for manual review as a dead letter, and is sent again past all limits.

Rows A35 ("permanent failures: manual review"), A99 (ResendErrorEmailIntegrationEvent "past limits"), 3c and 15d of the audit. Only
`stentor`, the HTTP API and applications' events are used.
"""
import json
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

REFUSED = "554 5.7.1 rejected by policy"
NO_SUCH_USER = "550 5.1.1 no such user"


@pytest.fixture(scope="module")
def review():
    """A pipeline of its own: its dead letters are counted."""
    running = Pipeline(durable=True).start()
    yield running
    running.stop()


@pytest.fixture
def bus(review):
    client = NatsClient(review.nats.port)
    yield client
    client.close()


def letters(pipeline, notification=None):
    rows = [json.loads(line) for line in pipeline.cli("dlq", "list", "--json").splitlines()]
    return [row for row in rows if notification in (None, row["notification_id"])]


def letter_of(pipeline, notification):
    [row] = wait_until(lambda: letters(pipeline, notification), 20, "the dead letter")
    return row


def fresh(name):
    return f"{name}-{uuid.uuid4().hex[:8]}@example.com"


def refused(pipeline, reply, **fields):
    """A mail that the server refuses with that reply; returns its id."""
    pipeline.mailbox.answer(reply)
    notification = pipeline.send(**{"to": fresh("refused"), **fields})
    assert pipeline.status(notification, wait="failed")["status"] == "failed"
    return notification


def sent(pipeline, notification):
    wait_until(lambda: pipeline.status(notification)["status"] == "sent", 30, "the mail that was sent again")
    assert len(pipeline.mailbox.for_notification(notification)) == 1 and letters(pipeline, notification) == []
    return pipeline.status(notification)


def resend(pipeline, sequence):
    """(exit status, the letter's line)"""
    done = pipeline.run_cli("dlq", "resend", sequence, "--json")
    return done.returncode, json.loads(done.stdout.splitlines()[0])


def ask(bus, notification):
    event_id = f"resend-{uuid.uuid4().hex[:12]}"
    bus.publish(f"evt.{TENANT}.ResendErrorEmail", json.dumps({"notification_id": notification, "requested_by": "ops"}).encode(), event_id)


# ---- a mail that the server refused -------------------------------------------------------------------------------------


def test_a_554_has_a_dead_letter_and_is_sent_again_by_the_command(review):
    notification = refused(review, REFUSED)
    row = review.status(notification)
    assert (row["reason_code"], len(row["attempts"])) == ("rejected", 1)
    letter = letter_of(review, notification)
    assert (letter["stage"], letter["reason_code"], letter["attempts"]) == ("dispatcher", "rejected", 1)
    assert letter["reason"] == "rejected: rejected by policy"
    status, line = resend(review, letter["sequence"])
    assert (status, line["result"], line["attempt"]) == (0, "resent", 2)
    assert [attempt["number"] for attempt in sent(review, notification)["attempts"]] == [1, 2]


def test_a_554_is_sent_again_by_resend_error_email(review, bus):
    notification = refused(review, REFUSED)
    letter_of(review, notification)
    ask(bus, notification)
    sent(review, notification)


def test_one_that_is_refused_again_has_a_letter_again(review):
    notification = refused(review, REFUSED)
    first = letter_of(review, notification)
    review.mailbox.answer(REFUSED)
    assert resend(review, first["sequence"])[0] == 0
    second = wait_until(lambda: [row for row in letters(review, notification) if row["attempts"] == 2], 20, "the second letter")[0]
    assert resend(review, second["sequence"])[1]["attempt"] == 3
    sent(review, notification)


def test_a_dropped_letter_leaves_the_failure_as_it_was(review):
    notification = refused(review, REFUSED)
    review.cli("dlq", "drop", letter_of(review, notification)["sequence"])
    row = review.status(notification)
    assert (row["status"], row["reason_code"]) == ("failed", "rejected")


# ---- an address that does not exist -------------------------------------------------------------------------------------


def test_an_address_that_was_suppressed_must_be_released_first(review, bus):
    """The refusal suppressed it. Both ways of sending again say so and keep the letter."""
    to = fresh("gone")
    notification = refused(review, NO_SUCH_USER, to=to)
    letter = letter_of(review, notification)
    assert letter["reason_code"] == "invalid_address"
    listed = ("suppress", "list", "--address", to, "--json")
    wait_until(lambda: "hard_bounce" in review.cli(*listed), 10, "the suppression")
    status, line = resend(review, letter["sequence"])
    assert status == 1 and line["result"] == "refused"
    assert "its address is suppressed (hard_bounce)" in line["reason"] and "stentor suppress release" in line["reason"]
    ask(bus, notification)
    own = wait_until(lambda: [row for row in letters(review) if row["stage"] == "ingest"], 20, "the event's own dead letter")[0]
    assert "its address is suppressed (hard_bounce)" in own["reason"]
    review.cli("dlq", "drop", own["sequence"])
    assert letters(review, notification) and review.mailbox.for_notification(notification) == []

    review.cli("suppress", "release", "--address", to)
    wait_until(lambda: resend(review, letter["sequence"])[0] == 0, 10, "its being sent again")
    sent(review, notification)


def test_an_address_that_is_suppressed_by_policy_has_no_letter(review):
    to = fresh("manual")
    review.cli("suppress", "add", to)

    def suppressed():
        notification = review.send(to=to)
        return notification if review.status(notification, wait="sent")["status"] == "suppressed" else None
    notification = wait_until(suppressed, 15, "the suppression reaching ingest")
    assert letters(review, notification) == []


# ---- a template that cannot be rendered ---------------------------------------------------------------------------------


def publish_version(pipeline, key, version, **more):
    body = {"key": key, "version": version, "channel": "email", "category": "transactional",
            "locales": [{"locale": "en-US", "subject": "Receipt", "text": "Total: {{total}}"}], **more}
    status, _, answer = pipeline.post(body, path="/v1/templates")
    assert status == 201, answer


def failed_by_its_template(pipeline, bus, key):
    """A command without the variable that version 1.0.0 requires; the publisher waits for no answer."""
    publish_version(pipeline, key, "1.0.0", variables=[{"name": "total", "type": "string", "required": True}])
    correlation, to = uuid.uuid4().hex, fresh("receipt")
    command = messages(pipeline).NotifyCommand(to=to, template=key, variables_json='{"order":"A-1"}', correlation_id=correlation)
    bus.publish(f"evt.{TENANT}.notify", command.SerializeToString(), correlation)
    (notification,), = wait_until(
        lambda: pipeline.postgres.query("SELECT id FROM archiver.notifications WHERE correlation_id = %s AND status = 'failed'", correlation),
        20, "the failed notification")
    return notification


@pytest.mark.parametrize("by_event", [False, True], ids=["command", "ResendErrorEmail"])
def test_a_missing_variable_is_rendered_with_the_version_that_mends_it(review, bus, by_event):
    key = f"receipt-{uuid.uuid4().hex[:8]}"
    notification = failed_by_its_template(review, bus, key)
    letter = letter_of(review, notification)
    assert (letter["stage"], letter["reason_code"]) == ("renderer", "missing_variable") and "'total'" in letter["reason"]

    assert resend(review, letter["sequence"])[0] == 0  # nothing was mended yet: it fails again
    again = wait_until(lambda: [row for row in letters(review, notification) if row["sequence"] != letter["sequence"]], 20, "the second letter")[0]
    assert again["reason_code"] == "missing_variable"

    publish_version(review, key, "1.1.0")
    wait_until(lambda: '"1.1.0"' in review.cli("template", "show", key, "--json"), 10, "the version")
    if by_event:
        ask(bus, notification)
    else:
        assert resend(review, again["sequence"])[0] == 0
    row = sent(review, notification)
    assert row["template_version"] == "1.1.0"
