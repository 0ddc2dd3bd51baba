# SPDX-License-Identifier: Apache-2.0
"""Events as documents A and D write them (rows A25, A28, A37 of the audit, finding 10): PlaceOrderCommand, ...IntegrationEvent, members in camelCase,
PascalCase or snake_case, MassTransit's envelope. All of them mean what the plain names mean."""
import json
import time
import uuid

import pytest

from tests.harness.orders import CANCELLED, COMPLETED, PLACED, Shop
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.integration.operating.test_cleanup import gone, passes, plant
from tests.integration.operating.test_dlq import EVERY_ATTEMPT, TRY_LATER, letters

ENVELOPE = {"Content-Type": "application/vnd.masstransit+json"}


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "1", "STENTOR_SAGA_RETRY_TIMEOUT_MS": "600000"}, durable=True).start(SERVICES + ["order-saga"])
    yield pipeline
    pipeline.stop()


@pytest.fixture(scope="module")
def shop(pipeline):
    shop = Shop(pipeline).put_mails()
    yield shop
    shop.close()


def envelope(name, message, **more):
    """As MassTransit writes it."""
    return {"messageId": str(uuid.uuid4()), "conversationId": str(uuid.uuid4()), "sourceAddress": "rabbitmq://localhost/finance",
            "destinationAddress": f"rabbitmq://localhost/BookWorm.Contracts:{name}", "messageType": [f"urn:message:BookWorm.Contracts:{name}"],
            "message": message, "sentTime": time.strftime("%Y-%m-%dT%H:%M:%S.1234567Z", time.gmtime()), "headers": {}, "host": {"machineName": "x"}, **more}


def text_of(order, subject):
    mails = [mail for mail in order.shop.pipeline.mailbox.mails(order.email) if str(mail["Subject"]) == subject.replace("#", order.id)]
    return " ".join(mails[0].get_body(("plain",)).get_content().split())


@pytest.mark.parametrize("place,name", [
    ("PlaceOrderCommand", {"orderId": "id", "fullName": "name", "totalMoney": "total"}),
    ("PlaceOrder", {"OrderId": "id", "FullName": "name", "TotalMoney": "total"}),
    ("PlaceOrderIntegrationEvent", {"order_id": "id", "full_name": "name", "total_money": "total"}),
])
def test_a_command_in_any_spelling_is_the_confirmation(shop, place, name):
    """Finding 10: a PlaceOrder with orderId and fullName ended as failed, missing_variable order_id; no reader knew PlaceOrderCommand."""
    order = shop.order()
    values = {"id": order.id, "name": "Alice Doe", "total": 59.9}
    order.say(place, {**{key: values[what] for key, what in name.items()}, "email": order.email, "currency": "EUR"})
    order.wait_mails(PLACED)
    assert "Dear Alice Doe" in text_of(order, PLACED) and "of 59.90 EUR" in text_of(order, PLACED)


def test_the_sagas_events_are_read_by_the_documents_names_in_masstransits_envelope(shop):
    """D: UserCheckedOutEvent and StatusChangedEvent; the envelope with or without its content type."""
    order = shop.order()
    checked_out = {"orderId": order.id, "basketId": str(uuid.uuid4()), "fullName": "Alice Doe", "email": order.email, "totalMoney": 59.9, "currency": "EUR"}
    order.say("UserCheckedOutEvent", envelope("UserCheckedOutEvent", checked_out), headers=ENVELOPE).wait_state("Placed")
    order.say("StatusChangedIntegrationEvent", envelope(
        "StatusChangedIntegrationEvent", {"OrderId": order.id, "Status": "Completed", "Carrier": "DHL", "TrackingNumber": "JD0146"})).wait_state("Completed")
    order.wait_mails(PLACED, COMPLETED)
    assert "at DHL as JD0146." in text_of(order, COMPLETED)
    assert [row[0] for row in order.inbox()] == ["UserCheckedOut", "StatusChanged"]


def test_an_envelope_repeated_under_two_names_is_one_mail(shop):
    order = shop.order()
    said = envelope("CancelOrderCommand", {"orderId": order.id, "fullName": "Alice Doe", "email": order.email, "refundMoney": "12.50", "currency": "EUR"})
    for number, name in enumerate(("CancelOrderCommand", "CancelOrder", "CancelOrderCommand")):
        shop.nats.publish(f"evt.{TENANT}.{name}", json.dumps(said).encode(), headers={"Content-Type": "application/json", "X-Number": str(number)})
    order.wait_mails(CANCELLED)
    assert "12.50 EUR go back" in text_of(order, CANCELLED)
    marker = shop.order().check_out()
    marker.wait_mails(PLACED)
    assert order.mails() == [CANCELLED]


