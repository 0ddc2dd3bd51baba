# SPDX-License-Identifier: Apache-2.0
"""SMS: a credential of a vendor is all that it takes. From POST /v1/notifications to `delivered`, which the vendor reports to the address that
it was given for this very attempt."""
import email.utils
import http.client
import json
import time
import urllib.parse
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.outbox import Application
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.harness.vendor_doubles import Callback, Double, Fault, phone, routing
from tests.harness.webhooks import Endpoint, Subscriptions

NUMBER = "+4915112345678"


class World:
    """A pipeline whose only vendor of mail is SMTP; vendors of `channel` come with vendor()."""

    def __init__(self, channel="sms", voice_ladder="5,5", settings=None, services=SERVICES, **pipeline):
        self.channel = channel
        self.pipeline = Pipeline(**pipeline)
        self.public_url = f"http://127.0.0.1:{self.pipeline.api_port}"
        self.pipeline.extra = routing.options(
            self.pipeline, STENTOR_VENDOR_CALL_MS=2500, STENTOR_VENDOR_CONNECT_MS=2000, STENTOR_RETRY_LADDER=f"email=2,4;sms=1,1;whatsapp=1,1;voice={voice_ladder}",
            STENTOR_RENDERER_PUBLIC_URL=self.public_url, STENTOR_INGEST_CHANNELS="email", **(settings or {}))
        self.pipeline.start(services)
        self.routing = routing.Routing(self.pipeline)
        self.people = 10_000

    def cli(self, *words):
        return self.pipeline.cli(*words)

    def number(self):
        self.people += 1
        return f"+49151{self.people:08}"

    def vendor(self, name, *settings, double=None, inbound=()):
        """The vendor's double with a credential that was put and promoted, and the key of its callbacks."""
        double = double or Double(name).start()
        self.routing.doubles.append(double)
        secret = self.pipeline.folder / "credentials" / f"{name}-{uuid.uuid4().hex}"
        secret.write_text(double.secret)
        settings = settings or [f"{key}={value}" for key, value in double.settings.items()]
        words = [word for setting in [*settings, f"base_url={double.base_url}"] for word in ("--set", setting)]
        credential = f"c{uuid.uuid4().hex[:8]}"
        self.cli("credential", "put", name, credential, "--reference", f"file:{secret}", *(["--key-id", double.key_id] if double.key_id else []), *words)
        self.cli("credential", "promote", name, credential)
        key = self.pipeline.folder / "credentials" / f"{name}-inbound-{uuid.uuid4().hex}"
        key.write_text(double.callback_key)
        self.cli("inbound", "put", name, "--secret", f"main=file:{key}", *inbound)
        double.credential = credential
        return double

    def accepted(self, to=None, **fields):
        """The id, once ingest knows the credential."""
        answer = {}

        def post():
            body = {"to": to or self.number(), "channel": self.channel, "template": "code", "variables": {"name": "Alice"}, **fields}
            status, _, document = self.pipeline.post(body)
            answer.update(document)
            return status == 202
        wait_until(post, 20, f"{self.channel} being taken, not {answer}")
        return answer["notification_id"] if "notification_id" in answer else answer["id"]

    def sent(self, **fields):
        notification = self.accepted(**fields)
        assert self.pipeline.status(notification, wait="sent")["status"] in ("sent", "delivered")
        return notification

    def report(self, double, mail, kind, **fields):
        """The vendor calls the address that it was given."""
        made = double.callback(mail, kind, **fields)
        return self.call(mail.report_to, made)

    def call(self, url, made):
        parts = urllib.parse.urlsplit(url)
        client = http.client.HTTPConnection(parts.netloc, timeout=20)
        try:
            client.request("POST", f"{parts.path}?{parts.query}" if parts.query else parts.path, made.body, made.headers)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def reported(self, double, mail, kind, **fields):
        wait_until(lambda: self.report(double, mail, kind, **fields)[0] == 200, 20, f"the report {kind} being taken")

    def attempt(self, notification, status):
        types = self.routing.types
        found = self.routing.nats.message("STATUS", last_by_subj=f"ntf.status.{TENANT}.{self.channel}.{status}")
        event = types.NotificationStatus.FromString(found[1])
        assert event.meta.notification_id == notification
        return event

    def close(self):
        self.routing.close()
        self.pipeline.stop()


