# SPDX-License-Identifier: Apache-2.0
"""The doubles of vendors themselves: what a vendor takes they take, what it refuses they refuse, and their signatures are the documents'."""
import base64
import hashlib
import hmac
import http.client
import json
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding

from tests.harness.vendor_doubles import callbacks, wire, Double, Fault

MIME = (b"From: Shop <shop@acme.test>\r\nTo: alice@example.com\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Thu, 26 Nov 2026 10:00:00 +0000\r\n"
        b"Message-ID: <1@acme.test>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nHello\r\n")


def ses_headers(double, body, path):
    stamp = double.now().strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": f"127.0.0.1:{double.port}", "x-amz-date": stamp, "content-type": "application/json"}
    scope, names = f"{stamp[:8]}/eu-west-1/ses/aws4_request", sorted(headers)
    signature = wire.ses_signature(wire.Request("POST", path, headers, body), double.secret, stamp, scope, names)
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 Credential={double.key_id}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"}


def multipart(**parts):
    lines = b"".join(b'--edge\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (
        name.encode(), b'; filename="m.eml"' if name == "message" else b"", value) for name, value in parts.items())
    return lines + b"--edge--\r\n"


def request_of(double):
    """Path, headers and body of a mail as the vendor's documents write it."""
    bearer = {"Content-Type": "application/json", "Authorization": f"Bearer {double.secret}"}
    if double.vendor == "postmark":
        return "/email", {"Content-Type": "application/json", "X-Postmark-Server-Token": double.secret}, json.dumps(
            {"From": "Shop <shop@acme.test>", "To": "alice@example.com", "Subject": "Grüße", "TextBody": "Hello", "Metadata": {"nid": "ntf_1"}}).encode()
    if double.vendor == "sendgrid":
        return "/v3/mail/send", bearer, json.dumps(
            {"personalizations": [{"to": [{"email": "alice@example.com"}], "custom_args": {"notification_id": "ntf_1"}}], "from": {"email": "shop@acme.test"},
             "subject": "Grüße", "content": [{"type": "text/plain", "value": "Hello"}]}).encode()
    if double.vendor == "resend":
        return "/emails", {**bearer, "Idempotency-Key": "ntf_1/1"}, json.dumps(
            {"from": "shop@acme.test", "to": ["alice@example.com"], "subject": "Grüße", "text": "Hello", "tags": [{"name": "nid", "value": "ntf_1"}]}).encode()
    if double.vendor == "sparkpost":
        return "/api/v1/transmissions", {"Content-Type": "application/json", "Authorization": double.secret, "Idempotency-Key": "ntf_1.1"}, json.dumps(
            {"recipients": [{"address": {"email": "alice@example.com"}, "metadata": {"nid": "ntf_1"}}], "content": {"email_rfc822": MIME.decode()}}).encode()
    if double.vendor == "mailgun":
        return "/v3/mg.acme.test/messages.mime", {"Content-Type": "multipart/form-data; boundary=edge", "Authorization": "Basic " + base64.b64encode(
            f"api:{double.secret}".encode()).decode()}, multipart(**{"to": b"alice@example.com", "message": MIME, "v:nid": b"ntf_1"})
    body = json.dumps({"FromEmailAddress": "shop@acme.test", "Destination": {"ToAddresses": ["alice@example.com"]},
                       "Content": {"Raw": {"Data": base64.b64encode(MIME).decode()}}, "EmailTags": [{"Name": "nid", "Value": "ntf_1"}]}).encode()
    return "/v2/email/outbound-emails", ses_headers(double, body, "/v2/email/outbound-emails"), body


def post(double, path, headers, body, method="POST"):
    """(status, headers, body); None when the connection ended without an answer."""
    client = http.client.HTTPSConnection("127.0.0.1", double.port, timeout=10, context=ssl.create_default_context(cafile=double.ca_file))
    try:
        client.request(method, path, body, headers)
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read()
    except (ConnectionError, http.client.HTTPException):
        return None
    finally:
        client.close()


@pytest.fixture(scope="module", params=sorted(wire.VENDORS))
def double(request, tmp_path_factory):
    double = Double(request.param, tmp_path_factory.mktemp(request.param)).start()
    yield double
    double.stop()


