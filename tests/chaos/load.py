# SPDX-License-Identifier: Apache-2.0
"""Clients as the documents ask for: arrays with an idempotency key, repeated at either ingest until there is a 202."""
import http.client
import json
import random
import threading
import time
from datetime import datetime, timedelta, timezone

from tests.chaos import channels, vendors
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.protobuf import messages

CHUNK = 50
CLIENTS = 24
TIMEOUT_S = 8
COMMANDS_PER_S = 5
AGAIN_SHARE = 0.05  # of the arrays are posted once more after their 202: the same ids must come


class Load:
    """Open loop: array k is due at its time whatever became of the others; an outage is caught up afterwards."""

    def __init__(self, world, seed, rate, seconds):
        self.world = world
        self.seed = seed
        self.rate = rate
        self.total = int(rate * seconds) // CHUNK
        self.next = 0
        self.lock = threading.Lock()
        self.accepted = dict(world.trials)  # id -> address
        self.refused = []   # answers that a correct request must not get
        self.repeats = 0    # posts that had to be repeated
        self.started = None
        self.threads = [threading.Thread(target=self.client, args=(number,), daemon=True) for number in range(CLIENTS)]

    def start(self):
        self.started = time.monotonic()
        for thread in self.threads:
            thread.start()
        return self

    def join(self, seconds):
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)

    def client(self, number):
        connections = {}
        while not self.world.over.is_set():
            with self.lock:
                chunk, self.next = self.next, self.next + 1
            if chunk >= self.total:
                return
            self.world.over.wait(max(0, self.started + chunk * CHUNK / self.rate - time.monotonic()))
            chance = random.Random(f"{self.seed}-{chunk}")
            bodies = [self.body(chance, chunk, index) for index in range(CHUNK)]
            ids = self.post(connections, number, json.dumps(bodies).encode(), f"chunk-{chunk}")
            if ids is None:
                continue
            with self.lock:
                self.accepted.update(zip(ids, (body["to"] for body in bodies)))
            if chance.random() < AGAIN_SHARE:
                again = self.post(connections, number + 1, json.dumps(bodies).encode(), f"chunk-{chunk}")
                if again not in (None, ids):
                    self.refused.append((202, f"chunk-{chunk} got other ids when it was repeated"))

    def body(self, chance, chunk, index):
        body = self.of_a_channel(chance, chunk, index) if chance.random() < channels.SHARE else self.mail(chance, chunk, index)
        body["priority"] = chance.choices(["normal", "high", "low", "critical"], [70, 15, 10, 5])[0]
        if chance.random() < 0.04:
            at = datetime.now(timezone.utc) + timedelta(seconds=chance.uniform(1, 5))
            body["scheduled_for"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return body

    def of_a_channel(self, chance, chunk, index):
        return self.world.addresses.body(chance.choice(channels.CHANNELS), chunk, index)

    @staticmethod
    def mail(chance, chunk, index):
        domain = chance.choice([*vendors.ROUTES]) if chance.random() < vendors.SHARE else vendors.DOMAIN
        return {"to": f"c{chunk}n{index}@{domain}", "template": "welcome", "variables": {"name": f"N{chunk}-{index}"}}

    def post(self, connections, turn, raw, key):
        while not self.world.over.is_set():
            port = self.world.ingest_ports[turn % len(self.world.ingest_ports)]
            status, answer = self.ask(connections, port, raw, key)
            if status == 202:
                return [item["id"] for item in answer["notifications"]]
            if status not in (0, 503):
                self.refused.append((status, answer))
                return None
            with self.lock:
                self.repeats += 1
            turn += 1
            self.world.over.wait(0.1)
        return None

    def ask(self, connections, port, raw, key):
        connection = connections.get(port) or http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        connections[port] = connection
        try:
            connection.request("POST", "/v1/notifications", raw, {
                "Content-Type": "application/json", "Authorization": f"Bearer {self.world.key}", "Idempotency-Key": key})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError):
            connections.pop(port).close()
            return 0, None


class Commands(threading.Thread):
    """The other way in: commands on NATS, each published until it has its ack, some twice. A stored command is accepted."""

    def __init__(self, world, seed, seconds):
        super().__init__(daemon=True)
        self.world = world
        self.total = int(COMMANDS_PER_S * seconds)
        self.chance = random.Random(f"{seed}-commands")
        self.stored = {}  # correlation id -> address
        self.client = None

    def run(self):
        command = messages(self.world).NotifyCommand
        started = time.monotonic()
        for number in range(self.total):
            self.world.over.wait(max(0, started + number / COMMANDS_PER_S - time.monotonic()))
            name, address = f"command-{number}", f"command{number}@chaos.test"
            made = command(to=address, template="welcome", variables_json='{"name": "Nats"}', correlation_id=name)
            for _ in range(self.chance.choice([1, 1, 1, 2])):
                self.publish(made.SerializeToString(), name)
            if self.world.over.is_set():
                return
            self.stored[name] = address

    def publish(self, payload, name):
        while not self.world.over.is_set():
            try:
                self.client = self.client or NatsClient(self.world.nats.port)
                self.client.socket.settimeout(2)
                self.client.publish(f"evt.{TENANT}.notify", payload, name)
                return
            except (OSError, AssertionError, ValueError, IndexError):
                if self.client is not None:
                    self.client.close()
                self.client = None
                self.world.over.wait(0.2)