@pytest.fixture(scope="module")
def world():
    made = World()
    try:
        status, _, problem = made.pipeline.post({"to": NUMBER, "channel": "sms", "template": "welcome", "variables": {"name": "Alice"}})
        assert (status, problem["field"]) == (422, "channel"), "without a credential there is no SMS"
        words = made.pipeline.folder / "code.txt"
        words.write_text("{{name}}, your code is 4711. {{{more}}}")
        made.cli("template", "put", "code", "--channel", "sms", "--text", words)
        made.twilio = made.vendor("twilio")
        yield made
    finally:
        made.close()


def test_an_sms_is_sent_and_delivered(world):
    world.twilio.price = "-0.00750"
    notification = world.sent()
    mail = world.twilio.mails[-1]
    assert mail.text == "Alice, your code is 4711. " and mail.sender == "+15005550006"
    assert mail.report_to.startswith(f"{world.public_url}/v1/inbound/{TENANT}/twilio/")
    attempt = world.attempt(notification, "sent").attempt
    assert (attempt.vendor, attempt.vendor_message_id, attempt.segments, attempt.cost_micros, attempt.currency) == ("twilio", mail.id, 1, 7500, "USD")
    assert world.routing.rows(notification) == [(1, "twilio", "sent", 0)]
    world.reported(world.twilio, mail, "delivered")
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    assert world.attempt(notification, "delivered").channel == world.routing.types.CHANNEL_SMS
    world.twilio.price = None


def test_what_the_vendor_reports_becomes_status_and_suppression(world):
    number = world.number()
    notification = world.sent(to=number)
    mail = world.twilio.mails[-1]
    assert world.report(world.twilio, mail, "deferred")[0] == 200, "a step on the way changes nothing"
    world.reported(world.twilio, mail, "bounced")
    assert world.pipeline.status(notification, wait="bounced")["status"] == "bounced"
    wait_until(lambda: "hard_bounce" in world.cli("suppress", "list", "--channel", "sms"), 20, "the suppression of the number")
    again = world.accepted(to=number)
    assert world.pipeline.status(again, wait="suppressed")["status"] == "suppressed"


def test_a_stranger_reports_nothing(world):
    notification = world.sent()
    mail = world.twilio.mails[-1]
    made = world.twilio.callback(mail, "delivered")
    made.headers["X-Twilio-Signature"] = "AAAA" + made.headers["X-Twilio-Signature"][4:]
    assert world.call(mail.report_to, made)[0] == 401
    other, _, token = mail.report_to.partition("?attempt=")
    made = world.twilio.callback(mail, "delivered")
    assert world.call(f"{other}?attempt={'0' * len(token)}", made)[0] == 401, "the URL is signed"
    assert world.call(other.rpartition("/")[0] + "/" + "A" * 32 + f"?attempt={token}", made)[0] == 401
    assert world.pipeline.status(notification)["status"] == "sent"


def test_a_number_that_the_vendor_refuses_is_suppressed(world):
    number = world.number()
    world.twilio.rejected.add(number)
    notification = world.accepted(to=number)
    shown = world.pipeline.status(notification, wait="failed")
    assert "21211" in json.dumps(shown["attempts"][-1]), shown
    again = world.accepted(to=number)
    assert world.pipeline.status(again, wait="suppressed")["status"] == "suppressed"


def stored_since(client, before):
    """The payloads of every stream since `before`: {stream: its last sequence}."""
    for stream, last in before.items():
        for sequence in range(last + 1, client.stream_info(stream)["state"]["last_seq"] + 1):
            found = client.message(stream, seq=sequence)
            if found:
                yield stream, found[1]


