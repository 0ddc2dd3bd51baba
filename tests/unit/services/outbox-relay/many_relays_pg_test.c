// SPDX-License-Identifier: Apache-2.0
// Four relays on one table at the same time: every row in exactly one batch, every key in order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/services/outbox-relay/outbox_stage.h"

enum { RELAYS = 4, BATCH = 100 };

static const char DDL[] =
    "DROP SCHEMA IF EXISTS notification CASCADE; CREATE SCHEMA notification;"
    "CREATE TABLE notification.outbox (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL,"
    "subject TEXT NOT NULL, payload JSONB NOT NULL, envelope JSONB NOT NULL,"
    "ordering_key TEXT NOT NULL, enqueued_at TIMESTAMPTZ NOT NULL DEFAULT now(),"
    "published_at TIMESTAMPTZ, publish_attempts INTEGER NOT NULL DEFAULT 0, last_error TEXT);"
    "CREATE INDEX outbox_pending ON notification.outbox (enqueued_at) WHERE published_at IS NULL;"
    "DROP TABLE IF EXISTS seen;"
    "CREATE TABLE seen (nr bigint GENERATED ALWAYS AS IDENTITY, id text, key text);"
    "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key,"
    " enqueued_at) SELECT lpad(n::text, 6, '0'), 'acme', 's', '{}', '{}', 'key' || n % 500,"
    " now() - interval '1 h' + n / 10 * interval '1 ms' FROM generate_series(1, 3000) AS n;";

typedef struct Relay {
    Stage *stage;
    DbPool *pool;
    Answer answer;
    char claim_id[32];
    int serial;
    bool publishing; // else claiming
    bool idle;
    bool closed;
} Relay;

static void claim(Relay *relay, int number)
{
    snprintf(relay->claim_id, sizeof relay->claim_id, "r%d-%d", number, relay->serial++);
    DbTxn *txn = stage_claim_txn(relay->pool, relay->stage->sql, relay->claim_id, BATCH, 0);
    db_txn_submit(txn, on_answer, &relay->answer);
}

static const DbStatement SEE = {
    "test_see", "INSERT INTO seen (id, key) SELECT i, k FROM unnest($1::text[], $2::text[])"
                " AS s (i, k)"};

// "Publishes" by writing down the rows, and marks them in the same transaction.
static void publish(Relay *relay, const Batch *batch)
{
    DbTxn *txn = db_txn_new(relay->pool);
    DbParams *see = db_txn_add(txn, &SEE, NULL);
    DbArray *ids = db_array(see, DB_TEXT);
    DbArray *seen_keys = db_array(see, DB_TEXT);
    db_txn_add(txn, &relay->stage->sql->plan, NULL);
    DbParams *mark = db_txn_add(txn, &relay->stage->sql->mark, NULL);
    DbArray *keys = db_array(mark, DB_TEXT);
    DbArray *attempts = db_array(mark, DB_I32);
    db_text(db_txn_add(txn, &relay->stage->sql->release, NULL), str_from(relay->claim_id));
    for (int i = 0; i < batch->count; i++) {
        db_push_text(ids, batch_key(batch, i));
        db_push_text(seen_keys, db_get_text(batch->rows, i, CLAIM_ORDERING_KEY));
        db_push_text(keys, batch_key(batch, i));
        db_push_int(attempts, 0);
    }
    answer_clear(&relay->answer);
    db_txn_submit(txn, on_answer, &relay->answer);
}

static void go_on(Relay *relay, int number)
{
    if (relay->answer.err.kind != ERROR_NONE) {
        fail_msg("%s", relay->answer.err.text);
    }
    if (relay->publishing) {
        relay->publishing = false;
        answer_clear(&relay->answer);
        claim(relay, number);
        return;
    }
    Batch batch = {.answer = relay->answer};
    batch_read(&batch);
    relay->publishing = batch.count > 0;
    relay->idle = batch.count == 0;
    if (relay->publishing) {
        publish(relay, &batch);
    } else {
        answer_clear(&relay->answer);
        claim(relay, number);
    }
}

// Until all rows are published; idle relays go on asking, as keys become free.
static void drain(Stage *stage, Relay *relays)
{
    for (int i = 0; i < RELAYS; i++) {
        relays[i] = (Relay){
            .stage = stage,
            .pool = db_pool_new(
                &stage->fx->loop, &(DbPoolOptions){.url = test_url(), .connections = 1})};
        claim(&relays[i], i);
    }
    int64_t end_us = clock_mono_us() + INT64_C(60) * 1000000;
    bool all_idle = false;
    while (!all_idle && clock_mono_us() < end_us) {
        uv_run(&stage->fx->loop, UV_RUN_ONCE);
        all_idle = true;
        for (int i = 0; i < RELAYS; i++) {
            if (relays[i].answer.done) {
                go_on(&relays[i], i);
            }
            all_idle = all_idle && relays[i].idle;
        }
    }
    assert_true(all_idle);
}

static void close_all(Stage *stage, Relay *relays)
{
    for (int i = 0; i < RELAYS; i++) {
        db_pool_close(relays[i].pool, on_pool_closed, &relays[i].closed);
        assert_true(run_for(&stage->fx->loop, &relays[i].closed, true, WAIT_MS));
        answer_clear(&relays[i].answer);
    }
}

static void every_row_is_in_one_batch_and_every_key_in_order(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    Relay relays[RELAYS];
    drain(stage, relays);
    close_all(stage, relays);
    assert_sql(stage, "3000", "SELECT count(*) FROM seen");
    assert_sql(stage, "3000", "SELECT count(DISTINCT id) FROM seen");
    assert_sql(
        stage, "0",
        "SELECT count(*) FROM (SELECT id < lag(id) OVER (PARTITION BY key ORDER BY nr) AS late"
        " FROM seen) AS s WHERE late");
    assert_sql(stage, "0", "SELECT count(*) FROM notification.outbox WHERE published_at IS NULL");
    assert_sql(stage, "0", "SELECT count(*) FROM stentor_outbox.claims");
    stage_free(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_one_batch_and_every_key_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
