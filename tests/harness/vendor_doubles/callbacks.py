# SPDX-License-Identifier: Apache-2.0
"""What each vendor calls back about a mail, signed as the vendor signs: ECDSA and RSA by `cryptography`, HMAC by Python.

kinds: delivered, deferred, bounced (no such address), soft_bounced, blocked, dropped, opened, clicked, complained, unsubscribed."""
import base64
import datetime
import hashlib
import hmac
import json
import secrets
import time
import uuid
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID

from tests.harness.vendor_doubles import acme, phone, voice

TEXT = "550 5.1.1 The email account that you tried to reach does not exist"


@dataclass
class Callback:
    headers: dict
    body: bytes


def pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


class Signer:
    """The key pair or secret of one vendor's callbacks; `key` is what its console shows and an operator configures."""

    def __init__(self, vendor, folder=None):
        self.vendor, self.certificate = vendor, ""
        self.topic = "arn:aws:sns:eu-west-1:123456789012:mail-events"
        if vendor == "sendgrid":
            self.private = ec.generate_private_key(ec.SECP256R1())
            self.key = base64.b64encode(self.private.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)).decode()
        elif vendor == "ses":
            self.private = rsa.generate_private_key(65537, 2048)
            self.certificate = sns_certificate(self.private, folder)
            self.key = self.topic
        elif vendor == "resend":
            self.key = "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()
        elif vendor == "telnyx":
            self.private = ed25519.Ed25519PrivateKey.generate()
            self.key = base64.b64encode(self.private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)).decode()
        elif vendor == "mailgun" or vendor in {**phone.VENDORS, **voice.VENDORS, **acme.VENDORS}:
            self.key = secrets.token_hex(16)
        else:
            self.key = f"stentor:{secrets.token_hex(16)}"  # basic auth: Postmark and SparkPost sign nothing

    @property
    def certificate_url(self):
        name = hashlib.sha256(self.certificate.encode()).hexdigest()[:32]
        return f"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-{name}.pem"

    def sign(self, body):
        return SIGNED[self.vendor](self, body)


def sns_certificate(key, folder):
    """A certificate for sns.amazonaws.com by the double's authority, or by itself."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    issuer, signing = subject, key
    if folder is not None:
        issuer = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()).subject
        signing = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    now = datetime.datetime.utcnow()
    made = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("sns.amazonaws.com")]), critical=False).sign(signing, hashes.SHA256()))
    return made.public_bytes(serialization.Encoding.PEM).decode()


# ---- signatures ----

def sendgrid_signed(signer, body, at=None):
    stamp = str(at or int(time.time()))
    signature = signer.private.sign(stamp.encode() + body, ec.ECDSA(hashes.SHA256()))
    return Callback({"Content-Type": "application/json", "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
                     "X-Twilio-Email-Event-Webhook-Timestamp": stamp}, body)


def mailgun_signed(signer, body, at=None):
    """`body` is event-data; the signature is a member beside it."""
    stamp, token = str(at or int(time.time())), secrets.token_hex(25)
    signature = hmac.new(signer.key.encode(), (stamp + token).encode(), hashlib.sha256).hexdigest()
    whole = b'{"signature":' + json.dumps({"token": token, "timestamp": stamp, "signature": signature}).encode() + b',"event-data":' + body + b"}"
    return Callback({"Content-Type": "application/json"}, whole)


def svix_signed(signer, body, at=None, event_id=None):
    stamp, name = str(at or int(time.time())), event_id or "msg_" + secrets.token_hex(12)
    secret = base64.b64decode(signer.key.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.new(secret, f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()
    return Callback({"Content-Type": "application/json", "svix-id": name, "svix-timestamp": stamp, "svix-signature": f"v1,{signature}"}, body)


def basic(signer, body):
    return Callback({"Content-Type": "application/json", "Authorization": "Basic " + base64.b64encode(signer.key.encode()).decode()}, body)


def sns_text(message):
    """The string that SNS signs: the fields of its kind, sorted, each name and value on a line."""
    names = (("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type") if message["Type"] == "Notification" else
             ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"))
    return "".join(f"{name}\n{message[name]}\n" for name in names if name in message).encode()


def sns_signed(signer, body, kind="Notification", **fields):
    message = {"Type": kind, "MessageId": str(uuid.uuid4()), "TopicArn": signer.topic, "Message": body.decode(),
               "Timestamp": datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%S.000Z"), "SignatureVersion": "2", "SigningCertURL": signer.certificate_url,
               **fields}
    signature = signer.private.sign(sns_text(message), padding.PKCS1v15(), hashes.SHA1() if message["SignatureVersion"] == "1" else hashes.SHA256())
    message["Signature"] = base64.b64encode(signature).decode()
    return Callback({"Content-Type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": kind, "x-amz-sns-message-id": message["MessageId"],
                     "x-amz-sns-topic-arn": message["TopicArn"]}, json.dumps(message, indent=2).encode())


def subscription(signer):
    """What SNS sends once when a topic gets the receiver's address."""
    token = secrets.token_hex(32)
    url = f"https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={signer.topic}&Token={token}"
    return sns_signed(signer, b"You have chosen to subscribe to the topic.", "SubscriptionConfirmation", SubscribeURL=url, Token=token)


