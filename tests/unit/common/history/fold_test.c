// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/history/fold.h"
#include "common/model/status.h"
#include "tests/unit/common/history/history_events.h"

typedef struct Fixture {
    Arena *arena;
    Fold *fold;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof(*f));
    f->arena = arena_new(0);
    f->fold = fold_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    fold_free(f->fold);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void assert_str(Str actual, const char *expected)
{
    if (!str_eq(actual, str_from(expected))) {
        fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(actual), expected);
    }
}

static void fold_ok(Fixture *f, BusMessage message)
{
    Error err = {0};
    if (!fold_event(f->fold, &message, f->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static void fold_refuses(Fixture *f, BusMessage message, const char *because)
{
    Error err = {0};
    assert_false(fold_event(f->fold, &message, f->arena, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, because) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, because);
    }
    size_t rows = 1;
    size_t attempts = 1;
    fold_rows(f->fold, &rows);
    fold_attempts(f->fold, &attempts);
    assert_int_equal(rows, 0);
    assert_int_equal(attempts, 0);
}

static const HistoryRow *only_row(const Fixture *f)
{
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(f->fold, &count);
    assert_int_equal(count, 1);
    return rows[0];
}

// ---- what each event becomes ----

static void a_request_becomes_a_queued_row_with_all_it_says(void **state)
{
    Fixture *f = *state;
    Request *request = request_new(f->arena, NTF_ID);
    request->scheduled_for_us = AT(60);
    request->digest_window_id = arena_cstr(f->arena, STR("dgw_1"));
    fold_ok(f, request_message(f->arena, request));
    const HistoryRow *row = only_row(f);
    assert_str(row->tenant, "demo");
    assert_str(row->id, NTF_ID);
    assert_int_equal(row->created_at_us, NTF_MS * 1000);
    assert_int_equal(row->status, STATUS_QUEUED);
    static const char *const expected[FOLD_TEXT_COUNT] = {
        "email",
        "transactional",
        "high",
        "welcome",
        "1.0.0",
        "en-US",
        "rcp_1",
        "corr-1",
        "evt_1",
        "stay.confirmed",
        "dbt_1",
        "dgw_1",
        "ntf_first",
        "",
        "",
        "",
        "hash-hash-hash-hash-hash-hash-32",
        NULL,
        ""};
    for (int i = 0; i < FOLD_TEXT_COUNT; i++) {
        if (expected[i] != NULL) {
            assert_str(row->text[i], expected[i]);
        }
    }
    Str address = STR_EMPTY;
    assert_true(event_pack(&request->address->base, f->arena, &address, NULL));
    assert_true(str_eq(row->text[FOLD_ADDRESS], address));
    assert_int_equal(row->at_us[FOLD_QUEUED], AT(0));
    assert_int_equal(row->at_us[FOLD_SCHEDULED_FOR], AT(60));
    assert_int_equal(row->at_us[FOLD_EXPIRES], AT(3600));
    assert_int_equal(row->at_us[FOLD_SENT], 0);
}

static void each_status_sets_the_time_that_is_its_own(void **state)
{
    static const FoldTime expected[STATUS_COUNT] = {
        [STATUS_QUEUED] = FOLD_QUEUED,
        [STATUS_SCHEDULED] = FOLD_SCHEDULED,
        [STATUS_RENDERING] = FOLD_TIME_COUNT,
        [STATUS_SENDING] = FOLD_TIME_COUNT,
        [STATUS_SENT] = FOLD_SENT,
        [STATUS_DELIVERED] = FOLD_DELIVERED,
        [STATUS_OPENED] = FOLD_OPENED,
        [STATUS_CLICKED] = FOLD_CLICKED,
        [STATUS_SUPPRESSED] = FOLD_ENDED,
        [STATUS_SUPERSEDED] = FOLD_ENDED,
        [STATUS_FAILED] = FOLD_ENDED,
        [STATUS_BOUNCED] = FOLD_ENDED,
        [STATUS_COMPLAINED] = FOLD_ENDED};
    Fixture *f = *state;
    for (int status = STATUS_QUEUED; status < STATUS_COUNT; status++) {
        fold_clear(f->fold);
        StatusEvent *event = status_new(f->arena, NTF_ID, (Stentor__V1__Status)status, AT(7));
        event->gate_trace = (char *)(uintptr_t) "T+"; // a `queued` without it repeats its request
        fold_ok(f, status_message(f->arena, event));
        const HistoryRow *row = only_row(f);
        assert_int_equal(row->status, status);
        for (int i = 0; i < FOLD_TIME_COUNT; i++) {
            assert_int_equal(row->at_us[i], (FoldTime)i == expected[status] ? AT(7) : 0);
        }
    }
}

static void a_queued_that_repeats_its_request_makes_no_row(void **state)
{
    Fixture *f = *state;
    StatusEvent *queued = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_QUEUED, AT(0));
    fold_ok(f, status_message(f->arena, queued));
    size_t count = 1;
    fold_rows(f->fold, &count);
    assert_int_equal(count, 0);
    Request *request = request_new(f->arena, NTF_ID);
    request->gate_trace = arena_cstr(f->arena, STR("T+S+A+"));
    fold_ok(f, request_message(f->arena, request));
    assert_str(only_row(f)->text[FOLD_GATE_TRACE], "T+S+A+");
    assert_int_equal(only_row(f)->at_us[FOLD_QUEUED], AT(0));
}

// Each thing that a request does not say.
static void a_queued_that_says_more_is_folded(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < 9; i++) {
        StatusEvent *queued =
            status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_QUEUED, AT(0));
        char **const texts[] = {&queued->gate_trace,       &queued->reason_code, &queued->reason,
                                &queued->digest_window_id, &queued->from_domain, &queued->provider};
        if (i < 6) {
            *texts[i] = arena_cstr(f->arena, STR("said"));
        } else if (i == 6) {
            queued->resends = 1;
        } else if (i == 7) {
            queued->scheduled_for_us = AT(9);
        } else {
            attempt_new(f->arena, queued, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
        }
        fold_ok(f, status_message(f->arena, queued));
        assert_int_equal(only_row(f)->status, STATUS_QUEUED);
        fold_clear(f->fold);
    }
}

