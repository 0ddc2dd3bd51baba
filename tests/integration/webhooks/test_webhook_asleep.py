# SPDX-License-Identifier: Apache-2.0
"""While no tenant has a webhook, no status is read for one; the first subscription gets each status that was stored since it was made."""
import json
import threading

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.webhooks import Endpoint, Subscriptions, Verifier

CLOSED = "ntf.status.-.none.none"


class World:
    def __init__(self):
        self.pipeline = Pipeline({"STENTOR_WEBHOOK_ADDRESSES": "loopback"}).start(["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook"])
        self.client = NatsClient(self.pipeline.nats.port)
        self.verifier = Verifier()
        self.subscriptions = Subscriptions(self.pipeline)
        self.endpoints = []

    def consumer(self):
        return json.loads(self.client.request("$JS.API.CONSUMER.INFO.STATUS.webhook"))

    def last(self):
        return self.client.stream_info("STATUS")["state"]["last_seq"]

    def send_through(self, count):
        """Mails of which STATUS has both statuses."""
        first = self.last()
        ids = [self.pipeline.send() for _ in range(count)]
        wait_until(lambda: self.last() >= first + 2 * count, 30, "the statuses")
        return ids

    def is_closed(self):
        return self.consumer().get("config", {}).get("filter_subject") == CLOSED

    def await_closed(self):
        wait_until(self.is_closed, 40, f"no status being read: {self.consumer()}")

    def endpoint(self, **fields):
        self.endpoints.append(Endpoint(self.verifier))
        self.subscriptions.put(self.endpoints[-1].url, self.endpoints[-1].secret, wait=False, **fields)
        return self.endpoints[-1]

    def end(self):
        for id in list(self.subscriptions.entries):
            self.subscriptions.remove(id)
        for endpoint in self.endpoints:
            endpoint.close()
        self.endpoints.clear()


@pytest.fixture(scope="module")
def the_world():
    made = World()
    yield made
    made.client.close()
    made.pipeline.stop()
    made.verifier.close()


@pytest.fixture
def world(the_world):
    the_world.await_closed()
    yield the_world
    the_world.end()


def got(endpoint):
    return [(request.event["data"]["id"], request.status) for request in list(endpoint.requests)]


def test_without_a_subscription_no_status_is_read(world):
    world.send_through(3)
    info = world.consumer()
    assert (info["delivered"]["consumer_seq"], info["num_pending"], info["num_ack_pending"]) == (0, 0, 0)
    assert info["num_waiting"] == 0  # no pull request waits either
    assert world.pipeline.services["webhook"].ready()


def test_the_first_subscription_gets_all_from_its_creation_on_and_nothing_before(world):
    earlier = world.send_through(3)
    endpoint = world.endpoint()  # nothing waits until the service has seen it
    later = [world.pipeline.send() for _ in range(10)]
    wanted = {(id, status) for id in later for status in ("queued", "sent")}
    wait_until(lambda: wanted <= set(got(endpoint)), 30, "each status since then")
    assert sorted(got(endpoint)) == sorted(wanted) and not {id for id, _ in got(endpoint)} & set(earlier)
    assert endpoint.refused == [] and not world.is_closed()


def test_a_subscription_that_is_made_while_mails_are_sent_misses_none(world):
    ended, sent = threading.Event(), []

    def send():
        while not ended.is_set():
            sent.append(world.pipeline.send())
    sender = threading.Thread(target=send)
    sender.start()
    try:
        wait_until(lambda: len(sent) > 5, 30, "mails")
        endpoint = world.endpoint()
        known = len(sent) + 1  # the one that is on its way may have its first status already
        wait_until(lambda: len(sent) > known + 30, 60, "more mails")
    finally:
        ended.set()
        sender.join()
    wanted = {(id, status) for id in sent[known:] for status in ("queued", "sent")}
    wait_until(lambda: wanted <= set(got(endpoint)), 30, f"all of {len(wanted)}; missing {wanted - set(got(endpoint))}")
    assert len(got(endpoint)) == len(set(got(endpoint)))


def test_when_the_last_one_is_removed_nothing_is_read_again(world):
    endpoint = world.endpoint()
    id = world.pipeline.send()
    wait_until(lambda: len(got(endpoint)) == 2, 30, "both statuses")
    world.end()
    world.await_closed()
    world.send_through(1)
    assert world.consumer()["num_pending"] == 0
    again = world.endpoint(in_order=True)
    other = world.pipeline.send()
    wait_until(lambda: len(got(again)) == 2, 30, "both statuses of another one")
    assert {found for found, _ in got(again)} == {other} and other != id


def test_migrate_keeps_where_it_stands(world):
    def migrate(*words):
        lines = world.pipeline.cli("migrate", *words, admin=True)
        return next(line for line in lines.splitlines() if "consumer webhook of STATUS" in line)
    assert "present" in migrate()
    assert "updated" in migrate("--ack-wait-ms", "20000") and world.is_closed()
    endpoint = world.endpoint()
    world.pipeline.send()
    wait_until(lambda: len(got(endpoint)) == 2, 30, "both statuses")
    stands = world.consumer()["config"]
    assert stands["ack_wait"] == 20_000_000_000 and "filter_subject" not in stands
    assert "updated" in migrate("--ack-wait-ms", "25000")
    now = world.consumer()
    assert now["config"] == {**stands, "ack_wait": 25_000_000_000} and now["delivered"]["consumer_seq"] >= 2


def test_a_consumer_that_was_deleted_is_made_again(world):
    endpoint = world.endpoint()
    first = world.pipeline.send()
    wait_until(lambda: len(got(endpoint)) == 2, 30, "both statuses")
    world.pipeline.services["webhook"].kill()
    world.client.request("$JS.API.CONSUMER.DELETE.STATUS.webhook")
    second = world.pipeline.send()
    world.pipeline.services["webhook"].start()
    wait_until(lambda: len(got(endpoint)) == 4, 30, "those that were stored meanwhile")
    assert sorted(got(endpoint)) == sorted((id, status) for id in (first, second) for status in ("queued", "sent"))
