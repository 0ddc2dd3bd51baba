# SPDX-License-Identifier: Apache-2.0
"""Vendors of calls: what they ask of a request, how they answer, and the events that they sign. A call is a Mail whose `to` is the number and
whose `text` is what a voice reads out: markup that the vendor would follow is refused."""
import base64
import datetime
import email.utils
import hashlib
import hmac
import json
import secrets
import time
import urllib.parse
import uuid
import xml.etree.ElementTree as xml

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

from tests.harness.vendor_doubles.phone import NUMBER, form_of, twilio_error, twilio_signature
from tests.harness.vendor_doubles.wire import Answered, Mail, Refused, json_of, known, need

LANGUAGES = {"de-DE", "en-US", "en-GB", "fr-FR", "es-ES", "it-IT", "pt-BR"}


# ---- Twilio ----

def spoken(twiml, refused):
    """(text, language) of one Say in one Response, and nothing else."""
    try:
        root = xml.fromstring(twiml)
    except xml.ParseError as error:
        raise refused(f"Twiml is not XML: {error}") from error
    need(root.tag == "Response" and len(root) == 1 and root[0].tag == "Say" and len(root[0]) == 0, refused, "Twiml has more than one Say")
    need(root[0].attrib.get("language", "en-US") in LANGUAGES, refused, "no voice of this language")
    return root[0].text, root[0].attrib.get("language", "")


def twilio_voice(double, request):
    def refused(text):
        return twilio_error(400, 20001, text)
    account = f"/2010-04-01/Accounts/{double.key_id}"
    if request.headers.get("authorization") != "Basic " + base64.b64encode(f"{double.key_id}:{double.secret}".encode()).decode():
        raise twilio_error(401, 20003, "Authenticate")
    if request.method == "GET" and request.path == f"{account}.json":
        raise Answered({"sid": double.key_id, "status": "active"})
    need(request.method == "POST" and request.path == f"{account}/Calls.json", lambda text: twilio_error(404, 20404, text), "no such path")
    form = form_of(request, refused)
    known(form, ("To", "From", "Twiml", "StatusCallback", "StatusCallbackEvent", "MachineDetection", "Timeout"), refused)
    need(NUMBER.match(form.get("To", "")) and form["To"] not in double.rejected, lambda text: twilio_error(400, 21211, text), "Invalid 'To' Phone Number")
    need(form.get("From") == double.settings["from"], lambda text: twilio_error(400, 21210, text), "'From' is not verified")
    need((form["MachineDetection"], form["Timeout"], form.get("StatusCallbackEvent", "completed")) == ("Enable", "30", "completed"), refused, "options")
    need(len(form["Twiml"]) <= 4000, refused, "Twiml is too long")
    text, language = spoken(form["Twiml"], refused)
    mail = Mail("twilio_voice", "CA" + secrets.token_hex(16), form["From"], [form["To"]], text=text, headers=form, report_to=form.get("StatusCallback", ""))
    mail.tags = {"language": language}
    return mail, 201, json.dumps({"sid": mail.id, "status": "queued", "price": None, "price_unit": "USD", "answered_by": None}), {}


def twilio_ended(mail, kind, **fields):
    """The form of the report when a call has ended."""
    status, more = {"delivered": ("completed", {"AnsweredBy": "human", "SipResponseCode": "200"}), "voicemail": ("completed", {"AnsweredBy": "machine_start"}),
                    "busy": ("busy", {"SipResponseCode": "486"}), "no_answer": ("no-answer", {}), "canceled": ("canceled", {}),
                    "bounced": ("failed", {"SipResponseCode": "404"}), "failed": ("failed", {"SipResponseCode": "503"})}[kind]
    return {"CallSid": mail.id, "CallStatus": status, "AccountSid": "AC" + "0" * 32, "From": mail.sender, "To": mail.to[0], "Direction": "outbound-api",
            "Timestamp": email.utils.formatdate().replace("-0000", "+0000"), "CallbackSource": "call-progress-events", "SequenceNumber": "0",
            "CallDuration": "9", **more, **fields}


