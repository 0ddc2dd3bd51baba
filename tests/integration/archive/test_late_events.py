# SPDX-License-Identifier: Apache-2.0
"""Events of a period that is sealed or gone: the projection goes on, and every reader finds them."""
import json

import pytest

from tests.harness.pipeline import CONSENT, Pipeline
from tests.harness.processes import wait_until

SEAL = """INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch)
          SELECT 'notifications/record/now', kind, class, starts_at, ends_at, 0 FROM archive.partitions('notifications') p,
          (VALUES ('notifications')) AS k (kind) WHERE p.class = 'R' AND p.ordinal = 0 AND now() BETWEEN starts_at AND ends_at;
          UPDATE archive.units SET state = 'sealed'"""
PARTITIONS = "SELECT leaf::regclass::text FROM archive.partitions('notifications') WHERE class = 'R' AND now() BETWEEN starts_at AND ends_at"


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline().start()
    yield running
    running.stop()


def folded(pipeline):
    wait_until(lambda: pipeline.services["archiver"].metric("stentor_archiver_lag") == 0, 30, "history being up to date")


def rows(pipeline, table, notification, column="id"):
    return pipeline.postgres.query(f"SELECT count(*) FROM archiver.{table} WHERE {column} = %s", notification)[0][0]


def test_late_events_of_a_sealed_period_are_apart_and_found(pipeline):
    pipeline.services["archiver"].stop()  # so that the mail is sent before the sealing, and folded behind it
    before = pipeline.send()
    assert before[14] == "R"
    pipeline.postgres.query(SEAL)
    pipeline.services["archiver"].start()
    shown = pipeline.status(before, wait="sent")
    assert [step["status"] for step in shown["timeline"]] == ["queued", "rendered", "sent"] and len(shown["attempts"]) == 1
    assert (rows(pipeline, "notifications", before), rows(pipeline, "late_notifications", before)) == (0, 1)
    assert (rows(pipeline, "delivery_attempts", before, "notification_id"), rows(pipeline, "late_attempts", before, "notification_id")) == (0, 1)
    marketing = pipeline.send(category="marketing", consent=CONSENT)
    pipeline.status(marketing, wait="sent")
    assert rows(pipeline, "notifications", marketing) == 1, "another class"


def test_a_rebuild_leaves_what_is_sealed_as_it_is(pipeline):
    folded(pipeline)
    assert json.loads(pipeline.cli("rebuild", "history", "--dry-run", "--json", admin=True))["differences"] == 0
    late = pipeline.postgres.query("SELECT count(*) FROM archiver.late_notifications")
    pipeline.cli("rebuild", "history", admin=True)
    assert pipeline.postgres.query("SELECT count(*) FROM archiver.late_notifications") == late


def test_a_period_that_is_gone_stops_nothing_and_does_not_come_back(pipeline):
    gone = pipeline.send()
    pipeline.status(gone, wait="sent")
    pipeline.postgres.query("DELETE FROM archiver.late_notifications WHERE id = %s RETURNING 1", gone)
    for leaf, in pipeline.postgres.query(PARTITIONS):
        pipeline.postgres.query(f"DROP TABLE {leaf}")
    pipeline.postgres.query("UPDATE archive.units SET state = 'counted'; UPDATE archive.units SET state = 'written';"
                            "UPDATE archive.units SET state = 'verified'; UPDATE archive.units SET state = 'committed';"
                            "SET ROLE stentor_owner; UPDATE archive.units SET state = 'removing'")
    pipeline.services["archiver"].stop()
    pipeline.services["archiver"].start()  # it makes partitions ahead
    after = pipeline.send()
    pipeline.status(after, wait="sent")
    folded(pipeline)
    assert pipeline.postgres.query(PARTITIONS) == [] and rows(pipeline, "late_notifications", after) == 1
    assert "stentor archive show notifications/record/now" in pipeline.run_cli("status", after).stderr
    missing = pipeline.run_cli("status", gone)
    assert missing.returncode == 3 and "archived in unit 'notifications/record/now' (it is in its grace" in missing.stderr
    assert "archive restore" not in missing.stderr, "a hint at a command that is refused"
