// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/suppressions/suppressions_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/page.h"
#include "common/api/precondition.h"
#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/config_entry.h"
#include "common/config/config_store.h"
#include "common/model/address.h"
#include "services/gateway/suppressions/suppression_put.h"

enum { ANSWER_BYTES_MAX = 64 * 1024 * 1024, FILTER_SIZE = 160 };

typedef enum Purpose { PURPOSE_LIST, PURPOSE_EXPORT, PURPOSE_GET, PURPOSE_RELEASE } Purpose;

// One read of the tenant's entries; on the heap, for the reader outlives the answer.
typedef struct SuppressionsReading Reading;
// An address under each hash key; none: whatever address.
typedef struct HashSet {
    uint8_t items[MASTER_KEYS_MAX][ADDRESS_HASH_LEN];
    size_t count;
} HashSet;

struct SuppressionsReading {
    Reading *next; // under way
    int64_t started_us;
    SuppressionsApi *api;
    ApiCall *call; // gone once `answered`
    Purpose purpose;
    Reader *reader;
    Arena *arena;
    Buf out;
    Page page;
    uint64_t last; // sequence of the last entry shown
    bool more;
    bool answered;
    bool all;                 // released and expired ones too
    SuppressionReason reason; // NONE: any
    HashSet hashes;
    char id[ID_SIZE];   // GET and RELEASE
    Precondition needs; // RELEASE
};

static void on_reader_freed(void *ctx)
{
    Reading *reading = ctx;
    reading->api->reading--;
    arena_free(reading->arena);
    buf_done(&reading->out);
    free(reading);
}

// Ends the read; the answer has been or is being given.
static void end(Reading *reading)
{
    Reading **at = &reading->api->under_way;
    while (*at != reading) {
        at = &(*at)->next;
    }
    *at = reading->next;
    reading->answered = true;
    reader_free(reading->reader, on_reader_freed, reading);
}

static void answer_list(Reading *reading)
{
    HttpRequest *http = reading->call->http;
    const char *last = arena_printf(http->arena, "%" PRIu64, reading->last);
    if (reading->more) {
        const char *next = page_cursor(reading->call, str_from(last));
        http_response_header(http, "Stentor-Next", str_from(next));
    }
    if (reading->purpose == PURPOSE_EXPORT) {
        http_respond(http, 200, "application/x-ndjson", buf_view(&reading->out));
        return;
    }
    page_end(reading->call, reading->more ? str_from(last) : STR_EMPTY, &reading->out);
    http_respond(http, 200, "application/json", buf_view(&reading->out));
}

static void finish_list(Reading *reading)
{
    if (reading->out.full) {
        http_problem(
            reading->call->http, 422, "invalid-field", "A field is not valid", "limit",
            "so many entries do not fit into one answer; ask with a lower limit");
    } else {
        answer_list(reading);
    }
    end(reading);
}

static void show(Reading *reading, const Stentor__V1__Suppression *entry, uint64_t sequence)
{
    bool lines = reading->purpose == PURPOSE_EXPORT;
    if (lines) {
        reading->page.made++;
    } else {
        page_item(&reading->page, &reading->out);
    }
    suppression_json(&reading->out, entry);
    buf_cstr(&reading->out, lines ? "\n" : "");
    reading->last = sequence;
}

static void release(Reading *reading, Stentor__V1__Suppression *entry, uint64_t sequence)
{
    ApiCall *call = reading->call;
    Arena *arena = call->http->arena;
    Stentor__V1__Suppression *copy = NULL;
    Str packed;
    Error err = {0};
    // Into the request's arena, which lives until the ack.
    if (event_pack(&entry->base, arena, &packed, &err)) {
        copy = (Stentor__V1__Suppression *)event_unpack(
            &stentor__v1__suppression__descriptor, packed, arena, &err);
    }
    if (copy == NULL) {
        api_answer_failure(call, &err);
    } else if (!precondition_holds(&reading->needs, sequence)) {
        precondition_answer_failed(call, sequence);
    } else if (copy->released_at_us > 0) {
        suppression_answer(call, copy, 200, sequence); // twice is once: by the first one, and then
    } else if (
        suppressions_may_end(call, (SuppressionReason)copy->reason) ||
        api_need_scope(call, SCOPE_SUPPRESSIONS_RELEASE)) {
        copy->released_at_us = call->http->received_at_us;
        copy->released_by = arena_cstr(arena, call->key_id);
        // In the place also of what cannot be read and came later.
        uint64_t known = suppression_known_sequence(reading->api->known, copy);
        suppression_release(
            reading->api, call, copy, &reading->needs, known > sequence ? known : sequence);
    }
}

static void take_found(Reading *reading, Stentor__V1__Suppression *entry, uint64_t sequence)
{
    if (reading->purpose == PURPOSE_RELEASE) {
        release(reading, entry, sequence);
    } else {
        suppression_answer(reading->call, entry, 200, sequence);
    }
    end(reading);
}

