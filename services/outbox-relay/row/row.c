// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/row/row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/model/retention/retention.h"
#include "services/outbox-relay/row/row_address.h"
#include "services/outbox-relay/row/row_value.h"
#include "stentor/v1/request.pb-c.h"

// ingest's limits: a value that ingest would make a dead letter of is rejected here.
enum {
    NAME_MAX_BYTES = 256,
    ID_MAX_BYTES = 128,
    VERSION_MAX_BYTES = 32,
    LOCALE_MAX_BYTES = 35,
    CONSENT_MAX_BYTES = 200,
    VARIABLES_MAX_BYTES = 64 * 1024,
    HEADERS_MAX = 7,
};

static const Source *source_of(const RowReader *r, MappingField field)
{
    return &r->mapping->fields[field];
}

static bool unfit(RowReader *r, MappingField field, const char *text)
{
    return row_unfit(r, source_of(r, field), field_name(field), "%s", text);
}

// Text of at most `max` bytes that a header can hold.
static bool read_text(RowReader *r, MappingField field, size_t max, Str *ret)
{
    const Source *source = source_of(r, field);
    if (!row_text(r, source, field_name(field), ret)) {
        return false;
    }
    if (ret->len > max) {
        return row_unfit(r, source, field_name(field), "has %zu bytes; at most %zu", ret->len, max);
    }
    return !str_has_control(*ret) ||
           unfit(r, field, "has a line break or another control character");
}

static bool read_time(RowReader *r, MappingField field, int64_t *ret_us)
{
    Str text = STR_EMPTY;
    *ret_us = 0;
    return read_text(r, field, NAME_MAX_BYTES, &text) &&
           (text.len == 0 || clock_parse(text, ret_us) ||
            unfit(r, field, "is not a time (RFC 3339)"));
}

// The message id of a row: event_id_derive("outbox", mapping's name,
// "<source>/<key>/<attempt>/<id>"), where `id` is fields.id (it may be empty).
static void row_event_id(const Mapping *mapping, const Row *row, Str id, char out[EVENT_ID_SIZE])
{
    Buf text;
    buf_init(&text, EVENT_BYTES_MAX);
    buf_str(&text, row->source);
    buf_char(&text, '/');
    buf_str(&text, row->key);
    buf_printf(&text, "/%" PRId32 "/", row->attempt);
    buf_str(&text, id);
    event_id_derive("outbox", mapping->name, buf_view(&text), out);
    buf_done(&text);
}

static bool set_out(RowReader *r, Str type, Str row_id, Str payload, RowMessage *ret)
{
    char *subject = arena_alloc(r->arena, SUBJECT_SIZE);
    char *id = arena_alloc(r->arena, EVENT_ID_SIZE);
    subject_event(subject, ret->tenant, type);
    row_event_id(r->mapping, r->row, row_id, id);
    ret->out = (BusOut){.subject = subject, .event_id = str_from(id), .payload = payload};
    return read_text(r, FIELD_TRACEPARENT, NAME_MAX_BYTES, &ret->out.traceparent);
}

// ---- an event ----

static bool read_type(RowReader *r, Str *ret)
{
    if (!read_text(r, FIELD_TYPE, NAME_MAX_BYTES, ret)) {
        return false;
    }
    if (!event_type_fits(*ret)) {
        return unfit(
            r, FIELD_TYPE, "is not an event type: 1 to 96 of [A-Za-z0-9_-] in tokens with dots");
    }
    return !str_eq(*ret, STR("notify")) ||
           unfit(r, FIELD_TYPE, "is 'notify', which is reserved for commands");
}

static bool read_data(RowReader *r, Str *ret)
{
    const Source *source = source_of(r, FIELD_DATA);
    if (!row_object(r, source, field_name(FIELD_DATA), ret)) {
        return false;
    }
    return ret->len <= EVENT_BYTES_MAX ||
           row_unfit(
               r, source, field_name(FIELD_DATA), "has %zu bytes; at most %d", ret->len,
               (int)EVENT_BYTES_MAX);
}

