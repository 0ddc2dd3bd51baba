# SPDX-License-Identifier: Apache-2.0
"""The archiver with its child process: what the log has is folded, archived on request, and an event that comes later is kept apart."""
import datetime
import json
import time

import pytest

from tests.harness.history_log import publish_log, ulid
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

AT = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=62)
UNIT = f"notifications/record/{AT:%Y-%m}"


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline()
    spool = pipeline.folder / "spool"
    spool.mkdir()
    pipeline.extra = {"STENTOR_STORAGE_URL": f"file://{pipeline.folder}/objects", "STENTOR_ARCHIVE_SPOOL_DIR": spool,
                      "STENTOR_SEGMENT_SPOOL_DIR": spool, "STENTOR_SEGMENT_S": "1"}
    pipeline.start(["ingest", "archiver"])
    yield pipeline
    pipeline.stop()


def state(pipeline):
    return pipeline.postgres.query("SELECT state FROM archive.units WHERE id = %s", UNIT)


def children(pipeline):
    return pipeline.postgres.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stentor-archive'")[0][0]


def publish_delivered(pipeline, notification):
    proto = messages(pipeline)
    event = proto.NotificationStatus(channel=proto.CHANNEL_EMAIL, status=proto.STATUS_DELIVERED)
    event.meta.tenant, event.meta.notification_id, event.meta.event_id = "acme", notification, "late000000000000000000"
    event.meta.occurred_at_us = int(time.time() * 1e6)
    client = NatsClient(pipeline.nats.port)
    payload = event.SerializeToString()
    client.socket.sendall(f"PUB ntf.status.acme.email.delivered {len(payload)}\r\n".encode() + payload + b"\r\n")
    client.close()


def test_a_month_is_archived_and_a_later_event_is_kept_apart(pipeline):
    publish_log(pipeline, 50, at_us=int(AT.timestamp() * 1e6))
    wait_until(lambda: pipeline.history_count("status = 'sent'") == 50, 30, "folded")
    notification = pipeline.postgres.query("SELECT id FROM archiver.notifications ORDER BY id LIMIT 1")[0][0]
    wait_until(lambda: pipeline.postgres.query("SELECT folded_at > now() - interval '1 minute' FROM archive.installation") == [(True,)], 30, "noted")
    assert "steps" in pipeline.cli("archive", "run", UNIT, "--older-than", "0")
    assert state(pipeline) == [("removing",)]  # the grace
    assert pipeline.history_count("true") == 0

    publish_delivered(pipeline, notification)
    late = "SELECT id, status FROM archiver.late_notifications"
    wait_until(lambda: pipeline.postgres.query(late) == [(notification, "delivered")], 20, "the late event")
    assert pipeline.history_count("true") == 0 and pipeline.services["archiver"].metric("stentor_archiver_lag") == 0
    wait_until(lambda: pipeline.services["archiver"].metric('stentor_archiver_units{state="removing"}') == 1, 20, "the metric")
    assert pipeline.services["archiver"].metric("stentor_archiver_standing_still") == 0


def test_a_restore_is_in_the_audit_log(pipeline):
    pipeline.postgres.query("UPDATE archive.units SET removed_at = now() - interval '8 days' WHERE id = %s", UNIT)
    pipeline.cli("archive", "run", UNIT)
    assert state(pipeline) == [("removed",)]
    assert "is in Postgres until" in pipeline.cli("archive", "restore", UNIT)
    assert pipeline.history_count("true") == 50

    def entries():
        listed = pipeline.cli("audit-log", "list", "--kind", "restore", "--json")
        return [json.loads(line) for line in listed.splitlines()] if not listed.startswith("[") else json.loads(listed)
    wait_until(lambda: entries(), 20, "the entry")
    (entry,) = entries()
    assert (entry["tenant"], entry["action"], entry["actor"], entry["target"]) == ("acme", "unit.restored", "stentor_cli", UNIT)
    assert pipeline.cli("audit-log", "verify")


