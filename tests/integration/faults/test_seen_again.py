# SPDX-License-Identifier: Apache-2.0
"""A request that is delivered again after its mail was sent changes nothing, whatever became of it since."""
import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.faults.test_crash_points import start_armed, wait_death

SHORT_NS = 100_000_000
AHEAD_S = 8


@pytest.fixture(scope="module")
def running():
    running = Pipeline(ack_wait_ms=2000, durable=True).start(services=["ingest", "renderer", "dispatcher", "archiver"])
    client = NatsClient(running.nats.port)
    for stream in ("RENDERED_NORMAL", "STATUS"):  # what JetStream would hide for 120 s, the stages have to bear
        config = {**client.stream_info(stream)["config"], "duplicate_window": SHORT_NS}
        assert "error" not in json.loads(client.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
    client.close()
    yield running
    running.stop()


def all_acked(nats, stream, consumer):
    info = json.loads(nats.request(f"$JS.API.CONSUMER.INFO.{stream}.{consumer}"))
    return info["ack_floor"]["stream_seq"] == nats.stream_info(stream)["state"]["last_seq"]


def consumer_of(nats, stream):
    return next(name for name in json.loads(nats.request(f"$JS.API.CONSUMER.NAMES.{stream}"))["consumers"]
                if "renderer" in name or "dispatcher" in name)


def reported(running, nats, notification):
    proto = messages(running)
    last = nats.stream_info("STATUS")["state"]["last_seq"]
    events = [proto.NotificationStatus.FromString(found[1]) for found in (nats.message("STATUS", seq=at) for at in range(1, last + 1)) if found]
    return {proto.Status.Name(event.status) for event in events if event.meta.notification_id == notification}


def test_what_was_sent_and_has_expired_since_stays_sent(running):
    nats = NatsClient(running.nats.port)
    renderer = running.services["renderer"]
    assert renderer.stop() == 0
    start_armed(renderer, "worker.unacked")
    expires = datetime.now(timezone.utc) + timedelta(seconds=AHEAD_S)
    notification = running.send(to="late@example.com", expires_at=expires.isoformat())
    wait_death(renderer, "worker.unacked")
    assert running.status(notification, wait="sent")["status"] == "sent"
    time.sleep(max(0.0, expires.timestamp() - time.time()) + 0.2)
    stored = nats.stream_info("RENDERED_NORMAL")["state"]["last_seq"]
    renderer.start()
    wait_until(lambda: all_acked(nats, "REQUEST_NORMAL", consumer_of(nats, "REQUEST_NORMAL")), 20, "the request's ack")
    assert nats.stream_info("RENDERED_NORMAL")["state"]["last_seq"] == stored + 1  # it was rendered again: the ledger decides
    wait_until(lambda: all_acked(nats, "RENDERED_NORMAL", consumer_of(nats, "RENDERED_NORMAL")), 20, "the dispatcher's ack")
    assert reported(running, nats, notification) == {"STATUS_QUEUED", "STATUS_SENT"}
    assert running.status(notification)["status"] == "sent"
    assert len(running.mailbox.for_notification(notification)) == 1
    nats.close()


def test_what_expired_before_it_was_rendered_fails(running):
    renderer = running.services["renderer"]
    assert renderer.stop() == 0
    expires = datetime.now(timezone.utc) + timedelta(seconds=2)
    notification = running.send(to="never@example.com", expires_at=expires.isoformat())
    time.sleep(max(0.0, expires.timestamp() - time.time()) + 0.2)
    renderer.start()
    row = running.status(notification, wait="failed")
    assert (row["status"], row["reason_code"]) == ("failed", "expired")
    assert running.mailbox.for_notification(notification) == []


def test_what_was_sent_to_an_address_that_is_suppressed_since_stays_sent(running):
    nats = NatsClient(running.nats.port)
    renderer = running.services["renderer"]
    assert renderer.stop() == 0
    start_armed(renderer, "worker.unacked")
    notification = running.send(to="gone@example.com")
    wait_death(renderer, "worker.unacked")
    assert running.status(notification, wait="sent")["status"] == "sent"
    assert running.post({"address": "gone@example.com", "reason": "hard_bounce"}, path="/v1/suppressions")[0] == 201
    time.sleep(6)  # the redelivery without a reader makes the server count from the start
    renderer.start()
    wait_until(lambda: all_acked(nats, "REQUEST_NORMAL", consumer_of(nats, "REQUEST_NORMAL")), 20, "the request's ack")
    wait_until(lambda: all_acked(nats, "RENDERED_NORMAL", consumer_of(nats, "RENDERED_NORMAL")), 20, "the dispatcher's ack")
    assert reported(running, nats, notification) == {"STATUS_QUEUED", "STATUS_SENT"}
    assert running.status(notification)["status"] == "sent"
    assert len(running.mailbox.for_notification(notification)) == 1
    nats.close()
