// SPDX-License-Identifier: Apache-2.0
// Events for the tests of the history: complete protobuf messages with plausible values, changed by
// the test and packed as they come from a stream. Everything lives in the arena.
#pragma once

#include <assert.h>

#include "common/bus/jetstream/bus.h"
#include "common/codec/event.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NTF_ID "ntf_01KAGTQ5M0000000000000000A"
#define NTF_MS INT64_C(1763648968320)
#define AT(seconds) (NTF_MS * 1000 + (seconds)*INT64_C(1000000))

typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__NotificationStatus StatusEvent;
typedef Stentor__V1__Attempt Attempt;

static inline Stentor__V1__Meta *event_meta(Arena *arena, const char *id, int64_t at_us)
{
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof(*meta));
    stentor__v1__meta__init(meta);
    meta->event_id = arena_cstr(arena, STR("eventeventeventevent00"));
    meta->tenant = arena_cstr(arena, STR("demo"));
    meta->notification_id = arena_cstr(arena, str_from(id));
    meta->correlation_id = arena_cstr(arena, STR("corr-1"));
    meta->occurred_at_us = at_us;
    return meta;
}

static inline Request *request_new(Arena *arena, const char *id)
{
    Request *event = arena_alloc(arena, sizeof(*event));
    stentor__v1__notification_request__init(event);
    event->meta = event_meta(arena, id, AT(0));
    event->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    event->category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    event->priority = STENTOR__V1__PRIORITY__PRIORITY_HIGH;
    event->template_ = arena_cstr(arena, STR("welcome"));
    event->template_version = arena_cstr(arena, STR("1.0.0"));
    event->locale = arena_cstr(arena, STR("en-US"));
    event->recipient_id = arena_cstr(arena, STR("rcp_1"));
    event->source_event_id = arena_cstr(arena, STR("evt_1"));
    event->batch_id = arena_cstr(arena, STR("dbt_1"));
    event->source_event_type = arena_cstr(arena, STR("stay.confirmed"));
    event->copy_of = arena_cstr(arena, STR("ntf_first"));
    event->address_hash = pb_data(STR("hash-hash-hash-hash-hash-hash-32"));
    event->address = arena_alloc(arena, sizeof(*event->address));
    stentor__v1__sealed__init(event->address);
    event->address->key_generation = 1;
    event->address->ciphertext = pb_data(STR("sealed"));
    event->accepted_at_us = AT(0);
    event->expires_at_us = AT(3600);
    return event;
}

static inline StatusEvent *status_new(
    Arena *arena, const char *id, Stentor__V1__Status status, int64_t at_us)
{
    StatusEvent *event = arena_alloc(arena, sizeof(*event));
    stentor__v1__notification_status__init(event);
    event->meta = event_meta(arena, id, at_us);
    event->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    event->category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    event->priority = STENTOR__V1__PRIORITY__PRIORITY_HIGH;
    event->status = status;
    event->template_ = arena_cstr(arena, STR("welcome"));
    event->template_version = arena_cstr(arena, STR("1.0.0"));
    event->recipient_id = arena_cstr(arena, STR("rcp_1"));
    event->address_hash = pb_data(STR("hash-hash-hash-hash-hash-hash-32"));
    event->accepted_at_us = AT(0);
    return event;
}

static inline Attempt *attempt_new(
    Arena *arena, StatusEvent *of, uint32_t number, Stentor__V1__Outcome outcome)
{
    Attempt *attempt = arena_alloc(arena, sizeof(*attempt));
    stentor__v1__attempt__init(attempt);
    attempt->attempt_id = arena_cstr(arena, STR("dat_01KAGTQ5M0000000000000000B"));
    attempt->number = number;
    attempt->vendor = arena_cstr(arena, STR("smtp"));
    attempt->outcome = outcome;
    attempt->code = arena_cstr(arena, STR("250"));
    attempt->enhanced_code = arena_cstr(arena, STR("2.0.0"));
    attempt->text = arena_cstr(arena, STR("ok, queued"));
    attempt->started_at_us = AT(2);
    attempt->finished_at_us = AT(3);
    of->attempt = attempt;
    return attempt;
}

static inline BusMessage message_of(Arena *arena, const ProtobufCMessage *event, const char *stream)
{
    BusMessage message = {.stream = stream, .sequence = 1, .stored_at_us = AT(5), .delivered = 1};
    bool packed = event_pack(event, arena, &message.payload, NULL);
    assert(packed);
    (void)packed;
    return message;
}

static inline BusMessage request_message(Arena *arena, const Request *event)
{
    return message_of(arena, &event->base, "REQUEST_HIGH");
}

static inline BusMessage status_message(Arena *arena, const StatusEvent *event)
{
    return message_of(arena, &event->base, "STATUS");
}

// ---- a story whose events disagree wherever they can, for the tests of any order ----

enum { STORY_EVENTS = 5, STORY_ORDERS = 120 };

static inline void disagree(
    StatusEvent *event, const char *version, const char *code, const char *reason)
{
    event->template_version = (char *)(uintptr_t)version;
    event->reason_code = (char *)(uintptr_t)code;
    event->reason = (char *)(uintptr_t)reason;
}

