# SPDX-License-Identifier: Apache-2.0
"""Domain events become notifications: whatever they are written in, however often they come, whatever is killed meanwhile."""
import http.client
import json
import re
import random
import subprocess
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, HOME, wait_until
from tests.harness.protobuf import messages
from tests.integration.erasure.sealed_events import opened

EVENTS = 3_000
FAST = {"STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_RETRY_LADDER": "1,1,1,1,1", "STENTOR_INGEST_SWEEP_AGE_MS": "2000"}


# ---- what every test needs ------------------------------------------------------------------------------------------------


def call(pipeline, method, path, body=None, key=None, headers=None):
    """(status, parsed body) of the API."""
    status, _, answer = call_with_headers(pipeline, method, path, body, key, headers)
    return status, answer


def call_with_headers(pipeline, method, path, body=None, key=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, raw, {"Authorization": f"Bearer {key or pipeline.key}", **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if text else None
    finally:
        connection.close()


def new_type(name):
    """An event type of its own, so that tests do not meet each other's triggers."""
    return f"{name}.t{uuid.uuid4().hex[:12]}"


def put_trigger(pipeline, event_type, name="t", key=None, **fields):
    """Puts a trigger that sends 'welcome' to guest.email and waits until ingest knows it; returns its key."""
    trigger = f"{name}-{event_type.rsplit('.', 1)[-1]}"
    body = {"event_type": event_type, "template": "welcome", "resolver": "address:guest.email", "name_path": "guest.name", **fields}
    status, headers, answer = call_with_headers(pipeline, "PUT", f"/v1/triggers/{trigger}", body, key=key)
    assert status == 200, answer
    pipeline.wait_config(int(headers["ETag"].strip('"')), "ingest", "gateway")
    return trigger


def guest(**fields):
    """An event's data; the address is new, so that its mails can be counted."""
    return {"guest": {"email": f"{uuid.uuid4().hex}@example.com", "name": "Gül Ünal"}, "name": "Gül", **fields}


def mails_to(pipeline, address):
    return [mail for mail in pipeline.mailbox.mails(address) if address in str(mail["To"])]


def one_mail(pipeline, address, timeout=30):
    wait_until(lambda: mails_to(pipeline, address), timeout, f"the mail to {address}")
    return mails_to(pipeline, address)


def publish(nats, event_type, data, event_id=None, headers=None, tenant=TENANT):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return nats.publish(f"evt.{tenant}.{event_type}", raw, event_id, headers)


def handled(pipeline, nats, ack):
    """ingest has acked the event and everything before it."""
    def done():
        info = json.loads(nats.request("$JS.API.CONSUMER.INFO.EVENTS.ingest"))
        return info["ack_floor"]["stream_seq"] >= ack["seq"]
    wait_until(done, 30, "the event's ack")


def stored(nats, stream, since, subject):
    """What a stream got on that subject after the sequence `since`."""
    last = nats.stream_info(stream)["state"]["last_seq"]
    found = [nats.message(stream, seq=seq) for seq in range(since + 1, last + 1)]
    return [payload for item in found if item for name, payload in [item] if name == subject]


def last_seq(nats, stream):
    return nats.stream_info(stream)["state"]["last_seq"]


def letters(pipeline, nats, since):
    raw = stored(nats, "DEAD", since, f"ntf.dead.ingest.{TENANT}")
    return [messages(pipeline).DeadLetter.FromString(payload) for payload in raw]


def deferred(pipeline, nats, since, reason):
    raw = stored(nats, "DEFERRED", since, f"ntf.deferred.{reason}.{TENANT}")
    return [messages(pipeline).Deferred.FromString(payload) for payload in raw]


# ---- what an event may be written in --------------------------------------------------------------------------------------


def test_a_json_event_becomes_a_mail_and_three_times_the_same_one_make_one(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type)
    data = guest(plan="suite")
    first = publish(nats, event_type, data, headers={"ce-specversion": "1.0", "ce-id": event_type, "ce-type": "x"})
    second = publish(nats, event_type, data, headers={"ce-specversion": "1.0", "ce-id": event_type, "ce-type": "x"})
    third = publish(nats, event_type, data, event_id=event_type)
    assert len({first["seq"], second["seq"], third["seq"]}) == 3  # no duplicate for JetStream
    handled(pipeline, nats, third)
    mail = one_mail(pipeline, data["guest"]["email"])[0]
    assert "Welcome, Gül!" in str(mail["Subject"]) and "Gül Ünal" in str(mail["To"])
    time.sleep(1)
    assert len(mails_to(pipeline, data["guest"]["email"])) == 1
    rows = pipeline.postgres.query(f"SELECT count(*) FROM ingest.idempotency_keys WHERE scope = 'trigger' AND response_body LIKE '%ntf_%'")
    assert rows[0][0] >= 1


def notification_of(mail):
    return re.search("ntf_[0-9A-Z]{26}", mail["Message-ID"])[0]


def test_history_knows_which_event_a_mail_came_from_and_what_it_belongs_to(pipeline, nats):
    """B09, C20, D21: source event id and type; the correlation id of the event's data, in either spelling, is the notification's."""
    event_type = new_type("stay")
    put_trigger(pipeline, event_type)
    for name in ("correlation_id", "correlationId"):
        data = guest(**{name: f"{event_type}-order"})
        publish(nats, event_type, data, event_id=f"{event_type}-{name}")
        mail = one_mail(pipeline, data["guest"]["email"])[0]
        row = pipeline.status(notification_of(mail), wait="sent")
        assert (row["source_event_id"], row["source_event_type"], row["correlation_id"]) == (
            f"{event_type}-{name}", event_type, f"{event_type}-order"), row
    for value in ("x" * 200, "alice@example.com"):  # no request can have it, or it is an address: the mail goes without
        data = guest(correlation_id=value)
        publish(nats, event_type, data)
        mail = one_mail(pipeline, data["guest"]["email"])[0]
        assert not pipeline.status(notification_of(mail), wait="sent")["correlation_id"]


def test_a_structured_cloudevent_and_one_in_binary_mode_become_mails(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type)
    structured, binary = guest(), guest()
    publish(nats, event_type, {"specversion": "1.0", "type": "com.example.stay", "id": f"{event_type}-s", "source": "/x",
                               "time": datetime.now(timezone.utc).isoformat(), "data": structured})
    publish(nats, event_type, binary, headers={
        "ce-specversion": "1.0", "ce-type": "com.example.stay", "ce-id": f"{event_type}-b", "content-type": "application/json; charset=utf-8"})
    assert len(one_mail(pipeline, structured["guest"]["email"])) == 1
    assert len(one_mail(pipeline, binary["guest"]["email"])) == 1


@pytest.mark.parametrize("headers", [
    {"Content-Type": "application/protobuf", "Stentor-Type": "stentor.v1.PlaceOrder"},
    {"content-type": "application/protobuf", "ce-specversion": "1.0", "ce-type": "stentor.v1.PlaceOrder", "ce-id": "set below"},
], ids=["Stentor-Type", "ce-type"])
def test_a_protobuf_event_becomes_a_mail(pipeline, nats, headers):
    event_type = new_type("order")
    put_trigger(pipeline, event_type, resolver="address:email", name_path="full_name", template="order-receipt")
    pipeline.cli("template", "put", "order-receipt", "--subject", "Order {{order_id}}: {{total}} {{currency}} ({{total_micros}})", "--text",
                 pipeline.folder / "welcome.txt")
    address = f"{uuid.uuid4().hex}@example.com"
    order = messages(pipeline).PlaceOrder(order_id="o-7", full_name="Bob", email=address, total_micros=19_990_000, currency="EUR")
    headers = {**headers, **({"ce-id": event_type} if "ce-id" in headers else {})}
    publish(nats, event_type, order.SerializeToString(), headers=headers)
    assert str(one_mail(pipeline, address)[0]["Subject"]) == "Order o-7: 19.99 EUR (19990000)"


def test_an_event_that_no_trigger_wants_is_passed_over(pipeline, nats):
    since = last_seq(nats, "DEAD")
    ack = publish(nats, new_type("unwanted"), b"\xff\xff\xff\xff")
    handled(pipeline, nats, ack)
    assert letters(pipeline, nats, since) == []


@pytest.mark.parametrize("raw,words", [
    (b"\xff\xff\xff\xff", "not JSON"),
    (b"[1]", "not an object"),
    (b'{"specversion": "1.0", "id": "x", "data": {}}', "'type'"),
    (b'{"specversion": "1.0", "id": "x", "type": "y", "data": [1]}', "'data' is not an object"),
    (b'{"specversion": "1.0", "id": "x", "type": "y", "time": "noon", "data": {}}', "'time'"),
    (b'{"a": 1, "a": 2}', "line 1"),
    (json.dumps({"text": "x" * 70_000}).encode(), "at most 65536"),
], ids=["garbage", "array", "no type", "data", "time", "twice", "large"])
def test_an_event_that_cannot_be_read_is_a_dead_letter_with_the_reason(pipeline, nats, raw, words):
    event_type = new_type("bad")
    put_trigger(pipeline, event_type)
    since = last_seq(nats, "DEAD")
    handled(pipeline, nats, publish(nats, event_type, raw))
    found = letters(pipeline, nats, since)
    assert [opened(pipeline, letter.subject, {}, letter.payload)[1] for letter in found] == [raw] and words in found[0].reason


# ---- when -----------------------------------------------------------------------------------------------------------------


def test_a_reminder_waits_on_deferred_for_its_offset_from_a_date_in_the_event(pipeline, nats):
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", offset_s=-86400, subject_path="stay.id", obsoleted_by=["stay.cancelled"])
    day = (datetime.now(timezone.utc) + timedelta(days=10)).date()
    since = last_seq(nats, "DEFERRED")
    data = guest(stay={"id": 4711, "start": day.isoformat()})
    handled(pipeline, nats, publish(nats, event_type, data, event_id=event_type))
    found = wait_until(lambda: deferred(pipeline, nats, since, "schedule"), 20, "the DEFERRED event")
    midnight = datetime(day.year, day.month, day.day, tzinfo=timezone.utc) - timedelta(days=1)
    assert len(found) == 1 and found[0].due_at_us == int(midnight.timestamp()) * 1_000_000
    request = found[0].request
    assert (found[0].cancel_key, request.cancel_key, request.trigger_key) == (f"{trigger}/4711", f"{trigger}/4711", trigger)
    assert request.source_event_id == event_type
    assert mails_to(pipeline, data["guest"]["email"]) == []


def test_what_is_due_soon_is_sent_when_it_is_due(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type, anchor="stay.end", offset_s=2)
    due = datetime.now(timezone.utc) + timedelta(seconds=2)
    data = guest(stay={"end": (due - timedelta(seconds=2)).isoformat()})
    publish(nats, event_type, data)
    mail = one_mail(pipeline, data["guest"]["email"])
    assert len(mail) == 1 and datetime.now(timezone.utc) >= due


def test_what_passed_an_hour_ago_goes_at_once_and_two_days_ago_not_at_all(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type, anchor="stay.end")
    now = datetime.now(timezone.utc)
    before = pipeline.services["ingest"].metric("stentor_ingest_trigger_late_total")
    old, late = guest(stay={"end": (now - timedelta(days=2)).isoformat()}), guest(stay={"end": (now - timedelta(hours=1)).isoformat()})
    publish(nats, event_type, old)
    handled(pipeline, nats, publish(nats, event_type, late))
    assert len(one_mail(pipeline, late["guest"]["email"])) == 1
    assert mails_to(pipeline, old["guest"]["email"]) == []
    assert pipeline.services["ingest"].metric("stentor_ingest_trigger_late_total") == before + 1


# ---- obsolescence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["after", "before"])
def test_a_later_event_cancels_what_waits_for_the_same_subject(pipeline, nats, order):
    event_type, cancelled = new_type("stay"), new_type("cancelled")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id", obsoleted_by=[cancelled])
    made = datetime.now(timezone.utc) - timedelta(minutes=5)
    said = made + timedelta(minutes=1)
    start = (datetime.now(timezone.utc) + timedelta(days=3)).isoformat()
    events = [(event_type, made, guest(stay={"id": "s1", "start": start})), (cancelled, said, {"stay": {"id": "s1"}})]
    since = last_seq(nats, "DEFERRED")
    for kind, at, data in events if order == "after" else reversed(events):
        body = {"specversion": "1.0", "id": f"{kind}-1", "type": kind, "time": at.isoformat(), "data": data}
        handled(pipeline, nats, publish(nats, kind, body))
        handled(pipeline, nats, publish(nats, kind, body))  # twice: once in effect
    found = wait_until(lambda: [c for c in deferred(pipeline, nats, since, "cancel") if not c.cancel.newer_event_id], 20, "the cancellation")
    waiting = wait_until(lambda: deferred(pipeline, nats, since, "schedule"), 20, "the reminder")
    assert len(found) == 1 and len(waiting) == 1
    assert found[0].cancel.cancel_key == waiting[0].cancel_key == f"{trigger}/s1"
    assert found[0].cancel.before_us == int(said.timestamp() * 1000) * 1000
    assert found[0].cancel.reason == f"{cancelled} {cancelled}-1"
    assert ulid_ms(waiting[0].request.meta.notification_id) * 1000 < found[0].cancel.before_us  # what the clock compares
    assert abs(ulid_ms(waiting[0].request.meta.notification_id) - made.timestamp() * 1000) <= 1


def ulid_ms(notification_id):
    letters_of_ulid = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    value = 0
    for letter in notification_id.removeprefix("ntf_")[:10]:
        value = value * 32 + letters_of_ulid.index(letter)
    return value


# ---- whose trigger --------------------------------------------------------------------------------------------------------


def platform_key(pipeline):
    if not hasattr(pipeline, "platform_key"):
        pipeline.platform_key = json.loads(pipeline.cli("apikey", "create", "--name", "platform", "--json", tenant="platform"))["key"]
        wait_until(lambda: call(pipeline, "GET", "/v1/triggers", key=pipeline.platform_key)[0] == 200, 20, "the platform's API key")
    return pipeline.platform_key


def test_a_tenants_own_trigger_takes_the_place_of_the_platforms(pipeline, nats):
    shared, event_type = platform_key(pipeline), new_type("stay")
    trigger = put_trigger(pipeline, event_type, key=shared)
    status, seen = call(pipeline, "GET", f"/v1/triggers/{trigger}")
    assert status == 200 and seen["scope"] == "platform" and seen["own"] is False
    by_platform = guest()
    publish(nats, event_type, by_platform)
    assert len(one_mail(pipeline, by_platform["guest"]["email"])) == 1

    put_trigger(pipeline, event_type, resolver="address:other")  # the same key
    listed = [t for t in call(pipeline, "GET", "/v1/triggers")[1]["data"] if t["key"] == trigger]
    assert [(t["scope"], t["in_force"]) for t in listed] == [("tenant", True), ("platform", False)]
    own = guest(other=f"{uuid.uuid4().hex}@example.com")
    handled(pipeline, nats, publish(nats, event_type, own))
    assert len(one_mail(pipeline, own["other"])) == 1 and mails_to(pipeline, own["guest"]["email"]) == []

    put_trigger(pipeline, event_type, enabled=False)
    unwanted = guest()
    handled(pipeline, nats, publish(nats, event_type, unwanted))

    assert call(pipeline, "DELETE", f"/v1/triggers/{trigger}")[0] == 204
    wait_until(lambda: call(pipeline, "GET", f"/v1/triggers/{trigger}")[1]["scope"] == "platform", 20, "the platform's again")
    again = guest()
    publish(nats, event_type, again)
    assert len(one_mail(pipeline, again["guest"]["email"])) == 1 and mails_to(pipeline, unwanted["guest"]["email"]) == []
    assert call(pipeline, "DELETE", f"/v1/triggers/{trigger}")[0] == 404  # a tenant cannot delete the platform's


# ---- what fails -----------------------------------------------------------------------------------------------------------


def test_a_trigger_that_fails_has_a_letter_of_its_own_and_the_others_go(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type, name="good")
    bad = put_trigger(pipeline, event_type, name="bad", resolver="address:host.email")
    worse = put_trigger(pipeline, event_type, name="worse", resolver="address:name")
    since = last_seq(nats, "DEAD")
    data = guest()
    for _ in range(2):
        handled(pipeline, nats, publish(nats, event_type, data, headers={"ce-specversion": "1.0", "ce-id": event_type}))
    assert len(one_mail(pipeline, data["guest"]["email"])) == 1
    reasons = sorted({letter.reason for letter in letters(pipeline, nats, since)})
    assert len(reasons) == 2
    assert f"trigger '{bad}'" in reasons[0] and "host.email" in reasons[0]
    assert f"trigger '{worse}'" in reasons[1] and "path 'name'" in reasons[1]


def test_a_failed_triggers_letter_sent_again_does_its_work_alone(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type, name="good")
    trigger = put_trigger(pipeline, event_type, name="later", resolver="address:host.email")
    since = last_seq(nats, "DEAD")
    data = guest(host={"mail": f"{uuid.uuid4().hex}@example.com"})
    handled(pipeline, nats, publish(nats, event_type, data))
    letter = wait_until(lambda: letters(pipeline, nats, since), 20, "the letter")[0]
    put_trigger(pipeline, event_type, name="later", resolver="address:host.mail")
    sequence = last_seq(nats, "DEAD")
    done = pipeline.run_cli("dlq", "resend", sequence)
    assert done.returncode == 0, done.stderr
    assert len(one_mail(pipeline, data["host"]["mail"])) == 1
    assert json.loads(opened(pipeline, letter.subject, {}, letter.payload)[1])["stentortrigger"] == trigger
    pipeline.postgres.query("DELETE FROM ingest.idempotency_keys WHERE scope = 'trigger'")  # as after a day
    publish(nats, event_type, letter.payload)
    ack = publish(nats, event_type, letter.payload)
    handled(pipeline, nats, ack)
    time.sleep(2)
    assert len(mails_to(pipeline, data["host"]["mail"])) == 1  # the ledger knows the id
    assert len(mails_to(pipeline, data["guest"]["email"])) == 1


@pytest.mark.parametrize("resolver,value,words", [
    ("recipient:who", "rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV", "no recipient 'rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV'"),
    ("recipient:who", "bob", "not a recipient's id"),
    ("identity:guest:who", "g-404", "no guest 'g-404'"),
    ("recipients:who", ["rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV", 7], "entry 1 of path 'who'"),
    ("recipients:who", "rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV", "not an array"),
], ids=["unknown id", "no id", "unknown identity", "bad entry", "no array"])
def test_an_unknown_recipient_is_a_dead_letter(pipeline, nats, resolver, value, words):
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, resolver=resolver)
    since = last_seq(nats, "DEAD")
    publish(nats, event_type, {"who": value})
    found = wait_until(lambda: letters(pipeline, nats, since), 30, "the dead letter")
    assert len(found) == 1 and f"trigger '{trigger}'" in found[0].reason and words in found[0].reason, found[0].reason


def test_a_replayed_event_is_the_notification_that_it_was(pipeline, nats):
    event_type = new_type("stay")
    put_trigger(pipeline, event_type)
    put_trigger(pipeline, event_type, name="bad", resolver="address:nothing.here")
    data, since = guest(), last_seq(nats, "DEAD")
    first = publish(nats, event_type, data, headers={"ce-specversion": "1.0", "ce-id": event_type, "ce-type": "x"})
    assert len(one_mail(pipeline, data["guest"]["email"])) == 1
    replayed = pipeline.services["ingest"].metric("stentor_ingest_replayed_total")
    pipeline.cli("replay", "--stream", "EVENTS", "--from-seq", first["seq"], "--to-seq", first["seq"], "--to-service", "ingest")
    copy = last_seq(nats, "EVENTS")
    assert copy > first["seq"]
    handled(pipeline, nats, {"seq": copy})
    assert pipeline.services["ingest"].metric("stentor_ingest_replayed_total") == replayed + 1  # it met its key
    time.sleep(1)
    assert len(mails_to(pipeline, data["guest"]["email"])) == 1 and len(letters(pipeline, nats, since)) == 1


# ---- the API --------------------------------------------------------------------------------------------------------------


GOOD = {"event_type": "stay.confirmed", "template": "welcome", "resolver": "address:guest.email"}


@pytest.mark.parametrize("change,field", [
    ({"event_type": "stay..confirmed"}, "event_type"),
    ({"event_type": "notify"}, "event_type"),
    ({"template": "No Key"}, "template"),
    ({"resolver": "guest.email"}, "resolver"),
    ({"resolver": "identity:robot:id"}, "resolver"),
    ({"resolver": "address:guest..email"}, "resolver"),
    ({"channel": "pigeon"}, "channel"),
    ({"priority": "soon"}, "priority"),
    ({"offset_s": 366 * 86400 + 1}, "offset_s"),
    ({"offset_s": "1h"}, "offset_s"),
    ({"anchor": "stay..start"}, "anchor"),
    ({"obsoleted_by": ["stay.cancelled"]}, "subject_path"),
    ({"obsoleted_by": ["a b"], "subject_path": "id"}, "obsoleted_by"),
    ({"obsoleted_by": [7], "subject_path": "id"}, "obsoleted_by"),
    ({"enabled": 1}, "enabled"),
    ({"tempalte": "x"}, "tempalte"),
])
def test_a_bad_trigger_gets_field_and_reason(pipeline, change, field):
    status, problem = call(pipeline, "PUT", "/v1/triggers/bad", {**GOOD, **change})
    assert status == 422 and problem["field"] == field, problem
    assert call(pipeline, "GET", "/v1/triggers/bad")[0] == 404


def test_a_trigger_may_be_put_before_its_template_with_a_warning(pipeline):
    status, answer = call(pipeline, "PUT", "/v1/triggers/early", {**GOOD, "template": "not-yet"})
    assert status == 200 and "not-yet" in answer["warnings"][0]
    assert call(pipeline, "DELETE", "/v1/triggers/nothing-here")[0] == 404
    assert call(pipeline, "PUT", "/v1/triggers/Bad.Key", GOOD)[0] == 422


def test_try_tells_what_an_event_would_make_and_sends_nothing(pipeline, nats):
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", offset_s=-3600, subject_path="stay.id", obsoleted_by=["x.y"])
    start = (datetime.now(timezone.utc) + timedelta(days=2)).replace(microsecond=0)
    data = guest(stay={"id": "s1", "start": start.isoformat()})
    before = last_seq(nats, "DEFERRED")
    status, reported = call(pipeline, "POST", f"/v1/triggers/{trigger}/try", data)
    assert status == 200, reported
    assert reported["notifications"] == [{
        "to": data["guest"]["email"], "to_name": "Gül Ünal", "template": "welcome", "template_version": "1.0.0", "channel": "email",
        "category": "transactional", "priority": "normal", "cancel_key": f"{trigger}/s1",
        "scheduled_for": (start - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")}]
    assert reported["variables"] == data and reported["problems"] == [] and reported["too_late"] is False
    status, problem = call(pipeline, "POST", f"/v1/triggers/{trigger}/try", {"guest": {"email": "a@example.com"}})
    assert status == 422 and "stay.start" in problem["detail"]
    assert call(pipeline, "POST", "/v1/triggers/nothing-here/try", data)[0] == 404
    assert last_seq(nats, "DEFERRED") == before and mails_to(pipeline, data["guest"]["email"]) == []


# ---- the command line and the example -------------------------------------------------------------------------------------


def test_the_command_line_puts_lists_shows_tries_and_deletes(pipeline, nats, tmp_path):
    event_type = new_type("stay")
    key = f"cli-{event_type[-8:]}"
    whole = tmp_path / "trigger.json"
    whole.write_text(json.dumps({"event_type": event_type, "template": "welcome", "resolver": "address:unknown", "enabled": True}))
    put = json.loads(pipeline.cli(
        "trigger", "put", key, "--file", whole, "--resolver", "address:guest.email", "--offset", "60", "--subject-path", "id",
        "--obsoleted-by", "a.b", "--obsoleted-by", "c.d", "--json"))
    assert (put["resolver"], put["offset_s"], put["obsoleted_by"]) == ("address:guest.email", 60, ["a.b", "c.d"])
    assert f"stn_{put['updated_by']}." in pipeline.operator_key
    shown = json.loads(pipeline.cli("trigger", "show", key, "--json"))
    assert shown == put and [t for t in json.loads(pipeline.cli("trigger", "list", "--json")) if t["key"] == key] == [{**put, "in_force": True}]
    assert event_type in pipeline.cli("trigger", "list") and "address:guest.email" in pipeline.cli("trigger", "show", key)

    sample = tmp_path / "event.json"
    sample.write_text(json.dumps(guest(id=7)))
    reported = json.loads(pipeline.cli("trigger", "try", key, "--event-file", sample, "--json"))
    assert reported["notifications"][0]["cancel_key"] == f"{key}/7" and reported["notifications"][0]["template_version"] == "1.0.0"
    sample.write_text(json.dumps(guest()))
    failed = pipeline.run_cli("trigger", "try", key, "--event-file", sample)
    assert failed.returncode == 2 and "path 'id'" in failed.stderr

    assert "deleted" in pipeline.cli("trigger", "delete", key)
    for words in (["show", key], ["delete", key], ["try", key, "--event-file", str(sample)]):
        done = pipeline.run_cli("trigger", *words)
        assert done.returncode == 3 and key in done.stderr, words
    assert pipeline.run_cli("trigger", "try", key).returncode == 2


@pytest.mark.parametrize("words,message", [
    (["--event", "a..b", "--template", "t", "--resolver", "address:a"], "--event: "),
    (["--event", "a", "--template", "t", "--resolver", "address"], "--resolver: "),
    (["--event", "a", "--template", "t"], "--resolver: "),
    (["--event", "a", "--template", "t", "--resolver", "address:a", "--offset", "soon"], "--offset"),
    (["--file", "/dev/null"], "--file"),
])
def test_a_bad_trigger_on_the_command_line_gets_field_and_reason(pipeline, words, message):
    done = pipeline.run_cli("trigger", "put", "bad", *words)
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_the_example_gives_every_tenant_its_order_mails(pipeline, nats):
    environment = {**pipeline.cli_environment(), "STENTOR": str(BIN / "stentor")}
    for again in ("", "yes"):
        done = subprocess.run([HOME / "deploy/examples/orders/put"], env={**environment, "AGAIN": again}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    wait_until(lambda: call(pipeline, "GET", "/v1/triggers/cancel-order")[0] == 200, 20, "the triggers reaching ingest")
    order = {"order_id": "o-1", "full_name": "Bob Kahn", "email": f"{uuid.uuid4().hex}@example.com", "total_micros": 19_990_000, "currency": "EUR"}
    for name in ("PlaceOrder", "CompleteOrder"):
        message = getattr(messages(pipeline), name)(**order)
        publish(nats, name, message.SerializeToString(), headers={"Content-Type": "application/protobuf"})
    publish(nats, "CancelOrder", {**order, "total": 19.99})
    wait_until(lambda: len(mails_to(pipeline, order["email"])) == 3, 30, "the three mails")
    words = {str(mail["Subject"]): mail.get_body(("plain",)).get_content() for mail in mails_to(pipeline, order["email"])}
    assert set(words) == {"Your order o-1", "Your order o-1 is on its way", "Your order o-1 is cancelled"}
    assert "of 19.99 EUR." in words["Your order o-1"] and "19.99 EUR go back" in words["Your order o-1 is cancelled"]


# ---- killed ---------------------------------------------------------------------------------------------------------------


def test_killing_ingest_in_the_middle_of_events_loses_and_doubles_nothing():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    chance = random.Random(5)
    try:
        event_type, gone = new_type("stay"), new_type("gone")
        put_trigger(pipeline, event_type, name="now", obsoleted_by=[gone], subject_path="n")
        put_trigger(pipeline, event_type, name="bad", resolver="address:nothing.here")
        nats = NatsClient(pipeline.nats.port)
        since = last_seq(nats, "DEAD")
        kills = 0
        for n in range(EVENTS):
            publish(nats, event_type, {"guest": {"email": f"guest{n}@example.com"}, "name": f"G{n}", "n": n}, event_id=f"stay-{n}")
            if n % 3 == 0:
                publish(nats, gone, {"n": n}, event_id=f"gone-{n}")
            if n % 500 == 250:
                time.sleep(chance.random() * 0.4)
                pipeline.services["ingest"].kill()
                pipeline.services["ingest"].start(wait=False)
                kills += 1
        pipeline.services["ingest"].wait_ready()
        wait_until(lambda: pipeline.history_count("status = 'sent'") >= EVENTS, 120, "every mail")
        assert kills == EVENTS // 500
        counts = pipeline.mailbox.count_by_message_id()
        assert len(counts) == EVENTS and pipeline.history_count() == EVENTS
        unknown = {row[0] for row in pipeline.postgres.query("SELECT notification_id FROM dispatcher.ledger WHERE unknown_count > 0")}
        assert {m.strip("<>").split("@")[0] for m, count in counts.items() if count > 1} <= unknown
        cancels = [c.cancel.cancel_key for c in deferred(pipeline, nats, 0, "cancel")]
        assert sorted(set(cancels)) == sorted(cancels) and len(cancels) == (EVENTS + 2) // 3
        letters_by_event = [letter.meta.causation_id for letter in letters(pipeline, nats, since)]
        assert len(set(letters_by_event)) == EVENTS and len(letters_by_event) == EVENTS
        nats.close()
    finally:
        pipeline.stop()
