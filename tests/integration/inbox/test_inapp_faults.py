# SPDX-License-Identifier: Apache-2.0
"""In-app inboxes while processes are killed: each item is in its inbox once, and the counters are what a count of the items says."""
import json
import threading
import time

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import free_port, wait_until
from tests.integration.inbox.test_inapp import TEMPLATE, Client, counts, new_user
from tests.integration.sending.test_templates import locale, publish

USERS, ARRAYS, EACH = 3, 6, 20

# Inboxes whose counters differ from a count of their items.
DRIFT = """SELECT count(*) FROM (SELECT recipient, category, count(*) FILTER (WHERE seen_at IS NULL) AS unseen,
  count(*) FILTER (WHERE read_at IS NULL) AS unread, count(*) AS total FROM feed.items WHERE archived_at IS NULL AND snoozed_until IS NULL
  GROUP BY 1, 2) i FULL JOIN (SELECT * FROM feed.counters WHERE total > 0) c USING (recipient, category)
  WHERE (i.unseen, i.unread, i.total) IS DISTINCT FROM (c.unseen::int8, c.unread::int8, c.total::int8)"""


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline({"STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_RETRY_LADDER": "1,1,1", "STENTOR_INGEST_SWEEP_AGE_MS": "2000"}).start()
    publish(running, TEMPLATE, channel="inapp", category="transactional", locales=[locale("en", title="Hello {{name}}", text="x")])
    yield running
    running.stop()


@pytest.fixture(scope="module")
def second(pipeline):
    """A second gateway; the port of the address in front stays the first one's."""
    running = pipeline.service("gateway", "-second", STENTOR_GATEWAY_PORT=free_port()).start()
    yield running
    running.stop()


def post_arrays(pipeline, users, sent):
    for number in range(ARRAYS):
        bodies = [{"to": user, "channel": "inapp", "template": TEMPLATE, "variables": {"name": "A"}} for user in users for _ in range(EACH)]

        def taken(bodies=bodies, key=f"{users[0]}-{number}"):
            status, _, answer = pipeline.post(bodies, headers={"Idempotency-Key": key})
            sent.extend(item["id"] for item in answer["notifications"]) if status == 202 else None
            return status == 202
        wait_until(taken, 20, "an array of requests being taken")


def test_two_gateways_and_a_dispatcher_are_killed_and_no_item_is_lost_or_doubled(pipeline, second):
    users, sent = [new_user() for _ in range(USERS)], []
    first, dispatcher = pipeline.services["gateway"], pipeline.services["dispatcher"]
    loader = threading.Thread(target=post_arrays, args=(pipeline, users, sent), daemon=True)
    loader.start()
    total = USERS * ARRAYS * EACH

    def stored(count):
        return pipeline.postgres.query("SELECT count(*) FROM feed.items")[0][0] >= count
    wait_until(lambda: stored(20), 20, "the first items")
    dispatcher.kill()
    dispatcher.start()
    wait_until(lambda: stored(60), 40, "more items")
    first.kill()  # whichever folds: both are killed once
    wait_until(lambda: second.metric("stentor_gateway_feed_active") == 1, 20, "the second one folding")
    first.start()
    second.kill()
    second.start()
    loader.join()
    wait_until(lambda: stored(total), 60, "all items")
    assert pipeline.postgres.query("SELECT count(*), count(DISTINCT notification_id) FROM feed.items") == [(total, total)]
    for user in users:
        assert counts(ARRAYS * EACH, ARRAYS * EACH, ARRAYS * EACH, Client(pipeline, to=user).get("/counts"))
    assert sorted(sent) == sorted(row[0] for row in pipeline.postgres.query("SELECT notification_id FROM feed.items"))
    wait_until(lambda: pipeline.history_count("status = 'sent' AND channel = 'inapp'") == total, 40, "all are sent")
    assert pipeline.postgres.query(DRIFT) == [(0,)]
    active = [service.metric("stentor_gateway_feed_active") for service in (first, second)]
    assert sorted(active) == [0, 1], "one folds, the other stands by"


