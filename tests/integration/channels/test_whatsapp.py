# SPDX-License-Identifier: Apache-2.0
"""WhatsApp by Meta's Cloud API: templates by reference, free text within 24 hours of what the recipient wrote, statuses by signed webhooks, one
URL for each tenant."""
import http.client
import json
import urllib.parse

import pytest

from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Callback, Fault, phone
from tests.integration.sending.test_sms import World
from tests.integration.sending.test_templates import locale, publish

OTHERS = "999000111222333"  # a number of another tenant's


@pytest.fixture(scope="module")
def world():
    made = World("whatsapp")
    try:
        publish(made.pipeline, "code", channel="whatsapp", locales=[locale("en", text="Hello {{name}}")])
        publish(made.pipeline, "shipped", channel="whatsapp", locales=[
            locale("de", reference="order_shipped;button", parameters=["{{name}}", "{{order}}", "{{track}}"])])
        publish(made.pipeline, "lost", channel="whatsapp", locales=[locale("de", reference="order_lost", parameters=["{{name}}"])])
        made.meta = made.vendor("meta", inbound=("--number", "106540352242922"))
        made.meta.templates["order_shipped", "de"] = ["body", "body", "button"]
        made.url = made.public_url + made.cli("inbound", "url", "meta").strip()
        yield made
    finally:
        made.close()


def shipped(world, to=None):
    notification = world.accepted(to=to, template="shipped", variables={"name": "Zoë", "order": "42", "track": "abc"})
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    return notification, world.meta.mails[-1]


def reported(world, mail, kind, **fields):
    assert world.call(world.url, world.meta.callback(mail, kind, **fields))[0] == 200


def test_a_template_is_sent_delivered_and_read(world):
    number = world.number()
    notification, mail = shipped(world, to=number)
    assert (mail.to, mail.text) == ([number], "Zoë 42 abc")
    assert mail.headers["template"]["language"] == {"code": "de"}
    assert mail.headers["biz_opaque_callback_data"] == f"{notification}-1"
    attempt = world.attempt(notification, "sent").attempt
    assert (attempt.vendor, attempt.vendor_message_id) == ("meta", mail.id)
    reported(world, mail, "sent")
    reported(world, mail, "delivered")
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    reported(world, mail, "opened")
    assert world.pipeline.status(notification, wait="opened")["status"] == "opened"
    assert world.attempt(notification, "opened").channel == world.routing.types.CHANNEL_WHATSAPP


@pytest.mark.parametrize("pricing, expected", [
    ({}, ("utility", "0.0117", True)),
    ({"pricing": {"billable": False, "pricing_model": "PMP", "category": "utility", "type": "free_customer_service"}}, ("free", "0", False))])
def test_a_message_costs_what_its_category_does(world, pricing, expected):
    for category, amount in ((), "0.5"), (("--category", "utility"), "0.0117"):
        world.cli("costs", "set", "whatsapp", "meta", "--price", amount, "--currency", "EUR", "--from", "2026-01-01T00:00:00Z", *category)
    notification, mail = shipped(world)
    reported(world, mail, "delivered", **pricing)
    world.pipeline.status(notification, wait="delivered")
    assert world.attempt(notification, "delivered").attempt.price_category == expected[0]

    def costs():
        return [(one["cost"], one["cost_estimated"]) for one in world.pipeline.status(notification)["attempts"]]
    wait_until(lambda: costs() == [expected[1:]], 20, f"{expected} being shown")


def test_free_text_goes_only_within_the_window(world):
    number = world.number()
    notification = world.accepted(to=number)
    shown = world.pipeline.status(notification, wait="failed")
    event = world.attempt(notification, "failed")
    assert event.reason_code == "window_closed" and "131047 Message failed to send because more than 24 hours" in event.reason, shown
    world.meta.windows.add(number)
    assert world.sent(to=number) and world.meta.mails[-1].text == "Hello Alice"
    late, mail = shipped(world)
    reported(world, mail, "closed")
    world.pipeline.status(late, wait="failed")
    assert world.attempt(late, "failed").reason_code == "window_closed"


def test_a_template_that_meta_does_not_know_is_named(world):
    notification = world.accepted(template="lost")
    world.pipeline.status(notification, wait="failed")
    event = world.attempt(notification, "failed")
    assert (event.reason_code, event.reason) == ("unknown_vendor_template", "132001 template name (order_lost) does not exist in de")
    world.meta.templates["order_lost", "de"] = ["body", "body"]
    notification = world.accepted(template="lost")
    world.pipeline.status(notification, wait="failed")
    assert world.attempt(notification, "failed").reason_code == "vendor_template_refused"


def test_the_limit_of_a_pair_holds_one_notification(world):
    number = world.number()
    world.meta.pair_limited.add(number)
    notification = world.accepted(to=number, template="shipped", variables={"name": "Bob", "order": "1", "track": "x"})
    other, _ = shipped(world)
    assert world.pipeline.status(other)["status"] == "sent", "the vendor is not held"
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    world.routing.wait_rows(notification, (1, "meta", "deferred", 0), (2, "meta", "sent", 0))


def test_a_webhook_settles_what_had_no_answer(world):
    world.meta.behave(Fault.HANG_AFTER_BODY, times=1)
    before = len(world.meta.mails)
    notification = world.accepted(template="shipped", variables={"name": "Eve", "order": "7", "track": "x"})
    mail = world.meta.wait(before + 1)[-1]
    world.routing.wait_rows(notification, (1, "meta", "deferred", 1))
    reported(world, mail, "sent")
    world.routing.wait_rows(notification, (1, "meta", "sent", 1))
    assert world.attempt(notification, "sent").attempt.vendor_message_id == mail.id
    assert len(world.meta.mails) == before + 1


