# SPDX-License-Identifier: Apache-2.0
"""Mails through vendors with HTTP APIs, and what happens when one fails: the next one of the route has the mail at once, the ledger says at
which vendor it is, and what may have been sent is sent again only where a policy says so."""
import json

import pytest

from tests.harness import dkim
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Fault, routing

SETTLE_MS = 1500


class World:
    def __init__(self):
        self.pipeline = Pipeline(ack_wait_ms=5000)
        self.pipeline.extra = routing.options(
            self.pipeline, STENTOR_VENDOR_CALL_MS=2500, STENTOR_VENDOR_CONNECT_MS=2000, STENTOR_DISPATCHER_LEASE_MS=20_000,
            STENTOR_SMTP_DATA_MS=2500, STENTOR_RETRY_LADDER="email=2,4;sms=60")
        self.pipeline.start()
        self.routing = routing.Routing(self.pipeline)
        self.people = 0

    @property
    def dispatcher(self):
        return self.pipeline.services["dispatcher"]

    def send(self, domain, **fields):
        self.people += 1
        return self.pipeline.send(to=f"guest{self.people}@{domain}", **fields)

    def sent(self, domain, **fields):
        notification = self.send(domain, **fields)
        assert self.pipeline.status(notification, wait="sent")["status"] == "sent"
        return notification

    def attempts(self, notification):
        return self.pipeline.status(notification)["attempts"]

    def close(self):
        self.routing.close()
        self.pipeline.stop()


@pytest.fixture(scope="module")
def world():
    made = World()
    yield made
    made.close()


def test_a_mail_goes_through_the_first_vendor_of_its_route(world):
    domain, (postmark, sendgrid) = world.routing.route("postmark", "sendgrid")
    notification = world.sent(domain)
    assert world.routing.rows(notification) == [(1, "postmark", "sent", 0)]
    mail, = postmark.mails
    assert mail.notification == notification and "Alice" in mail.html + mail.text and sendgrid.mails == [] and not postmark.refused
    stored = world.routing.nats.message("STATUS", last_by_subj="ntf.status.acme.email.sent")
    attempt = world.routing.types.NotificationStatus.FromString(stored[1]).attempt
    assert (attempt.vendor, attempt.credential, attempt.route, attempt.vendor_message_id) == ("postmark", *[domain.split(".")[0]] * 2, mail.id)
    key, message, credential = world.pipeline.postgres.query(
        "SELECT vendor_key, vendor_message_id, credential FROM dispatcher.ledger WHERE notification_id = %s", notification)[0]
    assert key == f"{notification}-1" and message == mail.id and credential == domain.split(".")[0]


def test_copies_and_headers_go_with_the_mail(world):
    domain, (postmark,) = world.routing.route("postmark")
    notification = world.sent(domain, cc=["bookkeeping@example.com"], bcc=["archive@example.com"], list_id="news.example.com")
    mail, = postmark.of(notification)
    assert (mail.cc, mail.bcc) == (["bookkeeping@example.com"], ["archive@example.com"])
    assert mail.headers["List-Id"] == "<news.example.com>" and mail.headers["Feedback-ID"].endswith(":stentor")


