// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "services/outbox-relay/row/row.h"
#include "services/outbox-relay/row/row_address.h"
#include "stentor/v1/request.pb-c.h"

#define MADE_AT INT64_C(1764000000000000)

typedef struct Bench {
    Mapping *mapping;
    Arena *arena;
    ColumnKind kinds[MAPPING_COLUMNS_MAX];
    RowValue values[MAPPING_COLUMNS_MAX + MAPPING_MEMBERS_MAX];
    RowMessage message;
    Error err;
    Str source;
} Bench;

// The beginning of a mapping of requests, up to its fields of interest.
#define REQUESTS_WITH                                                                              \
    "{\"name\": \"n\", \"table\": \"t\", \"publish\": \"request\", \"id\": \"id\","                \
    " \"order_by\": \"nr\", \"pending\": {\"s\": 0}, \"moments\": {\"sent\": {\"s\": 1}},"         \
    " \"fields\": {\"tenant\": {\"value\": \"acme\"}, \"to\": \"a\","                              \
    " \"template\": {\"value\": \"t\"}, "

static Bench *bench_of(Str json)
{
    Bench *b = calloc(1, sizeof *b);
    b->mapping = mapping_read(json, &b->err);
    assert_non_null(b->mapping);
    b->arena = arena_new(0);
    b->source = STR("db-1");
    for (int i = 0; i < b->mapping->column_count + b->mapping->member_count; i++) {
        b->values[i].is_null = true;
    }
    return b;
}