static bool is_among(const HashSet *hashes, const Stentor__V1__Suppression *entry)
{
    for (size_t i = 0; i < hashes->count; i++) {
        if (memcmp(hashes->items[i], entry->address_hash.data, ADDRESS_HASH_LEN) == 0) {
            return true;
        }
    }
    return hashes->count == 0;
}

static bool is_wanted(const Reading *reading, const Stentor__V1__Suppression *entry)
{
    int64_t now_us = reading->call->http->received_at_us;
    bool over =
        entry->released_at_us > 0 || (entry->expires_at_us > 0 && entry->expires_at_us <= now_us);
    return (reading->all || !over) && is_among(&reading->hashes, entry) &&
           (reading->reason == SUPPRESSION_NONE || (int)entry->reason == (int)reading->reason);
}

// CONFIG keeps earlier messages of an address: what is in force is the last one that can be read,
// which this process knows. Of the others those are shown that say who released what: they are not
// said again by what came after them.
static bool is_shown(
    const Reading *reading, const Stentor__V1__Suppression *entry, uint64_t sequence)
{
    uint64_t last = suppressions_readable(
        reading->api->known, str_from(entry->tenant), (Channel)entry->channel,
        (Category)entry->category, entry->address_hash.data);
    return sequence >= last || entry->released_at_us > 0;
}

static void take_entry(Reading *reading, const BusMessage *message)
{
    ConfigName name;
    Error err = {0};
    Stentor__V1__Suppression *entry = NULL;
    arena_reset(reading->arena);
    if (config_entry_check(message, &name, reading->arena, &err)) {
        entry = suppression_read(name.tenant, name.key, message->payload, reading->arena, &err);
    }
    if (entry == NULL || !is_shown(reading, entry, message->sequence)) {
        return; // the mirror has logged what it could not read
    }
    if (reading->purpose == PURPOSE_GET || reading->purpose == PURPOSE_RELEASE) {
        if (strcmp(entry->id, reading->id) == 0) {
            take_found(reading, entry, message->sequence);
        }
    } else if (is_wanted(reading, entry)) {
        if (reading->page.made == reading->page.limit) {
            reading->more = true;
            finish_list(reading);
        } else {
            show(reading, entry, message->sequence);
        }
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Reading *reading = ctx;
    for (size_t i = 0; i < count && !reading->answered; i++) {
        take_entry(reading, &messages[i]);
    }
}

static void on_reader_caught_up(void *ctx)
{
    Reading *reading = ctx;
    if (reading->answered) {
        return;
    }
    if (reading->purpose == PURPOSE_LIST || reading->purpose == PURPOSE_EXPORT) {
        finish_list(reading);
        return;
    }
    api_answer_missing(
        reading->call, arena_printf(reading->call->http->arena, "suppression '%s'", reading->id));
    end(reading);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Reading *reading = ctx;
    if (!reading->answered) {
        Error away = *err;
        away.kind = ERROR_TRANSIENT;
        api_answer_failure(reading->call, &away);
        end(reading);
    }
}

void suppressions_list_tick(SuppressionsApi *api)
{
    int64_t oldest_us = clock_mono_us() - SUPPRESSIONS_READ_MS * INT64_C(1000);
    Reading *next = NULL;
    for (Reading *reading = api->under_way; reading != NULL; reading = next) {
        next = reading->next;
        if (reading->started_us < oldest_us) {
            api_answer_unavailable(reading->call, "the list could not be read from NATS in time");
            end(reading);
        }
    }
}

// NULL: answered. The filter's tokens are names, hex and '*' only.
static Reading *begin(ApiCall *call, Purpose purpose)
{
    SuppressionsApi *api = call->ctx;
    if (api->reading >= SUPPRESSIONS_READS_MAX || !bus_connected(api->bus)) {
        api_answer_unavailable(call, "too many lists are being read, or NATS cannot be reached");
        return NULL;
    }
    Reading *reading = xcalloc(1, sizeof *reading);
    reading->api = api;
    reading->call = call;
    reading->purpose = purpose;
    reading->arena = arena_new(0);
    buf_init(&reading->out, ANSWER_BYTES_MAX);
    reading->started_us = clock_mono_us();
    reading->next = api->under_way;
    api->under_way = reading;
    api->reading++;
    return reading;
}

static void read_on(Reading *reading, const char *filter, uint64_t after, int64_t from_us)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    ReaderOptions options = {
        .stream = "CONFIG",
        .filter = filter,
        .start_sequence = after == 0 ? 0 : after + 1,
        .start_time_us = from_us,
    };
    reading->reader = reader_new(reading->api->bus, &options, &handlers, reading);
}

// ---- listing ----

typedef struct Query {
    Channel channel; // NONE: any
    SuppressionReason reason;
    HashSet hashes;
    bool all;
} Query;

