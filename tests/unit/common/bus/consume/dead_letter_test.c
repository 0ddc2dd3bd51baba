// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/consume/dead_letter.h"
#include "common/codec/event.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/inbound.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NTF "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static Str packed(const ProtobufCMessage *message, Arena *arena)
{
    Str bytes = STR_EMPTY;
    assert_true(event_pack(message, arena, &bytes, NULL));
    return bytes;
}

static Str packed_attempt(uint32_t number, const char *words, Arena *arena)
{
    Stentor__V1__Attempt attempt;
    stentor__v1__attempt__init(&attempt);
    attempt.number = number;
    attempt.text = text(words);
    return packed(&attempt.base, arena);
}

static Stentor__V1__DeadLetter *dead_letter_of(
    const char *stream, Str payload, Str last, Arena *arena)
{
    BusMessage message = {
        .subject = STR("ntf.rendered.normal.acme"),
        .payload = payload,
        .stream = stream,
        .sequence = 7,
        .delivered = 2};
    BusOut out;
    assert_true(dead_letter_pack(
        &message,
        &(DeadLetterSpec){
            .stage = "dispatcher",
            .reason = "a reason",
            .reason_code = STR("rejected"),
            .last_attempt = last},
        arena, &out));
    Stentor__V1__DeadLetter *letter = (Stentor__V1__DeadLetter *)event_unpack(
        &stentor__v1__dead_letter__descriptor, out.payload, arena, NULL);
    assert_non_null(letter);
    assert_string_equal(letter->meta->tenant, "acme");
    assert_string_equal(letter->reason_code, "rejected");
    return letter;
}

static Stentor__V1__Meta meta_of(const char *notification)
{
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.notification_id = text(notification);
    return meta;
}

static void the_notification_is_read_from_every_stream_that_has_one(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Meta meta = meta_of(NTF);
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.meta = &meta;
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.meta = &meta;
    Stentor__V1__NotificationStatus status;
    stentor__v1__notification_status__init(&status);
    status.meta = &meta;
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.meta = &meta;
    const struct {
        const char *stream;
        const ProtobufCMessage *message;
        const char *expected;
    } rows[] = {
        {"REQUEST_LOW", &request.base, NTF}, {"RENDERED_HIGH", &rendered.base, NTF},
        {"STATUS", &status.base, NTF},       {"SETTLE", &status.base, NTF},
        {"DEFERRED", &deferred.base, NTF},   {"EVENTS", &status.base, "unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const Stentor__V1__DeadLetter *letter =
            dead_letter_of(rows[i].stream, packed(rows[i].message, arena), STR_EMPTY, arena);
        assert_string_equal(letter->meta->notification_id, rows[i].expected);
        assert_int_equal(letter->n_attempts, 0);
    }
    arena_free(arena);
}

static void attempts_are_the_mails_own_and_the_last_one(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Attempt first;
    stentor__v1__attempt__init(&first);
    first.number = 1;
    Stentor__V1__Attempt *attempts[] = {&first};
    Stentor__V1__Meta meta = meta_of(NTF);
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.meta = &meta;
    rendered.attempts = attempts;
    rendered.n_attempts = 1;
    Str payload = packed(&rendered.base, arena);
    const Stentor__V1__DeadLetter *letter =
        dead_letter_of("RENDERED_LOW", payload, packed_attempt(2, "words", arena), arena);
    assert_int_equal(letter->n_attempts, 2);
    assert_int_equal(letter->attempts[0]->number, 1);
    assert_int_equal(letter->attempts[1]->number, 2);
    assert_string_equal(letter->attempts[1]->text, "words");
    assert_int_equal(dead_letter_of("RENDERED_LOW", payload, STR_EMPTY, arena)->n_attempts, 1);
    assert_int_equal(
        dead_letter_of("RENDERED_LOW", payload, STR("\xff no attempt"), arena)->n_attempts, 1);
    arena_free(arena);
}

static void what_cannot_be_read_still_has_a_dead_letter(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str payload = STR("\xff\xffnot protobuf");
    const Stentor__V1__DeadLetter *letter =
        dead_letter_of("RENDERED_LOW", payload, packed_attempt(3, "", arena), arena);
    assert_string_equal(letter->meta->notification_id, "unknown");
    assert_true(str_eq(pb_bytes(letter->payload), payload));
    assert_int_equal(letter->n_attempts, 1);
    Stentor__V1__Meta meta = meta_of("an unknown id");
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.meta = &meta;
    letter = dead_letter_of("RENDERED_LOW", packed(&rendered.base, arena), STR_EMPTY, arena);
    assert_string_equal(letter->meta->notification_id, "unknown");
    arena_free(arena);
}

static void beside_a_payload_near_the_limit_the_oldest_attempts_give_way(void **state)
{
    (void)state;
    enum { ATTEMPTS = 20, WORDS = 500 };
    Arena *arena = arena_new(0);
    char *words = arena_zalloc(arena, WORDS + 1);
    memset(words, 'w', WORDS);
    Stentor__V1__Attempt *attempts[ATTEMPTS];
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        attempts[i] = arena_alloc(arena, sizeof *attempts[i]);
        stentor__v1__attempt__init(attempts[i]);
        attempts[i]->number = i + 1;
        attempts[i]->text = words;
    }
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.attempts = attempts;
    rendered.n_attempts = ATTEMPTS;
    size_t size = EVENT_BYTES_MAX - 4096 - ATTEMPTS * (WORDS + 16);
    rendered.address_hash = pb_data(str_of(arena_zalloc(arena, size), size));
    Str payload = packed(&rendered.base, arena);
    const Stentor__V1__DeadLetter *letter =
        dead_letter_of("RENDERED_LOW", payload, packed_attempt(21, "last", arena), arena);
    assert_true(str_eq(pb_bytes(letter->payload), payload)); // whole
    assert_in_range(letter->n_attempts, 2, ATTEMPTS - 1);
    assert_int_equal(letter->attempts[letter->n_attempts - 1]->number, 21);
    assert_int_equal(letter->attempts[letter->n_attempts - 2]->number, 20);
    arena_free(arena);
}

