# SPDX-License-Identifier: Apache-2.0
"""Finding 13: a message that kills every process that takes it, in the middle of good ones, for every worker at once. Each ends as
one dead letter that no process read; all that is good is done; nothing else is buried. Each service is started again whenever it dies,
as a supervisor would.

A service dies over inputs with its own word in them (STENTOR_CRASH_ON, common/base/crash.h), so the same notification passes the
stages before it."""
import collections
import datetime
import json
import signal
import subprocess
import threading
import time

import pytest

from tests.harness.crash_load import Signer
from tests.harness.nats_client import NatsClient
from tests.harness.orders import COMPLETED, PLACED, Shop
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, SERVICES, wait_until
from tests.harness.protobuf import messages
from tests.integration.erasure.sealed_events import opened

LANES = ["critical", "high", "normal", "low"]
OPTIONS = {"STENTOR_DISPATCHER_LEASE_MS": "2500", "STENTOR_INGEST_SWEEP_AGE_MS": "400", "STENTOR_INGEST_SWEEP_MS": "200",
           "STENTOR_SAGA_SWEEP_MS": "200", "STENTOR_SAGA_SWEEP_AGE_MS": "400"}
GOOD = 40

pytestmark = pytest.mark.skipif(
    subprocess.run([BIN / "stentor-renderer", "--crash-points"], capture_output=True).returncode != 0,
    reason="built without -DSTENTOR_CRASH_POINTS=ON")


def word(service):
    return f"poison-{service}"


class Supervisor:
    """Starts again what died, and counts deaths."""

    def __init__(self, services, died=-signal.SIGKILL):
        self.services, self.died = services, died
        self.deaths = collections.Counter()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.05):
            for service in self.services:
                if not service.alive():
                    assert service.child.returncode == self.died, service.tail()
                    self.deaths[service.name] += 1
                    service.start(wait=False)

    def end(self):
        self.ended.set()
        self.thread.join()


@pytest.fixture(scope="module")
def shop():
    pipeline = Pipeline(OPTIONS, ack_wait_ms=500)
    pipeline.start(SERVICES + ["order-saga"])
    shop = Shop(pipeline).put_mails()
    shop.proto = messages(pipeline)
    yield shop
    shop.close()
    pipeline.stop()


def letters(shop):
    """(sequence, letter) of what is in DEAD; one that was sent again is gone."""
    last = shop.nats.stream_info("DEAD")["state"]["last_seq"]
    stored = [(seq, shop.nats.message("DEAD", seq=seq)) for seq in range(1, last + 1)]
    return [(seq, shop.proto.DeadLetter.FromString(message[1])) for seq, message in stored if message is not None]


def wait_letters(shop, count):
    try:
        wait_until(lambda: count <= shop.nats.stream_info("DEAD")["state"]["messages"], 240)  # some 30 starts of a process, on a busy machine
    except AssertionError:
        raise AssertionError(f"{count} dead letters, not {[(one.stage, one.stream) for _, one in letters(shop)]}") from None


def arm(pipeline, armed, only=None, **options):
    """Stops all services but the archiver (or `only` these), and starts them so that they die, or do not, of what has their word in it."""
    services = [service for name, service in pipeline.services.items() if name != "archiver" and (only is None or name in only)]
    for service in services:
        service.stop()
        service.options.pop("STENTOR_CRASH_ON", None)
        service.options.pop("STENTOR_CRASH_AFTER_MS", None)
        if armed:
            service.options.update(STENTOR_CRASH_ON=word(service.service), **options)
        service.start(wait=False)
    for service in services:
        service.wait_ready()
    return services


def notification(to, priority, correlation="good", **fields):
    return {"to": to, "template": "welcome", "variables": {"name": "A"}, "priority": priority, "correlation_id": correlation, **fields}


def send_mails(shop):
    """Good ones, and in the middle one that kills the renderer and one that kills the dispatcher, in each lane. Returns the ids."""
    bodies = [notification(f"good{i}@example.com", LANES[i % 4]) for i in range(GOOD)]
    for lane in LANES:
        for service in ("renderer", "dispatcher"):
            bodies.insert(GOOD // 2, notification(f"bad-{service}-{lane}@example.com", lane, word(service)))
    status, _, answer = shop.pipeline.post(bodies)
    assert status == 202, answer
    return [item["id"] for item in answer["notifications"]]


def send_scheduled(shop):
    at = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)).isoformat().replace("+00:00", "Z")
    names = ["later0", "bad-flusher", "later1"]
    status, _, answer = shop.pipeline.post([
        notification(f"{name}@example.com", "normal", word("digest-flusher") if name == "bad-flusher" else "good", scheduled_for=at)
        for name in names])
    assert status == 202, answer


