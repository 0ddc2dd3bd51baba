# SPDX-License-Identifier: Apache-2.0
"""Pushes from POST /v1/notifications to their last status: FCM, APNs and Web Push, at doubles that check tokens by jose and read what was encrypted
for a browser by http_ece (tests/harness/push)."""
import json
import secrets
import subprocess
import uuid

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.push import Push
from tests.harness.vendor_doubles import routing
from tests.integration.sending.test_templates import locale, publish

DIED = -9
DATA = '{"order": {{number}}, "link": "/o/{{number}}"}'


class World:
    def __init__(self):
        self.pipeline = Pipeline(ack_wait_ms=1000)
        self.double = Push(self.pipeline.folder / "push")
        self.pipeline.extra = routing.options(
            self.pipeline, STENTOR_VENDOR_CALL_MS=4000, STENTOR_VENDOR_CONNECT_MS=3000, STENTOR_RETRY_LADDER="email=2,4;push=1,1",
            STENTOR_VENDOR_CA_FILE=self.double.ca, STENTOR_INGEST_CHANNELS="email")
        self.pipeline.start()
        self.routing = routing.Routing(self.pipeline)
        self.credentials = {}

    def vendor(self, name, **changed):
        """A credential of the vendor that was put and promoted."""
        account = {**self.double.accounts[name], **changed}
        secret = self.pipeline.folder / "credentials" / f"{name}-{uuid.uuid4().hex}"
        secret.write_text(account["secret"])
        words = [word for key, value in account["settings"].items() for word in ("--set", f"{key}={value}")]
        credential = f"c{uuid.uuid4().hex[:8]}"
        self.pipeline.cli("credential", "put", name, credential, "--reference", f"file:{secret}", *(["--key-id", account["id"]] if "id" in account else []), *words)
        self.pipeline.cli("credential", "promote", name, credential)
        self.credentials[name] = credential

    def need(self, vendor):
        """The vendor has a credential, and the dispatcher knows it."""
        if vendor not in self.credentials:
            self.vendor(vendor)
            self.ready(vendor)

    def address(self, vendor):
        """A new one."""
        return {"apns": lambda: secrets.token_hex(32), "fcm": lambda: f"c-{secrets.token_hex(8)}:APA91b{secrets.token_hex(60)}",
                "webpush": lambda: self.double.subscription(f"/push/{secrets.token_hex(8)}")}[vendor]()

    def post(self, to, **fields):
        body = {"channel": "push", "template": "parcel", "variables": {"name": "Zoë", "number": 17}, **fields}
        return self.pipeline.post(body if to is None else {"to": to, **body})

    def accepted(self, to, **fields):
        status, _, document = self.post(to, **fields)
        assert status == 202, document
        return document["id"]

    def sent(self, to, **fields):
        notification = self.accepted(to, **fields)
        shown = self.pipeline.status(notification, wait="sent")
        assert shown["status"] == "sent", shown
        return notification

    def ready(self, vendor):
        """CONFIG reaches ingest and the dispatcher in a moment."""
        wait_until(lambda: self.post(self.address(vendor))[0] == 202, 20, f"pushes for {vendor} being taken")
        wait_until(lambda: self.pipeline.status(self.accepted(self.address(vendor)), wait="sent")["status"] == "sent", 40, f"a push by {vendor}")

    def row(self, notification):
        return self.pipeline.postgres.query(
            "SELECT vendor, state, code, rung, extract(epoch FROM due_at - finished_at)::int FROM dispatcher.ledger WHERE notification_id = %s ORDER BY attempt",
            notification)

    def event(self, notification, status):
        found = self.routing.nats.message("STATUS", last_by_subj=f"ntf.status.{TENANT}.push.{status}")
        event = self.routing.types.NotificationStatus.FromString(found[1])
        assert event.meta.notification_id == notification
        return event

    def close(self):
        self.routing.close()
        self.pipeline.stop()
        self.double.stop()


