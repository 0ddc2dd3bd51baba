# SPDX-License-Identifier: Apache-2.0
"""Story 5b, the other outbox tables (documents A to D, as they stand): a bookshop's mails, events of two services, MassTransit's messages."""
import json
import uuid

from tests.harness.outbox import Application, prepare
from tests.harness.pipeline import TENANT
from tests.harness.processes import HOME, wait_until
from tests.harness.stories import envelope, new_address, story

FINANCE = (HOME / "tests" / "harness" / "stories" / "finance.sql").read_text()
ROWS = 25


def events_of(user, event, resolver="address:email"):
    """A trigger of the tenant for it."""
    user.pipeline.cli("trigger", "put", event.replace(".", "-"), "--event", event, "--template", "welcome", "--resolver", resolver)


def the_bookshops_mails(user, app):
    """A14 to A18: is_sent, sent_at, in the order of sequence_number."""
    to = new_address("many")
    app.sql("INSERT INTO outboxes (id, to_name, to_email, subject, body, is_sent, created_at)"
            " SELECT gen_random_uuid(), 'Reader', %s, 'Order ' || n, '<p>Thank you.</p>', false, now() FROM generate_series(1, %s) AS n", to, ROWS)
    wait_until(lambda: app.one("SELECT count(*) FROM outboxes WHERE is_sent AND sent_at >= created_at") == ROWS, 60, "all sent")
    assert sorted(mail["Subject"] for mail in user.mails(to)) == sorted(f"Order {n}" for n in range(1, ROWS + 1))


def the_tenant_services_events(user, app):
    """B43: published_at; the tenant stands in the headers."""
    to = new_address("student")
    app.sql("INSERT INTO outbox (id, aggregate_id, aggregate_type, event_type, payload, headers) VALUES (%s, 'course-1', 'course', 'course.opened', %s, %s)",
            "01HZ" + "0" * 22, json.dumps({"email": to, "name": "Laila"}), json.dumps({"tenant_id": TENANT}))
    assert user.mail(to)["Subject"] == "Welcome, Laila!"
    assert app.one("SELECT count(*) FROM outbox WHERE published_at IS NULL") == 0


def the_hotels_events(user, app):
    """C75: publish_attempts and last_error; a row that cannot be published says why."""
    insert = "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key) VALUES (%s, %s, %s, %s, '{}', 'stay-1')"
    to, event = new_address("guest"), "melmastoon.stay.begun.v1"
    app.sql(insert, "evt-1", "No Tenant!", event, json.dumps({"email": to, "name": "N"}))
    app.sql(insert, "evt-2", TENANT, event, json.dumps({"email": to, "name": "Gül"}))
    assert user.mail(to)["Subject"] == "Welcome, Gül!"
    rows = {row["id"]: row for row in wait_until(
        lambda: (lambda rows: all(row["publish_attempts"] == 1 for row in rows) and rows)(app.rows("SELECT * FROM notification.outbox")), 20, "both")}
    assert rows["evt-2"]["published_at"] and rows["evt-2"]["last_error"] is None
    assert rows["evt-1"]["published_at"] is None and "tenant" in rows["evt-1"]["last_error"]


def masstransits_messages(user, app):
    """A19, A20, D13: UserCheckedOutIntegrationEvent is a mail of the order; last_sequence_number and delivered are written."""
    outbox, order, to = str(uuid.uuid4()), str(uuid.uuid4()), new_address("customer")
    message = envelope("UserCheckedOutIntegrationEvent", {"orderId": order, "basketId": str(uuid.uuid4()), "fullName": "Alice Doe", "email": to,
                                                          "totalMoney": 59.90, "currency": "EUR"})
    app.sql("INSERT INTO outbox_state (outbox_id, lock_id, created) VALUES (%s, gen_random_uuid(), now())", outbox)
    app.sql("INSERT INTO outbox_message (message_id, message_type, body, content_type, enqueue_time, sent_time, outbox_id)"
            " VALUES (%s, %s, %s, 'application/vnd.masstransit+json', now(), now(), %s)",
            message["messageId"], message["messageType"][0], json.dumps(message), outbox)
    assert user.mail(to)["Subject"] == f"Your order {order}"
    state = "SELECT last_sequence_number, delivered IS NOT NULL FROM outbox_state"
    wait_until(lambda: app.sql(state) == [(app.one("SELECT max(sequence_number) FROM outbox_message"), True)], 20, "the state")


def test_outbox_tables():
    with story("order-saga") as user:
        prepare(user.pipeline)
        user.example("orders/put")
        events_of(user, "course.opened")
        events_of(user, "melmastoon.stay.begun.v1")
        user.settle()
        apps = [Application(user.pipeline, shape) for shape in ("bookworm", "tenant-service", "hotel")]
        apps.append(Application(user.pipeline, "bookworm-bus", tables=FINANCE))
        for app in apps:
            relay = app.relay().start(wait=False)
            user.pipeline.services[relay.name] = relay
        for stands in (the_bookshops_mails, the_tenant_services_events, the_hotels_events, masstransits_messages):
            stands(user, apps.pop(0))
