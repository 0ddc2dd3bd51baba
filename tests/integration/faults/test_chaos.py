# SPDX-License-Identifier: Apache-2.0
"""The chaos suite (tests/chaos): a minute of it, and that its parts can be believed: a detector that finds nothing must find something."""
import http.client
import json
import os
import smtplib
import socket
import subprocess
import time
import types

import pytest

from tests.chaos import channels, schedule
from tests.chaos.ledger import Ledger
from tests.harness.length import amount
from tests.harness.processes import HOME, free_port
from tests.harness.proxy import Proxy
from tests.harness.tally import Tally
from tests.harness.vendor_doubles import receiver
from tests.harness.vendor_doubles.tally import Vendors

SEED, SECONDS = 1, 60
RATE = int(os.environ.get("STENTOR_CHAOS_RATE", amount(100, 500)))


def test_a_minute_of_chaos_loses_nothing_and_names_every_double():
    done = subprocess.run(
        [HOME / "tests" / "chaos" / "run", "--seconds", str(SECONDS), "--seed", str(SEED), "--rate", str(RATE)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200)  # its own bounds end before
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-12000:]


# ---- the schedule ----


def test_the_same_seed_breaks_the_same_things_at_the_same_times():
    assert list(map(str, schedule.make(7, 60))) == list(map(str, schedule.make(7, 60)))
    assert list(map(str, schedule.make(7, 60))) != list(map(str, schedule.make(8, 60)))


@pytest.mark.parametrize("seed", range(1, 6))
def test_every_kind_of_fault_comes_and_no_two_meet_at_one_victim(seed):
    faults = schedule.make(seed, 120)
    assert {fault.kind for fault in faults} == {*schedule.DECK, "restore"}
    assert {fault.detail["vendor"] for fault in schedule.make(seed, 600) if fault.kind.startswith("vendor-")} == {*schedule.ANY_VENDOR}
    for first in faults:
        for second in faults:
            if first is not second and first.resources & second.resources:
                assert first.at + first.seconds < second.at or second.at + second.seconds < first.at, (str(first), str(second))


def test_a_restored_store_was_copied_before_and_is_left_alone_meanwhile():
    faults = schedule.make(3, 60, [*schedule.DECK, "restore"])
    fault, = (fault for fault in faults if fault.kind == "restore")
    assert 0 < fault.detail["taken"] < fault.at < 60
    assert not [other for other in faults if other is not fault and "nats" in other.resources
                and other.at < fault.at + fault.seconds and fault.at < other.at + other.seconds]


# ---- the verdict ----


def _ledger(kept=None, status="sent", reason=None, unknown=(), permanent=None, hurt=None, accepted=("a",), history=None, address=None, vendors=None, parked=(), hooks=None,
            no_other=()):
    rows = [(i, status, reason) for i in accepted] if history is None else history
    ended = {name: sum(row[0] in accepted and row[1] == name for row in rows) for name in ("sent", "failed")}
    audit = {"accepted": len(accepted), **ended, "in_flight": 0, "lost": 0, "findings": [{"id": i, "what": "unknown"} for i in unknown]}
    world = types.SimpleNamespace(
        run_cli=lambda *words, **_: types.SimpleNamespace(returncode=0, stdout=json.dumps(audit)),
        postgres=types.SimpleNamespace(query=lambda sql, *_: [(i,) for i in no_other] if "o.code" in sql else [(i,) for i in parked] if "parked" in sql else rows))
    mailbox = {"kept": kept or {}, "permanent": permanent or {}, "hurt": hurt or {}}
    return Ledger(world, {i: address or f"{i}@x" for i in accepted}, mailbox, vendors, hooks)


