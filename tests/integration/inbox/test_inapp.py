# SPDX-License-Identifier: Apache-2.0
"""In-app notifications: no vendor has to be set up. From POST /v1/notifications to the inbox of its recipient, and what the recipient does
there back to the application as statuses."""
import base64
import datetime
import hmac
import json
import time
import uuid

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_templates import locale, publish

TEMPLATE = "inbox-hello"


@pytest.fixture(scope="module", autouse=True)
def template(pipeline):
    publish(pipeline, TEMPLATE, channel="inapp", category="transactional",
            locales=[locale("en", title="Hello {{name}}", text="You have {{count}} orders", data='{"url": "https://shop.example/orders"}')])


def new_user():
    return f"u-{uuid.uuid4().hex[:12]}"


def send(pipeline, **fields):
    body = {"channel": "inapp", "template": TEMPLATE, "variables": {"name": "Alice", "count": 3}, **fields}
    status, _, answer = pipeline.post(body)
    assert status == 202, answer
    return answer["id"]


def test_an_in_app_notification_is_sent_without_any_vendor_s_credential(pipeline):
    shown = pipeline.status(send(pipeline, to=new_user()), wait="sent")
    attempt = shown["attempts"][0]
    assert (shown["status"], attempt["vendor"], attempt["outcome"]) == ("sent", "inapp", "accepted"), shown


def test_a_recipient_without_an_in_app_address_has_an_inbox_by_id(pipeline):
    status, _, recipient = pipeline.post({"identity_type": "user", "identity_id": new_user()}, path="/v1/recipients")
    assert status == 201, recipient
    assert pipeline.status(send(pipeline, recipient_id=recipient["id"]), wait="sent")["status"] == "sent"


class Client:
    """A recipient's client: it has a token, and no API key."""

    def __init__(self, pipeline, **whose):
        self.pipeline = pipeline
        status, headers, answer = pipeline.post({"ttl_seconds": 600, **whose}, path="/v1/inbox/tokens")
        assert status == 201 and headers["Cache-Control"] == "no-store", answer
        self.token = answer["token"]

    def call(self, method, path="", body=None):
        raw = b"" if body is None else json.dumps(body).encode()
        status, _, answer = self.pipeline.post(raw, path=f"/v1/inbox{path}", method=method, headers={"Authorization": f"Bearer {self.token}"})
        return status, answer

    def get(self, path=""):
        status, answer = self.call("GET", path)
        assert status == 200, answer
        return answer

    def do(self, path, body=None):
        status, answer = self.call("POST", path, body)
        assert status == 200, answer
        return answer

    def items(self, query=""):
        return self.get(query)["data"]

    def wait_items(self, count, query=""):
        def there():
            found = self.items(query)
            return found if len(found) == count else None
        return wait_until(there, 10, f"{count} items in the inbox")


def counts(unseen, unread, total, of):
    return {name: of[name] for name in ("unseen", "unread", "total")} == {"unseen": unseen, "unread": unread, "total": total}


def test_fetched_is_delivered_and_read_is_opened(pipeline):
    user = new_user()
    notification = send(pipeline, to=user)
    client = Client(pipeline, to=user)
    item, = client.wait_items(1)
    assert (item["id"], item["title"], item["body"]) == (notification, "Hello Alice", "You have 3 orders"), item
    assert item["data"] == {"url": "https://shop.example/orders"} and "read_at" not in item
    assert pipeline.status(notification, wait="delivered")["status"] == "delivered"
    before = client.get("/counts")
    assert counts(1, 1, 1, before) and before["by_category"] == {"transactional": {"unseen": 1, "unread": 1, "total": 1}}, before
    after = client.do(f"/{notification}/read")
    assert counts(0, 0, 1, after) and after["version"] > before["version"], after
    assert pipeline.status(notification, wait="opened")["status"] == "opened"
    assert "read_at" in client.items()[0] and client.items("?tab=unread") == []


def test_a_request_to_the_address_and_one_to_its_recipient_are_in_one_inbox(pipeline):
    user = new_user()
    first = send(pipeline, to=user)  # before there is a record
    status, _, recipient = pipeline.post({"identity_type": "user", "identity_id": user, "addresses": [{"channel": "inapp", "address": user}]},
                                         path="/v1/recipients")
    assert status == 201, recipient
    second = send(pipeline, recipient_id=recipient["id"])
    seen = [item["id"] for item in Client(pipeline, recipient_id=recipient["id"]).wait_items(2)]
    assert seen == [second, first] == [item["id"] for item in Client(pipeline, to=user).items()]
    _, _, other = pipeline.post({"identity_type": "user", "identity_id": new_user()}, path="/v1/recipients")
    third = send(pipeline, recipient_id=other["id"])  # without an in-app address
    assert [item["id"] for item in Client(pipeline, recipient_id=other["id"]).wait_items(1)] == [third]