SIGNED = {"sendgrid": sendgrid_signed, "mailgun": mailgun_signed, "resend": svix_signed, "postmark": basic, "sparkpost": basic, "ses": sns_signed}


# ---- bodies ----

def iso(at):
    return datetime.datetime.utcfromtimestamp(at).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def sendgrid_body(mail, kind, at, fields):
    event, more = {
        "delivered": ("delivered", {"response": "250 OK"}), "deferred": ("deferred", {"response": "400 try again later", "attempt": "5"}),
        "bounced": ("bounce", {"type": "bounce", "status": "5.1.1", "reason": TEXT}), "soft_bounced": ("bounce", {"type": "blocked", "status": "4.2.2", "reason": "mailbox full"}),
        "blocked": ("bounce", {"type": "blocked", "status": "5.7.1", "reason": "blocked"}), "dropped": ("dropped", {"reason": "Bounced Address"}),
        "opened": ("open", {"useragent": "Mozilla/4.0", "ip": "192.0.2.1", "sg_machine_open": False}), "clicked": ("click", {"url": "https://acme.test/", "ip": "192.0.2.1"}),
        "complained": ("spamreport", {}), "unsubscribed": ("unsubscribe", {})}[kind]
    document = {"email": mail.to[0], "timestamp": int(at), "event": event, "sg_event_id": secrets.token_urlsafe(22),
                "sg_message_id": f"{mail.id}.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0", "smtp-id": f"<{mail.id}@geopod-ismtpd-1>", **mail.tags, **more, **fields}
    return b"[" + json.dumps(document).encode() + b"]\r\n"


def mailgun_body(mail, kind, at, fields):
    event, more = {
        "delivered": ("delivered", {"delivery-status": {"code": 250, "message": "OK", "attempt-no": 1}}),
        "deferred": ("failed", {"severity": "temporary", "reason": "generic", "delivery-status": {"code": 451, "message": "try again later", "retry-seconds": 600}}),
        "bounced": ("failed", {"severity": "permanent", "reason": "bounce", "delivery-status": {"code": 550, "enhanced-code": "5.1.1", "message": TEXT}}),
        "soft_bounced": ("failed", {"severity": "permanent", "reason": "old", "delivery-status": {"code": 602, "message": "Too old"}}),
        "blocked": ("failed", {"severity": "permanent", "reason": "generic", "delivery-status": {"code": 554, "enhanced-code": "5.7.1", "message": "blocked"}}),
        "dropped": ("failed", {"severity": "permanent", "reason": "suppress-bounce", "delivery-status": {"code": 605, "message": "Not delivering to previously bounced address"}}),
        "opened": ("opened", {"client-info": {"bot": ""}, "ip": "192.0.2.1"}), "clicked": ("clicked", {"url": "https://acme.test/", "ip": "192.0.2.1"}),
        "complained": ("complained", {}), "unsubscribed": ("unsubscribed", {})}[kind]
    return json.dumps({"id": secrets.token_urlsafe(16), "timestamp": at, "event": event, "recipient": mail.to[0], "recipient-domain": mail.to[0].split("@")[1],
                       "message": {"headers": {"to": mail.to[0], "message-id": mail.id.strip("<>"), "from": mail.sender, "subject": mail.subject}, "size": 111},
                       "user-variables": mail.tags, "tags": [], **more, **fields}).encode()


