# SPDX-License-Identifier: Apache-2.0
"""`stentor rebuild saga`: orders and transitions from EVENTS once more, compared while order-saga runs, repaired while it stands still."""
import json
import subprocess
import threading
import time

import pytest

from tests.harness.length import amount
from tests.harness.orders import CANCELLED, COMPLETED, PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, SERVICES, wait_until

OPTIONS = {"STENTOR_SAGA_SWEEP_MS": "200", "STENTOR_SAGA_SWEEP_AGE_MS": "400", "STENTOR_SAGA_RETRY_TIMEOUT_MS": "1500", "STENTOR_SAGA_MAX_ATTEMPTS": "2"}
ORDER = ("tenant_id, correlation_id::text, order_id::text, basket_id::text, current_state, total_money::text, currency, order_placed_date, version,"
         " place_order_timeout_token_id::text, timeout_retry_count, person, email_hash")
STATES = f"SELECT 'o', {ORDER} FROM order_saga.order_state ORDER BY 3"
MOVES = ("SELECT 't', tenant_id, correlation_id::text, message_id, event_type, verdict, from_state, to_state FROM order_saga.inbox_state"
         " WHERE verdict IN ('applied', 'unmatched') ORDER BY 3, 4")
HAS_POINTS = subprocess.run([BIN / "stentor-order-saga", "--crash-points"], capture_output=True, timeout=20).returncode == 0


@pytest.fixture(scope="module")
def shop():
    pipeline = Pipeline(OPTIONS, ack_wait_ms=2000).start(SERVICES + ["order-saga"])
    shop = Shop(pipeline).put_mails()
    shop.saga = pipeline.services["order-saga"]
    yield shop
    shop.close()
    pipeline.stop()


def run(shop, *words, **settings):
    return shop.pipeline.run_cli("rebuild", "saga", "--json", "--max-attempts", "2", *words, admin=True, **settings)


def rebuild(shop, *words):
    done = run(shop, *words)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def rows(shop):
    plain = [[bytes(value) if isinstance(value, memoryview) else value for value in row] for row in shop.query(STATES)]
    return plain + [list(row) for row in shop.query(MOVES)]


def sent(shop):
    """What was ever published or waits to be: EVENTS, DEFERRED, the outbox."""
    return [shop.nats.stream_info(stream)["state"]["last_seq"] for stream in ("EVENTS", "DEFERRED", "DEAD")] + shop.query(
        "SELECT count(*), max(sequence_number) FROM order_saga.outbox_message")


def settle(shop):
    """Every event is consumed and no time-out is under way."""
    def still():
        (waiting,), = shop.query("SELECT count(*) FROM order_saga.order_state WHERE current_state = 'Placed'")
        info = json.loads(shop.nats.request("$JS.API.CONSUMER.INFO.EVENTS.order-saga"))
        return waiting == 0 and info["num_pending"] == 0 and info["num_ack_pending"] == 0
    wait_until(still, 40, "order-saga being idle")
    wait_until(lambda: not shop.query("SELECT 1 FROM order_saga.outbox_message WHERE sent_time IS NULL"), 20, "the outbox being empty")


def some_orders(shop):
    """One of each end, with an event before its order, one that contradicts it, a repeat, and one without an order."""
    completed, early, failed, conflict, unmatched = [shop.order() for _ in range(5)]
    completed.check_out("out-" + completed.id).complete("done-" + completed.id)
    early.cancel("early-" + early.id).check_out("out-" + early.id)
    failed.check_out("out-" + failed.id)
    conflict.check_out("out-" + conflict.id).cancel("gone-" + conflict.id).complete("late-" + conflict.id)
    completed.complete("again-" + completed.id)
    unmatched.complete("lone-" + unmatched.id)
    completed.wait_state("Completed")
    early.wait_state("Cancelled")
    conflict.wait_state("Cancelled")
    failed.wait_state("Failed", 40)
    unmatched.wait_inbox(1)
    return completed, early, failed, conflict, unmatched