def twilio_reported(signer, mail, kind, fields):
    form = twilio_ended(mail, kind, **fields)
    return {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": twilio_signature(signer.key, mail.report_to, form)}, \
        urllib.parse.urlencode(form).encode()


# ---- Vonage ----

def vonage_error(status, title, name=""):
    return Refused(status, json.dumps({"type": "https://developer.nexmo.com/api-errors", "title": title,
                                       **({"invalid_parameters": [{"name": name, "reason": title}]} if name else {})}))


def padded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def check_token(double, request):
    """RS256 by the application's key, no older than it says, and never seen before."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    text, _, signature = token.rpartition(".")
    header, claims = (json.loads(padded(part)) for part in text.split("."))
    key = serialization.load_pem_private_key(double.secret.encode(), None).public_key()
    key.verify(padded(signature), text.encode(), padding.PKCS1v15(), hashes.SHA256())
    need(scheme == "Bearer" and header == {"alg": "RS256", "typ": "JWT"}, lambda text: vonage_error(401, text), "token")
    need(claims["application_id"] == double.key_id and claims["iat"] - 5 <= time.time() <= claims["exp"] <= claims["iat"] + 86400,
         lambda text: vonage_error(401, text), "claims")
    uuid.UUID(claims["jti"], version=4)
    need(claims["jti"] not in double.by_key, lambda text: vonage_error(401, text), "the token was used before")
    double.by_key[claims["jti"]] = True


def vonage_voice(double, request):
    try:
        check_token(double, request)
    except Refused:
        raise
    except Exception as error:  # of many kinds
        raise vonage_error(401, f"no valid token: {error!r}") from error
    if request.method == "GET" and request.path == "/v1/calls?page_size=1":
        raise Answered({"count": 0, "page_size": 1, "_embedded": {"calls": []}})
    need(request.method == "POST" and request.path == "/v1/calls", lambda text: vonage_error(404, text), "Not Found")
    document = json_of(request, lambda text: vonage_error(400, text))
    known(document, ("to", "from", "ncco", "event_url", "machine_detection", "ringing_timer"), lambda text: vonage_error(400, text))
    to, talk = document["to"][0], document["ncco"][0]
    need(set(to) == {"type", "number"} and NUMBER.match("+" + to["number"]) and "+" + to["number"] not in double.rejected,
         lambda text: vonage_error(400, text, "to[0].number"), "Invalid value")
    need("+" + document["from"]["number"] == double.settings["from"], lambda text: vonage_error(400, text, "from.number"), "Invalid value")
    need(talk["action"] == "talk" and talk.get("language", "en-US") in LANGUAGES and len(document["ncco"]) == 1, lambda text: vonage_error(400, text, "ncco"), "NCCO")
    ssml = xml.fromstring(talk["text"])
    need(ssml.tag == "speak" and len(ssml) == 0 and len(ssml.text) <= 1500, lambda text: vonage_error(400, text, "ncco"), "markup in the text")
    need((document["machine_detection"], document["ringing_timer"]) == ("continue", 30), lambda text: vonage_error(400, text), "options")
    mail = Mail("vonage_voice", str(uuid.uuid4()), "+" + document["from"]["number"], ["+" + to["number"]], text=ssml.text,
                report_to=document.get("event_url", [""])[0], tags={"language": talk.get("language", "")})
    return mail, 201, json.dumps({"uuid": mail.id, "status": "started", "direction": "outbound", "conversation_uuid": f"CON-{uuid.uuid4()}"}), {}


def vonage_event(mail, kind, **fields):
    status, more = {"sent": ("started", {}), "delivered": ("human", {}), "voicemail": ("machine", {"sub_state": "beep_start"}), "completed": ("completed", {"duration": "9"}),
                    "busy": ("busy", {}), "no_answer": ("unanswered", {"detail": "unavailable"}), "canceled": ("cancelled", {}),
                    "bounced": ("failed", {"sip_code": 404}), "failed": ("failed", {"detail": "carrier_timeout"})}[kind]
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"uuid": mail.id, "conversation_uuid": f"CON-{uuid.uuid4()}", "from": mail.sender[1:], "to": mail.to[0][1:], "status": status,
                       "direction": "outbound", "timestamp": now, **more, **fields}).encode()


def vonage_reported(signer, mail, kind, fields):
    body = vonage_event(mail, kind, **fields)

    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")
    claims = {"iat": int(time.time()), "jti": str(uuid.uuid4()), "iss": "Vonage", "payload_hash": hashlib.sha256(body).hexdigest(), "api_key": "a1b2c3d"}
    text = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    token = text + b"." + part(hmac.new(signer.key.encode(), text, hashlib.sha256).digest())
    return {"Content-Type": "application/json", "Authorization": f"Bearer {token.decode()}"}, body


REFUSALS = {
    "twilio_voice": {"UNAUTHORIZED": (401, {"code": 20003, "message": "Authenticate"}), "THROTTLE": (429, {"code": 20429, "message": "Too Many Requests"}),
                     "ERROR": (500, {"code": 20500, "message": "Internal Server Error"}), "UNAVAILABLE": (503, {"code": 20503, "message": "Service Unavailable"})},
    "vonage_voice": {"UNAUTHORIZED": (401, {"title": "Unauthorized"}), "THROTTLE": (429, {"title": "Rate Limit Hit"}), "ERROR": (500, {"title": "Error"}),
                     "UNAVAILABLE": (503, {"title": "Unavailable"})},
}
VENDORS = {"twilio_voice": twilio_voice, "vonage_voice": vonage_voice}
REPORTS = {"twilio_voice": twilio_reported, "vonage_voice": vonage_reported}
