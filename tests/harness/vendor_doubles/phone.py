# SPDX-License-Identifier: Apache-2.0
"""Vendors that reach a phone number: what they ask of a request, how they answer, and the callbacks that they sign. A message is a Mail whose
`to` is the number; `report_to` is the URL that the request gave for reports."""
import base64
import datetime
import email.utils
import hashlib
import hmac
import json
import re
import secrets
import time
import urllib.parse
import uuid

from tests.harness.vendor_doubles.wire import Answered, Mail, Refused, json_of, known, need

NUMBER = re.compile(r"^\+[1-9][0-9]{4,14}$")
GSM = set("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà")
GSM_TWICE = set("\f^{}\\[~]|€")


def segments(text):
    """As 3GPP TS 23.038 counts them."""
    if set(text) <= GSM | GSM_TWICE:
        units, single, part = [2 if c in GSM_TWICE else 1 for c in text], 160, 153
    else:
        units, single, part = [2 if ord(c) > 0xffff else 1 for c in text], 70, 67
    if sum(units) <= single:
        return 1
    count, room = 1, part
    for unit in units:
        if unit > room:
            count, room = count + 1, part
        room -= unit
    return count


def form_of(request, refused):
    need(request.headers.get("content-type", "").split(";")[0] == "application/x-www-form-urlencoded", refused, "Content-Type is no form")
    pairs = urllib.parse.parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True, errors="strict")
    need(len(dict(pairs)) == len(pairs), refused, "a field comes twice")
    return dict(pairs)


# ---- Twilio ----

def twilio_error(status, code, text, headers=None):
    return Refused(status, json.dumps({"code": code, "message": text, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status}), headers)


def twilio_message(double, mail):
    return {"sid": mail.id, "account_sid": double.key_id, "to": mail.to[0], "from": mail.sender, "body": mail.text, "status": "queued",
            "num_segments": str(segments(mail.text)), "price": double.price, "price_unit": "USD", "direction": "outbound-api", "error_code": None,
            "date_created": mail.made.replace("GMT", "+0000")}


def twilio(double, request):
    def refused(text):
        return twilio_error(400, 20001, text)
    path, _, query = request.path.partition("?")
    account = f"/2010-04-01/Accounts/{double.key_id}"
    if request.headers.get("authorization") != "Basic " + base64.b64encode(f"{double.key_id}:{double.secret}".encode()).decode():
        raise twilio_error(401, 20003, "Authenticate")
    if request.method == "GET" and path == f"{account}.json":
        raise Answered({"sid": double.key_id, "status": "active"})
    need(path == f"{account}/Messages.json", lambda text: twilio_error(404, 20404, text), "no such path")
    if request.method == "GET":
        asked = dict(urllib.parse.parse_qsl(query))
        found = [mail for mail in reversed(double.mails) if mail.to == [asked["To"]]]
        raise Answered({"messages": [twilio_message(double, mail) for mail in found[:int(asked["PageSize"])]], "next_page_uri": None})
    form = form_of(request, refused)
    if double.vendor == "twilio_whatsapp":
        return twilio_whatsapp_message(double, form, refused)
    known(form, ("To", "From", "MessagingServiceSid", "Body", "StatusCallback", "ValidityPeriod"), refused)
    need(("From" in form) != ("MessagingServiceSid" in form), lambda text: twilio_error(400, 21603, text), "A 'From' phone number is required.")
    need(NUMBER.match(form.get("To", "")), lambda text: twilio_error(400, 21211, text), "The 'To' number is not a valid phone number.")
    if form["To"] in double.rejected:
        raise twilio_error(400, 21211, double.says_of_number.format(form["To"]))
    if form["To"] in double.opted_out:
        raise twilio_error(400, 21610, "Attempt to send to unsubscribed recipient")
    need(form.get("Body"), lambda text: twilio_error(400, 21602, text), "Message body is required.")
    need(len(form["Body"].encode("utf-16-le")) <= 3200, lambda text: twilio_error(400, 21617, text), "The concatenated message body exceeds the 1600 character limit.")
    need(1 <= int(form.get("ValidityPeriod", 1)) <= 36000, refused, "ValidityPeriod is out of range")
    mail = Mail("twilio", "SM" + secrets.token_hex(16), form.get("From") or form["MessagingServiceSid"], [form["To"]], text=form["Body"],
                headers=form, report_to=form.get("StatusCallback", ""), made=email.utils.formatdate(usegmt=True))
    return mail, 201, json.dumps(twilio_message(double, mail)), {}


