# SPDX-License-Identifier: Apache-2.0
"""One small load with every kind of input, and all that it leaves behind, in a form in which two runs can be compared."""
import base64
import collections
import datetime
import email
import http.client
import itertools
import json
import smtplib
import subprocess
import threading
import urllib.request
import time

import psycopg2
import psycopg2.extras

from tests.harness.bounces import BOUNCE_DOMAIN, Sent, deliver
from tests.harness.digests import Deferrals, now_us
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.harness.smtp import Mailbox
from tests.harness.vendor_doubles import callbacks, phone

SCHEDULED_IN_S = 1
ITEMS = 2  # of the digest
GATE_S = 30
OUR_NUMBER = "106540352242922"  # its id at Meta
DUPLICATE_WINDOW_NS = 100_000_000
# What the ids, the time or the address of a run is in: only whether it is there is compared.
OWN = {"created_at", "id", "recipient_id", "tenant_id", "notification_id", "address_hash", "address", "correlation_id", "source_event_id",
       "vendor_message_id", "updated_at", "owner", "lease_until", "batch_id", "digest_window_id"}
POISON = {"poison.request": f"ntf.request.normal.{TENANT}", "poison.rendered": f"ntf.rendered.normal.{TENANT}",
          "poison.deferred": f"ntf.deferred.retry.{TENANT}", "poison.evt": f"evt.{TENANT}.notify",
          "poison.tenant": "evt.platform.TenantCreated", "poison.inbound": "ntf.inbound.sendgrid", "poison.status": f"ntf.status.{TENANT}.email.sent"}
KINDS = ["called", "returned", "single", "batch", "campaign", "chosen", "scheduled", "retry", "rejected", "inapp", "snoozed", "shown", "endless", "command", "callback", "bounce", "digest", "resend",
         "managed", "tenant", "asset", "reply", *POISON]


class CrashMailbox(Mailbox):
    """Answers by what stands before the @: 'rejected' always 550, 'retry' 451 until the ledger has that outcome, 'resend' 451 until it
    has failed for good.

    So the answers depend on what was recorded and not on how often a process died, and runs can be compared."""

    def __init__(self, port, postgres):
        super().__init__(port)
        self.postgres = postgres
        self.gate = threading.Event()  # closed: the server hangs after DATA
        self.gate.set()
        self.waiting = False

    def deliver(self, envelope):
        self.waiting = True
        self.gate.wait(GATE_S)
        self.waiting = False
        local = envelope.rcpt_tos[0].split("@")[0]
        if local.startswith("rejected"):
            return "550 5.7.1 not from you"
        if local.startswith("retry") and not self.was(envelope, "deferred") or local.startswith("resend") and not self.was(envelope, "failed"):
            return "451 4.3.0 try again"
        return super().deliver(envelope)

    def was(self, envelope, state):
        notification = email.message_from_bytes(envelope.content)["Message-ID"].strip("<>").split("@")[0]
        return self.postgres.query("SELECT 1 FROM dispatcher.ledger WHERE notification_id = %s AND state = %s", notification, state) != []


class Signer:
    """Signs callbacks as SendGrid does, with a key pair of our own that is configured for the tenant."""

    def __init__(self, pipeline):
        self.key = pipeline.folder / "sendgrid.pem"
        self.run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.key)
        public = self.run("ec", "-in", self.key, "-pubout", "-outform", "DER")
        pipeline.cli("inbound", "put", "sendgrid", "--public-key", base64.b64encode(public).decode())

    @staticmethod
    def run(*words, data=None):
        return subprocess.run(["openssl", *words], input=data, check=True, capture_output=True).stdout

    def headers(self, body):
        at = str(int(time.time()))
        signature = self.run("dgst", "-sha256", "-sign", self.key, data=at.encode() + body)
        return {"X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
                "X-Twilio-Email-Event-Webhook-Timestamp": at}


