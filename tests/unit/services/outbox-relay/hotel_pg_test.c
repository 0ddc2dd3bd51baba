// SPDX-License-Identifier: Apache-2.0
// The hotel's notification.outbox and the multi-tenant service's outbox: events with
// published_at, in order within an ordering key.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/services/outbox-relay/outbox_stage.h"

static const char DDL[] =
    "DROP SCHEMA IF EXISTS notification CASCADE; CREATE SCHEMA notification;"
    "CREATE TABLE notification.outbox ("
    "id TEXT PRIMARY KEY, "
    "tenant_id TEXT NOT NULL,"
    "subject TEXT NOT NULL,"
    "payload JSONB NOT NULL,"
    "envelope JSONB NOT NULL,"
    "ordering_key TEXT NOT NULL,"
    "enqueued_at TIMESTAMPTZ NOT NULL DEFAULT now(),"
    "published_at TIMESTAMPTZ,"
    "publish_attempts INTEGER NOT NULL DEFAULT 0,"
    "last_error TEXT"
    ");"
    "CREATE INDEX outbox_pending ON notification.outbox (enqueued_at) WHERE published_at IS NULL;"
    // Two keys, turn by turn, all of one transaction: the same time for all.
    "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key)"
    " SELECT 'row' || n, 'acme', 'guest.checked_in.v1', '{\"n\": 1}', '{}', 'key' || n % 2"
    " FROM generate_series(1, 6) AS n;";

static const char TENANT_DDL[] =
    "DROP TABLE IF EXISTS outbox; DROP DOMAIN IF EXISTS ULID; CREATE DOMAIN ULID AS TEXT;"
    "CREATE TABLE outbox ("
    "id ULID PRIMARY KEY,"
    "aggregate_id TEXT NOT NULL,"
    "aggregate_type TEXT NOT NULL,"
    "event_type TEXT NOT NULL,"
    "payload JSONB NOT NULL,"
    "headers JSONB NOT NULL,"
    "created_at TIMESTAMPTZ NOT NULL DEFAULT now(),"
    "published_at TIMESTAMPTZ"
    ");"
    "CREATE INDEX ix_outbox_unpublished ON outbox (created_at) WHERE published_at IS NULL;"
    "INSERT INTO outbox (id, aggregate_id, aggregate_type, event_type, payload, headers)"
    " SELECT '01J0000000000000000000000' || n, 'a1', 'order', 'order.placed', '{\"n\": 1}',"
    " '{\"tenant_id\": \"acme\"}' FROM generate_series(1, 3) AS n;";

// "row1 row2": the batch's keys in order.
static const char *keys(const Batch *batch)
{
    static char text[512];
    text[0] = '\0';
    for (int i = 0; i < batch->count; i++) {
        Str key = batch_key(batch, i);
        size_t len = strlen(text);
        snprintf(
            text + len, sizeof text - len, "%s%.*s", len == 0 ? "" : " ", (int)key.len, key.ptr);
    }
    return text;
}

static void assert_claims(Stage *stage, const char *claim_id, int limit, const char *wanted)
{
    Batch batch;
    stage_claim(stage, claim_id, limit, &batch);
    assert_string_equal(keys(&batch), wanted);
    batch_done(&batch);
}

static void a_key_is_in_one_claim_at_a_time(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    assert_claims(stage, "c1", 1, "row1");
    assert_claims(stage, "c2", 10, "row2 row4 row6"); // key1 is held by c1
    assert_claims(stage, "c3", 10, "");
    assert_true(stage_release(stage, "c1"));
    assert_claims(stage, "c4", 10, "row1 row3 row5");
    stage_free(stage);
}

