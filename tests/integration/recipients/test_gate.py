# SPDX-License-Identifier: Apache-2.0
"""The gate: whether, when and to whom, through the real pipeline. Every test has a tenant of its own."""
import hashlib
import hmac
import itertools
import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

NUMBERS = itertools.count()


class Tenant:
    """A tenant with its settings, an API key, the template 'welcome', and recipients written straight into people.*."""

    def __init__(self, pipeline, nats, name, **settings):
        self.pipeline, self.nats, self.name = pipeline, nats, name
        self.protocol = messages(pipeline)
        entry = self.protocol.Tenant(tenant=name, name=name, sender_address=f"hello@{name}.test", **settings)
        nats.publish(f"cfg.tenant.{name}.self", entry.SerializeToString())
        self.template("welcome")
        self.key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=name))["key"]
        wait_until(lambda: self.post({})[0] == 422, 20, "the API key reaching ingest")  # and so what was put before it

    def template(self, key, channel="email"):
        version = self.protocol.TemplateVersion(
            tenant=self.name, key=key, version="1.0.0", status=self.protocol.TEMPLATE_STATUS_ACTIVE,
            channel=getattr(self.protocol, f"CHANNEL_{channel.upper()}"), category=self.protocol.CATEGORY_BILLING)
        version.locales.add(locale="en", subject="Welcome, {{name}}!", text="Welcome, {{name}}!")
        self.nats.publish(f"cfg.template.{self.name}.{key}.{channel}.1_0_0", version.SerializeToString())

    def post(self, body):
        return self.pipeline.post(body, headers={"Authorization": f"Bearer {getattr(self, 'key', '')}"})

    def send(self, **fields):
        status, _, body = self.post({"template": "welcome", "variables": {"name": "A"}, **fields})
        assert status == 202, body
        return body

    def row(self, notification, status):
        def found():
            done = self.pipeline.run_cli("status", notification, "--json", tenant=self.name)
            row = json.loads(done.stdout) if done.returncode == 0 else None
            return row if row and row["status"] == status else None
        return wait_until(found, 30, f"{notification} being {status}")

    def recipient(self, **columns):
        """Without an address: the tests that need one give it inline."""
        number = next(NUMBERS)
        recipient_id = "rcp_" + f"01ARZ3NDEKTSV4RRFFQ6{number:06d}"
        names = ["tenant_id", "recipient_id", "updated_at", "sequence", *columns]
        values = [self.name, recipient_id, datetime.now(timezone.utc), 1, *columns.values()]
        self.insert("recipients", names, values)
        return recipient_id

    def prefer(self, recipient_id, category="any", channel="any", off=False, frequency="immediate", at_minute=0):
        self.insert("preferences", ["tenant_id", "recipient_id", "category", "channel", "is_off", "frequency", "at_minute",
                                    "on_weekday", "is_cleared", "updated_at", "sequence"],
                    [self.name, recipient_id, category, channel, off, frequency, at_minute, 0, False, datetime.now(timezone.utc), 1])

    def consent(self, recipient_id, category="marketing", granted=True):
        self.insert("consents", ["tenant_id", "recipient_id", "category", "channel", "is_granted", "given_at", "sequence"],
                    [self.name, recipient_id, category, "any", granted, datetime.now(timezone.utc), 1])

    def insert(self, table, names, values):
        self.pipeline.postgres.query(
            f"INSERT INTO people.{table} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(values))})", *values)

    def address_hash(self, address, channel="email"):
        hash_key = bytes.fromhex(self.pipeline.master_keys()["hash"][0])
        return hmac.new(hash_key, f"{self.name}|{channel}|{address}".encode(), hashlib.sha256).digest()

    def suppress(self, address, reason, category=None, released=False):
        entry = self.protocol.Suppression(
            id="sup_01ARZ3NDEKTSV4RRFFQ69G5FAV", tenant=self.name, channel=self.protocol.CHANNEL_EMAIL,
            address_hash=self.address_hash(address), reason=self.protocol.SuppressionReason.Value("SUPPRESSION_REASON_" + reason.upper()),
            created_at_us=int(time.time() * 1e6), created_by="test", released_at_us=int(time.time() * 1e6) if released else 0)
        if category:
            entry.category = self.protocol.Category.Value("CATEGORY_" + category.upper())
        subject = f"cfg.suppression.{self.name}.email.{category or 'any'}.{self.address_hash(address).hex()}"
        self.nats.publish(subject, entry.SerializeToString())

    def deferred(self, reason):
        """The newest of the tenant's events of that reason."""
        subject, payload = wait_until(
            lambda: self.nats.message("DEFERRED", last_by_subj=f"ntf.deferred.{reason}.{self.name}"), 20, f"a deferred '{reason}'")[:2]
        event = self.protocol.Deferred()
        event.ParseFromString(payload)
        return event

    def mails(self, notification):
        return self.pipeline.mailbox.for_notification(notification)


