# SPDX-License-Identifier: Apache-2.0
"""`stentor rebuild history` beside a running archiver, fail-over of the archiver, and a log that lost its tail."""
import http.client
import json
import shutil
import subprocess
import threading
import time

import pytest

from tests.harness.history_log import publish_log
from tests.harness.length import amount
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, HOME, wait_until

FAST = {"STENTOR_RETRY_LADDER": "1,1,1", "STENTOR_INGEST_SWEEP_AGE_MS": "2000", "STENTOR_TENANT_SHARE": "0"}
ROWS = """SELECT 'n ' || (to_jsonb(n) - 'updated_at')::text FROM {0}.notifications n
          UNION ALL SELECT 'a ' || to_jsonb(a)::text FROM {0}.delivery_attempts a"""


class Load(threading.Thread):
    """About `rate` notifications a second until stop(), fewer while a busy machine has 2,000 of them on the way.

    self.ids are those that have their 202. What got a 5xx, or no answer, is repeated with its key, as the documents ask of a client."""

    def __init__(self, pipeline, rate=amount(100, 500)):
        super().__init__(daemon=True)
        self.pipeline, self.rate = pipeline, rate
        self.ids = []
        self.ending = threading.Event()

    def run(self):
        chunk = self.rate // 20
        due = time.monotonic()
        while not self.ending.is_set():
            bodies = [{"to": f"user{len(self.ids) + i}@example.com", "template": "welcome", "variables": {"name": "U"}} for i in range(chunk)]
            self.ids += self.post(bodies, f"load-{len(self.ids)}")
            due += 0.05
            while len(self.ids) % 1000 < chunk and len(self.ids) - self.pipeline.history_count("status = 'sent'") > 2000 and not self.ending.is_set():
                time.sleep(0.1)
                due = time.monotonic()
            time.sleep(max(0, due - time.monotonic()))

    def post(self, bodies, key):
        end = time.monotonic() + 60
        while True:
            try:
                status, _, answer = self.pipeline.post(bodies, headers={"Idempotency-Key": key})
            except (OSError, http.client.HTTPException):
                status, answer = 0, None
            if status == 202:
                return [item["id"] for item in answer["notifications"]]
            assert (status == 0 or status >= 500) and time.monotonic() < end, (status, answer)
            time.sleep(0.1)

    def stop(self):
        self.ending.set()
        self.join()
        return self.ids


def wait_sent(pipeline, ids, seconds=60):
    """Every one of them, and nothing else but what earlier tests sent, is in history and sent."""
    expected = pipeline.earlier | set(ids)
    wait_until(lambda: pipeline.history_count("status = 'sent'") >= len(expected), seconds, f"{len(expected)} sent")
    assert ids_of(pipeline) == expected


def ids_of(pipeline):
    return {row[0] for row in pipeline.postgres.query("SELECT id FROM archiver.notifications")}


def wait_folded(pipeline, count):
    """So many of publish_log, each with its request: that may be held a little longer when its status was read first."""
    wait_until(lambda: pipeline.history_count("status = 'sent' AND queued_at IS NOT NULL") == count, 60, "the live projection")


def rows(pipeline, schema="archiver"):
    return sorted(row[0] for row in pipeline.postgres.query(ROWS.format(schema)))


