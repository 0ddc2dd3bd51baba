# SPDX-License-Identifier: Apache-2.0
"""The order saga through the whole pipeline: events of a shop in, commands, time-outs and three real mails out."""
import json
import time
import uuid

import pytest

from tests.harness.orders import CANCELLED, COMPLETED, PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.harness.protobuf import messages
from tests.integration.erasure.sealed_events import opened

WAIT_MS = 1500  # of a time-out: long enough that a slow machine does not fail an order that is to be completed
FAST = {"STENTOR_SAGA_SWEEP_MS": "200", "STENTOR_SAGA_SWEEP_AGE_MS": "1000", "STENTOR_SAGA_KPI_MS": "200"}
SAGA = {**FAST, "STENTOR_SAGA_RETRY_TIMEOUT_MS": "600000"}


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline(SAGA, ack_wait_ms=3000).start(SERVICES + ["order-saga"])
    yield pipeline
    pipeline.stop()


@pytest.fixture(scope="module")
def shop(pipeline):
    shop = Shop(pipeline).put_mails()
    yield shop
    shop.close()


@pytest.fixture
def impatient(pipeline):
    """The saga with a short wait, for as long as a test lasts."""
    yield from restarted(pipeline, STENTOR_SAGA_RETRY_TIMEOUT_MS=str(WAIT_MS))


def restarted(pipeline, **options):
    saga = pipeline.services["order-saga"]
    before = dict(saga.options)
    saga.stop()
    saga.options.update(options)
    saga.start()
    yield saga
    saga.stop()
    saga.options.clear()
    saga.options.update(before)
    saga.start()


def metric(pipeline, name):
    return pipeline.services["order-saga"].metric(name)


def letters(pipeline, reason):
    """Dead letters of the saga that say `reason`."""
    nats = Shop(pipeline).nats
    last = nats.stream_info("DEAD")["state"]["last_seq"]
    found = []
    for sequence in range(1, last + 1):
        message = nats.message("DEAD", seq=sequence)
        if message and message[0].startswith("ntf.dead.order-saga."):
            letter = messages(pipeline).DeadLetter.FromString(message[1])
            if reason in letter.reason:
                found.append(letter)
    nats.close()
    return found


# ---- whole lives ----------------------------------------------------------------------------------------------------------


def test_an_order_is_placed_and_completed(shop):
    order = shop.order().check_out().wait_state("Placed")
    order.wait_mails(PLACED)
    order.complete().wait_state("Completed")
    order.wait_mails(PLACED, COMPLETED)
    assert order.sent() == ["PlaceOrder", "Deferred", "CompleteOrder"]
    words = [mail.get_body(("plain",)).get_content() for mail in shop.pipeline.mailbox.mails(order.email) if order.email in str(mail["To"])]
    assert any("Dear Alice Doe" in text and "of 59.90 EUR" in text for text in words)
    assert any("at DHL as JD0146." in text for text in words)
    total, currency, retries, token, version, finished = order.row(
        "total_money::text, currency, timeout_retry_count, place_order_timeout_token_id, version, finished_at IS NOT NULL")
    assert (total, currency, retries, token, version, finished) == ("59.90", "EUR", 0, None, 2, True)


def _lines(pipeline, service, event):
    """The lines of a service's log with that event."""
    return [line for line in map(json.loads, pipeline.services[service].log.read_text().splitlines()) if line.get("event") == event]


