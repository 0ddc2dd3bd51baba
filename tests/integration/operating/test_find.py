# SPDX-License-Identifier: Apache-2.0
"""`stentor find`: the notifications of an order, of an event, of a caller's correlation id and of a vendor's message (rows A08 "message correlation:
mail linked to originating order event", A10 "historical reference", A71, B19 and B21 "look-up by (vendor, vendor message id)", D21 "correlation_id
shared by all messages")."""
import json
import time
import uuid

import pytest

from tests.harness.orders import COMPLETED, PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.integration.sending.test_triggers import guest, new_type, put_trigger


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    pipeline = Pipeline({"STENTOR_SAGA_RETRY_TIMEOUT_MS": "600000"}, durable=True).start(SERVICES + ["order-saga"])
    yield pipeline
    pipeline.stop()


@pytest.fixture(name="shop", scope="module")
def _shop(pipeline):
    shop = Shop(pipeline).put_mails()
    yield shop
    shop.close()


def find(pipeline, *words):
    done = pipeline.run_cli("find", *words, "--json")
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def sent(pipeline, count, *words):
    """What is found, once so many of them are sent."""
    wait_until(lambda: [row["status"] for row in find(pipeline, *words)] == ["sent"] * count, 30, f"{count} sent of {words}")
    return find(pipeline, *words)


def test_the_mails_of_an_order_are_found_by_its_id_and_by_its_correlation_id(pipeline, shop):
    order = shop.order().check_out()
    order.wait_mails(PLACED)
    order.complete().wait_mails(PLACED, COMPLETED)
    for words in (("--order", order.id.upper()), ("--correlation", order.id)):
        rows = sent(pipeline, 2, *words)
        assert {row["correlation_id"] for row in rows} == {order.id} and len({row["id"] for row in rows}) == 2, "the order's (D21)"
        assert [row["accepted_at"] for row in rows] == sorted((row["accepted_at"] for row in rows), reverse=True), "the youngest first"
        assert all(row["sent_at"] >= row["rendered_at"] >= row["accepted_at"][:10] and row["source_event_type"] for row in rows), rows
    assert len(find(pipeline, "--order", order.id, "--limit", "1")) == 1
    lines = pipeline.cli("find", "--order", order.id).splitlines()
    assert len(lines) == 2 and all(line.startswith("ntf_") and "  sent " in line for line in lines), lines


def test_an_order_whose_correlation_id_is_another_is_found_by_both(pipeline, shop):
    correlation, order = str(uuid.uuid4()), shop.order()
    order.check_out(correlationId=correlation)
    order.wait_mails(PLACED)
    rows = sent(pipeline, 1, "--order", order.id)
    assert rows == find(pipeline, "--order", correlation) == find(pipeline, "--correlation", correlation) and rows[0]["correlation_id"] == correlation


def test_what_an_event_made_is_found_by_the_events_id(pipeline, shop):
    event_type, event, person = new_type("stay.confirmed"), f"stay-{uuid.uuid4().hex}", guest(correlationId="booking 17")
    put_trigger(pipeline, event_type, "mail")
    shop.nats.publish(f"evt.acme.{event_type}", json.dumps(person).encode(), event)
    row = sent(pipeline, 1, "--correlation", "booking 17")[0]
    assert row["source_event_type"] == event_type and find(pipeline, "--source-event", row["source_event_id"]) == [row]
    assert event in row["source_event_id"]


def test_what_a_recipient_got_is_found(pipeline):
    """A: "Customer Service: Historical reference for customer inquiries" (row A10)."""
    who = json.loads(pipeline.cli("recipient", "put", "--email", f"{uuid.uuid4().hex}@example.com", "--identity", f"user:{uuid.uuid4().hex}", "--json"))["id"]
    ids = [json.loads(pipeline.cli("send", "--recipient", who, "--template", "welcome", "--var", "name=Alice", "--json"))["id"] for _ in range(2)]
    rows = sent(pipeline, 2, "--recipient", who, "--since", "1h")
    assert [row["id"] for row in rows] == ids[::-1] and {row["recipient_id"] for row in rows} == {who}
    done = pipeline.run_cli("find", "--recipient", who)
    assert done.returncode == 2 and "--recipient needs --since" in done.stderr