static bool query_address(const SuppressionsApi *api, ApiCall *call, Query *query, FieldError *err)
{
    Str address = http_query(call->http, "address");
    Str hash = http_query(call->http, "address_hash");
    size_t len = 0;
    if (hash.len > 0) {
        query->hashes.count = 1;
        bool good = hex_decode(hash, query->hashes.items[0], ADDRESS_HASH_LEN, &len);
        return (good && len == ADDRESS_HASH_LEN) ||
               field_error(err, "address_hash", "not 64 hexadecimal digits");
    }
    if (address.len == 0) {
        return true;
    }
    // The hash is the channel's, so an address is always one of a channel.
    query->channel = query->channel == CHANNEL_NONE ? CHANNEL_EMAIL : query->channel;
    Str normalised = STR_EMPTY;
    if (!suppressions_hash_address(
            api, call, query->channel, address, query->hashes.items[0], &normalised, err)) {
        return false;
    }
    query->hashes.count = api->hash_keys.count; // the entry may have been made under any
    for (size_t i = 1; i < api->hash_keys.count; i++) {
        address_hash(
            api->hash_keys.keys[i], str_from(call->tenant), query->channel, normalised,
            query->hashes.items[i]);
    }
    return true;
}

static bool read_query(const SuppressionsApi *api, ApiCall *call, Query *query, FieldError *err)
{
    Str channel = http_query(call->http, "channel");
    Str reason = http_query(call->http, "reason");
    Str state = http_query(call->http, "state");
    if (channel.len > 0 && !channel_from_name(channel, &query->channel)) {
        return field_error(err, "channel", "not a channel: " CHANNEL_NAMES);
    }
    if (reason.len > 0 && !suppression_reason_from_name(reason, &query->reason)) {
        return field_error(err, "reason", "not a reason such as 'hard_bounce'");
    }
    if (state.len > 0 && !str_eq(state, STR("all")) && !str_eq(state, STR("active"))) {
        return field_error(err, "state", "'active' (the default) or 'all'");
    }
    query->all = str_eq(state, STR("all"));
    return query_address(api, call, query, err);
}

void suppressions_list(ApiCall *call)
{
    bool exports = str_eq(api_route_word(call), STR("export"));
    Query query = {.all = false};
    Page page;
    int64_t after = 0;
    FieldError err = {.field = ""};
    if (!read_query(call->ctx, call, &query, &err)) {
        api_answer_field(call, &err);
        return;
    }
    if (!page_read(
            call, exports ? SUPPRESSIONS_EXPORT_MAX : PAGE_LIMIT,
            exports ? SUPPRESSIONS_EXPORT_MAX : PAGE_LIMIT_MAX, &page)) {
        return;
    }
    (void)str_to_i64(page.after, &after); // ours, for the cursor's MAC holds
    Reading *reading = begin(call, exports ? PURPOSE_EXPORT : PURPOSE_LIST);
    if (reading == NULL) {
        return;
    }
    reading->page = page;
    reading->reason = query.reason;
    reading->all = query.all;
    char hex[2 * ADDRESS_HASH_LEN + 1] = "*";
    reading->hashes = query.hashes;
    if (query.hashes.count == 1) { // a filter names one; of several the reading chooses
        hex_encode(query.hashes.items[0], ADDRESS_HASH_LEN, hex);
    }
    char filter[FILTER_SIZE];
    (void)snprintf(
        filter, sizeof filter, "cfg.suppression.%s.%s.*.%s", call->tenant,
        query.channel == CHANNEL_NONE ? "*" : channel_name(query.channel), hex);
    if (!exports) {
        page_begin(&reading->out);
    }
    read_on(reading, filter, (uint64_t)after, 0);
}

// ---- one of them ----

// Its entry was stored at or after the time in its id, so the read begins there (an hour before,
// for clocks that differ).
void suppressions_one(ApiCall *call)
{
    static const int64_t hour_ms = 3600000;
    int64_t made_ms = 0;
    if (!id_parse(call->params[0], "sup_", &made_ms)) {
        api_answer_missing(call, "such suppression: its id is 'sup_' and 26 characters");
        return;
    }
    bool shows = strcmp(call->route->method, "GET") == 0;
    Precondition needs = {0};
    if (!shows && !precondition_read(call, &needs)) {
        return;
    }
    Reading *reading = begin(call, shows ? PURPOSE_GET : PURPOSE_RELEASE);
    if (reading == NULL) {
        return;
    }
    reading->needs = needs;
    (void)str_to_c(call->params[0], reading->id, sizeof reading->id);
    char filter[FILTER_SIZE];
    (void)snprintf(filter, sizeof filter, "cfg.suppression.%s.*.*.*", call->tenant);
    read_on(reading, filter, 0, made_ms > hour_ms ? (made_ms - hour_ms) * 1000 : 0);
}