def test_each_transition_and_each_row_of_the_outbox_is_logged(shop):
    """D41 of the Finance Database: "log all state transitions with correlation_id"; D42: "log outbox message processing with
    sequence_number"."""
    order = shop.order().check_out().wait_state("Placed")
    order.complete().wait_state("Completed")
    order.wait_mails(PLACED, COMPLETED)
    mine = [line for line in _lines(shop.pipeline, "order-saga", "an order changed its state") if line["correlation"] == order.id]
    assert [(line["from"], line["to"], line["tenant"]) for line in mine] == [("", "Placed", order.tenant), ("Placed", "Completed", order.tenant)]
    numbers = {row[0] for row in shop.query(
        "SELECT sequence_number FROM order_saga.outbox_message WHERE correlation_id = %s", order.id)}
    logged = {line["sequence_number"] for line in _lines(shop.pipeline, "order-saga", "an outbox row was published")}
    assert len(numbers) == 3 and numbers <= logged
    assert order.email not in shop.pipeline.services["order-saga"].log.read_text()


def test_an_order_is_placed_and_cancelled(shop):
    order = shop.order().check_out().wait_state("Placed")
    order.cancel(refundMoney=12.5).wait_state("Cancelled")
    order.wait_mails(PLACED, CANCELLED)
    mail = [mail for mail in shop.pipeline.mailbox.mails(order.email) if order.email in str(mail["To"]) and "cancelled" in str(mail["Subject"])][0]
    assert "is cancelled: out of stock. 12.50 EUR go back" in " ".join(mail.get_body(("plain",)).get_content().split())


def test_two_time_outs_and_then_completed(shop, impatient):
    order = shop.order().check_out().wait_state("Placed")
    wait_until(lambda: order.row("timeout_retry_count")[0] == 2, 30, "two time-outs")
    order.complete().wait_state("Completed")
    order.wait_mails(PLACED, COMPLETED)  # one confirmation, though the order was placed three times
    assert order.sent() == ["PlaceOrder", "Deferred"] * 3 + ["CompleteOrder"]
    ids = shop.query("SELECT DISTINCT message_id FROM order_saga.outbox_message WHERE correlation_id = %s AND message_type = 'PlaceOrder'", order.id)
    assert len(ids) == 1
    time.sleep(WAIT_MS / 1000 + 1)  # the third wait ends after the order
    wait_until(lambda: order.inbox()[-1][:3] == ("PlaceOrderTimeout", "stale", "Completed"), 20, "the stale time-out")
    assert order.state() == "Completed" and order.mails() == sorted([PLACED, COMPLETED])


def test_time_outs_until_it_has_failed(shop, impatient):
    before = metric(shop.pipeline, 'stentor_order_saga_finished_total{state="Failed"}')
    order = shop.order().check_out().wait_state("Failed", 40)
    retries, version, token = order.row("timeout_retry_count, version, place_order_timeout_token_id")
    assert (retries, version, token) == (3, 4, None)
    assert order.sent() == ["PlaceOrder", "Deferred"] * 3 + ["OrderFailed"]
    order.wait_mails(PLACED)
    assert metric(shop.pipeline, 'stentor_order_saga_finished_total{state="Failed"}') == before + 1
    order.complete()
    assert order.wait_inbox(5)[-1][:4] == ("StatusChanged", "conflict", "Failed", "Failed")
    time.sleep(1)
    assert order.state() == "Failed" and order.mails() == [PLACED]


def test_a_retried_place_order_outside_of_the_streams_window_makes_no_second_mail(shop, impatient):
    """JetStream's duplicate window is 0.1 s here, so every PlaceOrder is stored: the confirmation goes out once all the same."""
    admin = Shop(shop.pipeline).nats
    config = admin.stream_info("EVENTS")["config"]
    admin.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps({**config, "duplicate_window": 100_000_000}).encode())
    try:
        order = shop.order().check_out().wait_state("Failed", 40)
        order.wait_mails(PLACED)
        stored = 0
        for sequence in range(1, admin.stream_info("EVENTS")["state"]["last_seq"] + 1):
            message = admin.message("EVENTS", seq=sequence)
            place = message is not None and message[0].endswith(".PlaceOrder")
            stored += place and order.id.encode() in opened(shop.pipeline, message[0], {}, message[1])[1]
        assert stored == 3
    finally:
        admin.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(config).encode())
        admin.close()


