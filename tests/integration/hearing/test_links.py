# SPDX-License-Identifier: Apache-2.0
"""channels.md 5.1, "open/click": own links, off by default, stateless and sealed, no open redirect; machines raise no status."""
import http.client
import json
import re
import urllib.parse

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

PUBLIC = "https://notify.test"
LINKS = "https://links.acme.test"
SHOP = "https://shop.test/cart?mail=alice%40example.com&x=1"
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0"}
GMAIL = {"User-Agent": "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)"}
HTML = (f'<html><body><a href="{SHOP.replace("&", "&amp;")}">cart</a> <a href="https://shop.test/two">two</a>'
        '<a href="https://shop.test/three">three</a><a href="mailto:help@shop.test">help</a><a href="#top">top</a>'
        '<a href="{{unsubscribe_url}}">leave</a></body></html>')


@pytest.fixture(scope="module")
def shop():
    running = Pipeline({"STENTOR_RENDERER_PUBLIC_URL": PUBLIC, "STENTOR_WEBHOOK_MACHINE_S": "0"}).start()
    for key, category in (("promo", "marketing"), ("code", "security")):
        html, text = running.folder / f"{key}.html", running.folder / f"{key}.txt"
        html.write_text(HTML)
        text.write_text("cart: " + SHOP)
        running.cli("template", "put", key, "--subject", key, "--html", html, "--text", text, "--category", category)
        wait_until(lambda: running.post({"to": "first@example.com", "template": key, "consent": CONSENT})[0] == 202, 20, key)
    yield running
    running.stop()


def mail_domain(pipeline, **fields):
    client = NatsClient(pipeline.nats.port)
    entry = messages(pipeline).MailDomain(tenant=TENANT, domain="acme.test", **fields)
    client.publish(f"cfg.mail_domain.{TENANT}.acme.test", entry.SerializeToString())
    client.close()


@pytest.fixture(scope="module")
def tracked(shop):
    mail_domain(shop, tracking_url=LINKS, track_opens=True, track_clicks=True)
    wait_until(lambda: LINKS in html_of(shop, send(shop, "probe@example.com")), 30, "mails being tracked")
    return shop


def send(pipeline, to, template="promo"):
    return pipeline.send(to=to, template=template, consent=CONSENT)


def mail_of(pipeline, notification):
    pipeline.status(notification, wait="sent")
    return pipeline.mailbox.for_notification(notification)[0]


def html_of(pipeline, notification):
    return mail_of(pipeline, notification).get_body(("html",)).get_content()


def links_of(html):
    return re.findall(re.escape(LINKS) + r"/v1/click/lnk_[A-Za-z0-9_-]+", html)


def pixel_of(html):
    return re.search(re.escape(LINKS) + r"/v1/open/lnk_[A-Za-z0-9_-]+\.gif", html).group(0)


