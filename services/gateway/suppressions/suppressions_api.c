// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/suppressions/suppressions_api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/api/page.h"
#include "common/api/precondition.h"
#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/config_store.h"
#include "common/model/address.h"
#include "services/gateway/suppressions/suppressions_import.h"

enum { ANSWER_BYTES_MAX = 64 * 1024 * 1024, FILTER_SIZE = 160, NAME_MAX_BYTES = 32 };

static_assert((int)SUPPRESSION_HASH_LEN == (int)ADDRESS_HASH_LEN, "they are the same hash");

// ---- what both sides share ----

// "alice@example.com" or, on other channels, the address as it is, into its hash.
static bool hash_address(
    const SuppressionsApi *api, ApiCall *call, Channel channel, Str text,
    uint8_t ret[ADDRESS_HASH_LEN], Str *ret_address, FieldError *err)
{
    char reason[ADDRESS_REASON_SIZE];
    *ret_address = text;
    if (channel == CHANNEL_EMAIL && !address_parse(text, call->http->arena, ret_address, reason)) {
        return field_error(err, "address", "%s", reason);
    }
    address_hash(api->hash_keys.keys[0], str_from(call->tenant), channel, *ret_address, ret);
    return true;
}

// One suppression on its way into CONFIG; lives in the request's arena.
typedef struct Store {
    const SuppressionsApi *api;
    ApiCall *call;
    const Stentor__V1__Suppression *entry;
    int status;  // of the answer
    bool barred; // by what another stored at the same moment
} Store;

static void answer_entry(Store *store)
{
    Buf out;
    buf_init(&out, 64 * 1024);
    suppression_json(&out, store->entry);
    http_respond(store->call->http, store->status, "application/json", buf_view(&out));
    buf_done(&out);
}

// What a complaint or the law made is ended by who may release it, also in the place of another
// entry that says less or ends sooner; and so is what cannot be read, for it may be either.
static bool is_guarded(SuppressionReason reason)
{
    return reason == SUPPRESSION_COMPLAINT || reason == SUPPRESSION_COMPLIANCE ||
           reason == SUPPRESSION_UNREADABLE;
}

static bool may_end(const ApiCall *call, SuppressionReason reason)
{
    return !is_guarded(reason) || (call->scopes & SCOPE_BIT(SCOPE_SUPPRESSIONS_RELEASE)) != 0;
}

bool suppressions_may_replace(
    const SuppressionsApi *api, const ApiCall *call, const Stentor__V1__Suppression *entry)
{
    SuppressionReason before = suppressions_of_entry(
        api->known, str_from(entry->tenant), (Channel)entry->channel, (Category)entry->category,
        entry->address_hash.data, call->http->received_at_us);
    bool weaker = (SuppressionReason)entry->reason != before || entry->expires_at_us != 0;
    return !weaker || may_end(call, before);
}

static void answer_barred(const Store *store)
{
    if (store->status == 201) {
        (void)api_need_scope(store->call, SCOPE_SUPPRESSIONS_RELEASE);
        return;
    }
    Problem problem = {.status = 409, .slug = "suppression-changed"};
    problem.title = "The suppression was changed by another at this moment: read it again";
    api_answer_problem(store->call, &problem);
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // the same cause once more is a success
    Store *store = ctx;
    if (store->barred) {
        answer_barred(store);
    } else if (err != NULL) {
        api_answer_failure(store->call, err);
    } else {
        answer_entry(store);
    }
}

// Another came first: what it says may be what this caller may not end.
static ConfigVerdict decide_new(void *ctx, uint64_t there)
{
    Store *store = ctx;
    if (!suppression_is_known(store->api->known, store->entry, there)) {
        return CONFIG_WAIT;
    }
    store->barred = !suppressions_may_replace(store->api, store->call, store->entry);
    return store->barred ? CONFIG_LEAVE : CONFIG_PUT;
}

// What is released is just what was read.
static ConfigVerdict decide_release(void *ctx, uint64_t there)
{
    Store *store = ctx;
    (void)there;
    store->barred = true;
    return CONFIG_LEAVE;
}

