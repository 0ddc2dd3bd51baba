# SPDX-License-Identifier: Apache-2.0
"""Kills the dispatcher between a call that was taken and the event of its next one, and between the report that it was not answered and its
status: the next call is made, once."""
import pytest

from tests.harness.processes import wait_until
from tests.integration.faults.test_crash_vendors import has_points, kill_at, restart
from tests.integration.sending.test_sms import World

pytestmark = pytest.mark.skipif(not has_points(), reason="built without -DSTENTOR_CRASH_POINTS=ON")


@pytest.fixture
def world():
    made = World(channel="voice", voice_ladder="20", ack_wait_ms=1000)
    try:
        words = made.pipeline.folder / "call.txt"
        words.write_text("Your code is 4711.")
        made.cli("template", "put", "code", "--channel", "voice", "--text", words)
        made.twilio = made.vendor("twilio_voice")
        made.sent()
        yield made
    finally:
        made.close()


def test_the_next_call_is_made_whenever_the_dispatcher_died(world):
    number = world.number()

    def calls():
        return [call for call in list(world.twilio.mails) if call.to == [number]]
    notification = kill_at(world.pipeline, "dispatcher.outcome_committed", lambda: world.accepted(to=number))
    assert world.routing.rows(notification) == [(1, "twilio_voice", "sent", 0)]
    restart(world.pipeline)
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    kill_at(world.pipeline, "dispatcher.late_noted", lambda: world.reported(world.twilio, calls()[0], "busy"))
    assert world.routing.rows(notification) == [(1, "twilio_voice", "deferred", 0)]
    restart(world.pipeline)
    wait_until(lambda: len(calls()) == 2, 60, "the second call")
    world.routing.wait_rows(notification, (1, "twilio_voice", "deferred", 0), (2, "twilio_voice", "sent", 0))
    waiting = world.attempt(notification, "sending")
    assert (waiting.status, waiting.reason_code) == (world.routing.types.STATUS_SENDING, "busy")
    world.reported(world.twilio, calls()[1], "delivered")
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    assert len(calls()) == 2