static void a_request_and_its_sent_are_one_row(void **state)
{
    Fixture *f = *state;
    fold_ok(f, request_message(f->arena, request_new(f->arena, NTF_ID)));
    StatusEvent *sent = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    sent->rendered_at_us = AT(1);
    sent->content_checksum = pb_data(STR("checksum"));
    attempt_new(f->arena, sent, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
    fold_ok(f, status_message(f->arena, sent));
    const HistoryRow *row = only_row(f);
    assert_int_equal(row->status, STATUS_SENT);
    assert_int_equal(row->at_us[FOLD_QUEUED], AT(0));
    assert_int_equal(row->at_us[FOLD_RENDERED], AT(1));
    assert_int_equal(row->at_us[FOLD_SENT], AT(3));
    assert_str(row->text[FOLD_CHECKSUM], "checksum");
    assert_str(row->text[FOLD_LOCALE], "en-US");
}

static void an_attempt_becomes_a_row_of_its_notification(void **state)
{
    Fixture *f = *state;
    StatusEvent *sent = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    attempt_new(f->arena, sent, 2, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED)->was_unknown = true;
    fold_ok(f, status_message(f->arena, sent));
    size_t count = 0;
    const AttemptRow *attempt = fold_attempts(f->fold, &count)[0];
    assert_int_equal(count, 1);
    assert_ptr_equal(attempt->row, only_row(f));
    assert_int_equal(attempt->number, 2);
    assert_int_equal(attempt->outcome, OUTCOME_ACCEPTED);
    assert_true(attempt->was_unknown);
    assert_str(attempt->id, "dat_01KAGTQ5M0000000000000000B");
    assert_str(attempt->vendor, "smtp");
    assert_str(attempt->code, "250");
    assert_str(attempt->enhanced_code, "2.0.0");
    assert_str(attempt->reply, "ok, queued");
    assert_int_equal(attempt->started_at_us, AT(2));
    assert_int_equal(attempt->finished_at_us, AT(3));
}

static void a_callback_that_knows_no_attempt_makes_none(void **state)
{
    Fixture *f = *state;
    StatusEvent *delivered =
        status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_DELIVERED, AT(9));
    attempt_new(f->arena, delivered, 0, STENTOR__V1__OUTCOME__OUTCOME_DELIVERED);
    fold_ok(f, status_message(f->arena, delivered));
    size_t count = 1;
    fold_attempts(f->fold, &count);
    assert_int_equal(count, 0);
    assert_int_equal(only_row(f)->status, STATUS_DELIVERED);
}