def test_a_mail_as_documented_is_taken_and_kept(double):
    status, headers, body = post(double, *request_of(double))
    assert status in (200, 202), body
    mail = double.mails[-1]
    assert (mail.to, mail.subject, mail.text.strip(), mail.notification) == (["alice@example.com"], "Grüße", "Hello", "ntf_1")
    assert mail.id in body.decode() + str(headers) or mail.id.strip("<>") in body.decode()


def test_another_credential_is_refused(double):
    path, headers, body = request_of(double)
    before = len(double.mails)
    for name in headers:
        if name.lower() in ("authorization", "x-postmark-server-token"):
            wrong = {**headers, name: headers[name][:-2] + ("AA" if headers[name][-2:] != "AA" else "BB")}
            assert post(double, path, wrong, body)[0] in (401, 403)
            assert post(double, path, {k: v for k, v in headers.items() if k != name}, body)[0] in (401, 403)
    assert len(double.mails) == before


def test_a_field_that_is_not_documented_is_refused(double):
    path, headers, body = request_of(double)
    before = len(double.mails)
    wrong = body.replace(b'"v:nid"', b'"vv:nid"') if double.vendor == "mailgun" else b'{"Sbject": "x",' + body[1:]
    if double.vendor == "ses":
        headers = ses_headers(double, wrong, path)
    assert post(double, path, headers, wrong)[0] in (400, 422)
    assert len(double.mails) == before and double.refused


def test_the_body_is_what_was_signed(double):
    path, headers, body = request_of(double)
    if double.vendor == "ses":
        assert post(double, path, headers, body + b" ")[0] == 403
    assert post(double, path, headers, body)[0] in (200, 202)


def test_a_key_is_one_mail(double):
    if double.vendor not in ("resend", "sparkpost"):
        assert "idempotency" not in str(request_of(double)).lower()
        return
    path, headers, body = request_of(double)
    before = len(double.mails)
    headers["Idempotency-Key"] = "ntf_2.1"
    first, again = post(double, path, headers, body), post(double, path, headers, body)
    assert len(double.mails) == before + 1 and first[2] == again[2]
    assert post(double, path, headers, body.replace(b"Hello", b"Hallo"))[0] == 409


@pytest.mark.parametrize("vendor,question,wrong", [
    ("postmark", "/messages/outbound?count=50&offset=0&metadata_nid={nid}", "/messages/outbound?count=50&offset=0&nid={nid}"),
    ("mailgun", "/v3/mg.acme.test/events?event=accepted&limit=25&message-id={id}", "/v3/mg.acme.test/events?message_id={id}")])
def test_a_vendor_tells_which_mails_it_took(vendor, question, wrong, tmp_path):
    double = Double(vendor, tmp_path).start()
    try:
        path, headers, body = request_of(double)
        assert post(double, path, headers, body)[0] == 200
        mail, = double.mails
        signed = {name: value for name, value in headers.items() if name != "Content-Type"}

        def ask(text):
            status, _, answer = post(double, text.format(nid=mail.notification, id=mail.id.strip("<>")), signed, None, "GET")
            found = json.loads(answer)
            return status, len(found.get("Messages", found.get("items", [])))
        assert ask(question) == (200, 1)
        assert ask(question + "x") == (200, 0)
        assert ask(wrong)[0] in (400, 422)
        assert len(double.mails) == 1
    finally:
        double.stop()


@pytest.mark.parametrize("fault,statuses,taken", [
    (Fault.UNAUTHORIZED, (401, 403), 0), (Fault.THROTTLE, (429,), 0), (Fault.ERROR, (500,), 0), (Fault.ERROR_AFTER, (500,), 1),
    (Fault.UNAVAILABLE, (503,), 0), (Fault.CUT_BEFORE, None, 0), (Fault.CUT_AFTER_BODY, None, 1), (Fault.CUT_IN_ANSWER, None, 1)])
