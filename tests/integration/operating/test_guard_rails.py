# SPDX-License-Identifier: Apache-2.0
"""channels.md 5.1, "guard rails": too many hard bounces or complaints of (tenant, From domain, provider) pause their marketing, until an operator
resumes it."""
import base64
import json
import os
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

OTHER, THIRD, DOMAIN = "beta", "gamma", "acme.test"


@pytest.fixture(scope="module")
def shop():
    running = Pipeline({"STENTOR_GUARD_EVERY_S": "1", "STENTOR_RENDERER_PUBLIC_URL": "https://notify.test"}).start()
    html = running.folder / "promo.html"
    html.write_text("<p>Buy</p>")
    running.cli("template", "put", "promo", "--subject", "promo", "--html", html, "--category", "marketing")
    for tenant in (OTHER, THIRD):
        running.cli("tenant", "put", tenant, "--name", tenant, "--sender", f"hello@{tenant}.test")
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


def happen(pipeline, tenant, sent=0, bounced=0, complained=0, of=None, provider="gmail.com", domain=None):
    """STATUS events as the dispatcher publishes them, and as a vendor's callbacks do, which know neither From nor address: of mails that were sent
    here, or of those before (`of`). Returns the mails."""
    proto = messages(pipeline)
    client = NatsClient(pipeline.nats.port)

    def publish(status, notification, **fields):
        id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        event = proto.NotificationStatus(
            meta=proto.Meta(event_id=id, tenant=tenant, notification_id=notification, occurred_at_us=int(time.time() * 1e6)),
            channel=proto.CHANNEL_EMAIL, category=proto.CATEGORY_MARKETING, status=getattr(proto, f"STATUS_{status.upper()}"), **fields)
        client.publish(f"ntf.status.{tenant}.email.{status}", event.SerializeToString(), event_id=id)
    mails = list(of or [])
    for _ in range(sent):
        mails.append("ntf_" + ulid())
        publish("sent", mails[-1], from_domain=domain or f"{tenant}.test", provider=provider)
    for status, count in (("bounced", bounced), ("complained", complained)):
        for _ in range(count):
            publish(status, mails.pop())
    client.close()
    return mails


def pauses(pipeline, *words, tenant=TENANT):
    return json.loads(pipeline.cli("guard", "list", *words, "--tenant", tenant, "--json"))


def level(pipeline, name):
    return pipeline.services["archiver"].metric(f'stentor_archiver_guard_scopes{{level="{name}"}}')


def paused(pipeline, to):
    return outcome(pipeline, to) == ("suppressed", "rate_limit")


def test_a_mail_says_from_where_and_to_whose_mailbox_it_went(shop):
    status, body = send(shop, "Ada@Googlemail.com")
    assert status == 202
    shop.status(body["id"], wait="sent")
    query = f"SELECT from_domain || ' ' || provider FROM archiver.notifications WHERE id = '{body['id']}'"
    wait_until(lambda: shop.postgres.query(query) == [(f"{DOMAIN} gmail.com",)], 20, "the mail's origin in history")


def test_too_many_hard_bounces_at_one_provider_pause_marketing_to_it_and_nothing_else(shop):
    assert outcome(shop, "before@gmail.com") == ("sent", None) and pauses(shop) == []
    mails = happen(shop, TENANT, sent=100, bounced=3, domain=DOMAIN)
    happen(shop, TENANT, sent=100, provider="outlook.com", domain=DOMAIN)
    wait_until(lambda: level(shop, "warn") == 1, 30, "the warning")
    assert "many of a tenant's e-mails bounce" in shop.services["archiver"].tail(200) and pauses(shop) == []
    happen(shop, TENANT, bounced=5, of=mails)
    pause, = wait_until(lambda: pauses(shop), 30, "the pause")
    assert pause["reason"] == "rate_limit" and pause["created_by"] == "guard"
    assert "hard bounces of" in pause["note"] and f"from {DOMAIN} to gmail.com in" in pause["note"]
    wait_until(lambda: paused(shop, "paused@googlemail.com"), 30, "marketing to gmail.com being paused")
    assert outcome(shop, "goes@outlook.com") == ("sent", None), "another provider"
    assert outcome(shop, "order@gmail.com", "welcome") == ("sent", None), "another category"
    assert "paused" in shop.cli("guard", "list") and pauses(shop, "--domain", DOMAIN, "--provider", "gmail.com") == [pause]
    assert pauses(shop, "--domain", DOMAIN, "--provider", "outlook.com") == [] == pauses(shop, "--domain", "else.test")


