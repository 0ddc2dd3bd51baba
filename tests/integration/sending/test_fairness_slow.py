# SPDX-License-Identifier: Apache-2.0
"""A tenant whose recipients answer slowly waits for them itself: it sends far below its share, and another tenant's mails go past. A vendor
that answers slowly has a quarter of a lane, and another vendor's mails go past."""
import http.client
import json
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import routing

SLOW_S = 1.5  # of each answer about the slow tenant's recipients
SLOW_MAILS = 160  # at once: 24 claims and a batch, 64 held, the rest is postponed
QUICK_MAILS = 20
QUICK_S = 4.0  # each, until the other is known to be slow included; behind its mails they would be 60 and more


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    pipeline = Pipeline()
    pipeline.extra = routing.options(
        pipeline, STENTOR_SMTP_CONNECTIONS="4", STENTOR_DISPATCHER_IN_FLIGHT="128", STENTOR_DISPATCHER_BATCH="8", STENTOR_TENANT_SHARE="1000",
        STENTOR_RETRY_LADDER="1,1,1,1,1,1,1,1", STENTOR_VENDOR_CALLS="4")
    pipeline.start()
    try:
        yield pipeline
    finally:
        pipeline.stop()


def _tenant(pipeline, name):
    pipeline.cli("tenant", "put", name, "--name", name, "--sender", f"hello@{name}.test", "--sender-name", name, tenant=name)
    pipeline.cli("template", "put", "welcome", "--subject", "Welcome", "--html", pipeline.folder / "welcome.html", "--text",
                 pipeline.folder / "welcome.txt", "--require", "name:string", tenant=name)
    key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=name))["key"]
    wait_until(lambda: _post(pipeline, key, [])[0] != 401, 20, "the API key reaching ingest")
    return key


def _post(pipeline, key, body):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=60)
    connection.request("POST", "/v1/notifications", json.dumps(body).encode(),
                       {"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def _notice(domain, number):
    return {"to": f"user{number}@{domain}", "template": "welcome", "variables": {"name": "Alice"}}


def _seconds(pipeline, ids):
    """From accept to the vendor's acceptance, of each that was sent."""
    return [row[0] for row in pipeline.postgres.query(
        "SELECT extract(epoch FROM finished_at - created_at)::float8 FROM dispatcher.ledger WHERE notification_id = ANY(%s) AND state = 'sent'", ids)]


def test_a_tenant_with_slow_recipients_holds_up_no_other_tenant(pipeline):
    slow, quick = _tenant(pipeline, "slow"), _tenant(pipeline, "quick")
    _post(pipeline, quick, _notice("quick.example", 0))
    pipeline.mailbox.slow("slow.example", SLOW_S)
    status, answer = _post(pipeline, slow, [_notice("slow.example", i) for i in range(SLOW_MAILS)])
    assert status == 202, answer
    slow_ids = [each["id"] for each in answer["notifications"]]
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM dispatcher.ledger WHERE state = 'claimed'")[0][0] >= 20, 30,
               "the slow tenant's mails taking their places")
    quick_ids = []
    for number in range(QUICK_MAILS):
        status, answer = _post(pipeline, quick, _notice("quick.example", number))
        assert status == 202, answer
        quick_ids.append(answer["id"])
        time.sleep(0.05)
    wait_until(lambda: len(_seconds(pipeline, quick_ids)) == QUICK_MAILS, 20, "the quick tenant's mails being sent")
    assert len(_seconds(pipeline, slow_ids)) < SLOW_MAILS / 2, "the slow tenant was through before the quick one sent"
    assert max(_seconds(pipeline, quick_ids)) < QUICK_S
    assert pipeline.services["dispatcher"].metric("stentor_dispatcher_postponed_total") > 0
    pipeline.mailbox.slow("slow.example", 0)
    wait_until(lambda: len(_seconds(pipeline, slow_ids)) == SLOW_MAILS, 60, "the slow tenant's mails being sent")
    to_slow = [mail for mail in pipeline.mailbox.mails() if "@slow.example" in mail["To"]]
    assert len(to_slow) == SLOW_MAILS


def test_a_vendor_that_answers_slowly_holds_up_no_other_vendor(pipeline):
    """channels.md 2.5: what is over a quarter of the lane is deferred for 1 to 60 s, without a rung."""
    own = routing.Routing(pipeline)
    try:
        (slow_domain, (slow,)), (quick_domain, (quick,)) = own.route("postmark"), own.route("sendgrid")
        _, _, answer = pipeline.post(_notice(quick_domain, 0))
        pipeline.status(answer["id"], wait="sent")
        slow.answers_after_s = SLOW_S
        _, _, answer = pipeline.post([_notice(slow_domain, i) for i in range(SLOW_MAILS)])
        slow_ids = [each["id"] for each in answer["notifications"]]
        wait_until(lambda: len(slow.requests) >= 4, 20, "the slow vendor's calls")
        _, _, answer = pipeline.post([_notice(quick_domain, i) for i in range(QUICK_MAILS)])
        quick_ids = [each["id"] for each in answer["notifications"]]
        wait_until(lambda: len(_seconds(pipeline, quick_ids)) == QUICK_MAILS, 20, "the quick vendor's mails being sent")
        assert len(_seconds(pipeline, slow_ids)) < SLOW_MAILS / 2, "the slow vendor was through before the quick one had its mails"
        deferred = pipeline.postgres.query(
            "SELECT rung, extract(epoch FROM due_at - finished_at)::float8 FROM dispatcher.ledger WHERE notification_id = ANY(%s) AND state = 'deferred'",
            slow_ids)
        assert deferred and all(rung == 0 and 0.9 <= seconds <= 60 for rung, seconds in deferred), deferred
        assert len({round(seconds, 1) for _, seconds in deferred}) > 5, "they come again at the same time"
    finally:
        slow.answers_after_s = 0
        own.close()