@pytest.fixture
def tenant(pipeline, nats):
    return lambda **settings: Tenant(pipeline, nats, f"gate{next(NUMBERS)}", **settings)


def quiet_hours_around_now(protocol):
    now = datetime.now(timezone.utc)
    minute = now.hour * 60 + now.minute
    return protocol.QuietHours(start_minute=(minute - 60) % 1440, end_minute=(minute + 120) % 1440)


def test_quiet_hours_put_off_what_is_not_urgent(tenant, pipeline):
    acme = tenant(quiet_hours=quiet_hours_around_now(messages(pipeline)), time_zone="UTC")
    person = acme.recipient()
    waits = acme.send(to="quiet@example.com", recipient_id=person)
    assert waits["status"] == "scheduled"
    row = acme.row(waits["id"], "scheduled")
    assert row["reason_code"] == "quiet_hours"
    event = acme.deferred("quiet")
    due = datetime.fromtimestamp(event.due_at_us / 1e6, timezone.utc)
    assert event.meta.notification_id == waits["id"] and event.request.meta.notification_id == waits["id"]
    assert timedelta(minutes=118) <= due - datetime.now(timezone.utc) <= timedelta(minutes=120)
    assert due.second == 0
    urgent = acme.send(to="quiet@example.com", recipient_id=person, priority="critical")
    security = acme.send(to="quiet@example.com", recipient_id=person, category="security")
    inline = acme.send(to="not.known@example.com")
    for sent in (urgent, security, inline):
        acme.row(sent["id"], "sent")
    assert acme.mails(waits["id"]) == []


def test_the_recipients_own_zone_and_hours_win_over_the_tenants(tenant, pipeline):
    acme = tenant(quiet_hours=quiet_hours_around_now(messages(pipeline)))
    tokyo = datetime.now(timezone.utc) + timedelta(hours=9)
    minute = tokyo.hour * 60 + tokyo.minute
    elsewhere = acme.recipient(time_zone="Asia/Tokyo", quiet_start=(minute + 60) % 1440, quiet_end=(minute + 120) % 1440)
    at_night = acme.recipient(time_zone="Asia/Tokyo", quiet_start=(minute - 1) % 1440, quiet_end=(minute + 30) % 1440)
    acme.row(acme.send(to="t1@example.com", recipient_id=elsewhere)["id"], "sent")
    assert acme.send(to="t2@example.com", recipient_id=at_night)["status"] == "scheduled"


def test_what_a_recipient_does_not_want_is_suppressed_with_the_reason(tenant):
    acme = tenant()
    off, gone, undecided, willing, unwilling = (
        acme.recipient(), acme.recipient(unsubscribed_at=datetime.now(timezone.utc)), acme.recipient(), acme.recipient(), acme.recipient())
    acme.prefer(off, category="billing", off=True)
    acme.consent(willing)
    acme.consent(unwilling, granted=False)
    cases = [
        (off, {}, "preference"), (off, {"category": "social"}, None), (off, {"category": "transactional"}, None),
        (gone, {}, "unsubscribed"), (gone, {"category": "security"}, None), (gone, {"priority": "critical"}, None),
        (undecided, {"category": "marketing"}, "no_consent"), (willing, {"category": "marketing"}, None),
        (unwilling, {"category": "marketing"}, "no_consent"), (undecided, {}, None)]
    answers = [acme.send(to=f"w{i}@example.com", recipient_id=person, **fields) for i, (person, fields, _) in enumerate(cases)]
    for answer, (_, fields, reason) in zip(answers, cases):
        assert answer["status"] == ("suppressed" if reason else "queued"), fields
        row = acme.row(answer["id"], "suppressed" if reason else "sent")
        if reason:
            assert row["reason_code"] == reason
            assert [step["status"] for step in row["timeline"]] == ["suppressed"]
            assert acme.mails(answer["id"]) == []


