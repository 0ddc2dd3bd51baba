// SPDX-License-Identifier: Apache-2.0
#include "common/history/hold.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHAINS = 16384,      // a power of two; about the most rows that fit
    LEARNING_SHARE = 32, // of a new time in the mean
};

// One allocation with the bytes of its texts behind it.
typedef struct Held {
    HistoryRow row;
    struct Held *chain;         // of the index
    struct Held *older, *newer; // of its stream; `newer` also links what was taken out
    HoldPlace before;
    uint64_t sequence;
    int64_t stored_at_us;
    int64_t since_us;
    size_t bytes;
    uint32_t hash;
    uint8_t stream;
} Held;

typedef struct HeldStream {
    char name[32];
    HoldPlace last; // the last message that was passed
    Held *oldest, *newest;
} HeldStream;

struct Hold {
    size_t bytes_max;
    size_t bytes;
    size_t count;
    bool released;
    int64_t span_min_us;
    int64_t mean_us; // from accept to `sent`
    HeldStream streams[HOLD_STREAMS_MAX];
    size_t stream_count;
    Held *chains[CHAINS];
};

Hold *hold_new(size_t bytes_max, int64_t span_min_us)
{
    Hold *hold = xcalloc(1, sizeof *hold);
    hold->span_min_us = span_min_us;
    hold->bytes_max = bytes_max;
    return hold;
}

void hold_free(Hold *hold)
{
    if (hold == NULL) {
        return;
    }
    hold_forget(hold);
    free(hold);
}

// ---- streams ----

static HeldStream *find_stream(const Hold *hold, const char *name)
{
    for (size_t i = 0; i < hold->stream_count; i++) {
        if (strcmp(hold->streams[i].name, name) == 0) {
            return (HeldStream *)(uintptr_t)&hold->streams[i];
        }
    }
    return NULL;
}

static HeldStream *make_stream(Hold *hold, const char *name)
{
    HeldStream *stream = find_stream(hold, name);
    if (stream != NULL || hold->stream_count == HOLD_STREAMS_MAX ||
        strlen(name) >= sizeof stream->name) {
        return stream;
    }
    stream = &hold->streams[hold->stream_count++];
    *stream = (HeldStream){0};
    memcpy(stream->name, name, strlen(name));
    return stream;
}

void hold_pass(Hold *hold, const BusMessage *message)
{
    HeldStream *stream = make_stream(hold, message->stream);
    if (stream != NULL) {
        stream->last = (HoldPlace){message->sequence, message->stored_at_us};
    }
}

bool hold_before(const Hold *hold, const char *stream_name, HoldPlace *ret)
{
    const HeldStream *stream = find_stream(hold, stream_name);
    if (stream == NULL || stream->oldest == NULL) {
        return false;
    }
    *ret = stream->oldest->before;
    return true;
}

// ---- one row ----

static uint32_t hash_of(Str tenant, Str id)
{
    return (uint32_t)(str_hash(id) ^ (str_hash(tenant) << 1));
}

// Channel, category and priority are names that live for ever.
static size_t text_bytes(const HistoryRow *row)
{
    size_t bytes = row->tenant.len + row->id.len + row->reason_code.len + row->reason.len;
    for (int i = FOLD_PRIORITY + 1; i < FOLD_TEXT_COUNT; i++) {
        bytes += row->text[i].len;
    }
    return bytes;
}

