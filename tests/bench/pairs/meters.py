# SPDX-License-Identifier: Apache-2.0
"""What a load costs a product: CPU and context switches of each process, statements, commits and log of Postgres, messages of NATS.

The bench's own two sessions are not counted: neither their statements nor their CPU nor their switches."""
import json
import re
import subprocess
import urllib.request

from tests.harness.cost import context_switches, cpu_seconds_exact

STATEMENTS = """
SELECT query, sum(calls)::float8, sum(total_exec_time)::float8 FROM pg_stat_statements
WHERE userid <> 'postgres'::regrole GROUP BY query"""


class Meters:
    def __init__(self, product, sink_pid):
        self.product = product
        self.pids = {**product.pids, "smtp-sink": sink_pid}
        self.statistics, self.database = product.database("postgres"), product.database()
        self.query(self.statistics, "CREATE EXTENSION pg_stat_statements")
        self.query(self.database, "SET max_parallel_workers_per_gather = 0")  # a worker's CPU would be Postgres's
        self.backends = [self.query(connection, "SELECT pg_backend_pid()")[0][0] for connection in (self.statistics, self.database)]

    @staticmethod
    def query(connection, sql, *parameters):
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def close(self):
        self.statistics.close()
        self.database.close()

    # ---- reading ----

    def read(self):
        return {"cpu": self.of_processes(cpu_seconds_exact), "switches": self.of_processes(context_switches),
                "statements": {query: (calls, ms) for query, calls, ms in self.query(self.statistics, STATEMENTS)},
                "wal": self.query(self.statistics, "SELECT pg_current_wal_flush_lsn()")[0][0], "nats": self.messages()}

    def of_processes(self, measure):
        found = {name: measure(pid) for name, pid in self.pids.items()}
        found["postgres"] -= sum(map(measure, self.backends))
        return found

    def monitor(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.product.monitor}/{path}", timeout=10) as answer:
            return json.load(answer)

    def streams(self):
        """{stream: its last sequence}"""
        accounts = self.monitor("jsz?accounts=true&streams=true")["account_details"]
        return {stream["name"]: stream["state"]["last_seq"] for account in accounts for stream in account.get("stream_detail", [])}

    def messages(self):
        """What clients sent the server (publishes, acks, requests) and got from it, and what it stored."""
        general = self.monitor("varz")
        return {"in": general["in_msgs"], "out": general["out_msgs"], "stored": sum(self.streams().values())}

    # ---- what lies between two readings ----

    def cost(self, before, after, count):
        """Of each of so many mails."""
        cpu = {name: (after["cpu"][name] - before["cpu"][name]) * 1e6 / count for name in self.pids}
        switches = {name: (after["switches"][name] - before["switches"][name]) / count for name in self.pids if name != "smtp-sink"}
        statements = self.statements(before, after, count)
        found = {"cpu_us": sum(cpu.values()), "cpu": cpu, "sink_us": cpu["smtp-sink"], "switches": sum(switches.values()), "switches_of": switches,
                 "statements": sum(calls for calls, _ in statements.values()), "by_statement": statements}
        found.update({f"messages_{way}": (after["nats"][way] - before["nats"][way]) / count for way in after["nats"]})
        found.update({name: value / count for name, value in self.log_between(before["wal"], after["wal"]).items()})
        return found

    @staticmethod
    def statements(before, after, count):
        """{query: (executions, microseconds)} of those that were executed."""
        first = before["statements"]
        found = {query: (calls - first.get(query, (0, 0))[0], ms - first.get(query, (0, 0))[1]) for query, (calls, ms) in after["statements"].items()}
        return {query: (calls / count, ms * 1000 / count) for query, (calls, ms) in found.items() if calls}

    def log_between(self, first, last):
        """Commits and bytes of Postgres's log; page images are bytes that follow each checkpoint, whatever is written."""
        if first == last:
            return {"commits": 0, "wal_bytes": 0, "wal_page_bytes": 0}
        done = subprocess.run([f"{self.product.postgres_bin}/pg_waldump", "-p", self.product.wal, "-s", first, "-e", last, "--stats=record"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        commits = re.search(r"^Transaction/COMMIT +(\d+)", done.stdout, re.M)
        records, pages = re.search(r"^Total +\d+ +(\d+) \[.*?\] +(\d+)", done.stdout, re.M).groups()
        return {"commits": int(commits.group(1)) if commits else 0, "wal_bytes": int(records) + int(pages), "wal_page_bytes": int(pages)}
