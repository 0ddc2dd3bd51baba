# SPDX-License-Identifier: Apache-2.0
"""A mail that may have been sent: the dispatcher is killed between the send and its outcome, another one takes over after
the lease, and the vendor's callback comes before that, after it, or never."""
import json
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.sendgrid import body_of, event, new_signer, post

LONG_LEASE_MS = 10_000  # a callback comes well within it
SHORT_LEASE_MS = 2000
OPTIONS = {"STENTOR_RETRY_LADDER": "email=4,4;sms=60"}


class World:
    def __init__(self, folder):
        self.pipeline = Pipeline(OPTIONS, ack_wait_ms=2000).start()
        self.sign = new_signer(self.pipeline, folder)
        self.events = 0

    @property
    def dispatcher(self):
        return self.pipeline.services["dispatcher"]

    def restart(self, policy, lease_ms, **options):
        self.dispatcher.stop()
        self.dispatcher.options.update(
            {"STENTOR_DISPATCHER_UNKNOWN": policy, "STENTOR_DISPATCHER_LEASE_MS": lease_ms, "STENTOR_SMTP_DATA_MS": 60_000, **options})
        self.dispatcher.start()

    def send_without_an_answer(self, times=1):
        """Sent, in the mailbox, and no outcome: the final dot's answer never comes."""
        self.pipeline.mailbox.silence(times)
        notification = self.pipeline.send()
        wait_until(lambda: self.mails(notification) == times, 30, "the mail in the mailbox")
        return notification

    def callback(self, notification, kind, **fields):
        self.events += 1
        body = body_of(event(notification, kind, self.events, **fields))
        assert post(self.pipeline, body, self.sign(body))[0] == 200

    def mails(self, notification):
        return len(self.pipeline.mailbox.for_notification(notification))

    def rows(self, notification):
        """(attempt, state, unknown_count, settled) of the ledger."""
        return self.pipeline.postgres.query(
            "SELECT attempt, state, unknown_count, settled_at IS NOT NULL FROM dispatcher.ledger WHERE notification_id = %s ORDER BY 1",
            notification)

    def wait_row(self, notification, *expected):
        wait_until(lambda: self.rows(notification) == [*expected], 40,
                   f"the ledger having {expected}, not {self.rows(notification)}")

    def wait_reported(self, notification, *statuses):
        """In any order: "sent" may be published after the callback's own status."""
        def reported():
            return {step["status"] for step in self.pipeline.status(notification)["timeline"]}
        wait_until(lambda: set(statuses) <= reported(), 30, f"{statuses} in the history")

    def was_unknown(self, notification):
        return self.pipeline.postgres.query(
            "SELECT attempt_number, was_unknown FROM archiver.delivery_attempts WHERE notification_id = %s ORDER BY 1", notification)

    def open_parked(self):
        text = self.dispatcher.get("/metrics")[1]
        return float(text.split('stentor_dispatcher_unknown_open{state="parked"} ')[1].split("\n")[0])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("sendgrid"))
    yield made
    made.pipeline.stop()


@pytest.mark.parametrize("policy", ["resend", "email=park"])
def test_a_callback_before_the_take_over_settles_it(world, policy):
    world.restart(policy, LONG_LEASE_MS)
    notification = world.send_without_an_answer()
    world.dispatcher.kill()
    world.callback(notification, "delivered")
    world.dispatcher.start()
    wait_until(lambda: world.rows(notification)[0][3], 30, "the callback's proof in the ledger")
    world.wait_row(notification, (1, "sent", 1, True))
    world.wait_reported(notification, "sent", "delivered")
    assert world.was_unknown(notification) == [(1, True)]
    time.sleep(3)  # an ack wait: its redelivery, if any, was looked at again
    assert world.mails(notification) == 1
    assert world.rows(notification) == [(1, "sent", 1, True)]


@pytest.mark.parametrize("policy", ["resend", "park"])
def test_a_callback_before_the_kill_settles_it(world, policy):
    world.restart(policy, LONG_LEASE_MS)
    notification = world.send_without_an_answer()
    world.callback(notification, "open")
    world.wait_row(notification, (1, "claimed", 0, True))  # noted: its lease lives
    world.dispatcher.kill()
    world.dispatcher.start()
    world.wait_row(notification, (1, "sent", 1, True))
    world.wait_reported(notification, "sent", "opened")
    assert world.mails(notification) == 1


@pytest.mark.long
def test_a_callback_after_parking_settles_it(world):
    world.restart("park", SHORT_LEASE_MS)
    parked = [world.send_without_an_answer() for _ in range(2)]
    world.dispatcher.kill()
    world.dispatcher.start()
    for notification in parked:
        world.wait_row(notification, (1, "parked", 1, False))
    wait_until(lambda: world.open_parked() == 2, 40, "two parked mails in the metric")
    world.callback(parked[0], "delivered")
    world.callback(parked[1], "bounce", type="bounce", status="5.1.1", reason="550 5.1.1 unknown")
    for notification in parked:
        world.wait_row(notification, (1, "sent", 1, True))
    world.wait_reported(parked[0], "sent", "delivered")
    world.wait_reported(parked[1], "sent", "bounced")
    assert world.was_unknown(parked[0]) == [(1, True)]
    assert [world.mails(notification) for notification in parked] == [1, 1]
    assert world.dispatcher.metric("stentor_dispatcher_settled_total") == 2
    wait_until(lambda: world.open_parked() == 0, 40, "no parked mail in the metric")


def test_without_a_callback_it_is_sent_again_and_says_so(world):
    world.restart("resend", SHORT_LEASE_MS)
    notification = world.send_without_an_answer()
    world.dispatcher.kill()
    world.dispatcher.start()
    world.wait_row(notification, (1, "sent", 1, False))
    assert world.mails(notification) == 2
    first, second = world.pipeline.mailbox.for_notification(notification)
    assert first.as_bytes() == second.as_bytes()
    world.callback(notification, "delivered")  # nothing is open any more
    world.wait_reported(notification, "sent", "delivered")
    assert world.rows(notification) == [(1, "sent", 1, False)]


def test_a_callback_stops_the_retry_that_waits(world):
    """A living process: two tries whose answer never came, then the ladder; the callback comes while the retry waits."""
    world.restart("resend", LONG_LEASE_MS, STENTOR_SMTP_DATA_MS=300)
    notification = world.send_without_an_answer(times=2)
    world.wait_row(notification, (1, "deferred", 2, False))
    world.callback(notification, "delivered")
    world.wait_row(notification, (1, "sent", 2, True))
    refused = world.dispatcher.metric("stentor_dispatcher_claims_refused_total")
    wait_until(lambda: world.dispatcher.metric("stentor_dispatcher_claims_refused_total") > refused, 30, "the retry being refused")
    assert world.mails(notification) == 2
    assert world.rows(notification) == [(1, "sent", 2, True)]
    world.wait_reported(notification, "sent", "delivered")


@pytest.mark.parametrize("option, value, reported", [
    ("STENTOR_DISPATCHER_UNKNOWN", "email=drop", "a policy is neither resend nor park"),
    ("STENTOR_RETRY_LADDER", "email=5m;sms=60", "'5m' is no ladder"),
])
def test_an_option_that_cannot_be_read_is_named_with_the_fix(world, option, value, reported):
    broken = world.pipeline.service("dispatcher", instance="-broken", **{option: value}).start(wait=False)
    assert broken.exit_status(20) != 0
    line = json.loads([line for line in broken.tail().splitlines() if option in line][-1])
    assert reported in json.dumps(line) and "expected" in json.dumps(line)
