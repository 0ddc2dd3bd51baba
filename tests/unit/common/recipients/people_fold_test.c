// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/common/recipients/people_events.h"

typedef struct Scene {
    Arena *arena;
    PeopleFold *fold;
    uint64_t sequence;
} Scene;

static int set_up(void **state)
{
    Scene *s = xcalloc(1, sizeof *s);
    s->arena = arena_new(0);
    s->fold = people_fold_new();
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    people_fold_free(s->fold);
    arena_free(s->arena);
    free(s);
    return 0;
}

static void tell(Scene *s, const PersonEvent *event)
{
    Error err = {0};
    BusMessage message = people_message(s->arena, event, ++s->sequence);
    if (!people_fold_event(s->fold, &message, s->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static void assert_refused(Scene *s, BusMessage message, const char *part)
{
    Error err = {0};
    assert_false(people_fold_event(s->fold, &message, s->arena, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, part));
}

static const PersonFold *only(Scene *s)
{
    size_t count = 0;
    PersonFold *const *rows = people_fold_rows(s->fold, &count);
    assert_int_equal(count, 1);
    return rows[0];
}

static void the_later_of_two_records_stands(void **state)
{
    Scene *s = *state;
    tell(s, record_event(s->arena, "acme", PERSON_A, "first", "ab"));
    tell(s, record_event(s->arena, "acme", PERSON_A, "second", "c"));
    assert_string_equal(only(s)->record->identity_id, "second");
    assert_int_equal(only(s)->record->n_addresses, 1);
    assert_int_equal(only(s)->record_sequence, 2);
}

static void one_entry_for_each_category_and_channel(void **state)
{
    Scene *s = *state;
    const Stentor__V1__Category marketing = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    tell(s, preference_event(s->arena, "acme", PERSON_A, marketing, 3));
    tell(s, preference_event(s->arena, "acme", PERSON_A, 0, 2));
    tell(s, preference_event(s->arena, "acme", PERSON_A, marketing, 4));
    int entries = 0;
    for (const PreferenceFold *e = only(s)->preferences; e != NULL; e = e->next) {
        entries++;
        assert_int_equal(e->said->frequency, e->said->category == marketing ? 4 : 2);
    }
    assert_int_equal(entries, 2);
}

static void a_removal_takes_away_what_was_said_before_and_nothing_after(void **state)
{
    Scene *s = *state;
    tell(s, record_event(s->arena, "acme", PERSON_A, "before", "a"));
    tell(s, consent_event(s->arena, "acme", PERSON_A, true));
    tell(s, unsubscription_event(s->arena, "acme", PERSON_A, true));
    tell(s, removal_event(s->arena, "acme", PERSON_A));
    const PersonFold *person = only(s);
    assert_null(person->record);
    assert_null(person->consents);
    assert_int_equal(person->unsubscribed_sequence, 0);
    assert_int_equal(person->removed_sequence, 4);
    tell(s, record_event(s->arena, "acme", PERSON_A, "after", ""));
    assert_string_equal(only(s)->record->identity_id, "after");
    assert_int_equal(only(s)->removed_sequence, 4);
}

static void the_same_id_of_two_tenants_is_two_people(void **state)
{
    Scene *s = *state;
    size_t count = 0;
    tell(s, record_event(s->arena, "acme", PERSON_A, "a", ""));
    tell(s, record_event(s->arena, "globex", PERSON_A, "b", ""));
    (void)people_fold_rows(s->fold, &count);
    assert_int_equal(count, 2);
    people_fold_clear(s->fold);
    (void)people_fold_rows(s->fold, &count);
    assert_int_equal(count, 0);
}

static void the_first_sequence_is_known_also_of_what_cannot_be_read(void **state)
{
    Scene *s = *state;
    assert_int_equal(people_fold_first(s->fold), 0);
    s->sequence = 6;
    tell(s, record_event(s->arena, "acme", PERSON_A, "a", ""));
    BusMessage bad = {.subject = STR("ppl.acme"), .payload = STR("\xff"), .sequence = 9};
    assert_refused(s, bad, "");
    assert_int_equal(people_fold_first(s->fold), 7);
}

static void an_event_of_another_tenant_than_its_subjects_is_refused(void **state)
{
    Scene *s = *state;
    PersonEvent *event = record_event(s->arena, "acme", PERSON_A, "a", "");
    BusMessage message = people_message(s->arena, event, 1);
    message.subject = STR("ppl.globex");
    assert_refused(s, message, "tenant");
}

// Each would be refused by Postgres too, and the projection would stand still for ever.
static void what_no_table_takes_is_refused(void **state)
{
    Scene *s = *state;
    PersonEvent *event = record_event(s->arena, "acme", "rcp_unknown", "a", "");
    assert_refused(s, people_message(s->arena, event, 1), "not a recipient's id");
    event = record_event(s->arena, "acme", PERSON_A, "a", "a");
    event->recipient->addresses[0]->address_hash.len = 31;
    assert_refused(s, people_message(s->arena, event, 1), "hash");
    event->recipient->addresses[0] = person_address(s->arena, 'a');
    event->recipient->addresses[0]->channel = 99;
    assert_refused(s, people_message(s->arena, event, 1), "channel");
    event = preference_event(s->arena, "acme", PERSON_A, 99, 1);
    assert_refused(s, people_message(s->arena, event, 1), "category");
    event = preference_event(s->arena, "acme", PERSON_A, 1, 99);
    assert_refused(s, people_message(s->arena, event, 1), "frequency");
    event = preference_event(s->arena, "acme", PERSON_A, 1, 1);
    event->preference->at_minute = 1440;
    assert_refused(s, people_message(s->arena, event, 1), "minute");
    event = consent_event(s->arena, "acme", PERSON_A, true);
    event->consent->given_at_us = INT64_MAX;
    assert_refused(s, people_message(s->arena, event, 1), "time");
    assert_refused(
        s, people_message(s->arena, person_event(s->arena, "acme", PERSON_A), 1), "no content");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_later_of_two_records_stands, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_entry_for_each_category_and_channel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_removal_takes_away_what_was_said_before_and_nothing_after, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_same_id_of_two_tenants_is_two_people, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_first_sequence_is_known_also_of_what_cannot_be_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_event_of_another_tenant_than_its_subjects_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_no_table_takes_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