@pytest.fixture(scope="module")
def world():
    made = World()
    try:
        publish(made.pipeline, "parcel", channel="push", locales=[locale("en", title="Order {{number}}", text="{{name}}, it is there ☃", data=DATA)])
        status, _, problem = made.post(made.address("apns"))
        assert (status, problem["field"]) == (422, "channel"), "without a credential there is no push"
        made.need("fcm")
        yield made
        assert made.double.seen()["refused"] == [], "every token and every body stood the check"
    finally:
        made.close()


def test_a_token_of_another_vendor_never_goes_to_fcm(world):
    """The first of the file: there is no other vendor yet. What a request says is refused at once, what is a recipient's own when it is sent."""
    device = world.address("apns")
    status, _, problem = world.post(device)
    assert (status, problem["field"]) == (422, "to") and problem["detail"] == "not an address of fcm (a registration token)", problem
    person = json.loads(world.pipeline.cli("recipient", "put", "--name", "Zoë", "--push", device, "--json"))["id"]
    notification = world.accepted(None, recipient_id=person)
    shown = world.pipeline.status(notification, wait="failed")
    assert "no vendor of channel push that takes such an address has a credential" in json.dumps(shown), shown
    assert world.double.pushes("fcm", notification) == []
    world.need("apns")
    assert world.sent(None, recipient_id=person), "the device is not suppressed"


def test_apns_takes_the_push_with_its_title_body_and_data(world):
    world.need("apns")
    device = world.address("apns")
    notification = world.sent(device.upper())
    push, = world.double.pushes("apns", notification)
    assert push["token"] == device, "one device has one address"
    assert push["payload"] == {"aps": {"alert": {"title": "Order 17", "body": "Zoë, it is there ☃"}}, "nid": notification, "order": 17, "link": "/o/17"}
    attempt = world.event(notification, "sent").attempt
    assert attempt.vendor == "apns" and len(attempt.vendor_message_id) == 36
    assert world.row(notification) == [("apns", "sent", "200", None, None)]


def test_fcm_takes_the_push_with_its_title_body_and_data(world):
    token = world.address("fcm")
    notification = world.sent(token, priority="high")
    push, = world.double.pushes("fcm", notification)
    assert (push["token"], push["notification"]) == (token, {"title": "Order 17", "body": "Zoë, it is there ☃"})
    assert push["data"] == {"order": "17", "link": "/o/17", "nid": notification}
    assert push["android"]["priority"] == "HIGH" and push["android"]["notification"]["tag"] == notification
    assert world.event(notification, "sent").attempt.vendor_message_id.startswith("projects/acme/messages/")


def test_a_browser_reads_the_push_that_was_encrypted_for_it(world):
    world.need("webpush")
    written = json.loads(world.address("webpush"))
    notification = world.sent(json.dumps({"expirationTime": None, **written}, indent=1))
    push, = world.double.pushes("webpush", notification)
    assert push["message"] == {"title": "Order 17", "body": "Zoë, it is there ☃", "tag": notification, "nid": notification, "data": {"order": 17, "link": "/o/17"}}
    assert world.event(notification, "sent").attempt.vendor == "webpush"


@pytest.mark.parametrize("address, part", [
    ("", "required"), ("a token with blanks", "printable"), ("ab" * 31 + "abc", "an even number"), ("ab" * 101, "64 to 200 hexadecimal digits"),
    ("x" * 4097, "1 to 4096 bytes"), ("{", "not a subscription"), ('{"endpoint": "http://push.example/1"}', "'endpoint' must be an https URL"),
    ('{"endpoint": "https://push.example/1", "keys": {"auth": "AAAA"}}', "'keys.auth'")])
def test_what_is_no_address_of_a_push_is_refused_at_once(world, address, part):
    status, _, problem = world.post(address)
    assert (status, problem["field"]) == (422, "to") and part in problem["detail"], problem