# ---- what comes twice, late, or wrong -------------------------------------------------------------------------------------


def test_a_message_twice_is_consumed_once(shop):
    order = shop.order().check_out("once-" + uuid.uuid4().hex).wait_state("Placed")
    # The same event with another id of its own, and one that JetStream has forgotten (by its CloudEvent's id).
    data = {"specversion": "1.0", "type": "UserCheckedOut", "source": "/shop", "id": "ce-" + order.id,
            "data": {"order_id": order.id, "email": order.email, "total_money": 59.9}}
    for _ in range(3):
        shop.nats.publish(f"evt.{order.tenant}.UserCheckedOut", json.dumps(data).encode())
    wait_until(lambda: sum(row[4] for row in order.inbox()) == 4, 20, "all of them")
    assert [row[1:] for row in order.inbox()] == [("applied", "", "Placed", 1), ("duplicate", "Placed", "Placed", 3)]
    order.wait_mails(PLACED)
    assert order.sent() == ["PlaceOrder", "Deferred"]


def test_what_contradicts_is_a_conflict_and_changes_nothing(shop):
    before = metric(shop.pipeline, 'stentor_order_saga_messages_total{verdict="conflict"}')
    order = shop.order().check_out().complete().wait_state("Completed").cancel()
    order.wait_inbox(3)
    order.complete()
    assert [row[:4] for row in order.wait_inbox(4)] == [
        ("UserCheckedOut", "applied", "", "Placed"), ("StatusChanged", "applied", "Placed", "Completed"),
        ("StatusChanged", "conflict", "Completed", "Completed"), ("StatusChanged", "duplicate", "Completed", "Completed")]
    order.wait_mails(PLACED, COMPLETED)
    assert order.state() == "Completed"
    assert metric(shop.pipeline, 'stentor_order_saga_messages_total{verdict="conflict"}') == before + 1


def test_an_event_before_its_order_is_kept_and_applied_in_order(shop):
    order = shop.order().cancel(refundMoney="1.00")
    assert [row[:4] for row in order.wait_inbox(1)] == [("StatusChanged", "unmatched", "", "")]
    order.complete()
    order.wait_inbox(2)
    wait_until(lambda: metric(shop.pipeline, "stentor_order_saga_unmatched") == 2, 20, "the gauge")
    order.check_out().wait_state("Cancelled")
    # In the stream's order the cancellation came first.
    assert [row[:4] for row in order.wait_inbox(3)] == [
        ("StatusChanged", "applied", "Placed", "Cancelled"), ("StatusChanged", "conflict", "Cancelled", "Cancelled"),
        ("UserCheckedOut", "applied", "", "Placed")]
    order.wait_mails(PLACED, CANCELLED)
    assert not shop.query("SELECT 1 FROM order_saga.inbox_state WHERE event IS NOT NULL AND correlation_id = %s", order.id)
    wait_until(lambda: metric(shop.pipeline, "stentor_order_saga_unmatched") == 0, 20, "the gauge")


@pytest.mark.parametrize("event,data,words", [
    ("UserCheckedOut", {"email": "a@example.com"}, "field 'order_id': is required"),
    ("UserCheckedOut", {"order_id": "17", "email": "a@example.com"}, "field 'order_id': must be a UUID"),
    ("UserCheckedOut", {"order_id": str(uuid.uuid4()), "email": "no-at-sign"}, "field 'email'"),
    ("UserCheckedOut", {"order_id": str(uuid.uuid4()), "email": "a@example.com", "total_money": "12,50"}, "field 'total_money'"),
    ("StatusChanged", {"order_id": str(uuid.uuid4()), "status": "Teleported"}, "field 'status'"),
    ("PlaceOrderTimeout", {"correlation_id": str(uuid.uuid4())}, "field 'token_id'"),
    ("StatusChanged", b"{", "not JSON"),
])
def test_bad_input_is_buried_with_its_field(shop, event, data, words):
    before = len(letters(shop.pipeline, words))
    good = shop.order()
    good.say(event, data)
    good.check_out().wait_state("Placed")  # the others go on
    wait_until(lambda: len(letters(shop.pipeline, words)) == before + 1, 20, words)


