# SPDX-License-Identifier: Apache-2.0
"""Unsubscribe links through the real pipeline: the mail has them, one click is honoured, what must reach the recipient does."""
import http.client
import json
import re
import time
import urllib.parse

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.faults.test_crash_points import start_armed, wait_death

PUBLIC = "https://notify.test"
STREET = "Acme & Co\n1 High Street"
RECIPIENT = "rcp_01M2V3W4X5Y6Z7A8B9CADBECFE"


@pytest.fixture(scope="module")
def mailed():
    running = Pipeline({"STENTOR_RENDERER_PUBLIC_URL": PUBLIC + "/", "STENTOR_RETRY_LADDER": "1,1,1"}, durable=True).start()
    put_template(running, "promo", "marketing", "<html><body>Buy, {{name}}</body></html>", "Buy, {{name}}: {{unsubscribe_url}}")
    put_template(running, "gossip", "social", "<p>Hear, {{name}}</p>", "Hear, {{name}}")
    client = NatsClient(running.nats.port)
    tenant = messages(running).Tenant(tenant=TENANT, name="Acme", sender_address="hello@acme.test", physical_address=STREET)
    client.publish(f"cfg.tenant.{TENANT}.self", tenant.SerializeToString())
    client.close()
    wait_until(lambda: "High Street" in str(mail_of(running, send(running, "probe@example.com", "promo"))), 30, "the tenant's address")
    yield running
    running.stop()


def put_template(pipeline, key, category, html, text):
    html_file, text_file = pipeline.folder / f"{key}.html", pipeline.folder / f"{key}.txt"
    html_file.write_text(html)
    text_file.write_text(text)
    pipeline.cli("template", "put", key, "--subject", key, "--html", html_file, "--text", text_file, "--category", category)
    wait_until(lambda: pipeline.post({"to": f"first-{key}@example.com", "template": key})[0] == 202, 20, f"template {key}")


def send(pipeline, to, template, **fields):
    return pipeline.send(to=to, template=template, consent=CONSENT, **fields)


def mail_of(pipeline, notification):
    pipeline.status(notification, wait="sent")
    return pipeline.mailbox.for_notification(notification)[0]


def link_of(mail):
    return re.fullmatch(r"<(https://[^>]+)>", mail["List-Unsubscribe"].strip()).group(1)


