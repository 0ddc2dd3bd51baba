# SPDX-License-Identifier: Apache-2.0
"""ResendErrorEmail: a mail that failed for good goes out again because an event says so."""
import json
import time
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.operating.test_cleanup import aged
from tests.integration.operating.test_dlq import EVERY_ATTEMPT, LIMITED, TRY_LATER, all_are, exhaust, letters, letters_of, make_letter, rendered_of

OTHER = "globex"
PROTOBUF = {"Content-Type": "application/protobuf"}


@pytest.fixture(scope="module")
def limited():
    running = Pipeline(LIMITED, durable=True).start()
    yield running
    running.stop()


@pytest.fixture
def bus(limited):
    client = NatsClient(limited.nats.port)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def no_letters(limited):
    yield
    limited.cli("dlq", "drop", "--all", "--yes", "--all-tenants")


def ask(pipeline, bus, notification, event_id=None, tenant=TENANT, **fields):
    """Publishes the event as protobuf; returns its id."""
    event = messages(pipeline).ResendErrorEmail(notification_id=notification, requested_by="ops@acme.test", **fields)
    event_id = event_id or f"resend-{uuid.uuid4().hex[:12]}"
    bus.publish(f"evt.{tenant}.ResendErrorEmail", event.SerializeToString(), event_id, headers=PROTOBUF)
    return event_id


def ask_json(bus, body, headers=None, tenant=TENANT):
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    bus.publish(f"evt.{tenant}.ResendErrorEmail", payload, f"resend-{uuid.uuid4().hex[:12]}", headers=headers)


def counted(pipeline, result):
    name = f'stentor_ingest_resends_total{{result="{result}"}} '
    text = pipeline.services["ingest"].get("/metrics")[1]
    return next(float(line[len(name):]) for line in text.splitlines() if line.startswith(name))


def sent(pipeline, notification, mails=1):
    wait_until(lambda: pipeline.status(notification)["status"] == "sent", 30, "the mail that was sent again")
    wait_until(lambda: letters_of(pipeline, notification) == [], 10, "the letter being deleted")
    assert len(pipeline.mailbox.for_notification(notification)) == mails
    return pipeline.status(notification)


def refusal(pipeline, tenant=TENANT):
    """The dead letter of an event that could not be followed."""
    def found():
        return [letter for letter in letters(pipeline, "--stage", "ingest", "--all-tenants") if letter["tenant"] == tenant]
    return wait_until(found, 20, "the event's own dead letter")[0]["reason"]


def noted(pipeline, event_id):
    return pipeline.postgres.query(
        "SELECT tenant_id, notification_id, requested_by, resent_at IS NOT NULL FROM ingest.resends WHERE event_identity = %s", event_id)


# ---- sent again -----------------------------------------------------------------------------------------------------


def test_a_mail_that_failed_for_good_arrives_after_the_event(limited, bus):
    notification = exhaust(limited)[0]
    event_id = ask(limited, bus, notification)
    row = sent(limited, notification)
    assert [attempt["number"] for attempt in row["attempts"]] == list(range(1, EVERY_ATTEMPT + 2)) and row["attempts"][-1]["outcome"] == "accepted"
    assert noted(limited, event_id) == [(TENANT, notification, "ops@acme.test", True)]
    assert [step["status"] for step in row["timeline"]] == ["queued", "rendered", "failed", "sent"]


@pytest.mark.parametrize("headers,wrap", [
    (None, lambda data: data),
    (None, lambda data: {"specversion": "1.0", "id": uuid.uuid4().hex, "type": "ResendErrorEmail", "source": "/ops", "data": data}),
    ({"ce-specversion": "1.0", "ce-id": "resend-from-the-console", "ce-type": "ResendErrorEmail"}, lambda data: data),
], ids=["plain", "structured", "binary"])
def test_the_event_may_be_json_or_a_cloudevent(limited, bus, headers, wrap):
    notification = exhaust(limited)[0]
    ask_json(bus, wrap({"notification_id": notification, "requested_by": "ops"}), headers)
    sent(limited, notification)