def test_an_endpoint_that_is_no_push_service_is_never_called(world):
    world.need("webpush")
    stranger = world.double.subscription().replace("127.0.0.1", "169.254.169.254")
    notification = world.accepted(stranger)
    shown = world.pipeline.status(notification, wait="failed")
    assert "which is no known push service" in json.dumps(shown) and world.event(notification, "failed").reason_code == "rejected", shown
    assert world.sent(world.address("webpush")), "nor is the channel shut by it"


@pytest.mark.parametrize("vendor", ["apns", "fcm", "webpush"])
def test_a_device_that_is_gone_is_suppressed(world, vendor):
    world.need(vendor)
    address = {"apns": world.double.gone[0], "fcm": world.double.gone[1], "webpush": world.double.subscription("/push/gone")}[vendor]
    notification = world.accepted(address)
    shown = world.pipeline.status(notification, wait="failed")
    assert world.event(notification, "failed").reason_code == "invalid_address", shown
    wait_until(lambda: world.post(address)[2]["status"] == "suppressed", 20, "the suppression of the device")
    entries = json.loads(world.pipeline.cli("suppress", "list", "--channel", "push", "--json"))
    assert entries and {entry["reason"] for entry in entries} == {"invalid_address"}, entries


def test_a_server_that_says_goaway_loses_nothing_and_gets_nothing_twice(world):
    """1,000 pushes over connections that take 150 each: what is above the last stream of a GOAWAY was not taken, and is sent again."""
    world.need("apns")
    before = world.double.seen()
    world.double.goaway(150)
    many = [{"to": world.address("apns"), "channel": "push", "template": "parcel", "variables": {"name": "Zoë", "number": i}} for i in range(1000)]
    status, _, document = world.pipeline.post(many)
    assert status in (202, 207), document
    ids = {item["id"] for item in document["notifications"]}
    assert len(ids) == 1000
    wait_until(lambda: world.pipeline.postgres.query(
        "SELECT count(*) FROM dispatcher.ledger WHERE state = 'sent' AND notification_id = ANY(%s)", list(ids)) == [(1000,)], 90, "all being sent")
    world.double.goaway(0)
    seen = world.double.seen()
    taken = [push["collapse"] for push in seen["apns"][len(before["apns"]):]]
    assert len(taken) == 1000 and set(taken) == ids, "each once"
    assert seen["goaways"] - before["goaways"] >= 3 and seen["left"] > before["left"], "streams were left behind"
    assert world.pipeline.postgres.query(
        "SELECT count(*), max(attempt), max(unknown_count) FROM dispatcher.ledger WHERE notification_id = ANY(%s)", list(ids)) == [(1000, 1, 0)]
    assert seen["before_first"] == 1, "one stream until the first answer of a connection"
    assert seen["together"] > 10, "then many"


def test_too_many_requests_hold_one_device_for_a_minute(world):
    world.need("apns")
    device = world.address("apns")
    world.double.say(device, 429, json.dumps({"reason": "TooManyRequests"}))
    notification = world.accepted(device)
    wait_until(lambda: world.row(notification), 20, "the answer")
    wait_until(lambda: world.row(notification)[0][1] == "deferred", 20, "the answer being recorded")
    vendor, state, code, rung, wait_s = world.row(notification)[0]
    assert (vendor, state, code, rung) == ("apns", "deferred", "429", 0) and 59 <= wait_s <= 61
    assert world.sent(world.address("apns"), priority="low"), "the vendor is not held"


def test_fcm_says_when_to_come_again(world):
    token = world.address("fcm")
    world.double.say(token, 429, json.dumps({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}), retry_after="120")
    notification = world.accepted(token)
    wait_until(lambda: world.row(notification) and world.row(notification)[0][1] == "deferred", 20, "the answer being recorded")
    assert 120 <= world.row(notification)[0][4] <= 133


