// SPDX-License-Identifier: Apache-2.0
#include "common/find/find_fold.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/event.h"
#include "stentor/v1/status.pb-c.h"

typedef Stentor__V1__NotificationStatus StatusEvent;

static const int64_t day_us = INT64_C(86400000000);
enum { RECENT = 256, RECENT_TEXT = 96 }; // keys of what comes again and again: templates, batches

typedef struct Recent {
    char text[RECENT_TEXT]; // "<kind><tenant>|<value>"
    size_t len;
    int64_t key;
} Recent;

struct FindFold {
    const MasterKey *master;
    FindRow *rows;
    size_t count, cap;
    int64_t oldest_us;
    int64_t as_of_us;
    int64_t first_us, last_us; // of the rows
    Recent recent[RECENT];
};

FindFold *find_fold_new(const MasterKey *master)
{
    FindFold *fold = xcalloc(1, sizeof *fold);
    fold->master = master;
    return fold;
}

void find_fold_free(FindFold *fold)
{
    if (fold != NULL) {
        free(fold->rows);
        free(fold);
    }
}

void find_fold_clear(FindFold *fold)
{
    fold->count = 0;
    fold->as_of_us = 0;
}

void find_fold_keep(FindFold *fold, int64_t oldest_us)
{
    fold->oldest_us = oldest_us;
}

int64_t find_fold_as_of_us(const FindFold *fold)
{
    return fold->as_of_us;
}

bool find_fold_span(const FindFold *fold, int64_t *ret_first_us, int64_t *ret_last_us)
{
    *ret_first_us = fold->first_us;
    *ret_last_us = fold->last_us;
    return fold->count > 0;
}

static int compare_rows(const void *a, const void *b)
{
    const FindRow *left = a;
    const FindRow *right = b;
    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return (left->created_at_us > right->created_at_us) -
           (left->created_at_us < right->created_at_us);
}

const FindRow *find_fold_rows(FindFold *fold, size_t *ret_count)
{
    if (fold->count > 1) {
        qsort(fold->rows, fold->count, sizeof *fold->rows, compare_rows);
    }
    *ret_count = fold->count;
    return fold->rows;
}

// ---- keys ----

static int64_t recent_key(FindFold *fold, FindKind kind, Str tenant, Str value)
{
    char text[RECENT_TEXT];
    size_t len = tenant.len + value.len + 2;
    if (len > sizeof text) {
        return find_key(fold->master, kind, tenant, value);
    }
    text[0] = (char)('0' + kind);
    memcpy(text + 1, tenant.ptr, tenant.len);
    text[tenant.len + 1] = '|';
    memcpy(text + tenant.len + 2, value.ptr, value.len);
    Recent *at = &fold->recent[str_hash((Str){text, len}) % RECENT];
    if (at->len != len || memcmp(at->text, text, len) != 0) {
        memcpy(at->text, text, len);
        at->len = len;
        at->key = find_key(fold->master, kind, tenant, value);
    }
    return at->key;
}

static bool comes_often(FindKind kind)
{
    return kind == FIND_TEMPLATE || kind == FIND_BATCH || kind == FIND_END;
}

static void add(FindFold *fold, const FindRow *of, FindKind kind, Str value)
{
    if (value.len == 0) {
        return;
    }
    if (fold->count == fold->cap) {
        fold->cap = fold->cap == 0 ? 1024 : 2 * fold->cap;
        fold->rows = xrealloc(fold->rows, fold->cap * sizeof *fold->rows);
    }
    int64_t at_us = of->created_at_us;
    fold->first_us = fold->count == 0 || at_us < fold->first_us ? at_us : fold->first_us;
    fold->last_us = fold->count == 0 || at_us > fold->last_us ? at_us : fold->last_us;
    FindRow *row = &fold->rows[fold->count++];
    *row = *of;
    row->kind = kind;
    row->key = comes_often(kind) ? recent_key(fold, kind, of->tenant, value)
                                 : find_key(fold->master, kind, of->tenant, value);
}

// ---- events ----