def send_events(shop):
    """For ingest, gateway and order-saga, which read one stream."""
    for tenant in ("good-inn", word("gateway"), "good-hotel"):
        shop.nats.publish("evt.platform.TenantCreated", json.dumps({"tenant_id": tenant}).encode(), f"tenant-{tenant}")
    order = shop.order().check_out()
    for i, correlation in enumerate(["good", word("ingest"), "good"]):
        command = shop.proto.NotifyCommand(to=f"command{i}@example.com", template="welcome", variables_json='{"name":"A"}', correlation_id=correlation)
        shop.nats.publish(f"evt.{TENANT}.notify", command.SerializeToString(), f"command-{i}")
    shop.order().complete(carrier=word("order-saga"))
    order.complete()
    return order


def send_callbacks(shop, signer, sent):
    """Two about a mail that is sent. A callback's body is sealed, so what kills is published beside the receiver's HTTP; and for SETTLE,
    which the dispatcher reads."""
    def call(event):
        body = json.dumps([{"email": "first@example.com", "timestamp": int(time.time()), "smtp-id": f"<{sent}@acme.test>", "event": event,
                            "sg_event_id": f"{event}-1"}]).encode()
        answer = shop.pipeline.post(body, path=f"/v1/inbound/{TENANT}/sendgrid", headers=signer.headers(body), port=shop.pipeline.webhook_port)
        assert answer[0] == 200, answer
    call("delivered")
    call("open")
    shop.nats.publish("ntf.inbound.sendgrid", word("webhook-receiver").encode(), "inbound-poison")
    shop.nats.publish(f"ntf.settle.{TENANT}", word("dispatcher").encode(), "settle-poison")


def test_finding_13_a_message_that_kills_its_processes_ends_alone(shop):
    pipeline = shop.pipeline
    signer = Signer(pipeline)
    first = pipeline.send("first@example.com")
    pipeline.status(first, wait="sent")
    supervisor = Supervisor(arm(pipeline, armed=True))
    try:
        send_callbacks(shop, signer, first)
        send_mails(shop)
        send_scheduled(shop)
        order = send_events(shop)
        expected = collections.Counter(
            [("renderer", f"REQUEST_{lane.upper()}") for lane in LANES] + [("dispatcher", f"RENDERED_{lane.upper()}") for lane in LANES]
            + [("dispatcher", "SETTLE"), ("digest-flusher", "DEFERRED"), ("webhook-receiver", "INBOUND"), ("ingest", "EVENTS"),
               ("gateway", "EVENTS"), ("order-saga", "EVENTS")])
        wait_letters(shop, sum(expected.values()))
        good = [f"good{i}@example.com" for i in range(GOOD)] + ["later0@example.com", "later1@example.com", "command0@example.com", "command2@example.com"]
        wait_until(lambda: set(good) <= {str(mail["To"]) for mail in pipeline.mailbox.mails()}, 30, "every good mail")
        wait_until(lambda: set(order.mails()) == {PLACED, COMPLETED}, 30, "the order's mails")
        pipeline.status(first, wait="opened")
        wait_until(lambda: all(shop.nats.message("CONFIG", last_by_subj=f"cfg.tenant.good-{name}.self") for name in ("inn", "hotel")), 30, "the good tenants")
    finally:
        supervisor.end()
    found = [one for _, one in letters(shop)]
    assert collections.Counter((one.stage, one.stream) for one in found) == expected
    assert all(one.reason.startswith("poison message: ") and "not read" in one.reason for one in found), [one.reason for one in found]
    reported = {one.meta.notification_id for one in found if one.stream.startswith(("REQUEST_", "RENDERED_", "DEFERRED"))}
    assert len(reported) == 9 and "unknown" not in reported
    for notification_id in reported:
        row = pipeline.status(notification_id, wait="failed")
        assert row["reason_code"] == "poison_message", row
    assert all(one.meta.notification_id == "unknown" for one in found if one.stream in ("SETTLE", "INBOUND", "EVENTS"))
    assert all(word(one.stage).encode() in opened(pipeline, one.subject, {}, one.payload)[1] for one in found)
    check_mails(pipeline, good)
    # Each message is found with six deaths; those of one service share what they can.
    print("deaths:", dict(supervisor.deaths))
    assert all(supervisor.deaths[name] >= 6 for name in ("ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook-receiver", "order-saga"))


