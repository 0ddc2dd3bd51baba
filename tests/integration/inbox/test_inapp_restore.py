# SPDX-License-Identifier: Apache-2.0
"""FEED has lost items that it had acknowledged, so the ledger calls them sent. The audit names them; its repair stores each again, once."""
import json
import shutil
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.integration.inbox.test_inapp import TEMPLATE, Client, new_user
from tests.integration.inbox.test_inapp_faults import DRIFT
from tests.integration.operating.test_audit import FAST, audit, counts, named, restore, settle
from tests.integration.sending.test_templates import locale, publish


@pytest.fixture
def pipeline():
    running = Pipeline(FAST, ack_wait_ms=3000, durable=True).start()
    publish(running, TEMPLATE, channel="inapp", category="transactional", locales=[locale("en", title="Hello {{name}}", text="x")])
    yield running
    running.stop()


def post(pipeline, user, count):
    """To ingest itself, so that it works while the gateway is away. Returns the ids once all are sent."""
    bodies = [{"to": user, "channel": "inapp", "template": TEMPLATE, "variables": {"name": "A"}} for _ in range(count)]
    answer = wait_until(lambda: pipeline.post(bodies, port=pipeline.ingest_port)[2].get("notifications"), 20, "the template reaching ingest")
    ids = {item["id"] for item in answer}
    wait_until(lambda: set(sent(pipeline)) >= ids, 30, "all are sent")
    return ids


def sent(pipeline):
    return [row[0] for row in pipeline.postgres.query("SELECT notification_id FROM dispatcher.ledger WHERE state = 'sent'")]


def stored(pipeline):
    return [row[0] for row in pipeline.postgres.query("SELECT notification_id FROM feed.items")]


def short_memory(pipeline, *streams):
    """The server drops the repeat of a record that it stored within the duplicate window."""
    admin = NatsClient(pipeline.nats.port)
    for stream in streams:
        config = {**admin.stream_info(stream)["config"], "duplicate_window": 100_000_000}
        assert "error" not in json.loads(admin.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
    admin.close()


def test_items_that_only_the_lost_end_of_feed_had_are_shown_once_after_the_repair(pipeline):
    user = new_user()
    kept = post(pipeline, user, 5)
    Client(pipeline, to=user).wait_items(5)
    wait_until(lambda: pipeline.history_count("status IN ('sent', 'delivered')") == 5, 30, "history")
    pipeline.nats.pause()
    copy = pipeline.folder / "copy"
    shutil.copytree(pipeline.nats.folder / "store", copy)
    pipeline.nats.pause(False)
    pipeline.services["gateway"].kill()  # what it has not folded is in FEED alone
    lost = post(pipeline, user, 20)
    assert set(stored(pipeline)) == kept
    restore(pipeline, copy)
    pipeline.services["gateway"].start()
    time.sleep(3)

    report = audit(pipeline, "--limit", 0, status=1)
    assert {notification for notification, source in named(report) if source == "FEED"} == lost
    repaired = audit(pipeline, "--limit", 0, "--repair", "--wait", 60)
    assert repaired["repaired"] == 20 and counts(repaired) == {"accepted": 25, "sent": 25}
    wait_until(lambda: len(stored(pipeline)) >= 25, 20, "the items")
    assert sorted(stored(pipeline)) == sorted(kept | lost) and sorted(sent(pipeline)) == sorted(kept | lost)
    shown = Client(pipeline, to=user).wait_items(25, "?limit=100")
    assert {item["id"] for item in shown} == kept | lost
    assert pipeline.postgres.query(DRIFT) == [(0,)]


def test_an_item_deleted_from_feed_is_named_and_its_repeat_leaves_what_the_recipient_did(pipeline):
    user = new_user()
    gone, whole = sorted(post(pipeline, user, 2))
    client = Client(pipeline, to=user)
    client.wait_items(2)
    client.do(f"/{gone}/read")
    wait_until(lambda: pipeline.history_count("status = 'opened'") == 1, 30, "that it was read")
    admin = NatsClient(pipeline.nats.port)
    # The item; that it was fetched and read name several, or is later.
    first = min(n for n in range(1, 9) if (message := admin.message("FEED", seq=n)) and gone.encode() in message[1])
    assert json.loads(admin.request("$JS.API.STREAM.MSG.DELETE.FEED", json.dumps({"seq": first}).encode()))["success"]
    admin.close()
    settle()
    report = audit(pipeline, status=1)
    assert named(report) == {(gone, "FEED")} and "--repair" in report["findings"][0]["detail"]

    short_memory(pipeline, "REQUEST_NORMAL", "RENDERED_NORMAL", "STATUS", "FEED")
    time.sleep(3)
    report = audit(pipeline, "--repair", "--wait", 20)
    assert report["repaired"] == 1 and counts(report) == {"accepted": 2, "sent": 2}
    time.sleep(1)
    shown = {item["id"]: item for item in client.items()}
    assert set(shown) == {gone, whole} and "read_at" in shown[gone] and "read_at" not in shown[whole]
    assert pipeline.postgres.query(DRIFT) == [(0,)]