@pytest.mark.parametrize("case, wrong", [
    ({"kept": {"a": [1.0]}}, None),
    ({"kept": {"a": [1.0, 2.0]}, "unknown": ["a"]}, None),
    ({"status": "failed", "reason": "rejected", "permanent": {"a@x": "550"}}, None),
    ({"status": "failed", "reason": "retries_exhausted", "hurt": {"a@x": ["4xx"]}}, None),
    ({}, "lost"),
    ({"status": "queued"}, "lost"),
    ({"history": []}, "lost"),
    ({"status": "failed", "reason": "rejected"}, "lost"),
    ({"status": "failed", "reason": "expired", "permanent": {"a@x": "550"}}, "lost"),
    ({"kept": {"a": [1.0, 2.0]}}, "doubled"),
    ({"kept": {"a": [1.0]}, "status": "sending"}, "no end"),
    ({"kept": {"a": [1.0]}, "status": "failed", "reason": "rejected", "permanent": {"a@x": "550"}}, "reported as failed"),
    ({"kept": {"a": [1.0]}, "status": "failed", "reason": "rejected", "unknown": ["a"]}, "failed without"),
    ({"kept": {"a": [1.0], "b": [1.0]}}, "in the mailbox, never accepted"),
    ({"kept": {"a": [1.0]}, "history": [("a", "sent", None), ("b", "queued", None)]}, "in history, never accepted"),
])
def test_the_verdict_names_what_is_wrong_and_only_that(case, wrong):
    ledger = _ledger(**case)
    assert ledger.check() == (wrong is None), ledger.wrong
    assert wrong is None or any(what.startswith(wrong) for what, _, _ in ledger.wrong), ledger.wrong


PARKED, COUNTED, MOVED, KEYED = (f"a@{name}.chaos.test" for name in ("parked", "counted", "moved", "keyed"))


def _vendors(wrong=(), sendgrid=(), resend=()):
    return {name: {"kept": {"a": list(times), "z": [0.5]} if times else {"z": [0.5]}, "wrong": list(wrong), "mails": 1, "requests": 1, "faults": {}}
            for name, times in (("sendgrid", sendgrid), ("resend", resend))}


@pytest.mark.parametrize("address, case, vendors, wrong", [
    (MOVED, {}, {"sendgrid": [1.0]}, None),
    (MOVED, {"unknown": ["a"]}, {"sendgrid": [1.0], "resend": [2.0]}, None),
    (MOVED, {"unknown": ["a"], "kept": {"a": [1.0]}}, {"sendgrid": [1.0]}, None),
    (PARKED, {"unknown": ["a"]}, {}, None),
    (COUNTED, {"unknown": ["a"]}, {}, None),
    (COUNTED, {}, {}, "lost"),
    (MOVED, {"unknown": ["a"]}, {}, "lost"),
    (MOVED, {}, {"sendgrid": [1.0], "resend": [2.0]}, "doubled"),
    (PARKED, {"unknown": ["a"], "kept": {"a": [1.0]}}, {"sendgrid": [1.0]}, "doubled although"),
    (KEYED, {"unknown": ["a"]}, {"resend": [1.0, 2.0]}, "twice at the vendor"),
    (MOVED, {}, {"sendgrid": [1.0], "wrong": ["400 no"]}, "requests that sendgrid"),
    (MOVED, {"parked": ["a"]}, {"sendgrid": [1.0]}, "parked although"),
    (MOVED, {"unknown": ["a"], "parked": ["a"]}, {}, "lost"),
    (MOVED, {"unknown": ["a"], "parked": ["a"], "no_other": ["a"]}, {}, None),
    (MOVED, {"parked": ["a"], "no_other": ["a"]}, {}, "lost"),
])
def test_the_verdict_knows_what_a_route_s_policy_allows(address, case, vendors, wrong):
    ledger = _ledger(address=address, vendors=_vendors(**vendors), **case)
    ledger.note = lambda what, examples, note=ledger.note: note(what, [e for e in examples if e != "z"])  # what else each vendor has
    assert ledger.check() == (wrong is None), ledger.wrong
    assert wrong is None or any(what.startswith(wrong) for what, _, _ in ledger.wrong), ledger.wrong