def test_an_unknown_outcome_is_sent_again_and_shows_once(world):
    token = world.address("fcm")
    world.double.say(token, taken=True)
    notification = world.sent(token)
    pushes = world.double.pushes("fcm", notification)
    assert len(pushes) == 2 and {push["android"]["notification"]["tag"] for push in pushes} == {notification}
    event = world.event(notification, "sent")
    assert event.attempt.was_unknown and world.routing.rows(notification) == [(1, "fcm", "sent", 1)]


def test_an_access_token_that_ended_is_replaced(world):
    before = world.double.seen()["grants"]
    world.sent(world.address("fcm"))
    assert world.double.seen()["grants"] == before, "one for all"
    world.double.revoke()
    notification = world.sent(world.address("fcm"))
    assert world.double.seen()["grants"] == before + 1 and len(world.double.pushes("fcm", notification)) == 1
    assert world.routing.rows(notification) == [(1, "fcm", "sent", 0)]


def test_a_token_that_cannot_be_had_is_the_credentials_fault_and_a_new_credential_is_used_at_once(world):
    world.need("apns")
    world.double.grants(False)
    world.double.revoke()
    notification = world.accepted(world.address("fcm"))

    def listed():
        rows = json.loads(world.pipeline.cli("channel", "list", "--json"))
        return [row for row in rows if row["vendor"] == "fcm" and row["status"] == "down"]
    wait_until(listed, 30, "fcm being down")
    assert "no access token: 400 invalid_grant" in listed()[0]["reason"], listed()
    assert world.routing.rows(notification)[0][1:3] == ("fcm", "deferred")
    assert world.sent(world.address("apns")), "the other vendors are up"
    world.double.grants(True)
    world.vendor("fcm")  # rotated
    world.ready("fcm")


@pytest.mark.parametrize("vendor, shown", [("fcm", "accepted"), ("apns", "signs"), ("webpush", "signs")])
def test_a_credential_is_tested_without_sending(world, vendor, shown):
    world.need(vendor)
    done = world.pipeline.run_cli("channel", "test", vendor, world.credentials[vendor], STENTOR_VENDOR_ADDRESSES="loopback",
                                  STENTOR_VENDOR_CA_FILE=str(world.double.ca), STENTOR_CREDENTIAL_DIRS=str(world.pipeline.folder / "credentials"))
    assert done.returncode == 0 and shown in done.stdout, done.stdout + done.stderr
    assert "PRIVATE" not in done.stdout and ("fake_message_id" in done.stdout) == (vendor == "fcm"), "which is the answer to validate_only"


def test_the_channel_list_has_the_vendors_of_pushes(world):
    rows = json.loads(world.pipeline.cli("channel", "list", "--json"))
    assert {row["vendor"] for row in rows if row["channel"] == "push"} == {"fcm", "apns", "webpush"}


def has_points():
    done = subprocess.run([BIN / "stentor-dispatcher", "--crash-points"], capture_output=True, text=True, timeout=20)
    return "http.answered" in done.stdout


@pytest.mark.skipif(not has_points(), reason="built without -DSTENTOR_CRASH_POINTS=ON")
@pytest.mark.parametrize("vendor", ["apns", "fcm", "webpush"])
def test_killed_behind_the_answer_the_push_goes_out_again_and_shows_once(world, vendor):
    """The last of the file: it restarts the dispatcher."""
    world.need(vendor)
    service = world.pipeline.services["dispatcher"]
    service.stop()
    service.options["STENTOR_CRASH_AT"] = "http.answered"
    service.start()
    notification = world.accepted(world.address(vendor))
    assert service.exit_status(30) == DIED
    del service.options["STENTOR_CRASH_AT"]
    assert world.routing.rows(notification) == [(1, vendor, "claimed", 0)]
    world.pipeline.postgres.query("UPDATE dispatcher.ledger SET lease_until = now() WHERE state = 'claimed' RETURNING 1")
    service.start()
    world.routing.wait_rows(notification, (1, vendor, "sent", 1))
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    assert len(world.double.pushes(vendor, notification)) == 2, "with one collapse id"
