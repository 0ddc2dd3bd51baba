# SPDX-License-Identifier: Apache-2.0
"""Bounces (RFC 3464) and complaints (RFC 5965) that come by mail: what each means for its notification and for its address, and that
nothing that a mail says of another one counts."""
import json
import os
import signal
import smtplib
import uuid
from pathlib import Path

import pytest

from tests.harness.bounces import BOUNCE_DOMAIN, Postfix, Sent, deliver, fill, find_reader, wait_reader
from tests.harness.pipeline import CONSENT, Pipeline
from tests.harness.processes import free_port, wait_until

PORT = free_port()
DEAD_REASON = "the mail ended the process that reads it"


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline({"STENTOR_LMTP_BIND": "127.0.0.1", "STENTOR_LMTP_PORT": PORT, "STENTOR_RENDERER_PUBLIC_URL": "https://mail.acme.test"},
                       ack_wait_ms=5000).start()
    running.cli("mail-domain", "put", "acme.test", "--bounce-domain", BOUNCE_DOMAIN)

    def has_return_path():
        address = new_address()
        running.status(running.send(to=address), wait="sent")
        return address_path(running, address).endswith(BOUNCE_DOMAIN)
    wait_until(has_return_path, 20, "the mail domain reaching the dispatcher")
    wait_until(lambda: deliver(PORT, [f"fbl@{BOUNCE_DOMAIN}"], b"x")[0][0] in (250, 550), 20, "the mail domain reaching the webhook-receiver")
    yield running
    running.stop()


def new_address():
    return f"reader-{uuid.uuid4().hex[:8]}@example.com"


def address_path(pipeline, address):
    with pipeline.mailbox.lock:
        return next(sender for sender, to, _ in pipeline.mailbox.raw if address in to)


@pytest.fixture
def sent(pipeline):
    """A mail with a return path of its own, a link to opt out, and a recipient of its own."""
    address = new_address()
    notification = pipeline.send(to=address, category="marketing", consent=CONSENT)
    pipeline.status(notification, wait="sent")
    mail = Sent(pipeline, notification, address)
    assert mail.opt_out
    return mail


def take(sent, content, to=None):
    """Delivers a report about the mail, which is stored."""
    (code, text), = deliver(PORT, [to or sent.return_path], content)
    assert code == 250, text


def suppressions(pipeline, address):
    return [entry["reason"] for entry in json.loads(pipeline.cli("suppress", "list", "--address", address, "--json"))]


def metric(pipeline, name):
    return pipeline.services["webhook-receiver"].metric(f"stentor_webhook_receiver_{name}")


def letters(pipeline):
    return [json.loads(line) for line in pipeline.cli("dlq", "list", "--stage", "webhook-receiver", "--json").splitlines()]


def nothing_followed(pipeline, sent):
    """A delivery report that comes after is all that was heard."""
    take(sent, sent.report("postfix_delivered"))
    row = pipeline.status(sent.notification, wait="delivered")
    assert row["status"] == "delivered" and suppressions(pipeline, sent.address) == []


# ---- what each means ----

@pytest.mark.parametrize("name, reason", [("postfix_failed", "hard_bounce"), ("exchange_failed", "invalid_address"), ("gmail_failed", "hard_bounce"),
                                          ("exim_failed", "hard_bounce"), ("wrong_charset", "hard_bounce"), ("no_blank_lines", "hard_bounce")])
def test_an_address_that_does_not_exist_gets_no_more_mail(pipeline, sent, name, reason):
    take(sent, sent.report(name))
    row = pipeline.status(sent.notification, wait="bounced")
    assert (row["status"], row["reason_code"]) == ("bounced", "hard_bounce") and sent.address not in json.dumps(row)
    assert wait_until(lambda: suppressions(pipeline, sent.address), 20, "the suppression") == [reason]
    again = pipeline.send(to=sent.address)
    assert pipeline.status(again, wait="suppressed")["status"] == "suppressed"


