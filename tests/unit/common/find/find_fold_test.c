// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/find/find_fold.h"
#include "stentor/v1/status.pb-c.h"

#define ID "ntf_01M82XS89VEV77VD8AS0MCM001"
#define T0 INT64_C(1800000000000000) // 2027-01: behind the time in the id

typedef Stentor__V1__NotificationStatus StatusEvent;

typedef struct Scene {
    MasterKey *master;
    Arena *arena;
    FindFold *fold;
} Scene;

static int set_up(void **state)
{
    char file[132];
    Error err = {0};
    Scene *s = xcalloc(1, sizeof *s);
    master_key_generate(file);
    s->master = master_key_parse(str_from(file), &err);
    assert_non_null(s->master);
    s->arena = arena_new(0);
    s->fold = find_fold_new(s->master);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    find_fold_free(s->fold);
    arena_free(s->arena);
    master_key_free(s->master);
    free(s);
    return 0;
}

static StatusEvent *status_of(Scene *s, const char *tenant, const char *id)
{
    StatusEvent *event = arena_alloc(s->arena, sizeof *event);
    stentor__v1__notification_status__init(event);
    Stentor__V1__Meta *meta = arena_alloc(s->arena, sizeof *meta);
    *meta = meta_make(&(MetaSpec){
        .event_id = "e",
        .tenant = tenant,
        .notification_id = id,
        .correlation_id = "order-17",
        .at_us = T0});
    event->meta = meta;
    event->recipient_id = pb_borrow("rcp_01M82XS89VEV77VD8AS0MCM009");
    event->template_ = pb_borrow("welcome");
    event->batch_id = pb_borrow("dbt_01M82XS89VEV77VD8AS0MCM008");
    event->source_event_id = pb_borrow("evt-4");
    event->address_hash = pb_data(STR("0123456789abcdef0123456789abcdef"));
    return event;
}

static bool fold(Scene *s, const char *subject, const StatusEvent *event, Error *err)
{
    Str payload = STR_EMPTY;
    assert_true(event_pack(&event->base, s->arena, &payload, NULL));
    BusMessage message = {
        .subject = str_from(subject), .payload = payload, .stream = "STATUS", .stored_at_us = T0};
    return find_fold_event(s->fold, &message, s->arena, err);
}

static const FindRow *row_of(const Scene *s, FindKind kind, Str value)
{
    size_t count = 0;
    const FindRow *rows = find_fold_rows(s->fold, &count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind == kind && rows[i].key == find_key(s->master, kind, STR("acme"), value)) {
            return &rows[i];
        }
    }
    return NULL;
}

static size_t count_of(const Scene *s)
{
    size_t count = 0;
    (void)find_fold_rows(s->fold, &count);
    return count;
}

static void the_first_status_says_whose_it_is_and_of_what(void **state)
{
    Scene *s = *state;
    Error err = {0};
    assert_true(fold(s, "ntf.status.acme.email.queued", status_of(s, "acme", ID), &err));
    assert_int_equal(count_of(s), 6);
    assert_non_null(row_of(s, FIND_RECIPIENT, STR("rcp_01M82XS89VEV77VD8AS0MCM009")));
    assert_non_null(row_of(s, FIND_ADDRESS, STR("0123456789abcdef0123456789abcdef")));
    assert_non_null(row_of(s, FIND_CORRELATION, STR("order-17")));
    assert_non_null(row_of(s, FIND_SOURCE_EVENT, STR("evt-4")));
    assert_non_null(row_of(s, FIND_BATCH, STR("dbt_01M82XS89VEV77VD8AS0MCM008")));
    const FindRow *row = row_of(s, FIND_TEMPLATE, STR("welcome"));
    assert_non_null(row);
    assert_true(str_eq(row->id, STR(ID)) && str_eq(row->tenant, STR("acme")));
    int64_t first_us = 0;
    int64_t last_us = 0;
    assert_true(find_fold_span(s->fold, &first_us, &last_us));
    assert_true(first_us == last_us && first_us == row->created_at_us);
}

static void what_is_sent_adds_only_the_id_that_the_vendor_gave_it(void **state)
{
    Scene *s = *state;
    Error err = {0};
    StatusEvent *event = status_of(s, "acme", ID);
    Stentor__V1__Attempt attempt;
    stentor__v1__attempt__init(&attempt);
    attempt.vendor_message_id = pb_borrow("SM0123");
    event->attempt = &attempt;
    assert_true(fold(s, "ntf.status.acme.sms.sent", event, &err));
    assert_int_equal(count_of(s), 1);
    assert_non_null(row_of(s, FIND_VENDOR_MESSAGE, STR("SM0123")));

    find_fold_clear(s->fold);
    attempt.vendor_message_id = pb_borrow(ID "@mail.example"); // SMTP: the id says it already
    assert_true(fold(s, "ntf.status.acme.email.sent", event, &err));
    assert_int_equal(count_of(s), 0);
    assert_true(find_fold_as_of_us(s->fold) == T0);
}

