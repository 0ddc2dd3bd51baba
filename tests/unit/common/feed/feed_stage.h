// SPDX-License-Identifier: Apache-2.0
// What the tests of common/feed share: events of FEED as messages, and a fold on a real Postgres as
// the role that gateway logs in with. Included behind cmocka.h.
#pragma once

#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/feed/feed_event.h"
#include "common/feed/feed_sql.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define FEED_TENANT "acme"
#define FEED_T0 INT64_C(1795000000000000) // 2026-11

typedef Stentor__V1__FeedEvent FeedEvent;
typedef Stentor__V1__FeedState FeedState;

typedef struct Scene {
    Fixture *fx;
    Arena *arena;
    FeedFold *fold;
    uint64_t sequence;
} Scene;

#define FEED_CLEAR "TRUNCATE feed.items, feed.counters, feed.statuses, feed.positions"

static int set_up(void **state)
{
    char url[512];
    Scene *s = xcalloc(1, sizeof *s);
    s->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_gateway", url, sizeof url), .connections = 1});
    s->arena = arena_new(0);
    s->fold = feed_fold_new();
    admin_exec(s->fx->admin, FEED_CLEAR);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    feed_fold_free(s->fold);
    arena_free(s->arena);
    fixture_free(s->fx);
    free(s);
    return 0;
}

static inline BusMessage message_of(Scene *s, const FeedEvent *event, uint64_t sequence)
{
    Str payload = STR_EMPTY;
    assert_true(event_pack(&event->base, s->arena, &payload, NULL));
    return (BusMessage){
        .subject = STR("feed." FEED_TENANT),
        .payload = payload,
        .event_id = str_from(event->meta->event_id),
        .stream = "FEED",
        .sequence = sequence,
        .stored_at_us = FEED_T0,
    };
}

static inline FeedEvent *new_event(Scene *s, int recipient, const char *id, int64_t at_us)
{
    FeedEvent *event = arena_alloc(s->arena, sizeof *event);
    stentor__v1__feed_event__init(event);
    Stentor__V1__Meta *meta = arena_alloc(s->arena, sizeof *meta);
    *meta = meta_make(
        &(MetaSpec){.event_id = "e", .tenant = FEED_TENANT, .notification_id = id, .at_us = at_us});
    event->meta = meta;
    uint8_t *hash = arena_zalloc(s->arena, FEED_RECIPIENT_LEN);
    hash[0] = (uint8_t)('a' + recipient);
    event->recipient = pb_data(str_of(hash, FEED_RECIPIENT_LEN));
    return event;
}

// "ntf_...<number>".
static inline const char *item_name(Scene *s, int number)
{
    return arena_printf(s->arena, "ntf_01M82XS89VEV77VD8AS0MCM%03d", number);
}

static inline FeedEvent *item_event(Scene *s, int recipient, int number, int64_t created_us)
{
    FeedEvent *event = new_event(s, recipient, item_name(s, number), created_us);
    Stentor__V1__FeedItem *item = arena_alloc(s->arena, sizeof *item);
    stentor__v1__feed_item__init(item);
    Stentor__V1__Sealed *sealed = arena_alloc(s->arena, sizeof *sealed);
    stentor__v1__sealed__init(sealed);
    char *subject = arena_printf(s->arena, "subject-%08d", recipient);
    sealed->key_subject = pb_data(str_from(subject));
    sealed->key_generation = 1;
    sealed->nonce = pb_data(STR("123456789012"));
    sealed->ciphertext = pb_data(STR("0123456789abcdef0123456789abcdef"));
    item->category = number % 2 == 0 ? STENTOR__V1__CATEGORY__CATEGORY_BILLING
                                     : STENTOR__V1__CATEGORY__CATEGORY_SOCIAL;
    item->content = sealed;
    item->created_at_us = created_us;
    event->part_case = STENTOR__V1__FEED_EVENT__PART_ITEM;
    event->item = item;
    return event;
}

static inline FeedEvent *state_event(
    Scene *s, int recipient, Stentor__V1__FeedAction action, int number, int64_t at_us)
{
    FeedEvent *event = new_event(s, recipient, "", at_us);
    FeedState *state = arena_alloc(s->arena, sizeof *state);
    stentor__v1__feed_state__init(state);
    state->action = action;
    state->notification_ids = arena_array(s->arena, 1, sizeof *state->notification_ids);
    state->notification_ids[0] = pb_borrow(item_name(s, number));
    state->n_notification_ids = 1;
    event->part_case = STENTOR__V1__FEED_EVENT__PART_STATE;
    event->state = state;
    return event;
}

static inline FeedEvent *up_to_event(
    Scene *s, int recipient, Stentor__V1__FeedAction action, int number, int64_t up_to_us,
    int64_t at_us)
{
    FeedEvent *event = state_event(s, recipient, action, number, at_us);
    event->state->up_to_id = event->state->notification_ids[0];
    event->state->n_notification_ids = 0;
    event->state->up_to_us = up_to_us;
    return event;
}

// Of what is sealed for the recipient.
static inline FeedEvent *removal_event(Scene *s, int recipient, int64_t at_us)
{
    FeedEvent *event = new_event(s, recipient, "", at_us);
    Stentor__V1__FeedRemoval *removal = arena_alloc(s->arena, sizeof *removal);
    stentor__v1__feed_removal__init(removal);
    ProtobufCBinaryData *subject = arena_alloc(s->arena, sizeof *subject);
    *subject = pb_data(str_from(arena_printf(s->arena, "subject-%08d", recipient)));
    removal->key_subjects = subject;
    removal->n_key_subjects = 1;
    event->part_case = STENTOR__V1__FEED_EVENT__PART_REMOVAL;
    event->removal = removal;
    return event;
}

static inline void tell(Scene *s, const FeedEvent *event)
{
    Error err = {0};
    BusMessage message = message_of(s, event, ++s->sequence);
    if (!feed_fold_event(s->fold, &message, s->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static inline void flush_txn(Scene *s, DbTxn *txn, bool tells)
{
    Answer answer = {0};
    feed_sql_write(s->fold, tells, txn);
    submit_and_wait(s->fx, txn, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("%s", answer.err.text);
    }
    answer_clear(&answer);
    feed_fold_clear(s->fold);
}

static inline void flush(Scene *s, bool tells)
{
    flush_txn(s, db_txn_new(s->fx->pool), tells);
}

static inline void tell_alone(Scene *s, const FeedEvent *event)
{
    tell(s, event);
    flush(s, true);
}

static inline void assert_value(Scene *s, const char *sql, const char *wanted)
{
    assert_string_equal(admin_value(s->fx->admin, sql), wanted);
}