static Bench *bench_new(const char *name)
{
    char path[300];
    char json[8192];
    snprintf(path, sizeof path, "%s/deploy/examples/outbox/%s.json", STENTOR_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(json, 1, sizeof json, file);
    fclose(file);
    return bench_of(str_of(json, len));
}

static void bench_free(Bench *b)
{
    mapping_free(b->mapping);
    arena_free(b->arena);
    free(b);
}

static void set(Bench *b, const char *column, ColumnKind kind, const char *text)
{
    for (int i = 0; i < b->mapping->column_count; i++) {
        if (str_eq(b->mapping->columns[i].name, str_from(column))) {
            b->kinds[i] = kind;
            b->values[i] = (RowValue){.text = str_from(text), .is_null = text == NULL};
            return;
        }
    }
    fail_msg("the mapping has no column '%s'", column);
}

// What Postgres picks of a jsonb column: each path of the mapping that ends with this member.
static void pick(Bench *b, const char *column, const char *member, const char *value)
{
    int count = 0;
    for (int i = 0; i < b->mapping->member_count; i++) {
        const Source *source = b->mapping->members[i];
        if (str_eq(b->mapping->columns[source->column].name, str_from(column)) &&
            str_eq(source->path[source->path_count - 1], str_from(member))) {
            b->values[b->mapping->column_count + i] =
                (RowValue){.text = str_from(value), .is_null = value == NULL};
            count++;
        }
    }
    assert_true(count > 0);
}

static bool make(Bench *b)
{
    Row row = {
        .key = STR("row-1"),
        .source = b->source,
        .attempt = mapping_is_request(b->mapping) ? 2 : 0,
        .values = b->values,
        .made_at_us = MADE_AT};
    b->err = (Error){0};
    return row_message(b->mapping, b->kinds, &row, b->arena, &b->message, &b->err);
}

static void assert_unfit(Bench *b, const char *wanted)
{
    assert_false(make(b));
    assert_int_equal(b->err.kind, ERROR_PERMANENT);
    assert_string_equal(b->err.text, wanted);
}

static Bench *memo(void)
{
    Bench *b = bench_new("memo");
    set(b, "recipient_email", COLUMN_TEXT, "reader@example.com");
    set(b, "payload", COLUMN_JSON, "{\"subject\": \"Memo \\\"1\\\"\", \"body\": \"Hello\"}");
    set(b, "idempotency_key", COLUMN_TEXT, "key-1");
    return b;
}

// The same, as from a jsonb column.
static Bench *memo_picked(void)
{
    Bench *b = memo();
    set(b, "payload", COLUMN_JSONB, NULL);
    pick(b, "payload", "subject", "\"Memo \"1\"");
    pick(b, "payload", "body", "\"Hello");
    return b;
}

static Bench *hotel(void)
{
    Bench *b = bench_new("hotel");
    set(b, "tenant_id", COLUMN_TEXT, "acme");
    set(b, "subject", COLUMN_TEXT, "guest.checked_in.v1");
    set(b, "payload", COLUMN_JSON, "{\"n\": 1}");
    set(b, "envelope", COLUMN_JSON, "{\"traceparent\": \"00-a-b-01\"}");
    set(b, "enqueued_at", COLUMN_TEXT, "2026-11-22T10:00:00.123456Z");
    return b;
}

static const Stentor__V1__NotifyCommand *command_of(Bench *b)
{
    const ProtobufCMessage *message = event_unpack(
        &stentor__v1__notify_command__descriptor, b->message.out.payload, b->arena, &b->err);
    assert_non_null(message);
    return (const Stentor__V1__NotifyCommand *)message;
}

static Str header(const Bench *b, const char *name)
{
    for (size_t i = 0; i < b->message.out.header_count; i++) {
        if (strcmp(b->message.out.headers[i].name, name) == 0) {
            return b->message.out.headers[i].value;
        }
    }
    return STR_EMPTY;
}

// ---- requests ----

static void a_mail_becomes_a_command(void **state)
{
    (void)state;
    Bench *b = memo();
    assert_true(make(b));
    const Stentor__V1__NotifyCommand *c = command_of(b);
    assert_string_equal(b->message.out.subject, "evt.memo.notify");
    assert_string_equal(c->to, "reader@example.com");
    assert_string_equal(c->template_, "outbox-text");
    assert_string_equal(c->variables_json, "{\"subject\":\"Memo \\\"1\\\"\",\"body\":\"Hello\"}");
    assert_string_equal(c->correlation_id, "key-1");
    assert_int_equal(c->produced_at_us, MADE_AT);
    assert_true(str_eq(header(b, "content-type"), STR("application/protobuf")));
    char id[EVENT_ID_SIZE];
    event_id_derive("outbox", STR("memo"), STR("db-1/row-1/2/"), id);
    assert_true(str_eq(b->message.out.event_id, str_from(id)));
    char notification[ID_SIZE];
    notify_id_derive(STR("memo"), str_from(id), MADE_AT, '0', notification);
    assert_string_equal(b->message.notification_id, notification);
    bench_free(b);
}

static void a_rows_consent_is_both_columns_or_neither(void **state)
{
    (void)state;
    Bench *b = bench_of(STR(REQUESTS_WITH "\"consent_source\": \"cs\", \"consent_at\": \"ca\"}}"));
    set(b, "a", COLUMN_TEXT, "reader@example.com");
    assert_true(make(b));
    assert_string_equal(command_of(b)->consent_source, "");
    set(b, "cs", COLUMN_TEXT, "form");
    assert_unfit(b, "fields.consent_at (column 'ca') is empty, and there is a consent_source");
    set(b, "ca", COLUMN_TEXT, "2026-05-01T12:00:00Z");
    assert_true(make(b));
    assert_string_equal(command_of(b)->consent_source, "form");
    assert_int_equal(command_of(b)->consent_at_us, INT64_C(1777636800000000));
    set(b, "cs", COLUMN_TEXT, NULL);
    assert_unfit(b, "fields.consent_source (column 'cs') is empty, and there is a consent_at");
    bench_free(b);
}

static void a_body_that_begins_like_html_is_html(void **state)
{
    (void)state;
    Bench *b = memo();
    set(b, "payload", COLUMN_JSON, "{\"subject\": \"s\", \"body\": \" \\n<p>Hello</p>\"}");
    assert_true(make(b));
    assert_string_equal(command_of(b)->template_, "outbox-html");
    bench_free(b);
}

static void a_request_that_does_not_fit_is_refused_by_its_column(void **state)
{
    (void)state;
    Bench *b = memo();
    set(b, "recipient_email", COLUMN_TEXT, NULL);
    assert_unfit(b, "fields.to (column 'recipient_email') is empty");
    set(b, "recipient_email", COLUMN_TEXT, "no-at-sign");
    assert_unfit(b, "fields.to (column 'recipient_email') is not an e-mail address: it has no '@'");
    set(b, "recipient_email", COLUMN_TEXT, "a@b.c\r\nBcc: x@y.z");
    assert_unfit(
        b, "fields.to (column 'recipient_email') has a line break or another control character");
    set(b, "recipient_email", COLUMN_TEXT, "a@b.c");
    set(b, "payload", COLUMN_TEXT, "not json");
    assert_unfit(b, "fields.template (column 'payload') is not JSON: line 1, column 3");
    set(b, "payload", COLUMN_JSON, "{\"subject\": {}, \"body\": {\"a\": 1}}");
    assert_unfit(b, "fields.template (column 'payload') is an object, not text");
    bench_free(b);
}

// What Postgres has picked is passed on as it is; a string is escaped only where JSON is wanted.
static void picked_members_make_the_same_message(void **state)
{
    (void)state;
    Bench *read = memo();
    Bench *picked = memo_picked();
    assert_true(make(read) && make(picked));
    assert_true(str_eq(read->message.out.payload, picked->message.out.payload));
    assert_true(str_eq(read->message.out.event_id, picked->message.out.event_id));
    pick(picked, "payload", "body", "\"<p>Hel\nlo \\ \"you\"");
    assert_true(make(picked));
    assert_string_equal(command_of(picked)->template_, "outbox-html");
    assert_non_null(
        strstr(command_of(picked)->variables_json, "\"body\":\"<p>Hel\\nlo \\\\ \\\"you\\\"\"}"));
    pick(picked, "payload", "subject", NULL);
    pick(picked, "payload", "body", "7.50");
    assert_true(make(picked));
    assert_string_equal(command_of(picked)->template_, "outbox-text");
    assert_string_equal(command_of(picked)->variables_json, "{\"body\":7.50}");
    pick(picked, "payload", "body", "[1]");
    assert_unfit(picked, "fields.template (column 'payload') is a list, not text");
    pick(picked, "payload", "body", "\"Hello");
    pick(picked, "payload", "subject", "\"\xff");
    assert_unfit(picked, "fields.variables.subject (column 'payload') is not UTF-8");
    pick(picked, "payload", "body", NULL);
    assert_unfit(picked, "fields.template (column 'payload') has no member 'body'");
    pick(picked, "payload", "body", "\"");
    assert_unfit(picked, "fields.template (column 'payload') has an empty member 'body'");
    bench_free(read);
    bench_free(picked);
}

// E44: it said that the payload was not a template's key.
static void a_payload_without_a_body_says_so(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"subject\": \"s\"}", "has no member 'body'"},
        {"{\"subject\": \"s\", \"body\": null}", "has no member 'body'"},
        {"{\"subject\": \"s\", \"body\": \"\"}", "has an empty member 'body'"},
        {"[]", "has no member 'body'"},
    };
    Bench *b = memo();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set(b, "payload", COLUMN_JSON, rows[i][0]);
        assert_unfit(
            b, arena_printf(b->arena, "fields.template (column 'payload') %s", rows[i][1]));
    }
    bench_free(b);
}