static void an_end_that_is_not_a_happy_one_is_an_entry(void **state)
{
    Scene *s = *state;
    Error err = {0};
    StatusEvent *event = status_of(s, "acme", ID);
    assert_true(fold(s, "ntf.status.acme.email.failed", event, &err));
    assert_true(fold(s, "ntf.status.acme.email.bounced", event, &err));
    assert_true(fold(s, "ntf.status.acme.email.complained", event, &err));
    assert_int_equal(count_of(s), 3);
    assert_non_null(row_of(s, FIND_END, STR("failed")));
    assert_non_null(row_of(s, FIND_END, STR("bounced")));
    assert_non_null(row_of(s, FIND_END, STR("complained")));
    assert_true(fold(s, "ntf.status.acme.email.suppressed", event, &err)); // a first status, too
    assert_int_equal(count_of(s), 3 + 6 + 1);
    assert_true(fold(s, "ntf.status.acme.email.delivered", event, &err));
    assert_true(fold(s, "ntf.status.acme.email.opened", event, &err));
    assert_int_equal(count_of(s), 3 + 6 + 1);
}

static void an_attempt_of_which_nobody_knows_what_came_is_an_unknown_end(void **state)
{
    Scene *s = *state;
    Error err = {0};
    StatusEvent *event = status_of(s, "acme", ID);
    Stentor__V1__Attempt attempt;
    stentor__v1__attempt__init(&attempt);
    attempt.was_unknown = true;
    event->attempt = &attempt;
    assert_true(fold(s, "ntf.status.acme.email.sent", event, &err));
    assert_non_null(row_of(s, FIND_END, STR(FIND_END_UNKNOWN)));
}

static void what_cannot_be_stored_is_refused(void **state)
{
    Scene *s = *state;
    Error err = {0};
    assert_false(fold(s, "ntf.status.globex.email.queued", status_of(s, "acme", ID), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(fold(s, "ntf.status.acme.email.queued", status_of(s, "acme", "ntf_1"), &err));
    assert_false(fold(
        s, "ntf.status.acme.email.queued", status_of(s, "acme", "ntf_7ZZZZZZZZZEV77VD8AS0MCM001"),
        &err)); // of the year 10889
    assert_false(fold(s, "ntf.status.acme.email.vanished", status_of(s, "acme", ID), &err));
    assert_false(fold(s, "nonsense", status_of(s, "acme", ID), &err));
    BusMessage broken = {
        .subject = STR("ntf.status.acme.email.queued"),
        .payload = STR("\xff\xff\xff"),
        .stream = "STATUS"};
    assert_false(find_fold_event(s->fold, &broken, s->arena, &err));
    assert_int_equal(count_of(s), 0);
}

static void what_is_older_than_is_kept_has_no_entry(void **state)
{
    Scene *s = *state;
    Error err = {0};
    find_fold_keep(s->fold, INT64_MAX);
    assert_true(fold(s, "ntf.status.acme.email.queued", status_of(s, "acme", ID), &err));
    assert_int_equal(count_of(s), 0);
}

static void a_key_is_one_of_its_kind_and_tenant_alone(void **state)
{
    Scene *s = *state;
    int64_t key = find_key(s->master, FIND_TEMPLATE, STR("acme"), STR("welcome"));
    assert_true(key == find_key(s->master, FIND_TEMPLATE, STR("acme"), STR("welcome")));
    assert_true(key != find_key(s->master, FIND_TEMPLATE, STR("globex"), STR("welcome")));
    assert_true(key != find_key(s->master, FIND_BATCH, STR("acme"), STR("welcome")));
    assert_true(key != find_key(s->master, FIND_TEMPLATE, STR("acme"), STR("welcomf")));
    char long_value[2048];
    memset(long_value, 'x', sizeof long_value);
    Str whole = str_of(long_value, sizeof long_value);
    Str shorter = str_of(long_value, sizeof long_value - 1);
    assert_true(
        find_key(s->master, FIND_CORRELATION, STR("acme"), whole) !=
        find_key(s->master, FIND_CORRELATION, STR("acme"), shorter));
}

static void rows_come_in_the_order_of_the_index(void **state)
{
    Scene *s = *state;
    Error err = {0};
    for (int i = 0; i < 50; i++) {
        StatusEvent *event = status_of(s, "acme", ID);
        event->meta->correlation_id = pb_borrow(arena_printf(s->arena, "order-%d", i));
        assert_true(fold(s, "ntf.status.acme.email.queued", event, &err));
    }
    size_t count = 0;
    const FindRow *rows = find_fold_rows(s->fold, &count);
    assert_int_equal(count, 300);
    for (size_t i = 1; i < count; i++) {
        assert_true(rows[i - 1].key <= rows[i].key);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_status_says_whose_it_is_and_of_what),
        TEST(what_is_sent_adds_only_the_id_that_the_vendor_gave_it),
        TEST(an_end_that_is_not_a_happy_one_is_an_entry),
        TEST(an_attempt_of_which_nobody_knows_what_came_is_an_unknown_end),
        TEST(what_cannot_be_stored_is_refused),
        TEST(what_is_older_than_is_kept_has_no_entry),
        TEST(a_key_is_one_of_its_kind_and_tenant_alone),
        TEST(rows_come_in_the_order_of_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