def test_statuses_survive_a_kill_of_the_gateway_that_publishes_them(pipeline, second):
    user = new_user()
    ids = pipeline.post([{"to": user, "channel": "inapp", "template": TEMPLATE, "variables": {"name": "A"}} for _ in range(30)])[2]["notifications"]
    client = Client(pipeline, to=user)
    shown = client.wait_items(30, "?limit=100")
    assert {item["id"] for item in shown} == {item["id"] for item in ids}
    client.do("/read-all", {"up_to": shown[0]["cursor"]})
    for gateway in (pipeline.services["gateway"], second):
        gateway.kill()
        gateway.start()
    names = tuple(item["id"] for item in ids)
    wait_until(lambda: pipeline.history_count(f"status = 'opened' AND id IN {names}") == 30, 40, "each being opened")
    assert pipeline.postgres.query("SELECT count(*) FROM archiver.notifications WHERE id = ANY (%s) AND delivered_at IS NULL", list(names)) == [(0,)]
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM feed.statuses") == [(0,)], 20, "all being in STATUS")


def rebuild(pipeline, *words):
    done = pipeline.run_cli("rebuild", "feed", "--json", *words, admin=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_a_rebuild_finds_the_same_and_mends_what_was_lost(pipeline, second):
    user = new_user()
    client = Client(pipeline, to=user)
    ids = [pipeline.post({"to": user, "channel": "inapp", "template": TEMPLATE, "variables": {"name": "A"}})[2]["id"] for _ in range(4)]
    client.wait_items(4)
    client.do(f"/{ids[0]}/click")
    client.do(f"/{ids[1]}/archive")
    client.do(f"/{ids[2]}/seen")
    before = client.get("/counts")
    assert rebuild(pipeline, "--dry-run")["differences"] == 0
    pipeline.postgres.query("DELETE FROM feed.items WHERE notification_id = %s", ids[3])
    pipeline.postgres.query("UPDATE feed.counters SET unread = unread + 1 WHERE total > 0")
    assert rebuild(pipeline)["differences"] > 0
    assert client.get("/counts") == before and pipeline.postgres.query(DRIFT) == [(0,)]
    assert rebuild(pipeline, "--dry-run")["differences"] == 0
    assert pipeline.postgres.query("SELECT count(*) FROM feed.statuses") == [(0,)], f"nothing of {TENANT} is published again"


def test_all_that_is_shown_can_be_read_after_the_log_has_lost_its_tail(pipeline, second):
    user = new_user()
    client = Client(pipeline, to=user)
    for _ in range(2):
        pipeline.post({"to": user, "channel": "inapp", "template": TEMPLATE, "variables": {"name": "A"}})
    shown = client.wait_items(2)
    gateways = (pipeline.services["gateway"], second)
    for gateway in gateways:
        gateway.kill()
    # As after a loss of 50: more was folded than there is. What the message was, its time says.
    pipeline.postgres.query("UPDATE feed.positions SET sequence = sequence + 50, stored_at = stored_at + interval '1 ms'")
    pipeline.postgres.query("UPDATE feed.items SET stored_sequence = stored_sequence + 50 WHERE notification_id = %s", shown[0]["id"])
    for gateway in gateways:
        gateway.start()
    wait_until(lambda: sum(gateway.metric("stentor_gateway_feed_active") for gateway in gateways) == 1, 20, "one folding")
    client.do("/read-all", {"up_to": shown[0]["cursor"]})
    wait_until(lambda: counts(0, 0, 2, client.get("/counts")), 20, "both being read")
    assert pipeline.postgres.query(DRIFT) == [(0,)]


def test_thousands_of_snoozes_that_end_at_once_end_in_seconds(pipeline, second):
    many, whose = 10_000, bytes(32)
    query = pipeline.postgres.query
    query("INSERT INTO feed.counters VALUES (%s, %s, 'social', 0, 0, 0, 0)", TENANT, whose)
    query("INSERT INTO feed.items (tenant_id, recipient, notification_id, category, template, key_subject, content, created_at, placed_at,"
          " snoozed_until, stored_sequence, sequence) SELECT %s, %s, 'ntf_' || n, 'social', 'x', %s, '', now(), now(), now() + interval '2 s', 0, 0"
          " FROM generate_series(1, %s) AS n", TENANT, whose, bytes(16), many)
    def shown():
        return query("SELECT total FROM feed.counters WHERE recipient = %s", whose)[0][0]
    wait_until(lambda: shown() > 0, 20, "the first being shown")  # no fold has said that there are any
    begin = time.monotonic()
    wait_until(lambda: shown() == many, 30, "all being shown")
    assert time.monotonic() - begin < 15, "more than 500 a second"
    assert query("SELECT count(*) FROM feed.due(10)") == query(DRIFT) == [(0,)]
