// SPDX-License-Identifier: Apache-2.0
// The projection's statements on a real Postgres, as the role that ingest logs in with.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/recipients/people_sql.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"
#include "tests/unit/common/recipients/people_events.h"

typedef struct Scene {
    Fixture *fx;
    Arena *arena;
    PeopleFold *fold;
} Scene;

static int set_up(void **state)
{
    char url[512];
    Scene *s = xcalloc(1, sizeof *s);
    s->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_ingest", url, sizeof url), .connections = 1});
    s->arena = arena_new(0);
    s->fold = people_fold_new();
    admin_exec(
        s->fx->admin, "TRUNCATE people.recipients, people.addresses, people.labels, "
                      "people.preferences, people.consents");
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    people_fold_free(s->fold);
    arena_free(s->arena);
    fixture_free(s->fx);
    free(s);
    return 0;
}

static void tell(Scene *s, const PersonEvent *event, uint64_t sequence)
{
    Error err = {0};
    BusMessage message = people_message(s->arena, event, sequence);
    if (!people_fold_event(s->fold, &message, s->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static void flush(Scene *s, bool lost_tail)
{
    Answer answer = {0};
    DbTxn *txn = db_txn_new(s->fx->pool);
    people_sql_write(s->fold, lost_tail, txn);
    submit_and_wait(s->fx, txn, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("%s", answer.err.text);
    }
    answer_clear(&answer);
    people_fold_clear(s->fold);
}

static void tell_alone(Scene *s, const PersonEvent *event, uint64_t sequence)
{
    tell(s, event, sequence);
    flush(s, false);
}

static void assert_value(Scene *s, const char *sql, const char *wanted)
{
    assert_string_equal(admin_value(s->fx->admin, sql), wanted);
}

// Everything that there is, in one line.
#define WORLD                                                                                      \
    "SELECT coalesce((SELECT string_agg(concat_ws(':', tenant_id, right(recipient_id, 1), "        \
    "identity_id, sequence, unsubscribed_at IS NOT NULL), ' ' ORDER BY tenant_id, recipient_id)"   \
    " FROM people.recipients), '') || '|' || coalesce((SELECT string_agg("                         \
    "convert_from(substr(address_hash, 1, 1), 'UTF8'), '' ORDER BY tenant_id, recipient_id, "      \
    "position)"                                                                                    \
    " FROM people.addresses), '') || '|' || coalesce((SELECT string_agg(concat_ws(':', category, " \
    "channel, frequency, sequence), ' ' ORDER BY category) FROM people.preferences), '') || '|' "  \
    "|| coalesce((SELECT string_agg(concat_ws(':', category, channel, is_granted), ' ') FROM "     \
    "people.consents), '')"

static PersonEvent *story(Scene *s, int number)
{
    switch (number) {
    case 1:
        return record_event(s->arena, "acme", PERSON_A, "one", "ab");
    case 2:
        return preference_event(
            s->arena, "acme", PERSON_A, STENTOR__V1__CATEGORY__CATEGORY_BILLING, 3);
    case 3:
        return consent_event(s->arena, "acme", PERSON_A, true);
    case 4:
        return unsubscription_event(s->arena, "acme", PERSON_A, true);
    case 5:
        return record_event(s->arena, "acme", PERSON_A, "two", "bc");
    case 6:
        return preference_event(
            s->arena, "acme", PERSON_A, STENTOR__V1__CATEGORY__CATEGORY_BILLING, 4);
    case 7:
        return record_event(s->arena, "globex", PERSON_A, "other", "x");
    default:
        return consent_event(s->arena, "acme", PERSON_A, false);
    }
}

enum { STORY = 8 };

#define STORY_END "acme:A:two:5:t globex:A:other:7:f|bcx|billing:any:weekly:6|marketing:any:f"

static void the_rows_are_the_same_however_the_events_are_cut_into_flushes(void **state)
{
    Scene *s = *state;
    for (unsigned cuts = 0; cuts < 1U << (STORY - 1); cuts += 5) {
        admin_exec(
            s->fx->admin, "TRUNCATE people.recipients, people.addresses, people.labels, "
                          "people.preferences, people.consents");
        for (int i = 1; i <= STORY; i++) {
            tell(s, story(s, i), (uint64_t)i);
            if (i == STORY || (cuts >> (i - 1) & 1U) != 0) {
                flush(s, false);
            }
        }
        assert_value(s, WORLD, STORY_END);
    }
}

static void events_that_are_read_again_change_nothing(void **state)
{
    Scene *s = *state;
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i <= STORY; i++) {
            tell_alone(s, story(s, i), (uint64_t)i);
            if (round == 1) {
                assert_value(s, WORLD, STORY_END); // not even for a moment
            }
        }
    }
}

static void a_removal_takes_what_is_older_and_leaves_what_is_newer(void **state)
{
    Scene *s = *state;
    for (int i = 1; i <= STORY; i++) {
        tell_alone(s, story(s, i), (uint64_t)i);
    }
    tell_alone(s, removal_event(s->arena, "acme", PERSON_A), 9);
    assert_value(s, WORLD, "globex:A:other:7:f|x||");
    tell_alone(s, record_event(s->arena, "acme", PERSON_A, "again", "z"), 10);
    tell_alone(s, removal_event(s->arena, "acme", PERSON_A), 9);
    assert_value(s, WORLD, "acme:A:again:10:f globex:A:other:7:f|zx||");
}

static void who_unsubscribes_before_his_record_comes_stays_unsubscribed(void **state)
{
    Scene *s = *state;
    tell_alone(s, unsubscription_event(s->arena, "acme", PERSON_B, true), 1);
    assert_value(s, WORLD, "acme:B:0:t|||");
    tell_alone(s, record_event(s->arena, "acme", PERSON_B, "b", "b"), 2);
    assert_value(s, WORLD, "acme:B:b:2:t|b||");
    tell_alone(s, unsubscription_event(s->arena, "acme", PERSON_B, false), 3);
    assert_value(s, WORLD, "acme:B:b:2:f|b||");
}

// The log was folded up to 900 and then lost its tail: what is said now has lower numbers.
static void new_messages_win_over_those_that_the_log_has_lost(void **state)
{
    Scene *s = *state;
    tell_alone(s, record_event(s->arena, "acme", PERSON_A, "kept", "k"), 5);
    tell_alone(s, record_event(s->arena, "acme", PERSON_B, "lost", "l"), 900);
    tell_alone(
        s, preference_event(s->arena, "acme", PERSON_B, STENTOR__V1__CATEGORY__CATEGORY_BILLING, 2),
        901);
    tell(s, record_event(s->arena, "acme", PERSON_B, "new", "n"), 6);
    flush(s, true);
    assert_value(s, WORLD, "acme:A:kept:5:f acme:B:new:6:f|kn|billing:any:hourly:5|");
}

static const DbStatement SEE = {
    "test_see", "SELECT (SELECT count(*) FROM people.recipients) + (SELECT count(*) FROM "
                "people.addresses) + (SELECT count(*) FROM people.preferences) + (SELECT count(*) "
                "FROM people.consents)"};

static int64_t seen_by(Scene *s, const char *tenant)
{
    Answer answer = {0};
    DbTxn *txn = db_txn_new(s->fx->pool);
    if (tenant != NULL) {
        db_txn_tenant(txn, str_from(tenant));
    }
    db_txn_add(txn, &SEE, NULL);
    submit_and_wait(s->fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    int64_t seen = db_get_int(answer.rows[0], 0, 0);
    answer_clear(&answer);
    return seen;
}

static void a_tenant_sees_its_own_people_only(void **state)
{
    Scene *s = *state;
    for (int i = 1; i <= STORY; i++) {
        tell_alone(s, story(s, i), (uint64_t)i);
    }
    assert_int_equal(seen_by(s, "acme"), 5);
    assert_int_equal(seen_by(s, "globex"), 2);
    assert_int_equal(seen_by(s, "initech"), 0);
    assert_int_equal(seen_by(s, NULL), 0);
}

static void one_flush_of_two_thousand_people_is_a_handful_of_statements(void **state)
{
    Scene *s = *state;
    for (uint64_t i = 1; i <= 2000; i++) {
        const char *id = arena_printf(s->arena, "rcp_01KAGTQ5M0000000000000%04d", (int)i);
        tell(s, record_event(s->arena, i % 3 == 0 ? "acme" : "globex", id, "x", "ab"), i);
    }
    flush(s, false); // more than DB_STATEMENTS_MAX would be refused
    assert_value(
        s,
        "SELECT count(*) || ' ' || (SELECT count(*) FROM people.addresses) FROM "
        "people.recipients",
        "2000 4000");
}

static const char *numbered(Scene *s, int number)
{
    return arena_printf(s->arena, "rcp_01KAGTQ5M0000000000000%04d", number);
}

// What a projector folds into one transaction at most, when every record is as large as one may be.
static void a_flush_of_the_largest_records_is_written(void **state)
{
    Scene *s = *state;
    const int count = 2 * PEOPLE_FLUSH_BYTES / PEOPLE_EVENT_MAX + 1;
    char *large = arena_zalloc(s->arena, PEOPLE_EVENT_MAX);
    Stentor__V1__Sealed name = STENTOR__V1__SEALED__INIT;
    name.ciphertext = pb_data(str_of(large, PEOPLE_EVENT_MAX - 256));
    for (int i = 0; i < count; i++) {
        PersonEvent *event = record_event(s->arena, "acme", numbered(s, i), "x", "");
        event->recipient->name = &name;
        tell(s, event, (uint64_t)i + 1);
    }
    flush(s, false);
    assert_value(
        s, "SELECT count(*) || ' ' || sum(length(name)) / 1000000 FROM people.recipients",
        "113 14");
}

// Each address is a row, much larger than in the event.
static void a_flush_of_records_with_all_their_addresses_is_written(void **state)
{
    Scene *s = *state;
    char marks[PEOPLE_ADDRESSES_MAX + 1] = {0};
    for (int i = 0; i < PEOPLE_ADDRESSES_MAX; i++) {
        marks[i] = (char)(i + 1);
    }
    for (int i = 0; i < 2 * PEOPLE_FLUSH_MAX - 1; i++) {
        tell(s, record_event(s->arena, "acme", numbered(s, i), "x", marks), (uint64_t)i + 1);
    }
    flush(s, false);
    assert_value(s, "SELECT count(*) FROM people.addresses", "51100");
}

// Plans of six flushes on empty tables are kept by the connection; then 3,000 people come,
// analysed while there was one. Each flush must still be look-ups by key.
static void plans_made_while_the_tables_were_empty_serve_when_they_are_large(void **state)
{
    Scene *s = *state;
    uint64_t sequence = 0;
    for (int i = 0; i < 6; i++) {
        tell_alone(s, record_event(s->arena, "acme", PERSON_A, "a", "ab"), ++sequence);
        tell_alone(s, removal_event(s->arena, "acme", PERSON_A), ++sequence);
    }
    admin_exec(s->fx->admin, "ANALYZE people.recipients, people.addresses");
    for (int flushes = 0; flushes < 6; flushes++) {
        for (int i = 0; i < 500; i++) {
            sequence++;
            const char *id = arena_printf(s->arena, "rcp_01KAGTQ5M00000000000%06d", (int)sequence);
            tell(s, record_event(s->arena, "acme", id, id, "ab"), sequence);
        }
        flush(s, false);
    }
    admin_exec(s->fx->admin, "SELECT pg_stat_force_next_flush()");
    assert_value(
        s,
        "SELECT coalesce(sum(seq_tup_read), 0) < 1000 FROM pg_stat_user_tables WHERE "
        "schemaname = 'people' AND relname IN ('addresses', 'preferences', 'consents')",
        "t");
    tell_alone(s, removal_event(s->arena, "acme", "rcp_01KAGTQ5M00000000000000500"), ++sequence);
    assert_value(s, "SELECT count(*) FROM people.addresses", "5998");
}

#define LABELS_OF_A                                                                                \
    "SELECT string_agg(label, ' ' ORDER BY label) FROM people.labels "                             \
    "WHERE recipient_id = '" PERSON_A "'"

static PersonEvent *labelled(Scene *s, const char *first, const char *second)
{
    PersonEvent *event = record_event(s->arena, "acme", PERSON_A, "one", "a");
    return with_label(s->arena, with_label(s->arena, event, first), second);
}

static void labels_are_those_of_the_last_record_and_go_with_it(void **state)
{
    Scene *s = *state;
    tell_alone(s, labelled(s, "admin", "vip"), 1);
    assert_value(s, LABELS_OF_A, "admin vip");
    tell(s, labelled(s, "night", "night"), 2); // twice in one flush, and one label twice
    tell_alone(s, labelled(s, "day", "vip"), 3);
    assert_value(s, LABELS_OF_A, "day vip");
    tell_alone(s, labelled(s, "admin", "old"), 2); // read again: an older record changes nothing
    assert_value(s, LABELS_OF_A, "day vip");
    tell_alone(s, removal_event(s->arena, "acme", PERSON_A), 2); // and an older removal neither
    assert_value(s, LABELS_OF_A, "day vip");
    tell_alone(s, removal_event(s->arena, "acme", PERSON_A), 4);
    assert_value(s, "SELECT count(*) FROM people.labels", "0");
}

static void labels_go_where_an_erasure_has_deleted_the_record_before(void **state)
{
    Scene *s = *state;
    tell_alone(s, labelled(s, "admin", "vip"), 1);
    admin_exec(s->fx->admin, "DELETE FROM people.recipients");
    tell_alone(s, removal_event(s->arena, "acme", PERSON_A), 2);
    assert_value(s, "SELECT count(*) FROM people.labels", "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_rows_are_the_same_however_the_events_are_cut_into_flushes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            events_that_are_read_again_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_removal_takes_what_is_older_and_leaves_what_is_newer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            who_unsubscribes_before_his_record_comes_stays_unsubscribed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            new_messages_win_over_those_that_the_log_has_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            plans_made_while_the_tables_were_empty_serve_when_they_are_large, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            labels_are_those_of_the_last_record_and_go_with_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            labels_go_where_an_erasure_has_deleted_the_record_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tenant_sees_its_own_people_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            one_flush_of_two_thousand_people_is_a_handful_of_statements, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_flush_of_the_largest_records_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_flush_of_records_with_all_their_addresses_is_written, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
