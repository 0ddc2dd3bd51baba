# SPDX-License-Identifier: Apache-2.0
"""Kills order-saga at every one of its crash points, starts it again, and compares what is there at the end with an uninterrupted run:
orders, inbox, outbox, dead letters and mails. The points are the binary's own (common/base/crash.h): a new one is here by itself.

JetStream's duplicate window is 0.1 s instead of 120 s, so what is published again is stored again: the readers alone have to drop it."""
import json
import subprocess
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.orders import CANCELLED, COMPLETED, PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, SERVICES, wait_until
from tests.harness.protobuf import messages
from tests.integration.erasure.sealed_events import opened

DIED = -9
OPTIONS = {"STENTOR_SAGA_SWEEP_MS": "200", "STENTOR_SAGA_SWEEP_AGE_MS": "400", "STENTOR_SAGA_RETRY_TIMEOUT_MS": "3000",
           "STENTOR_SAGA_MAX_ATTEMPTS": "2"}

# point -> [(at which passing, the point at which it is killed before)]; else once, at the first passing.
HOW = {
    "bus.publishing": [(1, ""), (3, "")],  # the first one asks the clock for the retention
    "bus.stored": [(1, ""), (2, ""), (4, "")],
    "saga.committed": [(1, ""), (2, "")],
    "saga.published": [(1, ""), (3, ""), (1, "saga.committed")],  # the last by the sweep
    "guard.marked": [(1, "worker.unacked")],  # only what comes again is marked
    "guard.lifted": [(1, "worker.unacked")],
    "saga.sweep_claimed": [(1, "saga.committed"), (3, "saga.committed")],
}


def cases():
    done = subprocess.run([BIN / "stentor-order-saga", "--crash-points"], capture_output=True, text=True, timeout=20)
    points = [line.split("\t")[0] for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [pytest.param(point, number, after, id="-".join([point, str(number)] + ([after] if after else [])))
            for point in points for number, after in HOW.get(point, [(1, "")])]


CASES = cases()
pytestmark = pytest.mark.skipif(not CASES, reason="built without -DSTENTOR_CRASH_POINTS=ON")


@pytest.fixture(scope="module")
def shop():
    pipeline = Pipeline(OPTIONS, ack_wait_ms=1000).start(SERVICES + ["order-saga"])
    shop = Shop(pipeline).put_mails()
    admin = NatsClient(pipeline.nats.port)
    for stream in ("EVENTS", "DEFERRED", "DEAD"):
        config = admin.stream_info(stream)["config"]
        answer = json.loads(admin.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps({**config, "duplicate_window": 100_000_000}).encode()))
        assert "error" not in answer, answer
    admin.close()
    yield shop
    shop.close()
    pipeline.stop()


class Run:
    """The same five orders and one event that cannot be read, each time of other people.

    What a dead process had fetched comes again behind what it had not, and two processes may take two events of an order in either order: those that
    must come last wait for the others."""

    def __init__(self, shop):
        self.shop = shop
        self.completed, self.early, self.failed, self.conflict, self.unmatched = [shop.order() for _ in range(5)]
        self.bad = shop.order()
        self.letters_before = shop.nats.stream_info("DEAD")["state"]["last_seq"]

    def orders(self):
        return {"completed": self.completed, "early": self.early, "failed": self.failed, "conflict": self.conflict, "unmatched": self.unmatched}

    def send(self):
        self.completed.check_out("a-" + self.completed.id).complete("b-" + self.completed.id)  # first: every first batch has commands
        self.early.cancel("early-" + self.early.id)
        self.early.check_out("out-" + self.early.id)
        self.failed.check_out("out-" + self.failed.id)
        self.bad.say("UserCheckedOut", {"order_id": self.bad.id, "email": "no-at-sign"}, "bad-" + self.bad.id)
        self.conflict.check_out("a-" + self.conflict.id).cancel("b-" + self.conflict.id)
        self.unmatched.complete("lone-" + self.unmatched.id)
        return self

    def send_late(self):
        self.conflict.complete("c-" + self.conflict.id)
        self.completed.say("UserCheckedOut", {"order_id": self.completed.id, "email": self.completed.email}, "d-" + self.completed.id)

    def wait_end(self):
        self.completed.wait_state("Completed", 40)
        self.early.wait_state("Cancelled", 40)
        self.conflict.wait_state("Cancelled", 40)
        self.send_late()
        self.failed.wait_state("Failed", 40)
        # Of every order that was placed the time-out is among them, too late for all but one.
        for order, count in ((self.conflict, 4), (self.completed, 4), (self.early, 3), (self.unmatched, 1), (self.failed, 3)):
            order.wait_inbox(count, 60)
        self.completed.wait_mails(PLACED, COMPLETED)
        self.early.wait_mails(PLACED, CANCELLED)
        self.conflict.wait_mails(PLACED, CANCELLED)
        self.failed.wait_mails(PLACED)
        wait_until(lambda: len(self.letters()) == 2, 20, "both dead letters")
        return self

    def letters(self):
        """Reasons of the dead letters of the event that cannot be read and of the failed order; the same one may be stored twice."""
        found = set()
        for sequence in range(self.letters_before + 1, self.shop.nats.stream_info("DEAD")["state"]["last_seq"] + 1):
            message = self.shop.nats.message("DEAD", seq=sequence)
            letter = messages(self.shop.pipeline).DeadLetter.FromString(message[1])
            if self.bad.id.encode() in opened(self.shop.pipeline, letter.subject, {}, letter.payload)[1] or self.failed.id in letter.reason:
                found.add(letter.reason.replace(self.failed.id, "#"))
        return found

    def observe(self):
        """Everything but ids, times and how often a message came."""
        seen = {"letters": self.letters()}
        for name, order in self.orders().items():
            seen[name] = {
                "row": order.row("current_state, version, timeout_retry_count, total_money::text, place_order_timeout_token_id"),
                "inbox": sorted(row[:4] for row in order.inbox()),
                "sent": sorted(order.sent()),
                "mails": order.mails(),
            }
        return seen


