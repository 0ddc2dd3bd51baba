# SPDX-License-Identifier: Apache-2.0
"""channels.md 5.1, "guard rails": too many hard bounces or complaints pause a tenant's marketing, until an operator resumes it."""
import base64
import json
import os
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

OTHER = "beta"


@pytest.fixture(scope="module")
def shop():
    running = Pipeline({"STENTOR_GUARD_EVERY_S": "1", "STENTOR_RENDERER_PUBLIC_URL": "https://notify.test"}).start()
    html = running.folder / "promo.html"
    html.write_text("<p>Buy</p>")
    running.cli("template", "put", "promo", "--subject", "promo", "--html", html, "--category", "marketing")
    running.cli("tenant", "put", OTHER, "--name", "Beta", "--sender", "hello@beta.test")
    wait_until(lambda: send(running, "first@example.com")[0] == 202, 20, "the template")
    yield running
    running.stop()


def send(pipeline, to, template="promo"):
    status, _, body = pipeline.post({"to": to, "template": template, "consent": CONSENT, "variables": {"name": "Alice"}})
    return status, body


def outcome(pipeline, to, template="promo"):
    status, body = send(pipeline, to, template)
    assert status == 202, body
    row = pipeline.status(body["id"], wait="sent")
    return row["status"], row.get("reason_code")


def ulid():
    letters, number = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(letters[number >> 5 * i & 31] for i in reversed(range(26)))


def happen(pipeline, tenant, **counts):
    """STATUS events as the dispatcher and a vendor's callbacks publish them: each of a notification of its own."""
    proto = messages(pipeline)
    client = NatsClient(pipeline.nats.port)
    for status, count in counts.items():
        for _ in range(count):
            id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
            event = proto.NotificationStatus(
                meta=proto.Meta(event_id=id, tenant=tenant, notification_id="ntf_" + ulid(), occurred_at_us=int(time.time() * 1e6)),
                channel=proto.CHANNEL_EMAIL, category=proto.CATEGORY_MARKETING, status=getattr(proto, f"STATUS_{status.upper()}"))
            client.publish(f"ntf.status.{tenant}.email.{status}", event.SerializeToString(), event_id=id)
    client.close()


def pauses(pipeline, *words, tenant=TENANT):
    return json.loads(pipeline.cli("guard", "list", *words, "--tenant", tenant, "--json"))


def test_too_many_hard_bounces_pause_marketing_and_nothing_else(shop):
    assert outcome(shop, "before@example.com") == ("sent", None) and pauses(shop) == []
    happen(shop, TENANT, sent=100, bounced=3)
    wait_until(lambda: shop.services["archiver"].metric('stentor_archiver_guard_tenants{level="warn"}') == 1, 30, "the warning")
    assert "many of a tenant's e-mails bounce" in shop.services["archiver"].tail(200)
    assert pauses(shop) == []
    happen(shop, TENANT, bounced=5)
    pause, = wait_until(lambda: pauses(shop), 30, "the pause")
    assert pause["reason"] == "rate_limit" and pause["created_by"] == "guard" and "hard bounces of" in pause["note"]
    wait_until(lambda: outcome(shop, "paused@example.com") == ("suppressed", "rate_limit"), 30, "marketing being paused")
    assert outcome(shop, "order@example.com", "welcome") == ("sent", None)
    assert "paused" in shop.cli("guard", "list")


def test_another_tenant_goes_on(shop):
    happen(shop, OTHER, sent=100, bounced=1)
    assert pauses(shop, tenant=OTHER) == []


def test_the_pause_survives_a_restart_and_what_was_before_it_is_counted_again(shop):
    archiver = shop.services["archiver"]
    assert archiver.stop() == 0
    archiver.start()
    happen(shop, OTHER, sent=60, complained=1)
    wait_until(lambda: pauses(shop, tenant=OTHER), 30, "complaints of another tenant, counted with what history has")
    assert "complaints of 160 e-mails" in pauses(shop, tenant=OTHER)[0]["note"]
    assert len(pauses(shop)) == 1


def test_an_operator_resumes_and_what_was_before_counts_no_more(shop):
    shop.cli("guard", "resume")
    wait_until(lambda: outcome(shop, "resumed@example.com") == ("sent", None), 30, "marketing going on")
    paused = shop.services["archiver"].metric("stentor_archiver_guard_pauses_total")
    happen(shop, TENANT, bounced=1)  # above the limit by what was before, and looked at
    wait_until(lambda: shop.services["archiver"].metric('stentor_archiver_guard_tenants{level="pause"}') == 2, 30, "a look at both")
    assert pauses(shop) == [] and shop.services["archiver"].metric("stentor_archiver_guard_pauses_total") == paused
    ended, = pauses(shop, "--all")
    assert ended["released_at"] and ended["created_by"] == "guard"
    noted = json.loads(shop.cli("audit-log", "list", "--kind", "suppression", "--json"))
    assert any(entry["target"] == ended["id"] for entry in noted)
    assert shop.run_cli("guard", "resume").returncode == 3
