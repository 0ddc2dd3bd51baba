# SPDX-License-Identifier: Apache-2.0
"""What recipients write back: an event for the tenant's applications, STOP and START at once, and the same only once."""
import base64
import http.client
import json
import os
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from tests.harness.clients import subscribers
from tests.harness.nats_client import NatsClient, Subscriber
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.harness.vendor_doubles import Callback, phone
from tests.integration.operating.test_keys_rotation import rotate
from tests.integration.sending.test_sms import World

NUMBER_ID = "106540352242922"


@pytest.fixture(scope="module")
def world():
    made = World()
    try:
        words = made.pipeline.folder / "code.txt"
        words.write_text("{{name}}, your code is 4711.")
        made.cli("template", "put", "code", "--channel", "sms", "--text", words)
        made.twilio, made.vonage, made.telnyx = made.vendor("twilio"), made.vendor("vonage"), made.vendor("telnyx")
        made.meta = made.vendor("meta", inbound=("--number", NUMBER_ID))
        made.urls = {name: made.public_url + made.cli("inbound", "url", name).strip() for name in ("twilio", "vonage", "telnyx", "meta")}
        made.nats = NatsClient(made.pipeline.nats.port)
        made.accepted()
        yield made
    finally:
        made.close()


def twilio(world, number, text, **fields):
    made = Callback(*phone.twilio_reply(world.twilio.signer, world.urls["twilio"], number, text, **fields))
    assert world.call(world.urls["twilio"], made)[0] == 200
    return made


def vonage(world, number, text, **fields):
    made = Callback(*phone.vonage_reply(world.vonage.signer, number, text, **fields))
    assert world.call(world.urls["vonage"], made)[0] == 200
    return made


def telnyx(world, number, text, **fields):
    made = Callback(*phone.telnyx_reply(world.telnyx.signer, number, text, **fields))
    assert world.call(world.urls["telnyx"], made)[0] == 200
    return made


def replies(world, after=0, key=None, expected=200, **query):
    client = http.client.HTTPConnection("127.0.0.1", world.pipeline.api_port, timeout=20)
    client.request("GET", "/v1/replies?" + urllib.parse.urlencode({"after": after, **query}), headers={"Authorization": f"Bearer {key or world.pipeline.key}"})
    answer = client.getresponse()
    document = json.loads(answer.read())
    client.close()
    assert answer.status == expected, document
    return document


def last(world):
    return world.nats.stream_info("REPLIES")["state"]["last_seq"]


def come(world, after):
    """The replies that came since, at least one."""
    wait_until(lambda: last(world) > after, 20, "the reply")
    return replies(world, after)["data"]


def suppressed(world, number):
    """Of a reminder to the number."""
    return world.pipeline.post({"to": number, "channel": "sms", "template": "code", "category": "reminder", "variables": {"name": "Alice"}})[2]["status"] == "suppressed"


def stopped(world, number, yes=True):
    wait_until(lambda: suppressed(world, number) == yes, 20, f"the opt-out {'made' if yes else 'ended'}")


def test_a_reply_is_an_event_of_the_tenant(world):
    number, before = world.number(), last(world)
    made = twilio(world, number, "Grüße, wo ist mein Paket?", MessageSid="SM" + "a" * 32, OriginalRepliedMessageSid="SM" + "b" * 32)
    reply, = come(world, before)
    assert (reply["kind"], reply["channel"], reply["vendor"], reply["from"], reply["to"], reply["text"], reply["content_type"]) == (
        "message", "sms", "twilio", number, "+15005550006", "Grüße, wo ist mein Paket?", "text")
    assert (reply["vendor_message_id"], reply["answers_message_id"]) == ("SM" + "a" * 32, "SM" + "b" * 32)
    subject, stored = world.nats.message("REPLIES", seq=reply["sequence"])
    event = messages(world.pipeline).InboundReply.FromString(stored)
    assert subject == f"ntf.reply.{TENANT}.sms.message"
    assert (event.meta.event_id, event.meta.tenant, event.kind) == (reply["id"], TENANT, "message") and len(event.address_hash) == 32
    assert number.encode() not in stored and "Paket".encode() not in stored, "sealed"
    assert world.call(world.urls["twilio"], made)[0] == 200 and last(world) == before + 1, "the same again"


