# SPDX-License-Identifier: Apache-2.0
"""A browser's push service: the token of RFC 8292 is checked by `cryptography`, the body has to be framed as RFC 8188 says. What it decrypts to is
tests/harness/push's to check. A push is a Mail whose tag `nid` is its topic: a browser shows one of those with the same topic."""
import base64
import json
import secrets
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from tests.harness.vendor_doubles.wire import Mail, Refused, need

RECORD_MAX = 4096


def text_of(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def new_secret():
    """A VAPID key as the credential holds it."""
    return text_of(ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value.to_bytes(32, "big"))


def public_point(key):
    return key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def keys():
    """Of a new browser, for a subscription."""
    return {"p256dh": text_of(public_point(ec.generate_private_key(ec.SECP256R1()))), "auth": text_of(secrets.token_bytes(16))}


def refused(text, status=400):
    return Refused(status, json.dumps({"message": text}))


def check_token(double, request):
    key = ec.derive_private_key(int.from_bytes(bytes_of(double.secret), "big"), ec.SECP256R1())
    scheme, _, words = request.headers.get("authorization", "").partition(" ")
    fields = dict(word.strip().split("=", 1) for word in words.split(","))
    need(scheme.lower() == "vapid" and fields["k"] == text_of(public_point(key)), lambda text: refused(text, 403), "another key than the subscription's")
    signed, _, signature = fields["t"].rpartition(".")
    header, claims = (json.loads(bytes_of(part)) for part in signed.split("."))
    raw = bytes_of(signature)
    signature = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key.public_key().verify(signature, signed.encode(), ec.ECDSA(hashes.SHA256()))
    need(header["alg"] == "ES256" and claims["aud"] == f"https://{request.headers['host']}", lambda text: refused(text, 403), "aud")
    need(time.time() <= claims["exp"] <= time.time() + 24 * 3600 and claims["sub"].startswith("mailto:"), lambda text: refused(text, 403), "exp or sub")


def webpush(double, request):
    try:
        check_token(double, request)
    except Refused:
        raise
    except Exception as error:  # of many kinds
        raise refused(f"no valid token: {error!r}", 403) from error
    headers = request.headers
    need(request.method == "POST" and request.path.startswith("/push/"), lambda text: refused(text, 404), "no such subscription")
    if request.path in double.gone:
        raise refused("unsubscribed", 410)
    need(headers["content-encoding"] == "aes128gcm" and int(headers["ttl"]) >= 0, refused, "content-encoding or ttl")
    need(headers["urgency"] in ("very-low", "low", "normal", "high") and 1 <= len(headers["topic"]) <= 32, refused, "urgency or topic")
    need(len(request.body) > 86 and int.from_bytes(request.body[16:20], "big") <= RECORD_MAX and request.body[20] == 65, refused, "no record of RFC 8188")
    mail = Mail("webpush", secrets.token_hex(12), to=[request.path], headers=headers, tags={"nid": headers["topic"]})
    return mail, 201, "", {"Location": f"https://{headers['host']}/m/{mail.id}"}


REFUSALS = {"webpush": {"UNAUTHORIZED": (403, {}), "THROTTLE": (429, {}), "ERROR": (500, {}), "UNAVAILABLE": (503, {})}}
VENDORS = {"webpush": webpush}