def test_suppressed_addresses_get_nothing_until_they_are_released(tenant):
    acme = tenant()
    acme.suppress("bounced@example.com", "hard_bounce")
    acme.suppress("no.bills@example.com", "opt_out", category="billing")
    wait_until(lambda: acme.send(to="no.bills@example.com")["status"] == "suppressed", 10, "the suppression's effect")
    answer = acme.send(to="bounced@example.com", category="transactional")
    assert answer["status"] == "suppressed" and acme.row(answer["id"], "suppressed")["reason_code"] == "hard_bounce"
    assert acme.send(to="no.bills@example.com", category="transactional")["status"] == "queued"
    assert acme.send(to="no.bills@example.com", category="social")["status"] == "queued"
    acme.suppress("bounced@example.com", "hard_bounce", released=True)
    wait_until(lambda: acme.send(to="bounced@example.com")["status"] == "queued", 10, "the release's effect")


def test_a_recipient_who_is_not_known_or_has_no_address_is_reported_as_such(tenant):
    acme = tenant()
    person = acme.recipient()
    for recipient_id in (person, "rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        answer = acme.send(recipient_id=recipient_id)
        assert answer["status"] == "suppressed"
        assert acme.row(answer["id"], "suppressed")["reason_code"] == "no_address"


def at_the_beginning_of_a_minute():
    """Limits count by the minute: what a test sends has to fall into one."""
    if time.time() % 60 > 50:
        time.sleep(61 - time.time() % 60)


def test_over_the_tenants_limit_each_has_its_turn(tenant, pipeline):
    acme = tenant(tenant_limits=messages(pipeline).Limits(per_minute=4))
    at_the_beginning_of_a_minute()
    status, _, body = acme.post(
        [{"to": f"l{i}@example.com", "template": "welcome", "variables": {"name": "L"}} for i in range(10)])
    assert status == 202
    assert [one["status"] for one in body["notifications"]] == ["queued"] * 4 + ["scheduled"] * 6
    urgent = acme.send(to="code@example.com", priority="critical")
    assert urgent["status"] == "queued"
    assert acme.row(body["notifications"][4]["id"], "scheduled")["reason_code"] == "rate_limit"
    event = acme.deferred("limit")
    assert event.meta.notification_id == body["notifications"][9]["id"]
    ahead = event.due_at_us / 1e6 - time.time()
    assert event.due_at_us % 60_000_000 == 0 and 60 < ahead <= 120


def test_over_the_recipients_limit_the_rest_is_suppressed_where_the_tenant_wants_it(tenant, pipeline):
    protocol = messages(pipeline)
    acme = tenant(recipient_limits=protocol.Limits(per_day=2), over_limit=protocol.OVER_LIMIT_SUPPRESS)
    answers = [acme.send(to="often@example.com")["status"] for _ in range(3)]
    assert answers == ["queued", "queued", "suppressed"]
    last = acme.send(to="often@example.com")
    assert acme.row(last["id"], "suppressed")["reason_code"] == "rate_limit"
    assert acme.send(to="seldom@example.com")["status"] == "queued"


def test_a_repeat_with_the_same_key_gets_the_same_decisions(tenant, pipeline):
    protocol = messages(pipeline)
    acme = tenant(recipient_limits=protocol.Limits(per_day=1), over_limit=protocol.OVER_LIMIT_SUPPRESS)
    body = [{"to": "key@example.com", "template": "welcome", "variables": {"name": "K"}}] * 2
    headers = {"Authorization": f"Bearer {acme.key}", "Idempotency-Key": "k-1"}
    first, again = (pipeline.post(body, headers=headers)[2] for _ in range(2))
    assert first == again
    assert [one["status"] for one in first["notifications"]] == ["queued", "suppressed"]


def test_a_digest_preference_gathers_into_the_window_of_its_border(tenant):
    acme = tenant()
    person = acme.recipient(time_zone="Europe/Berlin")
    acme.prefer(person, category="billing", frequency="daily", at_minute=8 * 60)
    assert acme.send(to="d0@example.com", recipient_id=person)["status"] == "queued"  # there is no template to show one with
    acme.template("digest-billing")
    windows = []
    for number in range(2):
        answer = wait_until(lambda: _gathered(acme, person, number), 10, "the digest's template reaching ingest")
        row = acme.row(answer["id"], "scheduled")
        assert row["reason_code"] == "digest"
        event = acme.deferred("digest")
        assert event.meta.notification_id == answer["id"]
        windows.append(event.digest)
    window = windows[0]
    assert windows[1] == window  # one window
    assert window.window_id.startswith("dgw_") and len(window.window_id) == 26
    assert window.recipient_id == person and window.template == "digest-billing" and window.template_version == "1.0.0"
    assert window.flush_at_us == event.due_at_us > time.time() * 1e6
    assert window.flush_at_us / 3.6e9 % 24 in (6, 7)  # eight in Berlin, summer or winter
    assert acme.send(to="d1@example.com", recipient_id=person, priority="critical")["status"] == "queued"


def _gathered(acme, person, number):
    answer = acme.send(to=f"d{number}@example.com", recipient_id=person)
    return answer if answer["status"] == "scheduled" else None


def test_channels_make_a_notification_each(tenant, pipeline):
    acme = tenant()
    acme.template("code")
    acme.template("code", channel="sms")
    person = acme.recipient()
    answer = wait_until(lambda: _codes(acme, person), 10, "the template reaching ingest")
    assert [one["status"] for one in answer["notifications"]] == ["suppressed", "suppressed"]
    ids = [one["id"] for one in answer["notifications"]]
    assert len(set(ids)) == 2
    rows = [acme.row(notification, "suppressed") for notification in ids]
    assert [row["channel"] for row in rows] == ["email", "sms"] and {row["reason_code"] for row in rows} == {"no_address"}
    status, _, problem = acme.post({"recipient_id": person, "template": "welcome", "channels": ["email", "sms"]})
    assert status == 422 and problem["field"] == "template"  # it is for e-mail only


def test_the_command_line_sends_to_a_recipient_on_several_channels(tenant, pipeline):
    acme = tenant()
    acme.template("code")
    acme.template("code", channel="sms")
    person = acme.recipient()
    wait_until(lambda: _codes(acme, person), 10, "the template reaching ingest")

    def send(*words):
        return pipeline.run_cli("send", *words, tenant=acme.name, key=acme.key)

    done = send("--recipient", person, "--template", "code", "--channel", "email,sms")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all(line.startswith("ntf_") and line.endswith(" suppressed") for line in lines)
    one = json.loads(send("--recipient", person, "--template", "code", "--channel", "sms", "--json").stdout)
    assert one["status"] == "suppressed"
    refused = send("--template", "code", "--json")
    assert refused.returncode != 0 and "--recipient" in refused.stderr + refused.stdout


def _codes(acme, person):
    status, _, body = acme.post({"recipient_id": person, "template": "code", "channels": ["email", "sms"]})
    return body if status == 202 else None


def test_a_minors_notification_needs_the_guardian_it_is_redirected_to(tenant, pipeline):
    acme = tenant(guardian_routing=messages(pipeline).GUARDIAN_ROUTING_REDIRECT)
    guardian = acme.recipient()
    minor = acme.recipient(minor=True, guardian_id=guardian)
    answer = acme.send(to="minor@example.com", recipient_id=minor)  # not to the minor, and the guardian has no address
    row = acme.row(answer["id"], "suppressed")
    assert row["reason_code"] == "no_address"
    assert acme.send(to="adult@example.com", recipient_id=guardian)["status"] == "queued"


def test_a_guardians_copy_and_its_original_name_each_other(tenant, pipeline):
    """B74 (student portal): what the guardian was sent is found from the minor's notification, and the other way round."""
    acme = tenant(guardian_routing=messages(pipeline).GUARDIAN_ROUTING_COPY)
    guardian = acme.recipient()
    minor = acme.recipient(minor=True, guardian_id=guardian)
    answer = acme.send(to="minor@example.com", recipient_id=minor)
    original = wait_until(lambda: (lambda row: row["copies"] and row)(acme.row(answer["id"], "sent")), 20, "the copy in history")
    copy, = original["copies"]
    assert original["copy_of"] is None and copy != answer["id"]
    row = acme.row(copy, "suppressed")  # the guardian has no address, and is named all the same
    assert (row["copy_of"], row["copies"], row["reason_code"]) == (answer["id"], None, "no_address")
    found = json.loads(pipeline.cli("find", "--copy-of", answer["id"], "--json", tenant=acme.name))
    assert [(row["id"], row["status"], row["reason_code"]) for row in found] == [(copy, "suppressed", "no_address")]
    shown = pipeline.cli("status", answer["id"], tenant=acme.name)
    assert any(line.split() == ["copies", copy] for line in shown.splitlines()), shown