static inline BusMessage story_event(Arena *arena, const char *id, int number)
{
    if (number == 0) {
        return request_message(arena, request_new(arena, id));
    }
    static const Stentor__V1__Status statuses[STORY_EVENTS] = {
        0, STENTOR__V1__STATUS__STATUS_SENDING, STENTOR__V1__STATUS__STATUS_SENT,
        STENTOR__V1__STATUS__STATUS_BOUNCED, STENTOR__V1__STATUS__STATUS_BOUNCED};
    StatusEvent *event = status_new(arena, id, statuses[number], AT(10 - number));
    if (number == 1) {
        disagree(event, "2.0.0", "retry", "try again");
        attempt_new(arena, event, 1, STENTOR__V1__OUTCOME__OUTCOME_TIMEOUT);
        event->scheduled_for_us = AT(100);
    } else if (number == 2) {
        disagree(event, "1.5.0", "", "");
        attempt_new(arena, event, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
        event->rendered_at_us = AT(1);
        event->content_checksum = pb_data(STR("checksum-a"));
    } else if (number == 3) {
        disagree(event, "", "mailbox_full", "the mailbox is full");
        attempt_new(arena, event, 2, STENTOR__V1__OUTCOME__OUTCOME_BOUNCE)->was_unknown = true;
        event->rendered_at_us = AT(2);
    } else {
        disagree(event, "1.0.0", "mailbox_full", "a mailbox full of letters");
        attempt_new(arena, event, 2, STENTOR__V1__OUTCOME__OUTCOME_BOUNCE)->code =
            (char *)(uintptr_t) "552";
        event->content_checksum = pb_data(STR("checksum-b"));
    }
    return status_message(arena, event);
}

// A mail that failed, was sent again, failed again, was sent again and taken.
static inline BusMessage resend_event(Arena *arena, const char *id, int number)
{
    if (number == 0) {
        return request_message(arena, request_new(arena, id));
    }
    static const Stentor__V1__Status statuses[STORY_EVENTS] = {
        0, STENTOR__V1__STATUS__STATUS_FAILED, STENTOR__V1__STATUS__STATUS_FAILED,
        STENTOR__V1__STATUS__STATUS_SENDING, STENTOR__V1__STATUS__STATUS_SENT};
    static const uint32_t lives[STORY_EVENTS] = {0, 0, 1, 2, 2};
    StatusEvent *event = status_new(arena, id, statuses[number], AT(10 * number));
    event->resends = lives[number];
    bool sent = number == 4;
    disagree(
        event, "1.0.0", sent ? "" : "retries_exhausted",
        sent          ? ""
        : number == 1 ? "zzz"
                      : "aaa");
    attempt_new(
        arena, event, (uint32_t)(number < 3 ? number : 3),
        sent ? STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED
             : STENTOR__V1__OUTCOME__OUTCOME_REJECTED_RETRYABLE);
    return status_message(arena, event);
}

// What the vendor says of the price of an attempt: in its answer, and in two callbacks.
static inline BusMessage cost_event(Arena *arena, const char *id, int number)
{
    if (number == 0) {
        return request_message(arena, request_new(arena, id));
    }
    static const Stentor__V1__Status statuses[STORY_EVENTS] = {
        0, STENTOR__V1__STATUS__STATUS_SENDING, STENTOR__V1__STATUS__STATUS_SENT,
        STENTOR__V1__STATUS__STATUS_DELIVERED, STENTOR__V1__STATUS__STATUS_OPENED};
    StatusEvent *event = status_new(arena, id, statuses[number], AT(number));
    bool callback = number >= 3;
    Attempt *attempt = attempt_new(
        arena, event, callback ? 0 : (uint32_t)number,
        callback ? STENTOR__V1__OUTCOME__OUTCOME_DELIVERED
                 : STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
    if (callback) {
        attempt->of_attempt = 2;
        attempt->cost_micros = number == 3 ? 15000 : 12000;
        attempt->currency = (char *)(uintptr_t)(number == 3 ? "USD" : "EUR");
        attempt->price_category = (char *)(uintptr_t)(number == 3 ? "" : "marketing");
        attempt->code = (char *)(uintptr_t) "a callback's code is not the attempt's";
    } else {
        attempt->segments = (uint32_t)number;
        attempt->credential = (char *)(uintptr_t) "main";
        attempt->route = (char *)(uintptr_t) "austria";
        attempt->calling_code = (char *)(uintptr_t) "43";
    }
    return status_message(arena, event);
}

typedef BusMessage (*Story)(Arena *arena, const char *id, int number);

// The n-th of the 120 orders of five events.
static inline void story_order(int n, int order[STORY_EVENTS])
{
    int left[STORY_EVENTS] = {0, 1, 2, 3, 4};
    for (int i = 0, remaining = STORY_EVENTS; i < STORY_EVENTS; i++, remaining--) {
        int pick = n % remaining;
        n /= remaining;
        order[i] = left[pick];
        left[pick] = left[remaining - 1];
    }
}
