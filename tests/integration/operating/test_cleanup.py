# SPDX-License-Identifier: Apache-2.0
"""What is past its retention is dropped: at once when CleanUpSentEmail says so, and every day without a word."""
import json
import time
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

OTHER = "globex"
OWNERS = ["ingest", "dispatcher", "archiver"]
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DAY_S = 86400


@pytest.fixture(scope="module")
def kept():
    running = Pipeline(durable=True).start()
    yield running
    running.stop()


@pytest.fixture
def bus(kept):
    client = NatsClient(kept.nats.port)
    yield client
    client.close()


def aged(days, retention="R"):
    """The id of a notification of so many days ago."""
    ms = int((time.time() - days * DAY_S) * 1000)
    stamp = "".join(ALPHABET[ms >> 5 * (9 - i) & 31] for i in range(10))
    return f"ntf_{stamp}{retention}{''.join(ALPHABET[b & 31] for b in uuid.uuid4().bytes[:15])}"


def plant(pipeline, tenant=TENANT, days=900, category="marketing", status="sent"):
    """A notification as the pipeline would have left it so many days ago, everywhere."""
    retention = "S" if category == "marketing" else "R"
    notification = aged(days, retention)
    query = pipeline.postgres.query
    for table in ("archiver.notifications", "archiver.delivery_attempts", "dispatcher.ledger"):  # by themselves: the archiver locks two at a time
        query("SELECT stentor.ensure_partitions(%s::regclass, ingest.id_time(%s), ingest.id_time(%s))", table, notification, notification)
    query("INSERT INTO archiver.notifications (created_at, retention_class, id, tenant_id, channel, category, status, status_rank, updated_at)"
          " VALUES (ingest.id_time(%s), %s, %s, %s, 'email', %s, %s, 5, now() - interval '40 days')",
          notification, retention, notification, tenant, category, status)
    query("INSERT INTO archiver.delivery_attempts (created_at, retention_class, notification_id, attempt_number, id, tenant_id, channel, vendor,"
          " outcome) VALUES (ingest.id_time(%s), %s, %s, 1, 'dat_1', %s, 'email', 'smtp', 'accepted')", notification, retention, notification, tenant)
    query("INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner, lease_until, claimed_at, finished_at)"
          " SELECT t, %s, 1, %s, 'sent', 'p', t, t, t FROM ingest.id_time(%s) t", notification, tenant, notification)
    # Before those of today, as it would stand.
    query("INSERT INTO ingest.accept_log (accept_id, tenant_id, accepted_at, notification_ids, events, published_at) OVERRIDING SYSTEM VALUE"
          " SELECT (SELECT least(0, min(accept_id)) - 1 FROM ingest.accept_log), %s, t, ARRAY[%s], '', t FROM ingest.id_time(%s) t",
          tenant, notification, notification)
    return notification


def places(pipeline, notification):
    tables = {"history": ("archiver.notifications", "id = %s"), "attempts": ("archiver.delivery_attempts", "notification_id = %s"),
              "ledger": ("dispatcher.ledger", "notification_id = %s"), "accept_log": ("ingest.accept_log", "%s = ANY (notification_ids)")}
    return {name for name, (table, where) in tables.items() if pipeline.postgres.query(f"SELECT 1 FROM {table} WHERE {where}", notification)}


EVERYWHERE = {"history", "attempts", "ledger", "accept_log"}


def gone(pipeline, *ids):
    wait_until(lambda: all(places(pipeline, one) == set() for one in ids), 60, "everything being dropped")


def ask(bus, tenant=TENANT, body=b'{"requested_by": "ops"}', headers=None):
    bus.publish(f"evt.{tenant}.CleanUpSentEmail", body, f"clean-{uuid.uuid4().hex[:12]}", headers=headers)


def passes(pipeline, service):
    """The lines of its ended clean-ups."""
    log = pipeline.services[service].log.read_text()
    return [line for line in map(json.loads, filter(lambda text: '"cleaned up"' in text, log.splitlines()))]