// replaces: the sequence that was read, for a release.
static void store_entry(
    const SuppressionsApi *api, ApiCall *call, const Stentor__V1__Suppression *entry,
    uint64_t replaces)
{
    bool releases = entry->released_at_us > 0;
    Store *store = arena_zalloc(call->http->arena, sizeof *store);
    *store = (Store){.api = api, .call = call, .entry = entry, .status = releases ? 200 : 201};
    ConfigStore put = {
        .replaces = replaces,
        .decide = releases ? decide_release : decide_new,
        .done = on_stored,
        .ctx = store,
    };
    Error err = {0};
    if (suppression_event(entry, call->http->arena, &put.out, &err)) {
        config_store(api->bus, &put, call->http->arena);
    } else {
        api_answer_failure(call, &err);
    }
}

// ---- adding ----

typedef struct Wish {
    Str address;
    Str address_hash;
    Str channel;
    Str category;
    Str reason;
    Str note;
    int64_t expires_at_us;
} Wish;

static void take_wish(ApiBody *body, Wish *wish)
{
    (void)api_take_text(body, "address", ADDRESS_MAX, &wish->address);
    (void)api_take_text(body, "address_hash", 2 * ADDRESS_HASH_LEN, &wish->address_hash);
    (void)api_take_text(body, "channel", NAME_MAX_BYTES, &wish->channel);
    (void)api_take_text(body, "category", NAME_MAX_BYTES, &wish->category);
    (void)api_take_text(body, "reason", NAME_MAX_BYTES, &wish->reason);
    (void)api_take_text(body, "note", SUPPRESSION_NOTE_MAX, &wish->note);
    (void)api_take_time(body, "expires_at", &wish->expires_at_us);
    (void)api_body_end(body);
}

// false: the channel is none, and so is the address of it.
static bool read_names(ApiBody *body, const Wish *wish, SuppressionSpec *spec)
{
    spec->channel = CHANNEL_EMAIL;
    spec->category = CATEGORY_NONE;
    spec->reason = SUPPRESSION_MANUAL;
    bool one = wish->category.len > 0 && !str_eq(wish->category, STR("any"));
    if (one && !category_from_name(wish->category, &spec->category)) {
        (void)api_body_fail(body, "category", "not a category such as 'marketing', nor 'any'");
    }
    if (wish->reason.len > 0 && !suppression_reason_from_name(wish->reason, &spec->reason)) {
        (void)api_body_fail(
            body, "reason",
            "one of hard_bounce, complaint, invalid_address, opt_out, manual, compliance, "
            "rate_limit");
    }
    return wish->channel.len == 0 || channel_from_name(wish->channel, &spec->channel) ||
           api_body_fail(body, "channel", "not a channel such as 'email'");
}

static bool read_hash(
    const SuppressionsApi *api, ApiCall *call, ApiBody *body, const Wish *wish,
    SuppressionSpec *spec, uint8_t hash[ADDRESS_HASH_LEN])
{
    if ((wish->address.len > 0) == (wish->address_hash.len > 0)) {
        return api_body_fail(body, "address", "give either 'address' or 'address_hash'");
    }
    size_t len = 0;
    FieldError err = {.field = ""};
    spec->hash = hash;
    if (wish->address.len > 0) {
        return hash_address(api, call, spec->channel, wish->address, hash, &spec->address, &err) ||
               api_body_fail(body, err.field, "%s", err.text);
    }
    bool good = hex_decode(wish->address_hash, hash, ADDRESS_HASH_LEN, &len);
    return (good && len == ADDRESS_HASH_LEN) ||
           api_body_fail(body, "address_hash", "not 64 hexadecimal digits");
}

static bool read_wish(
    const SuppressionsApi *api, ApiCall *call, ApiBody *body, SuppressionSpec *spec,
    uint8_t hash[ADDRESS_HASH_LEN])
{
    Wish wish = {STR_EMPTY, STR_EMPTY, STR_EMPTY,         STR_EMPTY,
                 STR_EMPTY, STR_EMPTY, .expires_at_us = 0};
    take_wish(body, &wish);
    if (read_names(body, &wish, spec)) {
        (void)read_hash(api, call, body, &wish, spec, hash);
    }
    if (wish.expires_at_us != 0 && wish.expires_at_us <= call->http->received_at_us) {
        (void)api_body_fail(body, "expires_at", "lies in the past");
    }
    spec->expires_at_us = wish.expires_at_us;
    spec->note = wish.note;
    return api_body_good(body);
}

