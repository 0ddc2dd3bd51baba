# SPDX-License-Identifier: Apache-2.0
"""A vendor that no code knows: an SMS gateway whose requests, answers and signed callbacks an operator describes in one document."""
import copy
import http.client
import json
import urllib.parse

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Double, Fault, acme, routing


class World:
    def __init__(self):
        self.pipeline = Pipeline()
        self.public_url = f"http://127.0.0.1:{self.pipeline.api_port}"
        self.pipeline.extra = routing.options(self.pipeline, STENTOR_VENDOR_CALL_MS=2500, STENTOR_RETRY_LADDER="email=2,4;sms=1,1",
                                              STENTOR_RENDERER_PUBLIC_URL=self.public_url, STENTOR_INGEST_CHANNELS="email")
        self.pipeline.start()
        self.routing = routing.Routing(self.pipeline)
        self.people = 20_000
        self.double = Double("sms-acme").start()
        self.routing.doubles.append(self.double)

    def cli(self, *words):
        return self.pipeline.cli(*words)

    def document(self, definition, name="acme.json"):
        path = self.pipeline.folder / name
        path.write_text(definition if isinstance(definition, str) else json.dumps(definition))
        return path

    def put(self, definition, credential="main"):
        secret = self.pipeline.folder / "credentials" / "acme"
        secret.write_text(self.double.secret)
        settings = {**self.double.settings, "base_url": self.double.base_url}
        return self.pipeline.run_cli("credential", "put", "sms-acme", credential, "--reference", f"file:{secret}", "--definition", self.document(definition),
                                     *(word for name, value in settings.items() for word in ("--set", f"{name}={value}")))

    def number(self):
        self.people += 1
        return f"+49151{self.people:08}"

    def accepted(self, to=None, **fields):
        answers = []

        def taken():
            answers[:] = [self.pipeline.post({"to": to or self.number(), "channel": "sms", "template": "code", "variables": {"name": "Zoë"}, **fields})]
            return answers[0][0] == 202
        wait_until(taken, 20, "an SMS being taken")
        return answers[0][2].get("notification_id") or answers[0][2]["id"]

    def sent(self, **fields):
        notification = self.accepted(**fields)
        assert self.pipeline.status(notification, wait="sent")["status"] in ("sent", "delivered")
        return notification, self.double.of(notification)[-1]

    def call(self, url, made):
        parts = urllib.parse.urlsplit(url)
        client = http.client.HTTPConnection(parts.netloc, timeout=20)
        try:
            client.request("POST", f"{parts.path}?{parts.query}" if parts.query else parts.path, made.body, made.headers)
            return client.getresponse().status
        finally:
            client.close()

    def reported(self, mail, kind, **fields):
        wait_until(lambda: self.call(mail.report_to, self.double.callback(mail, kind, **fields)) == 200, 20, f"the report {kind} being taken")

    def close(self):
        self.routing.close()
        self.pipeline.stop()


@pytest.fixture(scope="module")
def world():
    made = World()
    try:
        words = made.pipeline.folder / "code.txt"
        words.write_text("{{name}}, your \"code\" is 4711.")
        made.cli("template", "put", "code", "--channel", "sms", "--text", words)
        done = made.put(acme.DEFINITION)
        assert done.returncode == 0, done.stderr
        made.cli("credential", "promote", "sms-acme", "main")
        key = made.pipeline.folder / "credentials" / "acme-inbound"
        key.write_text(made.double.callback_key)
        made.cli("inbound", "put", "sms-acme", "--secret", f"main=file:{key}")
        yield made
    finally:
        made.close()