def test_the_same_event_twice_sends_once_also_when_the_mail_has_failed_again(limited, bus):
    """Beyond JetStream's duplicate window, as an outbox or a replay may publish it."""
    config = {**bus.stream_info("EVENTS")["config"], "duplicate_window": 100_000_000}
    bus.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(config).encode())
    notification = exhaust(limited)[0]
    limited.mailbox.answer(TRY_LATER, times=EVERY_ATTEMPT)
    event_id = ask(limited, bus, notification)
    second = wait_until(lambda: [one for one in letters_of(limited, notification) if one["attempts"] == 2 * EVERY_ATTEMPT], 30, "the second letter")
    wait_until(lambda: noted(limited, event_id)[0][3], 10, "the first event's mark")

    repeated = counted(limited, "repeated")
    ask(limited, bus, notification, event_id)
    wait_until(lambda: counted(limited, "repeated") > repeated, 20, "the same event being passed over")
    assert limited.status(notification)["status"] == "failed" and letters_of(limited, notification)[0]["sequence"] == second[0]["sequence"]

    ask(limited, bus, notification)  # a new one
    assert len(sent(limited, notification)["attempts"]) == 2 * EVERY_ATTEMPT + 1


def test_two_events_at_once_about_one_mail_send_it_once(limited, bus):
    notification = exhaust(limited)[0]
    ids = [ask(limited, bus, notification) for _ in range(3)]
    sent(limited, notification)
    wait_until(lambda: all(noted(limited, one) or letters(limited, "--stage", "ingest") for one in ids), 20, "every event's end")
    time.sleep(1)
    assert len(limited.mailbox.for_notification(notification)) == 1


def test_many_events_are_followed_together(limited, bus):
    ids = exhaust(limited, 70)
    resent = counted(limited, "resent")
    for notification in ids:
        ask(limited, bus, notification)
    wait_until(lambda: all_are(limited, ids, "sent"), 60, "the mails that were sent again")
    wait_until(lambda: letters(limited) == [], 10, "the letters being deleted")
    assert [len(limited.mailbox.for_notification(notification)) for notification in ids] == [1] * len(ids)
    assert counted(limited, "resent") == resent + len(ids)


def test_a_request_that_could_not_be_rendered_is_driven_again(limited, bus):
    """Its letter is the request's: the renderer gets it again, as from dlq resend."""
    notification = exhaust(limited)[0]
    event = rendered_of(limited, bus, notification)
    limited.cli("dlq", "drop", letters_of(limited, notification)[0]["sequence"])
    make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}", stage="renderer", reason="the store was away")
    ask(limited, bus, notification)
    sent(limited, notification)


# ---- a letter that is gone, or stays --------------------------------------------------------------------------------


def times(pipeline, event_id):
    """published, resent, gone"""
    rows = pipeline.postgres.query("SELECT published_at IS NOT NULL, resent_at IS NOT NULL, gone_at IS NOT NULL FROM ingest.resends"
                                   " WHERE event_identity = %s", event_id)
    return rows[0] if rows else None


def test_a_noted_dead_letter_that_is_dropped_is_not_on_record_as_sent(limited, bus):
    """Killed between the note and the publish, and the letter dropped by hand before the event comes again."""
    notification = exhaust(limited)[0]
    sequence = letters_of(limited, notification)[0]["sequence"]
    event_id = f"resend-{uuid.uuid4().hex[:12]}"
    limited.postgres.query("INSERT INTO ingest.resends (tenant_id, event_identity, notification_id, letter_sequence, requested_by)"
                           " VALUES (%s, %s, %s, %s, '')", TENANT, event_id, notification, sequence)
    limited.cli("dlq", "drop", sequence)
    before = {result: counted(limited, result) for result in ("resent", "repeated", "gone")}
    ask(limited, bus, notification, event_id)
    wait_until(lambda: times(limited, event_id) == (False, False, True), 20, "the record of its being gone")
    assert {result: counted(limited, result) for result in before} == {**before, "gone": before["gone"] + 1}
    log = limited.services["ingest"].log.read_text().splitlines()
    about = [line for line in log if event_id in line and notification in line]
    assert len(about) == 1 and "failed mail is not sent again" in about[0]
    assert limited.mailbox.for_notification(notification) == [] and limited.status(notification)["status"] == "failed"


