// SPDX-License-Identifier: Apache-2.0
#include "common/feed/feed_fold.h"

#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "common/feed/feed_event.h"
#include "common/model/enums.h"

typedef Stentor__V1__FeedEvent FeedEvent;
typedef Stentor__V1__FeedState FeedState;

static const int64_t time_max_us = INT64_C(253402300799000000); // the end of 9999

typedef struct Rows {
    FeedRow **at;
    size_t count, cap;
} Rows;

// Where what is said of a recipient stands now.
typedef struct Place {
    size_t round;
    FeedStep step;
} Place;

struct FeedFold {
    Rows rows[FEED_ROUNDS][FEED_STEPS];
    Map *places;    // "<tenant>/<recipient>" -> Place
    Map *patches;   // "<round>/<tenant>/<recipient><id>" -> FeedRow
    uint64_t first; // sequence
};

FeedFold *feed_fold_new(void)
{
    FeedFold *fold = xcalloc(1, sizeof *fold);
    fold->places = map_new(NULL);
    fold->patches = map_new(NULL);
    return fold;
}

void feed_fold_free(FeedFold *fold)
{
    if (fold == NULL) {
        return;
    }
    map_free(fold->places);
    map_free(fold->patches);
    for (size_t round = 0; round < FEED_ROUNDS; round++) {
        for (size_t step = 0; step < FEED_STEPS; step++) {
            free((void *)fold->rows[round][step].at);
        }
    }
    free(fold);
}

void feed_fold_clear(FeedFold *fold)
{
    map_free(fold->places);
    map_free(fold->patches);
    fold->places = map_new(NULL);
    fold->patches = map_new(NULL);
    fold->first = 0;
    for (size_t round = 0; round < FEED_ROUNDS; round++) {
        for (size_t step = 0; step < FEED_STEPS; step++) {
            fold->rows[round][step].count = 0;
        }
    }
}

FeedRow *const *feed_fold_rows(const FeedFold *fold, size_t round, FeedStep step, size_t *ret_count)
{
    *ret_count = fold->rows[round][step].count;
    return fold->rows[round][step].at;
}

uint64_t feed_fold_first(const FeedFold *fold)
{
    return fold->first;
}

// ---- checks: a row that Postgres refuses would stop the projection for ever ----

static bool is_time(int64_t at_us)
{
    return at_us >= 0 && at_us <= time_max_us;
}

static bool check_item(const Stentor__V1__FeedItem *item, Str id, Error *err)
{
    if (!id_parse(id, "ntf_", NULL)) {
        return error_set(err, ERROR_PERMANENT, "an item without its notification's id");
    }
    if (category_name((Category)item->category)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "unknown category %d", (int)item->category);
    }
    Str direction = str_from(item->direction);
    if (direction.len > 0 && !str_eq(direction, STR("ltr")) && !str_eq(direction, STR("rtl"))) {
        return error_set(err, ERROR_PERMANENT, "'direction' is neither ltr nor rtl");
    }
    if (!is_time(item->created_at_us) || item->created_at_us == 0 ||
        !is_time(item->expires_at_us)) {
        return error_set(err, ERROR_PERMANENT, "a time of the item is outside of 1970 to 9999");
    }
    return sealed_check(item->content, "content", err);
}

static bool check_state(const FeedState *state, Error *err)
{
    bool all = state->n_notification_ids == 0;
    bool takes_all = state->action == STENTOR__V1__FEED_ACTION__FEED_ACTION_SEEN ||
                     state->action == STENTOR__V1__FEED_ACTION__FEED_ACTION_READ ||
                     state->action == STENTOR__V1__FEED_ACTION__FEED_ACTION_ARCHIVE;
    if (state->action < STENTOR__V1__FEED_ACTION__FEED_ACTION_FETCHED ||
        state->action > STENTOR__V1__FEED_ACTION__FEED_ACTION_EXPIRE) {
        return error_set(err, ERROR_PERMANENT, "unknown action %d", (int)state->action);
    }
    if (all && (!takes_all || state->up_to_us == 0)) {
        return error_set(err, ERROR_PERMANENT, "action %d names no item", (int)state->action);
    }
    if (state->n_notification_ids > FEED_STATE_IDS_MAX) {
        return error_set(err, ERROR_PERMANENT, "%zu items", state->n_notification_ids);
    }
    return (is_time(state->up_to_us) && is_time(state->until_us)) ||
           error_set(err, ERROR_PERMANENT, "a time of the state is outside of 1970 to 9999");
}