def test_an_sms_goes_through_it_and_is_delivered(world):
    notification, mail = world.sent()
    assert mail.text == 'Zoë, your "code" is 4711.' and mail.key == f"{notification}-1"
    assert mail.report_to.startswith(f"{world.public_url}/v1/inbound/{TENANT}/sms-acme/")
    assert mail.request.path.endswith("?priority=normal")
    assert world.routing.rows(notification) == [(1, "sms-acme", "sent", 0)]
    world.reported(mail, "delivered", at="2026-11-27T03:00:00Z")
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    event = world.routing.types.NotificationStatus.FromString(world.routing.nats.message("STATUS", last_by_subj=f"ntf.status.{TENANT}.sms.sent")[1])
    assert (event.attempt.vendor, event.attempt.vendor_message_id) == ("sms-acme", mail.id)
    assert any("sms-acme" in line and " active " in line for line in world.cli("channel", "list").splitlines())
    assert any(line.startswith("sms-acme") and "active" in line for line in world.cli("inbound", "list").splitlines())


def test_a_forged_report_is_refused(world):
    notification, mail = world.sent()
    made = world.double.callback(mail, "delivered")
    made.body = made.body.replace(b"DELIVERED", b"EXPIRED")
    assert world.call(mail.report_to, made) == 401
    good = world.double.callback(mail, "delivered")
    assert world.call(mail.report_to.rpartition("/")[0] + "/" + "A" * 32, good) == 401
    assert world.call(mail.report_to.replace("/sms-acme/", "/sms-other/"), good) == 401
    assert world.pipeline.status(notification)["status"] == "sent"


def test_its_words_become_status_and_suppression(world):
    number = world.number()
    notification, mail = world.sent(to=number)
    assert world.call(mail.report_to, world.double.callback(mail, "deferred")) == 200, "a word that the document does not have changes nothing"
    world.reported(mail, "bounced")
    shown = world.pipeline.status(notification, wait="bounced")
    assert "no such subscriber" in json.dumps(shown), shown
    wait_until(lambda: world.pipeline.post({"to": number, "channel": "sms", "template": "code", "variables": {"name": "A"}})[2]["status"] == "suppressed", 20,
               "the suppression of the number")


def test_its_codes_say_what_follows(world):
    number = world.number()
    world.double.rejected.add(number)
    notification = world.accepted(to=number)
    assert "21 no such number" in json.dumps(world.pipeline.status(notification, wait="failed"))
    wait_until(lambda: world.pipeline.post({"to": number, "channel": "sms", "template": "code", "variables": {"name": "A"}})[2]["status"] == "suppressed", 20,
               "the suppression of the number")
    world.double.retry_after = 1
    world.double.behave(Fault.THROTTLE, times=1)
    held, _ = world.sent()
    assert "429" in json.dumps(world.pipeline.status(held)["attempts"])


def test_what_had_no_answer_is_sent_again_under_its_key(world):
    world.double.behave(Fault.CUT_AFTER_BODY, times=1)
    before = len(world.double.requests)
    notification, _ = world.sent()
    assert len(world.double.of(notification)) == 1 and len(world.double.requests) == before + 2
    assert len({request.headers["x-request-key"] for request in world.double.requests[before:]}) == 1


@pytest.mark.parametrize("place, change", [
    ("--definition request.url: must begin with https:// and a host that is written out", lambda d: d["request"].update(url="https://{{to}}/x")),
    ("--definition request.json.options.report: line 1, column 1", lambda d: d["request"]["json"]["options"].update(report="{{calback_url}}")),
    ("--definition request.json.body: line 1, column 1: '{{#if' is never closed", lambda d: d["request"]["json"].update(body="{{#if text}}")),
    ("--definition answer.codes.21: is none of accepted", lambda d: d["answer"]["codes"].update({"21": "gone"})),
    ("--definition callback.signature.algorithm: is hmac-sha256 or hmac-sha1", lambda d: d["callback"]["signature"].update(algorithm="md5")),
    ("--definition request.headers.X-Api-Key: would stand in clear", lambda d: d["request"]["headers"].update({"X-Api-Key": "s3cr3t-literal"})),
    ("--definition request.headers.X-A: has a line break or another", lambda d: d["request"]["headers"].update({"X-A": "a\r\nB: 1"})),
    ("--definition request.headers.X-A: has a line break or another", lambda d: d["request"]["headers"].update({"X-A": "{{text}}"})),
    ("--definition request.url: the URL", lambda d: d["request"].update(url="http://api.acme-messaging.example/")),
])
def test_a_wrong_document_is_refused_with_its_place(world, place, change):
    document = copy.deepcopy(acme.DEFINITION)
    change(document)
    done = world.put(document, "wrong")
    assert done.returncode != 0 and place in done.stderr.replace("\n", " ") and "s3cr3t-literal" not in done.stderr, done.stderr