def twilio_whatsapp_message(double, form, refused):
    """`templates`: how many variables the one of that SID has; `windows`: who wrote within 24 hours."""
    known(form, ("To", "From", "Body", "ContentSid", "ContentVariables", "StatusCallback", "ValidityPeriod"), refused)
    need(form["To"].startswith("whatsapp:") and form["From"].startswith("whatsapp:"), lambda text: twilio_error(400, 21211, text), "no WhatsApp number")
    to = form["To"].removeprefix("whatsapp:")
    need(NUMBER.match(to) and ("Body" in form) != ("ContentSid" in form), refused, "a number, and Body or ContentSid")
    text = form.get("Body", "")
    if "ContentSid" in form:
        values = json.loads(form.get("ContentVariables", "{}"))
        need(double.templates.get(form["ContentSid"]) == len(values) and list(values) == [str(n + 1) for n in range(len(values))],
             lambda text: twilio_error(400, 21656, text), "The ContentVariables parameter is invalid.")
        text = " ".join(values.values())
    elif to not in double.windows:
        raise twilio_error(400, 63016, "Failed to send freeform message because you are outside the allowed window.")
    mail = Mail(double.vendor, "SM" + secrets.token_hex(16), form["From"], [form["To"]], text=text, headers=form, report_to=form.get("StatusCallback", ""),
                made=email.utils.formatdate(usegmt=True))
    return mail, 201, json.dumps(twilio_message(double, mail)), {}


def twilio_signature(token, url, form):
    """As the documents describe it: the URL, then each field's name and value, sorted by name."""
    text = url + "".join(name + value for name, value in sorted(form.items()))
    return base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()


