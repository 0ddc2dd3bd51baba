# SPDX-License-Identifier: Apache-2.0
"""The figures that the documents want to alert on (A51 to A65 of the Notification Database: pending mails and the oldest of them, send
latency from created_at to sent_at, success and failure rate, retry count distribution, pool usage, p95 of queries, sizes of tables;
D38 of the Finance Database; 32d): each is there, and says what happened."""
import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until

MAILS = 4


@pytest.fixture(name="pipeline", scope="module")
def _pipeline():
    pipeline = Pipeline({"STENTOR_FIGURES_MS": "500", "STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_RETRY_LADDER": "2,2,2,2,2,2,2,2"}).start()
    try:
        yield pipeline
    finally:
        pipeline.stop()


def _pending(pipeline):
    return int(pipeline.services["digest-flusher"].metric("stentor_digest_flusher_mails_pending"))


def test_what_waits_is_counted_and_how_long(pipeline):
    """Rows A51, A63 (pending > 1,000), A64 (the oldest > 1 h), A65 (nothing sent although something waits), wherever the mail is."""
    flusher, dispatcher = pipeline.services["digest-flusher"], pipeline.services["dispatcher"]
    oldest = "stentor_digest_flusher_mails_oldest_seconds"
    wait_until(lambda: _pending(pipeline) == 0, 10, "nothing pending")
    assert flusher.metric(oldest) == 0
    dispatcher.stop()  # mails wait in RENDERED_*
    ids = [pipeline.send() for _ in range(MAILS)]
    pipeline.post({"to": "later@example.com", "template": "welcome", "variables": {"name": "L"}, "scheduled_for": "2099-01-01T00:00:00Z"})
    wait_until(lambda: _pending(pipeline) == MAILS, 10, "the mails being pending, and not the one for later")
    assert flusher.metric('stentor_digest_flusher_consumer_waiting{consumer="dispatcher",stream="RENDERED_NORMAL"}') == MAILS
    assert flusher.metric('stentor_digest_flusher_consumer_waiting{consumer="renderer",stream="REQUEST_NORMAL"}') == 0
    wait_until(lambda: flusher.metric(oldest) > 1, 10, "the oldest getting older")
    pipeline.mailbox.answer("451 4.3.0 later", times=MAILS)  # and then as rows that wait for a retry
    dispatcher.start()
    retries = "SELECT count(*) FROM digest_flusher.due_work WHERE reason = 'retry'"
    wait_until(lambda: pipeline.postgres.query(retries)[0][0] == MAILS, 20, "the mails waiting for a retry")
    # A mail whose message is not acknowledged yet waits in both places.
    wait_until(lambda: _pending(pipeline) == MAILS, 10, "the mails being pending in one place each")
    at_first = flusher.metric(oldest)
    for each in ids:
        pipeline.status(each, wait="sent")
    wait_until(lambda: _pending(pipeline) == 0, 10, "nothing pending any more")
    assert at_first > 1 and flusher.metric(oldest) == 0
    # How many attempts each took, and how long: from the acceptance on, over the stop and the retry.
    assert dispatcher.metric('stentor_dispatcher_mails_total{result="sent"}') == MAILS
    assert dispatcher.metric('stentor_dispatcher_mail_attempts_bucket{result="sent",le="1"}') == 0
    assert dispatcher.metric('stentor_dispatcher_mail_attempts_bucket{result="sent",le="2"}') == MAILS
    assert dispatcher.metric("stentor_dispatcher_delivery_seconds_count") == MAILS
    assert dispatcher.metric("stentor_dispatcher_delivery_seconds_sum") > 2 * MAILS
    assert dispatcher.metric('stentor_dispatcher_delivery_seconds_bucket{le="1"}') == 0


def test_mails_are_counted_by_how_they_end(pipeline):
    """Rows A53 and A57: mails, not attempts."""
    dispatcher = pipeline.services["dispatcher"]
    pipeline.mailbox.answer("550 5.7.1 no", times=1)
    before = {result: dispatcher.metric(f'stentor_dispatcher_mails_total{{result="{result}"}}') for result in ("sent", "failed")}
    pipeline.status(pipeline.send(), wait="failed")
    pipeline.status(pipeline.send(), wait="sent")
    after = {result: dispatcher.metric(f'stentor_dispatcher_mails_total{{result="{result}"}}') for result in ("sent", "failed")}
    assert {result: after[result] - before[result] for result in after} == {"sent": 1, "failed": 1}
    assert dispatcher.metric('stentor_dispatcher_mail_attempts_count{result="failed"}') == 1


def test_a_scheduled_mail_is_late_from_its_time_on(pipeline):
    """Row A52: what its sender scheduled is no latency."""
    dispatcher = pipeline.services["dispatcher"]
    wait_until(lambda: _pending(pipeline) == 0, 30, "nothing of earlier tests being under way")
    count, total = (dispatcher.metric(f"stentor_dispatcher_delivery_seconds_{part}") for part in ("count", "sum"))
    at = pipeline.postgres.query("SELECT to_char(now() AT TIME ZONE 'UTC' + interval '4 s', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")[0][0]
    pipeline.status(pipeline.send(scheduled_for=at), wait="sent")
    assert dispatcher.metric("stentor_dispatcher_delivery_seconds_count") == count + 1
    assert dispatcher.metric("stentor_dispatcher_delivery_seconds_sum") - total < 2.5


def pool_is_calm(scrape):
    """Of one scrape: the states of a pool change between two."""
    values = dict(line.rsplit(" ", 1) for line in scrape.splitlines() if line.startswith("stentor_db_"))
    busy, idle, absent = (float(values[f'stentor_db_connections{{state="{state}"}}']) for state in ("busy", "idle", "absent"))
    return busy + idle >= 2 and absent == 0 and float(values["stentor_db_waiting"]) == 0


def test_database_pools_queries_and_tables_have_figures(pipeline):
    """Rows A59 to A61 and D38."""
    flusher = pipeline.services["digest-flusher"]
    for name in ("ingest", "renderer", "dispatcher", "archiver", "digest-flusher"):
        service = pipeline.services[name]
        wait_until(lambda: pool_is_calm(service.get("/metrics")[1]), 20, f"the pool of {name} having its connections and no work that waits")
        wait_until(lambda: service.metric("stentor_db_transaction_seconds_count") > 0, 20, f"a transaction of {name}")
        total = service.metric("stentor_db_transaction_seconds_sum")
        assert 0 < total < service.metric("stentor_db_transaction_seconds_count") * 10
    tables = [line.split('"')[1] for line in flusher.get("/metrics")[1].splitlines() if line.startswith("stentor_digest_flusher_table_bytes{")]
    sizes = {table: flusher.metric(f'stentor_digest_flusher_table_bytes{{table="{table}"}}') for table in tables}
    assert len(tables) >= 12 and all(size >= 8192 for size in sizes.values()), sizes  # a wrong name would have 0
    # A partitioned table is the sum of its months.
    months = pipeline.postgres.query("SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('dispatcher.ledger')")[0][0]
    assert 0 < sizes["dispatcher.ledger"] <= months
    assert flusher.metric("stentor_digest_flusher_database_bytes") > sum(sizes.values())
    shown = flusher.get("/metrics")[1]
    assert flusher.metric("stentor_digest_flusher_months_runway_seconds") > 27 * 86400, "the next month has its tables"
    assert "\nstentor_digest_flusher_database_locks_waiting " in shown and "\nstentor_digest_flusher_database_deadlocks " in shown
