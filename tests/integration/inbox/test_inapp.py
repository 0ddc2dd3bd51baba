# SPDX-License-Identifier: Apache-2.0
"""In-app notifications: no vendor has to be set up. From POST /v1/notifications to the inbox of its recipient, and what the recipient does
there back to the application as statuses."""
import json
import uuid

import pytest

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