def test_twilio_is_answered_in_twiml_and_the_others_are_not(world):
    """What came in and a report alike; of anything else Twilio notes error 12300."""
    def answer(url, made):
        parts = urllib.parse.urlsplit(url)
        client = http.client.HTTPConnection(parts.netloc, timeout=20)
        client.request("POST", parts.path + (f"?{parts.query}" if parts.query else ""), made.body, made.headers)
        got = client.getresponse()
        body = got.read()
        client.close()
        return got.status, got.getheader("Content-Type"), body
    twiml = (200, "text/xml", b'<?xml version="1.0" encoding="UTF-8"?><Response></Response>')
    assert answer(world.urls["twilio"], Callback(*phone.twilio_reply(world.twilio.signer, world.urls["twilio"], world.number(), "Hello"))) == twiml
    notification = world.sent()
    mail = world.twilio.mails[-1]
    assert answer(mail.report_to, world.twilio.callback(mail, "delivered")) == twiml
    world.pipeline.status(notification, wait="delivered")
    assert answer(world.urls["vonage"], Callback(*phone.vonage_reply(world.vonage.signer, world.number(), "Hello"))) == (200, "application/json", b"{}")


def test_stop_suppresses_and_start_ends_just_that(world):
    number = world.number()
    assert not suppressed(world, number)
    before = last(world)
    twilio(world, number, "Stopp!")
    stopped(world, number)
    twilio(world, number, "START")
    stopped(world, number, False)
    assert [one["kind"] for one in replies(world, before)["data"]] == ["stop", "start"]
    audited = [json.loads(line) for line in world.cli("audit-log", "list", "--json").splitlines()]
    assert any(entry["action"] == "suppression.released" and entry["actor"] == "reply" for entry in flat(audited)), audited
    world.cli("suppress", "add", number, "--channel", "sms", "--reason", "opt_out")
    stopped(world, number)
    before = last(world)
    twilio(world, number, "START")
    come(world, before)
    wait_until(lambda: json.loads(world.nats.request("$JS.API.CONSUMER.INFO.REPLIES.gateway"))["num_pending"] == 0, 20, "START being read")
    assert suppressed(world, number), "an operator's own stays"


def test_the_same_stop_after_a_start_changes_nothing(world):
    """Twilio gives no time: whoever captured a STOP, or Twilio itself, may send it once more."""
    number = world.number()
    stop = twilio(world, number, "STOP")
    stopped(world, number)
    twilio(world, number, "START")
    stopped(world, number, False)
    config = {**world.nats.stream_info("INBOUND")["config"], "duplicate_window": 100_000_000}
    assert "error" not in json.loads(world.nats.request("$JS.API.STREAM.UPDATE.INBOUND", json.dumps(config).encode()))
    count = world.nats.stream_info("INBOUND")["state"]["last_seq"]

    def again():
        assert world.call(world.urls["twilio"], stop)[0] == 200
        return world.nats.stream_info("INBOUND")["state"]["last_seq"] > count
    wait_until(again, 10, "INBOUND taking it a second time")
    wait_until(lambda: (lambda info: info["num_pending"] + info["num_ack_pending"] == 0)(
        json.loads(world.nats.request("$JS.API.CONSUMER.INFO.INBOUND.webhook-receiver"))), 20, "INBOUND being read")
    assert not suppressed(world, number)
    twilio(world, number, "STOP")
    stopped(world, number)


def flat(documents):
    return [entry for document in documents for entry in (document if isinstance(document, list) else document.get("entries", [document]))]


def test_help_is_an_event_and_the_vendor_answers_it(world):
    number, before = world.number(), last(world)
    twilio(world, number, "help")
    assert [one["kind"] for one in come(world, before)] == ["help"] and not suppressed(world, number)


