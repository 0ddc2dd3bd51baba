# SPDX-License-Identifier: Apache-2.0
"""Triggers with what stands behind them: recipients that are known, and the clock that cancels what waits."""
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import call, guest, handled, mails_to, new_type, one_mail, publish, put_trigger


def new_person(pipeline):
    """(rcp_ id, the tenant's own id, address); known to the projection."""
    own, address = uuid.uuid4().hex, f"{uuid.uuid4().hex}@example.com"
    status, answer = call(pipeline, "POST", "/v1/recipients", {
        "identity_type": "guest", "identity_id": own, "name": "Gül Ünal", "addresses": [{"channel": "email", "address": address}]})
    assert status in (200, 201, 202), answer
    known = "SELECT count(*) FROM people.recipients WHERE recipient_id = %s"
    wait_until(lambda: pipeline.postgres.query(known, answer["id"])[0][0] == 1, 20, "the recipient's row")
    return answer["id"], own, address


def test_each_resolver_finds_the_people_that_it_names(pipeline, nats):
    (first, _, first_address), (second, own, second_address) = new_person(pipeline), new_person(pipeline)
    by_id, by_identity, by_list = new_type("a"), new_type("b"), new_type("c")
    put_trigger(pipeline, by_id, resolver="recipient:who")
    put_trigger(pipeline, by_identity, resolver="identity:guest:stay.guest")
    put_trigger(pipeline, by_list, resolver="recipients:all")
    publish(nats, by_id, {"who": first, "name": "A"})
    assert len(one_mail(pipeline, first_address)) == 1
    publish(nats, by_identity, {"stay": {"guest": own}, "name": "B"})
    assert len(one_mail(pipeline, second_address)) == 1
    publish(nats, by_list, {"all": [first, second, first], "name": "C"})
    wait_until(lambda: len(mails_to(pipeline, first_address)) == 2 and len(mails_to(pipeline, second_address)) == 2, 30, "both mails")


def test_a_recipient_that_is_made_just_after_the_event_is_waited_for(pipeline, nats):
    event_type, own, address = new_type("early"), uuid.uuid4().hex, f"{uuid.uuid4().hex}@example.com"
    put_trigger(pipeline, event_type, resolver="identity:guest:who")
    publish(nats, event_type, {"who": own, "name": "A"})
    status, answer = call(pipeline, "POST", "/v1/recipients", {
        "identity_type": "guest", "identity_id": own, "addresses": [{"channel": "email", "address": address}]})
    assert status in (200, 201, 202), answer
    assert len(one_mail(pipeline, address)) == 1


@pytest.mark.parametrize("order", ["after", "before"])
def test_a_cancelled_stay_cancels_its_reminder_whichever_event_comes_first(pipeline, nats, order):
    event_type, cancelled = new_type("stay"), new_type("cancelled")
    put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id", obsoleted_by=[cancelled])
    made = datetime.now(timezone.utc) - timedelta(minutes=5)
    due = datetime.now(timezone.utc) + timedelta(seconds=6)
    gone, stays = guest(stay={"id": "gone", "start": due.isoformat()}), guest(stay={"id": "stays", "start": due.isoformat()})
    events = [(event_type, made, gone), (event_type, made, stays), (cancelled, made + timedelta(minutes=1), {"stay": {"id": "gone"}})]
    for n, (kind, at, data) in enumerate(events if order == "after" else reversed(events)):
        body = {"specversion": "1.0", "id": f"{event_type}-{n}", "type": kind, "time": at.isoformat(), "data": data}
        handled(pipeline, nats, publish(nats, kind, body))
    assert len(one_mail(pipeline, stays["guest"]["email"])) == 1
    rows = "SELECT id FROM archiver.notifications WHERE status = 'suppressed' AND reason_code = 'obsolete' AND created_at > now() - interval '1 hour'"
    before = wait_until(lambda: pipeline.postgres.query(rows), 20, "the suppressed reminder")
    assert before and mails_to(pipeline, gone["guest"]["email"]) == []


def test_an_event_that_moves_a_stay_replaces_its_reminder_and_not_itself(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id", obsoleted_by=[event_type])
    due = datetime.now(timezone.utc) + timedelta(seconds=6)
    first, moved = guest(stay={"id": "s", "start": due.isoformat()}), guest(stay={"id": "s", "start": due.isoformat()})
    handled(pipeline, nats, publish(nats, event_type, first))
    handled(pipeline, nats, publish(nats, event_type, moved))
    assert len(one_mail(pipeline, moved["guest"]["email"])) == 1
    assert mails_to(pipeline, first["guest"]["email"]) == []


def test_a_newer_event_without_recipients_ends_the_reminders_of_the_earlier_one(pipeline, nats):
    """All guests were taken off the stay: what waits has the list of before."""
    event_type, (person, _, _) = new_type("stay"), new_person(pipeline)
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id", resolver="recipients:all")
    start = (datetime.now(timezone.utc) + timedelta(days=9)).isoformat()
    waiting = "SELECT count(*) FROM digest_flusher.due_work WHERE cancel_key = %s AND status IS NULL"
    for guests, left in [([person], 1), ([], 0)]:
        handled(pipeline, nats, publish(nats, event_type, {"all": guests, "name": "A", "stay": {"id": "s", "start": start}}))
        wait_until(lambda n=left: pipeline.postgres.query(waiting, f"{trigger}/s")[0][0] == n, 20, f"{left} reminders")


def test_a_date_without_a_zone_is_of_the_tenants(pipeline, nats):
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start")
    day = (datetime.now(timezone.utc) + timedelta(days=10)).date()
    data = guest(stay={"start": day.isoformat()})
    pipeline.cli("tenant", "put", TENANT, "--time-zone", "Asia/Kolkata")  # the same offset all the year
    try:
        there = (datetime(day.year, day.month, day.day, tzinfo=timezone.utc) - timedelta(hours=5, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        wait_until(lambda: call(pipeline, "POST", f"/v1/triggers/{trigger}/try", data)[1]["due_at"] == there, 20, "the tenant's zone")
    finally:
        pipeline.cli("tenant", "put", TENANT, "--time-zone", "UTC")
