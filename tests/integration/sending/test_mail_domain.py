# SPDX-License-Identifier: Apache-2.0
"""What a mail carries for the mailboxes that get it: DKIM signatures, a return path that names it, Feedback-ID, List-Id, CFBL-Address
(channels.md 5.1). The domain's keys are references, and a mail whose key cannot be read waits."""
import json
import os
import re
import uuid

import pytest

from tests.harness import dkim
from tests.harness.pipeline import CONSENT, Pipeline
from tests.harness.processes import wait_until

DOMAIN = "acme.test"
RETURN_PATH = re.compile(r"b\+([0-9a-z]{26})([0-9a-z]{2})([0-9a-z]{8})([0-9a-z]{16})[0-9a-z]{8}@bounces\.acme\.test")


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,2,2,2,2,2"})
    running.extra["STENTOR_CREDENTIAL_DIRS"] = str(running.folder / "dkim")
    (running.folder / "dkim").mkdir()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def keys(pipeline):
    """The domain has an RSA and an Ed25519 key; {name in DNS: text}."""
    folder = pipeline.folder / "dkim"
    records = {f"r1._domainkey.{DOMAIN}": dkim.make_key(folder / "r1.pem", "rsa"),
               f"e1._domainkey.{DOMAIN}": dkim.make_key(folder / "e1.pem", "ed25519")}
    put(pipeline, folder)
    return records


def put(pipeline, folder, *words, rsa="r1.pem"):
    pipeline.cli("mail-domain", "put", DOMAIN, "--dkim", f"r1:rsa:file:{folder / rsa}", "--dkim", f"e1:ed25519:file:{folder / 'e1.pem'}",
                 "--bounce-domain", f"bounces.{DOMAIN}", *words)


def sent_to(pipeline, address):
    """(sender of the envelope, mail as it came) of each mail to the address."""
    with pipeline.mailbox.lock:
        return [(sender, content) for sender, to, content in pipeline.mailbox.raw if address in to]


def one_signed(pipeline, **fields):
    """A mail that is signed, once the dispatcher knows the domain: (id, sender of the envelope, bytes)."""
    def attempt():
        address = f"{uuid.uuid4().hex}@example.com"
        notification = pipeline.send(to=address, **fields)
        pipeline.status(notification, wait="sent")
        (sender, raw), = sent_to(pipeline, address)
        return (notification, sender, raw) if raw.startswith(b"DKIM-Signature:") else None
    return wait_until(attempt, 20, "a signed mail")


def test_three_verifiers_accept_both_signatures(pipeline, keys, tmp_path):
    notification, _, raw = one_signed(pipeline, variables={"name": "Ärzte  und\tSöhne. "})
    assert raw.count(b"DKIM-Signature:") == 2
    assert dkim.by_dkimpy(raw, keys) == [True, True]
    assert dkim.by_opendkim(raw, keys, tmp_path) == ""
    assert dkim.by_mailauth(raw, keys, tmp_path) == [
        {"selector": "r1", "algo": "rsa-sha256", "result": "pass", "aligned": DOMAIN},
        {"selector": "e1", "algo": "ed25519-sha256", "result": "pass", "aligned": DOMAIN}]
    # A changed subject, another From and a changed body are seen; what a relay does to blanks is not.
    for altered in (raw.replace(b"Subject: ", b"Subject: Re: "), raw.replace(b"MIME-Version", b"Reply-To: <evil@example.com>\r\nMIME-Version"),
                    raw.replace(b"</h1>", b"!</h1>").replace(b"PC9oMT4", b"IAAAAAA")):
        assert altered != raw
        assert "pass" not in [signature["result"] for signature in dkim.by_mailauth(altered, keys, tmp_path)]
        assert dkim.by_opendkim(altered, keys, tmp_path) != ""
    assert dkim.by_dkimpy(raw.replace(b"MIME-Version: 1.0", b"mime-version:   1.0 "), keys) == [True, True]
    assert notification.encode() in raw


def test_the_return_path_names_the_notification(pipeline, keys):
    notification, sender, raw = one_signed(pipeline)
    found = RETURN_PATH.fullmatch(sender)
    assert found, sender
    assert f"ntf_{found[1].upper()}" == notification and found[2] == "01"
    assert f"CFBL-Address: {sender}; report=arf".encode() in raw  # complaints come back the same way


def test_headers_say_what_kind_of_mail_it_is(pipeline, keys, tmp_path):
    _, _, raw = one_signed(pipeline)
    assert b"Feedback-ID: welcome:transactional:acme:stentor\r\n" in raw and b"List-Id:" not in raw
    assert b"Auto-Submitted: auto-generated\r\n" in raw
    _, _, raw = one_signed(pipeline, category="marketing", consent=CONSENT)
    assert b"Feedback-ID: welcome:marketing:acme:stentor\r\n" in raw and b"List-Id: <welcome.acme.test>\r\n" in raw
    assert dkim.by_dkimpy(raw, keys) == [True, True]
    signed = re.sub(rb"\s", b"", raw.split(b"h=", 1)[1].split(b";", 1)[0]).lower().split(b":")
    assert {b"feedback-id", b"list-id", b"cfbl-address", b"from", b"subject", b"message-id"} <= set(signed) and signed.count(b"from") == 2