def test_vonages_replies_are_heard_too(world):
    number, before = world.number(), last(world)
    made = vonage(world, number, "Thanks")
    reply, = come(world, before)
    assert (reply["vendor"], reply["from"], reply["to"], reply["text"]) == ("vonage", number, "447700900001", "Thanks")
    other = Callback(made.headers, b"&".join(reversed(made.body.split(b"&"))))
    assert world.call(world.urls["vonage"], other)[0] == 200, "the fields are signed, not their order"
    vonage(world, number, "STOP")
    stopped(world, number)
    assert [one["kind"] for one in replies(world, before)["data"]] == ["message", "stop"]
    vonage(world, number, "unstop")
    stopped(world, number, False)


def test_telnyxs_replies_are_heard_too(world):
    number, before = world.number(), last(world)
    again = "0e0e0e0e-0000-4000-8000-000000000001"
    telnyx(world, number, "Danke", id=again)
    reply, = come(world, before)
    assert (reply["kind"], reply["channel"], reply["vendor"], reply["from"], reply["to"], reply["text"], reply["vendor_message_id"]) == (
        "message", "sms", "telnyx", number, "+15005550007", "Danke", again)
    telnyx(world, number, "Danke", id=again)  # signed at another time, of another event's id
    telnyx(world, number, "Hilfe")
    telnyx(world, number, "Abmelden")
    stopped(world, number)
    telnyx(world, number, "START")
    stopped(world, number, False)
    assert [one["kind"] for one in replies(world, before)["data"]] == ["message", "help", "stop", "start"], "the same message is one reply"


def test_a_reply_names_the_notification_that_it_answers(world):
    notification = world.sent()
    attempt = world.attempt(notification, "sent").attempt
    assert attempt.vendor == "twilio"
    number, before = world.number(), last(world)
    twilio(world, number, "to that", OriginalRepliedMessageSid=attempt.vendor_message_id)
    twilio(world, number, "to nothing of ours", OriginalRepliedMessageSid="SM" + "0" * 32)
    twilio(world, number, "to nothing")
    wait_until(lambda: last(world) == before + 3, 20, "three replies")
    assert [one["notification_id"] for one in replies(world, before)["data"]] == [notification, None, None]


def test_a_whatsapp_reply_names_what_it_answers(world):
    number, before = world.number(), last(world)
    made = Callback(*phone.meta_message(world.meta.signer, NUMBER_ID, number, "Yes \N{WAVING HAND SIGN}", context={"from": "15550783881", "id": "wamid.sent"}))
    other = Callback(*phone.meta_message(world.meta.signer, "999", number, "for another tenant"))
    assert world.call(world.urls["meta"], other)[0] == 200 and world.call(world.urls["meta"], made)[0] == 200
    reply, = come(world, before)
    assert (reply["channel"], reply["from"], reply["to"], reply["text"], reply["answers_message_id"]) == (
        "whatsapp", number, NUMBER_ID, "Yes \N{WAVING HAND SIGN}", "wamid.sent")


def test_an_opt_out_that_twilio_knows_becomes_one_of_ours(world):
    number = world.number()
    world.twilio.opted_out.add(number)
    notification = world.accepted(to=number)
    world.pipeline.status(notification, wait="failed")
    assert world.attempt(notification, "failed").reason_code == "opted_out"
    stopped(world, number)
    twilio(world, number, "START")
    stopped(world, number, False)