def get(url):
    parts = urllib.parse.urlsplit(url)
    client = http.client.HTTPConnection(parts.netloc, timeout=20)
    try:
        client.request("GET", f"{parts.path}?{parts.query}")
        answer = client.getresponse()
        return answer.status, answer.read().decode(), answer.headers["Content-Type"].split(";")[0]
    finally:
        client.close()


def test_meta_asks_once_whether_the_address_is_ours(world):
    token = world.url.rpartition("/")[2]

    def asked(token, challenge="1158201444", mode="subscribe", url=world.url):
        return get(url + "?" + urllib.parse.urlencode({"hub.mode": mode, "hub.challenge": challenge, "hub.verify_token": token}))
    assert asked(token) == (200, "1158201444", "text/plain")
    assert asked("A" * 32)[0] == 403 and asked(token, mode="")[0] == 403 and asked(token, challenge="<script>")[0] == 403
    assert asked("A" * 32, url=world.url.replace(token, "A" * 32))[0] == 401
    assert get(world.url.replace("/meta/", "/twilio/"))[0] == 405, "no other vendor asks"


def test_a_forged_webhook_and_another_tenants_number_change_nothing(world):
    notification, mail = shipped(world)
    made = world.meta.callback(mail, "delivered")
    assert world.call(world.url, Callback(made.headers, made.body.replace(b"delivered", b"failed---")))[0] == 401
    assert world.call(world.url, Callback({"Content-Type": "application/json"}, made.body))[0] == 401
    other = Callback(*phone.meta_webhook(world.meta.signer, OTHERS, statuses=[phone.meta_status(mail, "failed", 131026, "x")]))
    assert world.call(world.url, other)[0] == 200
    reported(world, mail, "delivered")
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"


def test_a_webhook_of_megabytes_is_taken_whole(world):
    first, mail = shipped(world)
    last, other = shipped(world)
    noise = [phone.meta_status(mail, "deleted", note="\N{GRINNING FACE}]}\"" * 60) for _ in range(2500)]
    made = Callback(*phone.meta_webhook(world.meta.signer, mail.sender, statuses=[
        phone.meta_status(mail, "delivered"), *noise, phone.meta_status(other, "read")]))
    assert 2_500_000 < len(made.body) < 4 << 20
    assert world.call(world.url, made)[0] == 200
    assert world.pipeline.status(first, wait="delivered")["status"] == "delivered"
    assert world.pipeline.status(last, wait="opened")["status"] == "opened", "delivered may be left out"
    assert world.call(world.url, Callback(made.headers, b" " * (4 << 20) + made.body))[0] == 413


def test_a_number_is_required_and_checked(world):
    done = world.pipeline.run_cli("inbound", "put", "meta", "--secret", "main=file:/x/y")
    assert done.returncode != 0 and "--number is required" in done.stderr
    status, _, problem = world.pipeline.post({"secrets": [{"name": "a", "reference": "file:/x"}], "numbers": ["+49"]}, method="PUT",
                                             path="/v1/tenant/inbound-keys/meta", headers={"Authorization": f"Bearer {world.pipeline.operator_key}"})
    assert (status, problem["field"]) == (422, "numbers[0]"), problem
    shown = json.loads(world.cli("inbound", "list", "--json"))
    assert next(one for one in shown if one["vendor"] == "meta")["numbers"] == ["106540352242922"]


def test_twilio_takes_whatsapp_too(world):
    """The last of the file: from here on there are two vendors."""
    sid = "HX" + "0123456789abcdef" * 2
    publish(world.pipeline, "parcel", channel="whatsapp", locales=[locale("de", reference=sid, parameters=["{{name}}", "{{order}}"])])
    twilio = world.vendor("twilio_whatsapp")
    twilio.templates[sid] = 2
    world.cli("route", "put", "parcels", "--channel", "whatsapp", "--vendor", "twilio_whatsapp")
    number = world.number()

    def takes():
        notification = world.accepted(to=number, template="parcel", variables={"name": "Zoë", "order": "42"})
        wait_until(lambda: world.pipeline.status(notification)["status"] in ("sent", "failed"), 20, "its end")
        return bool(twilio.mails) and notification
    notification = wait_until(takes, 40, "the route reaching the dispatcher")
    mail = twilio.mails[-1]
    assert (mail.to, mail.sender, mail.text) == ([f"whatsapp:{number}"], "whatsapp:+14155238886", "Zoë 42")
    assert "/twilio_whatsapp/" in mail.report_to
    world.reported(twilio, mail, "opened")
    assert world.pipeline.status(notification, wait="opened")["status"] == "opened"
    closed = world.accepted(to=number)
    world.pipeline.status(closed, wait="failed")
    assert world.attempt(closed, "failed").reason_code == "window_closed"
    url = world.public_url + world.cli("inbound", "url", "twilio_whatsapp").strip()
    assert world.call(url, Callback(*phone.twilio_reply(twilio.signer, url, f"whatsapp:{number}", "Danke", To="whatsapp:+14155238886")))[0] == 200
    wait_until(lambda: any(one["from"] == number and one["vendor"] == "twilio_whatsapp" and one["channel"] == "whatsapp" for one in replies(world)), 20, "the reply")


def replies(world):
    client = http.client.HTTPConnection("127.0.0.1", world.pipeline.api_port, timeout=20)
    try:
        client.request("GET", "/v1/replies", headers={"Authorization": f"Bearer {world.pipeline.key}"})
        return json.loads(client.getresponse().read())["data"]
    finally:
        client.close()