def test_a_signature_holds_where_the_vendor_writes_date_and_message_id_itself(world):
    """SES does, also of a raw mail; at Mailgun, which does not, both are signed."""
    folder = world.pipeline.folder / "credentials"
    dns = {"r1._domainkey.acme.test": dkim.make_key(folder / "r1.pem", "rsa"), "e1._domainkey.acme.test": dkim.make_key(folder / "e1.pem", "ed25519")}
    world.pipeline.cli("mail-domain", "put", "acme.test", "--dkim", f"r1:rsa:file:{folder / 'r1.pem'}", "--dkim", f"e1:ed25519:file:{folder / 'e1.pem'}")
    domain, (ses,) = world.routing.route("ses")

    def signed(double, where, ready):
        world.sent(where)
        return double.mails[-1] if ready(double.mails[-1]) else None
    mail = wait_until(lambda: signed(ses, domain, lambda one: one.delivered.startswith(b"DKIM-Signature:")), 20, "a signed mail")
    assert b"amazonses.com>" in mail.delivered and b"acme" in mail.delivered
    assert dkim.by_dkimpy(mail.delivered, dns) == [True, True]
    assert dkim.by_dkimpy(mail.delivered.replace(b"\nSubject: ", b"\nSubject: Re: "), dns) == [False, False]
    domain, (mailgun,) = world.routing.route("mailgun")
    mail = signed(mailgun, domain, lambda one: "DKIM-Signature" in one.message)
    assert all(":Date:Date:" in "".join(value.split()) for value in mail.message.get_all("DKIM-Signature"))
    world.pipeline.cli("mail-domain", "delete", "acme.test")


def test_a_mail_without_a_route_goes_over_smtp_as_ever(world):
    notification = world.sent("elsewhere.example")
    assert world.routing.rows(notification) == [(1, "smtp", "sent", 0)]
    assert len(world.pipeline.mailbox.for_notification(notification)) == 1


def test_a_vendor_that_refuses_connections_is_passed_in_the_same_attempt(world):
    domain, (postmark, sendgrid) = world.routing.route("postmark", "sendgrid")
    postmark.stop()
    notification = world.sent(domain)
    assert world.routing.rows(notification) == [(1, "sendgrid", "sent", 0)]
    assert [mail.notification for mail in sendgrid.mails] == [notification]
    assert world.dispatcher.metric("stentor_dispatcher_moved_total") >= 1


def test_smtp_is_a_vendor_of_a_route_too(world):
    domain, (postmark, _) = world.routing.route("postmark", "smtp")
    postmark.stop()
    notification = world.sent(domain)
    assert world.routing.rows(notification) == [(1, "smtp", "sent", 0)]
    assert len(world.pipeline.mailbox.for_notification(notification)) == 1


def test_what_the_first_vendor_refuses_for_now_goes_to_the_second_as_the_next_attempt(world):
    domain, (postmark, sendgrid) = world.routing.route("postmark", "sendgrid", fallback_on=["unsent", "retry"])
    postmark.behave(Fault.UNAVAILABLE)
    notification = world.sent(domain)
    assert world.routing.rows(notification) == [(1, "postmark", "deferred", 0), (2, "sendgrid", "sent", 0)]
    assert postmark.mails == [] and len(sendgrid.mails) == 1
    rungs = world.pipeline.postgres.query("SELECT rung FROM dispatcher.ledger WHERE notification_id = %s AND attempt = 1", notification)
    assert rungs == [(0,)], "it used a rung of the ladder"
    said = [json.loads(line) for line in world.dispatcher.log.read_text().splitlines() if notification in line]
    (failed,) = [line for line in said if line["event"].startswith("an attempt to send a mail failed")]
    assert failed["event"].endswith("it goes to another vendor next") and (failed["vendor"], failed["next_vendor"]) == ("postmark", "sendgrid")


def test_without_retry_in_fallback_on_it_waits_for_the_first_vendor(world):
    domain, (postmark, sendgrid) = world.routing.route("postmark", "sendgrid")
    postmark.behave(Fault.UNAVAILABLE, times=1)
    notification = world.sent(domain)
    assert world.routing.rows(notification) == [(1, "postmark", "deferred", 0), (2, "postmark", "sent", 0)]
    assert sendgrid.mails == []