static void add(const SuppressionsApi *api, ApiCall *call, const Stentor__V1__Suppression *entry)
{
    if (suppressions_may_replace(api, call, entry) ||
        api_need_scope(call, SCOPE_SUPPRESSIONS_RELEASE)) {
        store_entry(
            api, call, entry,
            suppressions_sequence(
                api->known, str_from(entry->tenant), (Channel)entry->channel,
                (Category)entry->category, entry->address_hash.data));
    }
}

static void post_suppression(ApiCall *call)
{
    const SuppressionsApi *api = call->ctx;
    ApiBody body = {0};
    uint8_t hash[ADDRESS_HASH_LEN];
    SuppressionSpec spec = {
        .tenant = str_from(call->tenant),
        .at_us = call->http->received_at_us,
        .by = call->key_id,
        .address = STR_EMPTY,
        .notification_id = STR_EMPTY,
    };
    if (!api_body_parse(&body, call->http->body, call->http->arena) ||
        !read_wish(api, call, &body, &spec, hash)) {
        api_answer_problem(call, &body.problem);
    } else {
        add(api, call, suppression_make(&spec, call->http->arena));
    }
    api_body_free(&body);
}

// ---- reading CONFIG ----

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
    char id[ID_SIZE]; // GET and RELEASE
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
            "so many entries do not fit in one answer");
    } else {
        answer_list(reading);
    }
    end(reading);
}

static void finish_missing(Reading *reading)
{
    api_answer_missing(
        reading->call, arena_printf(reading->call->http->arena, "suppression '%s'", reading->id));
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
    } else if (copy->released_at_us > 0) {
        Store done = {.call = call, .entry = copy, .status = 200};
        answer_entry(&done); // twice is once: the first one's name and time stay
    } else if (
        may_end(call, (SuppressionReason)copy->reason) ||
        api_need_scope(call, SCOPE_SUPPRESSIONS_RELEASE)) {
        copy->released_at_us = call->http->received_at_us;
        copy->released_by = arena_cstr(arena, call->key_id);
        store_entry(reading->api, call, copy, sequence);
    }
    end(reading);
}