def test_a_letter_that_cannot_be_deleted_is_not_done(limited, bus):
    """Else the next event would find it and send it once more."""
    notification = exhaust(limited)[0]
    config = bus.stream_info("DEAD")["config"]

    def stream_api(verb, body=b""):
        answer = json.loads(bus.request(f"$JS.API.STREAM.{verb}.DEAD", body))
        assert "error" not in answer, answer
    stream_api("UPDATE", json.dumps({**config, "deny_delete": True}).encode())
    try:
        event_id = ask(limited, bus, notification)
        wait_until(lambda: limited.status(notification)["status"] == "sent", 30, "the mail")
        wait_until(lambda: times(limited, event_id) == (True, False, False), 10, "the mark between publish and delete")
        time.sleep(2)
        assert times(limited, event_id) == (True, False, False), "the letter is still there"
    finally:
        stream_api("DELETE")  # there is no way back from deny_delete
        stream_api("CREATE", json.dumps(config).encode())
    wait_until(lambda: times(limited, event_id) == (True, True, False), 60, "the event's end, now that the letter is gone")
    assert len(limited.mailbox.for_notification(notification)) == 1


# ---- refused --------------------------------------------------------------------------------------------------------


def test_another_tenant_cannot_have_it_sent(limited, bus):
    notification = exhaust(limited)[0]
    limited.cli("tenant", "put", OTHER)
    ask(limited, bus, notification, tenant=OTHER)
    assert f"tenant '{OTHER}' has no dead letter of '{notification}' (not known to it)" in refusal(limited, OTHER)
    assert letters_of(limited, notification) and limited.mailbox.for_notification(notification) == []


def test_one_that_was_sent_is_refused_with_its_status(limited, bus):
    notification = limited.send()
    limited.status(notification, wait="sent")
    ask(limited, bus, notification)
    assert f"has no dead letter of '{notification}' (it is sent)" in refusal(limited)
    assert len(limited.mailbox.for_notification(notification)) == 1


def test_one_that_has_been_sent_since_is_refused_though_its_letter_is_there(limited, bus):
    notification = exhaust(limited)[0]
    subject, stored = bus.message("DEAD", seq=letters_of(limited, notification)[0]["sequence"])
    ask(limited, bus, notification)
    sent(limited, notification)
    bus.publish(subject, stored, "an-old-letter-of-it")
    ask(limited, bus, notification)
    assert f"'{notification}' was given to the mail server, it is 'sent'" in refusal(limited)
    assert len(limited.mailbox.for_notification(notification)) == 1


def test_an_unknown_id_is_reported(limited, bus):
    ask(limited, bus, "ntf_01KAGTQ5M0000000000000000A")
    assert "not known to it" in refusal(limited)


@pytest.mark.parametrize("days,known", [(40, True), (40, False), (120, True), (120, False)])
def test_an_old_one_without_a_letter_is_looked_for_once(limited, bus, days, known):
    """Not five times with a second between: each look reads DEAD from its time on, and anybody can make up an id."""
    notification = aged(days)
    if known:
        limited.postgres.query("SELECT stentor.ensure_partitions('archiver.notifications', now() - interval '130 days', now())")
        limited.postgres.query(
            "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, status_rank, updated_at) VALUES"
            " (ingest.id_time(%s), %s, %s, 'email', 'failed', 11, ingest.id_time(%s))", notification, notification, TENANT, notification)
    started = time.monotonic()
    ask(limited, bus, notification)
    assert f"no dead letter of '{notification}' ({'it is failed' if known else 'not known to it'})" in refusal(limited)
    assert time.monotonic() - started < 3.5


