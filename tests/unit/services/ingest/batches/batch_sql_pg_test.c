// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/campaign/batch_sql.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define BATCH "dbt_01HZZZZZZZZZZZZZZZZZZZZZZZ"
#define OTHER "dbt_01HZZZZZZZZZZZZZZZZZZZZZZY"

typedef struct Scene {
    Fixture *fx;
    Arena *arena;
    DbTxn *txn;
    bool done;
    Error err;
    BatchRow rows[4]; // of the last result, when it is of batches
    int count;
    bool of_batches;
    char text[4][64]; // else its first columns
} Scene;

static int set_up(void **state)
{
    static char url[512];
    Scene *s = calloc(1, sizeof *s);
    url_with("&user=stentor_ingest", url, sizeof url);
    s->fx = fixture_new(
        &(DbPoolOptions){.url = url, .application_name = "batch-test", .connections = 1});
    s->arena = arena_new(0);
    admin_exec(s->fx->admin, "TRUNCATE ingest.batches CASCADE");
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    fixture_free(s->fx);
    arena_free(s->arena);
    free(s);
    return 0;
}

static void on_done(void *ctx, DbTxn *txn, const Error *err)
{
    Scene *s = ctx;
    s->done = true;
    s->err = err != NULL ? *err : (Error){0};
    s->count = 0;
    const PGresult *res = err == NULL ? db_txn_result(txn, 0) : NULL;
    for (int i = 0; res != NULL && i < db_rows(res) && i < 4; i++) {
        Error broken = {0};
        if (s->of_batches) {
            assert_true(batch_sql_read(res, i, s->arena, &s->rows[i], &broken));
        }
        for (int column = 0; !s->of_batches && i == 0 && column < PQnfields(res) && column < 4;
             column++) {
            Str text = db_get_text(res, i, column);
            (void)str_to_c(text, s->text[column], sizeof s->text[column]);
        }
        s->count++;
    }
}

static DbTxn *begin(Scene *s, const char *tenant, bool of_batches)
{
    s->txn = db_txn_new(s->fx->pool);
    s->of_batches = of_batches;
    s->done = false;
    memset(s->text, 0, sizeof s->text);
    db_txn_tenant(s->txn, str_from(tenant));
    return s->txn;
}

static void run_it(Scene *s)
{
    db_txn_submit(s->txn, on_done, s);
    assert_true(run_for(&s->fx->loop, &s->done, true, WAIT_MS));
    if (s->err.kind != ERROR_NONE) {
        fail_msg("%s", s->err.text);
    }
}

static void make_batch(Scene *s, const char *id)
{
    BatchRow row = {
        .id = str_from(id),
        .tenant = STR("acme"),
        .name = STR("spring"),
        .category = CATEGORY_MARKETING,
        .channel = CHANNEL_EMAIL,
        .priority = PRIORITY_LOW,
        .template_key = STR("welcome"),
        .template_version = STR("1.0.0"),
        .locale = STR_EMPTY,
        .step = 10,
        .created_by = STR("key"),
        .created_at_us = INT64_C(1795199136000000),
    };
    batch_sql_create(begin(s, "acme", false), &row, STR_EMPTY);
    run_it(s);
}

static const char *add_part(Scene *s, const char *tenant, int part, const char *hash, int32_t count)
{
    Str blob = STR("sealed");
    BatchPart added = {
        .batch_id = STR(BATCH),
        .part = part,
        .hash = str_from(hash),
        .counts = &count,
        .blobs = &blob,
        .chunks = count > 0 ? 1 : 0,
    };
    batch_sql_add_part(begin(s, tenant, false), &added);
    run_it(s);
    return s->text[0];
}

static void move(Scene *s, BatchStatus from, BatchStatus to)
{
    batch_sql_move(
        begin(s, "acme", true), STR(BATCH), (BatchState){from, false}, (BatchState){to, false}, 0);
    run_it(s);
}

static int claim(Scene *s, const char *holder)
{
    s->txn = db_txn_new(s->fx->pool);
    s->of_batches = true;
    s->done = false;
    batch_sql_claim(s->txn, str_from(holder), 60000, 10);
    run_it(s);
    return s->count;
}

static const char *checkpoint(Scene *s, const char *holder, BatchMove to)
{
    to.id = STR(BATCH);
    to.holder = str_from(holder);
    to.lease_ms = 60000;
    batch_sql_checkpoint(begin(s, "acme", false), &to);
    run_it(s);
    return s->text[0];
}