def visit(pipeline, link, headers=BROWSER, method="GET"):
    """(status, headers, body); the tracking host leads to this machine's nginx."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=20)
    try:
        connection.request(method, urllib.parse.urlsplit(link).path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def status_events(pipeline, notification, status):
    """Those of the notification that are stored, in their order."""
    client = NatsClient(pipeline.nats.port)
    found = []
    for sequence in range(1, client.stream_info("STATUS")["state"]["last_seq"] + 1):
        subject, payload = client.message("STATUS", seq=sequence) or ("", b"")
        if subject == f"ntf.status.{TENANT}.email.{status}":
            event = messages(pipeline).NotificationStatus.FromString(payload)
            found += [event] if event.meta.notification_id == notification else []
    client.close()
    return found


def metric(pipeline, name):
    return pipeline.services["webhook-receiver"].metric(name)


def test_off_by_default(shop):
    html = html_of(shop, send(shop, "plain@example.com"))
    assert SHOP.replace("&", "&amp;") in html and "/v1/click/" not in html and "/v1/open/" not in html


def test_the_html_part_leads_through_the_tenants_host_and_the_rest_is_as_it_was(tracked):
    mail = mail_of(tracked, send(tracked, "alice@example.com"))
    html = mail.get_body(("html",)).get_content()
    assert len(links_of(html)) == 3 and html.count("<img") == 1
    assert "shop.test/cart" not in html and "alice%40" not in html, "where a link leads is sealed"
    assert 'href="mailto:help@shop.test"' in html and 'href="#top"' in html
    assert f'href="{PUBLIC}/v1/opt-out/oot_' in html
    assert SHOP in mail.get_body(("plain",)).get_content()


def test_a_mail_of_the_category_security_is_never_tracked(tracked):
    assert LINKS not in html_of(tracked, send(tracked, "code@example.com", "code"))


def test_a_click_redirects_and_raises_the_status_once(tracked):
    notification = send(tracked, "clicker@example.com")
    link = links_of(html_of(tracked, notification))[0]
    status, headers, body = visit(tracked, link)
    assert (status, headers["Location"], body) == (302, SHOP, b"")
    assert headers["Referrer-Policy"] == "no-referrer" and "no-store" in headers["Cache-Control"]
    row = tracked.status(notification, wait="clicked")
    assert row["status"] == "clicked"
    assert visit(tracked, link)[0] == 302
    events = status_events(tracked, notification, "clicked")
    assert 1 <= len(events) <= 2, "one a minute"
    assert events[0].attempt.link == 1 and not events[0].attempt.machine


def test_the_pixel_raises_the_status(tracked):
    notification = send(tracked, "reader@example.com")
    status, headers, body = visit(tracked, pixel_of(html_of(tracked, notification)))
    assert (status, headers["Content-Type"]) == (200, "image/gif") and body.startswith(b"GIF89a")
    assert "no-store" in headers["Cache-Control"]
    assert tracked.status(notification, wait="opened")["status"] == "opened"


def test_a_machine_is_recorded_and_raises_nothing(tracked):
    notification = send(tracked, "proxied@example.com")
    html = html_of(tracked, notification)
    assert visit(tracked, pixel_of(html), GMAIL)[0] == 200
    assert visit(tracked, links_of(html)[1], method="HEAD")[0] == 302
    opened, = wait_until(lambda: status_events(tracked, notification, "opened"), 20, "the proxy's open")
    clicked, = wait_until(lambda: status_events(tracked, notification, "clicked"), 20, "the scanner's click")
    assert opened.attempt.machine and clicked.attempt.machine and clicked.attempt.link == 2
    # STATUS is folded in its order, so the history has met the machine when it shows the later open.
    later = send(tracked, "later@example.com")
    visit(tracked, pixel_of(html_of(tracked, later)))
    assert tracked.status(later, wait="opened")["status"] == "opened"
    assert tracked.status(notification)["status"] == "sent"


def test_many_links_at_once_are_a_scanners(tracked):
    notification = send(tracked, "scanned@example.com")
    for link in links_of(html_of(tracked, notification)):
        assert visit(tracked, link)[0] == 302
    def three():
        events = status_events(tracked, notification, "clicked")
        return events if len(events) == 3 else None
    events = wait_until(three, 20, "three clicks")
    assert [e.attempt.machine for e in sorted(events, key=lambda e: e.attempt.link)] == [False, False, True]


@pytest.mark.parametrize("spoil", [lambda t: t[:-2] + ("A" if t[-2] != "A" else "B") + t[-1], lambda t: t[:60], lambda t: "lnk_", lambda t: "x"])
def test_no_open_redirect(tracked, spoil):
    html = html_of(tracked, send(tracked, "spoil@example.com"))
    base, token = links_of(html)[0].rsplit("/", 1)
    status, headers, _ = visit(tracked, f"{base}/{spoil(token)}")
    assert status == 404 and "Location" not in headers
    pixel = pixel_of(html).rsplit("/", 1)[1].removesuffix(".gif")
    assert visit(tracked, f"{base}/{pixel}")[0] == 404, "a pixel's token is no link's"
    assert visit(tracked, links_of(html)[0], method="POST")[0] == 405


def test_a_click_redirects_while_nats_is_away(tracked):
    """The recipient is not held up; what could not be stored is counted."""
    link = links_of(html_of(tracked, send(tracked, "away@example.com")))[0]
    lost = metric(tracked, "stentor_webhook_receiver_links_lost_total")
    tracked.nats.stop()
    try:
        assert visit(tracked, link)[0] == 302
    finally:
        tracked.nats.start()
    wait_until(lambda: metric(tracked, "stentor_webhook_receiver_links_lost_total") > lost, 30, "the loss being counted")
    for service in tracked.services.values():
        service.wait_ready()


# ---- revoked links ----

def opt_out_of(mail):
    return mail["List-Unsubscribe"].strip().strip("<>")


def all_links(mail):
    html = mail.get_body(("html",)).get_content()
    return [opt_out_of(mail), links_of(html)[0], pixel_of(html)]


def answers(pipeline, mail):
    return [visit(pipeline, link)[0] for link in all_links(mail)]


def working(pipeline, to):
    """A mail with links that work, or None: a token has its time in whole seconds."""
    mail = mail_of(pipeline, send(pipeline, to))
    return mail if answers(pipeline, mail) == [200, 302, 200] else None


def test_an_operator_ends_the_links_of_a_mail_an_address_and_a_time(tracked):
    one, other = (mail_of(tracked, send(tracked, "revoked@example.com")) for _ in range(2))
    elsewhere = mail_of(tracked, send(tracked, "kept@example.com"))
    assert answers(tracked, one) == [200, 302, 200]
    altered = visit(tracked, opt_out_of(one)[:-2] + "xx")
    done = json.loads(tracked.cli("opt-out", "revoke", "--notification", one["Message-ID"].strip("<>").split("@")[0], "--json"))
    assert done["revoked"].startswith("ntf.ntf_") and done["revoked_by"]
    wait_until(lambda: answers(tracked, one) == [404] * 3, 20, "the mail's links being revoked")
    assert answers(tracked, other) == [200, 302, 200]
    assert visit(tracked, opt_out_of(one))[2] == altered[2], "a revoked token answers like an altered one"
    tracked.cli("opt-out", "revoke", "--address", "revoked@example.com", "--note", "mail forwarded to a list")
    wait_until(lambda: answers(tracked, other) == [404] * 3, 20, "the address's links being revoked")
    assert answers(tracked, elsewhere) == [200, 302, 200]
    newer = wait_until(lambda: working(tracked, "revoked@example.com"), 20, "a link of a later second, which works")
    tracked.cli("opt-out", "revoke", "--before", "0s")
    wait_until(lambda: answers(tracked, elsewhere) == [404] * 3 == answers(tracked, newer), 20, "all links being revoked")
    wait_until(lambda: working(tracked, "kept@example.com"), 20, "a link of a later second, which works")


@pytest.mark.parametrize("words, fault", [
    ((), "expected one of"), (("--notification", "ntf_x"), "not an id"), (("--recipient", "ntf_x"), "not an id"),
    (("--address", "nobody"), "address"), (("--recipient", "rcp_1", "--address", "a@example.com"), "expected one of")])
def test_what_cannot_be_revoked_is_named(tracked, words, fault):
    done = tracked.run_cli("opt-out", "revoke", *words)
    assert done.returncode != 0 and fault in done.stderr, done.stderr


def test_links_of_who_was_erased_change_and_say_nothing(tracked):
    """An erasure revokes: neither a preference nor a suppression is stored by an old mail's link, and no status."""
    status, _, body = tracked.post({"identity_type": "user", "identity_id": "gone", "name": "Zacharias", "addresses": [
        {"channel": "email", "address": "gone@example.com", "primary": True}]}, path="/v1/recipients")
    assert status == 201, body
    status, _, sent = tracked.post({"recipient_id": body["id"], "template": "promo", "category": "social"})
    assert status == 202, sent
    mail = mail_of(tracked, sent["id"])
    assert answers(tracked, mail)[1:] == [302, 200]
    done = tracked.run_cli("erase", "--recipient", body["id"], "--ground", "Art. 17 GDPR", "--requested-by", "ticket-17", "--json")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: answers(tracked, mail) == [404] * 3, 20, "the links being revoked")
    client = NatsClient(tracked.nats.port)
    counts = lambda: [client.stream_info(s)["state"]["last_seq"] for s in ("PEOPLE", "CONFIG", "STATUS")]  # noqa: E731
    before = counts()
    connection = http.client.HTTPConnection("127.0.0.1", tracked.api_port, timeout=20)
    connection.request("POST", urllib.parse.urlsplit(opt_out_of(mail)).path, b"List-Unsubscribe=One-Click",
                       {"Content-Type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == 404 and "gone" not in text and "Zacharias" not in text and TENANT not in text
    assert counts() == before
    client.close()


def test_a_domain_that_is_not_tracked_any_more(tracked):
    mail_domain(tracked, tracking_url=LINKS)
    wait_until(lambda: LINKS not in html_of(tracked, send(tracked, "off@example.com")), 30, "tracking being off")