def test_tabs_pages_and_all_up_to_what_was_shown(pipeline):
    user = new_user()
    client = Client(pipeline, to=user)
    ids = []
    for number in range(5):
        ids.append(send(pipeline, to=user))
        client.wait_items(number + 1)
    page = client.get("?limit=2")
    assert [item["id"] for item in page["data"]] == [ids[4], ids[3]]
    rest = client.get(f"?limit=10&before={page['next']}")
    assert [item["id"] for item in rest["data"]] == [ids[2], ids[1], ids[0]] and rest["next"] is None
    later = send(pipeline, to=user)
    client.wait_items(6)
    assert counts(1, 1, 6, client.do("/read-all", {"up_to": page["data"][0]["cursor"]})), "the one that has just arrived stays unread"
    assert [item["id"] for item in client.items("?tab=unread")] == [later]
    assert counts(1, 1, 5, client.do(f"/{ids[0]}/archive"))
    assert counts(0, 1, 5, client.do("/seen-all", {"up_to": client.items()[0]["cursor"]}))
    assert [item["id"] for item in client.items("?tab=archived")] == [ids[0]]
    assert counts(0, 1, 6, client.do(f"/{ids[0]}/unarchive"))
    assert counts(0, 2, 6, client.do(f"/{ids[2]}/unread"))
    assert counts(0, 1, 6, client.do(f"/{ids[2]}/click")) and "clicked_at" in client.items()[3]
    assert pipeline.status(ids[2], wait="clicked")["status"] == "clicked"
    assert client.items("?category=social") == [] and len(client.items("?category=transactional")) == 6
    assert counts(0, 0, 0, client.do("/archive-all", {"up_to": client.items()[0]["cursor"]}))


def test_a_snoozed_item_comes_back_unread_on_top_and_an_expired_one_is_gone(pipeline):
    user = new_user()
    client = Client(pipeline, to=user)
    first = send(pipeline, to=user)
    client.wait_items(1)
    second = send(pipeline, to=user)
    client.wait_items(2)
    client.do(f"/{first}/read")
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
    assert counts(1, 1, 1, client.do(f"/{first}/snooze", {"until": until.isoformat()}))
    assert [item["id"] for item in client.items()] == [second] and [item["id"] for item in client.items("?tab=snoozed")] == [first]
    wait_until(lambda: [item["id"] for item in client.items("?tab=unread")] == [first, second], 20, "the end of the snooze")
    assert counts(1, 2, 2, client.get("/counts"))
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)
    send(pipeline, to=user, expires_at=expires.isoformat())
    wait_until(lambda: counts(2, 3, 3, client.get("/counts")), 10, "the third item")
    wait_until(lambda: counts(1, 2, 2, client.get("/counts")), 20, "its end")
    assert len(client.items()) == 2


def token(pipeline, **fields):
    return pipeline.post(fields, path="/v1/inbox/tokens")


def test_a_token_opens_one_inbox_until_it_ends_and_nothing_else_does(pipeline):
    user = new_user()
    notification = send(pipeline, to=user)
    client = Client(pipeline, to=user)
    client.wait_items(1)
    stranger = Client(pipeline, to=new_user())
    assert stranger.items() == [] and stranger.call("POST", f"/{notification}/read")[0] == 404
    pipeline.cli("tenant", "put", "globex", "--name", "Globex")
    key = json.loads(pipeline.cli("apikey", "create", "--name", "inbox", "--json", tenant="globex"))["key"]
    foreign = Client.__new__(Client)
    foreign.pipeline = pipeline

    def made():
        status, _, answer = pipeline.post({"to": user}, path="/v1/inbox/tokens", headers={"Authorization": f"Bearer {key}"})
        foreign.token = (answer or {}).get("token")
        return status == 201
    wait_until(made, 10, "the other tenant's key")
    assert foreign.items() == [] and foreign.call("POST", f"/{notification}/read")[0] == 404, "the same user id of another tenant"
    for wrong in (pipeline.key, client.token[:-2] + "AA", "inb_", ""):
        status, _, problem = pipeline.post(b"", path="/v1/inbox", method="GET", headers={"Authorization": f"Bearer {wrong}"})
        assert (status, problem["type"]) == (401, "urn:stentor:problem:unauthorized"), wrong
    ended = signed_token(pipeline, user, int(time.time()) - 1)
    status, _, problem = pipeline.post(b"", path="/v1/inbox", method="GET", headers={"Authorization": f"Bearer {ended}"})
    assert (status, problem["type"]) == (401, "urn:stentor:problem:token-expired"), problem
    client.token = signed_token(pipeline, user, int(time.time()) + 60)
    assert len(client.items()) == 1, "made as this test makes it"
    assert token(pipeline, to=user, ttl_seconds=3601)[0] == 422 and token(pipeline)[2]["field"] == "to"
    assert token(pipeline, to=user, recipient_id="rcp_01KAGTQ5M00000000000000001")[0] == 422
    assert token(pipeline, recipient_id="rcp_01KAGTQ5M00000000000000001")[0] == 404
    weak = json.loads(pipeline.cli("apikey", "create", "--name", "weak", "--scopes", "send", "--json"))["key"]

    def refused():
        status, _, problem = pipeline.post({"to": user}, path="/v1/inbox/tokens", headers={"Authorization": f"Bearer {weak}"})
        return status == 403 and "inbox:token" in problem["detail"]
    wait_until(refused, 10, "a key without the scope being refused")