static Str id_of(const char *stage, uint64_t sequence, Arena *arena)
{
    BusMessage message = {
        .stream = "REQUEST_NORMAL",
        .subject = STR("ntf.request.normal.acme"),
        .sequence = sequence,
        .delivered = 1,
    };
    BusOut out;
    assert_true(dead_letter_pack(
        &message, &(DeadLetterSpec){.stage = stage, .reason = "not readable"}, arena, &out));
    return out.event_id;
}

// Renderer and archiver both read REQUEST_*; with one id JetStream would drop the second letter.
static void a_letter_is_the_same_for_a_stage_and_another_for_each_stage(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str first = id_of("renderer", 7, arena);
    assert_true(str_eq(first, id_of("renderer", 7, arena)));
    assert_false(str_eq(first, id_of("archiver", 7, arena)));
    assert_false(str_eq(first, id_of("renderer", 8, arena)));
    arena_free(arena);
}

static void a_callback_s_tenant_is_not_in_its_subject(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Meta meta = meta_of("");
    meta.tenant = text("acme");
    Stentor__V1__InboundCallback callback;
    stentor__v1__inbound_callback__init(&callback);
    callback.meta = &meta;
    const Str payloads[] = {packed(&callback.base, arena), STR("\xff poison")};
    const char *const subjects[] = {
        "ntf.dead.webhook-receiver.acme", "ntf.dead.webhook-receiver.unknown"};
    for (size_t i = 0; i < 2; i++) {
        BusMessage message = {
            .stream = "INBOUND", .subject = STR("ntf.inbound.sendgrid"), .payload = payloads[i]};
        BusOut out;
        assert_true(dead_letter_pack(
            &message, &(DeadLetterSpec){.stage = "webhook-receiver", .reason = "no array"}, arena,
            &out));
        assert_string_equal(out.subject, subjects[i]);
    }
    arena_free(arena);
}

static void a_letter_can_be_read_whatever_its_reason_quotes(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    BusMessage message = {
        .stream = "EVENTS",
        .subject = STR("evt.acme.stay"),
        .event_id = STR("id-\xff"),
        .payload = STR("{}"),
    };
    BusOut out;
    assert_true(dead_letter_pack(
        &message, &(DeadLetterSpec){.stage = "ingest", .reason = "not \"\xc3\" but G\xc3\xbcl"},
        arena, &out));
    const Stentor__V1__DeadLetter *letter = (const Stentor__V1__DeadLetter *)event_unpack(
        &stentor__v1__dead_letter__descriptor, out.payload, arena, NULL);
    assert_non_null(letter);
    assert_string_equal(letter->reason, "not \"?\" but G\xc3\xbcl");
    assert_string_equal(letter->meta->causation_id, "id-?");
    arena_free(arena);
}

