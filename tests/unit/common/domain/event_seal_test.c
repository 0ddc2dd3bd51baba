// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/domain/domain_event.h"
#include "common/domain/event_seal.h"

static const int64_t NOW_US = INT64_C(1795199136000000);
static const int64_t MINUTE_US = INT64_C(60) * 1000000;

// A folder of epoch keys in memory, which a test changes.
typedef struct Stage {
    MasterKey *master;
    EventKeys *keys;
    char files[2][EPOCH_FILE_SIZE];
    Str texts[2];
    size_t count;
    char current[KEY_ID_SIZE];
    bool broken;
    Arena *arena;
    Error err;
} Stage;

static bool on_refresh(void *ctx, MasterKey *master, Error *err)
{
    const Stage *s = ctx;
    return s->broken ? error_set(err, ERROR_TRANSIENT, "the folder is away")
                     : master_epochs_set(master, s->texts, s->count, str_from(s->current), err);
}

static void open_epoch(Stage *s)
{
    EpochInfo info;
    epoch_key_make(s->master, (uint32_t)s->count + 1, 1795199136, s->files[s->count], &info);
    s->texts[s->count] = str_from(s->files[s->count]);
    s->count++;
    key_id_print(info.id, s->current);
}

static int set_up(void **state)
{
    Stage *s = calloc(1, sizeof *s);
    char random[132];
    master_key_generate(random);
    s->master = master_key_parse(str_from(random), NULL);
    master_epochs_source(s->master, on_refresh, s);
    s->keys = event_keys_new(s->master);
    s->arena = arena_new(0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Stage *s = *state;
    event_keys_free(s->keys);
    master_key_free(s->master);
    arena_free(s->arena);
    free(s);
    return 0;
}

static const char DATA[] = "{\"email\":\"alice@example.com\",\"name\":\"Alice\"}";

static BusOut an_event(void)
{
    static const BusHeader headers[] = {
        {"Content-Type", {"application/json", 16}},
        {"ce-id", {"c-1", 3}},
        {"ce-subject", {"alice@example.com", 17}},
        {"ce-source", {"/people/alice@example.com", 25}},
    };
    return (BusOut){
        .subject = "evt.acme.order.placed",
        .event_id = STR("acme/order.placed/c-1"),
        .payload = str_from(DATA),
        .headers = headers,
        .header_count = 4,
    };
}

static BusOut sealed(Stage *s, int64_t now_us)
{
    BusOut out = an_event();
    assert_true(event_seal_out(s->keys, now_us, &out, s->arena, &s->err));
    return out;
}

static BusMessage stored(const BusOut *out)
{
    return (BusMessage){
        .subject = str_from(out->subject),
        .payload = out->payload,
        .event_id = out->event_id,
        .stream = "EVENTS",
        .sequence = 9,
        .stored_at_us = NOW_US,
        .delivered = 1,
    };
}

static void assert_str(Str text, const char *wanted)
{
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.ptr, wanted, text.len);
}