#define BY_TYPES                                                                                   \
    "{\"name\": \"n\", \"table\": \"t\", \"publish\": \"request\", \"id\": \"id\","                \
    " \"order_by\": \"nr\", \"pending\": {\"s\": 0}, \"moments\": {\"sent\": {\"s\": 1}},"         \
    " \"fields\": {\"tenant\": {\"value\": \"acme\"}, \"to\": \"a\", \"template\": {"              \
    "\"column\": \"event_type\", \"with\": \"notification_type\", \"names\": {\"memo.created "     \
    "MEMO_CREATED\": \"memo-created\", \"memo.created MEMO_URGENT\": \"memo-urgent\"}%s}}}"

static const char *template_by(Bench *b, const char *event, const char *notification)
{
    set(b, "event_type", COLUMN_TEXT, event);
    set(b, "notification_type", COLUMN_TEXT, notification);
    assert_true(make(b));
    return command_of(b)->template_;
}

// E15: event_type and notification_type choose the words.
static void two_columns_choose_the_template(void **state)
{
    (void)state;
    char json[1024];
    snprintf(
        json, sizeof json, BY_TYPES,
        ", \"else\": {\"column\": \"body\", \"starts\": {\"<\": \"html\"},"
        " \"otherwise\": \"text\"}");
    Bench *b = bench_of(str_from(json));
    set(b, "a", COLUMN_TEXT, "reader@example.com");
    set(b, "body", COLUMN_TEXT, "<p>");
    assert_string_equal(template_by(b, "memo.created", "MEMO_CREATED"), "memo-created");
    assert_string_equal(template_by(b, "memo.created", "MEMO_URGENT"), "memo-urgent");
    assert_string_equal(template_by(b, "memo.closed", "MEMO_CREATED"), "html");
    assert_string_equal(template_by(b, "memo.created", NULL), "html");
    assert_string_equal(template_by(b, NULL, "MEMO_CREATED"), "html");
    set(b, "body", COLUMN_TEXT, NULL);
    assert_unfit(b, "fields.template (column 'body') is empty");
    bench_free(b);
    snprintf(json, sizeof json, BY_TYPES, "");
    b = bench_of(str_from(json));
    set(b, "a", COLUMN_TEXT, "reader@example.com");
    assert_string_equal(template_by(b, "memo.created", "MEMO_CREATED"), "memo-created");
    set(b, "event_type", COLUMN_TEXT, "memo.closed");
    assert_unfit(
        b, "fields.template (column 'event_type') has, with its 'with', no entry in 'names' (HINT: "
           "'else')");
    bench_free(b);
}

