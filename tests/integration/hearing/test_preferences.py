# SPDX-License-Identifier: Apache-2.0
"""domain.md 21, "preference endpoints by opt-out token": a page without a script, and JSON for a page of the tenant's own."""
import http.client
import json
import re
import urllib.parse

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import CONSENT, Pipeline
from tests.harness.processes import wait_until

PUBLIC = "https://notify.test"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
CHOSEN = ["academic", "billing", "marketing", "operational", "reminder", "social", "system"]


@pytest.fixture(scope="module")
def shop():
    running = Pipeline({"STENTOR_RENDERER_PUBLIC_URL": PUBLIC}).start()
    for key, category in (("promo", "marketing"), ("gossip", "social")):
        html, text = running.folder / f"{key}.html", running.folder / f"{key}.txt"
        html.write_text('<a href="{{preferences_url}}">your choices</a>')
        text.write_text("your choices: {{preferences_url}}")
        running.cli("template", "put", key, "--subject", key, "--html", html, "--text", text, "--category", category)
        wait_until(lambda: running.post({"to": "first@example.com", "template": key, "consent": CONSENT})[0] == 202, 20, key)
    yield running
    running.stop()


def page_of(pipeline, notification):
    pipeline.status(notification, wait="sent")
    mail, = pipeline.mailbox.for_notification(notification)
    return re.search(re.escape(PUBLIC) + r"/v1/preferences/oot_[A-Za-z0-9_-]+", mail.get_body(("plain",)).get_content()).group(0)


