// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/find/find_filters.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/model/channel_address.h"
#include "common/model/enums.h"

enum { TEXT_MAX = 256 };

static const int64_t hour_us = INT64_C(3600000000);

typedef bool (*FilterCheck)(Str value, const char **ret_expected);

typedef struct FilterRow {
    const char *name;
    FindKind kind;   // 0: no entries
    FoldText column; // of the row; FOLD_TEXT_COUNT: none, or compared otherwise
    FilterCheck check;
} FilterRow;

// ---- values ----

static bool is_text(Str value, const char **ret_expected)
{
    *ret_expected = "1 to 256 bytes of text";
    return value.len <= TEXT_MAX && str_is_utf8(value);
}

static bool is_recipient(Str value, const char **ret_expected)
{
    *ret_expected = "'rcp_' and a ULID";
    return id_parse(value, "rcp_", NULL);
}

static bool is_batch(Str value, const char **ret_expected)
{
    *ret_expected = "'dbt_' and a ULID";
    return id_parse(value, "dbt_", NULL);
}

static bool is_template(Str value, const char **ret_expected)
{
    *ret_expected = "a template's key";
    return id_is_key(value);
}

static bool is_status(Str value, const char **ret_expected)
{
    Status status = STATUS_NONE;
    *ret_expected = "queued, scheduled, rendering, sending, sent, delivered, opened, clicked, "
                    "suppressed, superseded, failed, bounced, complained, or unknown";
    return status_from_name(value, &status) || str_eq(value, STR(FIND_END_UNKNOWN));
}

static bool is_channel(Str value, const char **ret_expected)
{
    Channel channel = CHANNEL_NONE;
    *ret_expected = CHANNEL_NAMES;
    return channel_from_name(value, &channel);
}

static bool is_category(Str value, const char **ret_expected)
{
    Category category = CATEGORY_NONE;
    *ret_expected = "transactional, operational, security, reminder, marketing, system, academic, "
                    "billing, social or compliance";
    return category_from_name(value, &category);
}

static bool is_address(Str value, const char **ret_expected)
{
    *ret_expected = "an address of some channel";
    return value.len <= PEOPLE_ADDRESS_MAX;
}

// clang-format off
static const FilterRow filters[FIND_FILTERS] = {
    [FIND_BY_VENDOR_MESSAGE] = {"vendor_message_id", FIND_VENDOR_MESSAGE, FOLD_TEXT_COUNT,   is_text},
    [FIND_BY_CORRELATION]    = {"correlation_id",    FIND_CORRELATION,    FOLD_CORRELATION,  is_text},
    [FIND_BY_SOURCE_EVENT]   = {"source_event",      FIND_SOURCE_EVENT,   FOLD_SOURCE_EVENT, is_text},
    [FIND_BY_RECIPIENT]      = {"recipient_id",      FIND_RECIPIENT,      FOLD_RECIPIENT,    is_recipient},
    [FIND_BY_ADDRESS]        = {"address",           FIND_ADDRESS,        FOLD_TEXT_COUNT,   is_address},
    [FIND_BY_STATUS]         = {"status",            FIND_END,            FOLD_TEXT_COUNT,   is_status},
    [FIND_BY_BATCH]          = {"batch_id",          FIND_BATCH,          FOLD_BATCH,        is_batch},
    [FIND_BY_TEMPLATE]       = {"template",          FIND_TEMPLATE,       FOLD_TEMPLATE,     is_template},
    [FIND_BY_CHANNEL]        = {"channel",           0,                   FOLD_CHANNEL,      is_channel},
    [FIND_BY_CATEGORY]       = {"category",          0,                   FOLD_CATEGORY,     is_category},
};
// clang-format on

static bool is_unknown(const FindQuery *query)
{
    return str_eq(query->value[FIND_BY_STATUS], STR(FIND_END_UNKNOWN));
}

static bool has_entries(const FindQuery *query, FindFilter filter)
{
    Status status = STATUS_NONE;
    if (query->value[filter].len == 0 || filters[filter].kind == 0) {
        return false;
    }
    return filter != FIND_BY_STATUS || is_unknown(query) ||
           (status_from_name(query->value[filter], &status) && find_is_end(status));
}

// ---- reading ----

static bool take_value(ApiCall *call, FindQuery *query, FindFilter filter, Str value)
{
    const char *expected = NULL;
    if (value.len > 0 && !filters[filter].check(value, &expected)) {
        return api_refuse_field(call, filters[filter].name, "not %s", expected);
    }
    query->value[filter] = value;
    return true;
}

static bool read_time(ApiCall *call, const char *name, int64_t *ret_us)
{
    Str text = http_query(call->http, name);
    return text.len == 0 || clock_parse(text, ret_us) ||
           api_refuse_field(call, name, "not a time such as '2026-12-24T15:00:00Z'");
}

static bool read_span(ApiCall *call, FindQuery *query)
{
    if (!read_time(call, "from", &query->since_us) || !read_time(call, "to", &query->until_us)) {
        return false;
    }
    return query->until_us == 0 || query->since_us < query->until_us ||
           api_refuse_field(call, "to", "not later than 'from'");
}

