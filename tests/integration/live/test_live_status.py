# SPDX-License-Identifier: Apache-2.0
"""GET /v1/live/status: a tenant's statuses as they happen, to a client that reads events as a browser does."""
import json
import socket
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.clients.sse import EventStream

PATH = "/v1/live/status"


@pytest.fixture(scope="module")
def own():
    """A pipeline of its own: its gateway ends and comes back."""
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1,1"}, durable=True).start()
    yield running
    running.stop()


def watch(pipeline, query="", port=None, **options):
    stream = EventStream(port or pipeline.api_port, PATH + query, pipeline.key, **options)
    stream.next("open")
    return stream


def statuses(stream, notification=None):
    return [(event.json["data"]["id"], event.json["data"]["status"]) for event in stream.named("status")
            if notification in (None, event.json["data"]["id"])]


def refused(pipeline, query="", headers=None):
    status, _, answer = pipeline.post(b"", path=PATH + query, method="GET", headers=headers)
    return status, answer


def test_a_mail_is_seen_on_its_way_as_a_webhook_would_say_it(pipeline):
    stream = watch(pipeline)
    assert stream.answer.headers["Content-Type"] == "text/event-stream" and stream.answer.headers["Cache-Control"] == "no-store"
    assert stream.parser.retry_ms == 2000
    sent = pipeline.send(correlation_id="order-17")
    wait_until(lambda: (sent, "sent") in statuses(stream), 20, "the status sent")
    assert statuses(stream, sent) == [(sent, "queued"), (sent, "sent")]
    event = next(event for event in stream.named("status") if (event.json["data"]["id"], event.json["data"]["status"]) == (sent, "sent"))
    said = event.json
    assert said["type"] == "notification.sent" and said["data"]["channel"] == "email" and said["data"]["correlation_id"] == "order-17", said
    assert said["data"]["attempt"]["outcome"] == "accepted" and "alice" not in event.data and int(event.id) > 0, said
    stream.close()


def test_a_client_sees_what_it_asked_for(pipeline):
    first, second = pipeline.send(), None
    pipeline.status(first, wait="sent")
    by_status = watch(pipeline, "?status=sent,failed")
    by_channel = watch(pipeline, "?channel=sms")
    by_template = watch(pipeline, "?template=other")
    second = pipeline.send()
    by_id = watch(pipeline, f"?notification_id={first}")
    wait_until(lambda: (second, "sent") in statuses(by_status), 20, "the status sent")
    assert statuses(by_status, second) == [(second, "sent")]
    text = json.dumps([event.data for stream in (by_channel, by_template, by_id) for event in stream.named("status")])
    assert second not in text
    for stream in (by_status, by_channel, by_template, by_id):
        stream.close()


def test_bad_requests_name_the_field(pipeline):
    assert refused(pipeline, "?status=lost")[0] == 400 and refused(pipeline, "?status=lost")[1]["field"] == "status"
    assert refused(pipeline, "?channel=email,pigeon")[1]["detail"].startswith("'pigeon'")
    assert refused(pipeline, "?template=" + "x" * 300)[1]["field"] == "template"
    assert refused(pipeline, "?since=1")[1]["field"] == "since"
    status, answer = refused(pipeline, headers={"Last-Event-ID": "yesterday"})
    assert (status, answer["field"]) == (400, "Last-Event-ID")
    assert refused(pipeline, headers={"Authorization": "Bearer stn_no.no"})[0] == 401
    key = json.loads(pipeline.cli("apikey", "create", "--name", "no-reader", "--scopes", "notifications:send", "--json"))["key"]
    wait_until(lambda: refused(pipeline, headers={"Authorization": f"Bearer {key}"})[0] == 403, 20, "the key reaching gateway")
    assert "notifications:read" in refused(pipeline, headers={"Authorization": f"Bearer {key}"})[1]["detail"]