static void an_open_by_a_machine_raises_no_status(void **state)
{
    Fixture *f = *state;
    fold_ok(
        f, status_message(
               f->arena, status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3))));
    for (int status = STATUS_OPENED; status <= STATUS_CLICKED; status++) {
        StatusEvent *seen = status_new(f->arena, NTF_ID, (Stentor__V1__Status)status, AT(4));
        attempt_new(f->arena, seen, 0, STENTOR__V1__OUTCOME__OUTCOME_OPENED)->machine = true;
        fold_ok(f, status_message(f->arena, seen));
    }
    assert_int_equal(only_row(f)->status, STATUS_SENT);
    assert_int_equal(only_row(f)->at_us[FOLD_OPENED], 0);
    StatusEvent *seen = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_OPENED, AT(60));
    attempt_new(f->arena, seen, 0, STENTOR__V1__OUTCOME__OUTCOME_OPENED);
    fold_ok(f, status_message(f->arena, seen));
    assert_int_equal(only_row(f)->status, STATUS_OPENED);
    assert_int_equal(only_row(f)->at_us[FOLD_OPENED], AT(60));
}

// ---- merging ----

static void the_reason_belongs_to_the_status_that_won(void **state)
{
    Fixture *f = *state;
    StatusEvent *failed = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_FAILED, AT(3));
    disagree(failed, "1.0.0", "missing_variable", "'name' is missing");
    StatusEvent *scheduled =
        status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SCHEDULED, AT(1));
    disagree(scheduled, "1.0.0", "quiet_hours", "until the morning");
    fold_ok(f, status_message(f->arena, failed));
    fold_ok(f, status_message(f->arena, scheduled));
    assert_int_equal(only_row(f)->status, STATUS_FAILED);
    assert_str(only_row(f)->reason_code, "missing_variable");
    assert_str(only_row(f)->reason, "'name' is missing");
}

static void the_earliest_time_of_a_status_stays(void **state)
{
    Fixture *f = *state;
    for (int second = 4; second >= 2; second--) {
        StatusEvent *opened =
            status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_OPENED, AT(second));
        fold_ok(f, status_message(f->arena, opened));
    }
    fold_ok(
        f, status_message(
               f->arena, status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_OPENED, AT(8))));
    assert_int_equal(only_row(f)->at_us[FOLD_OPENED], AT(2));
}

static void the_greater_outcome_of_an_attempt_stays_whole(void **state)
{
    Fixture *f = *state;
    for (int turn = 0; turn < 2; turn++) {
        fold_clear(f->fold);
        for (int i = 0; i < 2; i++) {
            StatusEvent *event =
                status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENDING, AT(3));
            bool bounce = i == turn;
            Attempt *attempt = attempt_new(
                f->arena, event, 1,
                bounce ? STENTOR__V1__OUTCOME__OUTCOME_BOUNCE
                       : STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
            attempt->code = (char *)(uintptr_t)(bounce ? "550" : "999");
            fold_ok(f, status_message(f->arena, event));
        }
        size_t count = 0;
        const AttemptRow *attempt = fold_attempts(f->fold, &count)[0];
        assert_int_equal(count, 1);
        assert_int_equal(attempt->outcome, OUTCOME_BOUNCE);
        assert_str(attempt->code, "550");
    }
}

static void another_tenant_with_the_same_id_has_a_row_of_its_own(void **state)
{
    Fixture *f = *state;
    fold_ok(f, request_message(f->arena, request_new(f->arena, NTF_ID)));
    StatusEvent *forged =
        status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_COMPLAINED, AT(3));
    forged->meta->tenant = (char *)(uintptr_t) "other";
    fold_ok(f, status_message(f->arena, forged));
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(f->fold, &count);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0]->status, STATUS_QUEUED);
    assert_str(rows[1]->tenant, "other");
}

static void assert_rows_equal(const HistoryRow *a, const HistoryRow *b)
{
    assert_int_equal(a->status, b->status);
    assert_true(str_eq(a->reason_code, b->reason_code));
    assert_true(str_eq(a->reason, b->reason));
    for (int i = 0; i < FOLD_TEXT_COUNT; i++) {
        assert_true(str_eq(a->text[i], b->text[i]));
    }
    for (int i = 0; i < FOLD_TIME_COUNT; i++) {
        assert_int_equal(a->at_us[i], b->at_us[i]);
    }
}