static bool set_headers(RowReader *r, Str type, Str id, RowMessage *ret)
{
    int64_t at_us = 0;
    if (!read_time(r, FIELD_TIME, &at_us)) {
        return false;
    }
    char *time = arena_zalloc(r->arena, CLOCK_RFC3339_SIZE);
    BusHeader *headers = arena_array(r->arena, HEADERS_MAX, sizeof *headers);
    size_t count = 0;
    headers[count++] = (BusHeader){"ce-specversion", STR("1.0")};
    headers[count++] = (BusHeader){"ce-id", id.len > 0 ? id : r->row->key};
    headers[count++] = (BusHeader){
        "ce-source", str_from(arena_printf(r->arena, "/outbox/%.*s", STR_ARG(r->mapping->name)))};
    headers[count++] = (BusHeader){"ce-type", type};
    if (at_us > 0) {
        clock_format(at_us, time);
        headers[count++] = (BusHeader){"ce-time", str_from(time)};
    }
    headers[count++] = (BusHeader){"content-type", STR("application/json")};
    ret->out.headers = headers;
    ret->out.header_count = count;
    return true;
}

static bool make_event(RowReader *r, RowMessage *ret)
{
    Str type = STR_EMPTY;
    Str id = STR_EMPTY;
    Str data = STR_EMPTY;
    if (r->row->key.len > ID_MAX_BYTES || str_has_control(r->row->key)) {
        return error_set(
            r->err, ERROR_PERMANENT, "id (column '%.*s') is longer than %d bytes or not printable",
            STR_ARG(r->mapping->id), (int)ID_MAX_BYTES);
    }
    if (!read_type(r, &type) || !read_text(r, FIELD_ID, ID_MAX_BYTES, &id)) {
        return false;
    }
    id = arena_str(r->arena, id);
    return read_data(r, &data) && set_out(r, type, id, data, ret) && set_headers(r, type, id, ret);
}

// ---- a request ----

static bool read_variables_by_name(RowReader *r, Str *ret)
{
    Buf out;
    buf_init(&out, EVENT_BYTES_MAX);
    buf_char(&out, '{');
    bool ok = true;
    for (size_t i = 0; ok && i < r->mapping->variable_count; i++) {
        const Variable *v = &r->mapping->variables[i];
        char *field = arena_printf(r->arena, "variables.%.*s", STR_ARG(str_slice(v->name, 0, 60)));
        Str value = STR_EMPTY;
        ok = row_json(r, &v->source, field, &value);
        if (ok && value.len > 0) {
            buf_cstr(&out, out.len > 1 ? "," : "");
            buf_json(&out, v->name);
            buf_char(&out, ':');
            buf_str(&out, value);
        }
    }
    buf_char(&out, '}');
    *ret = out.full ? STR_EMPTY : arena_str(r->arena, buf_view(&out));
    ok = ok && (!out.full || error_set(
                                 r->err, ERROR_PERMANENT, "fields.variables: more than %d bytes",
                                 (int)VARIABLES_MAX_BYTES));
    buf_done(&out);
    return ok;
}

// It may be a whole number of more than 64 bits: those have 19 digits or more.
static bool has_many_digits(Str json)
{
    size_t digits = 0;
    for (size_t i = 0; i < json.len && digits < 19; i++) {
        digits = json.ptr[i] >= '0' && json.ptr[i] <= '9' ? digits + 1 : 0;
    }
    return digits >= 19;
}

// ingest may be unable to read the value: Postgres takes any number, and a json column may have a
// member twice.
static bool check_json(RowReader *r, Str json)
{
    const Source *all = &r->mapping->all;
    bool raw = all->given && all->path_count == 0 && r->kinds[all->column] == COLUMN_JSON;
    if (!raw && !has_many_digits(json)) {
        return true;
    }
    json_error_t where;
    json_t *root = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, &where);
    bool ok = root != NULL || json.len == 0;
    json_decref(root);
    return ok || error_set(r->err, ERROR_PERMANENT, "fields.variables %s", row_why_no_json(&where));
}