def test_another_tenant_sees_nothing(pipeline):
    pipeline.cli("tenant", "put", "rival", "--name", "Rival", "--sender", "hello@rival.test", "--sender-name", "Rival", tenant="rival")
    key = json.loads(pipeline.cli("apikey", "create", "--name", "theirs", "--json", tenant="rival"))["key"]
    headers = {"Authorization": f"Bearer {key}"}
    wait_until(lambda: pipeline.post(b"", path="/v1/tenant", method="GET", headers=headers)[0] == 200, 20, "the key reaching gateway")
    sent = pipeline.send()
    theirs = EventStream(pipeline.api_port, PATH, key)
    theirs.next("open")
    by_id = EventStream(pipeline.api_port, f"{PATH}?notification_id={sent}", key, last_id="1")  # from the log, too
    by_id.next("open")
    ours = watch(pipeline)
    second = pipeline.send()
    wait_until(lambda: (second, "sent") in statuses(ours), 20, "our own status")
    assert theirs.named("status") == [] and by_id.named("status") == []
    # A revoked key ends its stream.
    pipeline.cli("apikey", "revoke", key.split(".")[0], tenant="rival")
    assert theirs.next("end").json == {"reason": "key"}
    theirs.wait_end()
    assert not ours.ended.is_set()
    for stream in (theirs, by_id, ours):
        stream.close()


def test_a_client_that_comes_back_has_each_event_once(own):
    """Over the end of its gateway, and what happened while there was none."""
    stream = watch(own)
    ids = [own.send(f"a{i}@example.com") for i in range(20)]
    wait_until(lambda: len([s for s in statuses(stream) if s[1] == "sent"]) >= 5, 20, "some statuses")
    assert own.services["gateway"].stop() == 0
    stream.wait_end()
    ids += [own.send(f"b{i}@example.com") for i in range(20)]
    wait_until(lambda: own.history_count("status = 'sent'") >= 40, 30, "all sent")
    own.services["gateway"] = own.service("gateway").start()
    stream.reopen()
    ids += [own.send(f"c{i}@example.com") for i in range(20)]
    wait_until(lambda: len([s for s in statuses(stream) if s[1] == "sent"]) >= 60, 30, "all statuses")
    seen = statuses(stream)
    assert sorted(seen) == sorted((one, status) for one in ids for status in ("queued", "sent"))  # nothing lost, nothing twice
    order = [int(event.id) for event in stream.named("status")]
    assert order == sorted(set(order)) and stream.named("reset") == []
    # An id behind the end of the log, and one that is too far back, get a reset.
    ahead = EventStream(own.api_port, PATH, own.key, last_id=str(order[-1] + 1000))
    assert ahead.next("reset").json == {"reason": "behind"}
    sent = own.send("d@example.com")
    wait_until(lambda: (sent, "sent") in statuses(ahead), 20, "what comes after a reset")
    ahead.close()
    stream.close()


def test_too_much_to_catch_up_is_a_reset(own):
    first = watch(own)
    place = first.parser.last_id
    first.close()
    lines = [{"to": f"m{i}@example.com", "template": "welcome", "variables": {"name": "M"}} for i in range(600)]
    status, _, _ = own.post(lines)
    assert status in (200, 202, 207)
    wait_until(lambda: own.history_count("status = 'sent'") >= 600, 60, "all sent")
    back = EventStream(own.api_port, PATH, own.key, last_id=place)
    assert back.next("reset").json == {"reason": "behind"}
    assert len(back.named("status")) <= 1000
    few = EventStream(own.api_port, f"{PATH}?status=failed", own.key, last_id=place)  # of these there are few
    few.next("open")
    for stream in (back, few):
        stream.close()


def test_a_lost_connection_to_nats_loses_nothing(own):
    stream = watch(own)
    own.nats.kill()
    time.sleep(0.5)
    own.nats.start()
    wait_until(lambda: own.services["gateway"].ready(), 30, "the gateway's readiness")
    sent = own.send("after@example.com")
    wait_until(lambda: (sent, "sent") in statuses(stream), 40, "the status after the loss")
    assert statuses(stream, sent) == [(sent, "queued"), (sent, "sent")]
    stream.close()


def test_a_client_that_never_reads_is_closed_and_no_other_waits(own):
    quick = watch(own)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", own.gateway_port))
    slow.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {own.key}\r\n\r\n".encode())
    count = lambda: own.services["gateway"].metric('stentor_gateway_live_streams{stream="status"}')  # noqa: E731
    wait_until(lambda: count() == 2, 20, "both streams")
    for _ in range(3):
        own.post([{"to": f"s{i}@example.com", "template": "welcome", "variables": {"name": "S"}} for i in range(200)])
    wait_until(lambda: count() == 1 or None, 60, "the end of the one that does not read")
    sent = own.send("quick@example.com")
    wait_until(lambda: (sent, "sent") in statuses(quick), 40, "the other one's status")
    quick.close()
    slow.close()
