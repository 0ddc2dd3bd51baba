# SPDX-License-Identifier: Apache-2.0
"""One tenant's flood is its own: it raises no other tenant's 99th percentile, from the instant a request is due to the vendor's acceptance, by more than half.

Many tenants send RATE a second each. In one slice of three nothing else is sent. In another one more tenant sends exactly a hundred times as much as one of them, at once, as one array: the worst
shape of that rate, and what a first-come-first-served pipeline lets all others wait behind. In the third it sends the same array in the lowest lane of its own accord: the control, which takes the same
CPU and delays no other. Slices alternate and are pooled, 200 samples a side. What is compared is the bare ratio, nothing added to it, with the larger of alone and control: with a core to spare
these are the same, and on a machine that others load too only the control distinguishes a queue from a lack of CPU. tests/bench/fairness shows the ratio to alone, on a machine to itself. A sample
begins when it was due, not when the sender came to it. A run's sides are measured within seconds of each other, so a ratio is one run's (other tests come and go between two runs); of at most RUNS runs the best
counts, and there are more than one only while the ratio is not reached. A queue of first come, first served makes it more than ten in each."""
import http.client
import json
import threading
import time

import pytest

from tests.harness.pipeline import WELCOME_TEXT, Pipeline
from tests.harness.processes import free_port, wait_until
from tests.harness.sink import SmtpSink

QUIET = 20  # tenants
RATE = 2  # a second, of each of them
SLICE = 2.5  # seconds
SLICES = 2  # of each side in a run: 200 samples
RUNS = 4  # at most
FLOOD = int(100 * RATE * SLICE)  # in an array
SHARE = 20  # STENTOR_TENANT_SHARE: ten times what a tenant sends

BEHIND_S = 3.0
BEHIND_FLOOD = 500  # a second, behind 3,000 that wait already
FLOOR = 1.0  # seconds: what a machine whose cores are all taken adds; in the queue of a flood it would be many


class Tenant:
    def __init__(self, pipeline, name):
        self.pipeline, self.name = pipeline, name
        pipeline.cli("tenant", "put", name, "--name", name, "--sender", f"hello@{name}.test", "--sender-name", name, tenant=name)
        self.key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=name))["key"]

    def post(self, connection, body):
        connection.request("POST", "/v1/notifications", json.dumps(body).encode(),
                           {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def notice(self, number):
        return {"to": f"user{number % 500}@{self.name}.example", "template": "greeting", "variables": {"name": "Alice"}}


class World:
    def __init__(self):
        self.pipeline = Pipeline({"STENTOR_TENANT_SHARE": str(SHARE)})
        self.pipeline.mailbox = SmtpSink(self.pipeline.folder / "sink", free_port())
        self.pipeline.start()
        text = self.pipeline.folder / "greeting.txt"
        text.write_text(WELCOME_TEXT)
        self.pipeline.cli("template", "put", "greeting", "--subject", "Welcome", "--text", text, tenant="platform")
        self.quiet = [Tenant(self.pipeline, f"quiet{i}") for i in range(QUIET)]
        self.flood = Tenant(self.pipeline, "flood")
        self.connection = self.connect()
        for tenant in [*self.quiet, self.flood]:
            wait_until(lambda t=tenant: t.post(self.connection, t.notice(0))[0] == 202, 20, "key and template reaching ingest")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.pipeline.api_port, timeout=60)

    def send_evenly(self, seconds, tenants, per_s):
        """[(id, when it was due)], at per_s a second in all."""
        sent, start, begin = [], time.time(), time.monotonic()
        for number in range(int(seconds * per_s)):
            time.sleep(max(0.0, begin + number / per_s - time.monotonic()))
            tenant = tenants[number % len(tenants)]
            status, answer = tenant.post(self.connection, tenant.notice(number))
            assert status == 202, answer
            sent.append((answer["id"], start + number / per_s))
        return sent

    def latencies(self, sent):
        """Seconds until the vendor had each, sorted."""
        due = dict(sent)

        def ask():
            rows = self.pipeline.postgres.query("SELECT notification_id, extract(epoch FROM finished_at)::float8 FROM dispatcher.ledger"
                                                " WHERE notification_id = ANY(%s) AND state = 'sent'", list(due))
            return rows if len(rows) == len(due) else None
        return sorted(at - due[name] for name, at in wait_until(ask, 60, "every mail of the quiet tenants being sent"))

    def drain(self):
        def idle():
            waiting = self.pipeline.postgres.query(
                "SELECT (SELECT count(*) FROM ingest.accept_log WHERE published_at IS NULL) + (SELECT count(*) FROM dispatcher.ledger WHERE state = 'claimed'),"
                " (SELECT count(*) FROM dispatcher.ledger)")[0]
            accepted = self.pipeline.services["ingest"].metric("stentor_ingest_accepted_total")
            return waiting[0] == 0 and waiting[1] >= accepted
        wait_until(idle, 60, "the flood being worked off")


@pytest.fixture(name="world", scope="module")
def _world():
    world = World()
    try:
        yield world
    finally:
        world.pipeline.stop()


def _p99(seconds):
    return seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]


