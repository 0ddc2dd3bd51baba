// SPDX-License-Identifier: Apache-2.0
// Choosing a batch's members on a real Postgres, as the role that ingest logs in with.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/campaign/member_choice.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define BATCH "dbt_01HZZZZZZZZZZZZZZZZZZZZZZZ"
#define PEOPLE "people.recipients, people.labels, people.consents"

typedef struct Scene {
    Fixture *fx;
    Arena *arena;
    bool done;
    Error err;
    int32_t look_at;
    MemberPage page;
    int rows;
    char first[3][32];
} Scene;

// Ten recipients of acme, rcp_0 to rcp_9, and as many of globex, who have it all.
static void fill(PGconn *admin)
{
    admin_exec(admin, "TRUNCATE " PEOPLE);
    admin_exec(
        admin, "INSERT INTO people.recipients (tenant_id, recipient_id, identity_type, "
               "identity_id, locale, "
               "updated_at, sequence) SELECT 'acme', 'rcp_' || i, CASE WHEN i < 5 THEN 'guest' "
               "ELSE 'user' END, i, "
               "CASE WHEN i % 3 = 0 THEN 'de-AT' WHEN i % 3 = 1 THEN 'den' END, now(), CASE WHEN i "
               "= 9 THEN 0 ELSE 1 END "
               "FROM generate_series(0, 9) i UNION ALL SELECT 'globex', 'rcp_' || i, 'guest', i, "
               "'de', now(), 1 "
               "FROM generate_series(0, 9) i");
    admin_exec(
        admin, "INSERT INTO people.labels (tenant_id, recipient_id, label) SELECT 'acme', 'rcp_' "
               "|| i, 'even' "
               "FROM generate_series(0, 9, 2) i UNION ALL SELECT 'acme', 'rcp_' || i, 'low' FROM "
               "generate_series(0, 3) i UNION ALL SELECT 'globex', 'rcp_' || i, 'even' FROM "
               "generate_series(0, 9) i");
    admin_exec(
        admin,
        "INSERT INTO people.consents (tenant_id, recipient_id, category, channel, is_granted, "
        "given_at, sequence) VALUES ('acme', 'rcp_1', 'marketing', 'email', true, now(), 1), "
        "('acme', 'rcp_2', 'any', 'any', true, now(), 1), ('acme', 'rcp_2', 'marketing', 'any', "
        "false, "
        "now(), 1), ('acme', 'rcp_3', 'marketing', 'sms', true, now(), 1), ('acme', 'rcp_4', "
        "'any', "
        "'email', true, now(), 1), ('globex', 'rcp_5', 'any', 'any', true, now(), 1)");
}

