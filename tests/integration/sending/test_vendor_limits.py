# SPDX-License-Identifier: Apache-2.0
"""Two dispatchers keep a vendor's limit together, set by an operator's commands: "throttle to avoid SendGrid limits" (rows A36, A96, C53); a
vendor that throttles slows both down; a secret is rotated without a restart (row C55)."""
import json
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Double, Fault, routing

PER_S = 25
MAILS = 100


@pytest.fixture(scope="module")
def pipeline():
    made = Pipeline()
    made.extra = routing.options(made, STENTOR_RETRY_LADDER="email=2,4;sms=60", STENTOR_SMTP_RATE_PER_S=PER_S)
    made.start()
    made.services["dispatcher-2"] = made.service("dispatcher", instance="-2").start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def vendor(pipeline):
    double = Double("sendgrid").start()
    arrived = []
    take = double.check

    def check(*words):
        mail = take(*words)
        arrived.append(time.monotonic())
        return mail

    double.check, double.arrived = check, arrived
    secret = pipeline.folder / "credentials" / "sendgrid"
    secret.write_text(double.secret + "\n")
    pipeline.cli("credential", "put", "sendgrid", "main", "--reference", f"file:{secret}", "--set", f"base_url={double.base_url}",
                 "--rate-per-s", str(PER_S))
    pipeline.cli("credential", "promote", "sendgrid", "main")
    pipeline.cli("route", "put", "limited", "--vendor", "sendgrid", "--domain", "limited.example")
    for name in ("dispatcher", "dispatcher-2"):
        wait_until(lambda: pipeline.services[name].metric("stentor_dispatcher_routes") >= 1, 20, "the route in both dispatchers")
    yield double
    double.stop()


class TimedList(list):
    """When each came."""

    def __init__(self):
        super().__init__()
        self.times = []

    def append(self, one):
        self.times.append(time.monotonic())
        super().append(one)


def send(pipeline, count):
    body = [{"to": f"guest{n}@limited.example", "template": "welcome", "variables": {"name": "Alice"}} for n in range(count)]
    status, _, answer = pipeline.post(body)
    assert status == 202, answer
    return [accepted["id"] for accepted in answer["notifications"]]


def most_in_a_second(times):
    return max(sum(1 for other in times if start <= other < start + 1) for start in times)


def test_two_dispatchers_together_keep_the_limit(pipeline, vendor):
    send(pipeline, MAILS)
    wait_until(lambda: len(vendor.mails) == MAILS, 60, "all mails at the vendor")
    took = vendor.arrived[-1] - vendor.arrived[0]
    assert took >= (MAILS - 1) / PER_S - 0.5, f"{MAILS} mails in {took:.2f} s"
    assert most_in_a_second(vendor.arrived) <= PER_S * 1.2 + 2
    leased = [pipeline.services[name].metric("stentor_dispatcher_budget_leased_total") for name in ("dispatcher", "dispatcher-2")]
    assert min(leased) > 0, f"one of them sent nothing: {leased}"
    assert not vendor.refused


def test_a_route_is_tried_on_the_last_mails_before_it_takes_any(pipeline, vendor):
    taken, words = len(vendor.requests), ["shadow", "--route", "next", "--last", "20", "--lane", "normal", "--ground", "moving to another vendor"]
    missing = pipeline.run_cli(*words)
    assert missing.returncode == 3 and "route 'next'" in missing.stderr
    pipeline.cli("credential", "put", "postmark", "trial", "--reference", "file:/run/secrets/none", "--set", "base_url=https://127.0.0.1:1")
    pipeline.cli("route", "put", "next", "--vendor", "postmark/trial", "--fallback", "sendgrid", "--disabled")
    wait_until(lambda: json.loads(pipeline.cli(*words, "--json"))["mails"] == 20, 20, "twenty mails of the stream")
    found = json.loads(pipeline.cli(*words, "--json", "--show", "2"))
    assert found["not_opened"] == 0 and [(one["vendor"], one["built"], one["cannot_carry"]) for one in found["vendors"]] == [
        ("postmark", 20, 0), ("sendgrid", 20, 0)]
    request = found["vendors"][0]["requests"][0]
    assert request["url"].startswith("https://127.0.0.1:1/") and "Welcome, Alice!" in request["body"] and request["headers"]["X-Postmark-Server-Token"] == "SECRET"
    text = pipeline.cli(*words)
    assert "postmark: 20 built, 0 that it cannot carry" in text and "nothing was sent" in text
    assert "@limited.example" in text and "guest1@limited.example" not in text and "guest19@" not in text + json.dumps(found)
    noted = pipeline.cli("audit-log", "list", "--json")
    assert "content.shadowed" in noted and "moving to another vendor" in noted
    assert len(vendor.requests) == taken
    refused = pipeline.run_cli("shadow", "--route", "next")
    assert refused.returncode == 2 and "--ground" in refused.stderr
    pipeline.cli("route", "delete", "next")