def rebuild(pipeline, *words):
    done = pipeline.run_cli("rebuild", "history", "--json", *words, admin=True)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def start_rebuild(pipeline, *words):
    """One that runs on by itself."""
    environment = {"PATH": "/usr/bin:/bin", "STENTOR_HOME": str(HOME), "STENTOR_NATS_URL": pipeline.nats.url,
                   "STENTOR_NATS_USER": "stentor-admin", "STENTOR_NATS_PASSWORD": "pw", "STENTOR_DATABASE_URL": pipeline.postgres.url("stentor_owner")}
    return subprocess.Popen([BIN / "stentor", "rebuild", "history", "--json", *words], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def waits_for_a_lock(pipeline):
    return pipeline.postgres.query("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN"
                                   " (SELECT pid FROM pg_stat_activity WHERE application_name = 'stentor-rebuild')")[0][0]


def schemas(pipeline):
    return {row[0] for row in pipeline.postgres.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'archiver%%'")}


@pytest.fixture
def own():
    """A pipeline that the test may break."""
    running = Pipeline(FAST, ack_wait_ms=3000).start()
    running.earlier = set()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def common():
    running = Pipeline(FAST, ack_wait_ms=3000).start()
    yield running
    running.stop()


@pytest.fixture
def shared(common):
    """A pipeline whose history is as its log says; a test leaves it so."""
    common.earlier = ids_of(common)
    return common


# ---- rebuild ------------------------------------------------------------------------------------------------------------


def test_a_rebuild_under_load_equals_the_live_projection_and_the_archiver_goes_on(own):
    load = Load(own)
    load.start()
    some = amount(500, 2000)
    wait_until(lambda: len(load.ids) >= some, 60, "some load")
    compared = rebuild(own, "--dry-run")
    assert (compared["differences"], compared["shown"], compared["swapped"]) == (0, [], False)
    assert compared["events"] > some and compared["unreadable"] == 0
    assert schemas(own) == {"archiver"}
    for _ in range(amount(1, 3)):
        swapped = rebuild(own)
        assert swapped["swapped"] and swapped["events_per_s"] > 0
        print(f"{swapped['events']} events in {swapped['seconds']:.1f} s, {len(load.ids)} accepted")
        time.sleep(0.5)
    ids = load.stop()
    wait_sent(own, ids)
    after = rows(own)
    assert rebuild(own, "--dry-run")["differences"] == 0
    rebuild(own, "--keep-old")
    assert rows(own, "archiver_old") == after == rows(own)
    (tried,), = own.postgres.query("SELECT count(*) FROM dispatcher.ledger")  # more than the ids when the mail server was slow to answer
    assert len([row for row in after if row.startswith("a ")]) == tried >= len(ids), "each attempt of the ledger, once"
    # What the services see: their rights came along, and their statements go on.
    assert own.status(ids[0])["status"] == "sent"
    more = own.send()
    assert own.status(more, wait="sent")["status"] == "sent"
    archiver = own.services["archiver"]
    assert archiver.get("/readyz")[0] == 200 and archiver.metric("stentor_archiver_events_total") > 0
    assert schemas(own) == {"archiver", "archiver_old"}
    rebuild(own)
    assert schemas(own) == {"archiver"}


def test_a_dry_run_names_the_rows_that_differ(shared):
    ids = [shared.send(to=f"d{i}@example.com") for i in range(5)]
    for notification in ids:
        shared.status(notification, wait="sent")
    shared.postgres.query("UPDATE archiver.notifications SET template = 'forged' WHERE id = %s", ids[0])
    shared.postgres.query("DELETE FROM archiver.notifications WHERE id = %s", ids[1])
    shared.postgres.query("UPDATE archiver.delivery_attempts SET reply = 'forged' WHERE notification_id = %s", ids[2])
    shared.postgres.query("INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, status_rank)"
                       " VALUES (now(), 'ntf_unknown', 'acme', 'email', 'sent', 5)")
    done = shared.run_cli("rebuild", "history", "--dry-run", "--json", admin=True)
    assert done.returncode == 1
    reported = json.loads(done.stdout)
    assert reported["differences"] == 4
    assert set(reported["shown"]) == {
        f"notifications {ids[0]} {TENANT}: differs", f"notifications {ids[1]} {TENANT}: only in the log",
        f"delivery_attempts {ids[2]} 1 {TENANT}: differs", f"notifications ntf_unknown {TENANT}: only in the live table"}
    rebuild(shared)
    assert rebuild(shared, "--dry-run")["differences"] == 0
    assert shared.status(ids[1])["status"] == "sent"


def test_two_rebuilds_at_once_do_not_meet(shared):
    ids = [shared.send(to=f"t{i}@example.com") for i in range(20)]
    wait_sent(shared, ids)
    shared.postgres.query("SELECT 1")
    import psycopg2
    holder = psycopg2.connect(shared.postgres.url())
    try:
        with holder.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended('stentor.rebuild.history', 0))")
        done = shared.run_cli("rebuild", "history", admin=True)
        assert done.returncode == 1 and "another rebuild of history is running" in done.stderr
    finally:
        holder.close()
    running = [start_rebuild(shared) for _ in range(2)]
    ends = sorted((process.communicate(timeout=60), process.returncode)[1] for process in running)
    assert ends in ([0, 0], [0, 1])
    assert rebuild(shared, "--dry-run")["differences"] == 0


def test_killed_in_the_middle_it_leaves_the_live_one_and_the_next_one_works(shared):
    ids = [shared.send(to=f"k{i}@example.com") for i in range(20)]
    wait_sent(shared, ids)
    before = rows(shared)
    # A flush looks at the sealed periods, the making of the shadow does not: its first flush waits for this lock, so it stands in the middle.
    import psycopg2
    holder = psycopg2.connect(shared.postgres.url())
    try:
        with holder.cursor() as cursor:
            cursor.execute("LOCK TABLE stentor.sealed_periods IN ACCESS EXCLUSIVE MODE")
        process = start_rebuild(shared)
        wait_until(lambda: waits_for_a_lock(shared), 20, "the rebuild waiting")
        assert process.poll() is None
        process.kill()
        process.communicate()
    finally:
        holder.close()
    assert "archiver_rebuild" in schemas(shared) and rows(shared) == before
    ids.append(shared.send(to="after@example.com"))
    wait_sent(shared, ids)
    rebuild(shared)
    wait_sent(shared, ids)
    assert schemas(shared) == {"archiver"}


def test_killed_between_the_rename_and_the_drop_the_new_one_is_live_and_the_next_one_works(shared):
    ids = [shared.send(to=f"r{i}@example.com") for i in range(20)]
    wait_sent(shared, ids)
    before = rows(shared)
    import psycopg2
    reader = psycopg2.connect(shared.postgres.url())
    try:
        with reader.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM archiver.notifications")  # whoever reads the old table holds off its drop, not the swap
        process = start_rebuild(shared)
        wait_until(lambda: "archiver_old" in schemas(shared), 20, "the swap")
        time.sleep(0.3)
        assert process.poll() is None
        process.kill()
        process.communicate()
    finally:
        reader.close()
    assert rows(shared) == before
    lock = "SELECT pg_try_advisory_lock(hashtextextended('stentor.rebuild.history', 0))"
    wait_until(lambda: shared.postgres.query(lock) == [(True,)], 60, "Postgres ending the statement of the killed process")
    ids.append(shared.send(to="after@example.com"))
    wait_sent(shared, ids)
    rebuild(shared)
    wait_sent(shared, ids)
    assert schemas(shared) == {"archiver"}


def test_what_a_swap_would_lose_is_refused_by_name(shared):
    for make, drop, reported in [
        ("CREATE VIEW stentor.recent AS SELECT id FROM archiver.notifications", "DROP VIEW stentor.recent", "recent"),
        ("CREATE TABLE archiver.notes (id text)", "DROP TABLE archiver.notes", "notes"),
        ("CREATE POLICY more ON archiver.notifications USING (true)", "DROP POLICY more ON archiver.notifications", "policy more"),
        ("GRANT SELECT (id) ON archiver.notifications TO stentor_ingest", "REVOKE SELECT (id) ON archiver.notifications FROM stentor_ingest", "stentor_ingest"),
        ("CREATE FUNCTION archiver.own() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION archiver.own()",
         "function archiver.own() belongs to postgres, not to the schema's owner"),
        ("ALTER TABLE archiver.positions SET (fillfactor = 50)", "ALTER TABLE archiver.positions RESET (fillfactor)", "fillfactor"),
    ]:
        shared.postgres.query(make)
        done = shared.run_cli("rebuild", "history", admin=True)
        assert done.returncode == 1 and "does not know how to carry over" in done.stderr, make
        assert reported in done.stderr, (make, done.stderr)
        assert schemas(shared) == {"archiver"}
        shared.postgres.query(drop)


def test_functions_grants_and_indexes_come_along(shared):
    shared.postgres.query("CREATE INDEX by_recipient ON archiver.notifications (recipient_id) WHERE status = 'sent'")
    shared.postgres.query("GRANT SELECT ON archiver.notifications TO stentor_ingest")
    shared.postgres.query("SET ROLE stentor_owner; CREATE FUNCTION archiver.count_sent() RETURNS bigint LANGUAGE sql SECURITY DEFINER"
                       " AS $$ SELECT count(*) FROM archiver.notifications WHERE status = 'sent' $$")
    notification = shared.send()
    shared.status(notification, wait="sent")
    rebuild(shared)
    assert shared.postgres.query("SELECT archiver.count_sent()") == [(len(shared.earlier) + 1,)]
    assert shared.postgres.query("SELECT has_table_privilege('stentor_ingest', 'archiver.notifications', 'SELECT')") == [(True,)]
    assert shared.postgres.query("SELECT indisvalid FROM pg_index WHERE indexrelid = 'archiver.by_recipient'::regclass") == [(True,)]


def test_finding_01_a_superusers_rebuild_leaves_history_with_its_owner(shared):
    before = rows(shared)
    environment = {"STENTOR_HOME": str(HOME), "STENTOR_NATS_URL": shared.nats.url, "STENTOR_NATS_USER": "stentor-admin",
                   "STENTOR_NATS_PASSWORD": "pw", "STENTOR_DATABASE_URL": shared.postgres.url("postgres")}
    done = subprocess.run([BIN / "stentor", "rebuild", "history"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert rows(shared) == before
    owners = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'archiver'::regnamespace"
    assert shared.postgres.query(owners) == [("stentor_owner",)]


def test_a_log_that_begins_later_is_refused_or_its_older_rows_are_carried_over(own):
    ids = [own.send(to=f"o{i}@example.com") for i in range(10)]
    wait_sent(own, ids)
    before = rows(own)
    admin = NatsClient(own.nats.port)
    try:
        admin.request("$JS.API.STREAM.PURGE.STATUS", json.dumps({"keep": 3}).encode())
    finally:
        admin.close()
    done = own.run_cli("rebuild", "history", admin=True)
    assert done.returncode == 1 and "log of 'STATUS' begins at" in done.stderr and "--carry-older" in done.stderr
    assert rows(own) == before
    denied = own.run_cli("rebuild", "history", "--carry-older")
    assert denied.returncode == 1 and "permission denied" in denied.stderr and "stentor migrate" in denied.stderr
    carried = rebuild(own, "--carry-older")
    assert carried["carried"] == len(before)
    assert rows(own) == before
    ids.append(own.send(to="after@example.com"))
    wait_sent(own, ids)


def test_rows_of_past_months_are_carried_over_with_their_months(own):
    """Months from before the log, and before any partition that a new installation has."""
    publish_log(own, 20)
    wait_folded(own, 20)
    ids = [row[0] for row in own.postgres.query("SELECT id FROM archiver.notifications ORDER BY id LIMIT 4")]
    for table, column in (("notifications", "id"), ("delivery_attempts", "notification_id")):
        for number, month in enumerate(("2024-02", "2025-12")):
            own.postgres.query(f"SELECT stentor.ensure_partitions('archiver.{table}', '{month}-05Z', '{month}-05Z')")
            own.postgres.query(f"UPDATE archiver.{table} SET created_at = '{month}-05Z' WHERE {column} = ANY (%s)", ids[2 * number:2 * number + 2])
    before = rows(own)
    admin = NatsClient(own.nats.port)
    for stream in ("REQUEST_NORMAL", "STATUS"):
        admin.request(f"$JS.API.STREAM.PURGE.{stream}", b"{}")
    admin.close()
    publish_log(own, 5)
    wait_folded(own, 25)
    assert set(before) < set(rows(own))
    before = rows(own)
    assert rebuild(own, "--carry-older")["swapped"]
    assert rows(own) == before
    bounds = own.postgres.query("SELECT count(*) FROM pg_class WHERE relnamespace = 'archiver'::regnamespace AND relispartition"
                                " AND pg_get_expr(relpartbound, oid) LIKE '%%2024-02-01%%'")
    assert bounds[0][0] >= 2


def test_a_log_with_gaps_is_called_that(own):
    ids = [own.send(to=f"g{i}@example.com") for i in range(3)]
    wait_sent(own, ids)
    before = rows(own)
    admin = NatsClient(own.nats.port)
    try:
        last = admin.stream_info("STATUS")["state"]["last_seq"]
        deleted = json.loads(admin.request("$JS.API.STREAM.MSG.DELETE.STATUS", json.dumps({"seq": last - 1}).encode()))
    finally:
        admin.close()
    assert deleted["success"]
    done = own.run_cli("rebuild", "history", admin=True)
    assert done.returncode == 1 and "log of 'STATUS' has gaps before" in done.stderr and "--carry-older" in done.stderr
    rebuild(own, "--carry-older")
    assert rows(own) == before


def test_a_log_that_loses_its_beginning_while_it_is_read_is_no_basis(own):
    publish_log(own, 200)
    wait_folded(own, 200)
    before = rows(own)
    # The rebuild has looked at the streams when it makes the shadow, and waits there for this lock before it reads.
    import psycopg2
    holder = psycopg2.connect(own.postgres.url())
    admin = NatsClient(own.nats.port)
    try:
        for keep, words in ((50, []), (0, ["--carry-older"])):  # what is left tells of it, or the stream's first sequence
            with holder.cursor() as cursor:
                cursor.execute("LOCK TABLE archiver.notifications IN ACCESS EXCLUSIVE MODE")
            process = start_rebuild(own, *words)
            wait_until(lambda: waits_for_a_lock(own), 20, "the rebuild waiting")
            admin.request("$JS.API.STREAM.PURGE.REQUEST_NORMAL", json.dumps({"keep": keep}).encode())
            holder.rollback()
            _, reported = process.communicate(timeout=60)
            assert process.returncode == 1 and "left the log before they were read" in reported, reported
            assert rows(own) == before and schemas(own) == {"archiver"}
            publish_log(own, 100)
            wait_folded(own, len(before) // 2 + 100)
            assert rebuild(own, "--carry-older")["swapped"]
            before = rows(own)
    finally:
        holder.close()
        admin.close()


def test_a_long_log_is_folded_at_once(own):
    count = amount(4000, 10_000)
    events = publish_log(own, count)
    wait_folded(own, count)
    before = rows(own)
    done = rebuild(own)
    print(f"{done['events_per_s']:.0f} events/s")
    assert (done["events"], done["unreadable"], done["carried"]) == (events, 0, 0)
    assert done["events_per_s"] == pytest.approx(done["events"] / done["seconds"])
    assert rows(own) == before and len(before) == 2 * count
    own.services["archiver"].stop()
    written = ("SELECT sum(n_tup_ins)::int, sum(n_tup_upd)::int FROM pg_stat_user_tables WHERE schemaname = 'archiver' AND relname LIKE 'notifications%%'")
    wait_until(lambda: own.postgres.query(written)[0][0] == count, 20, "the counts of Postgres")
    assert own.postgres.query(written)[0][1] < count // 10, "a row is written once: STATUS is not read before its requests"
    own.services["archiver"].start()
    assert rebuild(own, "--dry-run")["differences"] == 0


# ---- fail-over ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_stand_by_takes_over_within_five_seconds(own, how):
    archiver = own.services["archiver"]
    second = own.services["archiver-2"] = own.service("archiver", instance="-2").start()
    load = Load(own, rate=200)
    load.start()
    try:
        wait_until(lambda: archiver.metric("stentor_archiver_active") == 1 and len(load.ids) > 200, 30, "the first one writing")
        assert second.metric("stentor_archiver_active") == 0
        began = time.monotonic()
        if how == "killed":
            archiver.kill()
        else:
            archiver.pause()
        wait_until(lambda: second.metric("stentor_archiver_rows_total") > 0, 10, "the second one writing")
        took = time.monotonic() - began
        print(f"{how}: taken over after {took:.2f} s")
        assert took < 5
        time.sleep(1)
        if how == "killed":
            archiver.start()
        else:
            archiver.pause(False)
        wait_until(lambda: archiver.get("/readyz")[0] == 200, 10, "the first one standing by")
        ids = load.stop()
        wait_sent(own, ids)
        assert (archiver.metric("stentor_archiver_active"), second.metric("stentor_archiver_active")) == (0, 1)
        assert rebuild(own, "--dry-run")["differences"] == 0
    finally:
        archiver.pause(False)
        load.ending.set()


# ---- a log that lost its tail --------------------------------------------------------------------------------------------


def copy_store(pipeline):
    """The store as it was before: what a restore puts back, or what a power cut leaves."""
    assert pipeline.nats.stop() in (0, 1)
    shutil.copytree(pipeline.nats.folder / "store", pipeline.nats.folder / "copy")
    pipeline.nats.start()


def restore_store(pipeline):
    pipeline.nats.kill()
    shutil.rmtree(pipeline.nats.folder / "store")
    (pipeline.nats.folder / "copy").rename(pipeline.nats.folder / "store")
    pipeline.nats.start()


def position(pipeline):
    return pipeline.postgres.query("SELECT sequence FROM archiver.positions WHERE stream = 'STATUS'")[0][0]


def send_and_wait(pipeline, name, count):
    ids = [pipeline.send(to=f"{name}{i}@example.com") for i in range(count)]
    for notification in ids:
        assert pipeline.status(notification, wait="sent", timeout=60)["status"] == "sent"
    return ids


def test_a_log_shorter_than_the_positions_is_read_again(own):
    archiver = own.services["archiver"]
    ids = send_and_wait(own, "kept", 5)
    copy_store(own)
    ids += send_and_wait(own, "lost", 20)
    restored_below = position(own)
    restore_store(own)
    ids += send_and_wait(own, "new", 3)  # the log is shorter now than what was folded, and the archiver runs on
    assert position(own) < restored_below
    assert archiver.metric("stentor_archiver_tail_lost_total") >= 1
    wait_until(lambda: archiver.get("/readyz")[0] == 200, 20, "its being ready, which it is a second after it has been unready")
    assert {row[0] for row in own.postgres.query("SELECT id FROM archiver.notifications")} == set(ids)
    assert own.history_count("status <> 'sent'") == 0


def test_a_log_that_has_grown_past_the_positions_is_noticed(own):
    archiver = own.services["archiver"]
    ids = send_and_wait(own, "kept", 5)
    copy_store(own)
    ids += send_and_wait(own, "lost", 5)
    folded = position(own)
    archiver.stop()
    restore_store(own)
    new = [own.send(to=f"new{i}@example.com") for i in range(25)]
    admin = NatsClient(own.nats.port)
    try:
        wait_until(lambda: admin.stream_info("STATUS")["state"]["last_seq"] > folded + 5, 60, "the log growing past")
    finally:
        admin.close()
    archiver.start()
    for notification in new:
        assert own.status(notification, wait="sent", timeout=60)["status"] == "sent"
    assert archiver.metric("stentor_archiver_tail_lost_total") >= 1
    assert {row[0] for row in own.postgres.query("SELECT id FROM archiver.notifications")} == set(ids + new)
    wait_folded(own, len(ids + new))
