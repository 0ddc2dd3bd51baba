// SPDX-License-Identifier: Apache-2.0
#include "common/history/fold.h"

#include <stdlib.h>
#include <string.h>

#include "common/history/event_row.h"
#include "common/history/hold.h"
#include "common/model/status.h"

enum { CAPACITY_FIRST = 1024 }; // a power of two

// Rows in the order of their first event, and an open-addressed index over them: slots hold
// position + 1.
struct Fold {
    size_t capacity; // of rows and of attempts: an event adds at most one of each
    HistoryRow **rows;
    size_t row_count;
    AttemptRow **attempts;
    size_t attempt_count;
    uint32_t *slots;
    size_t slot_mask;
    size_t ripe; // rows that fold_ripen added
    int64_t oldest_us;
    Hold *hold;                                  // NULL: no row is held
    HoldTaken taken;                             // of it, among the rows
    bool (*may_wait)(const HistoryRow *request); // NULL: each may
    int64_t now_us;
};

const char *fold_text_column(FoldText field)
{
    static const char *const names[FOLD_TEXT_COUNT] = {
        "channel",    "category",         "priority",       "template",        "template_version",
        "locale",     "recipient_id",     "correlation_id", "source_event_id", "source_event_type",
        "batch_id",   "digest_window_id", "copy_of",        "from_domain",     "provider",
        "gate_trace", "address_hash",     "address",        "content_checksum"};
    return names[field];
}

const char *fold_time_column(FoldTime field)
{
    static const char *const names[FOLD_TIME_COUNT] = {
        "scheduled_for", "expires_at",   "queued_at", "scheduled_at", "rendered_at",
        "sent_at",       "delivered_at", "opened_at", "clicked_at",   "ended_at"};
    return names[field];
}

// ---- merging ----

static int64_t earlier(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) {
        return a + b;
    }
    return a < b ? a : b;
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_status(const HistoryRow *a, const HistoryRow *b)
{
    int order = compare_i64(a->rank, b->rank);
    if (order == 0) {
        order = str_cmp(a->reason_code, b->reason_code);
    }
    return order != 0 ? order : str_cmp(a->reason, b->reason);
}

static void merge_row(HistoryRow *row, const HistoryRow *other)
{
    if (compare_status(other, row) > 0) {
        row->status = other->status;
        row->rank = other->rank;
        row->reason_code = other->reason_code;
        row->reason = other->reason;
    }
    for (int i = 0; i < FOLD_TEXT_COUNT; i++) {
        row->text[i] = str_cmp(row->text[i], other->text[i]) >= 0 ? row->text[i] : other->text[i];
    }
    for (int i = 0; i < FOLD_TIME_COUNT; i++) {
        row->at_us[i] = earlier(row->at_us[i], other->at_us[i]);
    }
}

// The total order in which the greater row of an attempt stays; the same one as in history_sql.c.
static int compare_attempts(const AttemptRow *a, const AttemptRow *b)
{
    const int numbers[] = {
        compare_i64(a->outcome, b->outcome), compare_i64(a->was_unknown, b->was_unknown),
        compare_i64(a->finished_at_us, b->finished_at_us),
        compare_i64(a->started_at_us, b->started_at_us),
        compare_i64(a->retry_after_ms, b->retry_after_ms)};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i] != 0) {
            return numbers[i];
        }
    }
    const Str texts[][2] = {
        {a->id, b->id},
        {a->vendor, b->vendor},
        {a->vendor_message_id, b->vendor_message_id},
        {a->code, b->code},
        {a->enhanced_code, b->enhanced_code},
        {a->reply, b->reply},
        {a->credential, b->credential},
        {a->route, b->route}};
    int order = 0;
    for (size_t i = 0; order == 0 && i < sizeof(texts) / sizeof(texts[0]); i++) {
        order = str_cmp(texts[i][0], texts[i][1]);
    }
    return order;
}

static Str greater(Str a, Str b)
{
    return str_cmp(a, b) >= 0 ? a : b;
}

static AttemptCost merge_costs(const AttemptCost *a, const AttemptCost *b)
{
    int order = compare_i64(a->micros, b->micros);
    const AttemptCost *said = (order != 0 ? order : str_cmp(a->currency, b->currency)) >= 0 ? a : b;
    return (AttemptCost){
        .segments = a->segments > b->segments ? a->segments : b->segments,
        .micros = said->micros,
        .currency = said->currency,
        .calling_code = greater(a->calling_code, b->calling_code),
        .price_category = greater(a->price_category, b->price_category)};
}