def signed_token(pipeline, user, expires_s):
    """The token of `user`'s inbox in tenant acme, by the master key: as common/feed/inbox_token.c says."""
    keys = {kind: bytes.fromhex(values[-1]) for kind, values in pipeline.master_keys().items()}
    derived = HKDF(hashes.SHA256(), 32, None, b"stentor inbox").derive(keys["master"])
    own = hmac.digest(derived, TENANT.encode(), "sha256")
    recipient = hmac.digest(keys["hash"], f"{TENANT}|inapp|{user}".encode(), "sha256")
    raw = b"\x01" + expires_s.to_bytes(5, "big") + recipient + bytes([len(TENANT)]) + TENANT.encode()
    raw += hmac.digest(own, raw, "sha256")
    return "inb_" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.mark.parametrize("method, path, body, status, field", [
    ("GET", "?tab=trash", None, 400, "tab"), ("GET", "?limit=101", None, 400, "limit"), ("GET", "?before=x", None, 400, "before"),
    ("GET", "?category=gossip", None, 400, "category"), ("POST", "/read-all", {}, 422, "up_to"), ("POST", "/read-all", {"up_to": "1.x"}, 422, "up_to"),
    ("POST", "/ntf_01M82XS89VEV77VD8AS0MCMH0B/snooze", {"until": "2020-01-01T00:00:00Z"}, 422, "until"),
    ("POST", "/ntf_01M82XS89VEV77VD8AS0MCMH0B/read", None, 404, None), ("POST", "/snooze-all", {}, 404, None), ("POST", "/ntf_x/read", None, 404, None),
    ("DELETE", "", None, 405, None), ("GET", "/ntf_01M82XS89VEV77VD8AS0MCMH0B/read", None, 405, None)])
def test_a_wrong_call_names_what_is_wrong(pipeline, method, path, body, status, field):
    answer = Client(pipeline, to="user-17").call(method, path, body)
    assert (answer[0], answer[1].get("field")) == (status, field), answer


def test_an_unknown_action_is_answered_with_those_that_there_are(pipeline):
    client = Client(pipeline, to="user-17")
    for path in ("/ntf_01M82XS89VEV77VD8AS0MCMH0B/explode", "/explode-all"):
        status, problem = client.call("POST", path, {})[:2]
        assert status == 404 and "one of seen, read" in problem["detail"] and "read-all" in problem["detail"], problem
    assert "no such item" in client.call("POST", "/ntf_01M82XS89VEV77VD8AS0MCMH0B/read", {})[1]["detail"]


def test_an_erased_recipient_s_inbox_is_empty(pipeline):
    user = new_user()
    _, _, recipient = pipeline.post({"identity_type": "user", "identity_id": user, "addresses": [{"channel": "inapp", "address": user}]},
                                    path="/v1/recipients")
    to_address, to_recipient = send(pipeline, to=user), send(pipeline, recipient_id=recipient["id"])
    client = Client(pipeline, to=user)
    client.wait_items(2)
    pipeline.cli("erase", "--recipient", recipient["id"], "--ground", "Art. 17")
    wait_until(lambda: counts(0, 0, 0, client.get("/counts")), 20, "the removal in FEED being folded")
    assert client.items() == []
    assert pipeline.postgres.query("SELECT count(*) FROM feed.items WHERE notification_id IN (%s, %s)", to_address, to_recipient) == [(0,)]