def copies(shop):
    return shop.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'order_saga\\_%%'")


def test_orders_equal_their_events_and_are_repaired_where_they_do_not(shop):
    completed, early, failed, conflict, unmatched = some_orders(shop)
    completed.wait_mails(PLACED, COMPLETED)
    early.wait_mails(PLACED, CANCELLED)
    settle(shop)
    before, mails = rows(shop), len(shop.pipeline.mailbox.mails(completed.email))
    compared = rebuild(shop, "--dry-run")
    assert (compared["differences"], compared["shown"], compared["unreadable"], compared["carried"]) == (0, [], 0, 0) and compared["events"] >= 12
    refused = run(shop)
    assert refused.returncode == 1 and "stentor-order-saga runs" in refused.stderr and "HINT: stop it" in refused.stderr
    # Wrong in every way: a state changed, an order gone with all that is known of it, one without events, a transition gone.
    shop.query("UPDATE order_saga.order_state SET current_state = 'Failed', version = 7 WHERE correlation_id = %s", completed.id)
    shop.query("DELETE FROM order_saga.order_state WHERE correlation_id = %s", early.id)
    shop.query("DELETE FROM order_saga.inbox_state WHERE correlation_id = %s", early.id)
    shop.query("DELETE FROM order_saga.inbox_state WHERE message_id = %s", "gone-" + conflict.id)
    shop.query("INSERT INTO order_saga.order_state SELECT (jsonb_populate_record(o, jsonb_build_object('correlation_id', gen_random_uuid()))).*"
               " FROM order_saga.order_state o WHERE correlation_id = %s", failed.id)
    done = run(shop, "--dry-run")
    shown = json.loads(done.stdout)["shown"]
    assert done.returncode == 1 and len(shown) == 5
    for line in (f"orders {completed.id} acme: differs", f"orders {early.id} acme: only in the log", f"transitions {early.id} acme: only in the log",
                 f"transitions {conflict.id} acme: differs"):
        assert line in shown
    assert sum(line.endswith("only in the live table") for line in shown) == 1
    shop.saga.stop()
    there = sent(shop)
    assert rebuild(shop)["differences"] == 5 and not copies(shop)
    after = rows(shop)
    # Who ordered is sealed once more, under the same key.
    assert [row[:11] for row in after] == [row[:11] for row in before] and sent(shop) == there
    assert rebuild(shop)["differences"] == 0
    shop.saga.start()
    early.complete("behind-" + early.id)
    early.wait_inbox(4)
    settle(shop)
    assert rebuild(shop, "--dry-run")["differences"] == 0
    assert shop.query("SELECT verdict FROM order_saga.inbox_state WHERE message_id = %s", "behind-" + early.id) == [("conflict",)]
    assert len(shop.pipeline.mailbox.mails(completed.email)) == mails


def test_an_order_that_comes_back_goes_on_and_its_mail_names_the_recipient(shop):
    """Open when it was lost: its time-out and its end find it, and its person is opened for the mail."""
    order = shop.order().check_out()
    order.wait_state("Placed")
    order.wait_mails(PLACED)
    shop.saga.stop()
    shop.query("DELETE FROM order_saga.inbox_state WHERE correlation_id = %s", order.id)
    shop.query("DELETE FROM order_saga.order_state WHERE correlation_id = %s", order.id)
    assert rebuild(shop)["differences"] == 2 and order.state() == "Placed"
    order.complete()
    shop.saga.start()
    order.wait_mails(PLACED, COMPLETED)
    settle(shop)
    assert rebuild(shop, "--dry-run")["differences"] == 0


def test_nobody_who_is_erased_comes_back(shop):
    order = shop.order().check_out().complete()
    order.wait_mails(PLACED, COMPLETED)
    settle(shop)
    shop.saga.stop()
    (hash,), = shop.query("SELECT email_hash FROM order_saga.order_state WHERE correlation_id = %s", order.id)
    keys = shop.query("SELECT count(*) FROM keys.data_keys")
    shop.query("UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()")
    shop.query("DELETE FROM order_saga.order_state WHERE correlation_id = %s", order.id)
    rebuild(shop)
    assert order.row("current_state, length(person), email_hash") == ("Completed", 0, hash)
    assert shop.query("SELECT count(*) FROM keys.data_keys") == keys
    shop.saga.start()


