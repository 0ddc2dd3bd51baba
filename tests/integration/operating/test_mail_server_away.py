# SPDX-License-Identifier: Apache-2.0
"""The mail server is away, and everything says so (finding 7; A62 and A100 of the Notification Database: "provider outage: mails stay
and are retried on recovery", with the reason): the status of the notification, `stentor doctor`, /readyz, the log and a metric with an
alert rule. None of it makes a process unready, for another one would meet the same server."""
import json
import re
import time
import urllib.request

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import HOME, wait_until
from tests.harness.protobuf import messages

MAILS = 5


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    # The dispatcher looks after its vendor four times in a lease, and every 5 s at least.
    pipeline = Pipeline({"STENTOR_DISPATCHER_LEASE_MS": "10000", "STENTOR_RETRY_LADDER": "1,1,1,1,1,1,1,1,1,1"}).start()
    try:
        yield pipeline
    finally:
        pipeline.stop()


def _channels(pipeline):
    """(exit status, the lines about channels) of `stentor doctor`."""
    done = pipeline.run_cli("doctor", "--json")
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, [check for check in checks if check["check"].startswith("channel")]


def _shown(pipeline, notification_id):
    """What GET /v1/notifications/{id} answers."""
    request = urllib.request.Request(f"http://127.0.0.1:{pipeline.api_port}/v1/notifications/{notification_id}",
                                     headers={"Authorization": f"Bearer {pipeline.key}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def _put_postmark(pipeline, status, down_since_us=0):
    """As a dispatcher stores it when a vendor of the platform fails, and when it works again."""
    types, nats = messages(pipeline), NatsClient(pipeline.nats.port)
    nats.publish("cfg.channel_health.platform.email_postmark", types.ChannelHealth(
        tenant="platform", channel=types.CHANNEL_EMAIL, vendor="postmark", status=status, down_since_us=down_since_us, changed_at_us=int(time.time() * 1e6),
        noted_by="a dispatcher", credential="main", reason="503 maintenance").SerializeToString())
    nats.close()


def test_a_mail_server_that_is_away_is_said_everywhere(pipeline):
    dispatcher = pipeline.services["dispatcher"]
    pipeline.status(pipeline.send(), wait="sent")
    assert "waiting" not in pipeline.status(pipeline.send(), wait="sent")
    assert _channels(pipeline)[1] == [{"check": "channels", "result": "ok", "text": "no dispatcher has found its vendor away"}]
    assert dispatcher.get("/readyz") == (200, "ready\n")

    pipeline.mailbox.stop()
    ids = [pipeline.send() for _ in range(MAILS)]
    wait_until(lambda: "waiting" in pipeline.status(ids[0]), 30, "the status saying what the mail waits for")
    row = pipeline.status(ids[0])
    assert row["status"] in ("queued", "sending") and row["waiting"]["for"] == "smtp"
    assert "connection refused" in row["waiting"]["reason"]
    assert re.search(rf"\n  waiting +for smtp since {re.escape(row['waiting']['since'])}: .*connection refused\n",
                     pipeline.cli("status", ids[0]))
    # The gateway has CONFIG in memory, a moment after it is stored.
    shown = wait_until(lambda: "waiting" in _shown(pipeline, ids[0]) and _shown(pipeline, ids[0]), 20, "the gateway saying it too")
    assert shown["waiting"] == {"for": "smtp", "since": row["waiting"]["since"]}  # the reason is the operator's
    # Another vendor is down: mails of its routes go to the next one, and these here still wait for smtp.
    _put_postmark(pipeline, messages(pipeline).CHANNEL_STATUS_DOWN, int(time.time() * 1e6))
    wait_until(lambda: re.search("^email +postmark +platform +down ", pipeline.cli("channel", "list"), re.M), 20, "the gateway knowing it")
    assert pipeline.status(ids[0])["waiting"]["for"] == _shown(pipeline, ids[0])["waiting"]["for"] == "smtp"
    code, lines = _channels(pipeline)
    other = lines.pop()["text"]
    _put_postmark(pipeline, messages(pipeline).CHANNEL_STATUS_ACTIVE)
    assert re.match(r"postmark with the credential main of 'platform' fails since .*: 503 maintenance: mails go to the next vendor", other), other
    assert code == 1 and [line["result"] for line in lines] == ["fail"] and lines[0]["check"] == "channel email"
    assert f"smtp cannot be reached since {row['waiting']['since']}" in lines[0]["text"]
    status, text = dispatcher.get("/readyz")
    assert status == 200 and text.startswith("ready\nwarning: smtp cannot be reached since ") and "connection refused" in text
    assert '"the smtp server cannot be used; mails wait while the connection is tried again"' in dispatcher.log.read_text()
    # What the rule SmtpDown compares.
    assert dispatcher.metric("stentor_dispatcher_smtp_up") == 0 and dispatcher.metric("stentor_dispatcher_smtp_down_seconds") > 0
    rules = (HOME / "deploy" / "prometheus" / "pipeline.rules.yml").read_text()
    assert "- alert: SmtpDown\n        expr: min(stentor_dispatcher_smtp_up) == 0\n" in rules
    # A state is no setting: an import must not bring it back.
    assert "channel_health" not in pipeline.cli("config", "export")

    pipeline.mailbox.start()
    for each in ids:
        assert "waiting" not in pipeline.status(each, wait="sent", timeout=60) and "waiting" not in _shown(pipeline, each)
    wait_until(lambda: _channels(pipeline)[1][0]["result"] == "ok", 30, "the doctor finding the mail server again")
    assert dispatcher.get("/readyz") == (200, "ready\n")
    assert dispatcher.metric("stentor_dispatcher_smtp_up") == 1 and dispatcher.metric("stentor_dispatcher_smtp_down_seconds") == 0
    assert '"the smtp server can be reached again"' in dispatcher.log.read_text()
    assert all(len(pipeline.mailbox.for_notification(each)) == 1 for each in ids)