def test_an_envelope_of_another_order_event_than_its_subject_sends_nothing(shop):
    order = shop.order()
    order.say("PlaceOrderCommand", envelope("CancelOrderCommand", {"orderId": order.id, "email": order.email}))
    found = wait_until(lambda: [letter for letter in letters(shop.pipeline) if "'messageType' is CancelOrder" in letter["reason"]], 20, "the dead letter")
    assert len(found) == 1 and order.mails() == []


def test_a_template_and_a_trigger_written_in_camel_case_get_a_publishers_snake_case(shop, tmp_path):
    """The other way round: paths and variables in camelCase, members in snake_case and PascalCase."""
    event = f"feedback.t{uuid.uuid4().hex[:8]}"
    template = f"feedback-{uuid.uuid4().hex[:8]}"
    (tmp_path / "text").write_text("{{#each orderInfo.bookLines}}{{unitCount}} {{/each}}")
    shop.pipeline.cli("template", "put", template, "--version", "1.0.0", "--subject", "{{bookTitle}} #{{orderInfo.orderId}}",
                      "--text", tmp_path / "text", "--require", "bookTitle:string", "--category", "transactional")
    shop.pipeline.cli("trigger", "put", template, "--event", event, "--template", template, "--resolver", "address:customer.emailAddress",
                      "--name-path", "customer.fullName")
    email = f"{uuid.uuid4().hex}@example.com"
    data = {"book_title": "Dune", "Customer": {"EmailAddress": email, "full_name": "Gül"}, "order_info": {"OrderId": 7, "book_lines": [{"unit_count": 2}]}}
    wait_until(lambda: shop.knows(template), 20, "the trigger reaching ingest")
    shop.nats.publish(f"evt.{TENANT}.{event}", json.dumps(data).encode(), uuid.uuid4().hex)
    mail = wait_until(lambda: shop.pipeline.mailbox.mails(email), 30, "the mail")[0]
    assert str(mail["Subject"]) == "Dune #7" and "2" in mail.get_body(("plain",)).get_content() and "Gül" in str(mail["To"])


def test_clean_up_sent_email_integration_event_drops_what_is_past_its_retention(shop):
    """Row A37. The reader's filter knows one name: ingest publishes the event again under it."""
    pipeline = shop.pipeline
    old = plant(pipeline)
    shop.nats.publish(f"evt.{TENANT}.CleanUpSentEmailIntegrationEvent", json.dumps(envelope("CleanUpSentEmailIntegrationEvent", {"requestedBy": "ops"})).encode(),
                      uuid.uuid4().hex, ENVELOPE)
    gone(pipeline, old)
    line = wait_until(lambda: passes(pipeline, "archiver"), 20, "the pass's line")[-1]
    assert line["tenant"] == TENANT and line["requested_by"] == "ops"
    shop.nats.publish(f"evt.{TENANT}.CleanUpSentEmailIntegrationEvent", b"{}", uuid.uuid4().hex)  # the document's has no members
    wait_until(lambda: len(passes(pipeline, "archiver")) >= 2, 20, "another pass")


def test_resend_error_email_integration_event_sends_a_failed_mail_again(shop):
    pipeline = shop.pipeline
    pipeline.mailbox.answer(TRY_LATER, times=EVERY_ATTEMPT)
    notification = pipeline.send(to=f"again-{uuid.uuid4().hex[:6]}@example.com")
    pipeline.status(notification, wait="failed")
    wait_until(lambda: [letter for letter in letters(pipeline) if letter["notification_id"] == notification], 20, "its dead letter")
    shop.nats.publish(f"evt.{TENANT}.ResendErrorEmailIntegrationEvent",
                      json.dumps(envelope("ResendErrorEmailIntegrationEvent", {"notificationId": notification, "requestedBy": "ops"})).encode(),
                      uuid.uuid4().hex, ENVELOPE)
    # Not `--wait sent`: until the resend is in history the notification has ended, as failed.
    wait_until(lambda: pipeline.status(notification)["status"] == "sent", 30, "the mail that was sent again")
    assert pipeline.postgres.query("SELECT requested_by FROM ingest.resends WHERE notification_id = %s", notification) == [("ops",)]
