# SPDX-License-Identifier: Apache-2.0
"""Live streams: the CPU time of a gateway for each event and client, and its memory, with thousands of clients that listen. An event goes out
when the one before has reached every client, so that each costs a client a `send` of its own; several at once would share one.

  python3 -m tests.bench.sse [--quick] [--json FILE]      # with 2,000 clients; needs build/release, or STENTOR_BIN

Ends with 1 when a figure is not reached: 15 us for each event and client, 100 MB with 10,000 clients."""
import argparse
import json
import os
import resource
import selectors
import socket
import time
import uuid
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
os.environ.setdefault("STENTOR_BIN", str(HOME / "build" / "release" / "bin"))

from tests.bench.inapp import cpu_s  # noqa: E402
from tests.harness.nats_client import NatsClient  # noqa: E402
from tests.harness.pipeline import Pipeline  # noqa: E402
from tests.harness.protobuf import messages  # noqa: E402

TENANTS = ["acme", "beta"]  # one tenant may have half of a process' streams
WANTED = {"sse_cpu_us": 15, "sse_memory_mb": 100}
WAVE = 100                  # clients that connect at once
EVENT = b"event: status\n"
PATIENCE_S = 120


class Clients:
    """They count events and throw them away."""

    def __init__(self, port, key, count):
        self.selector = selectors.EpollSelector()
        self.sockets, self.opened, self.events = [], 0, 0
        self.rests = {}  # of a socket: what may be the beginning of a line
        for first in range(0, count, WAVE):
            for number in range(first, min(first + WAVE, count)):
                self.connect(port, key, TENANTS[number * len(TENANTS) // count])
            self.read_until(lambda: self.opened == len(self.sockets), "their first event")

    def connect(self, port, key, tenant):
        one = socket.create_connection(("127.0.0.1", port), 30)
        one.sendall(f"GET /v1/live/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nStentor-Tenant: {tenant}\r\n\r\n".encode())
        one.setblocking(False)
        self.sockets.append(one)
        self.selector.register(one, selectors.EVENT_READ)

    def read(self, timeout):
        for ready, _ in self.selector.select(timeout):
            data = ready.fileobj.recv(65536)
            assert data, "a stream ended"
            data = self.rests.get(ready.fd, b"") + data
            self.opened += data.count(b"event: open\n")
            self.events += data.count(EVENT)
            assert b"event: reset\n" not in data
            self.rests[ready.fd] = data[data.rfind(b"\n") + 1:]

    def read_until(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"{what} did not come: {self.opened} open, {self.events} events"
            self.read(0.1)

    def close(self):
        for one in self.sockets:
            one.close()


def status_event(protocol, tenant):
    event = protocol.NotificationStatus()
    event.meta.tenant = tenant
    event.meta.event_id = uuid.uuid4().hex[:22]
    event.meta.notification_id = "ntf_01M82XS89VEV77VD8AS0MCMH0B"
    event.meta.correlation_id = "order-17"
    event.meta.occurred_at_us = event.accepted_at_us = time.time_ns() // 1000
    event.channel, event.status = protocol.CHANNEL_EMAIL, protocol.STATUS_SENT
    event.category, event.priority = protocol.CATEGORY_TRANSACTIONAL, protocol.PRIORITY_NORMAL
    event.template, event.template_version, event.recipient_id = "welcome", "1.0.0", "rcp_01M82XS89VEV77VD8AS0MCMH0B"
    event.attempt.number, event.attempt.vendor, event.attempt.outcome = 1, "smtp", protocol.OUTCOME_ACCEPTED
    event.attempt.code, event.attempt.enhanced_code = "250", "2.0.0"
    return event


def memory_mb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def figures(pipeline, clients=10000, events=20):
    """[{"name", "value", "unit"}] of a running pipeline's gateway, which nothing else uses meanwhile. events: to each tenant."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    protocol, nats = messages(pipeline), NatsClient(pipeline.nats.port)
    pid = pipeline.services["gateway"].child.pid
    listening = Clients(pipeline.gateway_port, pipeline.operator_key, clients)
    try:
        each = clients // len(TENANTS)
        began = cpu_s(pid)
        for number in range(events):
            for place, tenant in enumerate(TENANTS):
                event = status_event(protocol, tenant)
                nats.publish(f"ntf.status.{tenant}.email.sent", event.SerializeToString(), event.meta.event_id)
                due = each * (number * len(TENANTS) + place + 1)
                listening.read_until(lambda: listening.events >= due, "an event")
        used = cpu_s(pid) - began
        assert listening.events == each * events * len(TENANTS), "an event came twice"
        return [{"name": "sse_cpu_us", "value": round(used / listening.events * 1e6, 1), "unit": "us"},
                {"name": "sse_memory_mb", "value": round(memory_mb(pid), 1), "unit": "MB"}]
    finally:
        listening.close()
        nats.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def measure(clients=10000, events=20):
    """The same with a pipeline of its own."""
    pipeline = Pipeline(bytes_percent=1).start(["ingest", "gateway"])
    try:
        return figures(pipeline, clients, events)
    finally:
        pipeline.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    found = measure(clients=2000 if args.quick else 10000)
    for figure in found:
        print(f"{figure['name']:16} {figure['value']:8} {figure['unit']}")
    if args.json:
        Path(args.json).write_text(json.dumps(found))
    return any(figure["value"] > WANTED[figure["name"]] for figure in found)


if __name__ == "__main__":
    raise SystemExit(main())