def test_a_captured_report_counts_once_for_a_week(world):
    """Twilio signs no time: what the streams have forgotten the dispatcher still knows."""
    notification = world.sent()
    mail = world.twilio.mails[-1]
    made = world.twilio.callback(mail, "delivered")
    for stream in ("INBOUND", "SETTLE", "STATUS"):
        config = {**world.nats.stream_info(stream)["config"], "duplicate_window": 100_000_000}
        assert "error" not in json.loads(world.nats.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
    assert world.call(mail.report_to, made)[0] == 200
    world.pipeline.status(notification, wait="delivered")
    count, read = world.nats.stream_info("INBOUND")["state"]["last_seq"], world.nats.stream_info("STATUS")["state"]["last_seq"]

    def again():
        assert world.call(mail.report_to, made)[0] == 200
        return world.nats.stream_info("INBOUND")["state"]["last_seq"] > count
    wait_until(again, 10, "INBOUND taking it a second time")
    for stream, consumer in (("INBOUND", "webhook-receiver"), ("SETTLE", "dispatcher")):
        wait_until(lambda: (lambda info: info["num_pending"] + info["num_ack_pending"] == 0)(
            json.loads(world.nats.request(f"$JS.API.CONSUMER.INFO.{stream}.{consumer}"))), 20, f"{stream} being read")
    assert world.nats.stream_info("STATUS")["state"]["last_seq"] == read, "no status again"


class Rotated:
    """Two who stopped, and a recipient who wrote, before the hash key was rotated."""

    def __init__(self, world):
        self.number, self.other, self.address = world.number(), world.number(), world.number()
        for stopping in (self.number, self.other):
            twilio(world, stopping, "STOP")
            stopped(world, stopping)
        status, _, body = world.pipeline.post({"name": "Zoe", "addresses": [{"channel": "sms", "address": self.address}]}, path="/v1/recipients")
        assert status == 201, body
        self.recipient, self.start = body["id"], last(world)
        twilio(world, self.address, "written before")
        come(world, self.start)
        rotate(world.pipeline, "hash")


@pytest.fixture(scope="module")
def rotated(world):
    return Rotated(world)


def test_start_ends_what_stop_made_before_a_rotation_of_the_hash_key(world, rotated):
    number = rotated.number
    assert suppressed(world, number)
    twilio(world, number, "STOP")  # once more, under the key of now
    wait_until(lambda: len(json.loads(world.cli("suppress", "list", "--address", number, "--channel", "sms", "--json"))) == 2, 20, "both opt-outs")
    twilio(world, number, "START")
    stopped(world, number, False)
    assert suppressed(world, rotated.other), "another's stays"


def test_an_erasure_deletes_what_the_person_wrote_and_nothing_of_others(world, rotated):
    stranger, before = world.number(), last(world)
    twilio(world, rotated.address, "written after")
    twilio(world, stranger, "of another")
    wait_until(lambda: last(world) == before + 2, 20, "two replies")
    theirs = [one["sequence"] for one in replies(world, rotated.start, limit=200)["data"] if one["from"] == rotated.address]
    assert theirs[0] == rotated.start + 1 and theirs[-1] == before + 1, "before and after the rotation"
    count = world.nats.stream_info("REPLIES")["state"]["messages"]
    done = json.loads(world.cli("erase", "--recipient", rotated.recipient, "--ground", "Art. 17 GDPR", "--requested-by", "ticket-17", "--json"))
    assert done["state"] == "erased"
    assert world.nats.stream_info("REPLIES")["state"]["messages"] == count - 2
    left = replies(world, rotated.start, limit=200)["data"]
    assert not set(theirs) & {one["sequence"] for one in left} and left[-1]["text"] == "of another"
    for sequence in theirs:
        assert "message" not in json.loads(world.nats.request("$JS.API.STREAM.MSG.GET.REPLIES", json.dumps({"seq": sequence}).encode()))


def test_who_may_read_them(world):
    before = last(world)
    for text in ("one", "two", "three"):
        twilio(world, world.number(), text)
    wait_until(lambda: last(world) == before + 3, 20, "three replies")
    first = replies(world, before, limit=2)
    assert [one["text"] for one in first["data"]] == ["one", "two"] and first["last"] == before + 2
    assert [one["text"] for one in replies(world, first["last"])["data"]] == ["three"]
    assert replies(world, before + 3) == {"data": [], "last": before + 3}
    assert replies(world, "x", expected=400)["field"] == "after" and replies(world, limit=1000, expected=400)["field"] == "limit"
    shown = json.loads(world.cli("apikey", "create", "--name", "weak", "--scopes", "recipients:read", "--json"))
    wait_until(lambda: replies_status(world, shown["key"]) == 403, 20, "the key without the scope")


def replies_status(world, key):
    client = http.client.HTTPConnection("127.0.0.1", world.pipeline.api_port, timeout=20)
    client.request("GET", "/v1/replies", headers={"Authorization": f"Bearer {key}"})
    return client.getresponse().status


def test_twilios_own_library_signs_what_is_taken(world, tmp_path):
    package = Path(__file__).parent / "twilio"
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js here: apt-get install nodejs npm")
    for name in ("package.json", "package-lock.json", "sign.mjs"):
        shutil.copy(package / name, tmp_path)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if any(word in done.stderr for word in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "CERT_IN_CHAIN")):
        pytest.skip("the npm registry cannot be reached from here")
    assert done.returncode == 0, done.stderr
    form = {"MessageSid": "SM" + "c" * 32, "From": world.number(), "To": "+15005550006", "Body": "signed by others & sent", "NumMedia": "0"}
    signed = subprocess.run(["node", "sign.mjs", world.twilio.signer.key, world.urls["twilio"]], cwd=tmp_path, input=json.dumps(form).encode(),
                            capture_output=True, check=True, env={"PATH": os.environ["PATH"]})
    answer = json.loads(signed.stdout)
    assert answer["valid"] and base64.b64decode(answer["signature"])
    before = last(world)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": answer["signature"]}
    assert world.call(world.urls["twilio"], Callback(headers, urllib.parse.urlencode(form).encode()))[0] == 200
    assert [one["text"] for one in come(world, before)] == ["signed by others & sent"]
    assert world.call(world.urls["twilio"], Callback(headers, urllib.parse.urlencode({**form, "Body": "other"}).encode()))[0] == 401


