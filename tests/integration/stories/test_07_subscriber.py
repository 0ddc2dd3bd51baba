# SPDX-License-Identifier: Apache-2.0
"""Story 7, a program that follows statuses: a NATS user of its own, a durable consumer made by a public client, live events with their trace."""
import subprocess
import uuid

from tests.harness import clients
from tests.harness.clients import subscribers
from tests.harness.nats_client import Subscriber
from tests.harness.pipeline import TENANT
from tests.harness.stories import new_address, story

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def send(user, **headers):
    status, answer = user.api("POST", "/v1/notifications", {"to": new_address("reader"), "template": "welcome", "variables": {"name": "R"}},
                              {"Idempotency-Key": uuid.uuid4().hex, **headers})
    assert status == 202, answer
    user.status(answer["id"], wait="sent")
    return answer["id"]


def followed(user, password, count):
    """{(status, notification)} of the next `count` events, by the example in C; it goes on where it stopped."""
    words, environment = clients.command("c", user.pipeline.folder)
    environment |= {"NATS_URL": user.pipeline.nats.url, "NATS_USER": "search", "NATS_PASSWORD": password, "TENANT": TENANT}
    done = subprocess.run([*words, str(count)], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len({event for *_, event in lines}) == count
    return {(status, notification) for status, notification, _ in lines}


def live(user, password):
    """Finding 4's other half: what happens from now on, with CloudEvents headers and the caller's trace."""
    client = Subscriber(user.pipeline.nats.port, "search", password)
    client.subscribe(f"live.status.{TENANT}.>")
    notification = send(user, traceparent=TRACE)
    seen = dict((subject.rsplit(".", 1)[1], (headers, payload)) for subject, headers, payload in (client.next() for _ in range(2)))
    client.close()
    assert set(seen) == {"queued", "sent"}  # in which order, is not promised
    for status, (headers, payload) in seen.items():
        assert (headers["ce-specversion"], headers["ce-type"], headers["ce-subject"]) == ("1.0", f"stentor.notification.{status}.v1", notification)
        assert headers["traceparent"].split("-")[1] == TRACE.split("-")[1] and notification.encode() in payload
    return notification


def test_a_subscriber():
    with story() as user:
        etc = subscribers.describe(user.pipeline)
        password = subscribers.create(etc, "search", TENANT)
        subscribers.reload(user.pipeline, "search", password)
        first = send(user)
        assert followed(user, password, 2) == {("queued", first), ("sent", first)}
        second = live(user, password)
        third = send(user)  # while the program is away
        assert followed(user, password, 4) == {(status, one) for status in ("queued", "sent") for one in (second, third)}
