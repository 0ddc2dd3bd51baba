#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends one notification and waits until it is sent or has ended; Python's own library, nothing to install.
    STENTOR_API_URL=http://127.0.0.1:8080 STENTOR_API_KEY=stn_... ./send.py ORDER ADDRESS NAME
Prints "ID STATUS"; exit code 0 when it was sent, 1 when it ended otherwise or was refused, 2 when the API could not be reached."""
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

API = os.environ.get("STENTOR_API_URL", "http://127.0.0.1:8080")
KEY = os.environ["STENTOR_API_KEY"]
TRIES = 8
WAIT_S = 60
SENT = {"sent", "delivered", "opened", "clicked"}
ENDS = {"suppressed", "superseded", "failed", "bounced", "complained"}
AGAIN = {408, 429, 500, 502, 503, 504}


def once(method, path, body=None, **headers):
    """(status, headers, answer)"""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, data, {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **headers},
                                     method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers, json.loads(refusal.read() or b"{}")


def call(method, path, body=None, **headers):
    """Repeats what may succeed later: no answer, 408, 429 and 5xx. A repeated POST needs the header Idempotency-Key: the first may have been
    accepted although its answer was lost."""
    for number in range(TRIES):
        wait = min(30, 0.2 * 2 ** number) * random.uniform(0.5, 1)  # so that clients do not come all at once
        try:
            status, answered, answer = once(method, path, body, **headers)
            if status not in AGAIN:
                return status, answered, answer
            why = f"{status} {answer.get('detail', '')}"
            wait = max(wait, float(answered.get("Retry-After") or 0))
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: no JSON, or Retry-After as a date
            why = str(error)
        print(f"{method} {path}: {why}; again in {wait:.1f} s", file=sys.stderr)
        time.sleep(wait)
    sys.exit(2)


def main(order, address, name):
    notification = {"to": address, "template": "welcome", "variables": {"name": name}, "correlation_id": order}
    # The key names what must happen once, and is the same after a restart of this program: the order, not the time or a random number.
    status, headers, answer = call("POST", "/v1/notifications", notification, **{"Idempotency-Key": f"welcome/{order}"})
    if status != 202:
        print(answer.get("field", ""), answer.get("detail", answer), file=sys.stderr)
        return 1
    until = time.monotonic() + WAIT_S
    while answer["status"] not in SENT | ENDS and time.monotonic() < until:
        time.sleep(0.2)
        status, _, answer = call("GET", headers["Location"])
        if status != 200:
            print(answer.get("detail", answer), file=sys.stderr)
            return 1
    print(answer["id"], answer["status"], answer.get("reason_code", ""))
    return 0 if answer["status"] in SENT else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
