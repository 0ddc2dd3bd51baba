# SPDX-License-Identifier: Apache-2.0
"""Kills stentor-webhook at every one of its crash points, starts it again, and compares what is there at the end with an uninterrupted run:
deliveries, what each endpoint got, dead letters, events, the subscription that was turned off. The points are the binary's own
(common/base/crash.h): a new one is here by itself.

JetStream's duplicate window is 0.1 s instead of 120 s, so what is published again is stored again: the ledger alone has to drop it."""
import json
import subprocess

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.protobuf import messages
from tests.harness.webhooks import Endpoint, Subscriptions, Verifier

DIED = -9
OPTIONS = {"STENTOR_WEBHOOK_LADDER": "1", "STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_WEBHOOK_LEASE_MS": "1000"}
# point -> [(at which passing, the point at which it is killed before)]; else once, at the first passing.
HOW = {
    "bus.publishing": [(1, ""), (4, "")],
    "bus.stored": [(1, ""), (4, "")],
    "hook.place_dropped": [(1, ""), (2, "")],
    "hook.claimed": [(1, ""), (3, "")],
    "hook.answered": [(1, ""), (3, "")],
    "hook.recorded": [(1, ""), (3, "")],
    "guard.marked": [(1, "worker.unacked")],  # only what comes again is marked
    "guard.lifted": [(1, "worker.unacked")],
}


def cases():
    done = subprocess.run([BIN / "stentor-webhook", "--crash-points"], capture_output=True, text=True, timeout=20)
    points = [line.split("\t")[0] for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [pytest.param(point, number, after, id="-".join([point, str(number)] + ([after] if after else [])))
            for point in points for number, after in HOW.get(point, [(1, "")])]


CASES = cases()
pytestmark = pytest.mark.skipif(not CASES, reason="built without -DSTENTOR_CRASH_POINTS=ON")


class World:
    def __init__(self):
        self.pipeline = Pipeline(OPTIONS, ack_wait_ms=1000).start(["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook"])
        self.webhook = self.pipeline.services["webhook"]
        self.others = []
        self.verifier = Verifier()
        self.subscriptions = Subscriptions(self.pipeline)
        admin = NatsClient(self.pipeline.nats.port)
        for stream in ("HOOK", "DEFERRED", "DEAD", "EVENTS"):
            config = admin.stream_info(stream)["config"]
            answer = json.loads(admin.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps({**config, "duplicate_window": 100_000_000}).encode()))
            assert "error" not in answer, answer
        admin.close()

    def close_consumer(self):
        """As when no tenant has a subscription: a process that begins so does it at once."""
        self.webhook.kill()
        self.webhook.start()
        info = "$JS.API.CONSUMER.INFO.STATUS.webhook"
        wait_until(lambda: json.loads(self.subscriptions.client.request(info))["config"].get("filter_subject"), 20, "no status being read")

    def stop(self):
        self.pipeline.stop()
        self.verifier.close()


@pytest.fixture(scope="module")
def world():
    made = World()
    yield made
    made.stop()