# ---- the verdict on the other channels ----

ADDRESSES = channels.Addresses("https://127.0.0.1:1")
OF = {channel: ADDRESSES.make(channel, 3, 4) for channel in channels.CHANNELS}


def _doubles(wrong=(), **kept):
    """By channel: the times at which its double took the notification, by id or by what the vendor is given in place of one."""
    names = {**channels.VENDORS, "inapp": "inapp"}
    places = {"sms": OF["sms"], "voice": OF["voice"], "webhook": channels.place_of(OF["webhook"])}
    return {name: {"kept": {**({places.get(channel, "a"): list(kept[channel])} if channel in kept else {}), "z": [0.5]}, "wrong": list(wrong), "mails": 1,
                   "requests": 1, "faults": {}} for channel, name in names.items()}


def test_each_address_is_one_of_its_channel_and_no_other_s():
    made = {ADDRESSES.make(channel, chunk, index): channel for channel in channels.CHANNELS for chunk in (channels.TRIALS, 0, 1, 2399) for index in (0, 49)}
    assert len(made) == 8 * len(channels.CHANNELS)
    assert {address: channels.channel_of(address) for address in made} == made and channels.channel_of("a@x.test") == "email"


@pytest.mark.parametrize("channel", channels.CHANNELS)
def test_what_a_channel_loses_is_found(channel):
    ledger = _ledger(address=OF[channel], vendors=_doubles())
    assert not ledger.check() and ledger.lost == {"a"}
    assert _judged(_ledger(address=OF[channel], vendors=_doubles(**{channel: [1.0]}))) == []


def _judged(ledger):
    ledger.note = lambda what, examples, note=ledger.note: note(what, [e for e in examples if e != "z"])  # what else each double has
    ledger.check()
    return [what for what, _, _ in ledger.wrong]


@pytest.mark.parametrize("channel, case, kept, wrong", [
    *[(channel, {}, {channel: [1.0, 2.0]}, "doubled:") for channel in ("sms", "whatsapp", "voice", "webhook", "inapp")],
    ("push", {}, {"push": [1.0, 2.0]}, None),  # the second takes the first one's place on the device
    ("webhook", {"unknown": ["a"]}, {"webhook": [1.0, 2.0]}, None),
    *[(channel, {"unknown": ["a"]}, {channel: [1.0, 2.0]}, "doubled although") for channel in ("sms", "whatsapp", "voice")],
    *[(channel, {"unknown": ["a"], "parked": ["a"], "status": "sending"}, {}, None) for channel in ("sms", "whatsapp", "voice")],
    *[(channel, {"unknown": ["a"]}, {}, "lost") for channel in channels.CHANNELS],
    *[(channel, {"unknown": ["a"], "parked": ["a"]}, {channel: [1.0]}, "parked although") for channel in ("push", "webhook", "inapp")],
    *[(channel, {"parked": ["a"]}, {channel: [1.0]}, "of a channel, parked") for channel in ("sms", "whatsapp", "voice")],
    *[(channel, {"status": "sending"}, {channel: [1.0]}, "no end") for channel in channels.CHANNELS],
    *[(channel, {"status": "failed", "reason": "rejected"}, {}, "lost") for channel in channels.CHANNELS],
    ("sms", {}, {"whatsapp": [1.0]}, "at a vendor of another channel"),
    ("sms", {"kept": {"a": [1.0]}}, {}, "at a vendor of another channel"),
    ("push", {}, {"push": [1.0], "wrong": ["403 no"]}, "requests that"),
])
def test_the_verdict_on_a_channel_names_what_is_wrong_and_only_that(channel, case, kept, wrong):
    found = _judged(_ledger(address=OF[channel], vendors=_doubles(**kept), **case))
    assert (found == []) if wrong is None else any(what.startswith(wrong) for what in found), found