static void published_rows_are_marked_and_the_next_come(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    Batch batch;
    stage_claim(stage, "c1", 4, &batch);
    assert_string_equal(keys(&batch), "row1 row2 row3 row4");
    assert_true(str_eq(db_get_text(batch.rows, 0, CLAIM_ORDERING_KEY), STR("key1")));
    assert_int_equal(batch_attempt(&batch, 0), 0);
    assert_int_equal(stage_mark(stage, &batch, 0, 3), 3);
    assert_int_equal(stage_give_back(stage, "c1", &batch, 3, "stream is full"), 1);
    assert_true(stage_release(stage, "c1"));
    batch_done(&batch);
    assert_sql(
        stage, "row4 1 stream is full",
        "SELECT id || ' ' || publish_attempts || ' ' || last_error FROM notification.outbox"
        " WHERE published_at IS NULL AND publish_attempts > 0");
    assert_claims(stage, "c2", 10, "row4 row5 row6");
    stage_free(stage);
}

static void a_skipped_row_holds_back_the_later_ones_of_its_key(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    stage_sql(stage, "BEGIN; SELECT FROM notification.outbox WHERE id = 'row3' FOR UPDATE");
    assert_claims(stage, "c1", 10, "row1 row2 row4 row6");
    stage_sql(stage, "ROLLBACK");
    assert_true(stage_release(stage, "c1"));
    assert_claims(stage, "c2", 10, "row1 row2 row3 row4 row5 row6");
    stage_free(stage);
}

static void a_refused_row_lets_its_followers_pass(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    Batch batch;
    stage_claim(stage, "c1", 1, &batch);
    assert_int_equal(stage_refuse(stage, "c1", &batch, 0, "fields.type is empty"), 1);
    assert_int_equal(stage_refuse(stage, "other", &batch, 0, "not mine"), 0);
    assert_true(stage_release(stage, "c1"));
    batch_done(&batch);
    assert_sql(
        stage, "fields.type is empty",
        "SELECT last_error FROM notification.outbox WHERE id = 'row1' AND published_at IS NULL");
    assert_claims(stage, "c2", 10, "row2 row3 row4 row5 row6");
    assert_true(stage_release(stage, "c2"));
    stage_sql(stage, "UPDATE stentor_outbox.rejected_rows SET again = true");
    assert_claims(stage, "c3", 1, "row1");
    stage_free(stage);
}

static void a_busy_key_does_not_hide_the_others(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    stage_sql(
        stage, "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope,"
               " ordering_key) SELECT 'a' || n, 'acme', 's', '{}', '{}', 'hot'"
               " FROM generate_series(1, 14) AS n");
    stage_sql(
        stage, "UPDATE notification.outbox SET enqueued_at = now() - interval '1 h'"
               " WHERE ordering_key = 'hot'");
    assert_int_equal(stage_claims(stage, "c1", 4), 4);
    assert_claims(stage, "c2", 4, "row1 row2 row3 row4");
    stage_free(stage);
}

static void old_published_rows_go(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    stage_sql(
        stage, "UPDATE notification.outbox SET published_at = now() - interval '8 days'"
               " WHERE id IN ('row1', 'row2')");
    assert_int_equal(stage_keep(stage, "outbox_keep_published", 100), 2);
    stage_sql(
        stage, "INSERT INTO stentor_outbox.rejected_rows VALUES ('hotel', 'row1', 'r', now()),"
               " ('hotel', 'row3', 'r', now())");
    assert_int_equal(stage_keep(stage, "outbox_keep_rejected", 100), 1);
    assert_int_equal(stage_backlog(stage, 100), 3);
    stage_free(stage);
}

static void plans_walk_the_pending_index_without_statistics(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    stage_sql(
        stage, "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope,"
               " ordering_key) SELECT 'b' || n, 'acme', 's', '{}', '{}', 'k' || n"
               " FROM generate_series(1, 20000) AS n");
    stage_sql(
        stage, "INSERT INTO stentor_outbox.claims SELECT 'c' || n, 'hotel', 'r', now(), now(),"
               " array_agg('x' || n || '/' || i), array_agg(0), array_agg('y' || n || '/' || i)"
               " FROM generate_series(1, 60) AS n, generate_series(1, 1000) AS i GROUP BY n");
    stage_sql(stage, "ANALYZE stentor_outbox.claims");
    const char *plan = stage_explain(
        stage, &stage->sql->claim, "text, text, int8, int4, int8", "'c', 'r', 1, 1000, NULL");
    assert_plan(plan, "hashed SubPlan", "Anti Join");
    assert_plan(plan, "using outbox_pending", "Seq Scan on outbox");
    assert_plan(plan, "Presorted Key: t.enqueued_at", "Hash Join");
    assert_plan(plan, "using outbox_pkey", "Join Filter: (f.id = t");
    plan = stage_explain(
        stage, &stage->sql->mark, "text[], int4[]",
        "array_fill('b1'::text, ARRAY[1000]), array_fill(0, ARRAY[1000])");
    assert_plan(plan, "using outbox_pkey", "Seq Scan");
    stage_free(stage);
}