@pytest.mark.parametrize("name, status, reason", [("postfix_expired", "bounced", "soft_bounce"), ("policy_failed", "failed", "blocked")])
def test_a_failure_that_is_not_the_addresss_fault_ends_the_notification_alone(pipeline, sent, name, status, reason):
    take(sent, sent.report(name))
    row = pipeline.status(sent.notification, wait=status)
    assert (row["status"], row["reason_code"]) == (status, reason)
    assert suppressions(pipeline, sent.address) == []


def test_what_says_nothing_final_changes_nothing(pipeline, sent):
    before = metric(pipeline, "events_ignored_total"), metric(pipeline, "events_unreadable_total")
    for name in ("postfix_delayed", "postfix_relayed", "arf_not_spam", "vacation", "qmail_failed"):
        take(sent, sent.report(name))
    nothing_followed(pipeline, sent)
    wait_until(lambda: (metric(pipeline, "events_ignored_total") - before[0], metric(pipeline, "events_unreadable_total") - before[1]) == (3, 2), 20,
               "all being counted")


def test_a_bounce_settles_a_mail_whose_outcome_is_unknown(pipeline):
    """The mail server has it and never says so, the dispatcher dies: that the mail comes back proves that it was taken."""
    dispatcher = pipeline.services["dispatcher"]
    assert dispatcher.stop() == 0
    pipeline.services["dispatcher"] = silent = pipeline.service(
        "dispatcher", STENTOR_DISPATCHER_UNKNOWN="park", STENTOR_DISPATCHER_LEASE_MS=2000, STENTOR_SMTP_DATA_MS=60_000).start()
    try:
        pipeline.mailbox.silence()
        address = new_address()
        notification = pipeline.send(to=address)
        wait_until(lambda: pipeline.mailbox.mails(address), 30, "the mail in the mailbox")
        silent.kill()
        silent.start()
        ledger = "SELECT state FROM dispatcher.ledger WHERE notification_id = %s"
        wait_until(lambda: pipeline.postgres.query(ledger, notification) == [("parked",)], 40, "the unknown outcome")
        mail = Sent(pipeline, notification, address)
        take(mail, mail.report("postfix_failed"))
        wait_until(lambda: pipeline.postgres.query(ledger, notification) == [("sent",)], 40, "the proof")
        pipeline.status(notification, wait="bounced")  # by the webhook-receiver; "sent" is by the dispatcher, which the receiver has the proof published to
        row = wait_until(lambda: (lambda seen: seen if "sent" in {step["status"] for step in seen["timeline"]} else None)(pipeline.status(notification)), 20,
                         "sent beside bounced")
        assert row["status"] == "bounced" and len(pipeline.mailbox.mails(address)) == 1
        assert {attempt["vendor"] for attempt in row["attempts"]} == {"smtp"}
    finally:
        assert silent.stop() == 0
        pipeline.services["dispatcher"] = pipeline.service("dispatcher").start()


@pytest.mark.parametrize("to", ["fbl", "own"])
def test_a_complaint_suppresses(pipeline, sent, to):
    take(sent, sent.report("arf_abuse"), to=f"FBL@{BOUNCE_DOMAIN}" if to == "fbl" else None)
    assert pipeline.status(sent.notification, wait="complained")["status"] == "complained"
    assert wait_until(lambda: suppressions(pipeline, sent.address), 20, "the suppression") == ["complaint"]


def test_a_complaint_that_hides_its_recipient_is_known_by_the_opt_out_link(pipeline, sent):
    report = sent.report("arf_redacted")
    assert sent.address.encode() not in report and sent.return_path.encode() not in report
    take(sent, report, to=f"fbl@{BOUNCE_DOMAIN}")
    pipeline.status(sent.notification, wait="complained")
    assert wait_until(lambda: suppressions(pipeline, sent.address), 20, "the suppression") == ["complaint"]


