# SPDX-License-Identifier: Apache-2.0
"""Tenants' webhooks with 1,000 endpoints, of which 50 take a post and never answer: how much longer the others' events are on their way, from the
status to the endpoint. For tests/bench/channels; by itself it prints its figures."""
import multiprocessing
import os
import resource
import secrets
import selectors
import socket
import sys
import time
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME))

from tests.harness.nats_client import NatsClient  # noqa: E402
from tests.harness.pipeline import Pipeline  # noqa: E402
from tests.harness.processes import wait_until  # noqa: E402
from tests.harness.webhooks import Subscriptions, new_secret  # noqa: E402

ENDPOINTS, HANGING = 1000, 50
THE_HANGING = set(range(0, ENDPOINTS, ENDPOINTS // HANGING))  # never measured: what they did not take comes again in later rounds
RATE = 500  # statuses a second
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
MARK = b'"correlation_id":"'


def tenant(number):
    return f"t{number:04}"


def serve(listeners, hanging, pipe):
    """Every endpoint in one process. Says how long each event was on its way, in seconds, when it is asked."""
    selector, waits, open_ones = selectors.DefaultSelector(), [], {}
    for number, listener in enumerate(listeners):
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ, ("accept", number))
    selector.register(pipe, selectors.EVENT_READ, ("pipe", 0))
    while True:
        for key, _ in selector.select():
            kind, number = key.data
            if kind == "pipe":
                asked = pipe.recv()
                if asked == "stop":
                    return
                hanging, answer = (asked, None) if isinstance(asked, set) else (hanging, list(waits))
                waits.clear() if answer is None else None
                pipe.send(answer if answer is not None else "ready")
            elif kind == "accept":
                connection, _ = key.fileobj.accept()
                connection.setblocking(False)
                open_ones[connection] = b""
                selector.register(connection, selectors.EVENT_READ, ("read", number))
            else:
                read(selector, key.fileobj, number, open_ones, waits, hanging)


def read(selector, connection, number, open_ones, waits, hanging):
    try:
        data = connection.recv(65536)
    except OSError:
        data = b""
    if not data:
        selector.unregister(connection)
        open_ones.pop(connection).strip()
        connection.close()
        return
    text = open_ones[connection] + data
    head, end, body = text.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0) if end else 0
    if not end or len(body) < length:
        open_ones[connection] = text
        return
    open_ones[connection] = b""
    if number in hanging:
        return
    if number not in THE_HANGING:
        waits.append(time.time() - int(body.partition(MARK)[2].partition(b'"')[0]) / 1e6)
    connection.send(ANSWER)


class World:
    def __init__(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
        listeners = [socket.create_server(("127.0.0.1", 0), backlog=256) for _ in range(ENDPOINTS)]
        self.pipe, other = multiprocessing.Pipe()
        self.server = multiprocessing.Process(target=serve, args=(listeners, set(), other), daemon=True)
        self.server.start()
        self.pipeline = Pipeline({"STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_LOG_LEVEL": "warn"}, bytes_percent=5)
        self.pipeline.start(["ingest", "gateway", "digest-flusher", "webhook"])
        self.subscriptions = Subscriptions(self.pipeline)
        for number, listener in enumerate(listeners):
            self.subscriptions.put(f"http://127.0.0.1:{listener.getsockname()[1]}/", new_secret(), tenant=tenant(number), wait=False, disable_after=100_000)
            listener.close()
        wait_until(lambda: self.pipeline.services["webhook"].metric("stentor_webhook_subscriptions") == ENDPOINTS, 60, "the subscriptions")
        self.client = NatsClient(self.pipeline.nats.port)

    def status(self, number):
        m, now_us = self.subscriptions.m, int(time.time() * 1e6)
        event_id = secrets.token_urlsafe(17)[:22]
        status = m.NotificationStatus(channel=m.CHANNEL_EMAIL, category=m.CATEGORY_TRANSACTIONAL, priority=m.PRIORITY_NORMAL, status=m.STATUS_SENT, template="welcome")
        status.meta.event_id, status.meta.tenant = event_id, tenant(number)
        status.meta.notification_id, status.meta.correlation_id = "ntf_" + "01" + secrets.token_hex(12).upper(), str(now_us)
        status.meta.occurred_at_us = now_us
        self.client.publish(f"ntf.status.{tenant(number)}.email.sent", status.SerializeToString(), event_id=event_id)

    def run(self, count, hanging):
        """p99 of the endpoints that answer, in seconds; each of their events arrives."""
        self.pipe.send(hanging)
        self.pipe.recv()
        wanted, begin = 0, time.monotonic()
        for at in range(count):
            number = at % ENDPOINTS
            wanted += number not in THE_HANGING
            self.status(number)
            time.sleep(max(0, begin + (at + 1) / RATE - time.monotonic()))
        took = time.monotonic() - begin

        def arrived():
            self.pipe.send("how many")
            return self.pipe.recv()
        wait_until(lambda: len(arrived()) >= wanted, 60, f"{wanted} events at the endpoints that answer")
        waits = sorted(arrived())
        print(f"  {len(hanging):>3} of {ENDPOINTS} hang: {count / took:,.0f} statuses/s, p50 {waits[len(waits) // 2] * 1e3:,.1f} ms, p99 {waits[len(waits) * 99 // 100] * 1e3:,.1f} ms")
        return waits[len(waits) * 99 // 100]

    def stop(self):
        self.pipe.send("stop")
        self.server.join(10)
        self.pipeline.kill()


def hang_ratio(quick):
    """The others' p99 with endpoints that hang, over that without: of the quietest of three rounds each, for other programs only add to it."""
    world = World()
    try:
        count = 10_000 if quick else 30_000
        world.run(2_000, set())  # connections and plans are made
        alone, beside = [], []
        for _ in range(3):
            alone.append(world.run(count, set()))
            beside.append(world.run(count, THE_HANGING))
        return min(beside) / min(alone)
    finally:
        world.stop()


if __name__ == "__main__":
    print(f"webhook_hang_ratio {hang_ratio('--quick' in sys.argv):.2f}")