def test_after_quiet_weeks_the_refusal_itself_is_the_news_that_ends_it(pipeline):
    """The entry in AUDIT is stored as a segment, and so the newest stored message is of now."""
    query, archiver = pipeline.postgres.query, pipeline.services["archiver"]
    wait_until(lambda: query("SELECT sequence > 0 FROM archive.log_positions WHERE stream = 'AUDIT'") == [(True,)], 20, "the restore's entry stored")
    query("UPDATE archive.log_positions SET stored_at = now() - interval '20 days'")

    def ask(kind):
        request = query("SELECT archive.request(%s, '{}')", kind)[0][0]
        outcome = "SELECT state, message FROM archive.requests WHERE id = %s"
        wait_until(lambda: query(outcome, request)[0][0] in ("done", "failed"), 20, "the request's end")
        return query(outcome, request)[0]
    query("UPDATE archive.restores SET until = now()")
    assert ask("expire")[0] == "done"  # the end of the restore takes nothing away
    assert state(pipeline) == [("removed",)]
    status, message = ask("delete-orphans")
    assert status == "failed" and "nothing is deleted while clocks disagree" in message
    assert "the newest stored message is of" in pipeline.run_cli("archive", "list", merged=True).stdout
    wait_until(lambda: archiver.metric("stentor_archiver_clocks_disagree") == 1, 20, "the metric")
    wait_until(lambda: query("SELECT max(stored_at) > now() - interval '1 minute' FROM archive.log_positions") == [(True,)], 20, "the entry stored")

    def entries():
        listed = pipeline.cli("audit-log", "list", "--tenant", "platform", "--kind", "expiry", "--json")
        return [json.loads(line) for line in listed.splitlines()] if not listed.startswith("[") else json.loads(listed)
    (entry,) = wait_until(entries, 20, "the entry in the log")
    assert (entry["action"], entry["target"]) == ("expiry.refused", "archive") and "clocks disagree" in entry["ground"]
    assert ask("delete-orphans")[0] == "done"
    wait_until(lambda: archiver.metric("stentor_archiver_clocks_disagree") == 0, 20, "the metric")


def test_the_child_dies_with_the_service_and_is_started_again_when_it_dies(pipeline):
    service = pipeline.services["archiver"]
    wait_until(lambda: children(pipeline) == 1, 20, "the child")
    child = pipeline.postgres.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'stentor-archive'")[0][0]
    pipeline.postgres.query("SELECT pg_terminate_backend(%s)", child)  # it ends without its connection
    wait_until(lambda: pipeline.postgres.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'stentor-archive'")
               not in ([], [(child,)]), 30, "another child")
    service.kill()
    wait_until(lambda: children(pipeline) == 0, 20, "the child gone with the service")
    service.start()
    wait_until(lambda: children(pipeline) == 1, 20, "the child")


def test_the_service_stops_also_while_no_child_runs(pipeline):
    """A child that ended is started again after a second at the soonest."""
    service = pipeline.services["archiver"]
    ended = '"the archiving process ended; it is started again"'
    before = service.log.read_text().count(ended)
    pipeline.postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stentor-archive'")
    wait_until(lambda: service.log.read_text().count(ended) > before, 20, "the child's end")
    assert service.stop() == 0
    service.start()
    wait_until(lambda: children(pipeline) == 1, 20, "the child")


def test_a_mail_on_the_way_when_its_month_is_sealed_ends_as_any_other(pipeline):
    """Scheduled beyond its class's hot span, say. The month does not wait for it: what comes of it later is late, and readers merge the two."""
    query, at = pipeline.postgres.query, AT - datetime.timedelta(days=62)
    unit, notification = f"notifications/record/{at:%Y-%m}", "ntf_" + ulid(4711, int(at.timestamp() * 1000))
    query("SELECT stentor.ensure_partitions(t::regclass, %s, %s) FROM unnest(ARRAY['archiver.notifications', 'archiver.delivery_attempts']) t", at, at)
    query("INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, template, status, status_rank, queued_at, scheduled_at, scheduled_for)"
          " VALUES (%s, %s, 'acme', 'email', 'welcome', 'scheduled', 2, %s, %s, now() + interval '1 minute')",
          datetime.datetime.fromtimestamp(int(at.timestamp() * 1000) / 1000, datetime.timezone.utc), notification, at, at)
    pipeline.cli("archive", "run", unit, "--older-than", "0")
    query("UPDATE archive.units SET removed_at = now() - interval '8 days' WHERE id = %s", unit)
    pipeline.cli("archive", "run", unit)
    assert query("SELECT state FROM archive.units WHERE id = %s", unit) == [("removed",)]

    missing = pipeline.run_cli("status", notification)
    assert missing.returncode == 3 and f"stentor archive restore {unit}" in missing.stderr
    publish_delivered(pipeline, notification)
    wait_until(lambda: query("SELECT status FROM archiver.late_notifications WHERE id = %s", notification) == [("delivered",)], 20, "the late event")
    alone = pipeline.run_cli("status", notification, "--json")
    assert alone.returncode == 0 and json.loads(alone.stdout)["status"] == "delivered"
    assert f"stentor archive restore {unit}" in alone.stderr  # the rest is there

    pipeline.cli("archive", "restore", unit)
    whole = json.loads(pipeline.run_cli("status", notification, "--json").stdout)
    assert (whole["status"], whole["template"]) == ("delivered", "welcome")
    assert [step["status"] for step in whole["timeline"]] == ["queued", "scheduled", "delivered"]
    assert query("SELECT status FROM archiver.notifications WHERE id = %s", notification) == [("scheduled",)]  # as it was counted
