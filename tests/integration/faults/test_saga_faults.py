# SPDX-License-Identifier: Apache-2.0
"""The order saga where something was away, lost, spelled otherwise or sent again."""
import json
import time
import uuid

import pytest

from tests.harness.orders import CANCELLED, COMPLETED, PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.harness.protobuf import messages

SAGA = {"STENTOR_SAGA_SWEEP_MS": "200", "STENTOR_SAGA_SWEEP_AGE_MS": "1000", "STENTOR_SAGA_KPI_MS": "200",
        "STENTOR_SAGA_RETRY_TIMEOUT_MS": "600000"}


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
def short_window(shop):
    """JetStream forgets ids after 0.1 s, as it does after 120 s."""
    before = {}
    for stream in ("EVENTS", "DEFERRED"):
        before[stream] = shop.nats.stream_info(stream)["config"]
        shop.nats.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps({**before[stream], "duplicate_window": 100_000_000}).encode())
    yield
    for stream, config in before.items():
        shop.nats.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode())


@pytest.fixture
def long_window(shop):
    """JetStream drops the repeats of two minutes, which EVENTS by itself does not."""
    before = shop.nats.stream_info("EVENTS")["config"]
    shop.nats.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps({**before, "duplicate_window": 120_000_000_000}).encode())
    yield
    shop.nats.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(before).encode())


def metric(shop, name):
    return shop.pipeline.services["order-saga"].metric(name)


def test_a_command_that_waited_for_longer_than_a_day_is_not_late(shop):
    """As after an outage of 30 hours: the row is found by the sweep, and its mail goes out."""
    pipeline = shop.pipeline
    pipeline.services["ingest"].stop()
    order = shop.order().check_out().wait_state("Placed")
    order.sent()
    shop.nats.request("$JS.API.STREAM.PURGE.EVENTS", json.dumps({"filter": f"evt.{order.tenant}.PlaceOrder"}).encode())
    moved = shop.query("UPDATE order_saga.outbox_message SET sent_time = NULL, message_id = message_id || 'x',"
                       " enqueue_time = enqueue_time - interval '30 hours', happened_at = happened_at - interval '30 hours',"
                       " seen_at = seen_at - interval '30 hours' WHERE correlation_id = %s AND message_type = 'PlaceOrder' RETURNING 1", order.id)
    assert len(moved) == 1
    order.sent()
    pipeline.services["ingest"].start()
    order.wait_mails(PLACED)
    assert pipeline.services["ingest"].metric("stentor_ingest_trigger_late_total") == 0


# ---- dead letters sent again ----------------------------------------------------------------------------------------------


def letters(shop, words):
    done = shop.pipeline.run_cli("dlq", "list", "--stage", "order-saga", "--json")
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if words in line]


def resend(shop):
    """What JetStream still remembers is refused: it forgets a moment after its window is over."""
    def attempt():
        done = shop.pipeline.run_cli("dlq", "resend", "--stage", "order-saga", "--all")
        assert done.returncode == 0 or "still remembers" in done.stdout, done.stdout + done.stderr
        return done.returncode == 0
    wait_until(attempt, 20, "the letter being taken again")


def test_a_packed_event_can_be_taken_again_from_its_letter(shop, short_window):
    order = shop.order().check_out().wait_state("Placed")
    event = messages(shop.pipeline).StatusChanged(order_id=order.id, status="Completed", carrier="DHL")
    shop.query(f"ALTER TABLE order_saga.order_state ADD CONSTRAINT not_yet CHECK (order_id <> '{order.id}' OR current_state <> 'Completed')")
    order.say("StatusChanged", event.SerializeToString(), headers={"Content-Type": "application/protobuf"})
    wait_until(lambda: letters(shop, "not_yet"), 20, "the letter")
    shop.query("ALTER TABLE order_saga.order_state DROP CONSTRAINT not_yet")
    resend(shop)
    order.wait_state("Completed").wait_mails(PLACED, COMPLETED)