def test_an_event_that_postgres_refuses_is_buried_alone(shop):
    """No event can do that; a rule that an operator adds to the table can. Its dead letter can be sent again."""
    pipeline = shop.pipeline
    saga = pipeline.services["order-saga"]
    saga.stop()
    orders = [shop.order() for _ in range(20)]
    refused = orders[7]
    shop.query(f"ALTER TABLE order_saga.order_state ADD CONSTRAINT not_this_one CHECK (order_id <> '{refused.id}')")
    proto = messages(pipeline)
    for order in orders:  # packed: its letter has no header that says so
        event = proto.UserCheckedOut(order_id=order.id, email=order.email, total_micros=19_990_000)
        order.say("UserCheckedOut", event.SerializeToString(), headers={"Content-Type": "application/protobuf"})
    saga.start()
    for order in orders:
        if order is not refused:
            order.wait_state("Placed")
    wait_until(lambda: letters(pipeline, "not_this_one"), 20, "the one being buried")
    assert len(letters(pipeline, "not_this_one")) == 1 and refused.state() is None
    shop.query("ALTER TABLE order_saga.order_state DROP CONSTRAINT not_this_one")
    letter = letters(pipeline, "not_this_one")[0]
    assert letter.stage == "order-saga" and refused.id.encode() in opened(pipeline, letter.subject, {}, letter.payload)[1]
    shop.nats.publish(letter.subject, letter.payload, "resent-" + refused.id)
    refused.wait_state("Placed")


def test_what_is_not_the_sagas_is_passed_over(shop):
    before = metric(shop.pipeline, "stentor_order_saga_passed_total")
    order = shop.order().say("StatusChanged", {"status": "New"}).say("invoice.created", {"a": 1}).say("UserCheckedOut.v2", b"\x00")
    wait_until(lambda: metric(shop.pipeline, "stentor_order_saga_passed_total") >= before + 3, 20, "the events passed over")
    assert order.state() is None


def test_tenants_do_not_see_each_others_orders(shop):
    ours = shop.order().check_out().wait_state("Placed")
    theirs = shop.order(tenant="umbrella")
    theirs.id = ours.id
    theirs.complete()
    assert [row[1] for row in theirs.wait_inbox(1)] == ["unmatched"]
    assert ours.state() == "Placed"
    for tenant, seen in (("umbrella", 0), (ours.tenant, 1)):
        count = shop.pipeline.postgres.query("SELECT count(*) FROM order_saga.order_state WHERE correlation_id = %s", ours.id,
                                             role="stentor_order_saga", tenant=tenant)
        assert count == [(seen,)]


# ---- many, and several of them --------------------------------------------------------------------------------------------


def test_two_replicas_share_the_orders(shop):
    pipeline = shop.pipeline
    second = pipeline.service("order-saga", "b", **SAGA).start()
    try:
        orders = [shop.order(email=f"many{n}@example.com") for n in range(150)]
        for order in orders:
            order.complete("early-" + order.id)  # every third before its order
            order.check_out("out-" + order.id)
            order.cancel("late-" + order.id)
        wait_until(lambda: shop.query("SELECT count(*) FROM order_saga.inbox_state WHERE message_id LIKE 'late-%%' AND verdict <> 'unmatched'")[0][0]
                   == len(orders), 60, "all of them being decided")
        ends = shop.query("SELECT current_state, version, count(*) FROM order_saga.order_state WHERE correlation_id = ANY (%s::uuid[]) GROUP BY 1, 2",
                          [order.id for order in orders])
        assert {(state, version) for state, version, _ in ends} <= {("Completed", 2), ("Cancelled", 2)}, ends
        assert sum(count for _, _, count in ends) == len(orders)
        assert second.metric('stentor_order_saga_messages_total{verdict="applied"}') > 0
        # A command of each kind, once.
        counts = shop.query("SELECT message_type, count(*), count(DISTINCT message_id) FROM order_saga.outbox_message"
                            " WHERE correlation_id = ANY (%s::uuid[]) GROUP BY 1", [order.id for order in orders])
        assert all(count == ids for _, count, ids in counts)
        assert {name: count for name, count, _ in counts}["PlaceOrder"] == len(orders)
        assert not shop.query("SELECT 1 FROM order_saga.inbox_state WHERE verdict = 'unmatched' AND correlation_id = ANY (%s::uuid[])",
                              [order.id for order in orders])
    finally:
        second.stop()