def check_mails(pipeline, good):
    """Once; twice only what was on its way to the vendor when the dispatcher died, and is counted as unknown."""
    counts = collections.Counter(str(mail["To"]) for mail in pipeline.mailbox.mails())
    unknown = sum(count for count, in pipeline.postgres.query("SELECT unknown_count FROM dispatcher.ledger"))
    doubled = sum(counts[one] - 1 for one in good)
    assert doubled <= unknown, (doubled, unknown)
    assert not any(name.startswith("bad-") for name in counts)


def test_finding_13_sent_again_it_has_a_new_chance(shop):
    """By services that no longer die of it, as after the release with the fix."""
    pipeline = shop.pipeline
    arm(pipeline, armed=False)
    chosen = [("renderer", "REQUEST_HIGH"), ("dispatcher", "RENDERED_LOW"), ("digest-flusher", "DEFERRED")]
    again = []
    for seq, letter in letters(shop):
        if (letter.stage, letter.stream) in chosen:
            shown = pipeline.cli("dlq", "show", str(seq))
            assert "poison message" in shown
            pipeline.cli("dlq", "resend", str(seq))
            again.append(letter.meta.notification_id)
    wanted = {"bad-renderer-high@example.com", "bad-dispatcher-low@example.com", "bad-flusher@example.com"}
    wait_until(lambda: wanted <= {str(mail["To"]) for mail in pipeline.mailbox.mails()}, 30, "the mails that were sent again")
    for notification_id in again:
        wait_until(lambda: pipeline.status(notification_id)["status"] == "sent", 30, "`sent`, which wins over `failed`")


def test_finding_13_what_kills_late_ends_alone(shop):
    """It stays in hand for 0.6 s while the loop turns and its mark is lifted, as what waits for Postgres or a vendor; only what is watched
    while the loop computes shows that it kills."""
    pipeline = shop.pipeline
    names = ["renderer", "dispatcher"]
    known = shop.nats.stream_info("DEAD")["state"]["messages"]
    supervisor = Supervisor(arm(pipeline, armed=True, only=names, STENTOR_CRASH_AFTER_MS="600"))
    try:
        bodies = [notification(f"late-good{i}@example.com", LANES[i % 4]) for i in range(8)]
        for name in names:
            bodies.insert(4, notification(f"bad-late-{name}@example.com", "high", word(name)))
        status, _, answer = pipeline.post(bodies)
        assert status == 202, answer
        wait_letters(shop, known + 2)
        good = [f"late-good{i}@example.com" for i in range(8)]
        wait_until(lambda: set(good) <= {str(mail["To"]) for mail in pipeline.mailbox.mails()}, 30, "the good ones")
    finally:
        supervisor.end()
    found = [one for _, one in letters(shop)[-2:]]
    assert {(one.stage, one.stream) for one in found} == {("renderer", "REQUEST_HIGH"), ("dispatcher", "RENDERED_HIGH")}
    assert all(one.reason.startswith("poison message: ") for one in found)
    assert shop.nats.stream_info("DEAD")["state"]["messages"] == known + 2
    print("deaths:", dict(supervisor.deaths))
    # Seven, since the first two are not counted; six where it came to a process that was dead already.
    assert all(supervisor.deaths[name] >= 6 for name in names)
    arm(pipeline, armed=False, only=names)


def test_finding_13_a_message_that_hangs_its_processes_ends_alone(shop):
    """An endless loop: the watchdog ends the process after STENTOR_LOOP_LIMIT_MS of its processor time."""
    pipeline = shop.pipeline
    arm(pipeline, armed=False)
    renderer = pipeline.services["renderer"]
    renderer.stop()
    renderer.options.update(STENTOR_HANG_ON="poison-hang", STENTOR_LOOP_LIMIT_MS="300")
    renderer.start()
    known = shop.nats.stream_info("DEAD")["state"]["messages"]
    supervisor = Supervisor([renderer], died=-signal.SIGXCPU)
    try:
        names = ["before", "hangs", "after"]
        status, _, answer = pipeline.post([notification(f"{name}-hang@example.com", "normal", "poison-hang" if name == "hangs" else "good") for name in names])
        assert status == 202, answer
        wait_letters(shop, known + 1)
        wait_until(lambda: {"before-hang@example.com", "after-hang@example.com"} <= {str(mail["To"]) for mail in pipeline.mailbox.mails()}, 30, "the good ones")
    finally:
        supervisor.end()
    assert supervisor.deaths["renderer"] == 6
    assert "the event loop was blocked for 300 ms of processor time" in renderer.log.read_text()
    letter = letters(shop)[-1][1]
    assert (letter.stage, letter.stream) == ("renderer", "REQUEST_NORMAL") and b"poison-hang" in letter.payload
    assert shop.nats.stream_info("DEAD")["state"]["messages"] == known + 1
