// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "services/ingest/accept/events.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NTF "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

typedef struct Fixture {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    Request request;
    GateDecision decision;
    bool packed;
    Frame frames[EVENTS_PER_NOTIFICATION];
    size_t count;
} Fixture;

static int set_up(void **state)
{
    static Fixture f;
    f = (Fixture){.arena = arena_new(0)};
    char text[132];
    master_key_generate(text);
    f.master = master_key_parse(str_from(text), NULL);
    uint8_t subject[16] = {1};
    uint8_t wrapped[WRAPPED_KEY_LEN];
    f.key = data_key_new(f.master, subject, 1, wrapped);
    f.request = (Request){
        .to = STR("alice@example.com"),
        .to_name = STR("Alice"),
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_BILLING,
        .priority = PRIORITY_HIGH,
        .template_key = STR("welcome"),
        .template_version = STR("1.0.0"),
        .variables = STR("{\"secret\":\"tulip\"}"),
        .correlation_id = STR("c-1"),
    };
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    data_key_free(f->key);
    master_key_free(f->master);
    arena_free(f->arena);
    return 0;
}

static void build(Fixture *f)
{
    static const uint8_t hash[ADDRESS_HASH_LEN] = {7};
    Acceptance acceptance = {
        .tenant = STR("acme"),
        .id = NTF,
        .accepted_at_us = 1000000,
        .traceparent = STR(TRACE),
        .address_hash = hash,
        .key = f->key,
        .decision = f->decision,
        .gate_trace = "T+S+A+",
        .digest = {STR("digest"), STR("2.0.0")},
        .time_zone = STR("Asia/Tokyo"),
        .packed = f->packed,
    };
    bool sealed = f->decision.verdict != GATE_SUPPRESS;
    if (!sealed) {
        acceptance.key = NULL; // nothing is sealed then
    }
    assert_true(events_build(&f->request, &acceptance, f->arena, f->frames, &f->count, NULL));
    assert_int_equal(f->count, (sealed ? 2 : 1) + (f->request.supersedes ? 1 : 0));
}

static void *read_event(Fixture *f, const ProtobufCMessageDescriptor *type, const Frame *frame)
{
    void *message = event_unpack(type, frame->out.payload, f->arena, NULL);
    assert_non_null(message);
    return message;
}

static void a_request_for_now_goes_to_its_lane(void **state)
{
    Fixture *f = *state;
    build(f);
    assert_int_equal(f->frames[0].kind, FRAME_REQUEST);
    assert_string_equal(f->frames[0].out.subject, "ntf.request.high.acme");
    const Stentor__V1__NotificationRequest *event =
        read_event(f, &stentor__v1__notification_request__descriptor, &f->frames[0]);
    char id[EVENT_ID_SIZE];
    event_id_derive("request", STR(NTF), STR_EMPTY, id);
    assert_string_equal(event->meta->event_id, id);
    assert_true(str_eq(f->frames[0].out.event_id, str_from(id)));
    assert_string_equal(event->meta->notification_id, NTF);
    assert_string_equal(event->template_version, "1.0.0");
    assert_int_equal(event->accepted_at_us, 1000000);
    assert_int_equal(event->address_hash.len, ADDRESS_HASH_LEN);
}

static const Stentor__V1__NotificationRequest *build_for(Fixture *f, Channel channel)
{
    f->request.channel = channel;
    build(f);
    return read_event(f, &stentor__v1__notification_request__descriptor, &f->frames[0]);
}

static void a_call_carries_its_quiet_hours(void **state)
{
    Fixture *f = *state;
    Zones *zones = zones_new();
    f->request.to = STR("+4915112345678");
    assert_null(build_for(f, CHANNEL_VOICE)->quiet_hours);
    f->decision.quiet = (QuietHours){1320, 420};
    f->decision.zone = zones_get(zones, STR("Europe/Berlin"), NULL);
    const Stentor__V1__NotificationRequest *event = build_for(f, CHANNEL_VOICE);
    assert_int_equal(event->quiet_hours->start_minute, 1320);
    assert_int_equal(event->quiet_hours->end_minute, 420);
    assert_string_equal(event->quiet_zone, "Europe/Berlin");
    assert_null(build_for(f, CHANNEL_SMS)->quiet_hours);
    f->decision.zone = NULL; // a static fixture
    zones_free(zones);
}