static const AttemptRow *attempt_number(const HistoryRow *row, int number)
{
    const AttemptRow *attempt = row->attempts;
    while (attempt != NULL && attempt->number != number) {
        attempt = attempt->next;
    }
    assert_non_null(attempt);
    return attempt;
}

static void assert_attempts_equal(const AttemptRow *a, const AttemptRow *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->was_unknown, b->was_unknown);
    assert_true(str_eq(a->code, b->code));
    assert_true(str_eq(a->reply, b->reply));
    assert_int_equal(a->finished_at_us, b->finished_at_us);
    assert_int_equal(a->cost.segments, b->cost.segments);
    assert_int_equal(a->cost.micros, b->cost.micros);
    assert_true(str_eq(a->cost.currency, b->cost.currency));
    assert_true(str_eq(a->cost.calling_code, b->cost.calling_code));
    assert_true(str_eq(a->cost.price_category, b->cost.price_category));
}

static const HistoryRow *fold_story(Fixture *f, Story story, int n)
{
    int order[STORY_EVENTS];
    story_order(n, order);
    fold_clear(f->fold);
    for (int i = 0; i < STORY_EVENTS; i++) {
        fold_ok(f, story(f->arena, NTF_ID, order[i]));
        fold_ok(
            f, story(f->arena, NTF_ID, order[n % (i + 1)])); // and one of the earlier ones again
    }
    return only_row(f);
}

static void assert_any_order(Fixture *f, Story story, const HistoryRow *first)
{
    for (int n = 1; n < STORY_ORDERS; n++) {
        const HistoryRow *row = fold_story(f, story, n);
        assert_rows_equal(row, first);
        for (int number = 1; number <= 2; number++) {
            assert_attempts_equal(attempt_number(row, number), attempt_number(first, number));
        }
    }
}

static void every_order_with_repeats_gives_the_same_rows(void **state)
{
    Fixture *f = *state;
    const HistoryRow *first = fold_story(f, story_event, 0);
    assert_int_equal(first->status, STATUS_BOUNCED);
    assert_str(first->reason, "the mailbox is full");
    assert_str(first->text[FOLD_TEMPLATE_VERSION], "2.0.0");
    assert_any_order(f, story_event, first);
}

static void a_callbacks_price_joins_its_attempt_in_every_order(void **state)
{
    Fixture *f = *state;
    const HistoryRow *first = fold_story(f, cost_event, 0);
    const AttemptRow *billed = attempt_number(first, 2);
    assert_int_equal(billed->outcome, OUTCOME_ACCEPTED);
    assert_str(billed->code, "250");
    assert_int_equal(billed->cost.micros, 15000);
    assert_str(billed->cost.currency, "USD");
    assert_str(billed->cost.price_category, "marketing");
    assert_str(billed->cost.calling_code, "43");
    assert_str(billed->credential, "main");
    assert_str(billed->route, "austria");
    assert_int_equal(billed->cost.segments, 2);
    assert_int_equal(attempt_number(first, 1)->cost.micros, 0);
    assert_any_order(f, cost_event, first);
}

static void a_callbacks_price_without_an_attempt_or_a_currency_makes_no_row(void **state)
{
    Fixture *f = *state;
    static const struct {
        uint32_t of_attempt;
        const char *currency;
    } rows[] = {{0, "USD"}, {FOLD_ATTEMPT_MAX + 1, "USD"}, {1, "usd"}, {1, "US"}, {1, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 1;
        StatusEvent *event =
            status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_DELIVERED, AT(3));
        Attempt *attempt = attempt_new(f->arena, event, 0, STENTOR__V1__OUTCOME__OUTCOME_DELIVERED);
        attempt->of_attempt = rows[i].of_attempt;
        attempt->cost_micros = 100;
        attempt->currency = (char *)(uintptr_t)rows[i].currency;
        fold_clear(f->fold);
        fold_ok(f, status_message(f->arena, event));
        fold_attempts(f->fold, &count);
        assert_int_equal(count, 0);
    }
}