def test_one_that_was_scheduled_long_ago_and_failed_just_now_is_found(limited, bus):
    """History may be behind: it says that it waits."""
    notification = exhaust(limited)[0]
    subject, stored = bus.message("DEAD", seq=letters_of(limited, notification)[0]["sequence"])
    old = aged(120)
    assert len(old) == len(notification) and old.encode() not in stored
    bus.publish(subject, stored.replace(notification.encode(), old.encode()), f"old-{old}")
    limited.postgres.query("SELECT stentor.ensure_partitions('archiver.notifications', now() - interval '130 days', now())")
    limited.postgres.query(
        "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, status_rank, updated_at) VALUES"
        " (ingest.id_time(%s), %s, %s, 'email', 'scheduled', 2, ingest.id_time(%s))", old, old, TENANT, old)
    event_id = ask(limited, bus, old)
    wait_until(lambda: times(limited, event_id) == (True, True, False), 20, "its being sent again")


@pytest.mark.parametrize("body,reason", [
    ({"notification_id": "ntf_1"}, "field 'notification_id'"),
    ({}, "field 'notification_id'"),
    ({"notification_id": 7}, "field 'notification_id'"),
    ({"notification_id": "ntf_01KAGTQ5M0000000000000000A", "may_double": "yes"}, "field 'may_double'"),
    ({"notification_id": "ntf_01KAGTQ5M0000000000000000A", "requested_by": "x" * 129}, "field 'requested_by'"),
    (b"\xff", "ResendErrorEmail"),
    (b"[]", "ResendErrorEmail"),
])
def test_what_does_not_fit_names_the_field(limited, bus, body, reason):
    ask_json(bus, body)
    assert reason in refusal(limited)


def test_what_may_have_been_sent_needs_the_word(limited, bus):
    notification = exhaust(limited)[0]
    event = rendered_of(limited, bus, notification)
    limited.cli("dlq", "drop", letters_of(limited, notification)[0]["sequence"])
    make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}", reason="unknown_outcome: a process ended")
    ask(limited, bus, notification)
    assert "may have been sent already" in refusal(limited) and limited.mailbox.for_notification(notification) == []
    ask(limited, bus, notification, may_double=True)
    sent(limited, notification)


def test_an_expired_one_needs_the_word(limited, bus):
    notification = exhaust(limited)[0]
    event = rendered_of(limited, bus, notification)
    limited.cli("dlq", "drop", letters_of(limited, notification)[0]["sequence"])
    event.expires_at_us = int(time.time() * 1e6) - 1
    make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}")
    ask(limited, bus, notification)
    assert "it expired at" in refusal(limited)
    ask(limited, bus, notification, ignore_expiry=True)
    sent(limited, notification)


def test_a_refused_event_sent_again_is_decided_again(limited, bus):
    """The reason is gone by then: here the letter comes late, from a store that was restored."""
    notification = exhaust(limited)[0]
    sequence = letters_of(limited, notification)[0]["sequence"]
    subject, stored = bus.message("DEAD", seq=sequence)
    bus.request("$JS.API.STREAM.MSG.DELETE.DEAD", json.dumps({"seq": sequence}).encode())
    ask(limited, bus, notification)
    assert "(it is failed)" in refusal(limited)
    bus.publish(subject, stored, "the-letter-again")
    config = {**bus.stream_info("EVENTS")["config"], "duplicate_window": 100_000_000}
    bus.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(config).encode())
    limited.cli("dlq", "resend", "--all", "--stage", "ingest")
    sent(limited, notification)


# ---- what goes away -------------------------------------------------------------------------------------------------


def test_events_wait_for_nats_and_postgres(limited, bus):
    ids = exhaust(limited, 3)
    limited.postgres.kill()
    for notification in ids:
        ask(limited, bus, notification)
    time.sleep(1)
    limited.postgres.start()
    for notification in ids:
        sent(limited, notification)


def test_ingest_that_stops_leaves_the_event_to_the_next(limited, bus):
    ids = exhaust(limited, 5)
    for notification in ids:
        ask(limited, bus, notification)
    limited.services["ingest"].stop()
    limited.services["ingest"].start()
    for notification in ids:
        sent(limited, notification)