static bool read_variables(RowReader *r, Str *ret)
{
    const Source *all = &r->mapping->all;
    *ret = STR_EMPTY;
    if (all->given && !row_object(r, all, "variables", ret)) {
        return false;
    }
    if (!all->given && r->mapping->variable_count > 0 && !read_variables_by_name(r, ret)) {
        return false;
    }
    if (ret->len > VARIABLES_MAX_BYTES) {
        return error_set(
            r->err, ERROR_PERMANENT, "fields.variables has %zu bytes of JSON; at most %d", ret->len,
            (int)VARIABLES_MAX_BYTES);
    }
    return check_json(r, *ret);
}

// A name of a closed set; empty: not given.
static bool read_name(RowReader *r, MappingField field, Str *ret)
{
    if (!read_text(r, field, NAME_MAX_BYTES, ret)) {
        return false;
    }
    const char *why = ret->len == 0 ? NULL : field_misfit(field, *ret);
    return why == NULL || unfit(r, field, why);
}

static bool read_kinds(RowReader *r, Stentor__V1__NotifyCommand *c)
{
    Str channel_text = STR_EMPTY;
    Str category_text = STR_EMPTY;
    Str priority_text = STR_EMPTY;
    Channel channel = CHANNEL_EMAIL;
    Category category = CATEGORY_NONE;
    Priority priority = PRIORITY_NONE;
    if (!read_name(r, FIELD_CHANNEL, &channel_text) ||
        !read_name(r, FIELD_CATEGORY, &category_text) ||
        !read_name(r, FIELD_PRIORITY, &priority_text)) {
        return false;
    }
    (void)channel_from_name(channel_text, &channel); // empty: stays unset
    (void)category_from_name(category_text, &category);
    (void)priority_from_name(priority_text, &priority);
    c->channel = (Stentor__V1__Channel)channel;
    c->category = (Stentor__V1__Category)category;
    c->priority = (Stentor__V1__Priority)priority;
    return true;
}

static bool set_text(RowReader *r, MappingField field, size_t max, char **ret)
{
    Str text = STR_EMPTY;
    if (!read_text(r, field, max, &text)) {
        return false;
    }
    if (text.len > 0) {
        *ret = arena_cstr(r->arena, text);
    }
    return true;
}

static bool read_receiver(RowReader *r, Stentor__V1__NotifyCommand *c)
{
    char reason[ROW_ADDRESS_REASON_SIZE];
    if (!set_text(r, FIELD_TO, ROW_ADDRESS_MAX, &c->to) ||
        !set_text(r, FIELD_TO_NAME, NAME_MAX_BYTES, &c->to_name) ||
        !set_text(r, FIELD_RECIPIENT_ID, ID_MAX_BYTES, &c->recipient_id)) {
        return false;
    }
    Str recipient = str_from(c->recipient_id);
    if (recipient.len > 0 && !id_parse(recipient, "rcp_", NULL)) {
        return unfit(r, FIELD_RECIPIENT_ID, "is not a recipient's id ('rcp_' and a ULID)");
    }
    if (c->to[0] == '\0') {
        return recipient.len > 0 || row_empty(r, source_of(r, FIELD_TO), field_name(FIELD_TO));
    }
    return row_address_fits((Channel)c->channel, str_from(c->to), reason) ||
           unfit(r, FIELD_TO, reason);
}

static bool read_template(RowReader *r, Stentor__V1__NotifyCommand *c)
{
    if (!set_text(r, FIELD_TEMPLATE, NAME_MAX_BYTES, &c->template_) ||
        !set_text(r, FIELD_TEMPLATE_VERSION, VERSION_MAX_BYTES, &c->template_version) ||
        !set_text(r, FIELD_LOCALE, LOCALE_MAX_BYTES, &c->locale)) {
        return false;
    }
    if (c->template_[0] == '\0') {
        return row_empty(r, source_of(r, FIELD_TEMPLATE), field_name(FIELD_TEMPLATE));
    }
    const char *why = field_misfit(FIELD_TEMPLATE, str_from(c->template_));
    return why == NULL || unfit(r, FIELD_TEMPLATE, why);
}

