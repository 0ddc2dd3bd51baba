# SPDX-License-Identifier: Apache-2.0
"""A tenant's endpoint that checks each signature by a package that is not ours (npm's standardwebhooks), and subscriptions put into CONFIG."""
import base64
import fcntl
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import threading
import time

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import free_port, wait_until
from tests.harness.protobuf import messages
from tests.integration.erasure.sealed_events import expand

HERE = pathlib.Path(__file__).parent


class Verifier:
    """The package, in a process that answers line by line."""

    def __init__(self):
        if not shutil.which("node") or not shutil.which("npm"):
            pytest.skip("this machine has no node or no npm")
        with (HERE / "package.json").open() as lock:  # other workers fetch it, too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (HERE / "node_modules").exists():
                done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
                assert done.returncode == 0, done.stderr
        self.lock = threading.Lock()
        self.node = subprocess.Popen(["node", "verify.mjs"], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, secret, headers, body):
        """The event; None: the package refuses it."""
        with self.lock:
            self.node.stdin.write(json.dumps({"secret": secret, "headers": headers, "body": body}) + "\n")
            self.node.stdin.flush()
            return json.loads(self.node.stdout.readline()).get("event")

    def close(self):
        self.node.stdin.close()
        self.node.wait(10)


class Request:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body, self.at = path, headers, body, time.time()

    @property
    def id(self):
        return self.headers["webhook-id"]

    @property
    def event(self):
        return json.loads(self.body)

    @property
    def status(self):
        return self.event["data"]["status"]


class Endpoint:
    """Takes every post. `answers`: (status, headers) of the next ones, then `lasting`; `failing`: of a notification's next posts so many are
    answered with 500; `hang`: seconds before an answer."""

    def __init__(self, verifier, secret=None):
        self.port, self.verifier = free_port(), verifier
        self.secret = secret or new_secret()
        self.requests, self.refused, self.answers, self.hang = [], [], [], 0
        self.lasting, self.failing = (200, {}), {}
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                endpoint.answer(self)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *words: None  # the caller was killed
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        request = Request(handler.path, {name.lower(): value for name, value in handler.headers.items()}, body)
        if self.verifier(self.secret, request.headers, body) is None:
            self.refused.append(request)
            status, headers = 401, {}
        else:
            self.requests.append(request)
            status, headers = self.decide(request)
        time.sleep(self.hang)
        try:
            handler.send_response(status)
            for name, value in {"Content-Length": "2", **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(b"ok")
        except OSError:
            pass  # the caller did not wait

    def decide(self, request):
        notification = request.event["data"]["id"]
        if self.failing.get(notification):
            self.failing[notification] -= 1
            return 500, {}
        return self.answers.pop(0) if self.answers else self.lasting

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks"

    def of(self, notification):
        return [request for request in list(self.requests) if request.event["data"]["id"] == notification]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def new_secret():
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


class Subscriptions:
    """What `stentor webhook` stores, put into CONFIG directly."""

    def __init__(self, pipeline):
        self.pipeline, self.client, self.m = pipeline, NatsClient(pipeline.nats.port), messages(pipeline)
        self.entries = {}

    def seal(self, tenant, owner, text):
        keys, nonce = self.pipeline.master_keys(), os.urandom(12)
        key = expand(bytes.fromhex(keys["master"][0]), b"stentor tenant key|" + hashlib.sha256(tenant.encode()).digest())
        subject = hmac.digest(bytes.fromhex(keys["hash"][0]), f"key|{tenant}|".encode(), "sha256")[:16]
        sealed = AESGCM(key).encrypt(nonce, text.encode(), f"{tenant}|{owner}|secret".encode())
        return self.m.Sealed(key_subject=subject, key_generation=0, nonce=nonce, ciphertext=sealed)

    def put(self, url, *secret_texts, tenant=TENANT, id=None, wait=True, **fields):
        id = id or "whs_" + "01" + "".join(secrets.choice("0123456789ABCDEFGHJKMNPQRSTVWXYZ") for _ in range(24))
        now = int(time.time() * 1e6)
        entry = self.m.WebhookSubscription(tenant=tenant, id=id, target_url=url, created_at_us=now - 1000, **fields)
        for text in secret_texts:
            entry.secrets.add(secret=self.seal(tenant, id, text), created_at_us=now)
        return self.store(entry, wait)

    def store(self, entry, wait=True):
        subject = f"cfg.webhook.{entry.tenant}.{entry.id}"
        ack = self.client.publish(subject, entry.SerializeToString(), event_id=secrets.token_urlsafe(16)[:22])
        if wait:
            self.pipeline.wait_config(ack["seq"], "webhook")
        self.entries[entry.id] = entry
        return entry.id

    def remove(self, id):
        entry = self.entries.pop(id)
        self.client.publish(f"cfg.webhook.{entry.tenant}.{id}", b"", event_id=secrets.token_urlsafe(16)[:22])

    def get(self, id, tenant=TENANT):
        found = self.client.message("CONFIG", last_by_subj=f"cfg.webhook.{tenant}.{id}")
        return self.m.WebhookSubscription.FromString(found[1])

    def row(self, id, notification=None, **wanted):
        """Of the ledger, once it is as wanted: row(id, state="waiting")."""
        columns = ["state", "attempt", "turn", "status_code", "error", "response", "event_type", "id", "event_id", "next_attempt_at", "owner"]

        def found():
            rows = self.pipeline.postgres.query(
                f"SELECT {', '.join(columns)} FROM webhooks.deliveries WHERE subscription_id = %s"
                " AND (%s::text IS NULL OR notification_id = %s) ORDER BY sequence", id, notification, notification)
            rows = [dict(zip(columns, row)) for row in rows]
            return next((row for row in rows if all(row[name] == value for name, value in wanted.items())), None)
        return wait_until(found, 30, f"a delivery of {id} with {wanted}")

    def failures(self, id):
        rows = self.pipeline.postgres.query("SELECT failures FROM webhooks.endpoints WHERE subscription_id = %s", id)
        return rows[0][0] if rows else 0