def test_a_subscriber_sees_its_tenants_replies_and_no_others(world):
    """The last of the file: NATS reads other accounts from here on."""
    etc = subscribers.describe(world.pipeline)
    password = subscribers.create(etc, "desk", TENANT)
    other = subscribers.create(etc, "board", "beta")
    subscribers.reload(world.pipeline, "desk", password)
    ours = NatsClient(world.pipeline.nats.port, "desk", password)
    assert "error" not in consumer(ours, "desk", f"ntf.reply.{TENANT}.>"), "a durable consumer of its own"
    for user, word, name, subject in (("board", other, "board", f"ntf.reply.{TENANT}.>"), ("desk", password, "desk-0", "ntf.reply.beta.>"),
                                      ("board", other, "desk-1", "ntf.reply.beta.>")):
        stranger = NatsClient(world.pipeline.nats.port, user, word)
        stranger.socket.settimeout(2)
        with pytest.raises((AssertionError, OSError)):
            assert "error" not in consumer(stranger, name, subject)
        stranger.close()
    client = Subscriber(world.pipeline.nats.port, "desk", password)
    client.subscribe(f"live.reply.{TENANT}.>")
    number, before = world.number(), last(world)
    wait_until(lambda: world.call(world.urls["twilio"], Callback(*phone.twilio_reply(world.twilio.signer, world.urls["twilio"], number, "live")))[0] == 200, 20, "a reply")
    subject, _, payload = client.next()
    assert subject == f"live.reply.{TENANT}.sms.message" and number.encode() not in payload
    assert [one["text"] for one in come(world, before)] == ["live"]
    client.close()
    ours.close()


def consumer(client, name, filter_subject):
    config = {"stream_name": "REPLIES", "config": {"durable_name": name, "ack_policy": "explicit", "filter_subject": filter_subject, "deliver_policy": "new"}}
    return json.loads(client.request(f"$JS.stentor.API.CONSUMER.CREATE.REPLIES.{name}.{filter_subject}", json.dumps(config).encode()))