def test_two_dispatchers_together_keep_the_limit_of_the_smtp_server(pipeline):
    body = [{"to": f"guest{n}@elsewhere.example", "template": "welcome", "variables": {"name": "Alice"}} for n in range(MAILS)]
    _, _, answer = pipeline.post(body)
    ids = [accepted["id"] for accepted in answer["notifications"]]
    found = "SELECT extract(epoch FROM finished_at)::float8, attempt FROM dispatcher.ledger WHERE notification_id = ANY(%s) AND state = 'sent' ORDER BY 1"
    wait_until(lambda: len(pipeline.postgres.query(found, ids)) == MAILS, 60, "all mails over SMTP")
    times = [at for at, _ in pipeline.postgres.query(found, ids)]
    assert times[-1] - times[0] >= (MAILS - 1) / PER_S - 0.5, f"{MAILS} mails in {times[-1] - times[0]:.2f} s"
    assert most_in_a_second(times) <= PER_S * 1.2 + 2
    assert {attempt for _, attempt in pipeline.postgres.query(found, ids)} == {1}


def test_a_vendor_that_throttles_slows_all_down(pipeline, vendor):
    before = len(vendor.mails)
    vendor.retry_after = 1
    vendor.behave(Fault.THROTTLE, times=1)
    notifications = send(pipeline, 3)
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM dispatcher.budget WHERE penalty < 0.75")[0][0] == 1, 20, "the slower pace")
    wait_until(lambda: len(vendor.mails) == before + 3, 60, "all mails, the throttled one too")
    assert sorted(mail.notification for mail in vendor.mails[before:]) == sorted(notifications)


def test_a_rotated_secret_is_used_without_a_restart(pipeline, vendor):
    secret = pipeline.folder / "credentials" / "sendgrid"
    new = pipeline.folder / "credentials" / ".sendgrid.new"
    vendor.secret = "SG.rotated"
    new.write_text("SG.rotated\n")
    new.rename(secret)
    for name in ("dispatcher", "dispatcher-2"):
        wait_until(lambda: any("a credential was rotated" in line for line in pipeline.services[name].tail(200).splitlines()), 30, "the rotated secret")
    before, refused = len(vendor.mails), len(vendor.refused)
    send(pipeline, 4)
    wait_until(lambda: len(vendor.mails) == before + 4, 60, "mails with the new secret")
    assert len(vendor.refused) == refused
    uses = [pipeline.services[name].metric('stentor_dispatcher_credential_uses_total{tenant="acme",vendor="sendgrid",credential="main"}')
            for name in ("dispatcher", "dispatcher-2")]
    assert sum(uses) >= MAILS + 7
    assert all("SG.rotated" not in pipeline.services[name].tail(100000) for name in ("dispatcher", "dispatcher-2"))