def test_a_number_in_a_vendors_words_goes_nowhere(world):
    """Twilio's 21211 repeats the number. It stands in the error in four forms, and in clear in nothing that is stored, logged or posted."""
    client, number = NatsClient(world.pipeline.nats.port), world.number()
    spaced = f"{number[:3]} {number[3:6]} {number[6:10]} {number[10:]}"
    forms = (number, number[1:], spaced, spaced[4:])
    streams = json.loads(client.request("$JS.API.STREAM.NAMES"))["streams"]
    before = {stream: client.stream_info(stream)["state"]["last_seq"] for stream in streams}
    assert {"STATUS", "HOOK", "DEAD"} <= before.keys()
    service = world.pipeline.services["webhook"] = world.pipeline.service("webhook", STENTOR_WEBHOOK_ADDRESSES="loopback").start()
    endpoint, subscriptions = Endpoint(lambda secret, headers, body: body), Subscriptions(world.pipeline)
    words = world.twilio.says_of_number
    try:
        id = subscriptions.put(endpoint.url, endpoint.secret)
        world.twilio.rejected.add(number)
        world.twilio.says_of_number = f"The 'To' number {{}} is not a valid phone number: {forms[1]}, x{forms[1]}, {forms[2]}, {forms[3]}."
        notification = world.accepted(to=number)
        shown = [json.dumps(world.pipeline.status(notification, wait="failed")), world.cli("status", notification, "--json")]
        assert all("21211 The 'To' number +49*** is not a valid phone number: 491***, x***, +49***, 151***." in text for text in shown), shown
        wait_until(lambda: any(request.status == "failed" for request in endpoint.of(notification)), 20, "the webhook")
        posted = [request.body for request in endpoint.of(notification)]
        assert any("The 'To' number +49***" in text for text in posted), posted
        rows = world.pipeline.postgres.query("SELECT row_to_json(l)::text FROM dispatcher.ledger l WHERE notification_id = %s", notification)
        logs = [one.log.read_text(errors="replace") for one in world.pipeline.services.values()]
        assert rows and any(notification in log and "+49***" in log for log in logs)
        texts = [*shown, *posted, *(row[0] for row in rows), *logs, world.cli("dlq", "list", "--json")]
        payloads = list(stored_since(client, before))
        assert {"STATUS", "HOOK"} <= {stream for stream, _ in payloads}
        for form in forms:
            assert not [text for text in texts if form in text], form
            assert not [stream for stream, payload in payloads if form.encode() in payload], form
        subscriptions.remove(id)
    finally:
        world.twilio.says_of_number = words
        endpoint.close()
        service.stop()
        del world.pipeline.services["webhook"]
        subscriptions.client.close()
        client.close()


def test_500_emoji_are_refused_with_the_number_of_segments(world):
    notification = world.accepted(variables={"name": "Alice", "more": "\N{GRINNING FACE}" * 500})
    shown = world.pipeline.status(notification, wait="failed")
    assert "the SMS takes 16 segments, at most 10 are allowed" in json.dumps(shown), shown


def test_a_report_settles_what_had_no_answer(world):
    world.twilio.behave(Fault.HANG_AFTER_BODY, times=1)
    before = len(world.twilio.mails)
    notification = world.accepted()
    mail = world.twilio.wait(before + 1)[-1]
    world.routing.wait_rows(notification, (1, "twilio", "deferred", 1))
    world.reported(world.twilio, mail, "sent")
    world.routing.wait_rows(notification, (1, "twilio", "sent", 1))
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    assert world.attempt(notification, "sent").attempt.vendor_message_id == mail.id
    assert len(world.twilio.mails) == before + 1


def test_a_vendor_that_can_be_asked_is_asked(world):
    world.twilio.behave(Fault.HANG_AFTER_BODY, times=1)
    before = len(world.twilio.mails)
    notification = world.accepted(variables={"name": "Bob"})
    world.routing.wait_rows(notification, (1, "twilio", "deferred", 1), (2, "twilio", "sent", 1), timeout=60)
    assert len(world.twilio.mails) == before + 1
    assert any(request.method == "GET" and "/Messages.json?" in request.path for request in world.twilio.requests)