def visit(pipeline, link, method="POST", body=b"List-Unsubscribe=One-Click", headers=None):
    """(status, headers, text); the public URL leads to this machine's webhook-receiver."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.webhook_port, timeout=20)
    try:
        connection.request(method, urllib.parse.urlsplit(link).path, body if method == "POST" else None,
                           {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def wait_suppressed(pipeline, to, template, **fields):
    """Sends until it is reported as suppressed (a replica may know it a moment later); the last row."""
    def attempt():
        row = pipeline.status(send(pipeline, to, template, **fields), wait="sent")
        return row if row["status"] == "suppressed" else None
    return wait_until(attempt, 10, f"{to} being suppressed")


def test_marketing_mail_carries_the_headers_and_the_address(mailed):
    mail = mail_of(mailed, send(mailed, "headers@example.com", "promo"))
    link = link_of(mail)
    assert link.startswith(PUBLIC + "/v1/opt-out/oot_") and len(link) < 260
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = mail.get_body(("plain",)).get_content()
    html = mail.get_body(("html",)).get_content()
    assert link in text and text.count("1 High Street") == 1
    assert html.count("1 High Street") == 1
    assert "Acme &amp; Co<br>1 High Street</p></body>" in html
    assert html.count("High Street") == 1 and text.count("High Street") == 1
    assert "headers@" not in link


def test_transactional_mail_carries_none(mailed):
    mail = mail_of(mailed, send(mailed, "receipt@example.com", "welcome"))
    assert mail["List-Unsubscribe"] is None and mail["List-Unsubscribe-Post"] is None
    assert "High Street" not in str(mail)


def test_an_order_mail_shows_the_address_where_the_tenant_says_so(mailed):
    """A, "Physical address included in email footer" (finding 15, row 10h): also in transactional mail, which has no unsubscribe link."""
    def mail():
        return mail_of(mailed, send(mailed, "order@example.com", "welcome"))
    assert "High Street" not in str(mail())
    mailed.cli("tenant", "put", TENANT, "--address-footer", "every")
    assert json.loads(mailed.cli("tenant", "show", TENANT, "--json"))["address_footer"] == "every"
    shown = wait_until(lambda: next((m for m in [mail()] if "High Street" in str(m)), None), 20, "the address in transactional mail")
    assert shown["List-Unsubscribe"] is None
    assert shown.get_body(("plain",)).get_content().count("1 High Street") == 1
    mailed.cli("tenant", "put", TENANT, "--address-footer", "opt_out")
    assert "address_footer" not in json.loads(mailed.cli("tenant", "show", TENANT, "--json"))
    wait_until(lambda: "High Street" not in str(mail()), 20, "no address again")


def test_one_click_ends_that_category_and_nothing_else(mailed):
    to = "clicker@example.com"
    link = link_of(mail_of(mailed, send(mailed, to, "promo")))
    status, _, text = visit(mailed, link)
    assert (status, json.loads(text)) == (200, {})
    row = wait_suppressed(mailed, to, "promo")
    assert row["reason_code"] == "opt_out"
    assert mail_of(mailed, send(mailed, to, "gossip"))["Subject"] == "gossip"
    assert mail_of(mailed, send(mailed, to, "welcome")) is not None
    assert mail_of(mailed, send(mailed, "other@example.com", "promo")) is not None


def test_a_look_changes_nothing_and_asks(mailed):
    to = "scanner@example.com"
    link = link_of(mail_of(mailed, send(mailed, to, "promo")))
    status, headers, page = visit(mailed, link, "GET")
    assert status == 200 and headers["Content-Type"].startswith("text/html") and '<form method="post">' in page
    assert headers["Referrer-Policy"] == "no-referrer" and "default-src 'none'" in headers["Content-Security-Policy"]
    time.sleep(1)
    assert mail_of(mailed, send(mailed, to, "promo")) is not None
    status, _, page = visit(mailed, link, headers={"Accept": "text/html,*/*"})
    assert status == 200 and "unsubscribed" in page
    wait_suppressed(mailed, to, "promo")


def test_a_known_recipients_opt_out_is_a_preference_and_twice_is_once(mailed):
    client = NatsClient(mailed.nats.port)
    counts = lambda: [client.stream_info(s)["state"]["last_seq"] for s in ("PEOPLE", "CONFIG")]  # noqa: E731
    try:
        link = link_of(mail_of(mailed, send(mailed, "known@example.com", "promo", recipient_id=RECIPIENT)))
        before = counts()
        assert visit(mailed, link)[0] == 200
        assert counts() == [before[0] + 1, before[1] + 1]
        wait_suppressed(mailed, "known@example.com", "promo")
        assert visit(mailed, link)[0] == 200
        assert counts() == [before[0] + 1, before[1] + 1]
    finally:
        client.close()


@pytest.mark.parametrize("spoil", [lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"), lambda t: t[:40], lambda t: "oot_", lambda t: "x"])
def test_a_link_that_is_not_ours_leads_nowhere(mailed, spoil):
    base, token = link_of(mail_of(mailed, send(mailed, "spoil@example.com", "promo"))).rsplit("/", 1)
    for method in ("POST", "GET"):
        assert visit(mailed, f"{base}/{spoil(token)}", method)[0] == 404
    assert mail_of(mailed, send(mailed, "spoil@example.com", "promo")) is not None


def test_a_post_that_is_no_one_click_is_refused(mailed):
    link = link_of(mail_of(mailed, send(mailed, "post@example.com", "promo")))
    assert visit(mailed, link, body=b"")[0] == 400
    assert visit(mailed, link, "PUT")[0] == 405
    assert mail_of(mailed, send(mailed, "post@example.com", "promo")) is not None


def test_what_was_scheduled_before_honours_it(mailed):
    to = "later@example.com"
    link = link_of(mail_of(mailed, send(mailed, to, "promo")))
    due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
    waiting = send(mailed, to, "promo", scheduled_for=due)
    assert visit(mailed, link)[0] == 200
    row = mailed.status(waiting, wait="suppressed")
    assert row["status"] == "suppressed" and not mailed.mailbox.for_notification(waiting)


def test_what_waits_for_its_retry_honours_it_too(mailed):
    to = "retrying@example.com"
    link = link_of(mail_of(mailed, send(mailed, to, "promo")))
    mailed.mailbox.answer("451 4.3.0 later", times=3)
    try:
        waiting = send(mailed, to, "promo")
        wait_until(lambda: mailed.status(waiting)["attempts"], 10, "the first try")
        assert visit(mailed, link)[0] == 200
        row = mailed.status(waiting, wait="suppressed")
    finally:
        mailed.mailbox.answers.clear()
    assert row["status"] == "suppressed" and not mailed.mailbox.for_notification(waiting)


def test_it_is_honoured_while_postgres_is_away_and_at_once(mailed):
    to = "away@example.com"
    link = link_of(mail_of(mailed, send(mailed, to, "promo")))
    mailed.postgres.stop()
    try:
        started = time.monotonic()
        assert visit(mailed, link)[0] == 200
        assert time.monotonic() - started < 5
    finally:
        mailed.postgres.start()
    wait_until(lambda: mailed.post({"to": to, "template": "promo"})[0] == 202, 30, "Postgres back")
    wait_suppressed(mailed, to, "promo")


def test_a_kill_between_preference_and_suppression_is_mended_by_the_next_click(mailed):
    link = link_of(mail_of(mailed, send(mailed, "killed@example.com", "promo", recipient_id=RECIPIENT)))
    receiver = mailed.services["webhook-receiver"]
    assert receiver.stop() == 0
    start_armed(receiver, "bus.stored")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        visit(mailed, link)
    wait_death(receiver, "bus.stored")
    receiver.start()
    assert visit(mailed, link)[0] == 200
    wait_suppressed(mailed, "killed@example.com", "promo", recipient_id=RECIPIENT)


def test_the_audit_finds_every_record_of_what_was_suppressed(mailed):
    """Whoever suppressed it: the renderer, or the dispatcher through its ledger."""
    def audited():
        report = json.loads(mailed.run_cli("audit", "--since", "1h", "--grace", "1", "--json").stdout)
        return report if report["in_flight"] == 0 else None
    report = wait_until(audited, 30, "everything at its end")
    assert report["suppressed"] >= 2 and (report["lost"], report["doubled"]) == (0, 0), report["findings"]


def test_doctor_warns_when_mails_that_may_be_opted_out_of_have_no_link(mailed):
    """Without a public address the renderer makes none (row 10g: "nothing at all unless STENTOR_RENDERER_PUBLIC_URL is set")."""
    def said():
        report = json.loads(mailed.cli("doctor", "--json"))
        return next(check for check in report["checks"] if check["check"] == "opt-out links")
    mail_of(mailed, send(mailed, "linked@example.com", "promo"))
    assert said()["result"] == "ok"
    renderer = mailed.services["renderer"]
    before = dict(renderer.options)
    for options, result in (({**before, "STENTOR_RENDERER_PUBLIC_URL": ""}, "warn"), (before, "ok")):
        renderer.stop()
        renderer.options.clear()
        renderer.options.update(options)
        renderer.start()
        mail = mail_of(mailed, send(mailed, f"{result}@example.com", "promo"))
        assert (mail["List-Unsubscribe"] is None) == (result == "warn")
        assert said()["result"] == result
        if result == "warn":
            assert "STENTOR_RENDERER_PUBLIC_URL=" in said()["text"]
            mail_of(mailed, send(mailed, "order@example.com", "promo", category="transactional"))
            assert said()["result"] == "warn", "a mail that cannot be opted out of says nothing of it"
