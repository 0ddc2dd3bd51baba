// SPDX-License-Identifier: Apache-2.0
// Entries as gateway's role writes them and searches them, on a real Postgres.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/find/find_sql.h"
#include "stentor/v1/status.pb-c.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

static const int64_t day_us = INT64_C(86400000000);

typedef struct Scene {
    Fixture *fx;
    MasterKey *master;
    Arena *arena;
    FindFold *fold;
    FindDays days;
    int64_t now_us;
} Scene;

static int set_up(void **state)
{
    char url[512];
    char file[132];
    Error err = {0};
    Scene *s = xcalloc(1, sizeof *s);
    s->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_gateway", url, sizeof url), .connections = 1});
    master_key_generate(file);
    s->master = master_key_parse(str_from(file), &err);
    s->arena = arena_new(0);
    s->fold = find_fold_new(s->master);
    s->now_us = clock_now_us();
    admin_exec(s->fx->admin, "TRUNCATE find.entries, find.positions, find.progress");
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    find_fold_free(s->fold);
    arena_free(s->arena);
    master_key_free(s->master);
    fixture_free(s->fx);
    free(s);
    return 0;
}

// A notification of that time, of template `welcome`.
static const char *tell(Scene *s, const char *tenant, int64_t created_us)
{
    char *id = arena_alloc(s->arena, ID_SIZE);
    Error err = {0};
    Str payload = STR_EMPTY;
    Stentor__V1__NotificationStatus event;
    id_new("ntf_", created_us, id);
    stentor__v1__notification_status__init(&event);
    Stentor__V1__Meta meta = meta_make(
        &(MetaSpec){.event_id = "e", .tenant = tenant, .notification_id = id, .at_us = created_us});
    event.meta = &meta;
    event.template_ = pb_borrow("welcome");
    assert_true(event_pack(&event.base, s->arena, &payload, NULL));
    BusMessage message = {
        .subject = str_from(arena_printf(s->arena, "ntf.status.%s.email.queued", tenant)),
        .payload = payload,
        .stored_at_us = created_us};
    assert_true(find_fold_event(s->fold, &message, s->arena, &err));
    return id;
}

static void flush(Scene *s)
{
    Answer answer = {0};
    DbTxn *txn = db_txn_new(s->fx->pool);
    find_sql_write(s->fold, &s->days, s->now_us, txn);
    find_sql_progress(find_fold_as_of_us(s->fold), 0, txn);
    submit_and_wait(s->fx, txn, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("%s", answer.err.text);
    }
    answer_clear(&answer);
    find_days_committed(&s->days);
    find_fold_clear(s->fold);
}

static const DbStatement SEARCH = {
    "test_search", "SELECT notification_id FROM find.search(ARRAY[$1::int8], '-infinity', "
                   "$2::timestamptz, $3::text, $4::int4)"};