// A Message-ID is looked for as it stands in the mail, or without its brackets.
static void read_message_id(FindQuery *query)
{
    Str *id = &query->value[FIND_BY_VENDOR_MESSAGE];
    if (id->len > 2 && id->ptr[0] == '<' && str_ends(*id, STR(">"))) {
        *id = str_slice(*id, 1, id->len - 1);
    }
    ptrdiff_t at = str_find(*id, '@');
    Str own = str_slice(*id, 0, at < 0 ? 0 : (size_t)at);
    query->own_id = id_parse(own, "ntf_", NULL) ? own : STR_EMPTY;
}

// The hash knows the channel, so an address is looked for on each channel that it fits, and under
// each hash key.
static bool hash_address(ApiCall *call, const MasterKey *master, FindQuery *query)
{
    HashKeys keys = master_hash_keys(master);
    char reason[ADDRESS_REASON_SIZE] = "";
    for (Channel channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
        Str normal = STR_EMPTY;
        if (!people_address_check(
                channel, query->value[FIND_BY_ADDRESS], call->http->arena, &normal, reason)) {
            continue;
        }
        for (size_t i = 0; i < keys.count; i++) {
            address_hash(
                keys.keys[i], str_from(call->tenant), channel, normal,
                query->hashes[query->hash_count++]);
        }
    }
    return query->hash_count > 0 ||
           api_refuse_field(call, "address", "not an address of any channel");
}

static void choose_driver(FindFilter fixed, FindQuery *query)
{
    query->driver = FIND_FILTERS;
    for (FindFilter filter = FIND_FILTERS; filter-- > 0;) {
        query->driver = has_entries(query, filter) ? filter : query->driver;
    }
    query->driver = is_unknown(query)       ? FIND_BY_STATUS
                    : fixed != FIND_FILTERS ? fixed
                                            : query->driver;
    for (FindFilter filter = 0; filter < FIND_FILTERS; filter++) {
        query->checks = query->checks || (query->value[filter].len > 0 && filter != query->driver);
    }
    // What has failed may have been sent again since.
    query->checks = query->checks || (query->driver == FIND_BY_STATUS && !is_unknown(query));
}

static void make_keys(const ApiCall *call, const MasterKey *master, FindQuery *query)
{
    if (query->driver == FIND_FILTERS) {
        return;
    }
    Str tenant = str_from(call->tenant);
    FindKind kind = filters[query->driver].kind;
    if (query->driver == FIND_BY_ADDRESS) {
        for (size_t i = 0; i < query->hash_count; i++) {
            Str hash = str_of(query->hashes[i], ADDRESS_HASH_LEN);
            query->keys[query->key_count++] = find_key(master, kind, tenant, hash);
        }
        return;
    }
    query->keys[query->key_count++] = find_key(master, kind, tenant, query->value[query->driver]);
}

// Without an index rows are looked through one by one.
static bool check_scan(ApiCall *call, const FindQuery *query)
{
    int64_t until_us = query->until_us != 0 ? query->until_us : call->http->received_at_us;
    if (query->driver != FIND_FILTERS ||
        (query->since_us != 0 && until_us - query->since_us <= FIND_SCAN_HOURS * hour_us)) {
        return true;
    }
    api_answer_parameter(
        call, "from",
        "no index serves these filters: give 'from' and 'to', at most %d hours apart, or one of "
        "recipient_id, address, correlation_id, source_event, batch_id, template, "
        "vendor_message_id, or a status that is failed, bounced, suppressed, complained or unknown",
        FIND_SCAN_HOURS);
    return false;
}

static bool check_together(ApiCall *call, const FindQuery *query)
{
    bool both = is_unknown(query) && query->value[FIND_BY_VENDOR_MESSAGE].len > 0;
    return !both || api_refuse_field(
                        call, "status", "'unknown' does not go together with vendor_message_id");
}

bool find_query_read(
    ApiCall *call, const MasterKey *master, FindFilter fixed, Str value, FindQuery *ret)
{
    *ret = (FindQuery){.driver = FIND_FILTERS};
    for (FindFilter filter = 0; filter < FIND_FILTERS; filter++) {
        Str given = filter == fixed ? value : http_query(call->http, filters[filter].name);
        if (!take_value(call, ret, filter, given)) {
            return false;
        }
    }
    read_message_id(ret);
    bool hashed = ret->value[FIND_BY_ADDRESS].len == 0 || hash_address(call, master, ret);
    if (!hashed || !read_span(call, ret) || !check_together(call, ret)) {
        return false;
    }
    choose_driver(fixed, ret);
    make_keys(call, master, ret);
    return check_scan(call, ret);
}

// ---- rows ----

static bool has_address(const FindQuery *query, const HistoryRow *row)
{
    for (size_t i = 0; i < query->hash_count; i++) {
        if (str_eq(row->text[FOLD_ADDRESS_HASH], str_of(query->hashes[i], ADDRESS_HASH_LEN))) {
            return true;
        }
    }
    return query->hash_count == 0;
}

bool find_query_fits(const FindQuery *query, const HistoryRow *row)
{
    for (FindFilter filter = 0; filter < FIND_FILTERS; filter++) {
        FoldText column = filters[filter].column;
        if (query->value[filter].len > 0 && column != FOLD_TEXT_COUNT &&
            !str_eq(row->text[column], query->value[filter])) {
            return false;
        }
    }
    Str status = query->value[FIND_BY_STATUS];
    bool same =
        status.len == 0 || is_unknown(query) || str_eq(str_from(status_name(row->status)), status);
    return same && has_address(query, row);
}
