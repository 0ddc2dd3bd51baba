# SPDX-License-Identifier: Apache-2.0
"""Every vendor of mail is heard: what it reports becomes status, whoever is not the vendor is refused and listed, and a report that comes late, twice or
before its mail counts once."""
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import free_port, wait_until
from tests.harness.vendor_doubles import callbacks, routing
from tests.harness.vendor_doubles.wire import Mail

VENDORS = ["sendgrid", "ses", "mailgun", "postmark", "resend", "sparkpost"]
SIGNED = ["sendgrid", "ses", "mailgun", "resend"]
LATE_S = 4
TO = "alice@example.com"


class Sns:
    """What the receiver fetches from SNS: certificates by their names, and confirmations, in the place of sns.<region>.amazonaws.com."""

    def __init__(self):
        self.port, self.certificates, self.confirmed = free_port(), {}, []
        sns = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = sns.certificates.get(self.path, "")
                if self.path.startswith("/?Action=ConfirmSubscription"):
                    sns.confirmed.append(self.path)
                    body = "<ConfirmSubscriptionResponse/>"
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, signer):
        self.certificates["/" + signer.certificate_url.rpartition("/")[2]] = signer.certificate


@pytest.fixture(scope="module")
def sns():
    serving = Sns()
    yield serving
    serving.server.shutdown()
    serving.server.server_close()