static Str copy_text(Str text, char **at)
{
    if (text.len == 0) {
        return STR_EMPTY;
    }
    Str copy = str_of(*at, text.len);
    memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

static Held *copy_row(const HistoryRow *row, size_t bytes)
{
    Held *held = xmalloc(bytes);
    *held = (Held){.row = *row, .bytes = bytes};
    char *at = (char *)(held + 1);
    HistoryRow *copy = &held->row;
    copy->tenant = copy_text(row->tenant, &at);
    copy->id = copy_text(row->id, &at);
    copy->reason_code = copy_text(row->reason_code, &at);
    copy->reason = copy_text(row->reason, &at);
    for (int i = FOLD_PRIORITY + 1; i < FOLD_TEXT_COUNT; i++) {
        copy->text[i] = copy_text(row->text[i], &at);
    }
    return held;
}

// ---- in and out ----

static void link_row(Hold *hold, HeldStream *stream, Held *held)
{
    Held **chain = &hold->chains[held->hash & (CHAINS - 1)];
    held->chain = *chain;
    *chain = held;
    held->older = stream->newest;
    *(stream->newest != NULL ? &stream->newest->newer : &stream->oldest) = held;
    stream->newest = held;
    hold->bytes += held->bytes;
    hold->count++;
}

static void unlink_row(Hold *hold, Held *held)
{
    HeldStream *stream = &hold->streams[held->stream];
    Held **at = &hold->chains[held->hash & (CHAINS - 1)];
    while (*at != held) {
        at = &(*at)->chain;
    }
    *at = held->chain;
    *(held->older != NULL ? &held->older->newer : &stream->oldest) = held->newer;
    *(held->newer != NULL ? &held->newer->older : &stream->newest) = held->older;
    hold->bytes -= held->bytes;
    hold->count--;
}

static HistoryRow *take_out(Hold *hold, Held *held, HoldTaken *taken)
{
    unlink_row(hold, held);
    held->newer = taken->last;
    taken->last = held;
    return &held->row;
}

// A stream whose sequences go back has lost its tail and is read again: the order of its list would
// not be that of its sequences.
static bool goes_back(const HeldStream *stream, const BusMessage *message)
{
    return stream->newest != NULL && message->sequence <= stream->newest->sequence;
}

bool hold_put(Hold *hold, const HistoryRow *row, const BusMessage *message, int64_t now_us)
{
    size_t bytes = sizeof(Held) + text_bytes(row);
    HeldStream *stream = make_stream(hold, message->stream);
    if (hold->released || row->status != STATUS_QUEUED || stream == NULL ||
        hold->bytes + bytes > hold->bytes_max || goes_back(stream, message)) {
        return false;
    }
    Held *held = copy_row(row, bytes);
    held->stream = (uint8_t)(stream - hold->streams);
    held->hash = hash_of(row->tenant, row->id);
    held->before = stream->last;
    held->sequence = message->sequence;
    held->stored_at_us = message->stored_at_us;
    held->since_us = now_us;
    link_row(hold, stream, held);
    return true;
}

HistoryRow *hold_take(Hold *hold, Str tenant, Str id, HoldTaken *taken)
{
    uint32_t hash = hash_of(tenant, id);
    Held *held = hold->chains[hash & (CHAINS - 1)];
    while (held != NULL &&
           !(held->hash == hash && str_eq(held->row.id, id) && str_eq(held->row.tenant, tenant))) {
        held = held->chain;
    }
    return held == NULL ? NULL : take_out(hold, held, taken);
}

// ---- ripeness ----

static Held *find_oldest(const Hold *hold)
{
    Held *oldest = NULL;
    for (size_t i = 0; i < hold->stream_count; i++) {
        Held *held = hold->streams[i].oldest;
        oldest =
            held != NULL && (oldest == NULL || held->since_us < oldest->since_us) ? held : oldest;
    }
    return oldest;
}

int64_t hold_span_us(const Hold *hold)
{
    int64_t span_us = 2 * hold->mean_us;
    if (hold->released) {
        return 0;
    }
    span_us = span_us > HOLD_MAX_US ? HOLD_MAX_US : span_us;
    return span_us < hold->span_min_us ? hold->span_min_us : span_us;
}

void hold_learn(Hold *hold, int64_t took_us)
{
    if (took_us > 0 && took_us <= HOLD_MAX_US) {
        hold->mean_us += (took_us - hold->mean_us) / LEARNING_SHARE;
    }
}

int64_t hold_wait_us(const Hold *hold, int64_t now_us)
{
    const Held *oldest = find_oldest(hold);
    if (oldest == NULL) {
        return -1;
    }
    int64_t wait_us = oldest->since_us + hold_span_us(hold) - now_us;
    return wait_us > 0 ? wait_us : 0;
}

HistoryRow *hold_ripe(Hold *hold, int64_t now_us, HoldTaken *taken)
{
    return hold_wait_us(hold, now_us) == 0 ? take_out(hold, find_oldest(hold), taken) : NULL;
}

// ---- the end of a flush ----

void hold_settle(HoldTaken *taken)
{
    while (taken->last != NULL) {
        Held *held = taken->last;
        taken->last = held->newer;
        free(held);
    }
}

void hold_forget(Hold *hold)
{
    HoldTaken taken = {0};
    for (Held *oldest = find_oldest(hold); oldest != NULL; oldest = find_oldest(hold)) {
        (void)take_out(hold, oldest, &taken);
    }
    hold_settle(&taken);
    hold->stream_count = 0;
}

void hold_release(Hold *hold)
{
    hold->released = true;
}

// ---- what is asked ----

size_t hold_count(const Hold *hold)
{
    return hold->count;
}

size_t hold_bytes(const Hold *hold)
{
    return hold->bytes;
}

int64_t hold_oldest_us(const Hold *hold)
{
    int64_t oldest_us = 0;
    for (size_t i = 0; i < hold->stream_count; i++) {
        const Held *held = hold->streams[i].oldest;
        if (held != NULL && (oldest_us == 0 || held->stored_at_us < oldest_us)) {
            oldest_us = held->stored_at_us;
        }
    }
    return oldest_us;
}