// Once: of `queued`, whose request comes with it, the request says it.
static void what_the_gate_asked_is_said_once(void **state)
{
    Fixture *f = *state;
    static const GateVerdict verdicts[] = {GATE_GO, GATE_DEFER, GATE_SUPPRESS};
    for (size_t i = 0; i < 3; i++) {
        bool go = verdicts[i] == GATE_GO;
        f->decision =
            (GateDecision){.verdict = verdicts[i], .reason = go ? GATE_NO_REASON : GATE_SCHEDULE};
        build(f);
        const Stentor__V1__NotificationStatus *status =
            read_event(f, &stentor__v1__notification_status__descriptor, &f->frames[f->count - 1]);
        assert_string_equal(status->gate_trace, go ? "" : "T+S+A+");
        if (go) {
            const Stentor__V1__NotificationRequest *request =
                read_event(f, &stentor__v1__notification_request__descriptor, &f->frames[0]);
            assert_string_equal(request->gate_trace, "T+S+A+");
        }
    }
}

// Whatever becomes of the notification itself.
static void what_supersedes_brings_the_cancellation_before_it(void **state)
{
    Fixture *f = *state;
    static const GateVerdict VERDICTS[] = {GATE_GO, GATE_DEFER, GATE_SUPPRESS};
    f->request.supersedes = true;
    f->request.cancel_key = STR("remind/s-1");
    f->request.trigger_key = STR("remind");
    f->request.source_event_id = STR("e-2");
    f->request.source_event_at_us = 777777;
    for (size_t i = 0; i < 3; i++) {
        f->decision = (GateDecision){.verdict = VERDICTS[i], .reason = GATE_NO_ADDRESS};
        if (VERDICTS[i] == GATE_DEFER) {
            f->decision = (GateDecision){.verdict = GATE_DEFER, .reason = GATE_SCHEDULE};
        }
        build(f);
        assert_int_equal(f->frames[0].kind, FRAME_DEFERRED);
        assert_string_equal(f->frames[0].out.subject, "ntf.deferred.cancel.acme");
        const Stentor__V1__Deferred *event =
            read_event(f, &stentor__v1__deferred__descriptor, &f->frames[0]);
        assert_string_equal(event->cancel->cancel_key, "remind/s-1");
        assert_string_equal(event->cancel->newer_event_id, "e-2");
        assert_int_equal(event->cancel->newer_at_us, 777777);
        assert_int_equal(event->cancel->before_us, 777000); // for a reader of the version before
    }
    f->decision = (GateDecision){.verdict = GATE_GO};
    build(f);
    const Stentor__V1__NotificationRequest *request =
        read_event(f, &stentor__v1__notification_request__descriptor, &f->frames[1]);
    assert_int_equal(request->source_event_at_us, 777777); // what a later cancellation compares
}

static void personal_data_is_sealed_and_can_be_opened_with_the_key(void **state)
{
    Fixture *f = *state;
    build(f);
    Str bytes = frames_pack(f->frames, f->count, f->arena);
    static const char *const SECRETS[] = {"alice", "Alice", "tulip"};
    for (size_t i = 0; i < sizeof SECRETS / sizeof SECRETS[0]; i++) {
        size_t len = strlen(SECRETS[i]);
        for (size_t at = 0; at + len <= bytes.len; at++) {
            assert_true(memcmp(bytes.ptr + at, SECRETS[i], len) != 0);
        }
    }
    const Stentor__V1__NotificationRequest *event =
        read_event(f, &stentor__v1__notification_request__descriptor, &f->frames[0]);
    Str plain = STR_EMPTY;
    assert_true(unseal(
        f->key, STR("acme"), STR(NTF), "variables", event->variables, f->arena, &plain, NULL));
    assert_true(str_eq(plain, f->request.variables));
    assert_true(
        unseal(f->key, STR("acme"), STR(NTF), "address", event->address, f->arena, &plain, NULL));
    const Stentor__V1__Address *address = (const Stentor__V1__Address *)event_unpack(
        &stentor__v1__address__descriptor, plain, f->arena, NULL);
    assert_string_equal(address->address, "alice@example.com");
    assert_string_equal(address->name, "Alice");
}

static void long_variables_are_packed_where_readers_know_that(void **state)
{
    Fixture *f = *state;
    char text[4000];
    memset(text, 'x', sizeof text);
    char *json = arena_printf(f->arena, "{\"secret\":\"%.*s\"}", (int)sizeof text, text);
    f->request.variables = str_from(json);
    for (int packed = 0; packed <= 1; packed++) {
        f->packed = packed == 1;
        build(f);
        const Stentor__V1__NotificationRequest *event =
            read_event(f, &stentor__v1__notification_request__descriptor, &f->frames[0]);
        assert_int_equal(event->variables->packed, packed);
        assert_int_equal(f->frames[0].out.payload.len < 1000, packed);
        Str plain = STR_EMPTY;
        assert_true(unseal(
            f->key, STR("acme"), STR(NTF), "variables", event->variables, f->arena, &plain, NULL));
        assert_true(str_eq(plain, f->request.variables));
    }
}

