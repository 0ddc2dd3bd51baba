# SPDX-License-Identifier: Apache-2.0
"""In-app notifications: no vendor has to be set up. From POST /v1/notifications to the inbox of its recipient, and what the recipient does
there back to the application as statuses."""
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
