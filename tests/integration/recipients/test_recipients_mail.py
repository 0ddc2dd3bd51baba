# SPDX-License-Identifier: Apache-2.0
"""The stored data of a recipient reach the mail: address, time zone, quiet hours, channels. Everything through the API."""
import itertools
import uuid
from datetime import datetime, timedelta, timezone

from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.sending.test_triggers import call

NUMBERS = itertools.count()


def publish(pipeline, key, **document):
    status, answer = call(pipeline, "POST", "/v1/templates", {"key": key, "version": "1.0.0", **document})
    assert status == 201, answer
    wait_until(lambda: call(pipeline, "GET", f"/v1/templates/{key}")[0] == 200, 10, "the template reaching ingest")
    return key


def person(pipeline, **record):
    """(id, e-mail address)."""
    address = f"{uuid.uuid4().hex}@example.com"
    addresses = [{"channel": "email", "address": address}, {"channel": "sms", "address": "+49 151 2345678"}]
    status, answer = call(pipeline, "POST", "/v1/recipients", {"name": "Ada", "addresses": addresses, **record})
    assert status == 201, answer
    return answer["id"], address


def send(pipeline, expected="queued", **fields):
    status, answer = call(pipeline, "POST", "/v1/notifications", {"variables": {"name": "Ada"}, **fields})
    assert (status, answer.get("status")) == (202, expected), answer
    return answer["id"]


def mail_of(pipeline, notification):
    assert pipeline.status(notification, wait="sent")["status"] == "sent"
    mail, = pipeline.mailbox.for_notification(notification)
    return mail


def around_now(zone_hours, before_minutes=60, after_minutes=120):
    """Quiet hours that began and that end so many minutes from now, on the wall of that zone."""
    now = datetime.now(timezone.utc) + timedelta(hours=zone_hours)
    return {"start": f"{now - timedelta(minutes=before_minutes):%H:%M}", "end": f"{now + timedelta(minutes=after_minutes):%H:%M}"}


def test_a_date_is_in_the_recipients_zone(pipeline):
    key = publish(pipeline, f"zoned-{next(NUMBERS)}", locales=[
        {"locale": "en-US", "subject": "{{date at 'iso'}}", "text": "{{date at 'EEEE HH:mm'}}"}])
    tokyo, honolulu, nowhere = (
        person(pipeline, **zone)[0] for zone in ({"time_zone": "Asia/Tokyo"}, {"time_zone": "Pacific/Honolulu"}, {}))
    said = {}
    for who in (tokyo, honolulu, nowhere):
        notification = send(pipeline, template=key, recipient_id=who, variables={"at": "2026-03-04T20:30:00Z"})
        mail = mail_of(pipeline, notification)
        said[who] = mail.get_body(("plain",)).get_content().strip()
    assert said == {tokyo: "Thursday 05:30", honolulu: "Wednesday 10:30", nowhere: "Wednesday 20:30"}


def test_what_is_for_a_person_goes_to_the_stored_address_and_name(pipeline):
    who, address = person(pipeline)
    mail = mail_of(pipeline, send(pipeline, template="welcome", recipient_id=who))
    assert address in mail["To"] and "Ada" in mail["To"]
    assert mail.get_body(("plain",)).get_content().strip() == "Welcome, Ada!"


def test_quiet_hours_of_the_record_put_a_mail_off_until_their_end(pipeline):
    who, _ = person(pipeline, time_zone="Asia/Tokyo", quiet_hours=around_now(9))
    notification = send(pipeline, "scheduled", template="welcome", recipient_id=who)
    assert pipeline.status(notification, wait="scheduled")["reason_code"] == "quiet_hours"
    rows = "SELECT reason, tenant_id, due_at FROM digest_flusher.due_work WHERE notification_id = %s"
    (reason, tenant, due_at), = wait_until(lambda: pipeline.postgres.query(rows, notification), 20, "the row that waits")
    assert (reason, tenant) == ("quiet", "acme")
    assert timedelta(minutes=118) < due_at - datetime.now(timezone.utc) <= timedelta(minutes=120)
    assert pipeline.mailbox.for_notification(notification) == []
    pipeline.postgres.query("UPDATE digest_flusher.due_work SET due_at = now() WHERE notification_id = %s", notification)
    mail_of(pipeline, notification)
    wait_until(lambda: pipeline.postgres.query(rows, notification) == [], 20, "the row gone")
    assert {step["status"] for step in pipeline.status(notification)["timeline"]} >= {"scheduled", "rendered", "sent"}


