# SPDX-License-Identifier: Apache-2.0
"""SendGrid's signed event webhook: what it says becomes status, and only when its signature holds."""
import json
import time

import pytest

from tests.harness.processes import wait_until
from tests.harness.sendgrid import body_of, event, new_signer, post


@pytest.fixture(scope="module")
def signer(pipeline, tmp_path_factory):
    return new_signer(pipeline, tmp_path_factory.mktemp("sendgrid"))


def test_delivered_and_open_become_status(pipeline, signer):
    notification = pipeline.send()
    pipeline.status(notification, wait="sent")
    body = body_of(event(notification, "processed", 1), event(notification, "delivered", 1), event(notification, "open", 1))
    assert post(pipeline, body, signer(body))[0] == 200
    row = pipeline.status(notification, wait="opened")
    assert [step["status"] for step in row["timeline"]][:3] == ["queued", "rendered", "sent"]
    assert {step["status"] for step in row["timeline"]} == {"queued", "rendered", "sent", "delivered", "opened"}


def bounced(nats):
    """How many statuses `bounced` the stream holds."""
    answer = json.loads(nats.request("$JS.API.STREAM.INFO.STATUS", json.dumps({"subjects_filter": "ntf.status.*.email.bounced"}).encode()))
    return sum(answer["state"].get("subjects", {}).values())


def stored(nats):
    """How many callbacks the stream holds, but for the notes on those that were refused."""
    answer = json.loads(nats.request("$JS.API.STREAM.INFO.INBOUND", json.dumps({"subjects_filter": "ntf.inbound.>"}).encode()))
    return sum(count for subject, count in answer["state"].get("subjects", {}).items() if subject != "ntf.inbound.rejected")


def test_a_bounce_ends_it_and_the_same_callback_twice_changes_nothing(pipeline, signer, nats):
    notification = pipeline.send()
    pipeline.status(notification, wait="sent")
    body = body_of(event(notification, "bounce", 2, type="bounce", status="5.1.1", reason="550 5.1.1 unknown alice@example.com"))
    assert post(pipeline, body, signer(body))[0] == 200
    row = pipeline.status(notification, wait="bounced")
    assert row["status"] == "bounced" and "alice@example.com" not in json.dumps(row)
    before = bounced(nats)  # other statuses may still come from the tests before
    assert post(pipeline, body, signer(body))[0] == 200
    time.sleep(1)
    assert before >= 1 and bounced(nats) == before


def test_a_wrong_signature_is_refused_and_nothing_is_published(pipeline, signer, nats):
    notification = pipeline.send()
    pipeline.status(notification, wait="sent")
    body = body_of(event(notification, "delivered", 3))
    headers = signer(body)
    before = stored(nats)
    assert post(pipeline, body + b" ", headers)[0] == 401
    assert post(pipeline, body, {**headers, "X-Twilio-Email-Event-Webhook-Timestamp": "1"})[0] == 401
    assert post(pipeline, body, {})[0] == 401
    assert post(pipeline, body, headers, tenant="unknown")[0] == 401
    assert stored(nats) == before


def test_finding_15_an_old_timestamp_and_moved_bytes_are_refused(pipeline, signer, nats):
    """One captured callback is good for ten minutes, and for one pair of timestamp and body only."""
    name = "X-Twilio-Email-Event-Webhook-Timestamp"
    body = body_of(event("ntf_none", "delivered", 15))
    before = stored(nats)
    for seconds in (-3600 * 24 * 365, -660, 660, 3600 * 24 * 365):
        assert post(pipeline, body, signer(body, at=int(time.time()) + seconds))[0] == 401, seconds
    good = signer(body)
    assert post(pipeline, good[name][-1:].encode() + body, {**good, name: good[name][:-1]})[0] == 401
    assert post(pipeline, body[1:], {**good, name: good[name] + body[:1].decode()})[0] == 401
    assert stored(nats) == before
    assert post(pipeline, body, signer(body, at=int(time.time()) - 500))[0] == 200


def test_finding_15_a_path_without_a_key_answers_as_one_with_a_wrong_key(pipeline, signer):
    """By answer and by time: an ECDSA verification costs far more than a look into a map."""
    body = body_of(event("ntf_none", "delivered", 15))
    headers = signer(body + b" ")

    def ask(tenant, vendor="sendgrid"):
        from_s = time.perf_counter()
        status, fields, text = pipeline.post(body, path=f"/v1/inbound/{tenant}/{vendor}", headers=headers, port=pipeline.webhook_port)
        spent_s = time.perf_counter() - from_s
        own = ("Date", "Stentor-Request-Id")
        return spent_s, (status, sorted((k, v) for k, v in fields.items() if k not in own), {k: v for k, v in text.items() if k != "instance"})

    wrong = ask("acme")
    assert wrong[1][0] == 401
    assert ask("unknown")[1] == wrong[1]
    for vendor in ("mailgun", "postmark", "resend", "sparkpost", "ses"):
        assert ask("acme", vendor)[1] == ask("unknown", vendor)[1] and ask("acme", vendor)[1][0] == 401, vendor
    assert ask("acme", "pigeon")[1] == ask("unknown", "pigeon")[1] and ask("acme", "pigeon")[1][0] == 404
    # Least of many, in turns: what is left is the work itself.
    spent = {"acme": [], "unknown": []}
    for _ in range(100):
        for tenant, times in spent.items():
            times.append(ask(tenant)[0])
    least = {tenant: min(times) for tenant, times in spent.items()}
    assert least["unknown"] > 0.7 * least["acme"], least


def test_a_signed_body_that_is_not_json_is_buried(pipeline, signer, nats):
    body = b"this is signed and not JSON"
    before = nats.stream_info("DEAD")["state"]["messages"]
    assert post(pipeline, body, signer(body))[0] == 200
    wait_until(lambda: nats.stream_info("DEAD")["state"]["messages"] > before, 15, "the dead letter")


def test_callbacks_are_taken_while_postgres_is_away(pipeline, signer):
    notification = pipeline.send()
    pipeline.status(notification, wait="sent")
    pipeline.postgres.stop()
    try:
        body = body_of(event(notification, "delivered", 4))
        assert post(pipeline, body, signer(body))[0] == 200
    finally:
        pipeline.postgres.start()
    assert pipeline.status(notification, wait="delivered", timeout=40)["status"] == "delivered"