def _send_beside(world, priority):
    """What the quiet tenants send while the array is worked off."""
    array, connection, answers = [{**world.flood.notice(i), "priority": priority} for i in range(FLOOD)], world.connect(), []
    flood = threading.Thread(target=lambda: answers.append(world.flood.post(connection, array)[0]))
    flood.start()
    sent = world.send_evenly(SLICE, world.quiet, QUIET * RATE)
    flood.join()
    assert answers == [202]
    world.drain()
    return sent


def _run(world):
    """p99 alone, beside the control, beside the flood."""
    alone, control, beside = [], [], []
    for _ in range(SLICES):
        alone += world.send_evenly(SLICE, world.quiet, QUIET * RATE)
        control += _send_beside(world, "low")
        beside += _send_beside(world, "normal")
    return tuple(_p99(world.latencies(sent)) for sent in (alone, control, beside))


def test_a_flood_a_hundred_times_as_large_raises_no_other_tenants_p99_by_more_than_half(world):
    world.send_evenly(1, world.quiet, QUIET * RATE)  # plans, connections, recipients' keys
    runs, ratio = [], 9.0
    while len(runs) < RUNS and ratio > 1.5:
        runs.append(_run(world))
        ratio = min(beside / max(alone, control) for alone, control, beside in runs)
    text = "; ".join(f"alone {1000 * alone:.0f}, control {1000 * control:.0f}, flood {1000 * beside:.0f} ms" for alone, control, beside in runs)
    print(f"p99: {text}")
    assert ratio <= 1.5, text
    assert world.pipeline.services["ingest"].metric("stentor_ingest_lowered_total") >= SLICES * (FLOOD - 3 * SHARE)


def test_a_flood_that_waits_already_is_no_queue_for_the_others(world):
    """More than the machine can take: here no ratio holds, so a floor is added; behind the flood it would be seconds."""
    pipeline, quiet = world.pipeline, world.quiet[:5]
    alone = _p99(world.latencies(world.send_evenly(BEHIND_S, quiet, 5)))
    pipeline.services["dispatcher"].pause()
    connection = world.connect()
    assert [world.flood.post(connection, [world.flood.notice(i) for i in range(1000)])[0] for _ in range(3)] == [202] * 3
    stop = threading.Event()

    def flood():
        number, start = 0, time.monotonic()
        while not stop.is_set():
            time.sleep(max(0.0, start + number / BEHIND_FLOOD - time.monotonic()))
            assert world.flood.post(connection, [world.flood.notice(number + i) for i in range(100)])[0] in (202, 503)
            number += 100
    thread = threading.Thread(target=flood)
    thread.start()
    try:
        time.sleep(0.5)
        pipeline.services["dispatcher"].pause(False)
        beside = _p99(world.latencies(world.send_evenly(BEHIND_S, quiet, 5)))
    finally:
        pipeline.services["dispatcher"].pause(False)
        stop.set()
        thread.join()
    world.drain()
    print(f"p99 alone {alone:.3f}, beside a flood that waits already {beside:.3f}")
    assert beside <= 1.5 * alone + FLOOR, (alone, beside)
