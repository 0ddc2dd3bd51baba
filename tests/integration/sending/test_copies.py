# SPDX-License-Identifier: Apache-2.0
"""cc, bcc, reply_to and list_id of one mail: one transaction with all of them, Bcc in no header, each judged by the suppressions."""
import json
import time
import uuid

import pytest

from tests.harness import dkim
from tests.harness.pipeline import CONSENT, Pipeline
from tests.harness.processes import wait_until


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1"})
    running.extra["STENTOR_CREDENTIAL_DIRS"] = str(running.folder)
    running.start()
    yield running
    running.stop()


def person():
    return f"{uuid.uuid4().hex}@example.com"


def transaction(pipeline, notification):
    """(recipients of the envelope, bytes) of the only one with the notification's mail."""
    with pipeline.mailbox.lock:
        found = [(to, raw) for _, to, raw in pipeline.mailbox.raw if notification.encode() in raw]
    assert len(found) == 1
    return found[0]


def sent(pipeline, **fields):
    notification = pipeline.send(**fields)
    pipeline.status(notification, wait="sent")
    return transaction(pipeline, notification)


def test_one_transaction_for_all_and_bcc_in_no_header(pipeline):
    to, cleo, carl, dora = person(), person(), person(), person()
    recipients, raw = sent(pipeline, to=to, cc=[{"address": cleo, "name": "Cleo Ünal"}, carl], bcc=[dora], reply_to="help@acme.test",
                           list_id="orders.acme.test")
    assert recipients == [to, cleo, carl, dora]
    mail, = pipeline.mailbox.mails(to)
    assert [(one.display_name, one.addr_spec) for one in mail["Cc"].addresses] == [("Cleo Ünal", cleo), ("", carl)]
    assert [one.addr_spec for one in mail["To"].addresses] == [to]
    assert mail["Reply-To"] == "help@acme.test" and b"\r\nList-Id: <orders.acme.test>\r\n" in raw
    assert mail["Bcc"] is None and dora.encode() not in raw


def test_a_signature_covers_cc(pipeline, tmp_path):
    key = pipeline.folder / "r1.pem"
    records = {"r1._domainkey.acme.test": dkim.make_key(key, "rsa")}
    pipeline.cli("mail-domain", "put", "acme.test", "--dkim", f"r1:rsa:file:{key}")
    raw = wait_until(lambda: next((raw for _, raw in [sent(pipeline, to=person(), cc=[person()])] if raw.startswith(b"DKIM")), None), 20, "a signed mail")
    assert dkim.by_dkimpy(raw, records) == [True]
    assert dkim.by_dkimpy(raw.replace(b"\nCc: <", b"\nCc: <x"), records) == [False]
    assert dkim.by_mailauth(raw, records, tmp_path)[0]["result"] == "pass"
    pipeline.cli("mail-domain", "delete", "acme.test")


def test_a_suppressed_copy_is_left_out_and_the_mail_goes(pipeline):
    to, barred, carl = person(), person(), person()
    pipeline.cli("suppress", "add", barred, "--reason", "manual")

    def left_out():
        recipients, raw = sent(pipeline, to=to, cc=[barred, carl], bcc=[])
        return recipients == [to, carl] and barred.encode() not in raw
    wait_until(left_out, 20, "the dispatcher knowing the suppression")


def test_copies_survive_a_refusal_and_a_time(pipeline):
    to, cleo = person(), person()
    pipeline.mailbox.answer("451 4.3.0 try later")
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    recipients, _ = sent(pipeline, to=to, cc=[cleo], scheduled_for=soon)
    assert recipients == [to, cleo]


def test_the_command_line_names_copies(pipeline):
    to, cleo, carl, dora = person(), person(), person(), person()
    line = pipeline.cli("send", "--template", "welcome", "--to", to, "--var", "name=Ada", "--cc", cleo, "--cc", carl, "--bcc", dora,
                        "--reply-to", "help@acme.test", "--list-id", "orders.acme.test")
    notification = line.split()[0]
    pipeline.status(notification, wait="sent")
    recipients, raw = transaction(pipeline, notification)
    assert recipients == [to, cleo, carl, dora] and b"List-Id: <orders.acme.test>" in raw


def test_a_fault_names_its_field(pipeline):
    def answer(**fields):
        status, _, body = pipeline.post({"to": "ada@example.com", "template": "welcome", "variables": {"name": "Ada"}, **fields})
        return status, json.dumps(body)
    for fields, field in (
            ({"cc": ["no address"]}, "cc[0]"), ({"bcc": ["x@example.com", "y@"]}, "bcc[1]"), ({"cc": "x@example.com"}, "cc"),
            ({"cc": ["ADA@example.com"]}, "cc[0]"), ({"cc": [{"mail": "x@example.com"}]}, "cc[0]"),
            ({"cc": [f"p{i}@example.com" for i in range(25)], "bcc": [f"q{i}@example.com" for i in range(25)]}, "cc"),
            ({"cc": [f"p{i}@example.com" for i in range(51)]}, "cc"), ({"reply_to": "x"}, "reply_to"), ({"list_id": "a b"}, "list_id"),
            ({"cc": ["x@example.com"], "category": "marketing", "consent": CONSENT}, "cc")):
        status, text = answer(**fields)
        assert status == 422 and f'"{field}"' in text, (fields, text)
    status, text = answer(cc=["x@example.com"], channels=["email"])
    assert status == 202, text