def test_a_letter_of_the_saga_sent_again_is_nothing_to_triggers(shop, short_window, tmp_path):
    """The event was for the trigger too, and it had its mail. A letter's event comes again for the saga alone."""
    pipeline = shop.pipeline
    trigger = {"event_type": "StatusChanged", "template": "order-cancelled", "channel": "email", "category": "transactional", "priority": "high",
               "resolver": "address:email"}
    (tmp_path / "trigger.json").write_text(json.dumps(trigger))
    done = pipeline.run_cli("trigger", "put", "status-changed", "--file", tmp_path / "trigger.json")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: shop.knows("status-changed"), 20, "the trigger reaching ingest")
    order = shop.order()
    bad = {"orderId": order.id, "order_id": order.id, "status": "Lost at sea", "email": order.email}
    order.say("StatusChanged", bad)
    order.wait_mails(CANCELLED)
    wait_until(lambda: letters(shop, "must be New, Placed"), 20, "the letter")
    events, mails = pipeline.services["ingest"].metric("stentor_ingest_triggered_total"), order.mails()
    shop.query("DELETE FROM ingest.idempotency_keys WHERE tenant_id = %s", order.tenant)  # as after 24 hours
    resend(shop)
    wait_until(lambda: len(letters(shop, "must be New, Placed")) >= 1, 20, "the letter again")
    shop.order().check_out().wait_state("Placed")  # the stream has gone on
    time.sleep(2)
    assert pipeline.services["ingest"].metric("stentor_ingest_triggered_total") == events + 1  # that order's own
    assert order.mails() == mails
    assert pipeline.run_cli("trigger", "delete", "status-changed").returncode == 0


def test_a_triggers_letter_sent_again_is_nothing_to_the_saga(shop):
    passed = metric(shop, "stentor_order_saga_passed_total")
    order = shop.order()
    letter = {"specversion": "1.0", "type": "UserCheckedOut", "source": "/stentor/acme", "id": "for-" + order.id, "stentortrigger": "welcome",
              "stentorat": "2026-01-01T00:00:00Z", "data": {"order_id": order.id, "email": order.email}}
    order.say("UserCheckedOut", letter)
    wait_until(lambda: metric(shop, "stentor_order_saga_passed_total") > passed, 20, "the letter being passed over")
    assert order.state() is None and order.inbox() == []


# ---- ids ------------------------------------------------------------------------------------------------------------------


def test_two_sources_may_count_their_events_alike(shop):
    number = uuid.uuid4().hex
    orders = [shop.order(), shop.order()]
    for order, source in zip(orders, ("/web", "/till")):
        event = {"specversion": "1.0", "type": "UserCheckedOut", "source": source, "id": number,
                 "data": {"order_id": order.id, "email": order.email, "total_money": 59.9}}
        shop.nats.publish(f"evt.{order.tenant}.UserCheckedOut", json.dumps(event).encode())
    for order in orders:
        order.wait_state("Placed")


@pytest.mark.parametrize("trace", ["\udcff\udcfe", "00-not-a-trace-01", "x" * 200])
def test_a_trace_that_is_none_does_not_kill_its_event(shop, trace):
    order = shop.order()
    order.say("UserCheckedOut", {"order_id": order.id, "email": order.email}, headers={"traceparent": trace})
    order.wait_state("Placed")


# ---- waits ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(pipeline):
    saga = pipeline.services["order-saga"]
    before = dict(saga.options)
    saga.stop()
    saga.options.update(STENTOR_SAGA_RETRY_TIMEOUT_MS="1000", STENTOR_SAGA_LOST_WAIT_MS="2000")
    saga.start()
    yield saga
    saga.stop()
    saga.options.clear()
    saga.options.update(before)
    saga.start()


def test_a_wait_that_is_lost_is_asked_for_again(shop, impatient, short_window):
    clock = shop.pipeline.services["digest-flusher"]
    clock.stop()
    order = shop.order().check_out().wait_state("Placed")
    assert order.sent() == ["PlaceOrder", "Deferred"]
    shop.nats.request("$JS.API.STREAM.PURGE.DEFERRED")
    clock.start()
    order.wait_state("Failed", 60)
    assert order.row("timeout_retry_count, wait_due") == (3, None)
    assert impatient.metric("stentor_order_saga_waits_repeated_total") >= 1
    order.wait_mails(PLACED)


# ---- what is reported -----------------------------------------------------------------------------------------------------------


def test_a_repeat_that_the_stream_drops_is_counted(shop, impatient, long_window):
    order = shop.order().check_out().wait_state("Failed", 60)
    assert order.sent().count("PlaceOrder") == 3
    wait_until(lambda: impatient.metric("stentor_order_saga_published_duplicates_total") >= 2, 20, "two that were dropped")


def test_a_clean_up_that_cannot_be_read_starts_nothing(shop):
    passed, passes = metric(shop, "stentor_order_saga_passed_total"), metric(shop, "stentor_order_saga_retention_passes_total")
    shop.order().say("CleanUpSentEmail", {"requested_by": 17})
    wait_until(lambda: metric(shop, "stentor_order_saga_passed_total") > passed, 20, "the event being passed over")
    assert metric(shop, "stentor_order_saga_retention_passes_total") == passes