@pytest.mark.skipif(not HAS_POINTS, reason="built without -DSTENTOR_CRASH_POINTS=ON")
@pytest.mark.parametrize("point", ["rebuild.orders_replacing", "rebuild.orders_replaced"])
def test_killed_around_its_commit_the_next_one_ends_it(shop, point):
    order = shop.order().check_out().cancel()
    order.wait_state("Cancelled")
    settle(shop)
    before = rows(shop)
    shop.saga.stop()
    shop.query("UPDATE order_saga.order_state SET total_money = 1 WHERE correlation_id = %s", order.id)
    broken = rows(shop)
    killed = run(shop, STENTOR_CRASH_AT=point)
    assert killed.returncode == -9 and copies(shop)
    assert rows(shop) == (broken if point == "rebuild.orders_replacing" else before)
    rebuild(shop)
    assert rows(shop) == before and not copies(shop)
    shop.saga.start()


@pytest.mark.long
def test_an_order_that_is_older_than_the_log_is_carried(shop):
    old, open_order = shop.order().check_out().complete(), shop.order().check_out()
    old.wait_state("Completed")
    open_order.wait_state("Placed")
    settle(shop)
    last = shop.nats.stream_info("EVENTS")["state"]["last_seq"]
    time.sleep(1.2)  # EVENTS counts from a second behind its first message on
    young = shop.order().check_out().complete()
    young.wait_state("Completed")
    settle(shop)
    answer = json.loads(shop.nats.request("$JS.API.STREAM.PURGE.EVENTS", json.dumps({"seq": last + 1}).encode()))
    assert answer["success"]
    done = run(shop, "--dry-run")
    assert done.returncode == 1 and "the log of 'EVENTS' begins at" in done.stderr and "--carry-older" in done.stderr
    compared = rebuild(shop, "--dry-run", "--carry-older")
    assert compared["differences"] == 0 and compared["carried"] >= 2
    shop.query("UPDATE order_saga.order_state SET total_money = 1 WHERE correlation_id = %s", old.id)
    assert rebuild(shop, "--dry-run", "--carry-older")["differences"] == 0, "nothing says what it was"


def test_the_comparison_is_exact_while_orders_come(shop):
    """Their events come in clear: while originals are erased under the reading, a rebuild asks to be run again."""
    ingest = shop.pipeline.services["ingest"]
    ingest.options["STENTOR_INGEST_RESEAL_MS"] = "3600000"
    ingest.stop()
    ingest.start()
    ending = threading.Event()

    def write():
        while not ending.is_set():
            order = shop_of_its_own.order()
            order.cancel() if len(made) % 3 == 0 else None
            order.check_out()
            order.complete() if len(made) % 2 == 0 else None
            made.append(order)
            time.sleep(0.005)  # slower than order-saga, built with sanitizers
    made, shop_of_its_own = [], Shop(shop.pipeline)
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        wait_until(lambda: len(made) > amount(100, 1500), 120, "some orders")
        for _ in range(amount(1, 5)):
            compared = rebuild(shop, "--dry-run", "--carry-older")
            assert (compared["differences"], compared["shown"]) == (0, [])
        print(f"{compared['events']} events in {compared['seconds']:.1f} s, {len(made)} orders")
    finally:
        ending.set()
        writer.join()
        shop_of_its_own.close()


def test_what_is_no_projection_says_why(shop):
    for name, why in (("digests", "work that waits"), ("batches", "a source"), ("suppressions", "entries of CONFIG"), ("templates", "entries of CONFIG"),
                      ("idempotency", "24 hours"), ("outbox", "by its own service")):
        done = shop.pipeline.run_cli("rebuild", name, admin=True)
        assert done.returncode == 2 and why in done.stderr, done.stderr