static void a_mapping_s_retries_travel_with_the_command(void **state)
{
    (void)state;
    Bench *b = memo();
    assert_true(make(b));
    assert_null(command_of(b)->retries); // the installation's
    bench_free(b);
    b = bench_new("memo-exact");
    set(b, "recipient_email", COLUMN_TEXT, "reader@example.com");
    set(b, "payload", COLUMN_JSON, "{\"subject\": \"s\", \"body\": \"Hello\"}");
    assert_true(make(b));
    const Stentor__V1__Retries *retries = command_of(b)->retries;
    assert_int_equal(retries->max_attempts, 5);
    assert_int_equal(retries->n_wait_s, 1);
    assert_int_equal(retries->wait_s[0], 5);
    bench_free(b);
}

static void variables_over_the_limit_are_refused(void **state)
{
    (void)state;
    Bench *b = memo();
    static char payload[70 * 1024];
    int len = snprintf(payload, sizeof payload, "{\"subject\": \"s\", \"body\": \"");
    memset(payload + len, 'x', 66 * 1024);
    memcpy(payload + len + 66 * 1024, "\"}", 3);
    set(b, "payload", COLUMN_JSON, payload);
    assert_unfit(b, "fields.variables has 67609 bytes of JSON; at most 65536");
    bench_free(b);
}