def test_a_refused_credential_takes_the_vendor_out_of_the_route(world):
    domain, (postmark, sendgrid) = world.routing.route("postmark", "sendgrid")
    postmark.behave(Fault.UNAUTHORIZED)
    first = world.sent(domain)
    assert world.routing.rows(first) == [(1, "postmark", "deferred", 0), (2, "sendgrid", "sent", 0)]
    wait_until(lambda: (health := world.routing.health("postmark")) and health.credential == domain.split(".")[0] and health.refused, 15,
               "the state of the vendor in CONFIG")
    health = world.routing.health("postmark")
    assert health.status == world.routing.types.CHANNEL_STATUS_DOWN and health.down_since_us > 0 and health.reason.startswith("401")
    calls = len(postmark.requests)
    for _ in range(5):
        assert world.routing.rows(world.sent(domain)) == [(1, "sendgrid", "sent", 0)]
    assert len(postmark.requests) == calls


def test_an_unknown_outcome_is_parked_when_no_callback_comes(world):
    domain, (sendgrid, postmark) = world.routing.route("sendgrid", "postmark", unknown="park", settle_ms=SETTLE_MS)
    sendgrid.behave(Fault.HANG_AFTER_BODY, times=1)
    notification = world.send(domain)
    world.routing.wait_rows(notification, (1, "sendgrid", "deferred", 1), (2, "sendgrid", "parked", 1))
    assert len(sendgrid.mails) == 1 and postmark.mails == []


@pytest.mark.parametrize("vendor", ["postmark", "mailgun"])
def test_a_vendor_that_can_be_asked_is_asked(world, vendor):
    domain, (asked, other) = world.routing.route(vendor, "sendgrid", unknown="park")
    world.sent(domain)  # another mail is there, and is not taken for this one
    asked.behave(Fault.HANG_AFTER_BODY, times=1)
    notification = world.send(domain)
    world.routing.wait_rows(notification, (1, vendor, "deferred", 1), (2, vendor, "sent", 1), timeout=60)
    message, = world.pipeline.postgres.query(
        "SELECT vendor_message_id FROM dispatcher.ledger WHERE notification_id = %s AND attempt = 2", notification)
    mail, = asked.of(notification)
    assert message == (mail.id.strip("<>"),) and other.mails == [] and not asked.refused
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"


def test_an_unknown_outcome_is_failed_over_by_policy(world):
    domain, (sendgrid, postmark) = world.routing.route("sendgrid", "postmark", unknown="failover", settle_ms=SETTLE_MS)
    sendgrid.behave(Fault.CUT_AFTER_BODY, times=1)
    notification = world.sent(domain)
    world.routing.wait_rows(notification, (1, "sendgrid", "deferred", 1), (2, "postmark", "sent", 1))
    assert len(sendgrid.of(notification)) <= 1 and len(postmark.mails) == 1


def test_the_smtp_server_s_unknown_outcome_is_failed_over_too(world):
    domain, (_, postmark) = world.routing.route("smtp", "postmark", unknown="failover", settle_ms=SETTLE_MS)
    world.pipeline.mailbox.silence()
    notification = world.sent(domain)
    world.routing.wait_rows(notification, (1, "smtp", "deferred", 1), (2, "postmark", "sent", 1))
    assert len(postmark.mails) == 1 and len(world.pipeline.mailbox.for_notification(notification)) == 1


def test_failover_waits_while_the_other_vendor_is_down(world):
    domain, (sendgrid, postmark) = world.routing.route("sendgrid", "postmark", unknown="failover", settle_ms=SETTLE_MS)
    world.routing.suspend("postmark")
    sendgrid.behave(Fault.CUT_AFTER_BODY, times=1)
    notification = world.send(domain)
    try:
        world.routing.wait_rows(notification, (1, "sendgrid", "deferred", 1), (2, "sendgrid", "deferred", 1))
        assert len(sendgrid.mails) == 1 and postmark.mails == []
    finally:
        world.routing.suspend("postmark", status="ACTIVE")
    wait_until(lambda: len(postmark.mails) == 1, 90, "the mail at the other vendor once it is resumed")
    assert len(sendgrid.mails) == 1