def test_postgres_away_and_back_loses_nothing(shop):
    pipeline = shop.pipeline
    pipeline.postgres.stop()
    order = shop.order().check_out()
    time.sleep(1)
    assert metric(pipeline, "stentor_order_saga_passed_total") >= 0  # it lives
    pipeline.postgres.start()
    order.wait_state("Placed", 60)
    order.wait_mails(PLACED, seconds=60)
    wait_until(lambda: all(service.ready() for service in pipeline.services.values()), 60, "everything being ready again")


# ---- the person, and what is old ------------------------------------------------------------------------------------------


def test_who_ordered_is_unreadable_once_their_key_is_destroyed(shop):
    pipeline = shop.pipeline
    order = shop.order().check_out().wait_state("Placed")
    order.wait_mails(PLACED)
    order.sent()
    dump = shop.query("SELECT encode(person, 'escape'), email_hash::text FROM order_saga.order_state WHERE correlation_id = %s", order.id)
    assert order.email not in str(dump)
    subject = shop.query("SELECT key FROM (SELECT substring(person from 3 for 16) AS key FROM order_saga.order_state WHERE correlation_id = %s) AS s",
                         order.id)[0][0]
    erased = shop.query("UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now() WHERE subject = %s RETURNING 1", bytes(subject))
    assert len(erased) == 1  # ingest and the saga seal under the same key
    for _ in restarted(pipeline):  # the cache of keys is a minute old at most
        order.complete().wait_state("Completed")
        wait_until(lambda: metric(pipeline, "stentor_order_saga_withheld_total") == 1, 20, "the command being withheld")
    withheld = shop.query("SELECT message_type, withheld, body FROM order_saga.outbox_message WHERE correlation_id = %s AND withheld IS NOT NULL", order.id)
    assert [(name, why, bytes(body)) for name, why, body in withheld] == [("CompleteOrder", "the recipient is erased", b"")]
    assert order.mails() == [PLACED]
    again = shop.order(email=order.email).check_out().wait_state("Placed")  # who is here again has a new key
    wait_until(lambda: len(again.mails()) == 2, 30, "the new order's confirmation")


def age(shop, table, column, days, order):
    shop.query(f"UPDATE order_saga.{table} SET {column} = {column} - interval '{days} days' WHERE correlation_id = %s", order.id)