@pytest.fixture(scope="module")
def uninterrupted(shop):
    """Looked at, so that two equal runs are not two broken ones."""
    seen = Run(shop).send().wait_end().observe()
    assert seen["completed"]["row"] == ("Completed", 2, 0, "59.90", None)
    assert seen["completed"]["inbox"] == [
        ("PlaceOrderTimeout", "stale", "Completed", "Completed"), ("StatusChanged", "applied", "Placed", "Completed"),
        ("UserCheckedOut", "applied", "", "Placed"), ("UserCheckedOut", "duplicate", "Completed", "Completed")]
    assert seen["early"]["row"][:2] == ("Cancelled", 2) and seen["failed"]["row"][:3] == ("Failed", 3, 2)
    assert seen["failed"]["sent"] == ["Deferred", "Deferred", "OrderFailed", "PlaceOrder", "PlaceOrder"]
    assert seen["conflict"]["inbox"][2][1] == "conflict" and seen["unmatched"]["inbox"][0][1] == "unmatched"
    unreadable, failed = sorted(seen["letters"])
    assert "field 'email'" in unreadable and failed.startswith("order '#' has failed")
    return seen


def start_armed(saga, point, wait=True):
    saga.options["STENTOR_CRASH_AT"] = point
    saga.start(wait)
    del saga.options["STENTOR_CRASH_AT"]


def leave_rows(shop, run, point, count):
    """Kills it at the point until that many rows are stored and not sent: its first batch may be one event. None of those is old enough to sweep."""
    saga = shop.pipeline.services["order-saga"]
    ids = [order.id for order in run.orders().values()]
    saga.options["STENTOR_SAGA_SWEEP_AGE_MS"] = "3600000"
    while True:
        start_armed(saga, point, wait=False)
        wait_death(saga, point)
        left = shop.query("SELECT count(*) FROM order_saga.outbox_message WHERE correlation_id = ANY (%s::uuid[]) AND sent_time IS NULL", ids)[0][0]
        if left >= count:
            break
    saga.options["STENTOR_SAGA_SWEEP_AGE_MS"] = OPTIONS["STENTOR_SAGA_SWEEP_AGE_MS"]


def wait_death(saga, point):
    assert saga.exit_status(30) == DIED and f"crash point '{point}' reached" in saga.tail(), saga.tail()


@pytest.mark.parametrize("point,number,after", CASES)
def test_killed_there_it_ends_as_if_nothing_had_happened(shop, uninterrupted, point, number, after):
    saga = shop.pipeline.services["order-saga"]
    saga.kill()
    run = Run(shop).send()  # it finds them all waiting
    if after:
        leave_rows(shop, run, after, number)
    start_armed(saga, f"{point}:{number}", wait=False)
    wait_death(saga, point)
    shop.query("UPDATE order_saga.outbox_message SET claimed_until = now() WHERE sent_time IS NULL RETURNING 1")  # the dead process's lease
    saga.start()
    run.wait_end()
    assert run.observe() == uninterrupted


def test_two_that_are_killed_by_turns_end_the_same(shop, uninterrupted):
    pipeline = shop.pipeline
    second = pipeline.service("order-saga", "twin-" + uuid.uuid4().hex[:4], **OPTIONS).start()
    runs = []
    try:
        for turn in range(3):
            runs.append(Run(shop).send())
            victim = [pipeline.services["order-saga"], second][turn % 2]
            victim.kill()
            runs.append(Run(shop).send())
            victim.start()
        for run in runs:
            assert run.wait_end().observe() == uninterrupted
    finally:
        second.stop()