// "ntf.status.<tenant>.<channel>.<status>"
static bool read_subject(Str subject, Str *ret_tenant, Status *ret_status)
{
    Str rest = subject, ntf, stream, channel;
    return str_split(&rest, '.', &ntf) && str_split(&rest, '.', &stream) &&
           str_split(&rest, '.', ret_tenant) && str_split(&rest, '.', &channel) &&
           status_from_name(rest, ret_status);
}

// No other status says anything that entries are made of; most events need not be unpacked.
static bool says_something(Status status)
{
    return status == STATUS_QUEUED || status == STATUS_SCHEDULED || status == STATUS_SENDING ||
           status == STATUS_SENT || find_is_end(status);
}

static bool is_first(Status status)
{
    return status == STATUS_QUEUED || status == STATUS_SCHEDULED || status == STATUS_SUPPRESSED;
}

static bool read_head(
    const StatusEvent *event, Str tenant, int64_t stored_at_us, FindRow *ret, Error *err)
{
    int64_t created_ms = 0;
    if (event->meta == NULL || !id_is_tenant(tenant) ||
        !str_eq(tenant, str_from(event->meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "the event's tenant differs from its subject's");
    }
    // Of the unpacked event: the subject's bytes are the reader's.
    *ret = (FindRow){
        .tenant = str_from(event->meta->tenant), .id = str_from(event->meta->notification_id)};
    if (!id_parse(ret->id, "ntf_", &created_ms)) {
        return error_set(err, ERROR_PERMANENT, "meta.notification_id is not a notification id");
    }
    ret->created_at_us = created_ms * 1000;
    return ret->created_at_us <= stored_at_us + day_us ||
           error_set(err, ERROR_PERMANENT, "the notification's id is from after the event");
}

static void add_first(FindFold *fold, const FindRow *row, const StatusEvent *event)
{
    add(fold, row, FIND_RECIPIENT, str_from(event->recipient_id));
    if (event->address_hash.len == ADDRESS_HASH_LEN) {
        add(fold, row, FIND_ADDRESS, pb_bytes(event->address_hash));
    }
    add(fold, row, FIND_CORRELATION, str_from(event->meta->correlation_id));
    add(fold, row, FIND_SOURCE_EVENT, str_from(event->source_event_id));
    add(fold, row, FIND_BATCH, str_from(event->batch_id));
    add(fold, row, FIND_TEMPLATE, str_from(event->template_));
}

static void add_attempt(FindFold *fold, const FindRow *row, const Stentor__V1__Attempt *attempt)
{
    Str vendor_id = str_from(attempt->vendor_message_id);
    if (!find_is_own_message_id(vendor_id, row->id)) {
        add(fold, row, FIND_VENDOR_MESSAGE, vendor_id);
    }
    if (attempt->was_unknown || attempt->outcome == STENTOR__V1__OUTCOME__OUTCOME_TIMEOUT) {
        add(fold, row, FIND_END, STR(FIND_END_UNKNOWN));
    }
}

bool find_fold_event(FindFold *fold, const BusMessage *message, Arena *arena, Error *err)
{
    Str tenant = STR_EMPTY;
    Status status = STATUS_NONE;
    fold->as_of_us =
        message->stored_at_us > fold->as_of_us ? message->stored_at_us : fold->as_of_us;
    if (!read_subject(message->subject, &tenant, &status)) {
        return error_set(err, ERROR_PERMANENT, "its subject is not a status's");
    }
    if (!says_something(status)) {
        return true;
    }
    const StatusEvent *event = (const StatusEvent *)event_unpack(
        &stentor__v1__notification_status__descriptor, message->payload, arena, err);
    FindRow row;
    if (event == NULL || !read_head(event, tenant, message->stored_at_us, &row, err)) {
        return false;
    }
    if (row.created_at_us < fold->oldest_us) {
        return true;
    }
    if (is_first(status)) {
        add_first(fold, &row, event);
    }
    if (event->attempt != NULL) {
        add_attempt(fold, &row, event->attempt);
    }
    if (find_is_end(status)) {
        add(fold, &row, FIND_END, str_from(status_name(status)));
    }
    return true;
}
