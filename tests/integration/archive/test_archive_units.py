# SPDX-License-Identifier: Apache-2.0
"""A month of rows into a folder and back: archived, removed, dropped, restored equal row by row, expired."""
import hashlib
import json

import pytest

from tests.harness.processes import HOME, wait_until
from tests.harness.archive.units import UNIT, Units


@pytest.fixture()
def units():
    units = Units()
    yield units
    units.close()


def test_a_month_goes_to_the_bucket_comes_back_and_expires(units):
    units.fill(rows=1000)
    units.fill(month="2026-02")
    before = units.content()
    units.start()
    units.run()
    assert units.state() == "removed"
    assert units.rows() == 600  # of February: none of it was touched
    assert units.postgres.query("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                                " WHERE n.nspname IN ('archive_drop', 'archive_restore')") == [(0,)]
    keys = units.objects()
    assert len(keys) > 4 and all("/month=2026-01/" in key for key in keys)
    assert units.files("archive") == keys
    manifest = json.loads((units.bucket / units.unit("manifest_key")).read_bytes())
    assert sorted(entry["key"] for entry in manifest["objects"]) == keys
    assert sum(entry["rows"] for entry in manifest["objects"]) == 2000 + 4000
    assert hashlib.sha256((units.bucket / units.unit("manifest_key")).read_bytes()).digest() == bytes(units.unit("manifest_hash"))

    until = units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
    assert units.request("restore", unit=UNIT, until_us=until)[0] == "done"
    assert units.state() == "restored"
    assert without_time(units.content()) == without_time(before)

    units.postgres.query("UPDATE archive.restores SET until = now()")
    units.run()
    assert units.state() == "removed" and units.rows() == 600
    assert units.request("verify")[0] == "done"
    for month in ("2026-01", "2026-02"):  # a report that came later
        units.postgres.query("INSERT INTO archiver.late_notifications (created_at, id, tenant_id, channel, status, status_rank)"
                             " VALUES (%s, 'ntf_01KAGTQ5M0R000000000000001', 'acme', 'email', 'bounced', 10)", f"{month}-01")
    expire(units)
    assert units.request("expire", unit="notifications/record/2026-02")[0] == "done"
    assert units.state("notifications/record/2026-02") == "expired"
    assert units.postgres.query("SELECT count(*) FROM archiver.late_notifications") == [(0,)]
    assert not [key for key in units.files("archive") if "month=2026-01" in key]
    assert len(units.files(f"manifest/{UNIT}")) == 2
    units.postgres.query("UPDATE archive.objects SET deleted_at = now() - interval '31 days'")
    units.run()
    assert units.unit("finished_at") is not None
    assert units.postgres.query("SELECT archive.journal_fault(), archive.manifest_fault()") == [(None, None)]


def without_time(content):
    """updated_at is when a row was written: no part of its value."""
    return {table: [{name: value for name, value in json.loads(row).items() if name != "updated_at"} for row, in rows]
            for table, rows in content.items()}


def expire(units):
    for process in units.processes:
        units.end(process)
    units.start(name="expiring", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    state, message = units.request("expire", unit=UNIT)
    assert state == "done", message
    assert units.state() == "expired"


def test_what_the_schedule_expires_is_deleted_a_day_later(units):
    """Time to notice a span that was not meant: a hold of the unit still keeps its objects."""
    units.fill(rows=20)
    units.start()
    units.run()
    units.end(units.processes[-1])
    units.start(name="short", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    assert units.request("run", unit=UNIT)[0] == "done"
    assert units.state() == "expired" and units.files("archive") == units.objects() != []
    units.postgres.query("INSERT INTO archive.holds (unit, ground, held_by) VALUES (%s, 'not meant', 'kim')", UNIT)
    units.postgres.query("UPDATE archive.units SET state_at = now() - interval '25 hours' WHERE id = %s", UNIT)
    state, message = units.request("run", unit=UNIT)
    assert state == "failed" and "not meant" in message
    assert units.files("archive") == units.objects() != []
    units.postgres.query("UPDATE archive.holds SET released_at = now(), released_by = 'kim'")
    assert units.request("run", unit=UNIT)[0] == "done"
    assert units.files("archive") == units.objects() == []


def witness(units, age):
    """A position of the log as it looks when the newest stored message is so old. A host that is seven years ahead finds the same."""
    units.postgres.query("INSERT INTO archive.log_positions (stream, stored_at) VALUES ('STATUS', now() - %s::interval)"
                         " ON CONFLICT (stream) DO UPDATE SET stored_at = excluded.stored_at", age)


def test_nothing_is_dropped_or_deleted_while_clocks_disagree(units):
    units.fill(rows=20)
    units.start()
    detached = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'archive_drop' AND c.relkind = 'r'"
    fault = "SELECT clock_fault FROM archive.installation"
    for age, text in (("7 years", "the newest stored message is of "), ("-7 years", "NATS stored a message of 'STATUS' at ")):
        witness(units, age)
        state, message = units.request("run", unit=UNIT, older_than_us=0)
        assert state == "failed" and text in message
        assert units.state() == "removing" and units.postgres.query(detached) == [(2,)]
        assert units.unit("failure") == message == units.postgres.query(fault)[0][0]
    witness(units, "1 hour")
    units.run()
    assert units.state() == "removed" and units.postgres.query(detached) == [(0,)]
    assert units.unit("failure") is None and units.postgres.query(fault) == [(None,)]
    units.end(units.processes[-1])
    units.start(name="ahead", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    keys = units.objects()
    for state in ("removed", "expired"):  # neither the expiry nor the deletion of what has expired
        assert units.state() == state
        witness(units, "7 years")
        assert units.request("expire", unit=UNIT)[0] == "failed"
        assert units.request("delete-orphans")[0] == "failed"
        assert units.state() == state and units.files("archive") == keys
        witness(units, "1 hour")
        assert units.request("run", unit=UNIT)[0] == "done"
    assert units.request("expire", unit=UNIT)[0] == "done"
    assert units.files("archive") == []


def test_a_hold_keeps_a_unit(units):
    units.fill(rows=20)
    units.start()
    units.run()
    units.postgres.query("INSERT INTO archive.holds (tenant, ground, held_by) VALUES ('acme', 'case 7', 'legal')")
    for process in units.processes:
        units.end(process)
    units.start(name="held", STENTOR_RETENTION_SPANS="record=1d:1d:2d")
    state, message = units.request("expire", unit=UNIT)
    assert state == "failed" and "case 7" in message and UNIT in message
    assert units.state() == "removed" and units.files("archive") == units.objects()
    units.postgres.query("UPDATE archive.holds SET released_at = now(), released_by = 'legal'")
    assert units.request("expire", unit=UNIT)[0] == "done"
    assert units.files("archive") == []


def test_objects_move_to_the_cold_tier(units):
    units.fill(rows=50)
    units.start()
    units.run()
    for process in units.processes:
        units.end(process)
    units.start(name="cooling", STENTOR_RETENTION_SPANS="record=1d:2d:90y")
    assert units.request("run", unit=UNIT)[0] == "done"
    keys = units.objects()
    assert keys and all(key.startswith("cold/") for key in keys)
    assert units.unit("generation") == 2
    assert units.files("cold") == keys and len(units.files("archive")) == len(keys)  # the former, for 7 days
    units.postgres.query("UPDATE archive.objects SET delete_after = now() WHERE state = 'replaced'")
    assert units.request("run", unit=UNIT)[0] == "done"
    assert units.files("archive") == []
    assert units.request("verify", unit=UNIT)[0] == "done"
    until = units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
    assert units.request("restore", unit=UNIT, until_us=until)[0] == "done"
    assert units.rows() == 100


def test_what_is_not_folded_yet_is_not_sealed(units):
    units.fill(rows=5)
    units.postgres.query("UPDATE archive.installation SET folded_at = '2026-02-01T00:30:00Z'")
    units.start()
    units.run()
    assert units.state() == "open" and units.rows() == 10
    units.postgres.query("UPDATE archive.installation SET folded_at = now()")
    units.run()
    assert units.state() == "removed"


def test_a_reader_in_the_way_delays_the_removal_and_is_not_blocked(units):
    import psycopg2
    units.fill(rows=5)
    connection = psycopg2.connect(units.postgres.url("stentor_cli"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM archiver.notifications")  # holds its lock until the transaction ends
        units.start()
        request = units.ask("run", unit=UNIT, older_than_us=0)
        wait_until(lambda: units.state() == "committed", 20, "committed")
        assert units.outcome(request)[0] == "running"
        cursor.execute("SELECT count(*) FROM archiver.notifications")
    connection.rollback()
    connection.close()
    assert units.wait(request)[0] == "done"
    assert units.state() == "removed"


def test_the_demo_month_is_archived(units):
    """deploy/local/up shows it."""
    units.postgres.query((HOME / "deploy/local/demo/month.sql").read_text())
    month = units.postgres.query("SELECT to_char(min(created_at) AT TIME ZONE 'UTC', 'YYYY-MM') FROM archiver.notifications")[0][0]
    assert (units.rows(), units.rows("delivery_attempts")) == (1000, 1000)
    # `stentor status` names the unit of an archived notification by the time in its id.
    for key, at_ms in units.postgres.query("SELECT id, (extract(epoch FROM created_at) * 1000)::int8 FROM archiver.notifications ORDER BY id LIMIT 3"):
        assert sum("0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit) << 5 * (9 - i) for i, digit in enumerate(key[4:14])) == at_ms, key
    units.start()
    units.run(unit=f"notifications/record/{month}")
    assert units.rows() == 0 and len(units.objects()) == 2 * 3  # of 400 rows at most


def test_a_day_is_a_unit_where_the_class_says_so(units):
    day = units.postgres.query("SELECT (date_trunc('day', now() AT TIME ZONE 'UTC') - interval '100 days')::date::text")[0][0]
    units.fill_day(day)
    unit = f"notifications/brief/{day}"
    units.start()
    units.run(unit=unit)
    assert units.state(unit) == "removed" and units.rows() == 0
    assert [key.rsplit("-", 1)[0] for key in units.objects()] == [f"archive/notifications/tenant=acme/class=brief/day={day}/part-00000"]
    until = units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
    assert units.request("restore", unit=unit, until_us=until)[0] == "done"
    assert units.rows() == 20


def test_orders_are_units_too(units):
    query = units.postgres.query
    query("SELECT order_saga.make_months(ARRAY['2026-01-02'::timestamptz])", role="stentor_owner")
    query("INSERT INTO order_saga.order_archive (finished_at, correlation_id, tenant_id, order_id, current_state, total_micros, currency,"
          " order_placed_date, version, timeout_retry_count, person, email_hash)"
          " SELECT '2026-01-01'::timestamptz + n * interval '1 hour', 'c' || n, 'acme', 'o' || n, 'Completed', n * 1000000, 'EUR',"
          " '2026-01-01', 1, 0, '\\x00', '\\x01' FROM generate_series(1, 30) n")
    query("INSERT INTO order_saga.order_transitions (finished_at, correlation_id, tenant_id, message_id, sequence, event_type, received,"
          " consumed, reason) SELECT finished_at, correlation_id, tenant_id, 'm', 1, 'CompleteOrder', now(), now(), '' FROM order_saga.order_archive")
    content = "SELECT row_to_json(o)::text FROM order_saga.{} o ORDER BY finished_at"
    before = [query(content.format(table)) for table in ("order_archive", "order_transitions")]
    unit = "orders/record/2026-01"
    units.start()
    units.run(unit=unit)
    assert units.state(unit) == "removed" and query(content.format("order_archive")) == []
    assert sorted(key.split("/")[1] for key in units.objects()) == ["order_archive", "order_transitions"]
    until = query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
    assert units.request("restore", unit=unit, until_us=until)[0] == "done"
    assert [query(content.format(table)) for table in ("order_archive", "order_transitions")] == before