def test_a_bounce_without_a_token_ends_its_notification_and_suppresses_nothing(pipeline, sent):
    take(sent, sent.report("postfix_failed", return_path="hello@acme.test", opt_out="oot_none"), to=f"bounces@{BOUNCE_DOMAIN}")
    assert pipeline.status(sent.notification, wait="bounced")["reason_code"] == "hard_bounce"
    assert suppressions(pipeline, sent.address) == []


# ---- lies ----

def test_one_that_lies_about_its_recipient_changes_nothing(pipeline, sent):
    victim = new_address()
    take(sent, sent.report("postfix_failed", recipient=victim))
    take(sent, sent.report("arf_abuse", recipient=victim).replace(b"abuse\r\n", b"Abuse\r\n"))
    pipeline.status(sent.notification, wait="complained")  # of the notification whose token it has
    assert suppressions(pipeline, victim) == [] and "bounced" not in json.dumps(pipeline.status(sent.notification)["timeline"])
    assert pipeline.status(pipeline.send(to=victim), wait="sent")["status"] == "sent"


def test_a_forged_token_is_refused_and_nothing_is_kept(pipeline, sent, nats):
    before = nats.stream_info("INBOUND")["state"]["last_seq"]
    local, domain = sent.return_path.split("@")
    flipped = "0" if local[40] != "0" else "1"
    others = [f"{local[:40]}{flipped}{local[41:]}@{domain}", f"{local[:30]}@{domain}", f"b+@{domain}", f"someone@{domain}", f"{local}@acme.test",
              f"{local}@elsewhere.example", "postmaster"]
    replies = deliver(PORT, others, sent.report("postfix_failed"))
    assert [code for code, _ in replies] == [550] * len(others), replies
    # An altered mark of the address is no proof of an address.
    mark = local[-8:]
    take(sent, sent.report("postfix_failed", opt_out="oot_none"), to=f"{local[:-8]}{'0' * 8 if mark != '0' * 8 else '1' * 8}@{domain}")
    assert nats.stream_info("INBOUND")["state"]["last_seq"] == before + 1
    nothing_followed(pipeline, sent)


def bounced(nats):
    answer = json.loads(nats.request("$JS.API.STREAM.INFO.STATUS", json.dumps({"subjects_filter": "ntf.status.*.email.bounced"}).encode()))
    return sum(answer["state"].get("subjects", {}).values())


def test_a_repeat_is_one(pipeline, sent, nats):
    before = bounced(nats)
    for number in range(3):  # by another way each time, so that JetStream does not know them
        take(sent, b"Received: from relay%d.example\r\n" % number + sent.report("postfix_failed"), to=sent.return_path.upper() if number == 2 else None)
    pipeline.status(sent.notification, wait="bounced")
    wait_until(lambda: json.loads(nats.request("$JS.API.CONSUMER.INFO.INBOUND.webhook-receiver"))["num_pending"] == 0, 20, "all being read")
    nothing = pipeline.status(sent.notification)
    assert bounced(nats) == before + 1 and [step["status"] for step in nothing["timeline"]].count("bounced") == 1
    assert len(suppressions(pipeline, sent.address)) == 1


def test_a_report_that_names_no_mail_of_ours_is_refused_where_several_tenants_share_the_domain(pipeline):
    before = metric(pipeline, "events_ignored_total")
    (code, _), = deliver(PORT, [f"fbl@{BOUNCE_DOMAIN}"], fill("rfc5965_b2_feedback_report"))
    assert code == 250  # the domain's only tenant
    wait_until(lambda: metric(pipeline, "events_ignored_total") == before + 1, 20, "its being read")
    pipeline.cli("tenant", "put", "globex", "--name", "Globex", "--sender", "hello@globex.test", "--sender-name", "Globex")
    pipeline.cli("mail-domain", "put", "globex.test", "--bounce-domain", BOUNCE_DOMAIN, tenant="globex")
    try:
        wait_until(lambda: deliver(PORT, [f"fbl@{BOUNCE_DOMAIN}"], fill("rfc5965_b2_feedback_report"))[0][0] == 550, 20, "the refusal")
    finally:
        pipeline.cli("mail-domain", "delete", "globex.test", tenant="globex")
        wait_until(lambda: deliver(PORT, [f"fbl@{BOUNCE_DOMAIN}"], b"x")[0][0] == 250, 20, "the domain being one tenant's again")