def test_a_vendor_is_asked_about_all_that_a_killed_process_may_have_sent(world):
    """However late its claim is taken over: what the vendor has had since the first claim."""
    world.twilio.behave(Fault.HANG_AFTER_BODY, times=1)
    before, dispatcher = len(world.twilio.mails), world.pipeline.services["dispatcher"]
    notification = world.accepted(variables={"name": "Late"})
    wait_until(lambda: len(world.twilio.mails) == before + 1, 20, "the message at the vendor")
    dispatcher.kill()
    world.twilio.mails[-1].made = email.utils.formatdate(time.time() - 60, usegmt=True)
    world.pipeline.postgres.query("UPDATE dispatcher.ledger SET lease_until = now(), claimed_at = claimed_at - interval '1 minute'"
                                  " WHERE notification_id = %s RETURNING 1", notification)
    dispatcher.start()
    world.routing.wait_rows(notification, (1, "twilio", "deferred", 1), (2, "twilio", "sent", 1), timeout=60)
    assert len(world.twilio.mails) == before + 1


def test_who_replies_stop_gets_no_reminders_any_more(world):
    number = world.number()
    url = world.public_url + world.cli("inbound", "url", "twilio").strip()

    def reply(text):
        return world.call(url, Callback(*phone.twilio_reply(world.twilio.signer, url, number, text)))[0]

    def remind():
        return world.pipeline.post({"to": number, "channel": "sms", "template": "code", "category": "reminder", "variables": {"name": "Alice"}})[2]["status"]
    assert world.pipeline.status(world.sent(to=number))["status"] == "sent"
    assert reply("Thank you") == 200, "which is no opt-out"
    assert remind() == "queued"
    wait_until(lambda: len([mail for mail in world.twilio.mails if mail.to == [number]]) == 2, 20, "the reminder")
    assert reply("Abmelden") == 200
    wait_until(lambda: remind() == "suppressed", 20, "the opt-out")


def test_a_credential_is_tested_without_sending(world):
    before = len(world.twilio.mails)
    done = world.pipeline.run_cli("channel", "test", "twilio", world.twilio.credential, STENTOR_VENDOR_ADDRESSES="loopback",
                                  STENTOR_CREDENTIAL_DIRS=str(world.pipeline.folder / "credentials"))
    assert done.returncode == 0, done.stderr
    assert len(world.twilio.mails) == before


def test_a_route_may_be_for_the_numbers_of_a_country(world):
    """From here on there are two vendors."""
    vonage = world.vonage = world.vendor("vonage")
    world.cli("route", "put", "austria", "--channel", "sms", "--country", "AT", "--vendor", "vonage")

    def goes_to_vonage(number):
        before = len(vonage.mails)
        world.sent(to=number)
        return len(vonage.mails) > before
    wait_until(lambda: goes_to_vonage("+43664" + world.number()[-7:]), 20, "numbers of Austria taking their route")
    assert not goes_to_vonage(world.number()), "numbers of Germany take the first vendor of the list"


def test_vonage_takes_what_twilio_does_not_and_reports_it(world):
    vonage = world.vonage
    world.twilio.stop()

    def takes():
        notification = world.accepted(variables={"name": "Zoë"})
        world.pipeline.status(notification, wait="sent")
        return any(mail.headers["client-ref"] == f"{notification}-{attempt}" for mail in vonage.mails for attempt in (1, 2))
    wait_until(takes, 40, "the second vendor's credential reaching the dispatcher")
    notification = world.sent(variables={"name": "Zoë", "more": "x" * 200})
    mail = vonage.mails[-1]
    assert (mail.headers["client-ref"][:30], mail.sender) == (notification, "SHOP") and mail.text.startswith("Zoë, your code is 4711.")
    attempt = world.attempt(notification, "sent").attempt
    assert (attempt.vendor, attempt.vendor_message_id, attempt.segments, attempt.cost_micros, attempt.currency) == ("vonage", mail.id, 4, 133200, "EUR")
    made = vonage.callback(mail, "delivered")
    forged = Callback(made.headers, made.body.replace(b"status=delivered", b"status=failed"))
    wait_until(lambda: world.call(mail.report_to, made)[0] == 200, 20, "the receipt being taken")
    assert world.call(mail.report_to, forged)[0] == 401
    assert world.call(mail.report_to.rpartition("/")[0] + "/" + "A" * 32, made)[0] == 401
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    # Each of the four parts has a receipt; one that is lost is what counts, whatever came before it or comes after it.
    second = f"{mail.id[:-1]}1"
    world.reported(vonage, mail, "soft_bounced", messageId=second)
    assert world.pipeline.status(notification, wait="bounced")["status"] == "bounced"
    world.reported(vonage, mail, "delivered", messageId=f"{mail.id[:-1]}2")
    assert world.pipeline.status(notification)["status"] == "bounced"
    world.twilio.start()