// ---- the rows of a flush ----

static void index_row(Fold *fold, size_t position)
{
    size_t slot = str_hash(fold->rows[position]->id) & fold->slot_mask;
    while (fold->slots[slot] != 0) {
        slot = (slot + 1) & fold->slot_mask;
    }
    fold->slots[slot] = (uint32_t)(position + 1);
}

static void grow(Fold *fold)
{
    fold->capacity *= 2;
    fold->rows = xrealloc(fold->rows, fold->capacity * sizeof(HistoryRow *));
    fold->attempts = xrealloc(fold->attempts, fold->capacity * sizeof(AttemptRow *));
    free(fold->slots);
    fold->slots = xcalloc(2 * fold->capacity, sizeof(uint32_t));
    fold->slot_mask = 2 * fold->capacity - 1;
    for (size_t i = 0; i < fold->row_count; i++) {
        index_row(fold, i);
    }
}

Fold *fold_new(void)
{
    Fold *fold = xcalloc(1, sizeof(*fold));
    fold->capacity = CAPACITY_FIRST / 2;
    grow(fold);
    return fold;
}

void fold_free(Fold *fold)
{
    if (fold == NULL) {
        return;
    }
    hold_settle(&fold->taken);
    free(fold->rows);
    free(fold->attempts);
    free(fold->slots);
    free(fold);
}

HistoryRow *const *fold_rows(const Fold *fold, size_t *ret_count)
{
    *ret_count = fold->row_count;
    return fold->rows;
}

AttemptRow *const *fold_attempts(const Fold *fold, size_t *ret_count)
{
    *ret_count = fold->attempt_count;
    return fold->attempts;
}

int64_t fold_oldest_us(const Fold *fold)
{
    return fold->hold == NULL ? fold->oldest_us
                              : earlier(fold->oldest_us, hold_oldest_us(fold->hold));
}

void fold_clear(Fold *fold)
{
    fold->row_count = 0;
    fold->attempt_count = 0;
    fold->oldest_us = 0;
    fold->ripe = 0;
    memset(fold->slots, 0, (fold->slot_mask + 1) * sizeof(uint32_t));
    hold_settle(&fold->taken);
}

void fold_forget(Fold *fold)
{
    fold_clear(fold);
    if (fold->hold != NULL) {
        hold_forget(fold->hold);
    }
}

static HistoryRow *find_row(const Fold *fold, Str id, Str tenant)
{
    size_t slot = str_hash(id) & fold->slot_mask;
    for (; fold->slots[slot] != 0; slot = (slot + 1) & fold->slot_mask) {
        HistoryRow *row = fold->rows[fold->slots[slot] - 1];
        if (str_eq(row->id, id) && str_eq(row->tenant, tenant)) {
            return row;
        }
    }
    return NULL;
}

static void add_row(Fold *fold, HistoryRow *row)
{
    fold->rows[fold->row_count] = row;
    index_row(fold, fold->row_count++);
}

// Among the rows from here on; NULL: none is held.
static HistoryRow *take_held(Fold *fold, const HistoryRow *event)
{
    int64_t oldest_us = hold_oldest_us(fold->hold);
    HistoryRow *row = hold_take(fold->hold, event->tenant, event->id, &fold->taken);
    if (row != NULL) {
        fold->oldest_us = earlier(fold->oldest_us, oldest_us);
        add_row(fold, row);
    }
    return row;
}

static HistoryRow *put_row(Fold *fold, const HistoryRow *event, Arena *arena)
{
    HistoryRow *row = find_row(fold, event->id, event->tenant);
    if (row == NULL && fold->hold != NULL) {
        row = take_held(fold, event);
    }
    if (row != NULL) {
        merge_row(row, event);
        return row;
    }
    row = arena_copy(arena, event, sizeof(*event));
    add_row(fold, row);
    return row;
}

static void put_attempt(Fold *fold, HistoryRow *row, const AttemptRow *event, Arena *arena)
{
    AttemptRow *same = row->attempts;
    while (same != NULL && same->number != event->number) {
        same = same->next;
    }
    if (same == NULL) {
        same = arena_copy(arena, event, sizeof(*event));
        same->next = row->attempts;
        same->row = row;
        row->attempts = same;
        fold->attempts[fold->attempt_count++] = same;
        return;
    }
    AttemptRow *next = same->next;
    AttemptCost cost = merge_costs(&same->cost, &event->cost);
    *same = compare_attempts(event, same) > 0 ? *event : *same;
    same->cost = cost;
    same->next = next;
    same->row = row;
}