def test_keys_of_a_vendor_that_is_not_there_are_noted(world):
    key = world.pipeline.folder / "credentials" / "acme-inbound"
    done = world.pipeline.run_cli("inbound", "put", "sms-nope", "--secret", f"main=file:{key}")
    assert done.returncode == 0 and "no credential of sms-nope is there, so its callbacks are refused" in done.stderr
    assert "no credential" not in world.pipeline.run_cli("inbound", "put", "sms-acme", "--secret", f"main=file:{key}").stderr
    wrong = world.pipeline.run_cli("inbound", "put", "sms-acme", "--secret", "main=plain")
    assert wrong.returncode != 0 and "--secret" in wrong.stderr and "secrets[0]" not in wrong.stderr, wrong.stderr


def test_its_credential_is_tested_by_a_sample(world):
    before = len(world.double.requests)
    here = {"STENTOR_CREDENTIAL_DIRS": str(world.pipeline.folder / "credentials")}
    done = world.pipeline.run_cli("channel", "test", "sms-acme", "main", "--json", **here)
    shown = json.loads(done.stdout)
    assert done.returncode == 0 and (shown["vendor"], shown["credential"], shown["state"]) == ("sms-acme", "main", "builds"), done.stderr
    denied = world.pipeline.run_cli("channel", "test", "sms-acme", "main")
    assert denied.returncode == 1 and "STENTOR_CREDENTIAL_DIRS" in denied.stderr, "its secret is read"
    assert len(world.double.requests) == before and world.double.secret not in done.stdout


def test_a_document_is_tried_without_sending(world):
    before = len(world.double.requests)
    path = world.document(acme.DEFINITION)
    shown = world.cli("vendor", "try", "sms-acme", path, "--set", "account=shop/7", "--set", "from=SHOP")
    assert shown.startswith("POST https://api.acme-messaging.example/v2/shop%2F7/messages?priority=normal\nAuthorization: Bearer SECRET\n"), shown
    body = json.loads(shown.partition("\n\n")[2])
    assert (body["recipient"], body["sender"], body["body"]) == ("+4915112345678", "SHOP", 'Hello, "Alice" & Bob\n')
    judged = world.cli("vendor", "try", "sms-acme", path, "--set", "account=1", "--set", "from=S", "--status", "422", "--body",
                       '{"error": {"code": 21, "message": "no"}}')
    assert "bad_address" in judged and "21 no" in judged, judged
    done = world.pipeline.run_cli("vendor", "try", "sms-acme", world.document('{"request": {}\n,}', "torn.json"))
    assert done.returncode == 2 and "line 2" in done.stderr, done.stderr
    rocket = world.document({"request": {"url": "{{to}}", "json": {"text": "{{text}}"}}}, "rocket.json")
    for prefix, why in (("http://127.0.0.1", "settings.address_prefix: required where request.url is {{to}}"), ("ftp://127.0.0.1/x", "a secret is not sent there")):
        done = world.pipeline.run_cli("vendor", "try", "webhook-rocket", rocket, "--set", f"address_prefix={prefix}")
        assert done.returncode != 0 and why in done.stderr.replace("\n", " "), (prefix, done.stdout, done.stderr)
    assert world.cli("vendor", "try", "webhook-rocket", rocket, "--set", "address_prefix=https://chat.example/hooks/").startswith("POST https://chat.example/")
    assert len(world.double.requests) == before