def test_a_vendors_message_id_leads_to_the_notification(pipeline):
    """As it stands in the mail's header, and as history has it; with the vendor or without."""
    notification = pipeline.send()
    row = pipeline.status(notification, wait="sent")
    message_id = row["attempts"][0]["vendor_message_id"]
    header = str(pipeline.mailbox.for_notification(notification)[0]["Message-ID"])
    assert header == f"<{message_id}>"
    for words in ((message_id,), (header,), (message_id, "--vendor", "smtp")):
        assert [found["id"] for found in find(pipeline, "--vendor-message-id", *words)] == [notification], words
    assert find(pipeline, "--vendor-message-id", message_id, "--vendor", "sendgrid") == []


def test_what_is_not_there_is_said_and_what_is_asked_wrongly_is_named(pipeline):
    done = pipeline.run_cli("find", "--correlation", "nothing")
    assert done.returncode == 3 and done.stdout == "" and "has no notification with that --correlation" in done.stderr
    assert find(pipeline, "--correlation", pipeline_of_another_tenant(pipeline)) == []
    assert find(pipeline, "--correlation", "nothing", "--since", "1h") == []
    for words, said in (((), "say what to look for"), (("--order", "17"), "--order '17' is not an order's id"), (("--vendor", "smtp"), "say what"),
                        (("--digest", "dgw_1", "--copy-of", "ntf_1"), "give one of --digest and --copy-of"),
                        (("--correlation", ""), "--correlation: 1 to 512 bytes"), (("--digest", "dgw_1", "--vendor", "smtp"), "--vendor goes with")):
        done = pipeline.run_cli("find", *words)
        assert done.returncode == 2 and said in done.stderr, (words, done.stderr)


def pipeline_of_another_tenant(pipeline):
    """A correlation id that a notification of this tenant has; asked as another tenant it must not be found."""
    name = f"c-{uuid.uuid4().hex}"
    pipeline.send(correlation_id=name)
    wait_until(lambda: len(find(pipeline, "--correlation", name)) == 1, 30, "history")
    done = pipeline.run_cli("find", "--correlation", name, "--json", tenant="globex")
    assert done.returncode == 3 and json.loads(done.stdout) == []
    return f"{name}x"


def test_a_months_rows_are_found_by_the_index(pipeline):
    """50,000 notifications and their attempts: a look-up reads some pages of the months' tables."""
    pipeline.postgres.query("""
        INSERT INTO archiver.notifications (created_at, retention_class, id, tenant_id, channel, status, status_rank, correlation_id, source_event_id)
        SELECT now(), 'R', 'ntf_01M8PLANTED' || lpad(n::text, 11, '0') || 'R0000', 'acme', 'email', 'sent', 5, md5(n::text), md5('e' || n)
        FROM generate_series(1, 50000) n;
        INSERT INTO archiver.delivery_attempts (created_at, retention_class, notification_id, attempt_number, id, tenant_id, channel, vendor,
            vendor_message_id, outcome)
        SELECT created_at, 'R', id, 1, 'dat_' || id, 'acme', 'email', 'sendgrid', md5(id), 'accepted' FROM archiver.notifications
        WHERE id LIKE 'ntf_01M8PLANTED%'""", database="stentor")
    for table in ("notifications", "delivery_attempts"):
        pipeline.postgres.query(f"VACUUM ANALYZE archiver.{table}", database="stentor")
    month = time.strftime("y%Ym%m", time.gmtime())
    foreign = """ AND NOT starts_with(vendor_message_id COLLATE "C", notification_id || '@')"""
    for column, table, more in (("correlation_id", "notifications", ""), ("source_event_id", "notifications", ""),
                                ("vendor_message_id", "delivery_attempts", foreign)):
        rows = pipeline.postgres.query(f"EXPLAIN SELECT * FROM archiver.{table} WHERE {column} = ANY (ARRAY[md5('17')]){more}", database="stentor")
        plan = "\n".join(line for line, in rows)
        full = f"{table}_record_{month}"  # Postgres reads the empty months as they are
        assert f"on {full}_{column}_idx" in plan and f"Seq Scan on {full}" not in plan, plan
    names = pipeline.postgres.query("SELECT md5('17'), md5('e17'), md5('ntf_01M8PLANTED00000000017R0000')", database="stentor")[0]
    for flag, name in zip(("--correlation", "--source-event", "--vendor-message-id"), names):
        assert [row["id"] for row in find(pipeline, flag, name)] == ["ntf_01M8PLANTED00000000017R0000"], flag