// The ids that are found, newest first, with a blank behind each.
static const char *search(
    Scene *s, const char *tenant, const char *as_tenant, int64_t until_us, int most)
{
    Answer answer = {0};
    DbTxn *txn = db_txn_new(s->fx->pool);
    db_txn_tenant(txn, str_from(as_tenant));
    DbParams *p = db_txn_add(txn, &SEARCH, NULL);
    db_i64(p, find_key(s->master, FIND_TEMPLATE, str_from(tenant), STR("welcome")));
    db_time(p, until_us);
    db_text(p, STR_EMPTY);
    db_i32(p, most);
    submit_and_wait(s->fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    char *out = arena_printf(s->arena, "%s", "");
    for (int i = 0; i < db_rows(answer.rows[0]); i++) {
        out = arena_printf(
            s->arena, "%s" STR_FMT " ", out, STR_ARG(db_get_text(answer.rows[0], i, 0)));
    }
    answer_clear(&answer);
    return out;
}

static void what_is_folded_is_found_newest_first_and_once(void **state)
{
    Scene *s = *state;
    const char *older = tell(s, "acme", s->now_us - day_us);
    const char *newer = tell(s, "acme", s->now_us);
    flush(s);
    const char *both = arena_printf(s->arena, "%s %s ", newer, older);
    assert_string_equal(search(s, "acme", "acme", s->now_us + day_us, 10), both);
    admin_exec(s->fx->admin, "INSERT INTO find.entries SELECT * FROM find.entries"); // came twice
    assert_string_equal(search(s, "acme", "acme", s->now_us + day_us, 10), both);
    assert_string_equal(
        search(s, "acme", "acme", s->now_us + day_us, 1), arena_printf(s->arena, "%s ", newer));
    assert_string_equal(
        search(s, "acme", "acme", s->now_us - 1000000, 10), arena_printf(s->arena, "%s ", older));
}

static void another_tenants_entries_are_not_found_by_its_key(void **state)
{
    Scene *s = *state;
    const char *id = tell(s, "globex", s->now_us);
    flush(s);
    assert_string_equal(search(s, "globex", "acme", s->now_us + day_us, 10), "");
    assert_string_equal(
        search(s, "globex", "globex", s->now_us + day_us, 10), arena_printf(s->arena, "%s ", id));
}

static void a_day_is_made_when_its_first_notification_comes(void **state)
{
    Scene *s = *state;
    const char *id = tell(s, "acme", s->now_us - 40 * day_us);
    flush(s);
    assert_string_equal(
        search(s, "acme", "acme", s->now_us, 10), arena_printf(s->arena, "%s ", id));
    assert_true(s->days.since_us <= s->now_us - 40 * day_us);
    assert_true(s->days.until_us > s->now_us + day_us); // midnight waits for nothing
}

static void days_that_are_over_are_dropped_a_few_at_a_time(void **state)
{
    Scene *s = *state;
    tell(s, "acme", s->now_us - 40 * day_us);
    const char *kept = tell(s, "acme", s->now_us);
    flush(s);
    assert_string_equal(
        admin_value(s->fx->admin, "SELECT find.drop_days(now() - interval '30 days', 3)"), "3");
    admin_exec(s->fx->admin, "SELECT find.drop_days(now() - interval '30 days', 1000)");
    assert_string_equal(
        search(s, "acme", "acme", s->now_us + day_us, 10), arena_printf(s->arena, "%s ", kept));
    assert_string_equal(
        admin_value(s->fx->admin, "SELECT find.drop_days(now() - interval '30 days', 3)"), "0");
}

static void no_day_is_made_for_a_time_far_ahead_or_without_end(void **state)
{
    Scene *s = *state;
    const char *const refused[] = {
        "SELECT find.ensure_days(now(), now() + interval '30 days')",
        "SELECT find.ensure_days('-infinity', now())",
        "SELECT find.ensure_days(now() - interval '11 years', now())",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        PGresult *res = PQexec(s->fx->admin, refused[i]);
        assert_int_equal(PQresultStatus(res), PGRES_FATAL_ERROR);
        PQclear(res);
    }
}

static void how_fresh_it_is_never_goes_back(void **state)
{
    Scene *s = *state;
    static const char as_of[] =
        "SELECT (extract(epoch FROM as_of) * 1000000)::int8 FROM find.progress";
    tell(s, "acme", s->now_us);
    flush(s);
    const char *now = arena_printf(s->arena, "%lld", (long long)s->now_us);
    assert_string_equal(admin_value(s->fx->admin, as_of), now);
    tell(s, "acme", s->now_us - day_us); // read again after a loss
    flush(s);
    assert_string_equal(admin_value(s->fx->admin, as_of), now);
}

static void nothing_is_said_of_an_index_whose_position_was_taken_back(void **state)
{
    Scene *s = *state;
    Answer answer = {0};
    const struct {
        const char *sequence;
        int rows;
    } cases[] = {{NULL, 0}, {"6", 0}, {"7", 1}, {"8", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].sequence != NULL) {
            admin_exec(
                s->fx->admin, arena_printf(
                                  s->arena,
                                  "DELETE FROM find.positions; INSERT INTO find.positions"
                                  " VALUES ('find', 'STATUS', %s, now(), now())",
                                  cases[i].sequence));
        }
        DbTxn *txn = db_txn_new(s->fx->pool);
        find_sql_progress(s->now_us, 7, txn);
        submit_and_wait(s->fx, txn, &answer);
        assert_int_equal(answer.err.kind, ERROR_NONE);
        assert_int_equal(db_rows(answer.rows[0]), cases[i].rows);
        answer_clear(&answer);
    }
}

static void a_rewind_takes_what_the_log_has_and_leaves_what_is_older(void **state)
{
    Scene *s = *state;
    const char *older = tell(s, "acme", s->now_us - 5 * day_us);
    tell(s, "acme", s->now_us);
    flush(s);
    admin_exec(
        s->fx->admin, "INSERT INTO find.positions VALUES ('find', 'STATUS', 9, now(), now());"
                      "SELECT find.rewind(now() - interval '3 days')");
    assert_string_equal(
        search(s, "acme", "acme", s->now_us + day_us, 10), arena_printf(s->arena, "%s ", older));
    assert_string_equal(admin_value(s->fx->admin, "SELECT count(*) FROM find.positions"), "0");
    assert_string_equal(admin_value(s->fx->admin, "SELECT count(*) FROM find.progress"), "0");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_folded_is_found_newest_first_and_once),
        TEST(another_tenants_entries_are_not_found_by_its_key),
        TEST(a_day_is_made_when_its_first_notification_comes),
        TEST(days_that_are_over_are_dropped_a_few_at_a_time),
        TEST(no_day_is_made_for_a_time_far_ahead_or_without_end),
        TEST(how_fresh_it_is_never_goes_back),
        TEST(nothing_is_said_of_an_index_whose_position_was_taken_back),
        TEST(a_rewind_takes_what_the_log_has_and_leaves_what_is_older),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