static void variables_keep_the_kinds_of_their_columns(void **state)
{
    (void)state;
    static const char json[] = REQUESTS_WITH
        "\"variables\": {\"total\": \"total\", \"paid\": \"paid\", \"items\": \"doc->items\","
        " \"gone\": \"doc->gone\", \"who\": {\"column\": \"who\", \"default\": \"you\"},"
        " \"kind\": {\"value\": \"order\"}}}}";
    Bench *b = bench_of(str_from(json));
    set(b, "a", COLUMN_TEXT, "a@b.c");
    set(b, "total", COLUMN_NUMBER, "19.90");
    set(b, "paid", COLUMN_BOOL, "true");
    set(b, "doc", COLUMN_TEXT, "{\"items\": [1, {\"x\": null}]}");
    set(b, "who", COLUMN_TEXT, NULL);
    assert_true(make(b));
    assert_string_equal(
        command_of(b)->variables_json,
        "{\"total\":19.90,\"paid\":true,\"items\":[1,{\"x\":null}],\"who\":\"you\","
        "\"kind\":\"order\"}");
    set(b, "total", COLUMN_NUMBER, "NaN");
    assert_true(make(b));
    assert_non_null(strstr(command_of(b)->variables_json, "\"total\":\"NaN\""));
    bench_free(b);
}

// Members of one column: a number, one of 20 digits, an empty text, and one that is not there.
static Bench *odd_members(void)
{
    static const char json[] =
        REQUESTS_WITH "\"correlation_id\": \"doc->order\", \"variables\": {"
                      "\"price\": {\"column\": \"doc->price\", \"names\": {\"19.99\": \"cheap\"}},"
                      "\"sums\": {\"column\": \"doc->sums\", \"keys\": \"snake_case\"},"
                      "\"none\": {\"column\": \"doc->gone\", \"names\": {\"x\": \"y\"}},"
                      "\"null\": {\"column\": \"doc->null\", \"before\": \"@\"},"
                      "\"empty\": {\"column\": \"doc->empty\", \"names\": {\"x\": \"y\"}},"
                      "\"filled\": {\"column\": \"doc->empty\", \"default\": \"you\"}}}}";
    Bench *b = bench_of(str_from(json));
    for (int i = 0; i < b->mapping->column_count + b->mapping->member_count; i++) {
        b->values[i].is_null = true;
    }
    set(b, "a", COLUMN_TEXT, "a@b.c");
    return b;
}

static void a_json_and_a_jsonb_column_make_the_same_variables(void **state)
{
    (void)state;
    static const char wanted[] =
        "{\"price\":\"cheap\",\"sums\":{\"unit_price\":19.99},\"empty\":\"\",\"filled\":\"you\"}";
    Bench *b = odd_members();
    set(b, "doc", COLUMN_JSON,
        "{\"price\": 19.99, \"sums\": {\"unitPrice\": 19.99}, \"null\": null, \"empty\": \"\","
        " \"order\": 17}");
    assert_true(make(b));
    assert_string_equal(command_of(b)->variables_json, wanted);
    assert_string_equal(command_of(b)->correlation_id, "17");
    set(b, "doc", COLUMN_JSONB, NULL);
    pick(b, "doc", "price", "19.99");
    pick(b, "doc", "sums", "{\"unitPrice\": 19.99}");
    pick(b, "doc", "empty", "\"");
    pick(b, "doc", "order", "17");
    assert_true(make(b));
    assert_string_equal(command_of(b)->variables_json, wanted);
    assert_string_equal(command_of(b)->correlation_id, "17");
    bench_free(b);
}

static void a_whole_number_that_postgres_picked_may_be_long_as_a_text(void **state)
{
    (void)state;
    Bench *b = odd_members();
    set(b, "doc", COLUMN_JSONB, NULL);
    pick(b, "doc", "order", "-12345678901234567890");
    assert_true(make(b));
    assert_string_equal(command_of(b)->correlation_id, "-12345678901234567890");
    bench_free(b);
}

// Ingest would not read it.
static void a_variable_that_is_too_big_a_number_is_refused(void **state)
{
    (void)state;
    static const char why[] = "fields.variables has a number that is too big (store it as text)";
    Bench *b = memo_picked();
    pick(b, "payload", "subject", "12345678901234567890");
    assert_unfit(b, why);
    pick(b, "payload", "subject", "{\"sums\": [1, -12345678901234567890]}");
    assert_unfit(b, why);
    pick(b, "payload", "subject", "9223372036854775807");
    assert_true(make(b));
    pick(b, "payload", "subject", "[\"12345678901234567890\", 0.12345678901234567890]");
    assert_true(make(b));
    bench_free(b);
}

