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


def metric(shop, name):
    return shop.pipeline.services["order-saga"].metric(name)


def test_a_command_that_waited_for_longer_than_a_day_is_not_late(shop):
    """As after an outage of 30 hours: the row is found by the sweep, and its mail goes out."""
    pipeline = shop.pipeline
    pipeline.services["ingest"].stop()
    order = shop.order().check_out().wait_state("Placed")
    order.sent()
    shop.nats.request("$JS.API.STREAM.PURGE.EVENTS", json.dumps({"filter": f"evt.{order.tenant}.PlaceOrder"}).encode())
    moved = shop.query("UPDATE saga.outbox_message SET sent_time = NULL, message_id = message_id || 'x',"
                       " enqueue_time = enqueue_time - interval '30 hours', happened_at = happened_at - interval '30 hours',"
                       " seen_at = seen_at - interval '30 hours' WHERE correlation_id = %s AND message_type = 'PlaceOrder' RETURNING 1", order.id)
    assert len(moved) == 1
    order.sent()
    pipeline.services["ingest"].start()
    order.wait_mails(PLACED)
    assert pipeline.services["ingest"].metric("stentor_ingest_trigger_late_total") == 0