@pytest.mark.parametrize("wanted, posted, refused, wrong", [
    ({"e1": ("a", "sent")}, ["e1"], [], None),
    ({"e1": ("a", "sent"), "e2": ("a", "queued")}, ["e1"], [], "webhooks lost: stored"),
    ({"e2": ("a", "queued")}, ["e2"], [], "webhooks lost: the end"),  # its end is in history and nowhere else
    ({}, [], [], "an endpoint that had to get nothing"),
    ({"e1": ("a", "sent")}, ["e1"], ["400 e1 came before with another body"], "posts that the tenant's endpoint does not take"),
])
def test_the_verdict_names_webhooks_that_did_not_arrive(wanted, posted, refused, wrong):
    hooks = channels.Hooks(None, set())
    hooks.wanted = wanted
    posts = {"kept": {i: [1.0] for i in posted}, "wrong": refused, "mails": 1, "again": 0, "requests": 1, "faults": {}}
    doubles = {**_doubles(sms=[1.0]), channels.RECEIVER: posts}
    found = _judged(_ledger(address=OF["sms"], vendors=doubles, hooks=hooks))
    assert (found == []) if wrong is None else any(what.startswith(wrong) for what in found), found


def test_the_endpoint_takes_what_is_signed_and_one_body_for_each_id(tmp_path):
    vendors = Vendors({channels.RECEIVER: free_port()}).start()
    try:
        secret = "whsec_c2VjcmV0"
        vendors.know(channels.RECEIVER, secret)

        def post(identity, status, signed=secret):
            body = json.dumps({"type": f"notification.{status}", "data": {"id": "ntf_1", "status": status}}).encode()
            stamp = str(int(time.time()))
            connection = http.client.HTTPConnection("127.0.0.1", vendors.ports[channels.RECEIVER], timeout=5)
            connection.request("POST", "/hooks", body, {"webhook-id": identity, "webhook-timestamp": stamp,
                                                        "webhook-signature": "v1,AAAA " + receiver.signed(signed, identity, stamp, body)})
            try:
                return connection.getresponse().status
            finally:
                connection.close()
        assert [post("e1", "sent"), post("e1", "sent"), post("e2", "queued")] == [200, 200, 200]
        assert [post("e1", "failed"), post("e3", "sent", "whsec_b3RoZXI=")] == [400, 401]
        seen = vendors.everything(tmp_path / "vendors.json")[channels.RECEIVER]
        assert {identity: len(times) for identity, times in seen["kept"].items()} == {"e1": 2, "e2": 1} and len(seen["wrong"]) == 1
        assert seen["faults"]["wrong secret"] == 1
    finally:
        vendors.stop()


def test_a_vendor_in_a_process_of_its_own_takes_several_secrets_and_misbehaves_as_asked(tmp_path):
    vendors = Vendors({"sendgrid": free_port()}).start()
    try:
        def ask(secret):
            body = {"personalizations": [{"to": [{"email": "a@x.test"}], "custom_args": {"nid": "ntf_1"}}], "from": {"email": "s@x.test"},
                    "subject": "Hi", "content": [{"type": "text/plain", "value": "Hello"}]}
            connection = http.client.HTTPConnection("127.0.0.1", vendors.ports["sendgrid"], timeout=2)
            try:
                connection.request("POST", "/v3/mail/send", json.dumps(body), {"Content-Type": "application/json", "Authorization": f"Bearer {secret}"})
                return connection.getresponse().status
            except (http.client.HTTPException, OSError):
                return None
            finally:
                connection.close()
        vendors.accept("sendgrid", ["old", "new"])
        assert [ask("old"), ask("new"), ask("other")] == [202, 202, 401]
        vendors.accept("sendgrid", ["new"])
        assert [ask("old"), ask("new")] == [401, 202]
        for fault, said in (("ERROR_AFTER", 500), ("THROTTLE", 429), ("CUT_AFTER_BODY", None)):
            vendors.misbehave("sendgrid", fault)
            assert ask("new") == said
        vendors.well("sendgrid")
        seen = vendors.everything(tmp_path / "vendors.json")["sendgrid"]
        assert len(seen["kept"]["ntf_1"]) == 5 and seen["wrong"] == [] and seen["faults"]["wrong secret"] == 2 and seen["faults"]["THROTTLE"] == 1
    finally:
        vendors.stop()