def twilio_reported(signer, mail, kind, fields):
    """The form of a report, and its headers."""
    status, code = {"delivered": ("delivered", ""), "sent": ("sent", ""), "deferred": ("sending", ""), "bounced": ("undelivered", "30005"),
                    "soft_bounced": ("undelivered", "30003"), "blocked": ("undelivered", "30007"), "dropped": ("failed", "21610"),
                    "opened": ("read", "")}[kind]
    form = {"MessageSid": mail.id, "SmsSid": mail.id, "MessageStatus": status, "SmsStatus": status, "AccountSid": "AC" + "0" * 32, "From": mail.sender,
            "To": mail.to[0], "ApiVersion": "2010-04-01", **({"ErrorCode": code} if code else {}), **fields}
    return {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": twilio_signature(signer.key, mail.report_to, form)}, \
        urllib.parse.urlencode(form).encode()


def twilio_reply(signer, url, number, text, **fields):
    """What Twilio posts to the URL of its console when a recipient writes to a sender."""
    form = {"MessageSid": "SM" + secrets.token_hex(16), "SmsStatus": "received", "AccountSid": "AC" + "0" * 32, "From": number, "To": "+15005550006",
            "Body": text, "NumMedia": "0", "ApiVersion": "2010-04-01", **fields}
    return {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": twilio_signature(signer.key, url, form)}, \
        urllib.parse.urlencode(form).encode()


# ---- Vonage ----

def vonage(double, request):
    def refused(status):
        return Refused(200, json.dumps({"message-count": "1", "messages": [{"status": status, "error-text": "refused"}]}))
    if request.method == "GET":
        need(request.headers.get("authorization") == "Basic " + base64.b64encode(f"{double.key_id}:{double.secret}".encode()).decode(),
             lambda text: Refused(401, "{}"), "credential")
        raise Answered({"value": 10.5, "autoReload": False})
    need(request.path == "/sms/json", lambda text: Refused(404, "{}"), "no such path")
    form = form_of(request, lambda text: refused("3"))
    known(form, ("api_key", "api_secret", "from", "to", "text", "type", "client-ref", "callback", "ttl"), lambda text: refused("3"))
    if (form.get("api_key"), form.get("api_secret")) != (double.key_id, double.secret):
        raise refused("4")
    need(form.get("from") and form.get("to") and form.get("text"), lambda text: refused("2"), "a field is missing")
    need(NUMBER.match("+" + form["to"]) and len(form["client-ref"]) <= 40, lambda text: refused("3"), "no number, or a long client-ref")
    need((form["type"] == "unicode") == (not set(form["text"]) <= GSM | GSM_TWICE), lambda text: refused("3"), "type is not that of the text")
    mail = Mail("vonage", secrets.token_hex(8).upper(), form["from"], ["+" + form["to"]], text=form["text"], headers=form, report_to=form.get("callback", ""))
    parts = [{"to": form["to"], "message-id": f"{mail.id}{n}", "status": "0", "remaining-balance": "9.9", "message-price": "0.03330000", "network": "26201"}
             for n in range(segments(form["text"]))]
    mail.id = parts[0]["message-id"]
    return mail, 200, json.dumps({"message-count": str(len(parts)), "messages": parts}), {}


def vonage_signed(key, form):
    text = "".join(f"&{name}={value.replace('&', '_').replace('=', '_')}" for name, value in sorted(form.items()))
    form["sig"] = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest().upper()
    return {"Content-Type": "application/x-www-form-urlencoded"}, urllib.parse.urlencode(form).encode()


def vonage_reply(signer, number, text, **fields):
    """What Vonage posts when a recipient writes to a number."""
    return vonage_signed(signer.key, {
        "msisdn": number[1:], "to": "447700900001", "messageId": secrets.token_hex(8).upper(), "text": text, "type": "text", "keyword": text.upper(),
        "api-key": "a1b2c3d4", "message-timestamp": "2026-11-27 01:00:00", "timestamp": str(int(time.time())), "nonce": secrets.token_hex(8), **fields})


def vonage_reported(signer, mail, kind, fields):
    status, code = {"delivered": ("delivered", "0"), "sent": ("accepted", "0"), "bounced": ("failed", "3"), "soft_bounced": ("expired", "8"),
                    "blocked": ("rejected", "9")}[kind]
    form = {"msisdn": mail.to[0][1:], "to": mail.sender, "network-code": "26201", "messageId": mail.id, "price": "0.03330000", "status": status,
            "scts": "2611270100", "err-code": code, "message-timestamp": "2026-11-27 01:00:00", "client-ref": mail.headers["client-ref"],
            "timestamp": str(int(time.time())), "nonce": secrets.token_hex(8), **fields}
    return vonage_signed(signer.key, form)


# ---- Telnyx ----

def telnyx_error(status, code, text, headers=None, **source):
    return Refused(status, json.dumps({"errors": [{"code": code, "title": text, "detail": text, **({"source": source} if source else {})}]}), headers)


def telnyx_message(mail, status):
    return {"record_type": "message", "direction": "outbound", "id": mail.id, "type": "SMS", "from": {"phone_number": mail.sender}, "text": mail.text,
            "to": [{"phone_number": mail.to[0], "status": status}], "parts": segments(mail.text), "cost": {"amount": "0.0051", "currency": "USD"},
            "webhook_url": mail.report_to, "errors": []}


def telnyx(double, request):
    def refused(text):
        return telnyx_error(422, "10015", text)
    if request.headers.get("authorization") != f"Bearer {double.secret}":
        raise telnyx_error(401, "10009", "Authentication failed")
    if request.method == "GET" and request.path == "/v2/balance":
        raise Answered({"data": {"record_type": "balance", "balance": "300.00", "currency": "USD"}})
    need(request.method == "POST" and request.path == "/v2/messages", lambda text: telnyx_error(404, "10005", text), "no such path")
    need("idempotency-key" not in request.headers, refused, "messages declare no Idempotency-Key")
    document = json_of(request, refused)
    known(document, ("from", "messaging_profile_id", "to", "text", "type", "webhook_url"), refused)
    need("from" in document or "messaging_profile_id" in document, lambda text: telnyx_error(400, "40305", text), "Invalid 'from' address")
    need(NUMBER.match(document["to"]) and document["to"] not in double.rejected, lambda text: telnyx_error(400, "40310", text), "Invalid 'to' address")
    need(document["to"] not in double.opted_out, lambda text: telnyx_error(400, "40300", text), "Blocked due to STOP message")
    need(document["text"] and segments(document["text"]) <= 10, lambda text: telnyx_error(400, "40302", text), "Message too large")
    mail = Mail("telnyx", str(uuid.uuid4()), document.get("from", ""), [document["to"]], text=document["text"], report_to=document.get("webhook_url", ""))
    return mail, 200, json.dumps({"data": telnyx_message(mail, "queued")}), {}


def telnyx_signed(signer, document):
    """Signed by `cryptography`: Ed25519 over the time and the raw body."""
    body, stamp = json.dumps(document).encode(), str(int(time.time()))
    signature = base64.b64encode(signer.private.sign(stamp.encode() + b"|" + body)).decode()
    return {"Content-Type": "application/json", "telnyx-signature-ed25519": signature, "telnyx-timestamp": stamp}, body


def telnyx_event(kind, payload, fields):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    return {"data": {"record_type": "event", "event_type": kind, "id": str(uuid.uuid4()), "occurred_at": now, "payload": {**payload, **fields}}, "meta": {"attempt": 1}}


def telnyx_reported(signer, mail, kind, fields):
    event, status, code = {"sent": ("message.sent", "sent", ""), "delivered": ("message.finalized", "delivered", ""),
                           "bounced": ("message.finalized", "delivery_failed", "40012"), "soft_bounced": ("message.finalized", "delivery_failed", "40008"),
                           "blocked": ("message.finalized", "delivery_failed", "40002"), "dropped": ("message.finalized", "sending_failed", "40300")}[kind]
    payload = telnyx_message(mail, status)
    payload["errors"] = [{"code": code, "title": kind}] if code else []
    return telnyx_signed(signer, telnyx_event(event, payload, fields))


def telnyx_reply(signer, number, text, **fields):
    """What Telnyx posts to the profile's URL when a recipient writes to a sender."""
    payload = {"record_type": "message", "id": str(uuid.uuid4()), "direction": "inbound", "type": "SMS", "from": {"phone_number": number, "carrier": "", "line_type": ""},
               "to": [{"phone_number": "+15005550007", "carrier": "", "line_type": "", "status": "webhook_delivered"}], "cc": [], "text": text, "media": [],
               "errors": [], "parts": 1}
    return telnyx_signed(signer, telnyx_event("message.received", payload, fields))


# ---- WhatsApp by Meta ----

LANGUAGE = re.compile(r"^[a-z]{2,3}(_[A-Z]{2})?$")


def meta_error(status, code, title, details="", **more):
    data = {"error_data": {"messaging_product": "whatsapp", "details": details}} if details else {}
    return Refused(status, json.dumps({"error": {"message": f"(#{code}) {title}", "type": "OAuthException", "code": code, **data, "fbtrace_id": "A1b2C3", **more}}))


def meta_template(double, template, refused):
    known(template, ("name", "language", "components"), refused)
    name, code = template["name"], template["language"]["code"]
    need(LANGUAGE.match(code), refused, "Param template['language']['code'] is not valid")
    if (name, code) not in double.templates:
        raise meta_error(404, 132001, "Template name does not exist in the translation", f"template name ({name}) does not exist in {code}")
    values = []
    for component in template.get("components", []):
        known(component, ("type", "parameters", "sub_type", "index"), refused)
        need(component["type"] in ("header", "body", "button"), refused, "component type")
        need((component["type"] == "button") == ("index" in component and component.get("sub_type") == "url"), refused, "a button has sub_type and index")
        for parameter in component["parameters"]:
            known(parameter, ("type", "text"), refused)
            need(parameter["type"] == "text" and parameter["text"], refused, "Param text must not be empty")
            values.append((component["type"], parameter["text"]))
    wanted = double.templates[name, code]
    if [kind for kind, _ in values] != wanted:
        raise meta_error(400, 132000, "Number of parameters does not match the expected number of params",
                         f"body: number of localizable_params ({len(values)}) does not match the expected number of params ({len(wanted)})")
    return [text for _, text in values]


def meta(double, request):
    def refused(text):
        return meta_error(400, 100, "Invalid parameter", text)
    number = double.settings["phone_number_id"]
    if request.headers.get("authorization") != f"Bearer {double.secret}":
        raise meta_error(401, 190, "Invalid OAuth access token")
    if request.method == "GET":
        need(request.path == f"/v23.0/{number}?fields=id", refused, "no such path")
        raise Answered({"id": number})
    need(request.path == f"/v23.0/{number}/messages", lambda text: meta_error(400, 33, text), "Unsupported post request")
    document = json_of(request, refused)
    known(document, ("messaging_product", "recipient_type", "to", "type", "template", "text", "biz_opaque_callback_data"), refused)
    need((document["messaging_product"], document["recipient_type"]) == ("whatsapp", "individual"), refused, "messaging_product")
    need(NUMBER.match("+" + document["to"]), refused, "Param to is not a phone number")
    need(len(document.get("biz_opaque_callback_data", "")) <= 512, refused, "biz_opaque_callback_data is too long")
    to = "+" + document["to"]
    if to in double.rejected:
        raise meta_error(400, 131026, "Message undeliverable", "Message Undeliverable.")
    if to in double.pair_limited:
        double.pair_limited.discard(to)
        raise meta_error(400, 131056, "(Business Account, Consumer Account) pair rate limit hit", "Too many messages to this recipient")
    if document["type"] == "template":
        text = " ".join(meta_template(double, document["template"], refused))
    else:
        need(document["type"] == "text" and 1 <= len(document["text"]["body"]) <= 4096, refused, "Param text['body']")
        text = document["text"]["body"]
        if to not in double.windows:
            raise meta_error(400, 131047, "Re-engagement message", "Message failed to send because more than 24 hours have passed since the customer last replied")
    mail = Mail("meta", "wamid." + base64.b64encode(secrets.token_bytes(18)).decode(), number, [to], text=text,
                headers=document, tags={"nid": document.get("biz_opaque_callback_data", "")[:30]})
    return mail, 200, json.dumps({"messaging_product": "whatsapp", "contacts": [{"input": document["to"], "wa_id": document["to"]}],
                                  "messages": [{"id": mail.id, "message_status": "accepted"}]}), {}


def meta_webhook(signer, number, **lists):
    """Headers and body of a webhook with these `statuses` or `messages`, with non-ASCII escaped as Meta escapes it."""
    value = {"messaging_product": "whatsapp", "metadata": {"display_phone_number": "15550783881", "phone_number_id": number}, **lists}
    body = json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "102290129340398", "changes": [{"value": value, "field": "messages"}]}]}).encode()
    signature = hmac.new(signer.key.encode(), body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={signature}"}, body


def meta_status(mail, status, code=0, details="", **fields):
    pricing = {"billable": True, "pricing_model": "PMP", "category": "utility", "type": "regular"}
    errors = [{"code": code, "title": "title", "error_data": {"details": details}}] if code else []
    return {"id": mail.id, "status": status, "timestamp": str(int(time.time())), "recipient_id": mail.to[0][1:],
            "biz_opaque_callback_data": mail.headers.get("biz_opaque_callback_data", ""), **({"errors": errors} if errors else {"pricing": pricing}), **fields}


def meta_reported(signer, mail, kind, fields):
    status, code = {"delivered": ("delivered", 0), "sent": ("sent", 0), "opened": ("read", 0), "soft_bounced": ("failed", 131026),
                    "blocked": ("failed", 131049), "closed": ("failed", 131047)}[kind]
    return meta_webhook(signer, mail.sender, statuses=[meta_status(mail, status, code, "why", **fields)])


def meta_message(signer, number, sender, text, **fields):
    """What Meta posts when a recipient writes to `number`."""
    message = {"from": sender[1:], "id": "wamid." + secrets.token_hex(12), "timestamp": str(int(time.time())), "type": "text", "text": {"body": text}, **fields}
    return meta_webhook(signer, number, contacts=[{"profile": {"name": "Alice"}, "wa_id": sender[1:]}], messages=[message])


REFUSALS = {
    "telnyx": {"UNAUTHORIZED": (401, {"errors": [{"code": "10009", "title": "Authentication failed"}]}), "THROTTLE": (429, {"errors": [{"code": "10011", "title": "Too many requests"}]}),
               "ERROR": (500, {"errors": [{"code": "10007", "title": "Unexpected error"}]}), "UNAVAILABLE": (503, {"errors": []})},
    "meta": {"UNAUTHORIZED": (401, {"error": {"message": "Invalid OAuth access token", "code": 190}}), "THROTTLE": (400, {"error": {"message": "Rate limit hit", "code": 130429}}),
             "ERROR": (500, {"error": {"message": "Something went wrong", "code": 131000}}), "UNAVAILABLE": (503, {"error": {"message": "Service unavailable", "code": 131016}})},
    "vonage": {"UNAUTHORIZED": (200, {"messages": [{"status": "4", "error-text": "Bad Credentials"}]}), "THROTTLE": (200, {"messages": [{"status": "1", "error-text": "Throttled"}]}),
               "ERROR": (500, {}), "UNAVAILABLE": (503, {})},
    "twilio": {"UNAUTHORIZED": (401, {"code": 20003, "message": "Authenticate", "status": 401}), "THROTTLE": (429, {"code": 20429, "message": "Too Many Requests", "status": 429}),
               "ERROR": (500, {"code": 20500, "message": "Internal Server Error", "status": 500}), "UNAVAILABLE": (503, {"code": 20503, "message": "Service Unavailable", "status": 503})},
}
REFUSALS["twilio_whatsapp"] = REFUSALS["twilio"]
VENDORS = {"twilio": twilio, "vonage": vonage, "telnyx": telnyx, "meta": meta, "twilio_whatsapp": twilio}
REPORTS = {"twilio": twilio_reported, "vonage": vonage_reported, "telnyx": telnyx_reported, "meta": meta_reported, "twilio_whatsapp": twilio_reported}