def test_a_text_message_is_rendered_and_fails_because_there_is_no_vendor_for_it(pipeline, nats):
    words = "Your code is {{name}}. " * 10
    key = publish(pipeline, f"code-{next(NUMBERS)}", channel="sms", locales=[{"locale": "en", "text": words}])
    status, preview = call(pipeline, "POST", "/v1/templates/preview", {"template": key, "data": {"name": "Ada"}})
    assert status == 200 and preview["sms"] == {"segments": 2, "units": len(words.replace("{{name}}", "Ada")), "alphabet": "GSM-7"}
    who, _ = person(pipeline)
    start = nats.stream_info("RENDERED_NORMAL")["state"]["last_seq"]
    notification = send(pipeline, template=key, recipient_id=who, channel="sms")
    row = pipeline.status(notification, wait="failed")
    assert (row["status"], row["reason_code"], row["channel"]) == ("failed", "no_vendor", "sms")
    proto = messages(pipeline)
    stored = [nats.message("RENDERED_NORMAL", seq=at) for at in range(start + 1, nats.stream_info("RENDERED_NORMAL")["state"]["last_seq"] + 1)]
    rendered, = [event for event in (proto.Rendered.FromString(one[1]) for one in stored if one) if event.meta.notification_id == notification]
    assert rendered.channel == proto.CHANNEL_SMS and rendered.recipient_id == who and rendered.locale == "en"
    assert len(rendered.content.ciphertext) > 0 and len(rendered.content_checksum) == 32
    assert pipeline.mailbox.for_notification(notification) == []


def put_choice(pipeline, who, path, body):
    status, answer = call(pipeline, "PUT", f"/v1/recipients/{who}/{path}", body)
    assert status == 200, answer


def test_what_a_person_says_while_a_mail_waits_counts_when_its_time_comes(pipeline):
    social, offer = (publish(pipeline, f"waits-{next(NUMBERS)}", category=category, locales=[
        {"locale": "en-US", "subject": "Hello", "text": "Hello"}]) for category in ("social", "marketing"))
    later = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    silent, unwilling, withdrawn, removed = (person(pipeline)[0] for _ in range(4))
    put_choice(pipeline, withdrawn, "consents", {"consents": [{"category": "marketing", "channel": "email", "granted": True}]})
    cases = {
        send(pipeline, "scheduled", template=social, recipient_id=silent, scheduled_for=later): "unsubscribed",
        send(pipeline, "scheduled", template="welcome", recipient_id=silent, scheduled_for=later): "sent",
        send(pipeline, "scheduled", template=social, recipient_id=silent, scheduled_for=later, priority="critical"): "sent",
        send(pipeline, "scheduled", template=social, recipient_id=unwilling, scheduled_for=later): "preference",
        send(pipeline, "scheduled", template=offer, recipient_id=withdrawn, scheduled_for=later): "no_consent",
        send(pipeline, "scheduled", template=social, recipient_id=withdrawn, scheduled_for=later): "sent",
        send(pipeline, "scheduled", template="welcome", recipient_id=removed, scheduled_for=later): "no_address",
    }
    ids = list(cases)
    rows = "SELECT count(*) FROM digest_flusher.due_work WHERE notification_id = ANY (%s)"
    wait_until(lambda: pipeline.postgres.query(rows, ids)[0][0] == len(ids), 20, "all of them waiting")
    put_choice(pipeline, silent, "unsubscription", {"unsubscribed": True})
    put_choice(pipeline, unwilling, "preferences", {"preferences": [{"category": "social", "channel": "any", "off": True}]})
    put_choice(pipeline, withdrawn, "consents", {"consents": [{"category": "marketing", "channel": "email", "granted": False}]})
    assert call(pipeline, "DELETE", f"/v1/recipients/{removed}")[0] in (200, 204)
    known = ("SELECT (SELECT count(*) FROM digest_flusher.unsubscribed_recipients WHERE recipient_id IN (%s, %s))"
             " + (SELECT count(*) FROM digest_flusher.preferences WHERE recipient_id = %s AND is_off)"
             " + (SELECT count(*) FROM digest_flusher.consents WHERE recipient_id = %s AND NOT is_granted)")
    wait_until(lambda: pipeline.postgres.query(known, silent, removed, unwilling, withdrawn)[0][0] == 4, 20, "what they said")
    pipeline.postgres.query("UPDATE digest_flusher.due_work SET due_at = now() WHERE notification_id = ANY (%s)", ids)
    for notification, end in cases.items():
        if end == "sent":
            mail_of(pipeline, notification)
        else:
            seen = pipeline.status(notification, wait="suppressed")
            assert (seen["status"], seen["reason_code"]) == ("suppressed", end)
            assert pipeline.mailbox.for_notification(notification) == []