static void the_status_of_a_request_for_now_is_queued(void **state)
{
    Fixture *f = *state;
    build(f);
    assert_int_equal(f->frames[1].kind, FRAME_STATUS);
    assert_string_equal(f->frames[1].out.subject, "ntf.status.acme.email.queued");
    const Stentor__V1__NotificationStatus *status =
        read_event(f, &stentor__v1__notification_status__descriptor, &f->frames[1]);
    char id[EVENT_ID_SIZE];
    event_id_derive("status", STR(NTF), STR("queued/0"), id);
    assert_string_equal(status->meta->event_id, id);
    assert_string_equal(status->meta->correlation_id, "c-1");
    assert_true(str_eq(f->frames[0].out.event_id, str_from(status->meta->causation_id)));
}

static void a_request_for_later_waits_on_deferred_with_the_request_inside(void **state)
{
    Fixture *f = *state;
    f->request.scheduled_for_us = 5000000;
    f->decision =
        (GateDecision){.verdict = GATE_DEFER, .reason = GATE_SCHEDULE, .until_us = 5000000};
    build(f);
    assert_int_equal(f->frames[0].kind, FRAME_DEFERRED);
    assert_string_equal(f->frames[0].out.subject, "ntf.deferred.schedule.acme");
    const Stentor__V1__Deferred *deferred =
        read_event(f, &stentor__v1__deferred__descriptor, &f->frames[0]);
    assert_int_equal(deferred->due_at_us, 5000000);
    assert_int_equal(deferred->work_case, STENTOR__V1__DEFERRED__WORK_REQUEST);
    char id[EVENT_ID_SIZE];
    event_id_derive("request", STR(NTF), STR_EMPTY, id);
    assert_string_equal(deferred->request->meta->event_id, id);
    // It has no header of its own there, and its trace must not end with the wait.
    assert_string_equal(deferred->request->meta->traceparent, TRACE);
    assert_true(str_eq(f->frames[0].out.traceparent, STR(TRACE)));
    event_id_derive("deferred", STR(NTF), STR("schedule"), id);
    assert_string_equal(deferred->meta->event_id, id);
    assert_string_equal(f->frames[1].out.subject, "ntf.status.acme.email.scheduled");
}