// Both or neither: a row whose address did not consent has no value in either.
static bool read_consent(RowReader *r, Stentor__V1__NotifyCommand *c)
{
    if (!set_text(r, FIELD_CONSENT_SOURCE, CONSENT_MAX_BYTES, &c->consent_source) ||
        !read_time(r, FIELD_CONSENT_AT, &c->consent_at_us)) {
        return false;
    }
    bool said = c->consent_source[0] != '\0';
    if (said && c->consent_at_us == 0) {
        return unfit(r, FIELD_CONSENT_AT, "is empty, and there is a consent_source");
    }
    return said || c->consent_at_us == 0 ||
           unfit(r, FIELD_CONSENT_SOURCE, "is empty, and there is a consent_at");
}

// NULL: the installation's.
static Stentor__V1__Retries *own_retries(RowReader *r)
{
    const Mapping *m = r->mapping;
    if (m->retry_waits == 0 && m->max_attempts == 0) {
        return NULL;
    }
    Stentor__V1__Retries *retries = arena_zalloc(r->arena, sizeof *retries);
    stentor__v1__retries__init(retries);
    retries->n_wait_s = m->retry_waits;
    retries->wait_s = arena_copy(r->arena, m->retry_wait_s, sizeof m->retry_wait_s);
    retries->max_attempts = m->max_attempts;
    return retries;
}

static bool fill_command(RowReader *r, Stentor__V1__NotifyCommand *c)
{
    Str variables = STR_EMPTY;
    if (!read_kinds(r, c) || !read_receiver(r, c) || !read_template(r, c) ||
        !set_text(r, FIELD_CORRELATION_ID, ID_MAX_BYTES, &c->correlation_id) ||
        !read_time(r, FIELD_SCHEDULED_FOR, &c->scheduled_for_us) ||
        !read_time(r, FIELD_EXPIRES_AT, &c->expires_at_us) || !read_consent(r, c) ||
        !read_variables(r, &variables)) {
        return false;
    }
    if (variables.len > 0) {
        c->variables_json = arena_cstr(r->arena, variables);
    }
    c->produced_at_us = r->row->made_at_us;
    c->retries = own_retries(r);
    return true;
}

static bool make_request(RowReader *r, RowMessage *ret)
{
    static const BusHeader headers[] = {
        {"content-type", {"application/protobuf", sizeof "application/protobuf" - 1}}};
    Stentor__V1__NotifyCommand command;
    stentor__v1__notify_command__init(&command);
    Str payload = STR_EMPTY;
    if (!fill_command(r, &command) || !event_pack(&command.base, r->arena, &payload, r->err) ||
        !set_out(r, STR("notify"), STR_EMPTY, payload, ret)) {
        return false;
    }
    ret->out.headers = headers;
    ret->out.header_count = sizeof headers / sizeof headers[0];
    notify_id_derive(
        ret->tenant, ret->out.event_id, r->row->made_at_us, RETENTION_CODE_ANY,
        ret->notification_id);
    return true;
}

bool row_message(
    const Mapping *mapping, const ColumnKind *kinds, const Row *row, Arena *arena, RowMessage *ret,
    Error *err)
{
    Error own = {0};
    RowReader reader = {
        .mapping = mapping,
        .kinds = kinds,
        .row = row,
        .arena = arena,
        .err = err == NULL ? &own : err,
    };
    RowMessage message = {.tenant = STR_EMPTY};
    error_clear(reader.err);
    bool ok = read_text(&reader, FIELD_TENANT, NAME_MAX_BYTES, &message.tenant);
    if (ok && !id_is_tenant(message.tenant)) {
        bool empty = message.tenant.len == 0;
        ok = unfit(&reader, FIELD_TENANT, empty ? "is empty" : "is not a tenant: [a-z0-9_-]{1,32}");
    }
    if (ok) {
        message.tenant = arena_str(arena, message.tenant);
        ok = mapping_is_request(mapping) ? make_request(&reader, &message)
                                         : make_event(&reader, &message);
    }
    row_reader_done(&reader);
    if (ok) {
        *ret = message;
    }
    return ok;
}
