# SPDX-License-Identifier: Apache-2.0
"""In order, and the event before is lost: a store of NATS was restored, or DEFERRED was emptied by hand. Its row says that it was never posted, so
those behind it wait; after STENTOR_WEBHOOK_GONE_S it ends as `gone` and they go on. What is only slow is never ended."""
import base64
import hashlib
import json

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.webhooks import Endpoint, Subscriptions, Verifier

GONE_S = 10
OPTIONS = {"STENTOR_WEBHOOK_LADDER": "1,1,1", "STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_WEBHOOK_GONE_S": str(GONE_S)}
FAILED = "notification.webhook.delivery_failed.v1"


class World:
    def __init__(self):
        self.pipeline = Pipeline(OPTIONS).start(["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook"])
        self.webhook, self.flusher = self.pipeline.services["webhook"], self.pipeline.services["digest-flusher"]
        self.verifier = Verifier()
        self.subscriptions = Subscriptions(self.pipeline)
        self.client, self.m = self.subscriptions.client, self.subscriptions.m
        self.query = self.pipeline.postgres.query

    def gone(self):
        return self.webhook.metric("stentor_webhook_gone_total")

    def deferred(self, notification):
        """What waits for that notification's posts in DEFERRED: {sequence there: WebhookDelivery}, as far as digest-flusher has not read it."""
        state, found = self.client.stream_info("DEFERRED")["state"], {}
        for sequence in range(max(state["first_seq"], 1), state["last_seq"] + 1):
            stored = self.client.message("DEFERRED", seq=sequence)
            work = self.m.Deferred.FromString(stored[1]).webhook if stored else None
            if work and work.meta.notification_id == notification:
                found[sequence] = work
        return found

    def failed_event(self):
        return self.client.message("EVENTS", last_by_subj=f"evt.acme.{FAILED}")

    def replay(self, delivery):
        return self.pipeline.run_cli("webhook", "replay", delivery)

    def log_lines(self, delivery):
        return [line for line in self.webhook.log.read_text().splitlines() if "its event is gone from the stream" in line and delivery in line]

    def stop(self):
        self.pipeline.stop()
        self.verifier.close()


@pytest.fixture(scope="module")
def world():
    made = World()
    yield made
    made.stop()


@pytest.fixture
def ordered(world):
    endpoint = Endpoint(world.verifier)
    id = world.subscriptions.put(endpoint.url, endpoint.secret, in_order=True)
    yield endpoint, id
    world.subscriptions.remove(id)
    endpoint.close()


def delivery_id(subscription, event_id):
    """As the match derives it (common/codec/hash.h)."""
    parts = [part.encode() for part in ("webhook", subscription, event_id)]
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()
    return "whd_" + base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def statuses(endpoint, notification):
    return [request.status for request in endpoint.of(notification)]


def test_a_row_whose_event_was_lost_before_it_was_posted_ends_and_those_behind_it_go_on(world, ordered):
    endpoint, id = ordered
    before, event_before = world.gone(), world.failed_event()
    assert world.webhook.stop() == 0
    notification = world.pipeline.send()
    # The row as the match made it, of a status that the restored store does not have.
    event_id = notification[-22:]
    lost = delivery_id(id, event_id)
    world.query(
        "INSERT INTO webhooks.deliveries (id, tenant_id, subscription_id, event_id, event_type, notification_id, sequence, payload, ordered, created_at,"
        " state, turn, attempt) VALUES (%s, 'acme', %s, %s, 'notification.accepted', %s, 1, '{}', true, now() - interval '1 hour', 'queued', 1, 0)",
        lost, id, event_id, notification)
    world.webhook.start()
    wait_until(lambda: statuses(endpoint, notification) == ["queued", "sent"], 90, "those behind it, in their order")
    row = world.subscriptions.row(id, notification, state="failed")
    assert (row["state"], row["error"], row["attempt"], row["status_code"]) == ("failed", "gone", 0, None)
    assert world.gone() == before + 1 and len(world.log_lines(lost)) == 1
    wait_until(lambda: world.failed_event() != event_before, 20, "the event that a trigger of the tenant gets")
    letters = wait_until(lambda: world.pipeline.cli("dlq", "list", "--stage", "webhook", "--json"), 20, "the dead letter")
    assert "its event is gone from the stream" in letters and notification in letters
    refused = world.replay(lost)
    assert refused.returncode == 1 and "gone from the stream before it was posted" in refused.stderr, refused.stderr
    assert json.loads(world.pipeline.cli("webhook", "recover", id, "--since", "2h", "--json")) == {"replayed": 0}