// STATUS `queued` says what the notification's REQUEST says, and REQUEST says more: it makes no
// row. Ingest publishes both from one accept row, and its sweep publishes both again, so none is
// without its request. One that says more (of an older release: what the gate asked) is folded.
static bool repeats_request(const HistoryRow *row, const AttemptRow *attempt)
{
    static const FoldText own[] = {
        FOLD_GATE_TRACE, FOLD_DIGEST, FOLD_FROM_DOMAIN, FOLD_PROVIDER, FOLD_CHECKSUM};
    size_t said = row->reason_code.len + row->reason.len;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        said += row->text[own[i]].len;
    }
    bool timed = row->at_us[FOLD_SCHEDULED_FOR] != 0 || row->at_us[FOLD_RENDERED] != 0;
    return row->status == STATUS_QUEUED && row->rank == status_rank(STATUS_QUEUED) && said == 0 &&
           !timed && attempt->number == 0;
}

static void make_room(Fold *fold)
{
    if (fold->row_count == fold->capacity || fold->attempt_count == fold->capacity) {
        grow(fold);
    }
}

// Only what nothing else is known of: a request that comes once more joins its row.
static bool hold_back(Fold *fold, const HistoryRow *row, const BusMessage *message)
{
    bool may_wait = fold->may_wait == NULL || fold->may_wait(row);
    return may_wait && find_row(fold, row->id, row->tenant) == NULL &&
           take_held(fold, row) == NULL && hold_put(fold->hold, row, message, fold->now_us);
}

static void put_event(
    Fold *fold, const BusMessage *message, const HistoryRow *row, const AttemptRow *attempt,
    Arena *arena)
{
    bool status = str_eq(str_from(message->stream), STR("STATUS"));
    make_room(fold);
    if (row->status == STATUS_NONE || (status && repeats_request(row, attempt)) ||
        (!status && fold->hold != NULL && hold_back(fold, row, message))) {
        return;
    }
    if (fold->hold != NULL && row->status == STATUS_SENT) {
        hold_learn(fold->hold, message->stored_at_us - row->created_at_us);
    }
    HistoryRow *merged = put_row(fold, row, arena);
    if (attempt->number > 0) {
        put_attempt(fold, merged, attempt, arena);
    }
    fold->oldest_us = earlier(fold->oldest_us, message->stored_at_us);
}

bool fold_event(Fold *fold, const BusMessage *message, Arena *arena, Error *err)
{
    HistoryRow row;
    AttemptRow attempt;
    bool read = event_row_read(message, arena, &row, &attempt, err);
    if (read) {
        put_event(fold, message, &row, &attempt, arena);
    }
    if (fold->hold != NULL) {
        hold_pass(fold->hold, message);
    }
    return read;
}

// ---- holding back ----

void fold_hold_back(Fold *fold, Hold *hold, bool (*may_wait)(const HistoryRow *request))
{
    fold->hold = hold;
    fold->may_wait = may_wait;
}

void fold_set_now(Fold *fold, int64_t now_us)
{
    fold->now_us = now_us;
}

int fold_wait_ms(const Fold *fold, int64_t now_us)
{
    if (fold->row_count > 0) {
        return 0;
    }
    int64_t wait_us = fold->hold != NULL ? hold_wait_us(fold->hold, now_us) : -1;
    wait_us = wait_us > HOLD_MAX_US ? HOLD_MAX_US : wait_us; // where time is that of the streams
    return wait_us < 0 ? -1 : (int)((wait_us + 999) / 1000);
}

void fold_ripen(Fold *fold, int64_t now_us)
{
    int64_t oldest_us = fold->hold != NULL ? hold_oldest_us(fold->hold) : 0;
    while (fold->hold != NULL && fold->ripe < FOLD_RIPE_MAX) {
        HistoryRow *row = hold_ripe(fold->hold, now_us, &fold->taken);
        if (row == NULL) {
            return;
        }
        make_room(fold);
        add_row(fold, row);
        fold->ripe++;
        fold->oldest_us = earlier(fold->oldest_us, oldest_us);
    }
}