static void a_later_life_wins_in_every_order(void **state)
{
    Fixture *f = *state;
    const HistoryRow *first = fold_story(f, resend_event, 0);
    assert_int_equal(first->status, STATUS_SENT);
    assert_int_equal(first->rank, 2 * FOLD_RESEND_RANKS + status_rank(STATUS_SENT));
    assert_str(first->reason_code, "");
    assert_str(first->reason, "");
    assert_int_equal(first->at_us[FOLD_ENDED], AT(10));
    assert_int_equal(first->at_us[FOLD_SENT], AT(40));
    assert_int_equal(attempt_number(first, 3)->outcome, OUTCOME_REJECTED_RETRYABLE);
    assert_any_order(f, resend_event, first);
}

// A callback does not know the life it belongs to, and must not lose to it.
static void a_vendors_callback_wins_over_every_life(void **state)
{
    static const Status heard[] = {STATUS_DELIVERED, STATUS_OPENED,  STATUS_CLICKED,
                                   STATUS_FAILED,    STATUS_BOUNCED, STATUS_COMPLAINED};
    Fixture *f = *state;
    for (size_t i = 0; i < 2 * sizeof heard / sizeof *heard; i++) {
        fold_clear(f->fold);
        StatusEvent *callback =
            status_new(f->arena, NTF_ID, (Stentor__V1__Status)heard[i / 2], AT(5));
        attempt_new(f->arena, callback, 0, STENTOR__V1__OUTCOME__OUTCOME_FAILED);
        StatusEvent *sent = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(7));
        sent->resends = FOLD_RESENDS_MAX;
        const BusMessage first = status_message(f->arena, i % 2 == 0 ? callback : sent);
        const BusMessage second = status_message(f->arena, i % 2 == 0 ? sent : callback);
        fold_ok(f, first);
        fold_ok(f, second);
        assert_int_equal(only_row(f)->status, heard[i / 2]);
        assert_int_equal(only_row(f)->at_us[FOLD_SENT], AT(7));
    }
}

// Our own `failed` of an earlier life loses.
static void a_status_of_an_earlier_life_loses_whatever_it_is(void **state)
{
    static const Status own[] = {STATUS_QUEUED,     STATUS_SCHEDULED, STATUS_RENDERING,
                                 STATUS_SENDING,    STATUS_SENT,      STATUS_SUPPRESSED,
                                 STATUS_SUPERSEDED, STATUS_FAILED};
    Fixture *f = *state;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        fold_clear(f->fold);
        StatusEvent *later =
            status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENDING, AT(9));
        later->resends = 1;
        fold_ok(f, status_message(f->arena, later));
        fold_ok(
            f, status_message(
                   f->arena, status_new(f->arena, NTF_ID, (Stentor__V1__Status)own[i], AT(3))));
        assert_int_equal(only_row(f)->status, STATUS_SENDING);
    }
}

static void many_notifications_keep_apart(void **state)
{
    enum { MANY = 3000 }; // past the first capacity, twice
    Fixture *f = *state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            const char *id = arena_printf(f->arena, "ntf_01KAGTQ5M0%016d", i);
            StatusEvent *sent = status_new(f->arena, id, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
            attempt_new(f->arena, sent, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
            fold_ok(f, status_message(f->arena, sent));
        }
    }
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(f->fold, &count);
    assert_int_equal(count, MANY);
    assert_str(rows[MANY - 1]->id, "ntf_01KAGTQ5M00000000000002999");
    fold_attempts(f->fold, &count);
    assert_int_equal(count, MANY);
    assert_int_equal(fold_oldest_us(f->fold), AT(5));
    fold_clear(f->fold);
    fold_rows(f->fold, &count);
    assert_int_equal(count, 0);
    assert_int_equal(fold_oldest_us(f->fold), 0);
}

// ---- what cannot be stored ----

static void bytes_that_are_no_event_are_refused(void **state)
{
    Fixture *f = *state;
    BusMessage message = {
        .stream = "STATUS", .stored_at_us = AT(5), .payload = STR("\xff\xff\xff not a message")};
    fold_refuses(f, message, "NotificationStatus");
    message.stream = "REQUEST_LOW";
    fold_refuses(f, message, "NotificationRequest");
    message.payload = STR_EMPTY;
    fold_refuses(f, message, "meta is missing");
}

