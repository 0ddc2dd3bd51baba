# SPDX-License-Identifier: Apache-2.0
"""Pushes over HTTP/2 to doubles whose token checks and decryption are not ours (jose, http_ece): tests/harness/push."""
import json
import os
import pathlib
import subprocess

import pytest

from tests.harness.push import Push

PROGRAM = pathlib.Path(os.environ["STENTOR_BIN"]).parent / "tests" / "push_probe"
NID = "ntf_01M82XS89VEV77VD8AS0MCMH0B"
ANSWERED, UNSENT = 0, 1  # SendState
ACCEPTED, BAD_ADDRESS = 0, 4  # ReplyClass


class Probe:
    """Pushes by the program tests/probes/push_probe.c, which keeps what authorizes them."""

    def __init__(self, ca):
        self.child = subprocess.Popen([PROGRAM, f"ca={ca}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, vendor, account, to, **more):
        push = {"vendor": vendor, "account": account, "to": to, "nid": NID, "attempt": 1, "title": "Your order", "body": "It is there ☃", "urgent": True, **more}
        self.child.stdin.write(json.dumps(push) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def stop(self):
        self.child.stdin.close()
        assert self.child.wait(30) == 0


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    double = Push(tmp_path_factory.mktemp("push"))
    yield double
    double.stop()


@pytest.fixture
def probe(double):
    probe = Probe(double.ca)
    yield probe
    probe.stop()
    assert double.seen()["refused"] == []


def test_apns_takes_a_push_and_says_when_a_device_is_gone(double, probe):
    device, account = "0123456789abcdef" * 4, double.accounts["apns"]
    sent = probe.send("apns", account, device, data='{"order": 17, "aps": {"badge": 3}}')
    assert (sent["state"], sent["reply"]) == (ANSWERED, ACCEPTED) and len(sent["message_id"]) == 36, sent
    taken = double.seen()["apns"][-1]
    assert (taken["token"], taken["collapse"]) == (device, NID)
    assert taken["payload"] == {"aps": {"badge": 3, "alert": {"title": "Your order", "body": "It is there ☃"}}, "nid": NID, "order": 17}
    gone = probe.send("apns", account, double.gone[0])
    assert (gone["state"], gone["reply"], gone["text"]) == (ANSWERED, BAD_ADDRESS, "Unregistered")
    assert gone["bearers"] == 1  # one provider token for both


def test_fcm_asks_for_one_access_token_and_sends(double, probe):
    grants, account = double.seen()["grants"], double.accounts["fcm"]
    results = [probe.send("fcm", account, f"token-{i}", data='{"order": 17}') for i in range(5)]
    assert all((sent["state"], sent["reply"]) == (ANSWERED, ACCEPTED) for sent in results), results
    assert results[-1]["message_id"].startswith("projects/acme/messages/")
    seen = double.seen()
    assert seen["grants"] == grants + 1 and len(seen["fcm"]) >= 5
    message = seen["fcm"][-1]
    assert message["token"] == "token-4" and message["data"] == {"order": "17", "nid": NID} and message["android"]["notification"]["tag"] == NID
    gone = probe.send("fcm", account, "gone-token")
    assert (gone["state"], gone["reply"]) == (ANSWERED, BAD_ADDRESS) and gone["text"].startswith("UNREGISTERED"), gone


def test_a_browser_reads_what_was_encrypted_for_it(double, probe):
    account = double.accounts["webpush"]
    sent = probe.send("webpush", account, double.subscription(), data='{"link": "/o/17"}')
    assert (sent["state"], sent["reply"]) == (ANSWERED, ACCEPTED) and "/m/" in sent["message_id"], sent
    taken = double.seen()["webpush"][-1]
    assert (taken["topic"], taken["urgency"]) == (NID, "high")
    assert taken["message"] == {"title": "Your order", "body": "It is there ☃", "tag": NID, "nid": NID, "data": {"link": "/o/17"}}
    gone = probe.send("webpush", account, double.subscription("/push/gone"))
    assert (gone["state"], gone["reply"]) == (ANSWERED, BAD_ADDRESS), gone


def test_an_endpoint_that_is_no_push_service_is_never_called(double, probe):
    account = {**double.accounts["webpush"], "settings": {"subject": "mailto:push@acme.test"}}
    sent = probe.send("webpush", account, double.subscription())
    assert (sent["state"], sent["kind"]) == (UNSENT, "permanent") and "'hosts'" in sent["error"], sent


def test_a_refused_access_token_is_replaced_and_the_push_goes_out(double, probe):
    account, before = double.accounts["fcm"], len(double.seen()["fcm"])
    assert probe.send("fcm", account, "one")["reply"] == ACCEPTED
    double.revoke()
    sent = probe.send("fcm", account, "two")
    assert (sent["state"], sent["reply"], sent["bearers"]) == (ANSWERED, ACCEPTED, 2), sent
    assert [message["token"] for message in double.seen()["fcm"][before:]] == ["one", "two"]


def test_a_wrong_key_is_the_credentials_fault(double, tmp_path):
    other = Push(tmp_path)
    probe = Probe(other.ca)
    service_account = {**other.service_account, "private_key": double.service_account["private_key"]}
    granted = probe.send("fcm", {**other.accounts["fcm"], "secret": json.dumps(service_account)}, "token")
    assert granted["state"] == UNSENT and "no access token" in granted["error"] and "PRIVATE KEY" not in granted["error"], granted
    probe.stop()
    assert any("signature verification failed" in refused for refused in other.seen()["refused"])
    other.stop()