# ---- hostile ----

def test_a_mail_of_50_mb_is_refused_and_nothing_is_kept(pipeline, sent, nats):
    before = nats.stream_info("INBOUND")["state"]["last_seq"]
    with smtplib.LMTP("127.0.0.1", PORT, timeout=60) as client:
        client.ehlo()
        assert client.docmd("MAIL", "FROM:<> SIZE=52428800")[0] == 552
    report = sent.report("postfix_failed")
    huge = report + b"y" * 76 + b"\r\n"
    huge += (b"z" * 76 + b"\r\n") * ((50 * 1024 * 1024 - len(huge)) // 78)
    (code, text), = deliver(PORT, [sent.return_path], huge)
    assert code == 552, text
    assert nats.stream_info("INBOUND")["state"]["last_seq"] == before
    # One with a large mail of ours in it is read: what stands behind its first 768 KiB is left out.
    take(sent, report.replace(b"\r\n--7A1C21BF.1764158401/mx.example.org--", (b"\r\n" + b"w" * 76) * 100_000 + b"\r\n--7A1C21BF.1764158401/mx.example.org--"))
    pipeline.status(sent.notification, wait="bounced")


def nested(depth):
    return b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (at, at) for at in range(depth))


def test_hostile_mails_end_and_the_next_one_is_read(pipeline, sent):
    before = len(letters(pipeline))
    for content in (nested(14_000), b"Content-Type: message/rfc822\r\n\r\n" * 24_000, b"", b"\0" * 100_000, b"X: y\r\n" * 100_000,
                    b"Content-Type: message/delivery-status\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"A" * 700_000):
        take(sent, content)
    nothing_followed(pipeline, sent)
    assert len(letters(pipeline)) == before


def test_a_mail_that_crashes_its_reader_is_a_dead_letter_and_the_service_lives(pipeline, sent):
    """gmime reads nested groups of addresses by recursion: the stack of the process ends."""
    before = len(letters(pipeline))
    take(sent, b"To: " + b"a:" * 350_000 + b"\r\n\r\n" + sent.report("postfix_failed"))
    take(sent, sent.report("postfix_delivered"))
    letter = wait_until(lambda: letters(pipeline)[before:], 30, "the dead letter")[0]
    assert DEAD_REASON in json.dumps(letter), letter
    assert pipeline.status(sent.notification, wait="delivered")["status"] == "delivered"
    assert suppressions(pipeline, sent.address) == []


def slow(report):
    """A report with so many parts behind it that reading it takes a moment."""
    return report.rstrip(b"-\r\n").rpartition(b"\r\n--")[0] + b"\r\n--7A1C21BF.1764158401/mx.example.org\r\n\r\nx" * 14_000


def test_a_reader_that_is_killed_in_the_middle_is_started_once_more(pipeline, sent):
    receiver = pipeline.services["webhook-receiver"]
    take(sent, slow(sent.report("postfix_failed")))
    os.kill(wait_reader(receiver), signal.SIGKILL)
    assert pipeline.status(sent.notification, wait="bounced")["reason_code"] == "hard_bounce"
    assert "a process that reads mail was killed; it is started once more" in receiver.tail(400)


def test_the_reader_has_no_environment_and_narrow_limits(pipeline, sent):
    take(sent, slow(sent.report("postfix_failed")))
    folder = Path(f"/proc/{wait_reader(pipeline.services['webhook-receiver'])}")

    def limited():
        limits = {line[:26].strip(): line[26:].split()[:2] for line in (folder / "limits").read_text().splitlines()}
        return limits if limits["Max cpu time"] == ["5", "6"] else None  # before it reads the first byte
    limits = wait_until(limited, 10, "its limits")
    assert (folder / "environ").read_bytes() == b""
    assert limits["Max open files"] == ["3", "3"] and limits["Max file size"] == ["0", "0"] and limits["Max core file size"] == ["0", "0"]
    assert limits["Max processes"] == ["0", "0"]
    pipeline.status(sent.notification, wait="bounced")
    wait_until(lambda: find_reader(pipeline.services["webhook-receiver"]) is None, 20, "its end")


# ---- when something is away ----

def test_without_nats_a_mail_is_refused_for_now(pipeline, sent):
    pipeline.nats.kill()
    try:
        codes = {deliver(PORT, [sent.return_path], sent.report("postfix_failed"))[0][0] for _ in range(2)}
        assert codes == {451}
    finally:
        pipeline.nats.start()
    wait_until(lambda: deliver(PORT, [sent.return_path], sent.report("postfix_failed"))[0][0] == 250, 30, "its being stored")
    assert pipeline.status(sent.notification, wait="bounced", timeout=60)["status"] == "bounced"


def test_a_restart_refuses_no_mail_for_ever(pipeline, sent):
    """Before the configuration is read no tenant is known: 451, never 550."""
    receiver = pipeline.services["webhook-receiver"]
    assert receiver.stop() == 0
    receiver.start(wait=False)
    codes = set()

    def stored():
        try:
            codes.add(deliver(PORT, [sent.return_path], sent.report("postfix_failed"))[0][0])
        except OSError:
            return False
        return 250 in codes
    wait_until(stored, 30, "its being stored")
    assert codes <= {250, 451}
    pipeline.status(sent.notification, wait="bounced")


def test_connections_are_bounded_and_a_unix_socket_serves_too(pipeline, tmp_path):
    path = pipeline.folder / "lmtp.sock"
    second = pipeline.service("webhook-receiver", "2", STENTOR_LMTP_BIND=path, STENTOR_LMTP_CONNECTIONS=2, STENTOR_WEBHOOK_PORT=0).start()
    try:
        open_ones = [smtplib.LMTP(str(path), timeout=60) for _ in range(2)]
        with pytest.raises(smtplib.SMTPConnectError) as refused:
            smtplib.LMTP(str(path), timeout=60)
        assert refused.value.smtp_code == 421
        assert [client.noop()[0] for client in open_ones] == [250, 250]
        for client in open_ones:
            client.quit()
    finally:
        assert second.stop() == 0


# ---- a real mail server ----

@pytest.mark.skipif(os.getuid() != 0, reason="Postfix starts as root only")
def test_a_real_postfix_takes_our_mail_and_brings_its_bounce_back(pipeline):
    """The mail server of the recipient refuses the mail that Postfix has taken; Postfix writes the bounce and delivers it by LMTP."""
    port = free_port()
    postfix = Postfix(pipeline.folder / "postfix", port, {"example.com": f"smtp:[127.0.0.1]:{pipeline.mailbox.port}",
                                                          BOUNCE_DOMAIN: f"lmtp:inet:127.0.0.1:{PORT}"}).start()
    dispatcher = pipeline.services["dispatcher"]
    assert dispatcher.stop() == 0
    through = pipeline.services["dispatcher"] = pipeline.service("dispatcher", STENTOR_SMTP_URL=f"smtp://127.0.0.1:{port}").start()
    try:
        address = new_address()
        pipeline.mailbox.answer("550 5.1.1 no such user here")
        notification = pipeline.send(to=address)
        row = pipeline.status(notification, wait="bounced", timeout=60)
        assert (row["status"], row["reason_code"]) == ("bounced", "hard_bounce"), postfix.tail()
        assert [step["status"] for step in row["timeline"]].count("sent") == 1
        assert wait_until(lambda: suppressions(pipeline, address), 20, "the suppression") == ["hard_bounce"]
    finally:
        assert through.stop() == 0
        pipeline.services["dispatcher"] = pipeline.service("dispatcher").start()
        postfix.stop()