def test_faults(double, fault, statuses, taken):
    path, headers, body = request_of(double)
    headers = {name: value + fault.name if name == "Idempotency-Key" else value for name, value in headers.items()}
    before = len(double.mails)
    double.behave(fault, times=1)
    answer = post(double, path, headers, body)
    assert answer is None if statuses is None else answer[0] in statuses
    assert len(double.mails) == before + taken
    if taken == 0:
        assert post(double, path, headers, body)[0] in (200, 202)


def test_while_it_is_down_nothing_listens(double):
    double.stop()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", double.port, timeout=5).request("GET", "/")
    double.start()
    assert post(double, *request_of(double))[0] in (200, 202)


KINDS = ("delivered", "deferred", "bounced", "soft_bounced", "blocked", "dropped", "opened", "clicked", "complained", "unsubscribed")


def test_callbacks_name_the_mail(double):
    post(double, *request_of(double))
    mail = double.mails[-1]
    for kind in KINDS:
        text = double.callback(mail, kind).body.decode()
        assert "ntf_1" in text and "alice@example.com" in text, kind


def test_signatures_are_the_documents():
    """The vectors that vendors publish, and keys of our own checked by another library."""
    signer = callbacks.Signer("mailgun")
    signer.key = "key-0p6mqbf74lb20gzq9f4dhpn9rg3zyk26"
    text = b"1661590666fff0ebc59c0516f4ce0823212a2f45e5c67814420b99fe558b"
    assert hmac.new(signer.key.encode(), text, hashlib.sha256).hexdigest() == "a0cd251821d8fd56a2130b541becc8e441023574e602fe9829a9ab9fbfdea33f"
    made = json.loads(signer.sign(b"{}").body)["signature"]
    assert made["signature"] == hmac.new(signer.key.encode(), (made["timestamp"] + made["token"]).encode(), hashlib.sha256).hexdigest()
    signer = callbacks.Signer("resend")
    signer.key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    made = callbacks.svix_signed(signer, b'{"test": 2432232314}', at=1614265330, event_id="msg_p5jXN8AQM9LWM0D4loKWxJek")
    assert made.headers["svix-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    signer = callbacks.Signer("sendgrid")
    made = signer.sign(b"[]\r\n")
    key = serialization.load_der_public_key(base64.b64decode(signer.key))
    key.verify(base64.b64decode(made.headers["X-Twilio-Email-Event-Webhook-Signature"]),
               made.headers["X-Twilio-Email-Event-Webhook-Timestamp"].encode() + b"[]\r\n", ec.ECDSA(hashes.SHA256()))


def test_sns_signs_what_amazon_signed():
    """The text is that of Amazon's own sample, whose signature its certificate of 2021 made; ours are checked with the certificate that we show."""
    sample = {"Type": "Notification", "MessageId": "17dea24b-55c2-540b-8362-f916557af765", "Message": "Hello world", "Timestamp": "2022-07-28T21:25:50.139Z",
              "TopicArn": "arn:aws:sns:us-east-2:295079676684:publish-and-verify-62674b1d-4295-426b-88e7-5fb75652a04e"}
    assert callbacks.sns_text(sample) == (b"Message\nHello world\nMessageId\n17dea24b-55c2-540b-8362-f916557af765\nTimestamp\n2022-07-28T21:25:50.139Z\n"
                                          b"TopicArn\narn:aws:sns:us-east-2:295079676684:publish-and-verify-62674b1d-4295-426b-88e7-5fb75652a04e\n"
                                          b"Type\nNotification\n")
    signer = callbacks.Signer("ses")
    public = x509.load_pem_x509_certificate(signer.certificate.encode()).public_key()
    for made, algorithm in ((signer.sign(b"{}"), hashes.SHA256()), (callbacks.sns_signed(signer, b"{}", SignatureVersion="1"), hashes.SHA1()),
                            (callbacks.subscription(signer), hashes.SHA256())):
        message = json.loads(made.body)
        public.verify(base64.b64decode(message["Signature"]), callbacks.sns_text(message), padding.PKCS1v15(), algorithm)


def test_ses_signatures_are_amazons():
    """The case get-vanilla of Amazon's suite."""
    request = wire.Request("GET", "/", {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}, b"")
    signature = wire.ses_signature(request, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830T123600Z", "20150830/us-east-1/service/aws4_request",
                                   ["host", "x-amz-date"])
    assert signature == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