static void a_json_column_of_variables_is_read_before_it_is_passed_on(void **state)
{
    (void)state;
    static const char json[] = REQUESTS_WITH "\"variables\": \"doc\"}}";
    Bench *b = bench_of(str_from(json));
    set(b, "a", COLUMN_TEXT, "a@b.c");
    set(b, "doc", COLUMN_JSON, "{\"sum\": 7.50}");
    assert_true(make(b));
    assert_string_equal(command_of(b)->variables_json, "{\"sum\": 7.50}");
    set(b, "doc", COLUMN_JSON, "{\"a\": 1, \"a\": 2}");
    assert_unfit(b, "fields.variables has a member twice");
    set(b, "doc", COLUMN_JSON, "{\"a\": \"\\u0000\"}");
    assert_unfit(b, "fields.variables has a character U+0000");
    set(b, "doc", COLUMN_JSONB, "{\"a\": 12345678901234567890}");
    assert_unfit(b, "fields.variables has a number that is too big (store it as text)");
    bench_free(b);
}

static void variables_that_postgres_picked_are_an_object_or_refused(void **state)
{
    (void)state;
    static const char json[] = REQUESTS_WITH "\"variables\": \"doc->words\"}}";
    Bench *b = bench_of(str_from(json));
    set(b, "a", COLUMN_TEXT, "a@b.c");
    set(b, "doc", COLUMN_JSONB, NULL);
    pick(b, "doc", "words", "{\"sum\": 7.50}");
    assert_true(make(b));
    assert_string_equal(command_of(b)->variables_json, "{\"sum\": 7.50}");
    static const char *const OTHERS[] = {"\"{\"a\": 1}", "\"", "7", "[1]"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
        pick(b, "doc", "words", OTHERS[i]);
        assert_unfit(b, "fields.variables (column 'doc') is not a JSON object");
    }
    pick(b, "doc", "words", "\"\xff");
    assert_unfit(b, "fields.variables (column 'doc') is not UTF-8");
    pick(b, "doc", "words", NULL);
    assert_unfit(b, "fields.variables (column 'doc') has no such member");
    bench_free(b);
}

static void unreadable_json_is_reported_without_its_content(void **state)
{
    (void)state;
    Bench *b = odd_members();
    set(b, "doc", COLUMN_TEXT, "{\"a\": 12345678901234567890}");
    assert_unfit(
        b, "fields.correlation_id (column 'doc') has a number that is too big (store it as text):"
           " line 1, column 26");
    set(b, "doc", COLUMN_TEXT, "{\"a\": 1, \"a\": 2}");
    assert_unfit(b, "fields.correlation_id (column 'doc') has a member twice: line 1, column 12");
    set(b, "doc", COLUMN_TEXT, "{\"a\": \"\\u0000\"}");
    assert_unfit(
        b, "fields.correlation_id (column 'doc') has a character U+0000: line 1, column 14");
    set(b, "doc", COLUMN_TEXT, "nothing");
    assert_unfit(b, "fields.correlation_id (column 'doc') is not JSON: line 1, column 7");
    bench_free(b);
}

// ---- events ----

