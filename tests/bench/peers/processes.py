# SPDX-License-Identifier: Apache-2.0
"""The peers as processes of the harness: the memo service's worker beside Postgres, BullMQ beside Redis."""
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import psycopg2

from tests.harness.outbox import TABLES
from tests.harness.processes import Postgres, Process, free_port

HERE = Path(__file__).resolve().parent
DEBIAN_GO = "/usr/share/gocode"  # where Debian's golang-*-dev packages put their sources

OPEN = "SELECT EXISTS (SELECT FROM email_outbox WHERE status IN ('PENDING', 'SENDING'))"

FILL = {
    "memo": """
WITH memo AS (INSERT INTO memos (memo_number_prefix, department_code, title)
              SELECT 'MEMO', 'IT', 'Memo ' || i FROM generate_series(0, %(count)s - 1) AS i RETURNING id),
     numbered AS (SELECT id, row_number() OVER () - 1 AS i FROM memo)
INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type, idempotency_key, meta_created_at)
SELECT id, 'memo.created', jsonb_build_object('subject', 'Memo ' || i || ' created', 'body', %(body)s),
       'memo' || i %% %(recipients)s || '@example.com', 'MEMO_CREATED', id || '-memo.created-' || i, now() + i * interval '1 us'
FROM numbered""",
    "tenant-service": """
INSERT INTO outbox (id, aggregate_id, aggregate_type, event_type, payload, headers, created_at)
SELECT lpad(i::text, 26, '0'), 'course-' || i %% %(keys)s, 'course', 'course.changed', jsonb_build_object('id', i, 'text', %(body)s),
       '{"tenant_id": "memo"}', now() + i * interval '1 us'
FROM generate_series(0, %(count)s - 1) AS i""",
}


def build(folder):
    """The peers' programs; returns the Go worker's path. npm fetches what package.json names, once."""
    binary = folder / "memo-worker"
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GOPATH": DEBIAN_GO, "GO111MODULE": "off", "GOCACHE": str(folder / "gocache")}
    subprocess.run(["go", "build", "-o", binary, HERE / "memo-worker" / "main.go"], env=environment, check=True)
    if not (HERE / "bullmq" / "node_modules").exists():
        subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=HERE / "bullmq", check=True, stdout=subprocess.DEVNULL)
    return binary


def versions(binary):
    """What was compared, for the table's last line."""
    def said(pattern, *words):
        return re.search(pattern, subprocess.run(words, capture_output=True, text=True, check=True).stdout).group(1)
    modules = {name: json.loads((HERE / "bullmq" / "node_modules" / name / "package.json").read_text())["version"] for name in ("bullmq", "nodemailer")}
    return {"go": said(r"go([\d.]+)", "go", "version", binary), "node": said(r"v([\d.]+)", "node", "--version"),
            "redis": said(r"v=([\d.]+)", "redis-server", "--version"), **modules}


class Application(Postgres):
    """The application's own Postgres, with fresh tables in a database for every run."""

    name = "application"

    def __init__(self, folder):
        super().__init__(folder, durable=True)
        self.connection = None

    def fresh(self, database, shape="memo"):
        """An empty database with the tables of a shape (tests/harness/outbox.py), and a connection to it."""
        if self.connection is not None:
            self.connection.close()
        self.query(f"CREATE DATABASE {database}", database="postgres")
        self.query(TABLES[shape], database=database)
        self.shape, self.database = shape, database
        self.connection = psycopg2.connect(self.url(database=database))
        return self

    def fill(self, count, body, recipients=1, keys=1):
        """Rows that are invisible before commit(). recipients: of the mails; keys: ordering keys of the events."""
        with self.connection.cursor() as cursor:
            cursor.execute(FILL[self.shape], {"count": count, "body": body, "recipients": recipients, "keys": keys})
            cursor.execute("ANALYZE")

    def commit(self):
        self.connection.commit()

    def row(self, sql, *params):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params or None)
            found = cursor.fetchone()
        self.connection.rollback()
        return found

    def all_done(self):
        return not self.row(OPEN)[0]

    def not_sent(self):
        return self.row("SELECT count(*) FROM email_outbox WHERE status <> 'SENT'")[0]


class MemoWorker(Process):
    """E's worker (peers/memo-worker): one process claims, sends and marks in one transaction."""

    def __init__(self, folder, binary, application, smtp_port, number=1, per_mail=False):
        self.name = f"memo-worker{number}"
        self.words = [binary, "-database", application.url(database=application.database) + " sslmode=disable", "-smtp", f"127.0.0.1:{smtp_port}",
                      *(["-connection-per-mail"] if per_mail else [])]
        super().__init__(folder)

    def argv(self):
        return self.words


class Redis(Process):
    """Append-only file, written out every second: what its users choose who would lose little. No snapshots beside it."""

    name = "redis"

    def __init__(self, folder):
        super().__init__(folder)
        self.port = free_port()

    def argv(self):
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
                "--appendonly", "yes", "--appendfsync", "everysec"]

    def ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class BullWorker(Process):
    """BullMQ's worker with nodemailer (peers/bullmq/worker.mjs)."""

    def __init__(self, folder, redis, smtp_port, number=1):
        self.name = f"bullmq-worker{number}"
        self.settings = {"PATH": os.environ["PATH"], "REDIS_PORT": str(redis.port), "SMTP_PORT": str(smtp_port)}
        super().__init__(folder)

    def argv(self):
        return ["node", HERE / "bullmq" / "worker.mjs"]

    def environment(self):
        return self.settings

    def ready(self):
        return "ready" in self.tail()

    def kill(self):
        super().kill()
        self.log.unlink()  # the next process writes again that it is ready


class BullQueue:
    """The application's side of BullMQ's queue: a program driven by commands."""

    def __init__(self, redis):
        self.child = subprocess.Popen(["node", HERE / "bullmq" / "queue.mjs"], env={"PATH": os.environ["PATH"], "REDIS_PORT": str(redis.port)},
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)

    def tell(self, **command):
        self.child.stdin.write(json.dumps(command) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        assert line, f"queue.mjs ended with {self.child.wait()}"
        return json.loads(line)

    def fill(self, count, recipients, body, first=0):
        """Jobs that wait for resume()."""
        self.tell(do="fill", first=first, count=count, recipients=recipients, body=body)

    def resume(self):
        self.tell(do="resume")

    def counts(self):
        return self.tell(do="counts")

    def all_done(self):
        return self.counts()["open"] == 0

    def close(self):
        self.child.stdin.close()
        self.child.wait(20)
