# SPDX-License-Identifier: Apache-2.0
"""An SMS gateway that nothing of the product knows: its requests, answers and callbacks are those of a made-up "Acme Messaging"."""
import hashlib
import hmac
import json
import re
import secrets

from tests.harness.vendor_doubles.phone import NUMBER
from tests.harness.vendor_doubles.wire import Mail, Refused, json_of, known, need

ACCOUNT = "shop/7"
DEFINITION = {
    "request": {
        "url": "https://api.acme-messaging.example/v2/{{settings.account}}/messages?priority={{#if urgent}}high{{else}}normal{{/if}}",
        "headers": {"Authorization": "Bearer {{secret}}", "X-Request-Key": "{{key}}"},
        "json": {"recipient": "{{to}}", "sender": "{{from}}", "body": "{{text}}", "ref": "{{notification_id}}", "try": {"$value": "attempt"},
                 "options": {"report": "{{callback_url}}", "subject": "{{subject}}"}}},
    "answer": {"id": "/messages/0/id", "code": "/error/code", "text": "/error/message", "statuses": {"409": "retry"},
               "codes": {"21": "bad_address", "9": "throttled", "3": "config"}, "otherwise": "terminal"},
    "key_known_s": 3600,
    "callback": {"signature": {"header": "X-Acme-Signature", "algorithm": "hmac-sha256", "encoding": "hex", "prefix": "v1="},
                 "list": "/events", "id": "/id", "notification": "/ref", "attempt": "/try", "status": "/state", "time": "/at", "text": "/why", "address": "/recipient",
                 "statuses": {"DELIVERED": "delivered", "UNDELIVERABLE": "hard_bounce", "EXPIRED": "soft_bounce"}}}


def error(status, code, text):
    return Refused(status, json.dumps({"error": {"code": code, "message": text}}))


def acme(double, request):
    def refused(text):
        return error(422, 40, text)
    need(request.method == "POST" and re.match(r"^/v2/shop%2F7/messages\?priority=(high|normal)$", request.path), lambda text: error(404, 1, text), request.path)
    if request.headers.get("authorization") != f"Bearer {double.secret}":
        raise error(401, 3, "token")
    message = json_of(request, refused)
    known(message, ("recipient", "sender", "body", "ref", "try", "options"), refused)
    known(message["options"], ("report",), refused)
    need(NUMBER.match(message["recipient"]), lambda text: error(422, 21, text), "no such number")
    if message["recipient"] in double.rejected:
        raise error(422, 21, "no such number")
    need(message["sender"] == "SHOP" and message["body"] and message["try"] >= 1, refused, "a field")
    mail = Mail("sms-acme", "am_" + secrets.token_hex(8), message["sender"], [message["recipient"]], text=message["body"], headers=message,
                tags={"nid": message["ref"]}, key=request.headers["x-request-key"], report_to=message["options"]["report"])
    return mail, 201, json.dumps({"messages": [{"id": mail.id, "state": "QUEUED"}]}), {}


def reported(signer, mail, kind, fields):
    state = {"delivered": "DELIVERED", "bounced": "UNDELIVERABLE", "soft_bounced": "EXPIRED", "deferred": "ENROUTE"}[kind]
    body = json.dumps({"events": [{"id": mail.id, "ref": mail.notification, "try": mail.headers["try"], "state": state, "at": fields.get("at"),
                                   "why": "no such subscriber", "recipient": mail.to[0]}]}).encode()
    return {"Content-Type": "application/json", "X-Acme-Signature": "v1=" + hmac.new(signer.key.encode(), body, hashlib.sha256).hexdigest()}, body


def refusal(double, name):
    status, code = {"UNAUTHORIZED": (401, 3), "THROTTLE": (429, 9), "ERROR": (500, 99), "UNAVAILABLE": (503, 99)}[name]
    return status, json.dumps({"error": {"code": code, "message": name}}), {"Retry-After": double.retry_after} if code == 9 else {}


VENDORS = {"sms-acme": acme}
REPORTS = {"sms-acme": reported}
