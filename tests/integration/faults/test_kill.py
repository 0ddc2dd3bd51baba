# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any binary in the middle of 1,500 notifications (10,000 with --long): none is lost, none is doubled but the reported unknowns.

The crash windows that the code names are all inside these runs: between accept commit and publish (ingest), between the
outputs' acks and the input's ack (renderer), between claim, send, outcome and status (dispatcher), between publish and
done (digest-flusher), between fold and commit (archiver)."""
import random
import threading
import time

import pytest

from tests.harness.length import amount
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until

TOTAL = amount(1500, 10_000)
CHUNK = amount(50, 100)
PAUSE_S = amount(0.1, 0)  # between two arrays, so that fewer of them too are met by several kills
FAST = {"STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_RETRY_LADDER": "1,1,1,1,1", "STENTOR_INGEST_SWEEP_AGE_MS": "2000"}
CLAIMS_MAX = 2 * (8 * 8 - 1 + 64)  # of a lane without an outcome 8 for each of 8 connections, and a batch on top of 63; the load is in two lanes


class Load(threading.Thread):
    """Posts TOTAL notifications in arrays of CHUNK, each with an idempotency key, until each has its 202.

    A request that got no answer is repeated with its key, as the documents ask of a client."""

    def __init__(self, pipeline, total=TOTAL, pause_s=0):
        super().__init__(daemon=True)
        self.pipeline = pipeline
        self.total = total
        self.pause_s = pause_s
        self.ids = []
        self.refused = []

    def run(self):
        for chunk in range(self.total // CHUNK):
            bodies = [{"to": f"user{chunk}-{i}@example.com", "template": "welcome", "variables": {"name": f"U{i}"}} for i in range(CHUNK)]
            self.ids += self.post(bodies, f"chunk-{chunk}")
            time.sleep(self.pause_s)

    def post(self, bodies, key):
        while True:
            try:
                status, _, answer = self.pipeline.post(bodies, headers={"Idempotency-Key": key})
            except OSError:
                status, answer = 0, None
            except Exception:  # noqa: BLE001 (http.client raises several for a connection that dies)
                status, answer = 0, None
            if status == 202:
                return [item["id"] for item in answer["notifications"]]
            if status not in (0, 502, 503):
                self.refused.append((status, answer))
                return []
            time.sleep(0.1)


def check_nothing_lost_nothing_doubled(pipeline, load):
    assert load.refused == []
    assert len(set(load.ids)) == load.total
    wait_until(lambda: pipeline.history_count("status IN ('sent', 'failed', 'bounced')") >= load.total, 120, "every end status")
    sent = pipeline.history_count("status = 'sent'")
    assert sent == load.total, f"{sent} sent of {load.total}"
    rows = {row[0] for row in pipeline.postgres.query("SELECT id FROM archiver.notifications")}
    assert rows == set(load.ids)
    counts = {mid.strip("<>").split("@")[0]: count for mid, count in pipeline.mailbox.count_by_message_id().items()}
    lost = [i for i in load.ids if i not in counts]
    assert lost == [], f"{len(lost)} lost, for example {lost[:3]}"
    doubled = {i for i, count in counts.items() if count > 1}
    unknown = {row[0] for row in pipeline.postgres.query("SELECT notification_id FROM dispatcher.ledger WHERE unknown_count > 0")}
    assert doubled <= unknown, f"doubled and not reported as unknown: {sorted(doubled - unknown)[:5]}"
    return len(doubled), len(unknown)


@pytest.mark.parametrize("victim", ["ingest", "renderer", "dispatcher", "archiver", "digest-flusher", "webhook-receiver"])
def test_killing_a_service_in_the_middle_loses_and_doubles_nothing(victim):
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    chance = random.Random(victim)
    load = Load(pipeline, pause_s=PAUSE_S)
    load.start()
    kills = 0
    try:
        while load.is_alive():
            time.sleep(chance.uniform(0.3, 1.2))
            pipeline.services[victim].kill()
            kills += 1
            time.sleep(chance.uniform(0.0, 0.3))
            pipeline.services[victim].start()
        load.join()
        doubled, unknown = check_nothing_lost_nothing_doubled(pipeline, load)
        print(f"{victim}: {kills} kills, {doubled} doubled, {unknown} unknown outcomes")
        assert unknown <= kills * CLAIMS_MAX
        if victim != "dispatcher":
            assert doubled == 0 and unknown == 0
    finally:
        pipeline.stop()


def test_a_dispatcher_stopped_for_longer_than_its_lease_sends_nothing_that_was_taken_over():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    pipeline.services["dispatcher-2"] = pipeline.service("dispatcher", instance="-2").start()
    load = Load(pipeline, total=amount(1500, 3000))
    load.start()
    try:
        for _ in range(2):
            time.sleep(0.7)
            pipeline.services["dispatcher"].pause()
            time.sleep(6)  # the lease is 4 s: the other one takes over
            pipeline.services["dispatcher"].pause(False)
        load.join()
        doubled, unknown = check_nothing_lost_nothing_doubled(pipeline, load)
        print(f"{doubled} doubled, {unknown} unknown outcomes")
        assert unknown <= 2 * CLAIMS_MAX
        assert doubled <= 2 * 8, "more than the mail that each connection had written before the stop"
    finally:
        pipeline.services["dispatcher"].pause(False)
        pipeline.stop()


@pytest.mark.parametrize("server", ["nats", "postgres"])
def test_killing_a_server_in_the_middle_loses_and_doubles_nothing(server):
    pipeline = Pipeline(FAST, ack_wait_ms=3000, durable=True).start()
    load = Load(pipeline, total=amount(1500, 3000))
    load.start()
    try:
        for _ in range(2):
            time.sleep(1.0)
            getattr(pipeline, server).kill()
            time.sleep(0.5)
            getattr(pipeline, server).start()
        load.join()
        check_nothing_lost_nothing_doubled(pipeline, load)
    finally:
        pipeline.stop()


def test_sigterm_drains_and_ends_with_zero():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    load = Load(pipeline, total=amount(1000, 2000))
    load.start()
    try:
        while load.is_alive():
            for name in ["dispatcher", "renderer", "ingest", "archiver"]:
                assert pipeline.services[name].stop() == 0, f"{name}\n{pipeline.services[name].tail()}"
                pipeline.services[name].start()
        load.join()
        doubled, unknown = check_nothing_lost_nothing_doubled(pipeline, load)
        assert (doubled, unknown) == (0, 0)
    finally:
        pipeline.stop()


def test_accepted_while_nats_is_away_is_sent_when_it_is_back():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    try:
        pipeline.nats.kill()
        ids = [pipeline.send(to=f"away{i}@example.com") for i in range(5)]
        time.sleep(1)
        pipeline.nats.start()
        for notification in ids:
            assert pipeline.status(notification, wait="sent", timeout=60)["status"] == "sent"
            assert len(pipeline.mailbox.for_notification(notification)) == 1
    finally:
        pipeline.stop()


def test_two_replicas_of_everything_share_the_work():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    try:
        for name in ["renderer", "dispatcher", "archiver", "digest-flusher"]:
            pipeline.services[name + "-2"] = pipeline.service(name, instance="-2").start()
        load = Load(pipeline, total=amount(1500, 3000))
        load.start()
        load.join()
        doubled, unknown = check_nothing_lost_nothing_doubled(pipeline, load)
        assert (doubled, unknown) == (0, 0)
        for name, metric in [("renderer", "stentor_renderer_rendered_total"), ("dispatcher", "stentor_dispatcher_attempts_total")]:
            for replica in (name, name + "-2"):
                assert pipeline.services[replica].metric(metric) > 0, replica
    finally:
        pipeline.stop()