def test_an_event_has_its_tenants_old_rows_dropped_at_once(kept, bus):
    old, others, young = plant(kept), plant(kept, OTHER), kept.send()
    waiting = kept.send(scheduled_for=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + DAY_S)))
    kept.status(young, wait="sent")
    assert places(kept, old) == places(kept, others) == EVERYWHERE
    event = messages(kept).CleanUpSentEmail(requested_by="ops@acme.test")
    ask(bus, body=event.SerializeToString(), headers={"Content-Type": "application/protobuf"})
    gone(kept, old)
    for service in OWNERS:
        line = wait_until(lambda: passes(kept, service), 10, "the pass's line")[-1]
        assert line["tenant"] == TENANT and line["requested_by"] == "ops@acme.test" and " 1" in line["dropped"]
    assert places(kept, others) == EVERYWHERE, "another tenant's"
    assert places(kept, young) == EVERYWHERE and places(kept, waiting) == {"history", "accept_log"}

    ask(bus, "platform")
    gone(kept, others)
    for service in OWNERS:  # no pass is under way when the next test plants its rows
        wait_until(lambda: passes(kept, service)[-1]["tenant"] == "*", 10, "the pass's line, which comes behind its last row")
    assert places(kept, young) == EVERYWHERE and places(kept, waiting) == {"history", "accept_log"}


def test_what_has_no_end_or_time_yet_is_never_dropped(kept, bus):
    waits = plant(kept, days=900, status="scheduled")
    lasting = plant(kept, days=900, category="transactional")
    kept.postgres.query("UPDATE dispatcher.ledger SET state = 'parked' WHERE notification_id = %s", waits)
    marker = plant(kept)
    ask(bus)
    gone(kept, marker)
    assert places(kept, waits) == EVERYWHERE
    assert places(kept, lasting) == {"history", "attempts"}, "7 years"
    for table in ("archiver.notifications WHERE id", "archiver.delivery_attempts WHERE notification_id", "dispatcher.ledger WHERE notification_id"):
        kept.postgres.query(f"DELETE FROM {table} = ANY (%s)", [waits, lasting])
    kept.postgres.query("DELETE FROM ingest.accept_log WHERE accept_id < 0")


def forget(pipeline, notification, *names):
    tables = {"history": "archiver.notifications WHERE id", "attempts": "archiver.delivery_attempts WHERE notification_id",
              "ledger": "dispatcher.ledger WHERE notification_id"}
    for name in names or tables:
        pipeline.postgres.query(f"DELETE FROM {tables[name]} = %s", notification)


def test_an_audit_sees_of_old_ones_what_has_not_ended(kept, bus):
    """Retention keeps their accept rows for it: they are not out of its sight because others are dropped."""
    waits, lost = plant(kept, days=900, status="scheduled"), plant(kept, days=300, status="scheduled")
    forget(kept, waits, "attempts", "ledger")
    forget(kept, lost)
    marker = plant(kept)
    ask(bus)
    gone(kept, marker)
    try:
        done = kept.run_cli("audit", "--since", "2000d", "--until", "100d", "--json")
        report = json.loads(done.stdout)
        assert done.returncode == 1 and "are audited only where the accept log still holds them" in done.stderr, done
        assert (report["accepted"], report["in_flight"], report["lost"], report["doubled"]) == (2, 1, 1, 0)
        assert [(one["id"], one["source"]) for one in report["findings"]] == [(lost, "history")]
        assert report["oldest_in_flight_s"] > 899 * DAY_S and report["since"] < time.strftime("%Y-%m-%d", time.gmtime(time.time() - 1999 * DAY_S))
        assert kept.run_cli("audit", "--since", "2000d", "--until", "1000d").returncode == 0, "nothing is left of then"
    finally:
        forget(kept, waits)
        kept.postgres.query("DELETE FROM ingest.accept_log WHERE accept_id < 0")