def test_a_retry_that_was_lost_ends_and_is_posted_when_it_comes_after_all(world, ordered):
    endpoint, id = ordered
    before = world.gone()
    endpoint.answers = [(500, {})]
    assert world.flusher.stop() == 0
    notification = world.pipeline.send()
    waiting = world.subscriptions.row(id, notification, state="waiting")
    assert waiting["event_type"] == "notification.queued"
    kept = wait_until(lambda: (found := world.deferred(notification)) and {w.type for w in found.values()} == {"notification.queued", "notification.sent"} and found,
                      30, "its retry and the one that waits for it")
    lost = {sequence: work for sequence, work in kept.items() if work.type == "notification.queued"}
    for sequence in lost:
        answer = json.loads(world.client.request("$JS.API.STREAM.MSG.DELETE.DEFERRED", json.dumps({"seq": sequence}).encode()))
        assert answer.get("success"), answer
    world.flusher.start()
    wait_until(lambda: statuses(endpoint, notification) == ["queued", "sent"], 90, "the one behind it")
    row = world.subscriptions.row(id, notification, state="failed")
    assert (row["state"], row["error"], row["attempt"]) == ("failed", "gone", 1) and world.gone() == before + 1
    # A backup that is put back later, or an operator: late, and once.
    (work,) = lost.values()
    for again in range(2):
        world.client.publish("ntf.hook.acme", work.SerializeToString(), event_id=f"late{again}{waiting['id'][-16:]}")
    wait_until(lambda: statuses(endpoint, notification) == ["queued", "sent", "queued"], 30, "the one that came after all")
    assert world.subscriptions.row(id, notification, event_type="notification.queued", state="delivered")["attempt"] == 2
    wait_until(lambda: not world.webhook.metric("stentor_webhook_in_hand"), 20, "nothing in hand")
    assert len(endpoint.of(notification)) == 3
    # It has its whole text, so it can be replayed like any other.
    assert world.replay(waiting["id"]).returncode == 0
    wait_until(lambda: len(endpoint.of(notification)) == 4, 30, "the replay")


def test_what_waits_for_a_process_that_stands_still_is_not_ended(world, ordered):
    """Its retry is in DEFERRED, and digest-flusher away for longer than GONE_S: the one behind it does not come round either."""
    endpoint, id = ordered
    before = world.gone()
    endpoint.answers = [(500, {})]
    assert world.flusher.stop() == 0
    notification = world.pipeline.send()
    world.subscriptions.row(id, notification, state="waiting")
    wait_until(lambda: len({work.type for work in world.deferred(notification).values()}) == 2, 30, "its retry and the one that waits for it")
    overdue = "SELECT 1 FROM webhooks.deliveries WHERE notification_id = %s AND state = 'waiting' AND next_attempt_at < now() - %s * interval '1 second'"
    wait_until(lambda: world.query(overdue, notification, GONE_S + 1), 60, "longer than that")
    world.flusher.start()
    wait_until(lambda: statuses(endpoint, notification) == ["queued", "queued", "sent"], 60, "all of them, in their order")
    assert world.gone() == before


def test_what_circles_at_a_full_endpoint_gives_signs_and_is_not_ended(world):
    """At one post a second the last ones come round for longer than GONE_S, each before or behind the other of its notification."""
    before = world.gone()
    endpoint = Endpoint(world.verifier)
    id = world.subscriptions.put(endpoint.url, endpoint.secret, in_order=True, rate_per_s=1, in_flight=1)
    notifications = [world.pipeline.send() for _ in range(8)]
    signs = "SELECT count(*) FROM webhooks.deliveries WHERE subscription_id = %s AND seen_at > created_at + %s * interval '1 second'"
    wait_until(lambda: world.query(signs, id, GONE_S // 3)[0][0] > 0, 60, "signs of those that were put back")
    for notification in notifications:
        wait_until(lambda one=notification: statuses(endpoint, one) == ["queued", "sent"], 90, "both of them, in their order")
    assert world.gone() == before
    world.subscriptions.remove(id)
    endpoint.close()