static void what_the_gate_puts_off_says_why(void **state)
{
    Fixture *f = *state;
    static const struct {
        GateReason reason;
        const char *subject, *code;
    } CASES[] = {
        {GATE_QUIET_HOURS, "ntf.deferred.quiet.acme", "quiet_hours"},
        {GATE_RATE_LIMIT, "ntf.deferred.limit.acme", "rate_limit"},
        {GATE_SCHEDULE, "ntf.deferred.schedule.acme", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        f->decision =
            (GateDecision){.verdict = GATE_DEFER, .reason = CASES[i].reason, .until_us = 9000000};
        build(f);
        assert_string_equal(f->frames[0].out.subject, CASES[i].subject);
        const Stentor__V1__Deferred *deferred =
            read_event(f, &stentor__v1__deferred__descriptor, &f->frames[0]);
        assert_int_equal(deferred->due_at_us, 9000000);
        assert_null(deferred->digest);
        const Stentor__V1__NotificationStatus *status =
            read_event(f, &stentor__v1__notification_status__descriptor, &f->frames[1]);
        assert_string_equal(status->reason_code, CASES[i].code);
        assert_int_equal(status->scheduled_for_us, 9000000);
        assert_string_equal(f->frames[1].out.subject, "ntf.status.acme.email.scheduled");
    }
}

static void what_is_gathered_names_its_window(void **state)
{
    Fixture *f = *state;
    f->request.recipient_id = STR("rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    f->request.locale = STR("de");
    f->decision =
        (GateDecision){.verdict = GATE_GATHER, .reason = GATE_DIGEST, .until_us = 9000000};
    build(f);
    assert_string_equal(f->frames[0].out.subject, "ntf.deferred.digest.acme");
    const Stentor__V1__Deferred *deferred =
        read_event(f, &stentor__v1__deferred__descriptor, &f->frames[0]);
    const Stentor__V1__DigestWindow *window = deferred->digest;
    assert_non_null(window);
    char id[EVENT_ID_SIZE];
    event_id_derive("window", f->request.recipient_id, STR("acme/billing/email/9000000"), id);
    assert_string_equal(window->window_id + 4, id);
    assert_memory_equal(window->window_id, "dgw_", 4);
    assert_int_equal(window->flush_at_us, 9000000);
    assert_string_equal(window->template_, "digest");
    assert_string_equal(window->template_version, "2.0.0");
    assert_string_equal(window->locale, "de");
    assert_non_null(deferred->request);
    assert_string_equal(deferred->request->time_zone, "Asia/Tokyo");
    const Stentor__V1__NotificationStatus *status =
        read_event(f, &stentor__v1__notification_status__descriptor, &f->frames[1]);
    assert_string_equal(status->reason_code, "digest");
    assert_string_equal(status->digest_window_id, window->window_id);
}

static void of_what_is_suppressed_there_is_one_status(void **state)
{
    Fixture *f = *state;
    f->decision = (GateDecision){.verdict = GATE_SUPPRESS, .reason = GATE_HARD_BOUNCE};
    build(f);
    assert_int_equal(f->frames[0].kind, FRAME_STATUS);
    assert_string_equal(f->frames[0].out.subject, "ntf.status.acme.email.suppressed");
    const Stentor__V1__NotificationStatus *status =
        read_event(f, &stentor__v1__notification_status__descriptor, &f->frames[0]);
    assert_string_equal(status->reason_code, "hard_bounce");
    char id[EVENT_ID_SIZE];
    event_id_derive("status", STR(NTF), STR("suppressed/0"), id);
    assert_string_equal(status->meta->event_id, id);
}

static Str pack_part(Fixture *f, size_t first, size_t count)
{
    Str part = frames_pack(f->frames + first, count, f->arena);
    return f->packed ? frames_compress(part, f->arena) : part;
}

static Str row_of_two_parts(Fixture *f)
{
    Str head = f->packed ? FRAMES_HEAD_ZSTD : FRAMES_HEAD;
    Str first = pack_part(f, 0, 1);
    Str rest = pack_part(f, 1, f->count - 1);
    size_t len = head.len + first.len + rest.len;
    char *bytes = arena_alloc(f->arena, len);
    memcpy(bytes, head.ptr, head.len);
    memcpy(bytes + head.len, first.ptr, first.len);
    memcpy(bytes + head.len + first.len, rest.ptr, rest.len);
    return str_of(bytes, len);
}

static void check_back(Fixture *f)
{
    build(f);
    Str bytes = row_of_two_parts(f);
    Frame *back = NULL;
    size_t count = 0;
    assert_true(frames_unpack(bytes, f->arena, &back, &count, NULL));
    assert_int_equal(count, f->count);
    for (size_t i = 0; i < count; i++) {
        const BusOut *a = &f->frames[i].out;
        const BusOut *b = &back[i].out;
        assert_int_equal(back[i].kind, f->frames[i].kind);
        assert_string_equal(a->subject, b->subject);
        assert_true(str_eq(a->event_id, b->event_id) && str_eq(a->payload, b->payload));
        assert_int_equal(a->header_count, b->header_count);
        for (size_t h = 0; h < a->header_count; h++) {
            assert_string_equal(a->headers[h].name, b->headers[h].name);
            assert_true(str_eq(a->headers[h].value, b->headers[h].value));
        }
    }
}

static void frames_come_back_as_they_went_with_their_headers(void **state)
{
    Fixture *f = *state;
    check_back(f);
    f->packed = true;
    check_back(f);
}

static void check_cuts(Fixture *f)
{
    build(f);
    Str bytes = row_of_two_parts(f);
    Frame *back = NULL;
    size_t count = 0;
    size_t whole = FRAMES_HEAD.len + pack_part(f, 0, 1).len;
    for (size_t len = 0; len < bytes.len; len++) {
        Error err = {0};
        bool ok = frames_unpack(str_slice(bytes, 0, len), f->arena, &back, &count, &err);
        bool between = len == 1 || len == whole; // a shorter list is a list
        assert_int_equal(ok, between);
        assert_true(ok || err.kind == ERROR_PERMANENT);
    }
}

static void frames_cut_anywhere_are_refused(void **state)
{
    Fixture *f = *state;
    check_cuts(f);
    f->packed = true;
    check_cuts(f);
}

// A row says how long it is: one that says too much is refused before there is memory for it.
static void a_row_that_says_it_is_too_long_is_refused(void **state)
{
    Fixture *f = *state;
    static const char says[] = {
        2, 0x28, (char)0xb5, 0x2f, (char)0xfd, (char)0xa0, // 4 bytes of length
        0, 0,    0,          0x11, 1,          0,          0};
    Frame *back = NULL;
    size_t count = 0;
    Error err = {0};
    assert_false(frames_unpack(str_of(says, sizeof says), f->arena, &back, &count, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "decompress"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_carries_its_quiet_hours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_gate_asked_is_said_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_supersedes_brings_the_cancellation_before_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_for_now_goes_to_its_lane, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            personal_data_is_sealed_and_can_be_opened_with_the_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_row_that_says_it_is_too_long_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            long_variables_are_packed_where_readers_know_that, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_status_of_a_request_for_now_is_queued, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_request_for_later_waits_on_deferred_with_the_request_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_gate_puts_off_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_gathered_names_its_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            of_what_is_suppressed_there_is_one_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            frames_come_back_as_they_went_with_their_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_cut_anywhere_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