class Run:
    """A notification, whose two statuses go to a plain endpoint, to one in order with a filter by category, to one that needs a second attempt,
    and to one that fails until it is turned off."""

    def __init__(self, world):
        self.world, subscriptions = world, world.subscriptions
        self.endpoints = {name: Endpoint(world.verifier) for name in ("plain", "ordered", "slow to take it", "failing")}
        put = {"plain": {}, "ordered": {"in_order": True, "categories": [subscriptions.m.CATEGORY_TRANSACTIONAL]}, "slow to take it": {"events": ["notification.sent"]},
               "failing": {"events": ["notification.sent"], "disable_after": 2}}
        self.ids = {name: subscriptions.put(endpoint.url, endpoint.secret, wait=False, **put[name]) for name, endpoint in self.endpoints.items()}
        for webhook in [world.webhook, *world.others]:
            if webhook.alive():
                wait_until(lambda one=webhook: one.metric("stentor_webhook_subscriptions") == len(subscriptions.entries), 20, "its subscriptions")
        # The first attempt is refused, however often it is made.
        self.endpoints["slow to take it"].decide = lambda request: (503 if self.rows("slow to take it")[0][3] == 1 else 200, {})
        self.endpoints["failing"].lasting = (500, {})
        self.letters_before = subscriptions.client.stream_info("DEAD")["state"]["last_seq"]

    def send(self):
        self.notification = self.world.pipeline.send()
        return self

    def rows(self, name):
        return self.world.pipeline.postgres.query(
            "SELECT event_type, state, attempt, turn, error, status_code, previous_event_id IS NOT NULL FROM webhooks.deliveries"
            " WHERE subscription_id = %s ORDER BY sequence", self.ids[name])

    def letters(self):
        """The failing one's; the same letter may be stored twice."""
        client, found = self.world.subscriptions.client, set()
        for sequence in range(self.letters_before + 1, client.stream_info("DEAD")["state"]["last_seq"] + 1):
            letter = messages(self.world.pipeline).DeadLetter.FromString(client.message("DEAD", seq=sequence)[1])
            if letter.stage == "webhook":
                found.add(letter.reason)
        return found

    def event(self, type):
        subject = f"evt.acme.notification.webhook.{type}.v1"
        found = self.world.subscriptions.client.message("EVENTS", last_by_subj=subject)
        return found is not None and self.ids["failing"].encode() in found[1]

    def wait_end(self):
        def ended():
            ends = {name: [row[1] for row in self.rows(name)] for name in self.ids}
            return ends == {"plain": ["delivered"] * 2, "ordered": ["delivered"] * 2, "slow to take it": ["delivered"], "failing": ["failed"]}
        wait_until(ended, 40, f"the end of each delivery: {[self.rows(name) for name in self.ids]}")
        wait_until(lambda: self.world.subscriptions.get(self.ids["failing"]).state == self.world.subscriptions.m.WEBHOOK_STATE_FAILING, 30, "FAILING")
        wait_until(lambda: self.letters(), 20, "the dead letter")
        wait_until(lambda: not self.world.webhook.metric("stentor_webhook_in_hand"), 20, "nothing in hand")
        return self

    def observe(self):
        """Everything but ids and times, and how often an endpoint got the same event."""
        return {
            "rows": {name: self.rows(name) for name in self.ids},
            "got": {name: sorted({request.status for request in endpoint.requests}) for name, endpoint in self.endpoints.items()},
            "refused": [name for name, endpoint in self.endpoints.items() if endpoint.refused],
            "one id for each event": all(len({request.id for request in endpoint.requests if request.status == status}) <= 1
                                         for endpoint in self.endpoints.values() for status in ("queued", "sent")),
            "letters": self.letters(),
        }

    def end(self):
        for name, endpoint in self.endpoints.items():
            self.world.subscriptions.remove(self.ids[name])
            endpoint.close()


@pytest.fixture(scope="module")
def uninterrupted(world):
    """Looked at, so that two equal runs are not two broken ones."""
    run = Run(world).send().wait_end()
    seen = run.observe()
    run.end()
    assert seen["rows"]["failing"] == [("notification.sent", "failed", 2, 2, "status 500", 500, False)]
    assert [row[1:5] for row in seen["rows"]["slow to take it"]] == [("delivered", 2, 2, None)]
    assert [row[-1] for row in seen["rows"]["ordered"]] == [False, True]
    assert seen["got"]["plain"] == seen["got"]["ordered"] == ["queued", "sent"]
    assert seen["refused"] == [] and seen["one id for each event"] and len(seen["letters"]) == 1
    # Waiting for an earlier event uses turns, as many as it takes.
    return without_turns(seen)


def without_turns(seen):
    rows = {name: [row[:3] + row[4:] for row in found] for name, found in seen["rows"].items()}
    return {**seen, "rows": rows}


def kill_at(world, point, number):
    world.webhook.options["STENTOR_CRASH_AT"] = f"{point}:{number}"
    world.webhook.start(wait=False)
    del world.webhook.options["STENTOR_CRASH_AT"]
    assert world.webhook.exit_status(30) == DIED and f"crash point '{point}' reached" in world.webhook.tail(), world.webhook.tail()


@pytest.mark.parametrize("point,number,after", CASES)
def test_killed_there_it_ends_as_if_nothing_had_happened(world, uninterrupted, point, number, after):
    if point == "hook.place_dropped":
        world.close_consumer()
    world.webhook.kill()
    run = Run(world).send()  # it finds it all waiting
    if after:
        kill_at(world, after, 1)
    kill_at(world, point, number)
    world.webhook.start()
    assert without_turns(run.wait_end().observe()) == uninterrupted
    if point == "hook.announced":
        assert run.event("subscription_failing")
    run.end()


def test_two_replicas_that_are_killed_by_turns_lose_nothing_and_keep_the_order(world):
    second = world.pipeline.service("webhook", "twin", **OPTIONS).start()
    world.others.append(second)
    run = Run(world)
    try:
        notifications = []
        for turn in range(4):
            notifications += [world.pipeline.send() for _ in range(3)]
            victim = [world.webhook, second][turn % 2]
            victim.kill()
            notifications += [world.pipeline.send() for _ in range(3)]
            victim.start()
        for name in ("plain", "ordered"):
            wait_until(lambda one=name: [row[1] for row in run.rows(one)] == ["delivered"] * 2 * len(notifications), 60, f"all of {name}")
        for notification in notifications:
            got = [request.status for request in run.endpoints["ordered"].of(notification)]
            assert sorted(got) == got and set(got) == {"queued", "sent"}  # what came twice came twice in order, too
    finally:
        world.others.clear()
        assert second.stop() == 0
        run.end()