def visit(pipeline, link, method="GET", body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=20)
    try:
        connection.request(method, urllib.parse.urlsplit(link).path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def choices(pipeline, link):
    status, _, text = visit(pipeline, link, headers=JSON)
    assert status == 200, text
    return {(one["category"], one["channel"]): one["on"] for one in json.loads(text)["preferences"]}


def change(pipeline, link, **on):
    body = {"preferences": [{"category": category, "channel": "email", "on": value} for category, value in on.items()]}
    status, _, text = visit(pipeline, link, "POST", json.dumps(body), JSON)
    assert status == 200, text


def ends(pipeline, template, status, **fields):
    """Sends until it ends so: a replica may know a choice a moment later."""
    def attempt():
        got, _, body = pipeline.post({"template": template, "consent": CONSENT, **fields} if "to" in fields else {"template": template, **fields})
        return got == 202 and pipeline.status(body["id"], wait="sent")["status"] == status
    wait_until(attempt, 20, f"{template} being {status}")


def recipient(pipeline, number, **more):
    status, _, body = pipeline.post({"identity_type": "user", "identity_id": f"u-{number}", "name": "Alice", "addresses": [
        {"channel": "email", "address": f"alice{number}@example.com", "primary": True}, *more.get("addresses", [])]}, path="/v1/recipients")
    assert status == 201, body
    return body["id"]


def test_an_address_chooses_by_the_page(shop):
    to = "bob@example.com"
    link = page_of(shop, shop.send(to=to, template="promo", consent=CONSENT))
    status, headers, page = visit(shop, link)
    assert status == 200 and headers["Content-Type"].startswith("text/html") and "<script" not in page
    assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["Referrer-Policy"] == "no-referrer"
    assert re.findall(r'value="([a-z]+)\.email" checked', page) == [c for c in
                      ["operational", "reminder", "marketing", "system", "academic", "billing", "social"]]
    status, _, page = visit(shop, link, "POST", "on=social.email&on=billing.email&do=save", FORM)
    assert status == 200 and "are stored" in page
    assert sorted(re.findall(r'value="([a-z]+)\.email" checked', page)) == ["billing", "social"]
    wait_until(lambda: sorted(c for (c, _), on in choices(shop, link).items() if on) == ["billing", "social"], 20, "the choices")
    ends(shop, "promo", "suppressed", to=to)
    ends(shop, "gossip", "sent", to=to)
    status, _, page = visit(shop, link, "POST", "do=all", FORM)
    assert status == 200 and page.count("checked") == 7
    ends(shop, "promo", "sent", to=to)


def test_a_recipient_chooses_by_json_and_its_channels_are_there(shop):
    id = recipient(shop, 1, addresses=[{"channel": "sms", "address": "+4915112345678"}])
    link = page_of(shop, shop.post({"recipient_id": id, "template": "gossip"})[2]["id"])
    now = choices(shop, link)
    assert sorted({category for category, _ in now}) == CHOSEN and {channel for _, channel in now} == {"email", "sms"}
    assert all(now.values())
    change(shop, link, social=False)
    assert choices(shop, link) == {**now, ("social", "email"): False}
    stored = json.loads(shop.cli("recipient", "prefs", id, "--json"))["preferences"]
    assert [(p["category"], p["channel"], p["off"]) for p in stored] == [("social", "email", True)]
    ends(shop, "gossip", "suppressed", recipient_id=id)
    change(shop, link, social=True)
    ends(shop, "gossip", "sent", recipient_id=id)


def test_the_one_click_link_shows_here_and_is_taken_back_here(shop):
    id = recipient(shop, 2)
    link = page_of(shop, shop.post({"recipient_id": id, "template": "gossip"})[2]["id"])
    assert visit(shop, link.replace("/preferences/", "/opt-out/"), "POST", "List-Unsubscribe=One-Click", FORM)[0] == 200
    wait_until(lambda: choices(shop, link)[("social", "email")] is False, 20, "the opt-out")
    ends(shop, "gossip", "suppressed", recipient_id=id)
    change(shop, link, social=True)
    ends(shop, "gossip", "sent", recipient_id=id)
    noted = json.loads(shop.cli("audit-log", "list", "--kind", "suppression", "--json"))
    assert any(entry["actor"] == "preferences" for entry in noted)


def test_only_opt_outs_are_ended_here(shop):
    """What a complaint or an operator suppressed stays, whatever the recipient's page says."""
    to = "angry@example.com"
    link = page_of(shop, shop.send(to=to, template="promo", consent=CONSENT))
    shop.cli("suppress", "add", to, "--category", "marketing", "--reason", "complaint")
    ends(shop, "promo", "suppressed", to=to)
    visit(shop, link, "POST", "do=all", FORM)
    ends(shop, "promo", "suppressed", to=to)
    assert shop.status(shop.send(to=to, template="promo", consent=CONSENT), wait="sent")["reason_code"] == "complaint"


def test_a_look_changes_nothing(shop):
    link = page_of(shop, shop.send(to="looker@example.com", template="promo", consent=CONSENT))
    client = NatsClient(shop.nats.port)
    counts = lambda: [client.stream_info(s)["state"]["last_seq"] for s in ("PEOPLE", "CONFIG")]  # noqa: E731
    before = counts()
    for method in ("GET", "HEAD"):
        assert visit(shop, link, method)[0] == 200
    assert counts() == before
    client.close()


@pytest.mark.parametrize("method, body, headers, expected", [
    ("POST", "x=y", FORM, 400), ("POST", "{", JSON, 400), ("POST", '{"preferences": [{"category": "security"}]}', JSON, 422),
    ("POST", "on=" + "a" * 9000, FORM, 413), ("PUT", "", FORM, 405)])
def test_what_is_wrong_is_named(shop, method, body, headers, expected):
    link = page_of(shop, shop.send(to="wrong@example.com", template="promo", consent=CONSENT))
    status, _, text = visit(shop, link, method, body, headers)
    assert status == expected and json.loads(text)["title"], text
    assert visit(shop, link[:-2] + "xx")[0] == 404


def test_a_revoked_link_shows_nothing(shop):
    notification = shop.send(to="revoked@example.com", template="promo", consent=CONSENT)
    link = page_of(shop, notification)
    shop.cli("opt-out", "revoke", "--notification", notification)
    wait_until(lambda: visit(shop, link)[0] == 404, 20, "the link being revoked")


def test_without_postgres_it_answers_503_and_the_one_click_link_works(shop):
    id = recipient(shop, 3)
    link = page_of(shop, shop.post({"recipient_id": id, "template": "gossip"})[2]["id"])
    shop.postgres.stop()
    try:
        assert visit(shop, link)[0] == 503
        assert visit(shop, link.replace("/preferences/", "/opt-out/"), "POST", "List-Unsubscribe=One-Click", FORM)[0] == 200
    finally:
        shop.postgres.start()
    wait_until(lambda: visit(shop, link)[0] == 200, 30, "Postgres back")
    wait_until(lambda: choices(shop, link)[("social", "email")] is False, 30, "the opt-out")