def test_the_account_s_own_quota_is_kept(pipeline):
    """SES says MaxSendRate in GetAccount, which is asked every five minutes: no limit is put by an operator."""
    own = routing.Routing(pipeline)
    try:
        domain, (ses,) = own.route("ses")
        ses.quota["MaxSendRate"] = 10.0
        body = [{"to": f"guest{n}@{domain}", "template": "welcome", "variables": {"name": "Alice"}} for n in range(40)]
        wait_until(lambda: pipeline.post(body[:4]) and sum(request.path == "/v2/email/account" for request in ses.requests) >= 2, 30,
                   "the question of both dispatchers")
        wait_until(lambda: not pipeline.postgres.query("SELECT 1 FROM dispatcher.ledger WHERE vendor = 'ses' AND state = 'claimed'"), 30, "a rest")
        ses.mails = TimedList()
        pipeline.post(body)
        wait_until(lambda: len(ses.mails) == 40, 60, "all mails at the vendor")
        assert not ses.refused
        assert most_in_a_second(ses.mails.times) <= 20  # 10/s, in bursts where the machine is busy; without the quota all 40 at once
    finally:
        own.close()


def test_an_urgent_mail_waits_for_no_turn_while_another_vendor_is_up(pipeline):
    own = routing.Routing(pipeline)
    try:
        domain, (slow, _) = own.route("postmark", "smtp", rate_per_s=1)
        body = [{"to": f"guest{n}@{domain}", "template": "welcome", "variables": {"name": "Alice"}, "priority": "critical"} for n in range(40)]
        ids = [accepted["id"] for accepted in pipeline.post(body)[2]["notifications"]]
        found = "SELECT vendor, attempt FROM dispatcher.ledger WHERE notification_id = ANY(%s) AND state = 'sent'"
        wait_until(lambda: len(pipeline.postgres.query(found, ids)) == 40, 20, "all mails, at 1/s they would take 40 s")
        sent = pipeline.postgres.query(found, ids)
        assert {attempt for _, attempt in sent} == {1}, "nothing was sent before it moved, so it is the same attempt"
        assert sum(vendor == "postmark" for vendor, _ in sent) == len(slow.mails) < 40
    finally:
        own.close()


def test_two_dispatchers_together_make_one_probe(pipeline):
    """Row of channels.md 4.1: of all dispatchers one mail at a time tries a vendor that was left alone."""
    own = routing.Routing(pipeline)
    try:
        domain, (postmark, sendgrid) = own.route("postmark", "sendgrid", fallback_on=["unsent", "retry", "open"])
        postmark.requests = TimedList()

        def probes():
            return [at for at in postmark.requests.times if at > opened]

        def send_mails():
            pipeline.post([{"to": f"guest{n}@{domain}", "template": "welcome", "variables": {"name": "Alice"}} for n in range(4)])

        postmark.behave(Fault.UNAVAILABLE)
        both = [pipeline.services[name] for name in ("dispatcher", "dispatcher-2")]
        wait_until(lambda: send_mails() or all(service.metric("stentor_dispatcher_vendors_down") >= 1 for service in both), 30,
                   "both dispatchers leaving the vendor alone")
        opened = time.monotonic() + 1  # what was on its way has ended
        wait_until(lambda: send_mails() or len(probes()) >= 3, 60, "three probes")
        assert min(later - earlier for earlier, later in zip(probes(), probes()[1:])) > 3.9, f"probes at {probes()}"
        postmark.well()
        wait_until(lambda: send_mails() or len(postmark.mails) >= 20, 60, "mails at the vendor that works again")
    finally:
        own.close()


def test_a_suspended_vendor_sends_nothing_until_it_is_resumed(pipeline, vendor):
    pipeline.cli("channel", "suspend", "sendgrid", "--reason", "account under review")
    listed = json.loads(pipeline.cli("channel", "list", "--json"))
    assert [entry["status"] for entry in listed if entry["vendor"] == "sendgrid" and entry["of"] == "tenant"] == ["disabled"]
    before = len(vendor.mails)
    notification, = send(pipeline, 1)
    wait_until(lambda: pipeline.postgres.query("SELECT state FROM dispatcher.ledger WHERE notification_id = %s", notification) == [("deferred",)], 30,
               "the mail waiting")
    assert len(vendor.mails) == before
    wait_until(lambda: "suspended" in pipeline.cli("status", notification), 10, "history saying why it waits")
    assert json.loads(pipeline.cli("channel", "resume", "sendgrid", "--json"))["status"] == "active"