def postmark_body(mail, kind, at, fields):
    stamp = iso(at)[:-1] + "0000Z"
    bounce = {"RecordType": "Bounce", "ID": secrets.randbits(40), "Email": mail.to[0], "BouncedAt": stamp, "From": mail.sender, "Details": TEXT, "Subject": mail.subject}
    more = {
        "delivered": {"RecordType": "Delivery", "Recipient": mail.to[0], "DeliveredAt": stamp, "Details": "250 OK"},
        "deferred": {**bounce, "Type": "Transient", "TypeCode": 2, "Inactive": False, "Description": "try again later"},
        "bounced": {**bounce, "Type": "HardBounce", "TypeCode": 1, "Inactive": True, "Description": "The server was unable to deliver your message"},
        "soft_bounced": {**bounce, "Type": "SoftBounce", "TypeCode": 4096, "Inactive": False, "Description": "mailbox full"},
        "blocked": {**bounce, "Type": "Blocked", "TypeCode": 100006, "Inactive": False, "Description": "ISP block"},
        "dropped": {**bounce, "Type": "ManuallyDeactivated", "TypeCode": 100002, "Inactive": True, "Description": "deactivated"},
        "opened": {"RecordType": "Open", "Recipient": mail.to[0], "ReceivedAt": stamp, "FirstOpen": True, "UserAgent": "Mozilla/5.0"},
        "clicked": {"RecordType": "Click", "Recipient": mail.to[0], "ReceivedAt": stamp, "OriginalLink": "https://acme.test/", "UserAgent": "Mozilla/5.0"},
        "complained": {**bounce, "RecordType": "SpamComplaint", "Type": "SpamComplaint", "TypeCode": 100001, "Inactive": True},
        "unsubscribed": {"RecordType": "SubscriptionChange", "Recipient": mail.to[0], "ChangedAt": stamp, "SuppressSending": True,
                         "SuppressionReason": "ManualSuppression", "Origin": "Recipient"}}[kind]
    return json.dumps({**more, "MessageID": mail.id, "Metadata": mail.tags, "MessageStream": "outbound", "ServerID": 23, "Tag": "", **fields}).encode()


def resend_body(mail, kind, at, fields):
    event, more = {
        "delivered": ("email.delivered", {}), "deferred": ("email.delivery_delayed", {}),
        "bounced": ("email.bounced", {"bounce": {"type": "Permanent", "subType": "General", "message": TEXT}}),
        "soft_bounced": ("email.bounced", {"bounce": {"type": "Transient", "subType": "MailboxFull", "message": "mailbox full"}}),
        "blocked": ("email.bounced", {"bounce": {"type": "Transient", "subType": "ContentRejected", "message": "blocked"}}),
        "dropped": ("email.bounced", {"bounce": {"type": "Permanent", "subType": "Suppressed", "message": "on the suppression list"}}),
        "opened": ("email.opened", {}), "clicked": ("email.clicked", {"click": {"link": "https://acme.test/", "ipAddress": "192.0.2.1", "timestamp": iso(at), "userAgent": "Mozilla/5.0"}}),
        "complained": ("email.complained", {}), "unsubscribed": ("email.failed", {"failed": {"reason": "unsubscribed"}})}[kind]
    return json.dumps({"type": event, "created_at": iso(at), "data": {"email_id": mail.id, "created_at": iso(at), "from": mail.sender, "to": mail.to, "subject": mail.subject,
                                                                       "tags": mail.tags, **more, **fields}}).encode()


