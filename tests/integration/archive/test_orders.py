# SPDX-License-Identifier: Apache-2.0
"""Orders that ended in a month go to the bucket with their transitions, and come back; one that has not ended is in no unit."""
import pytest

from tests.harness.archive.units import Units

UNIT = "orders/record/2026-01"
FILL = """INSERT INTO order_saga.order_state (correlation_id, tenant_id, order_id, current_state, total_money, currency, order_placed_date, version,
              finished_at, person, email_hash)
          SELECT md5(n::text)::uuid, CASE WHEN n % 3 = 0 THEN 'beta' ELSE 'acme' END, md5(n::text || 'o')::uuid,
              CASE WHEN n > 30 THEN 'Placed' ELSE 'Completed' END, CASE WHEN n % 5 > 0 THEN n + 0.25 END, 'EUR', '2026-01-01Z', 2,
              CASE WHEN n <= 30 THEN '2026-01-01Z'::timestamptz + n * interval '1 day' END, sha512(n::text::bytea), sha256(n::text::bytea)
          FROM generate_series(1, 40) n;
          INSERT INTO order_saga.inbox_state (message_id, consumer_id, tenant_id, correlation_id, event_type, sequence, received, receive_count,
              consumed, verdict, reason, from_state, to_state)
          SELECT 'm' || o.order_id || s, 'order-saga', o.tenant_id, o.correlation_id, 'e', s, '2026-01-01Z', 1, '2026-01-01Z', 'applied', '',
              CASE s WHEN 2 THEN 'Placed' END, CASE s WHEN 1 THEN 'Placed' ELSE 'Completed' END
          FROM order_saga.order_state o, generate_series(1, 2) s WHERE s = 1 OR o.finished_at IS NOT NULL"""
CONTENT = """SELECT to_jsonb(a)::text FROM order_saga.order_archive a UNION ALL SELECT to_jsonb(t)::text FROM order_saga.order_transitions t
             ORDER BY 1"""


@pytest.fixture()
def units():
    units = Units()
    yield units
    units.close()


def test_orders_of_a_month_go_to_the_bucket_and_come_back(units):
    units.postgres.query(FILL)
    assert units.postgres.query("SELECT order_saga.archive_orders('30 days', NULL, 1000)") == [(30,)]
    before = units.postgres.query(CONTENT)
    assert len(before) == 30 + 60
    units.start()
    units.run(UNIT)
    assert units.state(UNIT) == "removed" and units.postgres.query(CONTENT) == []
    keys = units.objects()
    assert keys and units.files("archive") == keys
    assert units.postgres.query("SELECT sum(rows)::int FROM archive.objects") == [(90,)]
    assert units.postgres.query("SELECT count(*) FROM order_saga.order_state WHERE current_state = 'Placed'") == [(10,)]
    until = units.postgres.query("SELECT ((extract(epoch FROM now()) + 3600) * 1000000)::int8")[0][0]
    assert units.request("restore", unit=UNIT, until_us=until)[0] == "done"
    assert units.postgres.query(CONTENT) == before


def test_a_month_waits_for_orders_that_were_not_moved(units):
    units.postgres.query(FILL)
    assert units.postgres.query("SELECT order_saga.archive_orders('30 days', NULL, 20)") == [(20,)]
    units.start()
    units.request("run", unit=UNIT, older_than_us=0)
    assert units.state(UNIT) == "open"
    assert "still in order_state" in units.unit("failure", UNIT)
    units.postgres.query("SELECT order_saga.archive_orders('30 days', NULL, 1000)")
    units.run(UNIT)
    assert units.state(UNIT) == "removed" and units.postgres.query("SELECT sum(rows)::int FROM archive.objects") == [(90,)]