# ---- the sink and the proxy ----


@pytest.fixture
def sink(tmp_path):
    running = Tally(free_port()).start()
    running.file = tmp_path / "mailbox.json"
    yield running
    running.stop()


def _mail(port, identity="ntf_1", to="a@x.test", timeout=1):
    with smtplib.SMTP("127.0.0.1", port, timeout=timeout) as client:
        client.sendmail("s@x.test", to, f"Message-ID: <{identity}@x>\r\n\r\nhello\r\n.. dots\r\n")


def test_the_sink_counts_by_message_id(sink):
    for identity in ("ntf_1", "ntf_2", "ntf_1"):
        _mail(sink.port, identity)
    kept = sink.everything(sink.file)["kept"]
    assert {identity: len(times) for identity, times in kept.items()} == {"ntf_1": 2, "ntf_2": 1}
    assert sink.counts()["again"] == 1


def test_the_sink_misbehaves_as_asked_and_remembers_it(sink):
    for kind, errors in (("5xx", smtplib.SMTPResponseException), ("4xx", smtplib.SMTPException), ("reset", OSError), ("hang", OSError)):
        sink.mode(kind, 1.0)
        with pytest.raises((errors, smtplib.SMTPRecipientsRefused, smtplib.SMTPServerDisconnected)):
            _mail(sink.port, kind, f"{kind}@x.test", timeout=0.3)
    sink.mode("normal")
    _mail(sink.port, "ntf_9")
    seen = sink.everything(sink.file)
    assert set(seen["permanent"]) == {"5xx@x.test"} and "ntf_9" in seen["kept"]
    assert "4xx@x.test" in seen["hurt"] and "hang@x.test" in seen["hurt"] and not {"5xx", "4xx"} & set(seen["kept"])


@pytest.fixture
def through(sink):
    running = Proxy({"a": (free_port(), sink.port)}).start()
    running.port = running.routes["a"][0]
    yield running
    running.stop()


def _greeting(port, timeout=0.5):
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.settimeout(timeout)
        return connection.recv(100)


def test_the_proxy_refuses_stalls_and_heals(through):
    assert _greeting(through.port).startswith(b"220 ")
    through.refuse(["a"])
    with pytest.raises(ConnectionRefusedError):
        _greeting(through.port)
    through.heal(["a"])
    through.stall(["a"], "down")
    with pytest.raises(TimeoutError):
        _greeting(through.port)
    through.heal(["a"])
    assert _greeting(through.port).startswith(b"220 ")


def test_what_the_proxy_held_comes_in_order_or_not_at_all(through):
    with socket.create_connection(("127.0.0.1", through.port), 2) as connection:
        assert connection.recv(100).startswith(b"220 ")
        through.stall(["a"], "up")
        connection.sendall(b"NOOP\r\n" * 1000)
        through.delay(["a"], 30)
        through.heal(["a"])
        assert connection.recv(20, socket.MSG_WAITALL).startswith(b"250 2.0.0 ok\r\n250 2")
        through.cut(["a"])
        with pytest.raises(ConnectionResetError):
            while connection.recv(65536):
                pass


def test_a_slow_route_delays_both_ways_and_loses_nothing(through, sink):
    through.delay(["a"], 50)
    _mail(through.port, "ntf_slow", timeout=5)
    assert list(sink.everything(sink.file)["kept"]) == ["ntf_slow"]