def sparkpost_body(mail, kind, at, fields):
    group, more = {
        "delivered": ("message_event", {"type": "delivery"}), "deferred": ("message_event", {"type": "delay", "bounce_class": "21", "error_code": "450", "reason": "450 try again"}),
        "bounced": ("message_event", {"type": "bounce", "bounce_class": "10", "error_code": "550", "reason": TEXT}),
        "soft_bounced": ("message_event", {"type": "bounce", "bounce_class": "22", "error_code": "552", "reason": "mailbox full"}),
        "blocked": ("message_event", {"type": "bounce", "bounce_class": "51", "error_code": "554", "reason": "blocked"}),
        "dropped": ("message_event", {"type": "policy_rejection", "bounce_class": "25", "error_code": "554", "reason": "suppressed"}),
        "opened": ("track_event", {"type": "open", "user_agent": "Mozilla/5.0"}), "clicked": ("track_event", {"type": "click", "target_link_url": "https://acme.test/"}),
        "complained": ("message_event", {"type": "spam_complaint", "fbtype": "abuse"}), "unsubscribed": ("unsubscribe_event", {"type": "list_unsubscribe"})}[kind]
    return json.dumps([{"msys": {group: {"event_id": str(secrets.randbits(60)), "timestamp": str(int(at)), "message_id": secrets.token_hex(12), "transmission_id": mail.id,
                                         "rcpt_to": mail.to[0], "raw_rcpt_to": mail.to[0], "rcpt_meta": mail.tags, "subject": mail.subject, **more, **fields}}}]).encode()


def ses_body(mail, kind, at, fields):
    to = [{"emailAddress": mail.to[0], "action": "failed", "status": "5.1.1", "diagnosticCode": f"smtp; {TEXT}"}]

    def bounce(main, sub):
        return "Bounce", "bounce", {"bounceType": main, "bounceSubType": sub, "bouncedRecipients": to, "timestamp": iso(at), "feedbackId": str(uuid.uuid4())}
    event, name, more = {
        "delivered": ("Delivery", "delivery", {"timestamp": iso(at), "processingTimeMillis": 546, "recipients": mail.to, "smtpResponse": "250 OK"}),
        "deferred": ("DeliveryDelay", "deliveryDelay", {"timestamp": iso(at), "delayType": "TransientCommunicationFailure", "delayedRecipients": to}),
        "bounced": bounce("Permanent", "NoEmail"), "soft_bounced": bounce("Transient", "MailboxFull"), "blocked": bounce("Transient", "ContentRejected"),
        "dropped": bounce("Permanent", "OnAccountSuppressionList"),
        "opened": ("Open", "open", {"ipAddress": "192.0.2.1", "timestamp": iso(at), "userAgent": "Mozilla/5.0"}),
        "clicked": ("Click", "click", {"ipAddress": "192.0.2.1", "timestamp": iso(at), "userAgent": "Mozilla/5.0", "link": "https://acme.test/", "linkTags": None}),
        "complained": ("Complaint", "complaint", {"complainedRecipients": [{"emailAddress": mail.to[0]}], "timestamp": iso(at), "complaintFeedbackType": "abuse"}),
        "unsubscribed": ("Subscription", "subscription", {"contactList": "all", "timestamp": iso(at), "source": "UnsubscribeHeader"})}[kind]
    headers = [{"name": header, "value": value} for header, value in mail.headers.items()]
    whole = {"timestamp": iso(at), "messageId": mail.id, "source": mail.sender, "sendingAccountId": "123456789012", "destination": mail.to, "headersTruncated": False,
             "headers": headers, "tags": {"ses:configuration-set": ["mail"], **{tag: [value] for tag, value in mail.tags.items()}}}
    return json.dumps({"eventType": event, "mail": whole, name: {**more, **fields}}).encode()


BODIES = {"sendgrid": sendgrid_body, "mailgun": mailgun_body, "postmark": postmark_body, "resend": resend_body, "sparkpost": sparkpost_body, "ses": ses_body}


def make(signer, mail, kind, at=None, **fields):
    reports = {**phone.REPORTS, **voice.REPORTS, **acme.REPORTS}
    if signer.vendor in reports:
        return Callback(*reports[signer.vendor](signer, mail, kind, fields))
    return signer.sign(BODIES[signer.vendor](mail, kind, at or time.time(), fields))