def test_telnyx_takes_what_neither_takes_and_reports_it(world):
    """The last of the file: from here on there are three vendors."""
    telnyx = world.vendor("telnyx")
    others = [double for double in world.routing.doubles if double is not telnyx]
    for double in others:
        double.stop()

    def takes():
        before = len(telnyx.mails)
        world.pipeline.status(world.accepted(), wait="sent")
        return len(telnyx.mails) > before
    wait_until(takes, 40, "the third vendor's credential reaching the dispatcher")
    number = world.number()
    notification = world.sent(to=number, variables={"name": "Zoë", "more": "x" * 200})
    mail = telnyx.mails[-1]
    assert mail.sender == "+15005550007" and mail.text.startswith("Zoë, your code is 4711.") and "idempotency-key" not in mail.request.headers
    attempt = world.attempt(notification, "sent").attempt
    assert (attempt.vendor, attempt.vendor_message_id, attempt.segments, attempt.cost_micros, attempt.currency) == ("telnyx", mail.id, 4, 5100, "USD")
    made = telnyx.callback(mail, "delivered")
    forged = Callback(made.headers, made.body.replace(b'"delivered"', b'"delivery_failed"'))
    assert forged.body != made.body and world.call(mail.report_to, forged)[0] == 401
    wait_until(lambda: world.call(mail.report_to, made)[0] == 200, 20, "the event being taken")
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    assert world.call(mail.report_to.partition("?")[0].rpartition("/")[0] + "/" + "A" * 32, made)[0] == 401

    url = world.public_url + world.cli("inbound", "url", "telnyx").strip()
    assert world.call(url, Callback(*phone.telnyx_reply(telnyx.signer, number, "Stop")))[0] == 200

    def remind():
        return world.pipeline.post({"to": number, "channel": "sms", "template": "code", "category": "reminder", "variables": {"name": "Alice"}})[2]["status"]
    wait_until(lambda: remind() == "suppressed", 20, "the opt-out")
    number = world.number()
    telnyx.opted_out.add(number)
    notification = world.accepted(to=number)
    world.pipeline.status(notification, wait="failed")
    assert world.attempt(notification, "failed").reason_code == "opted_out"
    wait_until(lambda: remind() == "suppressed", 20, "the opt-out that Telnyx knows")
    for double in others:
        double.start()


def test_a_row_of_an_outbox_names_its_channel_in_its_payload(world):
    """Row E43 of the memo service, "additional channels (SMS, push) by extending the outbox payload and worker logic"."""
    def by_payload(mapping):
        mapping["fields"] = {"tenant": {"value": TENANT}, "to": "payload->to", "channel": "payload->channel", "template": "payload->template",
                             "variables": {"name": "payload->name"}, "correlation_id": "idempotency_key"}

    memos = Application(world.pipeline, "memo")
    relay = memos.relay(mapping=memos.write_mapping("by-payload", by_payload)).start()
    try:
        number = world.number()
        sms = memos.memo("alice@example.com", "memo-1-sms", payload={"channel": "sms", "to": number, "template": "code", "name": "Alice"})
        mail = memos.memo("bob@example.com", "memo-1-mail", payload={"channel": "email", "to": "bob@example.com", "template": "welcome", "name": "Bob"})
        lost = memos.memo("carol@example.com", "memo-1-lost", payload={"channel": "sms", "to": "carol@example.com", "template": "code", "name": "C"})
        wait_until(lambda: memos.counts() == {"SENT": 2, "FAILED": 1}, 30, "each row's end")
        assert memos.mail_row(sms)["status"] == memos.mail_row(mail)["status"] == "SENT" and "phone number" in memos.mail_row(lost)["error_message"]
        assert [sent.text for double in world.routing.doubles for sent in double.mails if sent.to == [number]] == ["Alice, your code is 4711. "]
        assert len(world.pipeline.mailbox.mails("bob@example.com")) == 1
    finally:
        assert relay.stop() == 0
