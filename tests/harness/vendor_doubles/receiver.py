# SPDX-License-Identifier: Apache-2.0
"""A tenant's own endpoint for many posts: the signature is checked as Standard Webhooks describes it, and a repeat of an id has to have the body of
the first. What npm's `standardwebhooks` says of a signature is tests/harness/webhooks' to check. A post is a Mail whose tag `nid` is its webhook-id."""
import base64
import hashlib
import hmac
import json
import time

from tests.harness.vendor_doubles.wire import Mail, Refused, need

CLOCK_MAX_S = 300


def refused(text, status=400):
    return Refused(status, json.dumps({"message": text}))


def signed(secret, identity, stamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, f"{identity}.{stamp}.".encode() + body, "sha256")).decode()


def endpoint(double, request):
    """`by_key` of the double: the hash of the first body of each id."""
    identity, stamp = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    good = [one for one in request.headers["webhook-signature"].split(" ") if hmac.compare_digest(one, signed(double.secret, identity, stamp, request.body))]
    need(good, lambda text: refused(text, 401), "no signature fits")
    need(abs(time.time() - int(stamp)) <= CLOCK_MAX_S, lambda text: refused(text, 401), "an old timestamp")
    event = json.loads(request.body)
    need(event["type"] == f"notification.{event['data']['status']}", refused, "type is not the status")
    digest = hashlib.sha256(request.body).hexdigest()
    need(double.by_key.setdefault(identity, digest) == digest, refused, f"{identity} came before with another body")
    return Mail("endpoint", identity, to=[request.path], tags={"nid": identity}), 200, "ok", {}


REFUSALS = {"endpoint": {"UNAUTHORIZED": (401, {}), "THROTTLE": (429, {}), "ERROR": (500, {}), "UNAVAILABLE": (503, {})}}
VENDORS = {"endpoint": endpoint}