static void take_found(Reading *reading, Stentor__V1__Suppression *entry, uint64_t sequence)
{
    if (reading->purpose == PURPOSE_RELEASE) {
        release(reading, entry, sequence);
        return;
    }
    Store found = {.call = reading->call, .entry = entry, .status = 200};
    precondition_tag(reading->call, sequence);
    answer_entry(&found);
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

// CONFIG keeps earlier messages of an entry; what this process knows of it is the last one.
static bool is_earlier(
    const Reading *reading, const Stentor__V1__Suppression *entry, uint64_t sequence)
{
    return sequence < suppressions_sequence(
                          reading->api->known, str_from(entry->tenant), (Channel)entry->channel,
                          (Category)entry->category, entry->address_hash.data);
}

static void take_entry(Reading *reading, const BusMessage *message)
{
    Str rest = message->subject;
    Str kind = STR_EMPTY;
    Str tenant = STR_EMPTY;
    Error err = {0};
    bool shaped = str_split(&rest, '.', &kind) && str_split(&rest, '.', &kind) &&
                  str_split(&rest, '.', &tenant);
    arena_reset(reading->arena);
    Stentor__V1__Suppression *entry =
        shaped ? suppression_read(tenant, rest, message->payload, reading->arena, &err) : NULL;
    if (entry == NULL || is_earlier(reading, entry, message->sequence)) {
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
    if (reading->purpose == PURPOSE_GET || reading->purpose == PURPOSE_RELEASE) {
        finish_missing(reading);
    } else {
        finish_list(reading);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Reading *reading = ctx;
    if (!reading->answered) {
        Error told = *err;
        told.kind = ERROR_TRANSIENT;
        api_answer_failure(reading->call, &told);
        end(reading);
    }
}

void suppressions_api_tick(SuppressionsApi *api)
{
    int64_t oldest_us = clock_mono_us() - SUPPRESSIONS_READ_MS * INT64_C(1000);
    Reading *next = NULL;
    for (Reading *reading = api->under_way; reading != NULL; reading = next) {
        next = reading->next;
        if (reading->started_us < oldest_us) {
            api_answer_unavailable(reading->call, "the list could not be read in time");
            end(reading);
        }
    }
}

// NULL: answered. The filter's tokens are names, hex and '*' only.
static Reading *begin(ApiCall *call, Purpose purpose)
{
    SuppressionsApi *api = call->ctx;
    if (api->reading >= SUPPRESSIONS_READS_MAX || !bus_connected(api->bus)) {
        api_answer_unavailable(call, "too many lists are being read, or NATS is away");
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
    if (!hash_address(
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
        return field_error(err, "channel", "not a channel such as 'email'");
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

static void list(ApiCall *call, Purpose purpose, size_t limit, size_t limit_max)
{
    Query query = {.all = false};
    Page page;
    int64_t after = 0;
    FieldError err = {.field = ""};
    if (!read_query(call->ctx, call, &query, &err)) {
        api_answer_field(call, &err);
        return;
    }
    if (!page_read(call, limit, limit_max, &page)) {
        return;
    }
    (void)str_to_i64(page.after, &after); // ours, for the cursor's MAC holds
    Reading *reading = begin(call, purpose);
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
    if (purpose == PURPOSE_LIST) {
        page_begin(&reading->out);
    }
    read_on(reading, filter, (uint64_t)after, 0);
}

static void get_suppressions(ApiCall *call)
{
    list(call, PURPOSE_LIST, PAGE_LIMIT, PAGE_LIMIT_MAX);
}

static void get_export(ApiCall *call)
{
    list(call, PURPOSE_EXPORT, SUPPRESSIONS_EXPORT_MAX, SUPPRESSIONS_EXPORT_MAX);
}

// ---- one of them ----

// Its entry was stored at or after the time in its id, so the read begins there (an hour before,
// for clocks that differ).
static void find(ApiCall *call, Purpose purpose)
{
    static const int64_t hour_ms = 3600000;
    int64_t made_ms = 0;
    if (!id_parse(call->params[0], "sup_", &made_ms)) {
        api_answer_missing(call, "such suppression: its id is 'sup_' and 26 characters");
        return;
    }
    Reading *reading = begin(call, purpose);
    if (reading == NULL) {
        return;
    }
    (void)str_to_c(call->params[0], reading->id, sizeof reading->id);
    char filter[FILTER_SIZE];
    (void)snprintf(filter, sizeof filter, "cfg.suppression.%s.*.*.*", call->tenant);
    read_on(reading, filter, 0, made_ms > hour_ms ? (made_ms - hour_ms) * 1000 : 0);
}

static void get_suppression(ApiCall *call)
{
    find(call, PURPOSE_GET);
}

static void release_suppression(ApiCall *call)
{
    find(call, PURPOSE_RELEASE);
}

#define LIST_QUERY "limit cursor channel reason state address address_hash"

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/suppressions", SCOPE_SUPPRESSIONS_READ, get_suppressions, LIST_QUERY},
    {"POST", "/v1/suppressions", SCOPE_SUPPRESSIONS_WRITE, post_suppression, NULL},
    {"GET", "/v1/suppressions/export", SCOPE_SUPPRESSIONS_EXPORT, get_export, LIST_QUERY},
    {"POST", "/v1/suppressions/import", SCOPE_SUPPRESSIONS_WRITE, suppressions_import,
     "channel category reason note expires_at dry_run"},
    {"GET", "/v1/suppressions/{}", SCOPE_SUPPRESSIONS_READ, get_suppression, NULL},
    {"DELETE", "/v1/suppressions/{}", SCOPE_SUPPRESSIONS_WRITE, release_suppression, NULL},
    {"POST", "/v1/suppressions/{}/release", SCOPE_SUPPRESSIONS_WRITE, release_suppression, NULL},
};

void suppressions_api_add(Api *api, SuppressionsApi *suppressions)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], suppressions);
}
