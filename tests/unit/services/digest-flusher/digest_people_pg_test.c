// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tests/unit/services/digest-flusher/flusher_stage.h"

#include "common/codec/event.h"
#include "common/recipients/digest_people.h"
#include "stentor/v1/people.pb-c.h"

#define A "rcp_a"
#define B "rcp_b"

typedef Stentor__V1__PersonEvent PersonEvent;
typedef Stentor__V1__Preference Preference;

static DigestPeople *people;

static void fold(Fixture *f, PersonEvent *event)
{
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.tenant = arena_cstr(f->arena, STR("demo"));
    event->meta = &meta;
    BusMessage message = {.stored_at_us = clock_now_us()};
    assert_true(event_pack(&event->base, f->arena, &message.payload, NULL));
    Error err = {0};
    if (!digest_people_fold(people, &message, f->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static PersonEvent event_of(Fixture *f, const char *recipient)
{
    PersonEvent event;
    stentor__v1__person_event__init(&event);
    event.recipient_id = arena_cstr(f->arena, str_from(recipient));
    return event;
}

static void prefer(Fixture *f, const char *recipient, Preference wish)
{
    PersonEvent event = event_of(f, recipient);
    Preference preference;
    stentor__v1__preference__init(&preference);
    preference.category = wish.category;
    preference.channel = wish.channel;
    preference.frequency = wish.frequency;
    preference.off = wish.off;
    preference.cleared = wish.cleared;
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_PREFERENCE;
    event.preference = &preference;
    fold(f, &event);
}

static void remove_person(Fixture *f, const char *recipient)
{
    PersonEvent event = event_of(f, recipient);
    Stentor__V1__Removal removal;
    stentor__v1__removal__init(&removal);
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_REMOVAL;
    event.removal = &removal;
    fold(f, &event);
}

static void record(Fixture *f, const char *recipient)
{
    PersonEvent event = event_of(f, recipient);
    Stentor__V1__Recipient person;
    stentor__v1__recipient__init(&person);
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_RECIPIENT;
    event.recipient = &person;
    fold(f, &event);
}

static void unsubscribe(Fixture *f, const char *recipient, bool value)
{
    PersonEvent event = event_of(f, recipient);
    Stentor__V1__Unsubscription said;
    stentor__v1__unsubscription__init(&said);
    said.unsubscribed = value;
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION;
    event.unsubscription = &said;
    fold(f, &event);
}

static void consent(Fixture *f, const char *recipient, Stentor__V1__Category category, bool granted)
{
    PersonEvent event = event_of(f, recipient);
    Stentor__V1__Consent said;
    stentor__v1__consent__init(&said);
    said.category = category;
    said.granted = granted;
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_CONSENT;
    event.consent = &said;
    fold(f, &event);
}

static void flush(Fixture *f)
{
    DbTxn *txn = db_txn_new(f->pool);
    db_txn_tenant(txn, STR("demo"));
    digest_people_write(people, txn);
    digest_people_wake(people, txn);
    if (digest_people_count(people) > 0) {
        submit(f, txn, on_txn_done);
    } else {
        db_txn_abandon(txn);
    }
    digest_people_clear(people);
}

static int begin(void **state)
{
    people = digest_people_new();
    return set_up(state);
}

static int end(void **state)
{
    digest_people_free(people);
    return tear_down(state);
}

static const char *preferences(Fixture *f)
{
    return cell(
        f, "SELECT string_agg(concat_ws(' ', recipient_id, category, channel, is_off, "
           "is_immediate), ', '"
           " ORDER BY recipient_id, category, channel) FROM digest_flusher.preferences");
}

static const char *silenced(Fixture *f)
{
    return cell(
        f, "SELECT string_agg(concat_ws(' ', recipient_id, is_removed, is_unsubscribed), ', ' "
           "ORDER BY recipient_id)"
           " FROM digest_flusher.unsubscribed_recipients");
}

#define SOCIAL STENTOR__V1__CATEGORY__CATEGORY_SOCIAL
#define EMAIL STENTOR__V1__CHANNEL__CHANNEL_EMAIL
#define DAILY STENTOR__V1__FREQUENCY__FREQUENCY_DAILY
#define IMMEDIATE STENTOR__V1__FREQUENCY__FREQUENCY_IMMEDIATE

static void the_later_preference_wins_within_a_flush_and_beyond(void **state)
{
    Fixture *f = *state;
    prefer(f, A, (Preference){.category = SOCIAL, .channel = EMAIL, .frequency = IMMEDIATE});
    prefer(f, A, (Preference){.category = SOCIAL, .channel = EMAIL, .frequency = DAILY});
    prefer(f, A, (Preference){.off = true});
    flush(f);
    assert_string_equal(preferences(f), "rcp_a any any t t, rcp_a social email f f");
    prefer(f, A, (Preference){.cleared = true});
    prefer(f, A, (Preference){.category = SOCIAL, .channel = EMAIL});
    flush(f);
    assert_string_equal(preferences(f), "rcp_a social email f t");
}

static void a_removal_takes_all_along_and_a_new_record_begins_again(void **state)
{
    Fixture *f = *state;
    prefer(f, A, (Preference){.frequency = DAILY});
    prefer(f, B, (Preference){.frequency = DAILY});
    flush(f);
    prefer(f, A, (Preference){.category = SOCIAL, .frequency = DAILY});
    remove_person(f, A);
    flush(f);
    assert_string_equal(preferences(f), "rcp_b any any f f");
    assert_string_equal(silenced(f), "rcp_a t f");
    record(f, A);
    prefer(f, A, (Preference){.frequency = DAILY});
    flush(f);
    assert_string_equal(preferences(f), "rcp_a any any f f, rcp_b any any f f");
    assert_string_equal(silenced(f), "");
}

static void silence_is_kept_only_for_those_that_are_silent(void **state)
{
    Fixture *f = *state;
    unsubscribe(f, A, true);
    unsubscribe(f, B, false);
    record(f, B);
    flush(f);
    assert_string_equal(silenced(f), "rcp_a f t");
    record(f, A); // does not subscribe again
    flush(f);
    assert_string_equal(silenced(f), "rcp_a f t");
    unsubscribe(f, A, false);
    flush(f);
    assert_string_equal(silenced(f), "");
}

static void open_window(Fixture *f, const char *id, const char *opened)
{
    sql(f, arena_printf(
               f->arena,
               "INSERT INTO digest_flusher.digest_windows (tenant_id, window_id, recipient_id, "
               "category, "
               "channel, flush_at, due_at,"
               " template, template_version, locale, opened_at) VALUES ('demo', '%s', 'rcp_a', "
               "'social', 'email',"
               " now() + interval '1 day', now() + interval '1 day', 'digest', '1.0.0', '', now() "
               "+ interval '%s')",
               id, opened));
}

static void a_wish_is_about_the_windows_that_were_open_when_it_was_said(void **state)
{
    Fixture *f = *state;
    prefer(f, A, (Preference){.category = SOCIAL, .frequency = DAILY});
    flush(f);
    open_window(f, "dgw_before", "-1 minute");
    open_window(f, "dgw_behind", "1 minute");
    prefer(f, A, (Preference){.frequency = IMMEDIATE}); // less specific
    flush(f);
    const char *due = "SELECT string_agg(window_id, ',') FROM digest_flusher.digest_windows WHERE "
                      "due_at <= now()";
    assert_string_equal(cell(f, due), "");
    prefer(f, A, (Preference){.category = SOCIAL, .frequency = IMMEDIATE});
    flush(f);
    assert_string_equal(cell(f, due), "dgw_before");
}

static const char *verdict(Fixture *f, const char *category)
{
    return cell(
        f, arena_printf(
               f->arena, "SELECT digest_flusher.preference_verdict('demo', 'rcp_a', '%s', 'email')",
               category));
}

static void the_verdict_is_the_first_reason_in_the_order_of_the_gate(void **state)
{
    Fixture *f = *state;
    assert_string_equal(verdict(f, "social"), "");
    prefer(f, A, (Preference){.category = SOCIAL, .off = true});
    flush(f);
    assert_string_equal(verdict(f, "social"), "preference");
    consent(f, A, STENTOR__V1__CATEGORY__CATEGORY_UNSPECIFIED, false);
    flush(f);
    assert_string_equal(verdict(f, "social"), "no_consent");
    consent(f, A, SOCIAL, true); // the more specific one
    flush(f);
    assert_string_equal(verdict(f, "social"), "preference");
    assert_string_equal(verdict(f, "billing"), "no_consent");
    unsubscribe(f, A, true);
    flush(f);
    assert_string_equal(verdict(f, "social"), "unsubscribed");
    static const char *const musts[] = {"transactional", "security", "compliance"};
    for (size_t i = 0; i < sizeof musts / sizeof musts[0]; i++) {
        assert_string_equal(verdict(f, musts[i]), "");
    }
    remove_person(f, A);
    flush(f);
    assert_string_equal(verdict(f, "security"), "no_address");
    record(f, A); // again, with nothing set
    flush(f);
    assert_string_equal(verdict(f, "social"), "");
}

static void a_withdrawn_consent_ends_the_open_window(void **state)
{
    Fixture *f = *state;
    prefer(f, A, (Preference){.category = SOCIAL, .frequency = DAILY});
    consent(f, A, SOCIAL, true);
    flush(f);
    open_window(f, "dgw_before", "-1 minute");
    consent(f, A, SOCIAL, false);
    flush(f);
    assert_string_equal(
        cell(f, "SELECT window_id FROM digest_flusher.digest_windows WHERE due_at <= now()"),
        "dgw_before");
}

static void an_event_that_is_wrong_is_refused_by_its_field(void **state)
{
    Fixture *f = *state;
    BusMessage message = {.payload = STR("\xff")};
    Error err = {0};
    assert_false(digest_people_fold(people, &message, f->arena, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    PersonEvent event = event_of(f, "");
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.tenant = arena_cstr(f->arena, STR("demo"));
    event.meta = &meta;
    assert_true(event_pack(&event.base, f->arena, &message.payload, NULL));
    assert_false(digest_people_fold(people, &message, f->arena, &err));
    assert_non_null(strstr(err.text, "recipient_id"));
    Preference preference;
    stentor__v1__preference__init(&preference);
    preference.category = (Stentor__V1__Category)99;
    event = event_of(f, A);
    event.meta = &meta;
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_PREFERENCE;
    event.preference = &preference;
    assert_true(event_pack(&event.base, f->arena, &message.payload, NULL));
    assert_false(digest_people_fold(people, &message, f->arena, &err));
    assert_non_null(strstr(err.text, "category 99"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_later_preference_wins_within_a_flush_and_beyond),
        TEST(a_removal_takes_all_along_and_a_new_record_begins_again),
        TEST(silence_is_kept_only_for_those_that_are_silent),
        TEST(a_wish_is_about_the_windows_that_were_open_when_it_was_said),
        TEST(the_verdict_is_the_first_reason_in_the_order_of_the_gate),
        TEST(a_withdrawn_consent_ends_the_open_window),
        TEST(an_event_that_is_wrong_is_refused_by_its_field),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