def test_a_mail_whose_key_cannot_be_read_waits_and_is_never_sent_unsigned(pipeline, keys):
    folder = pipeline.folder / "dkim"
    put(pipeline, folder, rsa="later.pem")
    dispatcher = pipeline.services["dispatcher"]
    address = f"{uuid.uuid4().hex}@example.com"

    def waits():
        notification = pipeline.send(to=address)
        pipeline.status(notification, wait="sending")
        return notification if pipeline.status(notification)["status"] == "sending" else None
    notification = wait_until(waits, 20, "a mail that waits")
    unsigned = [raw for _, raw in sent_to(pipeline, address) if not raw.startswith(b"DKIM-Signature:")]
    assert unsigned == []
    attempts = json.dumps(pipeline.status(notification))
    assert "later.pem" in attempts and "r1" in attempts, attempts
    wait_until(lambda: "a credential cannot be read and is not used" in dispatcher.tail(400), 10, "the line in the log")
    os.rename(folder / "r1.pem", folder / "later.pem")  # the operator puts it there: no restart
    try:
        pipeline.status(notification, wait="sent", timeout=30)
        shown = wait_until(lambda: (all_of := pipeline.status(notification)["attempts"])[-1]["outcome"] == "accepted" and all_of, 10, "the attempts")
        assert [attempt["number"] for attempt in shown] == [*range(1, len(shown) + 1)]
        assert {(attempt["vendor"], attempt["code"]) for attempt in shown[:-1]} == {("smtp", "dkim_key_unreadable")}, shown
        assert any(notification.encode() in raw and dkim.by_dkimpy(raw, keys) == [True, True] for _, raw in sent_to(pipeline, address))
    finally:
        os.rename(folder / "later.pem", folder / "r1.pem")
        put(pipeline, folder)


def test_a_domain_without_an_entry_is_sent_as_before(pipeline, keys):
    name = f"plain-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", name, "--name", "Plain", "--sender", f"desk@{name}.test", "--sender-name", "Desk")
    page = pipeline.folder / "plain.html"
    page.write_text("<p>plain</p>")
    pipeline.cli("template", "put", "plain", "--subject", "Plain", "--html", page, tenant=name)
    key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=name))["key"]
    head = {"Authorization": f"Bearer {key}"}
    address = f"{uuid.uuid4().hex}@example.com"
    body = {"to": address, "template": "plain"}
    wait_until(lambda: pipeline.post(body, headers=head)[0] == 202, 20, "the key and the template")
    (sender, raw), = wait_until(lambda: sent_to(pipeline, address), 20, "the mail")
    assert sender == f"desk@{name}.test" and b"DKIM-Signature" not in raw


def test_only_the_operator_manages_mail_domains_and_a_fault_is_named(pipeline, keys):
    body = {"dkim": [{"selector": "r1", "algorithm": "rsa-sha256", "reference": "file:/run/secrets/r1.pem"}]}
    assert pipeline.post(body, path="/v1/mail-domains/x.test", method="PUT")[0] == 403  # a tenant's key
    head = {"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": "acme"}

    def put_body(body, domain="x.test"):
        return pipeline.post(body, path=f"/v1/mail-domains/{domain}", method="PUT", headers=head)
    for wrong, field in (
            ({"dkim": [{"selector": "S 1", "reference": "file:/k"}]}, "dkim[0].selector"),
            ({"dkim": [{"selector": "s1", "algorithm": "rsa-sha1", "reference": "file:/k"}]}, "dkim[0].algorithm"),
            ({"dkim": [{"selector": "s1", "reference": "-----BEGIN PRIVATE KEY-----"}]}, "dkim[0].reference"),
            ({"dkim": [body["dkim"][0], body["dkim"][0]]}, "dkim"),
            ({"dkim": body["dkim"] * 5}, "dkim"),
            ({"bounce_domain": "not a domain"}, "bounce_domain"),
            ({"tracking_url": "ftp://x"}, "tracking_url"),
            ({"selector": "s1"}, "selector")):
        status, _, answer = put_body(wrong)
        assert status == 422 and field in json.dumps(answer), (wrong, answer)
    assert put_body(body, domain="*.x.test")[0] == 422
    status, headers, answer = put_body(body, domain="X.Test")
    assert status == 201 and answer["domain"] == "x.test" and answer["dkim"][0]["dns_name"] == "r1._domainkey.x.test"
    assert pipeline.post(body, path="/v1/mail-domains/x.test", method="PUT", headers={**head, "If-Match": '"1"'})[0] == 412
    assert pipeline.post(body, path="/v1/mail-domains/x.test", method="PUT", headers={**head, "If-Match": headers["ETag"]})[0] == 200
    listed = json.loads(pipeline.cli("mail-domain", "list", "--json"))
    assert [domain["domain"] for domain in listed] == [DOMAIN, "x.test"]
    assert "r1" in pipeline.cli("mail-domain", "show", "x.test") and DOMAIN in pipeline.cli("mail-domain", "list")
    pipeline.cli("mail-domain", "delete", "x.test")
    assert pipeline.run_cli("mail-domain", "show", "x.test").returncode == 3
    assert pipeline.run_cli("mail-domain", "delete", "x.test").returncode == 3
    assert "SELECTOR:rsa:REFERENCE" in pipeline.run_cli("mail-domain", "put", "x.test", "--dkim", "r1").stderr