static void a_part_is_added_once_and_only_to_a_draft(void **state)
{
    Scene *s = *state;
    make_batch(s, BATCH);
    assert_string_equal(add_part(s, "acme", 1, "one", 20), "added");
    assert_string_equal(add_part(s, "acme", 1, "one", 20), "repeated");
    assert_string_equal(add_part(s, "acme", 1, "two", 20), "other_body");
    assert_string_equal(add_part(s, "rival", 2, "two", 20), "missing");
    assert_string_equal(add_part(s, "acme", 2, "full", BATCH_MEMBERS_MAX), "full");
    assert_string_equal(add_part(s, "acme", 3, "none", 0), "added");
    assert_string_equal(add_part(s, "acme", 7, "three", 5), "added");
    assert_string_equal(
        admin_value(
            s->fx->admin,
            "SELECT string_agg(number || ':' || first_index || '+' || members, ' ' ORDER BY number)"
            " FROM ingest.batch_chunks"),
        "0:0+20 1:20+5");
    move(s, BATCH_DRAFT, BATCH_RUNNING);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->rows[0].total, 25);
    assert_string_equal(add_part(s, "acme", 8, "late", 5), "not_draft");
    assert_string_equal(add_part(s, "acme", 1, "one", 20), "repeated");
    move(s, BATCH_DRAFT, BATCH_CANCELLED);
    assert_int_equal(s->count, 0); // it is not what it was read as any more
}

static void one_holds_it_and_after_its_lease_another(void **state)
{
    Scene *s = *state;
    make_batch(s, BATCH);
    make_batch(s, OTHER);
    assert_string_equal(add_part(s, "acme", 1, "one", 20), "added");
    assert_int_equal(claim(s, "a"), 0); // drafts
    move(s, BATCH_DRAFT, BATCH_RUNNING);
    assert_int_equal(claim(s, "a"), 1);
    assert_int_equal(claim(s, "b"), 0);
    assert_string_equal(checkpoint(s, "b", (BatchMove){.next_offset = 10}), ""); // not its own
    assert_string_equal(
        checkpoint(s, "a", (BatchMove){.next_offset = 10, .members = 10}), "running");
    assert_string_equal(checkpoint(s, "a", (BatchMove){.next_offset = 10, .members = 10}), "");
    admin_exec(s->fx->admin, "UPDATE ingest.batches SET lease_until = now() - interval '1 s'");
    assert_int_equal(claim(s, "b"), 1);
    assert_int_equal(s->rows[0].next_offset, 10);
    assert_int_equal(s->rows[0].accepted, 10);
    BatchMove end = {.offset = 10, .next_chunk = 1, .members = 10, .done = true};
    assert_string_equal(checkpoint(s, "a", end), "");
    assert_string_equal(
        admin_value(s->fx->admin, "SELECT count(data) FROM ingest.batch_chunks"), "1");
    assert_string_equal(checkpoint(s, "b", end), "completed");
    assert_string_equal(
        admin_value(s->fx->admin, "SELECT count(data) FROM ingest.batch_chunks"), "0");
    assert_int_equal(claim(s, "c"), 0);
}

static void a_scheduled_one_is_claimed_at_its_time_and_a_paused_one_never(void **state)
{
    Scene *s = *state;
    make_batch(s, BATCH);
    assert_string_equal(add_part(s, "acme", 1, "one", 20), "added");
    admin_exec(
        s->fx->admin, "UPDATE ingest.batches SET status = 'scheduled', scheduled_for = now() + "
                      "interval '1 hour'");
    assert_int_equal(claim(s, "a"), 0);
    admin_exec(
        s->fx->admin, "UPDATE ingest.batches SET scheduled_for = now() - interval '1 s', paused = "
                      "true");
    assert_int_equal(claim(s, "a"), 0);
    admin_exec(s->fx->admin, "UPDATE ingest.batches SET paused = false");
    assert_int_equal(claim(s, "a"), 1);
    assert_int_equal(s->rows[0].status, BATCH_RUNNING);
    assert_true(s->rows[0].started_at_us > 0);
}

static void a_chunk_keeps_the_time_at_which_it_was_begun(void **state)
{
    Scene *s = *state;
    make_batch(s, BATCH);
    assert_string_equal(add_part(s, "acme", 1, "one", 20), "added");
    move(s, BATCH_DRAFT, BATCH_RUNNING);
    assert_int_equal(claim(s, "a"), 1);
    static const char begun[] = "SELECT started_at FROM ingest.batch_chunks";
    char first[64];
    for (int i = 0; i < 2; i++) {
        batch_sql_load_chunk(begin(s, "acme", false), STR(BATCH), STR("a"), 0);
        run_it(s);
        assert_int_equal(s->count, 1);
        if (i == 0) {
            snprintf(first, sizeof first, "%s", admin_value(s->fx->admin, begun));
        }
    }
    assert_string_equal(admin_value(s->fx->admin, begun), first);
    batch_sql_load_chunk(begin(s, "acme", false), STR(BATCH), STR("b"), 0);
    run_it(s);
    assert_int_equal(s->count, 0);
}

int main(void)
{
#define ON_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ON_SCENE(a_part_is_added_once_and_only_to_a_draft),
        ON_SCENE(one_holds_it_and_after_its_lease_another),
        ON_SCENE(a_scheduled_one_is_claimed_at_its_time_and_a_paused_one_never),
        ON_SCENE(a_chunk_keeps_the_time_at_which_it_was_begun),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