static void a_sealed_event_opens_as_it_was(void **state)
{
    Stage *s = *state;
    open_epoch(s);
    BusOut out = sealed(s, NOW_US);
    BusMessage message = stored(&out);
    assert_true(event_is_sealed(out.payload));
    assert_true(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
    assert_str(message.payload, DATA);
    assert_str(message.event_id, "acme/order.placed/c-1");
    assert_str(bus_message_header(&message, "ce-subject"), "alice@example.com");
    assert_str(bus_message_header(&message, "Content-Type"), "application/json");
    assert_true(message.kept.ptr == out.payload.ptr);
    assert_int_equal(message.original, 0);
}

static void what_stays_in_clear_says_nothing_of_a_person(void **state)
{
    Stage *s = *state;
    BusOut out = an_event();
    out.event_id = STR("acme/order.placed/alice@example.com");
    assert_true(event_seal_out(s->keys, NOW_US, &out, s->arena, &s->err));
    assert_int_equal(out.event_id.len, 64); // its SHA-256
    assert_int_equal(out.header_count, 3);
    assert_string_equal(out.headers[0].name, EVENT_SEALED_HEADER);
    assert_string_equal(out.headers[1].name, "Content-Type");
    assert_str(out.headers[1].value, EVENT_SEALED_TYPE);
    assert_string_equal(out.headers[2].name, "ce-id");
    BusMessage message = stored(&out);
    assert_true(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
    assert_str(message.event_id, "acme/order.placed/alice@example.com");
}

static void an_event_does_not_open_under_another_subject_or_tenant(void **state)
{
    Stage *s = *state;
    static const char *const subjects[] = {"evt.acme.other", "evt.beta.order.placed", "evt"};
    BusOut out = sealed(s, NOW_US);
    for (size_t i = 0; i < 3; i++) {
        BusMessage message = stored(&out);
        message.subject = str_from(subjects[i]);
        assert_false(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
        assert_int_equal(s->err.kind, ERROR_PERMANENT);
        assert_true(message.kept.len > 0 && message.payload.ptr == out.payload.ptr);
    }
}

static void altered_bytes_are_refused(void **state)
{
    Stage *s = *state;
    BusOut out = sealed(s, NOW_US);
    for (size_t i = 4; i < out.payload.len; i += 7) {
        BusMessage message = stored(&out);
        char *bytes = arena_copy(s->arena, out.payload.ptr, out.payload.len);
        bytes[i] = (char)(bytes[i] ^ 1);
        message.payload = str_of(bytes, out.payload.len);
        assert_false(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
    }
}

static void it_opens_while_its_epoch_key_is_there_and_is_refused_by_name_afterwards(void **state)
{
    Stage *s = *state;
    open_epoch(s);
    BusOut out = sealed(s, NOW_US);
    char first[KEY_ID_SIZE];
    memcpy(first, s->current, sizeof first);
    open_epoch(s);
    BusMessage message = stored(&out);
    assert_true(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
    s->texts[0] = s->texts[1]; // the first one is destroyed
    s->count = 1;
    BusOut next = sealed(s, NOW_US + 2 * MINUTE_US);
    message = stored(&out);
    assert_false(event_open(s->keys, NOW_US + 2 * MINUTE_US, &message, s->arena, &s->err));
    assert_int_equal(s->err.kind, ERROR_TRANSIENT); // a shared folder may be behind
    assert_false(event_open(s->keys, NOW_US + 4 * MINUTE_US, &message, s->arena, &s->err));
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(s->err.text, first));
    message = stored(&next);
    assert_true(event_open(s->keys, NOW_US + 4 * MINUTE_US, &message, s->arena, &s->err));
}

static void the_next_epoch_seals_within_a_minute(void **state)
{
    Stage *s = *state;
    open_epoch(s);
    BusOut before = sealed(s, NOW_US);
    open_epoch(s);
    BusOut after = sealed(s, NOW_US + MINUTE_US);
    s->texts[0] = s->texts[1];
    s->count = 1;
    assert_true(master_epochs_refresh(s->master, &s->err));
    BusMessage message = stored(&after);
    assert_true(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
    message = stored(&before);
    assert_false(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
}

static void nothing_is_sealed_once_the_folder_was_away_for_an_hour(void **state)
{
    Stage *s = *state;
    open_epoch(s);
    (void)sealed(s, NOW_US);
    s->broken = true;
    (void)sealed(s, NOW_US + 59 * MINUTE_US);
    BusOut out = an_event();
    assert_false(event_seal_out(s->keys, NOW_US + 61 * MINUTE_US, &out, s->arena, &s->err));
    assert_int_equal(s->err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(s->err.text, "the folder is away"));
}

static void a_copy_is_its_original_by_identity_place_and_time(void **state)
{
    Stage *s = *state;
    BusMessage original = {
        .subject = STR("evt.acme.order.placed"),
        .payload = str_from(DATA),
        .stream = "EVENTS",
        .sequence = 41,
        .stored_at_us = NOW_US - MINUTE_US,
        .headers = STR("NATS/1.0\r\nX-Own: 1\r\n\r\n"),
    };
    BusOut copy, again;
    assert_true(event_seal_copy(s->keys, NOW_US, &original, s->arena, &copy, &s->err));
    assert_true(event_seal_copy(s->keys, NOW_US, &original, s->arena, &again, &s->err));
    assert_true(str_eq(copy.event_id, again.event_id) && copy.event_id.len == 22);
    BusMessage message = stored(&copy);
    assert_true(event_open(s->keys, NOW_US, &message, s->arena, &s->err));
    assert_int_equal(bus_message_place(&message), 41);
    assert_int_equal(message.stored_at_us, original.stored_at_us);
    assert_str(bus_message_header(&message, "X-Own"), "1");
    BusMessage letter = stored(&copy);
    letter.payload = message.kept;
    letter.event_id = STR("resent");
    assert_true(event_open(s->keys, NOW_US, &letter, s->arena, &s->err));
    assert_int_equal(bus_message_place(&letter), 9);
    assert_str(letter.event_id, "resent");
    DomainInput input = domain_input(&message, STR("acme"), STR("order.placed"), NULL);
    DomainEvent event;
    assert_true(domain_event_read(&input, s->arena, &event, &s->err));
    assert_str(event.identity, "EVENTS/41");
    domain_event_free(&event);
}

static void a_dead_letter_keeps_what_came_in_clear_sealed(void **state)
{
    Stage *s = *state;
    BusOut out = an_event();
    BusMessage message = stored(&out);
    message.headers = STR("NATS/1.0\r\nNats-Msg-Id: c-1\r\n\r\n");
    event_keep(s->keys, NOW_US, &message, s->arena);
    assert_true(event_is_sealed(message.kept) && message.payload.ptr == DATA);
    message.payload = STR("{\"only\":\"alice@example.com\"}");
    event_keep_letter(s->keys, NOW_US, &message, s->arena);
    BusMessage again = stored(&out);
    again.payload = message.kept;
    again.event_id = STR("resent");
    assert_true(event_open(s->keys, NOW_US, &again, s->arena, &s->err));
    assert_str(again.payload, "{\"only\":\"alice@example.com\"}");
    assert_str(again.event_id, "acme/order.placed/c-1");
    assert_int_equal(again.original, 0); // an event of its own place, with a letter of its own
}

static void a_dead_letter_keeps_the_beginning_of_what_is_too_large_sealed(void **state)
{
    Stage *s = *state;
    BusOut out = an_event();
    BusMessage message = stored(&out);
    char *large = arena_zalloc(s->arena, EVENT_BYTES_MAX);
    memcpy(large, DATA, strlen(DATA));
    message.payload = str_of(large, EVENT_BYTES_MAX - 100);
    event_keep(s->keys, NOW_US, &message, s->arena);
    assert_true(event_is_sealed(message.kept));
    assert_true(message.kept.len <= EVENT_BYTES_MAX - 4096); // what a letter has room for
    BusMessage again = stored(&out);
    again.payload = message.kept;
    assert_true(event_open(s->keys, NOW_US, &again, s->arena, &s->err));
    assert_true(str_starts(again.payload, str_from(DATA)));
}

static void events_of_ours_without_personal_data_stay_in_clear(void **state)
{
    (void)state;
    assert_true(event_is_plain(STR("CleanUpSentEmail"), STR("{\"requested_by\":\"operator\"}")));
    assert_true(event_is_plain(STR("PlaceOrderTimeout"), STR_EMPTY));
    assert_false(event_is_plain(STR("CleanUpSentEmail"), STR("{\"requested_by\":\"a@b.test\"}")));
    assert_false(event_is_plain(STR("CleanUpOrders"), STR("{\"phone\":\"+49170\"}")));
    assert_false(event_is_plain(STR("PlaceOrder"), STR("{}")));
}

static void a_piece_is_bound_to_its_place_and_one_in_clear_stays(void **state)
{
    Stage *s = *state;
    Str piece, back;
    assert_true(event_seal_piece(
        s->keys, NOW_US, STR("acme"), STR("m-1"), STR("tracked"), s->arena, &piece, &s->err));
    assert_true(event_open_piece(
        s->keys, NOW_US, STR("acme"), STR("m-1"), piece, s->arena, &back, &s->err));
    assert_str(back, "tracked");
    assert_false(event_open_piece(
        s->keys, NOW_US, STR("acme"), STR("m-2"), piece, s->arena, &back, &s->err));
    assert_true(event_open_piece(
        s->keys, NOW_US, STR("acme"), STR("m-2"), STR("in clear"), s->arena, &back, &s->err));
    assert_str(back, "in clear");
}

static void an_event_that_is_too_large_when_sealed_is_refused(void **state)
{
    Stage *s = *state;
    BusOut out = an_event();
    char *large = arena_zalloc(s->arena, EVENT_BYTES_MAX);
    out.payload = str_of(large, EVENT_BYTES_MAX - 100);
    assert_false(event_seal_out(s->keys, NOW_US, &out, s->arena, &s->err));
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(a_sealed_event_opens_as_it_was),
        ROW(what_stays_in_clear_says_nothing_of_a_person),
        ROW(an_event_does_not_open_under_another_subject_or_tenant),
        ROW(altered_bytes_are_refused),
        ROW(it_opens_while_its_epoch_key_is_there_and_is_refused_by_name_afterwards),
        ROW(the_next_epoch_seals_within_a_minute),
        ROW(nothing_is_sealed_once_the_folder_was_away_for_an_hour),
        ROW(a_copy_is_its_original_by_identity_place_and_time),
        ROW(a_dead_letter_keeps_what_came_in_clear_sealed),
        ROW(a_dead_letter_keeps_the_beginning_of_what_is_too_large_sealed),
        ROW(events_of_ours_without_personal_data_stay_in_clear),
        ROW(a_piece_is_bound_to_its_place_and_one_in_clear_stays),
        ROW(an_event_that_is_too_large_when_sealed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