def test_the_retention_is_run_by_the_clock(shop):
    old, young = [shop.order().check_out().complete().wait_state("Completed") for _ in range(2)]
    waiting = shop.order().cancel()
    waiting.wait_inbox(1)
    for order in (old, young):
        order.sent()
    # Published in clear, they come once more, sealed, within seconds: not after the inbox has forgotten them.
    wait_until(lambda: shop.query("SELECT count(*) FROM ingest.clear_events")[0][0] == 0, 30, "the sealed copies")
    age(shop, "outbox_message", "sent_time", 8, old)
    age(shop, "inbox_state", "consumed", 31, old)
    age(shop, "inbox_state", "received", 31, waiting)
    age(shop, "order_state", "finished_at", 31, old)
    for saga in restarted(shop.pipeline, STENTOR_SAGA_CLEAN_UP_S="2"):
        wait_until(lambda: old.row(table="order_archive"), 30, "the old order being archived")
        wait_until(lambda: saga.metric("stentor_order_saga_retention_passes_total") >= 2, 30, "another pass being started")
        assert saga.metric('stentor_order_saga_retention_rows_total{step="archived"}') == 1
        assert '"msg":"retention pass completed"' in saga.tail(200) or "retention pass completed" in saga.tail(200)
        assert old.state() is None and old.inbox() == [] and waiting.inbox() == [] and old.sent() == []
        assert young.state() == "Completed" and len(young.inbox()) == 2 and len(young.sent()) == 3
        old.check_out()  # so late that even the inbox has forgotten it
        assert [row[1:4] for row in old.wait_inbox(1)] == [("conflict", "Completed", "Completed")]
        moves = shop.query("SELECT event_type, coalesce(from_state, ''), to_state FROM order_saga.order_transitions WHERE correlation_id = %s"
                           " ORDER BY sequence", old.id)
        assert moves == [("UserCheckedOut", "", "Placed"), ("StatusChanged", "Placed", "Completed")]
        assert not shop.query("SELECT 1 FROM order_saga.order_transitions WHERE correlation_id = %s", young.id)
        shop.query("SELECT order_saga.make_months(ARRAY[now() - interval '2558 days'])")
        for table in ("order_transitions", "order_archive"):
            age(shop, table, "finished_at", 2557 - 31 + 1, old)
        wait_until(lambda: old.row(table="order_archive") is None, 30, "the order being dropped after seven years")
        assert not shop.query("SELECT 1 FROM order_saga.order_transitions WHERE correlation_id = %s", old.id)
        assert young.state() == "Completed"


def test_the_management_event_cleans_up_for_its_tenant(shop):
    soon = "SELECT FROM digest_flusher.due_work WHERE subject = 'evt.platform.CleanUpOrders' AND due_at < now() + interval '90 seconds'"
    wait_until(lambda: not shop.query(soon), 30, "the passes that another test's short period asked for being over")
    ours, theirs = shop.order(), shop.order(tenant="umbrella")
    for order in (ours, theirs):
        order.check_out().complete().wait_state("Completed")
        wait_until(lambda o=order: len(o.sent()) == 3, 20, "all of an order's messages being sent")
        age(shop, "outbox_message", "sent_time", 8, order)
    ours.say("CleanUpSentEmail", {"requested_by": "ops"})
    wait_until(lambda: ours.sent() == [], 45, "the tenant's outbox being cleaned up")
    assert len(theirs.sent()) == 3
    ours.say("CleanUpSentEmail", {}, None)
    shop.order(tenant="platform").say("CleanUpSentEmail", {})
    wait_until(lambda: theirs.sent() == [], 45, "all of them being cleaned up")


def test_the_key_figures_of_d(shop):
    pipeline = shop.pipeline
    for saga in restarted(pipeline, STENTOR_SAGA_STALLED_S="1"):
        order = shop.order().check_out().wait_state("Placed")
        wait_until(lambda: saga.metric("stentor_order_saga_stalled") >= 1, 20, "the order being stalled")
        assert saga.metric("stentor_order_saga_active") >= saga.metric("stentor_order_saga_stalled")
        assert "orders are stalled" in saga.tail(200)
        assert saga.ready()  # it is the orders that are stalled, not the service
        order.complete().wait_state("Completed").sent()
        assert saga.metric("stentor_order_saga_started_total") == 1
        assert saga.metric('stentor_order_saga_finished_total{state="Completed"}') == 1
        assert saga.metric("stentor_order_saga_duration_seconds_count") == 1
        assert saga.metric("stentor_order_saga_outbox_seconds_count") == 3
        wait_until(lambda: saga.metric("stentor_order_saga_outbox_backlog") == 0, 20, "the backlog being empty")
