# SPDX-License-Identifier: Apache-2.0
"""Story 10, what a mail provider calls back: delivered, opened, bounced; who bounced gets no more until an operator releases the address."""
import json
import time

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.sendgrid import body_of, event, new_signer
from tests.harness.stories import new_address, story

WELCOME = {"template": "welcome", "variables": {"name": "Ada"}}


class Provider:
    """SendGrid: it posts what happened, under its signature, to the address that its console was given."""

    def __init__(self, user, sign):
        self.user, self.sign = user, sign

    def call(self, *events, signed=None):
        body = body_of(*events)
        headers = self.sign(signed or body)
        return self.user.api("POST", f"/v1/inbound/{TENANT}/sendgrid", body, {"Content-Type": "application/json", **headers})[0]


def delivered_and_opened(user, provider):
    first = user.send(to=new_address("reader"), **WELCOME)
    user.status(first, wait="sent")
    assert provider.call(event(first, "processed", 1), event(first, "delivered", 1), event(first, "open", 1)) == 200
    wait_until(lambda: user.status(first)["status"] == "opened", 20, "opened")
    assert {"delivered", "opened"} <= {step["status"] for step in user.status(first)["timeline"]}


def bounced(user, provider, address):
    """C57, C58, A97: the same callback twice is one, one with a wrong signature is none; the address is suppressed."""
    notification = user.send(to=address, **WELCOME)
    user.status(notification, wait="sent")
    bounce = event(notification, "bounce", 2, email=address, type="bounce", status="5.1.1", reason=f"550 5.1.1 unknown {address}")
    assert provider.call(bounce, signed=b"[]") == 401
    assert [provider.call(bounce), provider.call(bounce)] == [200, 200]
    row = user.status(notification, wait="bounced")
    assert row["status"] == "bounced" and address not in json.dumps(row)
    assert user.pipeline.services["webhook-receiver"].metric('stentor_webhook_receiver_events_total{status="bounced"}') >= 1  # A56: the bounce rate
    entry, = wait_until(lambda: user.run("suppress", "list", "--address", address), 20, "the suppression")
    assert (entry["reason"], entry["source_notification_id"]) == ("hard_bounce", notification)
    wait_until(lambda: user.api("POST", "/v1/notifications", {"to": address, **WELCOME})[1]["status"] == "suppressed", 20, "its being in force")
    stopped = user.send("suppressed", to=address, **WELCOME)
    assert user.status(stopped, wait="suppressed")["reason_code"] == "hard_bounce" and len(user.mails(address)) == 1
    return entry


def released(user, address):
    user.run("suppress", "release", "--address", address)
    wait_until(lambda: user.api("POST", "/v1/notifications", {"to": address, **WELCOME})[1]["status"] == "queued", 20, "the release")
    again = user.send(to=address, **WELCOME)
    assert user.status(again, wait="sent")["status"] == "sent"
    return again


def the_past_stays(user, provider, address, bounce, notification):
    """B42, C49, finding 12: who released the bounce is there after a complaint has come."""
    behind = int(time.time()) + 1  # the provider counts whole seconds, and the release is of this one
    assert provider.call(event(notification, "spamreport", 3, email=address, timestamp=behind)) == 200
    wait_until(lambda: len(user.run("suppress", "list", "--address", address, "--all")) == 2, 20, "the complaint")
    first, second = user.run("suppress", "list", "--address", address, "--all")
    assert (first["id"], first["reason"], second["reason"]) == (bounce["id"], "hard_bounce", "complaint")
    assert f"stn_{first['released_by']}." in user.pipeline.operator_key and first["released_at"] and second["released_at"] is None
    noted, = [entry for entry in user.run("audit-log", "list", "--kind", "suppression") if entry["target"] == bounce["id"]]
    assert (noted["action"], noted["actor"]) == ("suppression.released", first["released_by"])


def test_bounces(tmp_path):
    with story("webhook-receiver") as user:
        provider, address = Provider(user, new_signer(user.pipeline, tmp_path)), new_address("gone")
        delivered_and_opened(user, provider)
        bounce = bounced(user, provider, address)
        again = released(user, address)
        the_past_stays(user, provider, address, bounce, again)
        assert provider.call(event("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD", "delivered", 4)) == 200, "of no notification of ours: taken, and nothing follows"
