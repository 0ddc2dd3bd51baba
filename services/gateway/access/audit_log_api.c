// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/audit_log_api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/page.h"
#include "common/auditlog/audit_view.h"
#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"

// One read; on the heap, for the reader outlives the answer.
typedef struct AuditLogReading Reading;

struct AuditLogReading {
    Reading *next; // under way
    int64_t started_us;
    AuditLogApi *api;
    ApiCall *call; // gone once `answered`
    Reader *reader;
    Arena *arena;
    AuditFilter filter; // texts of the call
    size_t limit, looked;
    json_t *data;
    uint64_t last;        // sequence of the last message that was looked at
    size_t shown_of_last; // entries of it
    bool answered;
};

static void on_reader_freed(void *ctx)
{
    Reading *reading = ctx;
    reading->api->reading--;
    arena_free(reading->arena);
    json_decref(reading->data);
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

static void finish(Reading *reading, bool more)
{
    char last[48];
    (void)snprintf(last, sizeof last, "%" PRIu64 "/%zu", reading->last, reading->shown_of_last);
    page_answer(reading->call, json_incref(reading->data), more ? str_from(last) : STR_EMPTY);
    end(reading);
}

// false: the page is full.
static bool take(Reading *reading, const BusMessage *message)
{
    size_t index = message->sequence == reading->last ? reading->shown_of_last : 0;
    arena_reset(reading->arena);
    const Stentor__V1__AuditEntry *whole = (const Stentor__V1__AuditEntry *)event_unpack(
        &stentor__v1__audit_entry__descriptor, message->payload, reading->arena, NULL);
    const Stentor__V1__AuditEntry *entry = NULL;
    for (; whole != NULL && (entry = audit_view_entry(whole, index)) != NULL; index++) {
        if (json_array_size(reading->data) == reading->limit ||
            reading->looked++ == AUDIT_LOG_LOOKED_MAX) {
            return false;
        }
        if (audit_filter_fits(&reading->filter, whole->kind, entry)) {
            (void)json_array_append_new(
                reading->data, audit_view_json(message->sequence, whole->kind, entry));
        }
        reading->last = message->sequence;
        reading->shown_of_last = index + 1;
    }
    return true;
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Reading *reading = ctx;
    for (size_t i = 0; i < count && !reading->answered; i++) {
        if (!take(reading, &messages[i])) {
            finish(reading, true);
        }
    }
}

static void on_reader_caught_up(void *ctx)
{
    Reading *reading = ctx;
    if (!reading->answered) {
        finish(reading, false);
    }
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

void audit_log_api_tick(AuditLogApi *api)
{
    int64_t oldest_us = clock_mono_us() - AUDIT_LOG_READ_MS * INT64_C(1000);
    Reading *next = NULL;
    for (Reading *reading = api->under_way; reading != NULL; reading = next) {
        next = reading->next;
        if (reading->started_us < oldest_us) {
            api_answer_unavailable(reading->call, "the audit log could not be read in time");
            end(reading);
        }
    }
}

// ---- what is asked for ----

static bool read_time(ApiCall *call, const char *name, int64_t *ret_us)
{
    Str text = http_query(call->http, name);
    if (text.len == 0 || clock_parse(text, ret_us)) {
        return true;
    }
    api_answer_parameter(call, name, "must be a time such as 2026-05-01T00:00:00Z");
    return false;
}

// false: answered.
static bool read_filter(ApiCall *call, AuditFilter *ret)
{
    AuditKind kind;
    *ret = (AuditFilter){
        .kind = http_query(call->http, "kind"),
        .tenant = str_from(call->tenant),
        .actor = http_query(call->http, "actor"),
        .action = http_query(call->http, "action"),
        .target = http_query(call->http, "target"),
    };
    if (ret->kind.len > 0 && !audit_kind_from_name(ret->kind, &kind)) {
        api_answer_parameter(
            call, "kind", "read, write, erasure, hold, suppression, restore or expiry");
        return false;
    }
    return read_time(call, "from", &ret->from_us) && read_time(call, "to", &ret->to_us);
}

// Of a kind, or of all: its subjects.
static void filter_subject(char out[SUBJECT_SIZE], const AuditFilter *filter)
{
    if (filter->kind.len > 0) {
        subject_audit(out, filter->tenant, filter->kind);
        return;
    }
    (void)snprintf(out, SUBJECT_SIZE, "aud." STR_FMT ".*", STR_ARG(filter->tenant));
}

// "<sequence>/<entries of it that were shown>", under the cursor's MAC: it was made here.
static void read_position(Reading *reading, Str position)
{
    int64_t sequence = 0, shown = 0;
    Str number = STR_EMPTY;
    if (str_split(&position, '/', &number) && str_to_i64(number, &sequence) &&
        str_to_i64(position, &shown)) {
        reading->last = (uint64_t)sequence;
        reading->shown_of_last = (size_t)shown;
    }
}

static void begin(ApiCall *call, const AuditFilter *filter, const Page *page)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    AuditLogApi *api = call->ctx;
    char subject[SUBJECT_SIZE];
    Reading *reading = xcalloc(1, sizeof *reading);
    *reading = (Reading){.api = api, .call = call, .filter = *filter, .limit = page->limit};
    reading->arena = arena_new(0);
    reading->data = json_array();
    reading->started_us = clock_mono_us();
    reading->next = api->under_way;
    api->under_way = reading;
    api->reading++;
    filter_subject(subject, filter);
    read_position(reading, page->after);
    const ReaderOptions options = {
        .stream = "AUDIT",
        .filter = subject,
        .start_sequence = reading->last, // some of its entries may be left
        // An entry is stored at or after what it says of itself.
        .start_time_us = reading->last > 0 ? 0 : filter->from_us,
        .reads_once = true,
    };
    reading->reader = reader_new(api->bus, &options, &handlers, reading);
}

static void get_audit_log(ApiCall *call)
{
    Page page;
    AuditFilter filter;
    const AuditLogApi *api = call->ctx;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page) || !read_filter(call, &filter)) {
        return;
    }
    if (api->reading >= AUDIT_LOG_READS_MAX || !bus_connected(api->bus)) {
        api_answer_unavailable(call, "too many are reading the log, or NATS cannot be reached");
        return;
    }
    begin(call, &filter, &page);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/audit-log", SCOPE_AUDIT_READ, get_audit_log,
     "actor action target kind from to limit cursor", false},
};

void audit_log_api_add(Api *api, AuditLogApi *log)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], log);
}
