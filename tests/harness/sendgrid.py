# SPDX-License-Identifier: Apache-2.0
"""SendGrid as Stentor sees it: signed callbacks under a key pair of our own."""
import base64
import json
import subprocess
import time

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until


def post(pipeline, body, headers, tenant=TENANT):
    return pipeline.post(body, path=f"/v1/inbound/{tenant}/sendgrid", headers=headers, port=pipeline.webhook_port)


def event(notification, kind, number, **fields):
    return {"email": f"reader{number}@example.com", "event": kind, "sg_event_id": f"{kind}-{number}", "timestamp": int(time.time()),
            "smtp-id": f"<{notification}@acme.test>", "sg_message_id": f"{number}.filter", **fields}


def body_of(*events):
    """As SendGrid writes it: CR LF between the objects and at the end."""
    return b"[" + b",\r\n".join(json.dumps(e).encode() for e in events) + b"]\r\n"


def new_signer(pipeline, folder):
    """sign(body) -> headers. The public half is configured for the tenant as the vendor's console would show it."""
    key = folder / "key.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True)
    public = subprocess.run(["openssl", "ec", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
    pipeline.cli("inbound", "put", "sendgrid", "--public-key", base64.b64encode(public).decode())

    def sign(body, at=None):
        timestamp = str(at or int(time.time()))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=timestamp.encode() + body, check=True,
                                   capture_output=True).stdout
        return {"X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
                "X-Twilio-Email-Event-Webhook-Timestamp": timestamp}

    wait_until(lambda: post(pipeline, b"[]", sign(b"[]"))[0] == 200, 10, "the key reaching the webhook-receiver")
    return sign