static void a_domain_over_text_is_a_key(void **state)
{
    (void)state;
    Stage *stage = stage_new(TENANT_DDL, "tenant-service");
    Batch batch;
    stage_claim(stage, "c1", 2, &batch);
    assert_int_equal(batch.count, 2);
    assert_int_equal(stage_claims(stage, "c2", 10), 0); // one aggregate
    stage_expire(stage);
    batch_done(&batch);
    stage_claim(stage, "c3", 10, &batch);
    assert_string_equal(keys(&batch), "01J00000000000000000000001 01J00000000000000000000002");
    stage_publish(stage, "c3", &batch);
    batch_done(&batch);
    assert_sql(stage, "2", "SELECT count(*) FROM outbox WHERE published_at IS NOT NULL");
    assert_int_equal(stage_claims(stage, "c4", 10), 1);
    stage_free(stage);
}

static void a_row_that_the_application_holds_is_marked_later_under_the_same_claim(void **state)
{
    (void)state;
    Stage *stage = stage_new(DDL, "hotel");
    Batch batch;
    stage_claim(stage, "c1", 10, &batch);
    stage_sql(stage, "BEGIN; SELECT FROM notification.outbox WHERE id = 'row2' FOR UPDATE");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    DbParams *p = db_txn_add(txn, &stage->sql->mark, NULL);
    DbArray *keys = db_array(p, DB_TEXT), *attempts = db_array(p, DB_I32);
    for (int i = 0; i < 6; i++) {
        db_push_text(keys, batch_key(&batch, i));
        db_push_int(attempts, 0);
    }
    db_text(db_txn_add(txn, &stage->sql->release, NULL), STR("c1"));
    Answer answer = {0};
    submit_and_wait(stage->fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_int_equal(db_rows(answer.rows[0]), 1);
    assert_int_equal(db_get_int(answer.rows[0], 0, 0), 5);
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 1), STR("row2")));
    assert_int_equal(db_rows(answer.rows[1]), 0); // not released
    answer_clear(&answer);
    stage_sql(stage, "COMMIT");
    assert_int_equal(stage_claims(stage, "c2", 10), 0);
    for (int i = 0; i < 6; i++) {
        if (str_eq(batch_key(&batch, i), STR("row2"))) {
            assert_int_equal(stage_mark(stage, &batch, i, i + 1), 1);
        }
    }
    assert_true(stage_release(stage, "c1"));
    assert_sql(
        stage, "6 1",
        "SELECT count(*) || ' ' || max(publish_attempts) FROM notification.outbox"
        " WHERE published_at IS NOT NULL");
    batch_done(&batch);
    stage_free(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_in_one_claim_at_a_time),
        cmocka_unit_test(published_rows_are_marked_and_the_next_come),
        cmocka_unit_test(a_skipped_row_holds_back_the_later_ones_of_its_key),
        cmocka_unit_test(a_refused_row_lets_its_followers_pass),
        cmocka_unit_test(a_busy_key_does_not_hide_the_others),
        cmocka_unit_test(old_published_rows_go),
        cmocka_unit_test(plans_walk_the_pending_index_without_statistics),
        cmocka_unit_test(a_domain_over_text_is_a_key),
        cmocka_unit_test(a_row_that_the_application_holds_is_marked_later_under_the_same_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