static int set_up(void **state)
{
    static char url[512];
    Scene *s = calloc(1, sizeof *s);
    url_with("&user=stentor_ingest", url, sizeof url);
    s->fx = fixture_new(
        &(DbPoolOptions){.url = url, .application_name = "choice-test", .connections = 1});
    s->arena = arena_new(0);
    fill(s->fx->admin);
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

static void wait_for(Scene *s)
{
    assert_true(run_for(&s->fx->loop, &s->done, true, WAIT_MS));
    if (s->err.kind != ERROR_NONE) {
        fail_msg("%s", s->err.text);
    }
}

static void on_page(void *ctx, DbTxn *txn, const Error *err)
{
    Scene *s = ctx;
    s->done = true;
    s->err = err != NULL ? *err : (Error){0};
    if (err == NULL) {
        member_page_read(txn, s->look_at, s->arena, &s->page);
    }
}

static void read_page(Scene *s, const char *query, Str after, int32_t look_at)
{
    MemberQuery asked = {
        .tenant = STR("acme"),
        .query = str_from(query),
        .category = CATEGORY_MARKETING,
        .channel = CHANNEL_EMAIL,
        .default_locale = STR("fr-CH"),
    };
    DbTxn *txn = db_txn_new(s->fx->pool);
    db_txn_tenant(txn, STR("acme"));
    member_page_add(txn, &asked, after, look_at);
    s->look_at = look_at;
    s->done = false;
    db_txn_submit(txn, on_page, s);
    wait_for(s);
}

// Pages that look at three recipients, until the end: "0 2 4|6 8|".
static void assert_pages(Scene *s, const char *query, const char *wanted)
{
    Buf out;
    buf_init(&out, 1024);
    Str after = STR_EMPTY;
    for (int pages = 0; pages < 10; pages++) {
        read_page(s, query, after, 3);
        for (size_t i = 0; i < s->page.count; i++) {
            Str id = s->page.ids[i];
            buf_printf(&out, "%s" STR_FMT, i > 0 ? " " : "", STR_ARG(str_slice(id, 4, id.len)));
        }
        buf_char(&out, '|');
        if (s->page.ended) {
            break;
        }
        after = s->page.after;
    }
    if (!str_eq(buf_view(&out), str_from(wanted))) {
        fail_msg("%s: " STR_FMT, query, STR_ARG(buf_view(&out)));
    }
    buf_done(&out);
}

// Number 9 has no record, only an unsubscription.
static void pages_hold_each_match_once_in_order_and_of_the_tenant_alone(void **state)
{
    static const struct {
        const char *query, *pages;
    } cases[] = {
        {"[{}]", "0 1 2|3 4 5|6 7 8||"},
        {"[{\"labels\":[\"even\"]}]", "0 2 4|6 8|"},
        {"[{\"labels\":[\"even\",\"low\"]}]", "0 2||"},
        {"[{\"labels\":[\"unknown\"]}]", "|"},
        {"[{\"labels\":[\"low\"]},{\"labels\":[\"even\"]}]", "0 1 2|3 4 6|8|"},
        {"[{\"labels\":[\"even\"]},{\"identity_types\":[\"user\"]}]", "0 2|4 5|6 7 8||"},
        {"[{\"locales\":[\"de\"]}]", "0|3|6||"},
        {"[{\"locales\":[\"fr\"]}]", "2|5|8||"}, // the tenant's
        {"[{\"locales\":[\"fr\",\"de-at\"],\"labels\":[\"even\"]}]", "0 2|6 8|"},
        {"[{\"identity_types\":[\"guest\"],\"locales\":[\"de\"]}]", "0|3|||"},
        {"[{\"consent\":true}]", "1|4|||"}, // the most particular one counts, and is of the channel
        {"[{\"consent\":true,\"labels\":[\"even\"]}]", "4||"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_pages(*state, cases[i].query, cases[i].pages);
    }
}

// However many there are, a page looks at no more than it is to, by look-ups.
static void a_page_among_many_reads_no_table_as_a_whole(void **state)
{
    Scene *s = *state;
    admin_exec(
        s->fx->admin, "INSERT INTO people.recipients (tenant_id, recipient_id, locale, updated_at, "
                      "sequence) SELECT 'acme', "
                      "'rcp_b' || lpad(i::text, 6, '0'), CASE WHEN i = 15000 THEN 'is' ELSE 'de' "
                      "END, now(), 1 FROM "
                      "generate_series(1, 20000) i");
    admin_exec(
        s->fx->admin,
        "INSERT INTO people.labels (tenant_id, recipient_id, label) SELECT 'acme', 'rcp_b' || "
        "lpad(i::text, 6, '0'), 'vip' FROM generate_series(1, 20000) i");
    admin_exec(s->fx->admin, "ANALYZE " PEOPLE);
    int64_t found = 0;
    int pages = 0;
    for (Str after = STR_EMPTY; pages < 100; after = s->page.after) {
        read_page(s, "[{\"locales\":[\"is\"]}]", after, 1000);
        found += (int64_t)s->page.count;
        pages++;
        if (s->page.ended) {
            break;
        }
    }
    assert_int_equal(found, 1);
    assert_int_equal(pages, 21);
    read_page(s, "[{\"labels\":[\"vip\"],\"locales\":[\"de\"]}]", STR("rcp_b010000"), 1000);
    assert_int_equal(s->page.count, 1000);
    assert_true(str_eq(s->page.ids[0], STR("rcp_b010001")));
    assert_true(str_eq(s->page.after, STR("rcp_b011000")));
    admin_exec(s->fx->admin, "SELECT pg_stat_force_next_flush()");
    run_ms(&s->fx->loop, 1200); // a session reports at most once a second
    read_page(s, "[{}]", STR("rcp_z"), 1);
    assert_string_equal(
        admin_value(
            s->fx->admin,
            "SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE "
            "schemaname = 'people' AND relname IN ('recipients', 'labels', 'consents')"),
        "0");
}

// ---- storing ----

static void on_stored(void *ctx, DbTxn *txn, const Error *err)
{
    Scene *s = ctx;
    s->done = true;
    s->err = err != NULL ? *err : (Error){0};
    const PGresult *res = err == NULL ? db_txn_result(txn, 0) : NULL;
    s->rows = res == NULL ? 0 : db_rows(res);
    if (s->rows > 0) {
        (void)str_to_c(db_get_text(res, 0, 0), s->first[0], sizeof s->first[0]);
        snprintf(s->first[1], sizeof s->first[1], "%d", (int)db_get_int(res, 0, 2));
        snprintf(s->first[2], sizeof s->first[2], "%d", (int)db_get_int(res, 0, 3));
    }
}

static void store(Scene *s, MemberStore page)
{
    page.batch_id = STR(BATCH);
    page.holder = page.holder.len > 0 ? page.holder : STR("me");
    page.lease_ms = 1000;
    DbTxn *txn = db_txn_new(s->fx->pool);
    db_txn_tenant(txn, STR("acme"));
    member_store_add(txn, &page);
    s->done = false;
    db_txn_submit(txn, on_stored, s);
    wait_for(s);
}

static void make_batch(Scene *s)
{
    admin_exec(s->fx->admin, "TRUNCATE ingest.batches CASCADE");
    admin_exec(
        s->fx->admin,
        "INSERT INTO ingest.batches (id, tenant_id, name, category, channel, priority, template, "
        "template_version, locale, rate_per_second, step, status, created_by, created_at, holder, "
        "recipient_query) "
        "VALUES ('" BATCH
        "', 'acme', 'x', 'marketing', 'email', 'low', 't', '1.0.0', '', 0, 500, 'running', "
        "'k', now(), 'me', '[{}]')");
}

static void a_page_is_stored_once_with_how_far_the_choice_has_come(void **state)
{
    Scene *s = *state;
    make_batch(s);
    MemberStore first = {.next_after = STR("rcp_2"), .members = 3, .blob = STR("sealed")};
    store(s, first);
    assert_int_equal(s->rows, 1);
    assert_string_equal(s->first[1], "3");
    store(s, first); // the same page again, as a process does that did not hear of the commit
    assert_int_equal(s->rows, 0);
    store(
        s,
        (MemberStore){.after = STR("rcp_2"), .next_after = STR("rcp_4"), .chunks = 1}); // no match
    assert_int_equal(s->rows, 1);
    MemberStore last = {
        .after = STR("rcp_4"),
        .next_after = STR("rcp_8"),
        .ended = true,
        .chunks = 1,
        .members = 2,
        .blob = STR("x")};
    last.holder = STR("another");
    store(s, last);
    assert_int_equal(s->rows, 0);
    last.holder = STR("me");
    store(s, last);
    assert_string_equal(s->first[0], "running");
    assert_string_equal(s->first[1], "5");
    assert_string_equal(s->first[2], "2");
    assert_string_equal(
        admin_value(
            s->fx->admin,
            "SELECT string_agg(concat_ws(':', number, ordinal, first_index, members), ' ' "
            "ORDER BY number) FROM ingest.batch_chunks"),
        "0:0:0:3 1:1:3:2");
    assert_string_equal(
        admin_value(s->fx->admin, "SELECT chosen_after || is_chosen FROM ingest.batches"),
        "rcp_8true");
}

static void a_query_that_finds_no_recipient_is_completed_and_a_cancelled_batch_takes_no_page(
    void **state)
{
    Scene *s = *state;
    make_batch(s);
    store(s, (MemberStore){.ended = true});
    assert_string_equal(s->first[0], "completed");
    assert_string_equal(
        admin_value(s->fx->admin, "SELECT ended_at IS NOT NULL FROM ingest.batches"), "t");
    make_batch(s);
    admin_exec(s->fx->admin, "UPDATE ingest.batches SET status = 'cancelled'");
    store(s, (MemberStore){.next_after = STR("rcp_2"), .members = 3, .blob = STR("sealed")});
    assert_int_equal(s->rows, 0);
    assert_string_equal(admin_value(s->fx->admin, "SELECT count(*) FROM ingest.batch_chunks"), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            pages_hold_each_match_once_in_order_and_of_the_tenant_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_page_among_many_reads_no_table_as_a_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_page_is_stored_once_with_how_far_the_choice_has_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_query_that_finds_no_recipient_is_completed_and_a_cancelled_batch_takes_no_page,
            set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