static bool check_head(const FeedEvent *event, Str subject, Error *err)
{
    Str tenant = str_slice(subject, sizeof "feed." - 1, subject.len);
    if (event->meta == NULL || !id_is_tenant(tenant) ||
        !str_eq(tenant, str_from(event->meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "the event's tenant differs from its subject's");
    }
    bool whose = event->part_case == STENTOR__V1__FEED_EVENT__PART_REMOVAL ||
                 event->recipient.len == FEED_RECIPIENT_LEN;
    if (!whose) {
        return error_set(err, ERROR_PERMANENT, "'recipient' is not a hash of 32 bytes");
    }
    return is_time(event->meta->occurred_at_us) ||
           error_set(err, ERROR_PERMANENT, "its time is outside of 1970 to 9999");
}

// ---- rounds ----

static Str whose(const FeedRow *row, Arena *arena)
{
    char *name = arena_printf(arena, STR_FMT "/", STR_ARG(row->tenant));
    size_t len = row->tenant.len + 1;
    char *out = arena_alloc(arena, len + row->recipient.len + 1);
    for (size_t i = 0; i < len; i++) {
        out[i] = name[i];
    }
    for (size_t i = 0; i < row->recipient.len; i++) {
        out[len + i] = row->recipient.ptr[i];
    }
    return (Str){out, len + row->recipient.len};
}

// Several of a step in one round: only where their order does not matter. Of those about all items
// each must find what the one before has changed.
static bool shares_round(FeedStep step)
{
    return step != FEED_UP_TO;
}

// The round in which a row of that step comes after all that was said of its recipient before.
static size_t round_of(FeedFold *fold, const FeedRow *row, Arena *arena)
{
    Str name = whose(row, arena);
    Place *place = map_get(fold->places, name);
    if (place == NULL) {
        place = arena_zalloc(arena, sizeof *place);
        map_put(fold->places, name, place);
        *place = (Place){0, row->step};
        return 0;
    }
    bool fits = row->step > place->step || (row->step == place->step && shares_round(row->step));
    size_t round = fits ? place->round : place->round + 1;
    *place = (Place){round < FEED_ROUNDS ? round : FEED_ROUNDS - 1, row->step};
    return place->round;
}

static void add_to(FeedFold *fold, size_t round, const FeedRow *row, Arena *arena)
{
    Rows *rows = &fold->rows[round][row->step];
    if (rows->count == rows->cap) {
        rows->cap = rows->cap == 0 ? 64 : 2 * rows->cap;
        rows->at = xrealloc((void *)rows->at, rows->cap * sizeof *rows->at);
    }
    rows->at[rows->count++] = arena_copy(arena, row, sizeof *row);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void merge(FeedRow *into, const FeedRow *row)
{
    into->fetched_us = earlier(into->fetched_us, row->fetched_us);
    into->seen_us = earlier(into->seen_us, row->seen_us);
    into->read_first_us = earlier(into->read_first_us, row->read_first_us);
    into->read_last_us = later(into->read_last_us, row->read_last_us);
    into->unread_us = later(into->unread_us, row->unread_us);
    into->clicked_us = earlier(into->clicked_us, row->clicked_us);
    if (row->archive_us != 0 && row->archive_us >= into->archive_us) {
        into->archive_us = row->archive_us;
        into->archived = row->archived;
    }
    if (row->snooze_us != 0 && row->snooze_us >= into->snooze_us) {
        into->snooze_us = row->snooze_us;
        into->snoozed_until_us = row->snoozed_until_us;
    }
    into->sequence = row->sequence;
}

static void add_patch(FeedFold *fold, const FeedRow *row, Arena *arena)
{
    size_t round = round_of(fold, row, arena);
    Str owner = whose(row, arena);
    char *name = arena_printf(arena, "%zu/" STR_FMT "/", round, STR_ARG(row->id));
    size_t len = str_from(name).len;
    char *key = arena_alloc(arena, len + owner.len);
    for (size_t i = 0; i < len + owner.len; i++) {
        key[i] = i < len ? name[i] : owner.ptr[i - len];
    }
    Str at = {key, len + owner.len};
    FeedRow *there = map_get(fold->patches, at);
    if (there != NULL) {
        merge(there, row);
        return;
    }
    add_to(fold, round, row, arena);
    const Rows *rows = &fold->rows[round][row->step];
    map_put(fold->patches, at, rows->at[rows->count - 1]);
}

// ---- events ----

// What an action says, as times.
static void fill_patch(FeedRow *row, const FeedState *state, int64_t at_us)
{
    row->fetched_us = at_us;
    switch (state->action) {
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_CLICK: // who has clicked has read
        row->clicked_us = at_us;
        // fall through
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_READ:
        row->read_first_us = row->read_last_us = at_us;
        // fall through
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_SEEN:
        row->seen_us = at_us;
        break;
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_UNREAD:
        row->unread_us = at_us;
        break;
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_ARCHIVE:
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_UNARCHIVE:
        row->archive_us = at_us;
        row->archived = state->action == STENTOR__V1__FEED_ACTION__FEED_ACTION_ARCHIVE;
        break;
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_SNOOZE:
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_UNSNOOZE:
        row->snooze_us = at_us;
        row->snoozed_until_us =
            state->action == STENTOR__V1__FEED_ACTION__FEED_ACTION_SNOOZE ? state->until_us : 0;
        break;
    default: // fetched
        break;
    }
}

static FeedStep step_of(const FeedState *state)
{
    if (state->n_notification_ids == 0) {
        return FEED_UP_TO;
    }
    switch (state->action) {
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_SNOOZE_END:
        return FEED_ENDED;
    case STENTOR__V1__FEED_ACTION__FEED_ACTION_EXPIRE:
        return FEED_EXPIRED;
    default:
        return FEED_PATCH;
    }
}

static void fold_state(FeedFold *fold, FeedRow row, const FeedState *state, Arena *arena)
{
    row.step = step_of(state);
    row.action = state->action;
    if (row.step == FEED_UP_TO) {
        row.up_to_us = state->up_to_us;
        row.id = str_from(state->up_to_id);
        add_to(fold, round_of(fold, &row, arena), &row, arena);
        return;
    }
    if (row.step == FEED_ENDED) {
        row.at_us = state->until_us;
    } else if (row.step == FEED_PATCH) {
        fill_patch(&row, state, row.at_us);
    }
    for (size_t i = 0; i < state->n_notification_ids; i++) {
        row.id = str_from(state->notification_ids[i]);
        if (row.step == FEED_PATCH) {
            add_patch(fold, &row, arena);
        } else {
            add_to(fold, round_of(fold, &row, arena), &row, arena);
        }
    }
}

// The last step of the last round: whatever was said behind it is written before it, and stays by
// the sequence at which it was stored.
static void fold_removal(
    FeedFold *fold, FeedRow row, const Stentor__V1__FeedRemoval *removal, Arena *arena)
{
    row.step = FEED_REMOVED;
    for (size_t i = 0; i < removal->n_key_subjects; i++) {
        row.key_subject = pb_bytes(removal->key_subjects[i]);
        add_to(fold, FEED_ROUNDS - 1, &row, arena);
    }
}

static bool fold_part(FeedFold *fold, FeedRow row, const FeedEvent *event, Arena *arena, Error *err)
{
    switch (event->part_case) {
    case STENTOR__V1__FEED_EVENT__PART_ITEM:
        row.step = FEED_ITEM;
        row.id = str_from(event->meta->notification_id);
        row.item = event->item;
        if (!check_item(event->item, row.id, err)) {
            return false;
        }
        add_to(fold, round_of(fold, &row, arena), &row, arena);
        return true;
    case STENTOR__V1__FEED_EVENT__PART_STATE:
        if (!check_state(event->state, err)) {
            return false;
        }
        fold_state(fold, row, event->state, arena);
        return true;
    case STENTOR__V1__FEED_EVENT__PART_REMOVAL:
        fold_removal(fold, row, event->removal, arena);
        return true;
    default:
        return error_set(err, ERROR_PERMANENT, "neither an item, nor a state, nor a removal");
    }
}

bool feed_fold_event(FeedFold *fold, const BusMessage *message, Arena *arena, Error *err)
{
    fold->first =
        fold->first == 0 || message->sequence < fold->first ? message->sequence : fold->first;
    if (message->payload.len > FEED_EVENT_MAX) {
        return error_set(err, ERROR_PERMANENT, "larger than %d bytes", FEED_EVENT_MAX);
    }
    const FeedEvent *event = (const FeedEvent *)event_unpack(
        &stentor__v1__feed_event__descriptor, message->payload, arena, err);
    if (event == NULL || !check_head(event, message->subject, err)) {
        return false;
    }
    FeedRow row = {
        .tenant = str_from(event->meta->tenant),
        .recipient = pb_bytes(event->recipient),
        .sequence = message->sequence,
        .at_us = event->meta->occurred_at_us,
    };
    return fold_part(fold, row, event, arena, err);
}