static void a_row_becomes_an_event_with_its_headers(void **state)
{
    (void)state;
    Bench *b = hotel();
    assert_true(make(b));
    assert_string_equal(b->message.out.subject, "evt.acme.guest.checked_in.v1");
    assert_true(str_eq(b->message.out.payload, STR("{\"n\": 1}")));
    assert_true(str_eq(b->message.out.traceparent, STR("00-a-b-01")));
    assert_true(str_eq(header(b, "ce-id"), STR("row-1")));
    assert_true(str_eq(header(b, "ce-type"), STR("guest.checked_in.v1")));
    assert_true(str_eq(header(b, "ce-specversion"), STR("1.0")));
    assert_true(str_eq(header(b, "ce-source"), STR("/outbox/hotel")));
    assert_true(str_eq(header(b, "ce-time"), STR("2026-11-22T10:00:00.123456Z")));
    assert_string_equal(b->message.notification_id, "");
    char id[EVENT_ID_SIZE];
    event_id_derive("outbox", STR("hotel"), STR("db-1/row-1/0/"), id);
    assert_true(str_eq(b->message.out.event_id, str_from(id)));
    bench_free(b);
}

static void an_event_that_does_not_fit_is_refused_by_its_column(void **state)
{
    (void)state;
    static const struct {
        const char *column;
        ColumnKind kind;
        const char *text, *wanted;
    } cases[] = {
        {"subject", COLUMN_TEXT, "no type",
         "fields.type (column 'subject') is not an event type: 1 to 96 of [A-Za-z0-9_-] in tokens"
         " with dots"},
        {"subject", COLUMN_TEXT, "notify",
         "fields.type (column 'subject') is 'notify', which is reserved for commands"},
        {"tenant_id", COLUMN_TEXT, NULL, "fields.tenant (column 'tenant_id') is empty"},
        {"tenant_id", COLUMN_TEXT, "a.b",
         "fields.tenant (column 'tenant_id') is not a tenant: [a-z0-9_-]{1,32}"},
        {"payload", COLUMN_JSON, "[1]", "fields.data (column 'payload') is not a JSON object"},
        {"payload", COLUMN_JSON, NULL, "fields.data (column 'payload') is null"},
        {"enqueued_at", COLUMN_TEXT, "yesterday",
         "fields.time (column 'enqueued_at') is not a time (RFC 3339)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Bench *b = hotel();
        set(b, cases[i].column, cases[i].kind, cases[i].text);
        assert_unfit(b, cases[i].wanted);
        bench_free(b);
    }
}

static void a_payload_over_the_limit_is_refused(void **state)
{
    (void)state;
    Bench *b = hotel();
    size_t size = EVENT_BYTES_MAX + 100;
    char *payload = malloc(size + 1);
    int len = snprintf(payload, size, "{\"a\":\"");
    memset(payload + len, 'x', size - (size_t)len);
    memcpy(payload + size - 2, "\"}", 3);
    set(b, "payload", COLUMN_JSON, payload);
    assert_unfit(b, "fields.data (column 'payload') has 921700 bytes; at most 921600");
    free(payload);
    bench_free(b);
}

// Numbers that begin at 1 in every database, and again after TRUNCATE ... RESTART IDENTITY.
static void rows_with_one_key_have_different_ids(void **state)
{
    (void)state;
    Bench *b = bench_new("bookworm-bus");
    char ids[3][EVENT_ID_SIZE];
    static const char *const sources[] = {"db-1", "db-1", "db-2"};
    static const char *const message_ids[] = {"0aa1", "0aa2", "0aa1"};
    set(b, "message_type", COLUMN_TEXT, "urn:message:X:UserCheckedOutIntegrationEvent");
    set(b, "body", COLUMN_TEXT, "{\"message\": {}}");
    for (int i = 0; i < 3; i++) {
        b->source = str_from(sources[i]);
        set(b, "message_id", COLUMN_TEXT, message_ids[i]);
        assert_true(make(b));
        assert_true(str_to_c(b->message.out.event_id, ids[i], sizeof ids[i]));
    }
    assert_string_not_equal(ids[0], ids[1]);
    assert_string_not_equal(ids[0], ids[2]);
    bench_free(b);
}

static void masstransits_envelope_is_opened_and_renamed(void **state)
{
    (void)state;
    Bench *b = bench_new("bookworm-bus");
    set(b, "message_type", COLUMN_TEXT,
        "urn:message:BookWorm.Contracts:UserCheckedOutIntegrationEvent;urn:message:X:IEvent");
    set(b, "body", COLUMN_TEXT,
        "{\"messageId\": \"m\", \"message\": {\"orderId\": \"o\", \"fullName\": \"A B\","
        " \"OrderID\": \"p\", \"lines\": [{\"unitPrice\": 1.5}]}}");
    set(b, "enqueue_time", COLUMN_TEXT, NULL);
    set(b, "message_id", COLUMN_TEXT, "0aa1");
    assert_true(make(b));
    assert_string_equal(b->message.out.subject, "evt.bookworm.UserCheckedOut");
    assert_true(str_eq(header(b, "ce-id"), STR("0aa1")));
    assert_true(str_eq(header(b, "ce-time"), STR_EMPTY));
    assert_true(str_eq(
        b->message.out.payload,
        STR("{\"order_id\":\"p\",\"full_name\":\"A B\",\"lines\":[{\"unit_price\":1.5}]}")));
    set(b, "body", COLUMN_TEXT, "{\"other\": 1}");
    assert_unfit(b, "fields.data (column 'body') has no such member");
    set(b, "message_type", COLUMN_TEXT, "urn:message:BookWorm:SomethingElse");
    set(b, "body", COLUMN_TEXT, "{\"message\": {}}");
    assert_true(make(b));
    assert_string_equal(b->message.out.subject, "evt.bookworm.SomethingElse");
    bench_free(b);
}

static void addresses_that_ingest_would_bury_are_found(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a@b.c", "o'neil+x@sub.example.com", "\xc3\xbc@b\xc3\xbc.de"};
    static const char *const bad[] = {"",        "a",         "@b.c",   "a@",
                                      "a@b@c.d", "a b@c.d",   ".a@b.c", "a..b@c.d",
                                      "a@b..c",  "A <a@b.c>", "a@b.c.", "a,b@c.d"};
    char reason[ROW_ADDRESS_REASON_SIZE];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(row_address_fits(CHANNEL_EMAIL, str_from(good[i]), reason));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(row_address_fits(CHANNEL_EMAIL, str_from(bad[i]), reason));
    }
    assert_true(row_address_fits(CHANNEL_SMS, STR("+4912345"), reason));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mail_becomes_a_command),
        cmocka_unit_test(a_body_that_begins_like_html_is_html),
        cmocka_unit_test(a_rows_consent_is_both_columns_or_neither),
        cmocka_unit_test(a_request_that_does_not_fit_is_refused_by_its_column),
        cmocka_unit_test(picked_members_make_the_same_message),
        cmocka_unit_test(a_payload_without_a_body_says_so),
        cmocka_unit_test(two_columns_choose_the_template),
        cmocka_unit_test(a_mapping_s_retries_travel_with_the_command),
        cmocka_unit_test(variables_over_the_limit_are_refused),
        cmocka_unit_test(variables_keep_the_kinds_of_their_columns),
        cmocka_unit_test(a_json_and_a_jsonb_column_make_the_same_variables),
        cmocka_unit_test(a_whole_number_that_postgres_picked_may_be_long_as_a_text),
        cmocka_unit_test(a_variable_that_is_too_big_a_number_is_refused),
        cmocka_unit_test(a_json_column_of_variables_is_read_before_it_is_passed_on),
        cmocka_unit_test(variables_that_postgres_picked_are_an_object_or_refused),
        cmocka_unit_test(unreadable_json_is_reported_without_its_content),
        cmocka_unit_test(a_row_becomes_an_event_with_its_headers),
        cmocka_unit_test(an_event_that_does_not_fit_is_refused_by_its_column),
        cmocka_unit_test(a_payload_over_the_limit_is_refused),
        cmocka_unit_test(rows_with_one_key_have_different_ids),
        cmocka_unit_test(masstransits_envelope_is_opened_and_renamed),
        cmocka_unit_test(addresses_that_ingest_would_bury_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