def test_an_unknown_outcome_counts_as_sent_by_policy(world):
    domain, (sendgrid, postmark) = world.routing.route("sendgrid", "postmark", unknown="count_as_sent", settle_ms=SETTLE_MS)
    sendgrid.behave(Fault.HANG_AFTER_BODY, times=1)
    notification = world.sent(domain)
    world.routing.wait_rows(notification, (1, "sendgrid", "deferred", 1), (2, "sendgrid", "sent", 1))
    assert len(sendgrid.mails) == 1 and postmark.mails == []


def test_a_vendor_that_knows_keys_gets_an_unknown_one_again_and_sends_it_once(world):
    domain, (resend,) = world.routing.route("resend")
    resend.behave(Fault.CUT_AFTER_BODY, times=1)
    notification = world.sent(domain)
    world.routing.wait_rows(notification, (1, "resend", "sent", 1))
    assert len(resend.mails) == 1, "the vendor sent it twice"
    assert len(resend.requests) == 2 and len({request.body for request in resend.requests}) == 1


def test_a_killed_process_leaves_an_outcome_that_is_unknown_at_a_named_vendor(world):
    domain, (sendgrid, postmark) = world.routing.route("sendgrid", "postmark", unknown="park", settle_ms=SETTLE_MS)
    sendgrid.behave(Fault.HANG_AFTER_BODY, times=1)
    notification = world.send(domain)
    wait_until(lambda: sendgrid.of(notification) or sendgrid.requests, 20, "the mail at the vendor")
    world.dispatcher.kill()
    assert world.routing.rows(notification) == [(1, "sendgrid", "claimed", 0)]
    world.pipeline.postgres.query("UPDATE dispatcher.ledger SET lease_until = now() WHERE state = 'claimed' RETURNING 1")
    world.dispatcher.start()
    world.routing.wait_rows(notification, (1, "sendgrid", "deferred", 1), (2, "sendgrid", "parked", 1), timeout=60)
    assert len(sendgrid.requests) == 1 and postmark.mails == []


def test_a_vendor_that_an_operator_suspends_gets_no_mail(world):
    domain, (mailgun, sendgrid) = world.routing.route("mailgun", "sendgrid")
    world.routing.suspend("mailgun")
    try:
        wait_until(lambda: world.routing.rows(world.sent(domain)) == [(1, "sendgrid", "sent", 0)], 20, "mails that go around the suspended vendor")
        calls = len(mailgun.requests)
        world.sent(domain)
        assert len(mailgun.requests) == calls
    finally:
        world.routing.suspend("mailgun", status="ACTIVE")
    wait_until(lambda: world.routing.rows(world.sent(domain)) == [(1, "mailgun", "sent", 0)], 20, "mails at the vendor that was resumed")


def test_an_address_that_the_vendor_rejects_is_suppressed(world):
    domain, (sendgrid,) = world.routing.route("sendgrid")
    sendgrid.rejected.add(f"gone@{domain}")
    notification = world.pipeline.send(to=f"gone@{domain}")
    assert world.pipeline.status(notification, wait="failed")["status"] == "failed"
    world.routing.wait_rows(notification, (1, "sendgrid", "failed", 0))
    again = world.pipeline.send(to=f"gone@{domain}")
    assert world.pipeline.status(again, wait="suppressed")["status"] == "suppressed"


def test_temporary_credentials_of_ses_are_in_the_secret_and_nowhere_else(world):
    """As an AWS credential_process prints them: the id of the access key changes with the secret, and CONFIG has an earlier one."""
    token = "IQoJb3JpZ2luX2VjEXAMPLE=="
    domain, (ses,) = world.routing.route("ses", token=token)
    notification = world.sent(domain)
    assert world.routing.rows(notification) == [(1, "ses", "sent", 0)] and not ses.refused
    headers = ses.requests[-1].headers
    assert headers["x-amz-security-token"] == token and f"Credential={ses.key_id}/" in headers["authorization"]
    config = b"".join(path.read_bytes() for path in (world.pipeline.nats.folder / "store").rglob("*.blk"))
    assert domain.encode() in config and token.encode() not in config
    assert token not in world.dispatcher.log.read_text()