class Bench:
    """What the runs share: the pipeline, a NATS client, a Postgres connection, the signer."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.proto = messages(pipeline)
        self.nats = NatsClient(pipeline.nats.port)
        self.signer = Signer(pipeline)
        self.meta = callbacks.Signer("meta")
        secret = pipeline.folder / "credentials" / "meta-app"
        secret.parent.mkdir(exist_ok=True)
        secret.write_text(self.meta.key)
        pipeline.cli("inbound", "put", "meta", "--secret", f"main=file:{secret}", "--number", OUR_NUMBER)
        self.meta_path = pipeline.cli("inbound", "url", "meta").strip()
        self.database = psycopg2.connect(pipeline.postgres.url())
        self.database.autocommit = True
        self.numbers = itertools.count()
        pipeline.cli("mail-domain", "put", "acme.test", "--bounce-domain", BOUNCE_DOMAIN)
        page = pipeline.folder / "digest.html"
        page.write_text("<p>News</p>")
        pipeline.cli("template", "put", "digest", "--subject", "Digest", "--html", page)
        words = pipeline.folder / "inbox.txt"
        words.write_text("News for {{name}}")
        pipeline.cli("template", "put", "inbox", "--channel", "inapp", "--title", "News", "--text", words)
        self.endless = pipeline.put_endless()
        self.deferrals = Deferrals(pipeline)
        self.streams = json.loads(self.nats.request("$JS.API.STREAM.NAMES"))["streams"]
        for number in range(3):  # whom the query of every run's "chosen" finds
            pipeline.cli("recipient", "put", "--identity", f"guest:chosen{number}", "--email", f"chosen{number}@example.com", "--label", "chosen")
        wait_until(lambda: self.rows("SELECT count(*) AS count FROM people.labels")[0]["count"] == 3, 20, "the labels")

    def rows(self, sql, *params):
        with self.database.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute(sql, params)
            return cursor.fetchall()

    def last(self, stream):
        return self.nats.stream_info(stream)["state"]["last_seq"]

    def since(self, stream, sequence, kind):
        """The events of a stream after `sequence`, each id once."""
        events = {}
        for at in range(sequence + 1, self.last(stream) + 1):
            try:
                event = kind.FromString(self.nats.message(stream, seq=at)[1])
                events.setdefault(event.meta.event_id, event)
            except Exception:  # noqa: BLE001 (poison: each protobuf library has its own)
                continue
        return list(events.values())

    def consumers_are_done(self):
        for stream in self.streams:
            for consumer in json.loads(self.nats.request(f"$JS.API.CONSUMER.LIST.{stream}"))["consumers"] or []:
                config = (consumer or {}).get("config")  # without one: a reader's, which is just going away
                ours = config and config.get("durable_name") in self.pipeline.services  # not a neighbour's that does not run
                if ours and consumer["num_pending"] + consumer["num_ack_pending"] > 0:
                    return False
        return True

    def tables_are_done(self):
        waiting = self.rows(
            "SELECT (SELECT count(*) FROM ingest.accept_log WHERE published_at IS NULL) + (SELECT count(*) FROM digest_flusher.due_work WHERE due_at < now() + interval '1 day')"
            " + (SELECT count(*) FROM digest_flusher.digest_windows WHERE state <> 'flushed')"
            " + (SELECT count(*) FROM dispatcher.ledger WHERE state = 'claimed')"
            " + (SELECT count(*) FROM ingest.batches WHERE status = 'running') + (SELECT count(*) FROM feed.statuses)"
            # Its copy comes to every reader, and poison in it makes a second letter.
            " + (SELECT count(*) FROM ingest.clear_events WHERE copied_at IS NULL) AS count")
        behind = [row for row in self.rows("SELECT stream, sequence FROM archiver.positions UNION ALL SELECT stream, sequence FROM feed.positions") if row["sequence"] < self.last(row["stream"])]
        return waiting[0]["count"] == 0 and behind == []

    def is_quiet(self):
        """Nothing waits anywhere, and nothing came while we looked."""
        before = [self.last(stream) for stream in self.streams]
        return self.consumers_are_done() and self.tables_are_done() and before == [self.last(stream) for stream in self.streams]

    def shrink_duplicate_windows(self):
        """From now on JetStream stores an id again after a moment: what it would hide for 120 s, the readers have to bear."""
        for stream in self.streams:
            config = {**self.nats.stream_info(stream)["config"], "duplicate_window": DUPLICATE_WINDOW_NS}
            answer = json.loads(self.nats.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
            assert answer["config"]["duplicate_window"] == DUPLICATE_WINDOW_NS, answer

    def end_leases(self):
        """Lets the leases of a dead process end now: those of the clock and of the sweep are 15 s at least, and the dispatcher's is long enough
        for a mail to wait for its only connection on a busy machine (three quarters of it; then the mail is tried again as another attempt)."""
        self.rows("UPDATE digest_flusher.due_work SET claimed_until = now() WHERE claimed_until IS NOT NULL RETURNING 1")
        self.rows("UPDATE digest_flusher.digest_windows SET claimed_until = now() WHERE claimed_until IS NOT NULL RETURNING 1")
        self.rows("UPDATE dispatcher.ledger SET lease_until = now() WHERE state = 'claimed' RETURNING 1")
        self.rows("UPDATE ingest.batches SET lease_until = now() WHERE status = 'running' RETURNING 1")
        self.rows("UPDATE ingest.accept_log SET claimed_until = now() WHERE published_at IS NULL RETURNING 1")
        self.rows("UPDATE ingest.clear_events SET claimed_until = now() RETURNING 1")

    def forget_pulls(self, service):
        """Until its consumer is asked for its info, nats-server 2.9 keeps the pull requests of a dead process. A redelivery that meets one before
        the next process has its own is lost, and not counted: the next one says that it is the first."""
        def left():
            infos = [json.loads(self.nats.request(f"$JS.API.CONSUMER.INFO.{stream}.{service}")) for stream in self.streams]
            return sum(info.get("num_waiting", 0) for info in infos)
        wait_until(lambda: left() == 0, 10, "the dead process's pull requests being forgotten")

    def close(self):
        self.deferrals.close()
        self.nats.close()
        self.database.close()


class Run:
    def __init__(self, bench, tag):
        self.bench = bench
        self.tag = tag
        self.number = next(bench.numbers)
        self.ids = {}  # kind -> notification ids
        self.campaign = None  # its batch
        self.begun_us = now_us()
        self.asset = None  # what putting it answered
        self.chosen = None  # the one that chooses its members
        self.tries = {}  # kind -> how often it was posted until it was taken
        self.left = [kind for kind in KINDS if kind != "snoozed"]  # which takes seconds and leaves what there is without it
        self.start = {stream: bench.last(stream) for stream in ("STATUS", "DEAD", "FEED")}

    # ---- sending ----

    def send(self, kind):
        """Gives one kind to the pipeline, again and again until it is taken, as its senders do."""
        if kind in self.left:
            self.left.remove(kind)
        if kind in POISON:
            self.bench.nats.publish(POISON[kind], b"\xff\xff\xff\xff", f"{self.tag}-{kind}")
        elif kind == "command":
            command = self.bench.proto.NotifyCommand(
                to=self.address(kind), template="welcome", variables_json='{"name":"A"}', correlation_id=f"{self.tag}/{kind}")
            self.publish_until_stored(f"evt.{TENANT}.notify", command.SerializeToString(), f"{self.tag}-{kind}")
        elif kind == "callback":
            self.call_back()
        elif kind == "bounce":
            self.bounce()
        elif kind == "reply":
            self.reply()
        elif kind == "digest":
            self.gather()
        elif kind == "campaign":
            members = [{"to": self.address("campaign", i), "variables": {"name": "A"}} for i in range(3)]
            self.campaign = self.start_batch(kind, members=members)
        elif kind == "chosen":
            self.chosen = self.start_batch(kind, recipient_query={"labels": "chosen"}, variables={"name": "A"})
        elif kind == "resend":
            self.send_again()
        elif kind == "managed":
            self.manage()
        elif kind == "tenant":
            self.tell_of_tenant()
        elif kind == "asset":
            self.put_asset()
        elif kind == "snoozed":
            self.snooze()
        elif kind == "shown":
            self.read_inbox()
        else:
            self.request(kind)

    def send_left(self):
        for kind in list(self.left):
            self.send(kind)

    def publish_until_stored(self, subject, payload, event_id):
        """As an application does, whose events ingest stores and answers: the same id again until there is an ack."""
        deadline = time.monotonic() + GATE_S
        while True:
            client = NatsClient(self.bench.pipeline.nats.port, f"{TENANT}-app")
            client.socket.settimeout(1)
            try:
                return client.publish(subject, payload, event_id)
            except OSError:
                assert time.monotonic() < deadline, "no process stores the event"
            finally:
                client.close()

    def address(self, kind, number=0):
        return f"{kind}{number}-run{self.number}@example.com"

    def request(self, kind):
        count = {"batch": 3, "scheduled": 2}.get(kind, 1)
        fields = {"template": "welcome", "variables": {"name": "A"}, "correlation_id": f"{self.tag}/{kind}"}
        if kind == "endless":  # what only the renderer can refuse
            fields.update(self.bench.endless)
        if kind == "inapp":
            fields.update(channel="inapp", template="inbox")
        if kind == "scheduled":
            at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=SCHEDULED_IN_S)
            fields["scheduled_for"] = at.isoformat().replace("+00:00", "Z")
        body = json.dumps([{"to": self.address(kind, i), **fields} for i in range(count)]).encode()
        answer = self.until(202, kind, body, headers={"Idempotency-Key": f"{self.tag}-{kind}"})
        self.ids[kind] = [item["id"] for item in answer["notifications"]]

    def start_batch(self, kind, **members):
        """A batch of three, one a step; returns its id."""
        body = json.dumps({"name": self.tag[:200], "template": "welcome", "rate_per_second": 10, **members}).encode()
        batch = self.until(201, kind, body, path="/v1/batches", headers={"Idempotency-Key": f"{self.tag}-{kind}"})["id"]
        self.until(200, kind, b"", path=f"/v1/batches/{batch}/start")
        return batch

    def call_back(self):
        """About a mail of its own and once that is sent: a callback about an unknown outcome would settle it."""
        called = self.ids["called"][0]
        self.wait_sent(called)
        event = {"email": self.address("called"), "smtp-id": f"<{called}@acme.test>"}
        ages = {"delivered": 0, "open": 600}  # what is older than a minute goes through the dispatcher, which knows whether it came before
        body = json.dumps([{**event, "event": kind, "sg_event_id": f"{kind}-{self.tag}", "timestamp": int(time.time()) - age} for kind, age in ages.items()]).encode()
        headers = self.bench.signer.headers(body)
        self.until(200, "callback", body, path=f"/v1/inbound/{TENANT}/sendgrid", headers=headers, port=self.bench.pipeline.webhook_port)

    def reply(self):
        """A recipient of this run's own writes STOP, and START once that has suppressed the number."""
        number = f"+4916{self.number:08}"
        for text, released in (("STOP", False), ("START", True)):
            headers, body = phone.meta_message(self.bench.meta, OUR_NUMBER, number, text)
            self.until(200, "reply", body, path=self.bench.meta_path, headers=headers, port=self.bench.pipeline.webhook_port, unknown_yet=401)
            wait_until(lambda: (self.opt_out() or {}).get("released") is released, 30, f"{text} being done")

    def opt_out(self):
        """What the last STOP of all made; None: there was none since this run began."""
        proto, nats = self.bench.proto, self.bench.nats
        found = nats.message("REPLIES", last_by_subj=f"ntf.reply.{TENANT}.whatsapp.stop")
        event = proto.InboundReply.FromString(found[1]) if found else None
        if event is None or event.received_at_us < self.begun_us:
            return None
        stored = nats.message("CONFIG", last_by_subj=f"cfg.suppression.{TENANT}.whatsapp.any.{event.address_hash.hex()}")
        entry = proto.Suppression.FromString(stored[1] if stored else b"")
        return {"reason": entry.reason, "by": entry.created_by, "released": entry.released_at_us > 0, "released_by": entry.released_by}

    def wait_sent(self, notification):
        wait_until(lambda: self.bench.pipeline.postgres.query(
            "SELECT 1 FROM dispatcher.ledger WHERE notification_id = %s AND state = 'sent'", notification), 30, "the mail to report on")

    def bounce(self):
        """By LMTP about a mail of its own, again until it is taken, as a mail server does."""
        returned = self.ids["returned"][0]
        self.wait_sent(returned)
        mail = Sent(self.bench.pipeline, returned, self.address("returned"))
        assert mail.return_path.endswith(BOUNCE_DOMAIN)

        def taken():
            try:
                (code, text), = deliver(self.bench.pipeline.lmtp_port, [mail.return_path], mail.report("postfix_failed"))
            except (OSError, smtplib.SMTPException):
                return False  # it died before it answered
            assert code in (250, 451), text
            return code == 250
        wait_until(taken, 30, "the bounce being taken")

    def read_inbox(self):
        """The recipient's client gets the item and says that it was read; again until each is taken."""
        self.do_in_inbox("read")

    def snooze(self):
        """The item is put off for a second, and comes back unread."""
        self.do_in_inbox("snooze", for_s=1)
        wait_until(lambda: self.bench.pipeline.postgres.query(
            "SELECT 1 FROM feed.items WHERE notification_id = %s AND snoozed_until IS NULL AND unread_at IS NOT NULL", self.ids["inapp"][0]), 30, "the end of the snooze")

    def do_in_inbox(self, what, for_s=None):
        item = self.ids["inapp"][0]
        token = self.until(201, "shown", json.dumps({"to": self.address("inapp")}).encode(), path="/v1/inbox/tokens")["token"]
        shown = {"path": "/v1/inbox", "method": "GET", "headers": {"Authorization": f"Bearer {token}"}}
        wait_until(lambda: [one["id"] for one in self.until(200, "shown", b"", **shown)["data"]] == [item], 30, "the item in the inbox")
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=for_s or 0)
        body = b"" if for_s is None else json.dumps({"until": until.isoformat().replace("+00:00", "Z")}).encode()
        self.until(200, "shown", body, **{**shown, "path": f"/v1/inbox/{item}/{what}", "method": "POST"})

    def send_again(self):
        """A mail that fails for good, and the event that has it sent again."""
        self.request("resend")
        failed = self.ids["resend"][0]
        wait_until(lambda: self.bench.pipeline.postgres.query(
            "SELECT 1 FROM dispatcher.ledger WHERE notification_id = %s AND state = 'failed'", failed), 30, "the mail that failed for good")
        event = self.bench.proto.ResendErrorEmail(notification_id=failed, requested_by="the matrix")
        self.bench.nats.publish(f"evt.{TENANT}.ResendErrorEmail", event.SerializeToString(), f"{self.tag}-resend-event",
                                headers={"Content-Type": "application/protobuf"})

    def manage(self):
        """A recipient of this run's own, found again by its identity when it was stored already."""
        body = {"identity_type": "user", "identity_id": self.tag, "name": "Ann", "addresses": [{"channel": "email", "address": self.address("managed")}]}
        self.until((200, 201), "managed", json.dumps(body).encode(), path="/v1/recipients", headers={"Idempotency-Key": f"managed-{self.tag}"})

    def tell_of_tenant(self):
        """A tenant of this run's own is made and suspended, the younger event first."""
        for event, minute, data in (("TenantSuspended", 2, {}), ("TenantCreated", 1, {"name": "Inn", "region": "eu"})):
            body = {"tenant_id": f"run-{self.number}", "occurred_at": f"2026-05-01T12:{minute:02d}:00Z", **data}
            self.bench.nats.publish(f"evt.platform.{event}", json.dumps(body).encode(), f"{self.tag}-{event}")

    def tenant(self):
        message = self.bench.nats.message("CONFIG", last_by_subj=f"cfg.tenant.run-{self.number}.self")
        stored = self.bench.proto.Tenant.FromString(message[1] if message else b"")
        return stored.name, stored.region, stored.suspended

    def put_asset(self):
        """A picture of this run's own."""
        picture = b"GIF89a" + self.tag.encode()
        self.asset = self.until((200, 201), "asset", picture, path=f"/v1/template-assets/run{self.number}.gif", method="PUT",
                                headers={"Content-Type": "image/gif"})

    def asset_shown(self):
        """What a mailbox gets, and what the API lists under the name; None: this run has put none."""
        if self.asset is None:
            return None
        pipeline = self.bench.pipeline
        with urllib.request.urlopen(f"http://127.0.0.1:{pipeline.api_port}{self.asset['url']}", timeout=30) as answer:
            shown = answer.read() == b"GIF89a" + self.tag.encode()
        listed = pipeline.post(b"", path=f"/v1/template-assets/run{self.number}.gif", method="GET")[2]
        return {"shown": shown, "listed": listed["sha256"] == self.asset["sha256"]}

    def gather(self):
        """Items for one window of a recipient of this run's own."""
        items = self.bench.deferrals.accept([self.recipient()] * ITEMS, correlation_id=f"{self.tag}/item")
        self.ids["item"] = [item.meta.notification_id for item in items]
        flush_us = now_us() + SCHEDULED_IN_S * 1_000_000
        for item in items:
            self.bench.deferrals.gather(item, flush_us)

    def recipient(self):
        return f"rcp_01KAGTQ5M0{self.number:016d}"

    def until(self, wanted, kind, body, unknown_yet=0, **request):
        """unknown_yet: the status of a service that has not read a key yet."""
        end = time.monotonic() + 30
        while True:
            self.tries[kind] = self.tries.get(kind, 0) + 1
            try:
                status, _, answer = self.bench.pipeline.post(body, **request)
            except (OSError, http.client.HTTPException):
                status, answer = 0, None  # it died before it answered
            if status in (wanted if isinstance(wanted, tuple) else (wanted,)):
                return answer
            assert status in (0, 502, 503, unknown_yet), (status, answer)
            assert time.monotonic() < end, f"no {wanted} within 30 s"
            time.sleep(0.02)

    # ---- what it left ----

    def wait_end(self):
        wait_until(self.bench.is_quiet, 45, "nothing waiting anywhere")

    def kind_of(self, notification):
        return next((kind for kind, ids in self.ids.items() if notification in ids), "command")

    def observe(self):
        """{"history": {kind: rows}, "attempts", "ledger", "statuses", "letters"}, and in `mails` and `unknown` counts by notification."""
        rows = self.bench.rows(
            "SELECT * FROM archiver.notifications WHERE correlation_id LIKE %s OR recipient_id = %s OR batch_id IN (%s, %s)", self.tag + "/%",
            self.recipient(), self.campaign, self.chosen)
        self.ids["digest"] = [row["id"] for row in rows if row["template"] == "digest"]
        self.ids["campaign"] = [row["id"] for row in rows if row["batch_id"] and row["batch_id"] == self.campaign]
        self.ids["chosen"] = [row["id"] for row in rows if row["batch_id"] and row["batch_id"] == self.chosen]
        self.ids["command"] = [row["id"] for row in rows if row["correlation_id"] == f"{self.tag}/command"]
        ids = [row["id"] for row in rows]
        attempts = self.bench.rows("SELECT * FROM archiver.delivery_attempts WHERE notification_id = ANY (%s)", ids)
        ledger = self.bench.rows("SELECT * FROM dispatcher.ledger WHERE notification_id = ANY (%s)", ids)
        counts = self.bench.pipeline.mailbox.count_by_message_id()
        self.mails = {notification: counts.get(f"<{notification}@localhost>", 0) for notification in ids}
        counted = {(row["notification_id"], row["attempt"]): row.pop("unknown_count") for row in ledger}
        self.unknown = {notification: sum(count for (i, _), count in counted.items() if i == notification) for notification in ids}
        for row in attempts:  # a vendor's callback is an attempt that the ledger does not have
            known = counted.get((row["notification_id"], row["attempt_number"]), 0)
            assert row.pop("was_unknown") == (known > 0), f"ledger and history differ: {row}"
        return {
            "history": self.by_kind(rows, "id"),
            "attempts": self.by_kind(attempts, "notification_id"),
            "ledger": self.by_kind(ledger, "notification_id"),
            "statuses": self.statuses(ids),
            "letters": self.letters(),
            "feed": self.feed(ids),
            "inbox": self.bench.rows(
                "SELECT i.read_at IS NOT NULL AS read, c.unseen, c.unread, c.total FROM feed.items i JOIN feed.counters c"
                " USING (tenant_id, recipient, category) WHERE i.notification_id = ANY (%s)", ids),
            "tenant": self.tenant(),
            "asset": self.asset_shown(),
            "opt_out": self.opt_out(),
            "people": dict(self.bench.rows(
                "SELECT count(DISTINCT r.recipient_id) AS recipients, count(a.address_hash) AS addresses FROM people.recipients r"
                " LEFT JOIN people.addresses a USING (tenant_id, recipient_id) WHERE r.identity_id = %s", self.tag)[0]),
        }

    def by_kind(self, rows, key):
        seen = collections.defaultdict(list)
        for row in rows:
            shown = {name: value is not None if name in OWN or isinstance(value, datetime.datetime) else
                     bytes(value) if isinstance(value, memoryview) else value for name, value in row.items()}
            seen[self.kind_of(row[key])].append(sorted(shown.items()))
        return {kind: sorted(shown, key=repr) for kind, shown in seen.items()}

    def statuses(self, ids):
        proto = self.bench.proto
        events = self.bench.since("STATUS", self.start["STATUS"], proto.NotificationStatus)
        return collections.Counter(
            (self.kind_of(event.meta.notification_id), proto.Status.Name(event.status), event.reason_code, event.attempt.number)
            for event in events if event.meta.notification_id in ids)

    def feed(self, ids):
        events = self.bench.since("FEED", self.start["FEED"], self.bench.proto.FeedEvent)
        return collections.Counter((self.kind_of(event.meta.notification_id), event.WhichOneof("part")) for event in events
                                   if event.meta.notification_id in ids)

    def letters(self):
        events = self.bench.since("DEAD", self.start["DEAD"], self.bench.proto.DeadLetter)
        return collections.Counter((event.stage, event.stream, event.reason) for event in events)
