# SPDX-License-Identifier: Apache-2.0
"""The loads, put on one product, and what each cost."""
import http.client
import json
import time

from tests.bench.pairs.callers import call_all, request_bytes
from tests.bench.pairs.meters import Meters
from tests.bench.peers.mails import RECIPIENTS, SUBJECT, TEMPLATE, TEXT, arrays, singles
from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_count, wait_until

PATIENCE_S = 120
WARM_SINGLES = 2_000
SETTLE_S = 1.0  # after the last `sent`: acks, marks and projections that follow it
HISTORY = ("archiver.notifications", "history.notifications")  # today's name, d9095a0's
LEDGER = ("dispatcher.ledger", "dispatch.ledger")

SENT = "SELECT count(*) FROM {} WHERE status = 'sent' AND id > %s AND created_at > to_timestamp(%s)"
LAST_SENT = "SELECT extract(epoch FROM max(updated_at))::float8 FROM {} WHERE status = 'sent' AND id > %s AND created_at > to_timestamp(%s)"
LATENCY = """
SELECT 1000 * percentile_cont(0.5) WITHIN GROUP (ORDER BY took), 1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY took)
FROM (SELECT extract(epoch FROM finished_at - created_at)::float8 AS took FROM {}
      WHERE notification_id > %s AND state = 'sent' AND created_at > to_timestamp(%s)) AS t"""


class Loads:
    def __init__(self, product, sink_pid, arguments):
        self.product, self.arguments = product, arguments
        self.meters = Meters(product, sink_pid)
        self.history, self.ledger = self.table(HISTORY), self.table(LEDGER)
        self.figures = {}
        self.keys = 0

    def run(self):
        """{load: figures}; the slow ones first, while tables are small, as in a product that is rarely busy."""
        arguments = self.arguments
        self.warm_up()
        self.idle()
        self.singles("50", 50 * arguments.seconds_50, callers=16, per_s=50)
        self.singles("1000", 1000 * arguments.seconds_1000, callers=32, per_s=1000)
        self.singles("keyed", arguments.keyed, callers=64)
        self.load("full", arguments.count, [request_bytes(self.product.key, body) for body in arrays(arguments.count)], callers=2)
        self.rebuild()
        self.replay()
        self.meters.close()
        return self.figures

    def query(self, sql, *parameters):
        return self.meters.query(self.meters.database, sql, *parameters)

    def table(self, names):
        return next(name for name in names if self.query("SELECT to_regclass(%s)", name)[0][0])

    # ---- loads ----

    def warm_up(self):
        """Every recipient has a key, every connection its statements, and Postgres plans for tables that have rows: right after an installation
        it reads tables of keys from end to end that it takes for empty (README.md)."""
        text = self.product.folder / "loads.txt"
        text.write_text(TEXT)
        self.product.cli("template", "put", TEMPLATE, "--subject", SUBJECT, "--text", text)
        wait_until(lambda: self.post_one() == 202, 20, "the template reaching ingest")
        self.load("warm", RECIPIENTS, [request_bytes(self.product.key, body) for body in arrays(RECIPIENTS)], callers=2)
        self.singles("warm", WARM_SINGLES, callers=16)
        self.query("VACUUM (ANALYZE)")
        self.singles("warm", 100, callers=16)
        del self.figures["warm"]

    def post_one(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.product.port, timeout=30)
        connection.request("POST", "/v1/notifications", singles(1)[0], {"Content-Type": "application/json", "Authorization": f"Bearer {self.product.key}"})
        status = connection.getresponse().status
        connection.close()
        return status

    def singles(self, name, count, callers, per_s=None):
        """Calls of their own, each under an Idempotency-Key."""
        self.keys += 1
        requests = [request_bytes(self.product.key, body, f"loads-{self.keys}-{at}") for at, body in enumerate(singles(count))]
        self.load(name, count, requests, callers, per_s)

    def load(self, name, count, requests, callers, per_s=None):
        since, last = time.time(), self.query(f"SELECT coalesce(max(id), '') FROM {self.history}")[0][0]
        mine = last, since - 60
        before, start = self.meters.read(), time.time()
        answers = sorted(call_all(self.product.port, requests, callers, per_s))
        accepted = time.time() - start
        wait_count(lambda: self.query(SENT.format(self.history), *mine)[0][0], count, PATIENCE_S, f"{name}: {count} e-mails sent")
        time.sleep(SETTLE_S)
        cost = self.meters.cost(before, self.meters.read(), count)
        (ended,), (latency,) = self.query(LAST_SENT.format(self.history), *mine)[0], self.query(LATENCY.format(self.ledger), *mine)
        self.figures[name] = {**cost, "per_s": count / (ended - start), "accept_per_s": count / accepted,
                              "answer_p50_ms": 1000 * answers[len(answers) // 2], "p50_ms": latency[0], "p99_ms": latency[1]}

    def idle(self):
        """Of one second."""
        time.sleep(2)
        before, start = self.meters.read(), time.monotonic()
        time.sleep(self.arguments.idle_seconds)
        cost = self.meters.cost(before, self.meters.read(), time.monotonic() - start)
        self.figures["idle"] = {**cost, "ms_per_s": (cost["cpu_us"] - cost["sink_us"]) / 1000}

    # ---- the past again, as tests/bench/run does it ----

    def rebuild(self):
        answer = json.loads(self.product.cli("rebuild", "history", "--json", admin=True))
        self.figures["rebuild"] = {"per_s": answer["events_per_s"]}

    def replay(self):
        """Every rendered mail of the fullest lane through the dispatcher again: the ledger refuses each."""
        stored = {name: last for name, last in self.meters.streams().items() if name.startswith("RENDERED_")}
        stream = max(stored, key=stored.get)
        nats = NatsClient(self.product.nats_port)

        def handled():
            state = json.loads(nats.request(f"$JS.API.CONSUMER.INFO.{stream}.dispatcher"))
            return state["num_pending"] == 0 and state["num_ack_pending"] == 0
        wait_until(handled, 30, "the dispatcher being idle")
        start = time.monotonic()
        answer = json.loads(self.product.cli("replay", "--stream", stream, "--from-seq", "1", "--all-tenants", "--to-service", "dispatcher", "--json"))
        wait_until(handled, 120, "the replay being handled")
        self.figures["replay"] = {"per_s": answer["published"] / (time.monotonic() - start)}
        nats.close()