static void a_request_with_a_wrong_head_is_refused(void **state)
{
    Fixture *f = *state;
    Request *request = request_new(f->arena, NTF_ID);
    request->meta->tenant = (char *)(uintptr_t) "a,b";
    fold_refuses(f, request_message(f->arena, request), "meta.tenant");
    request = request_new(f->arena, "ntf_short");
    fold_refuses(f, request_message(f->arena, request), "meta.notification_id");
    request = request_new(f->arena, "ntf_7ZZZZZZZZZ000000000000000A");
    fold_refuses(f, request_message(f->arena, request), "the time in the notification id");
    request = request_new(f->arena, NTF_ID);
    request->channel = (Stentor__V1__Channel)99;
    fold_refuses(f, request_message(f->arena, request), "channel 99");
    request = request_new(f->arena, NTF_ID);
    request->category = (Stentor__V1__Category)-1;
    fold_refuses(f, request_message(f->arena, request), "category");
    request = request_new(f->arena, NTF_ID);
    request->expires_at_us = INT64_MIN;
    fold_refuses(f, request_message(f->arena, request), "expires_at");
}

static void a_text_that_is_too_long_is_refused_by_its_name(void **state)
{
    Fixture *f = *state;
    char *text = arena_alloc(f->arena, FOLD_FIELD_MAX + 2);
    memset(text, 'x', FOLD_FIELD_MAX + 1);
    text[FOLD_FIELD_MAX + 1] = '\0';
    Request *request = request_new(f->arena, NTF_ID);
    request->locale = text;
    fold_refuses(f, request_message(f->arena, request), "locale has 4097 bytes");
    StatusEvent *event = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    attempt_new(f->arena, event, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED)->text = text;
    fold_refuses(f, status_message(f->arena, event), "attempt.text has 4097 bytes");
    text[FOLD_FIELD_MAX] = '\0';
    fold_ok(f, status_message(f->arena, event));
}

static void a_status_or_outcome_that_we_do_not_know_is_refused(void **state)
{
    Fixture *f = *state;
    StatusEvent *event = status_new(f->arena, NTF_ID, (Stentor__V1__Status)STATUS_COUNT, AT(3));
    fold_refuses(f, status_message(f->arena, event), "status 14");
    event = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    attempt_new(f->arena, event, 1, (Stentor__V1__Outcome)77);
    fold_refuses(f, status_message(f->arena, event), "attempt.outcome 77");
    event->attempt->outcome = STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED;
    event->attempt->number = 40000;
    fold_refuses(f, status_message(f->arena, event), "attempt.number 40000");
    event = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    event->resends = FOLD_RESENDS_MAX + 1;
    fold_refuses(f, status_message(f->arena, event), "resends 300 is above 299");
    event->resends = UINT32_MAX;
    fold_refuses(f, status_message(f->arena, event), "resends 4294967295");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_request_becomes_a_queued_row_with_all_it_says),
        TEST(each_status_sets_the_time_that_is_its_own),
        TEST(a_queued_that_repeats_its_request_makes_no_row),
        TEST(a_queued_that_says_more_is_folded),
        TEST(a_request_and_its_sent_are_one_row),
        TEST(an_attempt_becomes_a_row_of_its_notification),
        TEST(a_callback_that_knows_no_attempt_makes_none),
        TEST(an_open_by_a_machine_raises_no_status),
        TEST(the_reason_belongs_to_the_status_that_won),
        TEST(the_earliest_time_of_a_status_stays),
        TEST(the_greater_outcome_of_an_attempt_stays_whole),
        TEST(another_tenant_with_the_same_id_has_a_row_of_its_own),
        TEST(every_order_with_repeats_gives_the_same_rows),
        TEST(a_callbacks_price_joins_its_attempt_in_every_order),
        TEST(a_callbacks_price_without_an_attempt_or_a_currency_makes_no_row),
        TEST(a_later_life_wins_in_every_order),
        TEST(a_vendors_callback_wins_over_every_life),
        TEST(a_status_of_an_earlier_life_loses_whatever_it_is),
        TEST(many_notifications_keep_apart),
        TEST(bytes_that_are_no_event_are_refused),
        TEST(a_request_with_a_wrong_head_is_refused),
        TEST(a_text_that_is_too_long_is_refused_by_its_name),
        TEST(a_status_or_outcome_that_we_do_not_know_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
