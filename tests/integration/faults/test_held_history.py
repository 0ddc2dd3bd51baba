# SPDX-License-Identifier: Apache-2.0
"""The archiver holds a request in memory until its mail is sent: meanwhile it is answered from the accept log, and a process that is killed then,
or stopped, leaves history as if it had held nothing. The window: rows are held, and other rows of later requests are written already."""
import base64
import http.client
import json
import os
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

HELD_MS = "20000"  # a comparison with the log takes some seconds on a busy machine


@pytest.fixture(name="pipeline")
def _pipeline(request):
    running = Pipeline({"STENTOR_HISTORY_HOLD_MS": getattr(request, "param", HELD_MS)}).start()
    yield running
    running.services["renderer"].pause(False)
    running.stop()


def hold(pipeline, count):
    """Requests whose end does not come: no renderer works."""
    pipeline.services["renderer"].pause()
    ids = [pipeline.send(to=f"held{i}@example.com", correlation_id=f"c-{i}") for i in range(count)]
    wait_until(lambda: pipeline.services["archiver"].metric("stentor_archiver_held_rows") == count, 10, "all of them held")
    return ids


def rows(pipeline):
    return pipeline.postgres.query(
        "SELECT id, status, correlation_id, locale, gate_trace, queued_at IS NOT NULL, sent_at IS NOT NULL, address IS NOT NULL"
        " FROM archiver.notifications ORDER BY id")


def rebuild_equals(pipeline):
    return json.loads(pipeline.cli("rebuild", "history", "--dry-run", "--json", admin=True))["differences"] == 0


def read(pipeline, notification, what=""):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    connection.request("GET", f"/v1/notifications/{notification}{what}", headers={"Authorization": f"Bearer {pipeline.key}"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_what_is_held_is_answered_from_the_accept_log(pipeline):
    first, _ = hold(pipeline, 2)
    status, shown = read(pipeline, first)
    assert (status, shown["id"], shown["status"], shown["template"]) == (200, first, "queued", "welcome")
    status, why = read(pipeline, first, "/why")
    assert status == 200 and why["status"] == "queued"
    assert [step["outcome"] for step in why["why"] if step["question"] == "May the tenant send?"] == ["ok"]
    said = json.loads(pipeline.cli("status", first, "--json"))
    assert (said["id"], said["status"], said["correlation_id"], said["attempts"]) == (first, "queued", "c-0", [])
    assert [step["status"] for step in said["timeline"]] == ["queued"]
    assert pipeline.cli("status", first).startswith(f"{first}  queued\n")
    assert pipeline.history_count() == 0 and pipeline.services["archiver"].metric("stentor_archiver_held_rows") == 2, "all of this while they were held"
    wait_until(lambda: pipeline.history_count("status = 'queued'") == 2, 40, "both of them ripe")
    assert pipeline.services["archiver"].metric("stentor_archiver_held_rows") == 0
    from_history = json.loads(pipeline.cli("status", first, "--json"))
    assert {name: from_history[name] for name in said} == said, "the accept log says what history says"


def put_trigger(pipeline, event_type):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    body = {"event_type": event_type, "template": "welcome", "resolver": "address:guest.email"}
    connection.request("PUT", f"/v1/triggers/{event_type.replace('.', '-')}", json.dumps(body), {"Authorization": f"Bearer {pipeline.key}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    pipeline.wait_config(int(answer.headers["ETag"].strip('"')), "ingest", "gateway")


def test_an_id_that_the_accept_log_is_not_asked_for_is_not_held(pipeline):
    """The id of an event's notification is derived from the event: its row of the accept log is not found by it."""
    put_trigger(pipeline, "stay.confirmed")
    pipeline.services["renderer"].pause()
    client = NatsClient(pipeline.nats.port)
    client.publish("evt.acme.stay.confirmed", json.dumps({"guest": {"email": "derived@example.com"}, "name": "D"}).encode(), event_id="stay-1",
                   headers={"ce-specversion": "1.0", "ce-id": "stay-1", "ce-type": "stay.confirmed",
                            "ce-time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))})
    client.close()
    wait_until(lambda: pipeline.history_count("status = 'queued'") == 1, 10, "its row, long before it would be ripe")
    assert pipeline.services["archiver"].metric("stentor_archiver_held_rows") == 0
    notification = rows(pipeline)[0][0]
    assert pipeline.postgres.query("SELECT count(*) FROM ingest.accepted_events('acme', %s::timestamptz, %s)",
                                   pipeline.postgres.query("SELECT created_at FROM archiver.notifications")[0][0], notification) == [(0,)]
    assert read(pipeline, notification)[1]["status"] == "queued"
    assert json.loads(pipeline.cli("status", notification, "--json"))["status"] == "queued"


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_process_that_ends_while_rows_are_held_loses_none(pipeline, how):
    held = hold(pipeline, 20)
    archiver = pipeline.services["archiver"]
    if how == "killed":
        archiver.kill()
        assert pipeline.history_count() == 0
        assert pipeline.postgres.query("SELECT count(*) FROM archiver.positions WHERE stream LIKE 'REQUEST%' AND sequence > 0") == [(0,)]
    else:
        assert archiver.stop() == 0
        assert pipeline.history_count("status = 'queued'") == 20
    archiver.start()
    pipeline.services["renderer"].pause(False)
    wait_until(lambda: pipeline.history_count("status = 'sent'") == 20, 60, "all of them sent")
    assert [row[0] for row in rows(pipeline)] == sorted(held)
    assert {row[1:2] + row[4:] for row in rows(pipeline)} == {("sent", "T+S+A+", True, True, True)}
    assert {row[2] for row in rows(pipeline)} == {f"c-{i}" for i in range(20)}
    assert rebuild_equals(pipeline)


def say_sent(pipeline, notification):
    proto = messages(pipeline)
    client = NatsClient(pipeline.nats.port)
    event_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    event = proto.NotificationStatus(
        meta=proto.Meta(event_id=event_id, tenant="acme", notification_id=notification, occurred_at_us=int(time.time() * 1e6)),
        channel=proto.CHANNEL_EMAIL, status=proto.STATUS_SENT)
    client.publish("ntf.status.acme.email.sent", event.SerializeToString(), event_id=event_id)
    client.close()


@pytest.mark.parametrize("pipeline", ["30000"], indirect=True)
def test_requests_behind_a_held_one_are_written_and_read_again_after_a_kill(pipeline):
    """The position stays before the one that is held. So a comparison with the log passes over those that are written behind it."""
    first, second, third = hold(pipeline, 3)
    say_sent(pipeline, second)
    say_sent(pipeline, third)
    wait_until(lambda: pipeline.history_count("status = 'sent'") == 2, 10, "both of them written")
    before = rows(pipeline)
    assert [row[2] for row in before] == ["c-1", "c-2"]
    position = "SELECT sequence FROM archiver.positions WHERE stream = 'REQUEST_NORMAL' AND sequence > 0"
    assert pipeline.postgres.query(position) == []
    assert rebuild_equals(pipeline)
    assert pipeline.services["archiver"].metric("stentor_archiver_held_rows") == 1, "all of this while it was held"
    pipeline.services["archiver"].kill()
    assert rows(pipeline) == before
    pipeline.services["archiver"].start()
    wait_until(lambda: pipeline.services["archiver"].metric("stentor_archiver_held_rows") == 3, 10, "the three requests read again")
    assert pipeline.services["archiver"].stop() == 0
    assert rows(pipeline)[1:] == before and rows(pipeline)[0][:3] == (first, "queued", "c-0")
    assert pipeline.postgres.query(position) == [(3,)]
    assert rebuild_equals(pipeline)