def test_a_recipient_whose_address_is_stored_is_not_written_to_either(shop):
    """Ingest does not open it: the dispatcher, which does, has the pause in memory."""
    person = json.loads(shop.cli("recipient", "put", "--email", "guarded@gmail.com", "--json"))["id"]
    shop.cli("recipient", "consent", person, "--grant", "marketing/email", "--source", "test")
    status, _, body = shop.post({"recipient_id": person, "template": "promo", "variables": {"name": "Ada"}})
    assert status == 202, body
    row = shop.status(body["id"], wait="sent")
    assert (row["status"], row.get("reason_code")) == ("suppressed", "rate_limit"), row


def test_providers_that_are_not_over_by_themselves_are_judged_together(shop):
    """30 mails each are too few to judge; together they are 60, of which four bounced."""
    for provider in ("icloud.com", "other"):
        happen(shop, OTHER, sent=30, bounced=2, provider=provider)
    pause, = wait_until(lambda: pauses(shop, tenant=OTHER), 30, "the pause of the whole domain")
    assert "4 hard bounces of 60 e-mails from beta.test to all in" in pause["note"]
    shop.cli("guard", "resume", "--tenant", OTHER, "--domain", "beta.test")
    assert pauses(shop, tenant=OTHER) == []


def test_the_pause_survives_a_restart_and_what_was_before_it_is_counted_again(shop):
    mails = happen(shop, THIRD, sent=100, bounced=1)
    archiver = shop.services["archiver"]
    assert archiver.stop() == 0
    archiver.start()
    happen(shop, THIRD, sent=60, complained=1, of=mails)
    wait_until(lambda: pauses(shop, tenant=THIRD), 30, "complaints of another tenant, counted with what history has")
    assert "complaints of 160 e-mails" in pauses(shop, tenant=THIRD)[0]["note"]
    assert len(pauses(shop)) == 1


def test_an_operator_resumes_and_what_was_before_counts_no_more(shop):
    before = shop.services["archiver"].metric("stentor_archiver_guard_pauses_total")
    assert shop.run_cli("guard", "resume", "--domain", DOMAIN, "--provider", "yahoo.com").returncode == 3
    assert shop.run_cli("guard", "resume", "--provider", "gmail.com").returncode == 2
    shop.cli("guard", "resume", "--domain", DOMAIN, "--provider", "gmail.com")
    wait_until(lambda: outcome(shop, "resumed@gmail.com") == ("sent", None), 30, "marketing going on")
    looks = level(shop, "pause")
    mails = happen(shop, TENANT, sent=1, bounced=1, domain=DOMAIN)  # above the limit by what was before, and looked at
    wait_until(lambda: shop.postgres.query("SELECT count(*) FROM archiver.notifications WHERE status = 'bounced' AND tenant_id = 'acme'") == [(9,)], 30,
               "the bounce in history")
    assert mails == [] and looks >= 1 and pauses(shop) == [] and shop.services["archiver"].metric("stentor_archiver_guard_pauses_total") == before
    ended, = pauses(shop, "--all")
    assert ended["released_at"] and ended["created_by"] == "guard"
    noted = json.loads(shop.cli("audit-log", "list", "--kind", "suppression", "--json"))
    assert any(entry["target"] == ended["id"] for entry in noted)
    assert shop.run_cli("guard", "resume").returncode == 3