@pytest.fixture(scope="module")
def pipeline(sns):
    running = Pipeline({"STENTOR_DISPATCHER_LATE_S": str(LATE_S), "STENTOR_DISPATCHER_KEEP_FOREIGN": "false", "STENTOR_WEBHOOK_SNS_ORIGIN": f"http://127.0.0.1:{sns.port}"}, ack_wait_ms=3000)
    running.extra.update(routing.options(running, STENTOR_CREDENTIAL_DIRS=f"{running.folder / 'keys'}:{running.folder / 'credentials'}"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def nats(pipeline):
    """The streams forget ids at once, as they do after two minutes."""
    client = NatsClient(pipeline.nats.port)
    for stream in ("INBOUND", "SETTLE", "STATUS"):
        config = {**client.stream_info(stream)["config"], "duplicate_window": 100_000_000}
        assert "error" not in json.loads(client.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
    yield client
    client.close()


@pytest.fixture(scope="module")
def routes(pipeline):
    made = routing.Routing(pipeline)
    yield made
    made.close()


class Caller:
    """A vendor that reports to a tenant: its keys are put, its URL is the one that `inbound url` shows."""

    def __init__(self, pipeline, sns, vendor, tenant=TENANT):
        self.pipeline, self.vendor, self.tenant = pipeline, vendor, tenant
        self.signer = callbacks.Signer(vendor)
        self.files = pipeline.folder / "keys" / tenant
        self.files.mkdir(parents=True, exist_ok=True)
        sns.serve(self.signer)
        pipeline.cli("inbound", "put", vendor, *self.key_words(), tenant=tenant)
        self.path = pipeline.cli("inbound", "url", vendor, tenant=tenant).strip()
        assert self.path.startswith(f"/v1/inbound/{tenant}/{vendor}/") and len(self.path.rpartition("/")[2]) == 32
        wait_until(lambda: self.ping()[0] == 200, 20, f"the keys of {vendor} reaching the webhook-receiver")

    def key_words(self):
        if self.vendor == "sendgrid":
            return ["--public-key", self.signer.key]
        if self.vendor == "ses":
            return ["--topic", self.signer.key]
        return ["--secret", f"first={self.write('first', self.signer.key)}"]

    def write(self, name, secret):
        file = self.files / f"{self.vendor}-{name}"
        file.write_text(secret + "\n")
        return f"file:{file}"

    def made(self, notification, kind, at=None, to=TO, message_id="", **fields):
        """A callback about a notification; "": it names only the vendor's message id."""
        tags = {"notification_id": notification, "nid": notification, "attempt": "1"} if notification else {}
        mail = Mail(self.vendor, id=message_id or secrets.token_hex(12), to=[to], sender="hello@acme.test", subject="Welcome", tags=tags)
        return callbacks.make(self.signer, mail, kind, at=at, **fields)

    def post(self, callback, path=None, headers=None):
        status, _, body = self.pipeline.post(
            callback.body, path=path or self.path, headers=callback.headers if headers is None else headers, port=self.pipeline.webhook_port)
        return status, body

    def ping(self):
        return self.post(self.made("", "deferred"))

    def call(self, *args, **fields):
        status, body = self.post(self.made(*args, **fields))
        assert status == 200, body


@pytest.fixture(scope="module")
def caller(pipeline, sns, nats):
    known = {}
    return lambda vendor: known[vendor] if vendor in known else known.setdefault(vendor, Caller(pipeline, sns, vendor))


def sent(pipeline, to=TO):
    notification = pipeline.send(to)
    pipeline.status(notification, wait="sent")
    return notification


def subjects(nats, stream, subject):
    answer = json.loads(nats.request(f"$JS.API.STREAM.INFO.{stream}", json.dumps({"subjects_filter": subject}).encode()))
    return answer["state"].get("subjects", {})


def messages(nats, stream, subject):
    return sum(subjects(nats, stream, subject).values())


def stored(nats):
    """Callbacks that were taken: those that were rejected lie in the same stream."""
    return sum(count for subject, count in subjects(nats, "INBOUND", "ntf.inbound.>").items() if subject != "ntf.inbound.rejected")


def late(pipeline, kind):
    return pipeline.services["dispatcher"].metric(f'stentor_dispatcher_callbacks_total{{kind="{kind}"}}')


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_mail_is_delivered_by_the_word_of(pipeline, caller, routes, vendor):
    """From POST /v1/notifications over the vendor's API to what it calls back: by the tags that the mail was given, and by the vendor's own id alone."""
    it = caller(vendor)
    domain, (double,) = routes.route(vendor)
    for count, named in enumerate((True, False), 1):
        notification = pipeline.send(f"reader{count}@{domain}")
        assert pipeline.status(notification, wait="sent")["attempts"][0]["vendor"] == vendor
        mail = double.wait(count)[count - 1]
        assert mail.notification == notification
        if not named:
            mail.tags, mail.headers = {}, {}
        assert it.post(callbacks.make(it.signer, mail, "delivered"))[0] == 200
        row = pipeline.status(notification, wait="delivered")
        assert row["status"] == "delivered" and [step["status"] for step in row["timeline"]][-2:] == ["sent", "delivered"]
    assert it.post(callbacks.make(it.signer, mail, "clicked"))[0] == 200
    assert pipeline.status(notification, wait="clicked")["status"] == "clicked"


@pytest.mark.parametrize("vendor", VENDORS)
def test_only_what_is_for_good_suppresses_the_address(pipeline, caller, vendor):
    expected = {"bounced": "bounced", "dropped": "failed", "blocked": "failed", "soft_bounced": "failed" if vendor == "sendgrid" else "bounced"}
    if vendor == "mailgun":
        expected["blocked"] = "bounced"
    ids = {kind: sent(pipeline, f"{kind}-{vendor}@example.com") for kind in expected}
    for kind, notification in ids.items():
        caller(vendor).call(notification, kind, to=f"{kind}-{vendor}@example.com")
    for kind, status in expected.items():
        row = pipeline.status(ids[kind], wait=status)
        assert row["status"] == status and "@example.com" not in json.dumps(row.get("attempts", "")), (kind, row)

    def reasons(kind):
        return [entry["reason"] for entry in json.loads(pipeline.cli("suppress", "list", "--address", f"{kind}-{vendor}@example.com", "--json"))]
    assert wait_until(lambda: reasons("bounced"), 20, "the suppression") == ["hard_bounce"]
    assert [reasons(kind) for kind in ("dropped", "blocked", "soft_bounced")] == [[], [], []]


def test_an_open_by_a_program_raises_no_status(pipeline, caller):
    notification = sent(pipeline)
    seen = pipeline.services["webhook-receiver"].metric("stentor_webhook_receiver_events_machine_total")
    caller("postmark").call(notification, "opened", UserAgent="Mozilla/5.0 (Windows NT 5.1; via ggpht.com GoogleImageProxy)")
    wait_until(lambda: pipeline.services["webhook-receiver"].metric("stentor_webhook_receiver_events_machine_total") > seen, 20, "the open by a proxy")
    caller("postmark").call(notification, "delivered")
    assert pipeline.status(notification, wait="delivered")["status"] == "delivered"
    caller("postmark").call(notification, "opened", UserAgent="Mozilla/5.0 (X11; Linux x86_64) Thunderbird/115.0")
    assert pipeline.status(notification, wait="opened")["status"] == "opened"


def test_a_vendor_that_takes_mails_and_does_not_deliver_them_is_degraded(pipeline, caller, routes):
    """channels.md 4.1, delivery-based: 15 of 100 that are not delivered, and not at every vendor."""
    sending = {"postmark": "soft_bounced", "mailgun": "delivered"}
    for vendor, kind in sending.items():
        domain, (double,) = routes.route(vendor)
        pipeline.post([{"to": f"reader{n}@{domain}", "template": "welcome", "variables": {"name": "Alice"}} for n in range(25)])
        for mail in double.wait(25):
            assert caller(vendor).post(callbacks.make(caller(vendor).signer, mail, kind))[0] == 200
    wait_until(lambda: (health := routes.health("postmark")) and health.status == routes.types.CHANNEL_STATUS_DEGRADED, 60, "the vendor being degraded")
    health = routes.health("postmark")
    assert health.points_lost == 10 and health.down_since_us == 0 and "of 100 mails are not delivered" in health.reason
    listed = {entry["vendor"]: entry for entry in json.loads(pipeline.cli("channel", "list", "--json")) if entry["of"] == "tenant"}
    assert listed["postmark"]["status"] == "degraded" and listed["postmark"]["usable"]
    assert "mailgun" not in listed or listed["mailgun"]["status"] == "active"


# ---- who is not the vendor ----

@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stranger_is_refused_and_listed(pipeline, caller, nats, vendor):
    it = caller(vendor)
    before = stored(nats)
    stranger = Caller.__new__(Caller)
    stranger.__dict__.update(it.__dict__, signer=callbacks.Signer(vendor))
    stranger.signer.topic = it.signer.topic
    forged = stranger.made("", "delivered")
    if vendor == "ses":  # the stranger's certificate is not served: it names the vendor's
        forged.body = forged.body.replace(stranger.signer.certificate_url.encode(), it.signer.certificate_url.encode())
    assert it.post(forged)[0] == (406 if vendor == "mailgun" else 401)
    good = it.made("", "delivered")
    assert it.post(good, path=it.path[:-1] + ("A" if it.path[-1] != "A" else "B"))[0] == 401
    assert it.post(good, path=it.path.replace(f"/{TENANT}/", "/globex/"))[0] == 401
    bare = it.path.rpartition("/")[0]
    assert it.post(good, path=bare)[0] == (200 if vendor in ("sendgrid", "resend") else 401)
    assert it.post(callbacks.Callback({}, b"{}"))[0] == 401
    assert stored(nats) == before + (vendor in ("sendgrid", "resend"))
    digest = hashlib.sha256(forged.body).hexdigest()

    def listed():
        lines = [json.loads(line) for line in pipeline.cli("inbound", "rejected", "--vendor", vendor, "--json").splitlines()]
        return [line for line in lines if line.get("body_sha256") == digest]
    row = wait_until(listed, 20, "the refused callback in the list")[0]
    assert (row["tenant"], row["vendor"], row["reason"], row["body_bytes"]) == (TENANT, vendor, "bad_signature", len(forged.body))


@pytest.mark.parametrize("vendor", ["ses", "mailgun", "resend"])
def test_a_time_that_is_too_old_is_refused(caller, vendor):
    it, body = caller(vendor), b'{"event": "delivered"}'
    if vendor == "ses":
        made = callbacks.sns_signed(it.signer, body, Timestamp="2026-01-01T00:00:00.000Z")
    else:
        made = callbacks.SIGNED[vendor](it.signer, body, at=time.time().__int__() - 700)
    status, problem = it.post(made)
    assert status == 401 and "too old" in problem["detail"]


def test_a_token_of_mailgun_counts_once_whatever_stands_beside_it(pipeline, caller, nats):
    """The signature does not cover the event. (The stream's window of duplicates is what refuses it; ten minutes are not waited for here.)"""
    it, first, second = caller("mailgun"), sent(pipeline), sent(pipeline)
    made = it.made(first, "delivered")
    config = nats.stream_info("INBOUND")["config"]
    nats.request("$JS.API.STREAM.UPDATE.INBOUND", json.dumps({**config, "duplicate_window": 60_000_000_000}).encode())
    try:
        before = stored(nats)
        assert it.post(made)[0] == 200
        assert it.post(callbacks.Callback(made.headers, made.body.replace(first.encode(), second.encode())))[0] == 200
        assert stored(nats) == before + 1
    finally:
        nats.request("$JS.API.STREAM.UPDATE.INBOUND", json.dumps(config).encode())
    pipeline.status(first, wait="delivered")
    assert pipeline.status(second)["status"] == "sent"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_right_signature_with_wrong_content_is_a_dead_letter(caller, nats, vendor):
    it = caller(vendor)
    before = messages(nats, "DEAD", f"ntf.dead.webhook-receiver.{TENANT}")
    if vendor == "ses":
        made = callbacks.sns_signed(it.signer, b"Hello", Type="Notification")
        assert it.post(made)[0] == 200  # SES says such things: it is ignored
        return
    made = it.signer.sign(b'{"a": 1}' if vendor == "mailgun" else b"7")
    assert it.post(made)[0] == 200
    wait_until(lambda: messages(nats, "DEAD", f"ntf.dead.webhook-receiver.{TENANT}") > before, 20, "the dead letter")


def test_resends_callbacks_are_taken_as_svix_signs_them(pipeline, caller, tmp_path):
    """By the package that Resend's own documents tell its customers to check with."""
    package = Path(__file__).parent / "svix"
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js here: apt-get install nodejs npm")
    for name in ("package.json", "package-lock.json", "sign.mjs"):
        shutil.copy(package / name, tmp_path)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if any(word in done.stderr for word in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "CERT_IN_CHAIN")):
        pytest.skip("the npm registry cannot be reached from here")
    assert done.returncode == 0, done.stderr
    it, notification = caller("resend"), sent(pipeline)
    body = it.made(notification, "delivered").body
    signed = subprocess.run(["node", "sign.mjs", it.signer.key], cwd=tmp_path, input=body, capture_output=True, check=True, env={"PATH": os.environ["PATH"]})
    headers = json.loads(signed.stdout)
    assert it.post(callbacks.Callback(headers, body))[0] == 200
    pipeline.status(notification, wait="delivered")
    assert it.post(callbacks.Callback(headers, body + b" "))[0] == 401


# ---- SNS ----

def test_a_subscription_is_confirmed_when_its_topic_is_on_the_list(caller, sns):
    it = caller("ses")
    before = len(sns.confirmed)
    assert it.post(callbacks.subscription(it.signer))[0] == 200
    assert len(sns.confirmed) == before + 1 and "Action=ConfirmSubscription" in sns.confirmed[-1]
    # Another's topic, another region's host, another host: nothing is asked.
    asked = list(sns.confirmed)
    own = it.signer.topic
    try:
        it.signer.topic = own.replace("123456789012", "210987654321")
        assert it.post(callbacks.subscription(it.signer))[0] == 401
    finally:
        it.signer.topic = own
    for url in ("https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription", "https://evil.test/?Action=ConfirmSubscription",
                "https://sns.eu-west-1.amazonaws.com.evil.test/?Action=ConfirmSubscription"):
        made = callbacks.sns_signed(it.signer, b"x", "SubscriptionConfirmation", SubscribeURL=url, Token="t")
        assert it.post(made)[0] == 401, url
    assert sns.confirmed == asked
    elsewhere = callbacks.sns_signed(it.signer, b"x", SigningCertURL="https://evil.test/x.pem")
    assert it.post(elsewhere)[0] == 401
    unknown = callbacks.sns_signed(it.signer, b"x", SigningCertURL="https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-none.pem")
    assert it.post(unknown)[0] == 503, "SNS repeats it"


# ---- keys ----

def test_keys_are_replaced_without_a_gap_and_revoked(pipeline, sns, nats):
    it = Caller(pipeline, sns, "mailgun", tenant="rotating")
    old, new = it.signer, callbacks.Signer("mailgun")
    at = [f"first={it.write('first', old.key)}", f"second={it.write('second', new.key)}"]
    pipeline.cli("inbound", "put", "mailgun", "--secret", at[0], "--not-after", "first=1h", "--secret", at[1], tenant="rotating")

    def fits(signer):
        it.signer = signer
        return it.ping()[0] == 200
    wait_until(lambda: fits(new), 20, "the new key")
    assert fits(old)
    shown = json.loads(pipeline.cli("inbound", "list", "--json", tenant="rotating"))
    entry = next(key for key in shown if key["vendor"] == "mailgun")
    assert entry["state"] == "active" and [s["name"] for s in entry["secrets"]] == ["first", "second"] and "not_after" in entry["secrets"][0]
    assert old.key not in json.dumps(shown) and "path" not in entry
    pipeline.cli("inbound", "put", "mailgun", "--secret", at[0], "--not-after", "first=2020-01-01T00:00:00Z", "--secret", at[1], tenant="rotating")
    wait_until(lambda: not fits(old), 20, "the end of the old key")
    assert fits(new)
    assert pipeline.services["webhook-receiver"].metric('stentor_webhook_receiver_key_fitted_total{place="2"}') >= 1
    newest = callbacks.Signer("mailgun")
    it.write("second", newest.key)  # the file is another: no command, no restart
    wait_until(lambda: fits(newest), 30, "the file's new key")
    pipeline.cli("inbound", "put", "mailgun", "--secret", f"lost=file:{it.files}/not-there", tenant="rotating")
    wait_until(lambda: it.ping()[0] == 503, 20, "a key that cannot be read")
    pipeline.cli("inbound", "put", "mailgun", "--revoke", tenant="rotating")
    wait_until(lambda: it.ping()[0] == 406, 20, "the revocation")


@pytest.mark.parametrize("words, said", [
    (["mailgun"], "--secret"), (["postmark", "--secret", "x"], "NAME=VALUE"), (["ses"], "--topic"), (["pigeon"], "known: sendgrid, ses, mailgun"),
    (["ses", "--topic", "arn:aws:sqs:eu-west-1:1:x"], "arn:aws:sns"), (["mailgun", "--secret", "a=the-secret-itself"], "--secret: "),
    (["mailgun", "--secret", "a=env:X", "--not-after", "b=7d"], "no --secret 'b'"), (["mailgun", "--public-key", "QUJD", "--secret", "a=env:X"], "sendgrid's")])
def test_a_key_that_cannot_be_one_is_refused_with_the_remedy(pipeline, words, said):
    done = pipeline.run_cli("inbound", "put", *words)
    assert done.returncode == 2 and said in done.stderr, done


# ---- late, twice, early, never ----

def test_a_report_that_comes_late_counts_and_its_repeat_does_not(pipeline, caller, nats):
    """After an outage a vendor repeats what it may have reported before, and JetStream has forgotten it."""
    for vendor in VENDORS:
        it, notification, at = caller(vendor), sent(pipeline), time.time() - 600
        came, repeated = late(pipeline, "late"), late(pipeline, "repeated")
        message = secrets.token_hex(8)
        fields = {"sg_event_id": "same"} if vendor == "sendgrid" else {"id": "same"} if vendor == "mailgun" else {}
        if vendor in ("sparkpost",):
            fields = {"event_id": "same-" + message}
        before = messages(nats, "STATUS", f"ntf.status.{TENANT}.email.delivered")
        for turn in range(2):
            time.sleep(turn * 0.5)  # past JetStream's duplicate window, which is 100 ms here
            more = {"sg_event_id": f"same-{notification}"} if vendor == "sendgrid" else fields
            it.call(notification, "delivered", at=at, message_id=message, **more)
            pipeline.status(notification, wait="delivered")
            wait_until(lambda: late(pipeline, "late") == came + 1 and late(pipeline, "repeated") == repeated + turn, 20, f"{vendor}, turn {turn}")
        assert messages(nats, "STATUS", f"ntf.status.{TENANT}.email.delivered") == before + 1, vendor


def test_a_report_is_found_by_the_vendors_own_id_even_before_the_mail_is_sent(pipeline, caller, nats):
    """As when the answer with the id is slower than the first report."""
    notification, message = sent(pipeline), secrets.token_hex(12)
    caller("postmark").call("", "delivered", message_id=message)
    unknown = pipeline.services["webhook-receiver"].metric
    wait_until(lambda: unknown("stentor_webhook_receiver_events_unknown_total") >= 1, 20, "the report that names no notification")
    assert pipeline.status(notification)["status"] == "sent"
    pipeline.postgres.query("UPDATE dispatcher.ledger SET vendor = 'postmark', vendor_message_id = %s WHERE notification_id = %s RETURNING 1", message, notification)
    assert pipeline.status(notification, wait="delivered")["status"] == "delivered"
    # Another tenant's report under the same id is about no mail of its own.
    dropped = late(pipeline, "foreign")
    other = Caller(pipeline, Sns(), "postmark", tenant="globex")
    other.call("", "bounced", message_id=message)
    wait_until(lambda: late(pipeline, "foreign") == dropped + 1, 20 + LATE_S, "the drop of the other tenant's")
    assert pipeline.status(notification)["status"] == "delivered"


def test_a_report_about_a_mail_that_is_not_ours_is_counted_and_dropped_where_the_operator_wants_it(pipeline, caller, nats):
    """The vendor's account sends a newsletter of the old system, too."""
    dead, dropped = messages(nats, "DEAD", f"ntf.dead.dispatcher.{TENANT}"), late(pipeline, "foreign")
    for _ in range(3):
        caller("resend").call("", "bounced", message_id=secrets.token_hex(12), to="reader@example.com")
    wait_until(lambda: late(pipeline, "foreign") == dropped + 3, 20 + LATE_S, "the drop of three events")
    lines = [line for line in pipeline.services["dispatcher"].log.read_text().splitlines() if "mails that are not ours were dropped" in line]
    assert 1 <= len(lines) <= 2 and "STENTOR_DISPATCHER_KEEP_FOREIGN" in lines[0], lines
    assert messages(nats, "DEAD", f"ntf.dead.dispatcher.{TENANT}") == dead


def test_a_report_about_a_mail_that_is_not_ours_is_a_dead_letter(pipeline, caller, nats):
    dead, message = messages(nats, "DEAD", f"ntf.dead.dispatcher.{TENANT}"), secrets.token_hex(12)
    dispatcher = pipeline.services["dispatcher"]
    del dispatcher.options["STENTOR_DISPATCHER_KEEP_FOREIGN"]  # as shipped
    dispatcher.stop()
    dispatcher.start()
    caller("resend").call("", "bounced", message_id=message, to="reader@example.com")
    wait_until(lambda: messages(nats, "DEAD", f"ntf.dead.dispatcher.{TENANT}") == dead + 1, 20 + LATE_S, "the dead letter")
    assert message in pipeline.cli("dlq", "list", "--json")
    dispatcher.options["STENTOR_DISPATCHER_KEEP_FOREIGN"] = "false"
    dispatcher.stop()
    dispatcher.start()


def test_another_tenants_vendor_says_nothing_about_our_mail(pipeline, caller, sns, nats):
    notification = sent(pipeline, "shared@example.com")
    pipeline.cli("tenant", "put", "rival", "--name", "Rival", "--sender", "hello@rival.test", "--sender-name", "Rival")
    rival = Caller(pipeline, sns, "resend", tenant="rival")
    rival.call(notification, "bounced", to="shared@example.com")
    wait_until(lambda: messages(nats, "STATUS", "ntf.status.rival.email.bounced") == 1, 20, "what the rival's vendor said, as the rival's own")
    ours = caller("resend")
    assert ours.post(ours.made(notification, "bounced"), path=rival.path)[0] == 401, "our vendor's signature at the rival's address"
    assert pipeline.status(pipeline.send("shared@example.com"), wait="sent")["status"] == "sent", "the rival suppressed an address of ours"
    ours.call(notification, "delivered")
    assert pipeline.status(notification, wait="delivered")["status"] == "delivered", "a bounce would outrank it"


def test_what_vendors_said_is_shown_in_their_words_with_the_key_that_fitted(pipeline, caller):
    notification = sent(pipeline)
    caller("sparkpost").call(notification, "delivered")
    pipeline.status(notification, wait="delivered")
    shown = pipeline.cli("callbacks", "--notification", notification, "--ground", "test", "--requested-by", "auditor", "--json")
    (row,) = [json.loads(line) for line in shown.splitlines()]
    assert row["vendor"] == "sparkpost" and row["body"][0]["msys"]["message_event"]["rcpt_meta"]["nid"] == notification and row["key"] == "first"