static void of_an_event_it_keeps_what_was_sealed_and_no_id_that_may_be_an_address(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    BusMessage message = {
        .subject = STR("evt.acme.stay"),
        .payload = STR("{\"email\":\"alice@example.com\"}"),
        .event_id = STR("for-alice@example.com"),
        .kept = STR("sealed"),
        .stream = "EVENTS",
        .sequence = 12,
        .original = 7};
    BusOut out;
    DeadLetterSpec spec = {.stage = "ingest", .reason = "a reason", .produced_at_us = 5};
    assert_true(dead_letter_pack(&message, &spec, arena, &out));
    Stentor__V1__DeadLetter *letter = (Stentor__V1__DeadLetter *)event_unpack(
        &stentor__v1__dead_letter__descriptor, out.payload, arena, NULL);
    assert_true(str_eq(pb_bytes(letter->payload), STR("sealed")));
    assert_int_equal(strlen(letter->meta->causation_id), 64); // its SHA-256
    assert_int_equal(letter->stream_sequence, 7);             // of the copy's original
    assert_int_equal(letter->produced_at_us, 5);
    arena_free(arena);
}

static const char *letter_id_of(BusMessage message, Arena *arena)
{
    BusOut out;
    message.subject = STR("ntf.request.normal.acme");
    assert_true(dead_letter_pack(
        &message, &(DeadLetterSpec){.stage = "renderer", .reason = "a reason"}, arena, &out));
    return arena_cstr(arena, out.event_id);
}

static void an_event_that_was_stored_twice_has_one_letter(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    BusMessage first = {.stream = "REQUEST_NORMAL", .event_id = STR("one"), .sequence = 7};
    BusMessage again = first, next = first;
    again.sequence = 8;
    next.event_id = STR("two");
    assert_string_equal(letter_id_of(first, arena), letter_id_of(again, arena));
    assert_string_not_equal(letter_id_of(first, arena), letter_id_of(next, arena));
    next.stream = "REQUEST_HIGH";
    next.event_id = first.event_id;
    assert_string_not_equal(letter_id_of(first, arena), letter_id_of(next, arena));
    arena_free(arena);
}

static void where_ids_are_not_ours_each_message_has_its_letter(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    BusMessage first = {.stream = "EVENTS", .event_id = STR("chosen"), .sequence = 7};
    BusMessage next = first, copy = first;
    next.sequence = 8;
    copy.sequence = 9;
    copy.original = 7;
    assert_string_not_equal(letter_id_of(first, arena), letter_id_of(next, arena));
    assert_string_equal(letter_id_of(first, arena), letter_id_of(copy, arena));
    BusMessage nameless = {.stream = "REQUEST_NORMAL", .sequence = 7};
    BusMessage other = {.stream = "REQUEST_NORMAL", .sequence = 8};
    assert_string_not_equal(letter_id_of(nameless, arena), letter_id_of(other, arena));
    BusMessage named = {.stream = "REQUEST_NORMAL", .event_id = STR("7"), .sequence = 8};
    assert_string_not_equal(letter_id_of(nameless, arena), letter_id_of(named, arena));
    arena_free(arena);
}

static Str reason_of(const char *reason, Str kept, Arena *arena)
{
    BusMessage message = {
        .subject = STR("evt.acme.stay"), .kept = kept, .stream = "EVENTS", .sequence = 12};
    BusOut out;
    DeadLetterSpec spec = {.stage = "ingest", .reason = reason};
    assert_true(dead_letter_pack(&message, &spec, arena, &out));
    return str_from(((Stentor__V1__DeadLetter *)event_unpack(
                         &stentor__v1__dead_letter__descriptor, out.payload, arena, NULL))
                        ->reason);
}

static void the_reason_of_a_sealed_event_quotes_no_address(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const char *quotes =
        "tenant 'acme' has no user 'alice@example.com' (path 'by'), nor \"+4912345\" at +1 'b@c";
    assert_true(str_eq(
        reason_of(quotes, STR("sealed"), arena),
        STR("tenant 'acme' has no user '*****************' (path 'by'), nor \"********\" at ** "
            "'***")));
    assert_true(str_eq(reason_of(quotes, STR_EMPTY, arena), str_from(quotes)));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_that_was_stored_twice_has_one_letter),
        cmocka_unit_test(where_ids_are_not_ours_each_message_has_its_letter),
        cmocka_unit_test(a_letter_is_the_same_for_a_stage_and_another_for_each_stage),
        cmocka_unit_test(a_callback_s_tenant_is_not_in_its_subject),
        cmocka_unit_test(the_notification_is_read_from_every_stream_that_has_one),
        cmocka_unit_test(attempts_are_the_mails_own_and_the_last_one),
        cmocka_unit_test(what_cannot_be_read_still_has_a_dead_letter),
        cmocka_unit_test(of_an_event_it_keeps_what_was_sealed_and_no_id_that_may_be_an_address),
        cmocka_unit_test(the_reason_of_a_sealed_event_quotes_no_address),
        cmocka_unit_test(a_letter_can_be_read_whatever_its_reason_quotes),
        cmocka_unit_test(beside_a_payload_near_the_limit_the_oldest_attempts_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
