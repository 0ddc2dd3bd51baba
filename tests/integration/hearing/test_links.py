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


def test_a_domain_that_is_not_tracked_any_more(tracked):
    mail_domain(tracked, tracking_url=LINKS)
    wait_until(lambda: LINKS not in html_of(tracked, send(tracked, "off@example.com")), 30, "tracking being off")
