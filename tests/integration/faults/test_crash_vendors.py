# SPDX-License-Identifier: Apache-2.0
"""Kills the dispatcher at each point between a mail's claim and its outcome, with vendors that have HTTP APIs: a vendor that knows keys sends
the mail once whatever the point, and at any other the ledger names the vendor at which the outcome is unknown and nothing goes out twice."""
import subprocess

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.vendor_doubles import Fault, routing

DIED = -9
SETTLE_MS = 1000
SENT = (1, "resend", "sent", 1)
PARKED = [(1, "sendgrid", "deferred", 1), (2, "sendgrid", "parked", 1)]
MOVED = [(1, "resend", "sent", 1)]


def has_points():
    done = subprocess.run([BIN / "stentor-dispatcher", "--crash-points"], capture_output=True, text=True, timeout=20)
    return "http.answered" in done.stdout


pytestmark = pytest.mark.skipif(not has_points(), reason="built without -DSTENTOR_CRASH_POINTS=ON")


@pytest.fixture(scope="module")
def pipeline():
    made = Pipeline(ack_wait_ms=1000)
    made.extra = routing.options(made, STENTOR_DISPATCHER_LEASE_MS=10_000, STENTOR_RETRY_LADDER="email=2,4;sms=60", STENTOR_VENDOR_CONNECT_MS=2000)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def routes(pipeline):
    made = routing.Routing(pipeline)
    yield made
    made.close()


def kill_at(pipeline, point, send):
    """The notification that the dispatcher died of."""
    service = pipeline.services["dispatcher"]
    service.stop()
    service.options["STENTOR_CRASH_AT"] = point
    service.start()
    notification = send()
    assert service.exit_status(30) == DIED and f"crash point '{point}' reached" in service.tail(), service.tail()
    del service.options["STENTOR_CRASH_AT"]
    return notification


def end_leases(pipeline):
    pipeline.postgres.query("UPDATE dispatcher.ledger SET lease_until = now() WHERE state = 'claimed' RETURNING 1")


def restart(pipeline):
    end_leases(pipeline)
    pipeline.services["dispatcher"].start()


@pytest.mark.parametrize("point, calls", [("dispatcher.claimed", 1), ("http.answered", 2)])
def test_a_vendor_that_knows_keys_sends_it_once(pipeline, routes, point, calls):
    domain, (resend,) = routes.route("resend")
    notification = kill_at(pipeline, point, lambda: pipeline.send(to=f"alice@{domain}"))
    assert routes.rows(notification) == [(1, "resend", "claimed", 0)]
    restart(pipeline)
    routes.wait_rows(notification, SENT)
    assert len(resend.mails) == 1 and len(resend.requests) == calls


def test_a_second_process_that_dies_after_the_take_over_changes_nothing(pipeline, routes):
    domain, (resend,) = routes.route("resend")
    notification = kill_at(pipeline, "http.answered", lambda: pipeline.send(to=f"alice@{domain}"))
    end_leases(pipeline)
    service = pipeline.services["dispatcher"]
    service.options["STENTOR_CRASH_AT"] = "dispatcher.taken_over"
    service.start(wait=False)
    assert service.exit_status(30) == DIED
    del service.options["STENTOR_CRASH_AT"]
    restart(pipeline)
    routes.wait_rows(notification, (1, "resend", "sent", 2))
    assert len(resend.mails) == 1


@pytest.mark.parametrize("point, mails", [("dispatcher.claimed", 0), ("http.answered", 1)])
def test_at_a_vendor_without_keys_it_is_unknown_there_and_goes_nowhere_else(pipeline, routes, point, mails):
    domain, (sendgrid, postmark) = routes.route("sendgrid", "postmark", unknown="park", settle_ms=SETTLE_MS)
    notification = kill_at(pipeline, point, lambda: pipeline.send(to=f"alice@{domain}"))
    restart(pipeline)
    routes.wait_rows(notification, *PARKED)
    assert len(sendgrid.mails) == mails and postmark.mails == []


def test_killed_once_the_claim_is_at_the_second_vendor(pipeline, routes):
    domain, (postmark, resend) = routes.route("postmark", "resend")
    postmark.stop()
    notification = kill_at(pipeline, "dispatcher.moved", lambda: pipeline.send(to=f"alice@{domain}"))
    assert routes.rows(notification) == [(1, "resend", "claimed", 0)] and resend.requests == []
    restart(pipeline)
    routes.wait_rows(notification, *MOVED)
    assert len(resend.mails) == 1


def test_killed_before_the_fallback_is_published(pipeline, routes):
    domain, (postmark, sendgrid) = routes.route("postmark", "sendgrid", fallback_on=["retry"])
    postmark.behave(Fault.UNAVAILABLE)
    notification = kill_at(pipeline, "dispatcher.outcome_committed", lambda: pipeline.send(to=f"alice@{domain}"))
    assert routes.rows(notification) == [(1, "postmark", "deferred", 0)]
    restart(pipeline)
    routes.wait_rows(notification, (1, "postmark", "deferred", 0), (2, "sendgrid", "sent", 0))
    wait_until(lambda: len(sendgrid.mails) == 1, 20, "the mail at the second vendor")