def test_rows_dropped_without_a_known_end_are_logged(kept, bus):
    unknown, young = plant(kept, days=430, status="scheduled"), plant(kept, days=410, status="scheduled")
    forget(kept, unknown)
    forget(kept, young)
    ask(bus)
    gone(kept, unknown)
    assert places(kept, young) == {"accept_log"}
    ingest = kept.services["ingest"]
    assert ingest.metric("stentor_cleanup_unknown_total") == 1
    assert any("without a known outcome" in line and '"notifications":1' in line for line in ingest.log.read_text().splitlines())
    kept.postgres.query("DELETE FROM ingest.accept_log WHERE accept_id < 0")


def test_a_rebuild_agrees(kept, bus):
    wait_until(lambda: kept.services["archiver"].metric("stentor_archiver_lag") == 0, 20, "history being up to date")
    marker = plant(kept)
    ask(bus)
    gone(kept, marker)
    done = json.loads(kept.cli("rebuild", "history", "--dry-run", "--json", admin=True))
    assert done["differences"] == 0, done


def test_an_event_that_does_not_fit_is_a_dead_letter(kept, bus):
    ask(bus, body=b'{"requested_by": 7}')

    def reason():
        letters = [json.loads(line) for line in kept.cli("dlq", "list", "--stage", "ingest", "--json").splitlines()]
        return letters and letters[0]["reason"]
    assert "field 'requested_by'" in wait_until(reason, 20, "the dead letter")


def test_a_pass_goes_on_when_postgres_is_back(kept, bus):
    many = [plant(kept, days=800) for _ in range(20)]
    kept.postgres.kill()
    ask(bus)
    time.sleep(1)
    kept.postgres.start()
    gone(kept, *many)


def test_it_is_done_every_day_without_an_event(kept):
    """A day of a second here, and two replicas, which never do it both at once."""
    replicas = []
    old = [plant(kept, tenant, days) for tenant in (TENANT, OTHER) for days in (800, 900, 1000)]  # first: no pass may meet half of one
    try:
        for service in OWNERS:
            kept.services[service].options["STENTOR_CLEANUP_EVERY_S"] = "1"
            kept.services[service].stop()
            kept.services[service].start()
        replicas = [kept.service("archiver", "-2").start()]
        gone(kept, *old)
        first = kept.services["archiver"].metric("stentor_cleanup_passes_total")
        wait_until(lambda: kept.services["archiver"].metric("stentor_cleanup_passes_total") >= first + 2, 20, "the next ones")
        wait_until(lambda: kept.services["archiver"].metric("stentor_cleanup_age_seconds") < 3, 20, "the age")
        dropped = sum(one.metric("stentor_cleanup_dropped_total") for one in [kept.services["archiver"], *replicas])
        assert dropped >= len(old)
    finally:
        for replica in replicas:
            assert replica.stop() == 0
        for service in OWNERS:
            del kept.services[service].options["STENTOR_CLEANUP_EVERY_S"]


def test_with_object_storage_the_event_rolls_the_archive(kept, bus, tmp_path):
    """And nothing is removed for its age by this replica."""
    tmp_path.chmod(0o777)
    kept.services["archiver"].stop()
    replica = kept.service("archiver", "-rolls", STENTOR_STORAGE_URL=f"file://{tmp_path}").start()
    try:
        old = plant(kept)
        ask(bus)
        requests = "SELECT 1 FROM archive.requests WHERE kind = 'run' AND argument = '{}' AND requested_by = 'stentor_archiver'"
        wait_until(lambda: kept.postgres.query(requests), 20, "the run being requested")
        wait_until(lambda: any('"archive 0"' in line for line in replica.log.read_text().splitlines() if "cleaned up" in line), 20, "the pass's end")
        assert places(kept, old) >= {"history", "attempts"}
    finally:
        assert replica.stop() == 0
        kept.services["archiver"].start()
    ask(bus)
    gone(kept, old)


def test_a_wrong_retention_is_refused_at_start(kept):
    archiver = kept.service("archiver", "-wrong", STENTOR_RETENTION_SPANS="standard=6m")
    archiver.start(wait=False)
    assert archiver.exit_status(20) == 2
    assert "STENTOR_RETENTION_SPANS: 'standard=6m': expected hot, warm and kept" in archiver.tail()
