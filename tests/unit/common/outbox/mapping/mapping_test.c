// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/outbox/mapping/mapping.h"

// A good request mapping, with one member replaced by `with` (a member of the root).
static const char GOOD[] =
    "{\"name\": \"memo\", \"table\": \"public.mails\", \"publish\": \"request\", \"id\": \"id\","
    " \"order_by\": [\"at\"], \"pending\": {\"status\": \"PENDING\"}, \"fields\": {\"tenant\":"
    " {\"value\": \"acme\"}, \"to\": \"address\", \"template\": {\"value\": \"t\"}},"
    " \"moments\": {\"sent\": {\"status\": \"SENT\", \"sent_at\": \"@at\"}}}";

// GOOD with its member `name` being the JSON `value` (NULL: left out).
static char *changed(const char *name, const char *value)
{
    json_t *root = json_loads(GOOD, 0, NULL);
    assert_non_null(root);
    if (value == NULL) {
        json_object_del(root, name);
    } else {
        json_t *member = json_loads(value, JSON_DECODE_ANY, NULL);
        assert_non_null(member);
        json_object_set_new(root, name, member);
    }
    char *text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

static void assert_refused(const char *name, const char *value, const char *wanted)
{
    Error err = {0};
    char *json = changed(name, value);
    assert_null(mapping_read(str_from(json), &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    if (strncmp(err.text, wanted, strlen(wanted)) != 0) {
        fail_msg("'%s' instead of '%s'", err.text, wanted);
    }
    free(json);
}

static Mapping *read_with(const char *name, const char *value)
{
    Error err = {0};
    char *json = changed(name, value);
    Mapping *m = mapping_read(str_from(json), &err);
    if (m == NULL) {
        fail_msg("%s", err.text);
    }
    free(json);
    return m;
}

static Str read_path(const char *place, char *out, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", STENTOR_SOURCE_DIR, place);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, size, file);
    fclose(file);
    return str_of(out, len);
}

static Str read_file(const char *name, char *out, size_t size)
{
    char place[100];
    snprintf(place, sizeof place, "deploy/examples/outbox/%s.json", name);
    return read_path(place, out, size);
}

static void the_shipped_mappings_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"memo",         "memo-exact",     "bookworm",
                                        "bookworm-bus", "tenant-service", "hotel"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char json[8192];
        Error err = {0};
        Mapping *m = mapping_read(read_file(names[i], json, sizeof json), &err);
        if (m == NULL) {
            fail_msg("%s: %s", names[i], err.text);
        }
        assert_true(str_eq(m->name, str_from(names[i])));
        assert_int_equal(mapping_is_request(m), i < 3);
        assert_int_equal(m->keep_count, 1);
        mapping_free(m);
    }
}

static void the_first_example_of_the_manual_is_read(void **state)
{
    (void)state;
    static const char fence[] = "```json\n";
    char page[32 * 1024];
    Error err = {0};
    Str text = read_path("common/outbox/MAPPING.md", page, sizeof page - 1);
    page[text.len] = '\0';
    char *from = strstr(page, fence);
    assert_non_null(from);
    from += strlen(fence);
    Mapping *m = mapping_read(str_of(from, (size_t)(strstr(from, "```") - from)), &err);
    if (m == NULL) {
        fail_msg("%s", err.text);
    }
    assert_true(mapping_is_request(m));
    mapping_free(m);
}

static void what_is_read_is_what_stands_there(void **state)
{
    (void)state;
    char json[8192];
    Error err = {0};
    Mapping *m = mapping_read(read_file("memo", json, sizeof json), &err);
    assert_non_null(m);
    assert_int_equal(m->column_count, 3); // recipient_email, payload (three times), idempotency_key
    assert_true(str_eq(m->columns[1].name, STR("payload")));
    assert_false(m->columns[1].whole);
    assert_int_equal(m->member_count, 3); // the body's beginning, for the template; subject; body
    assert_int_equal(m->variable_count, 2);
    assert_int_equal(m->variables[0].source.column, 1);
    assert_int_equal(m->variables[0].source.path_count, 1);
    assert_true(str_eq(m->variables[0].source.path[0], STR("subject")));
    assert_int_equal(m->moments[MOMENT_SENT].count, 5);
    assert_int_equal(m->moments[MOMENT_SENT].items[1].kind, ASSIGN_AT);
    assert_int_equal(m->keep[0].age_s, 30 * 86400);
    assert_true(str_eq(m->keep[0].column, STR("sent_at"))); // before meta_updated_at's @now
    assert_true(mapping_takes_out(m, MOMENT_CLAIMED));
    assert_false(mapping_takes_out(m, MOMENT_RETRYING));
    assert_int_equal(mapping_refusal(m), MOMENT_FAILED);
    assert_int_equal(m->backlog_alert, 1000);
    mapping_free(m);
}

static void retries_are_read_and_may_show_a_row_as_pending(void **state)
{
    (void)state;
    char json[8192];
    Mapping *m = mapping_read(read_file("memo-exact", json, sizeof json), NULL);
    assert_non_null(m);
    assert_int_equal(m->max_attempts, 5);
    assert_int_equal(m->retry_waits, 1);
    assert_int_equal(m->retry_wait_s[0], 5);
    assert_true(mapping_retries_as_pending(m));
    mapping_free(m);
    m = mapping_read(read_file("memo", json, sizeof json), NULL);
    assert_int_equal(m->max_attempts + m->retry_waits, 0);
    assert_false(mapping_retries_as_pending(m)); // SENDING
    mapping_free(m);
    m = mapping_read(read_file("bookworm", json, sizeof json), NULL);
    assert_false(mapping_retries_as_pending(m)); // pending all the time, and not claimed meanwhile
    mapping_free(m);
    m = read_with("retries", "{\"waits\": [\"1s\", \"15m\", \"7d\"]}");
    assert_int_equal(m->max_attempts, 0);
    assert_int_equal(m->retry_wait_s[2], 7 * 86400);
    mapping_free(m);
    assert_refused("retries", "5", "retries: must be an object");
    assert_refused("retries", "{}", "retries: must be an object");
    assert_refused("retries", "{\"max_attempts\": 0}", "retries.max_attempts: must be");
    assert_refused("retries", "{\"max_attempts\": 12}", "retries.max_attempts: must be");
    assert_refused("retries", "{\"max_attempts\": \"5\"}", "retries.max_attempts: must be");
    assert_refused("retries", "{\"waits\": []}", "retries.waits: must be a list of 1 to 10");
    assert_refused("retries", "{\"waits\": [\"8d\"]}", "retries.waits: must be spans");
    assert_refused("retries", "{\"waits\": [5]}", "retries.waits: must be spans");
    assert_refused(
        "retries", "{\"waits\": [\"5s\"], \"most\": 1}", "retries.most: is not a member");
}

static void sources_within_a_source_are_for_names_of_a_field(void **state)
{
    (void)state;
#define FIELDS(template, more)                                                                     \
    "{\"tenant\": {\"value\": \"acme\"}, \"to\": \"a\", \"template\": " template more "}"
    Mapping *m = read_with(
        "fields", FIELDS(
                      "{\"column\": \"e\", \"with\": \"n->x\", \"names\": {\"a b\": \"t\"}, "
                      "\"else\": {\"value\": \"u\"}}",
                      ""));
    const Source *source = &m->fields[FIELD_TEMPLATE];
    assert_int_equal(source->with->path_count, 1);
    assert_true(source->other->constant);
    mapping_free(m);
    assert_refused(
        "fields", FIELDS("{\"column\": \"e\", \"with\": \"n\"}", ""),
        "fields.template: 'with' needs 'names'");
    assert_refused(
        "fields",
        FIELDS(
            "{\"column\": \"e\", \"names\": {\"a\": \"t\"}, \"else\": {\"column\": "
            "\"f\", \"names\": {\"a\": \"t\"}, \"else\": \"g\"}}",
            ""),
        "fields.template: 'else' has no 'with' or 'else' of its own");
    assert_refused(
        "fields",
        FIELDS(
            "{\"column\": \"e\", \"names\": {\"a\": \"t\"}, \"else\": {\"value\": "
            "\"No Key\"}}",
            ""),
        "fields.template: 'No Key' is not a template's key");
    assert_refused(
        "fields",
        FIELDS(
            "\"e\"", ", \"variables\": {\"v\": {\"column\": \"e\", \"names\": "
                     "{\"a\": \"b\"}, \"else\": \"f\"}}"),
        "fields.variables.v: 'with' and 'else' are not for variables");
}

static void values_of_all_kinds_are_assigned(void **state)
{
    (void)state;
    Mapping *m = read_with(
        "moments", "{\"sent\": {\"status\": \"@@odd\", \"n\": 7, \"ok\": false, \"gone\": null}}");
    const Assign *items = m->moments[MOMENT_SENT].items;
    assert_true(str_eq(items[0].text, STR("@odd")));
    assert_true(str_eq(items[1].text, STR("7")));
    assert_true(str_eq(items[2].text, STR("false")));
    assert_int_equal(items[3].kind, ASSIGN_NULL);
    mapping_free(m);
}

// A member of the good mapping, what stands there instead (NULL: nothing), how the refusal begins.
static const struct {
    const char *member, *value, *wanted;
} wrong[] = {
    {"name", "\"Big Name\"", "name: must be"},
    {"name", NULL, "name: must be"},
    {"table", "\"a.b.c\"", "table: must be a table"},
    {"table", "\"\"", "table: must be a table"},
    {"publish", "\"mail\"", "publish: must be"},
    {"id", "7", "id: must be a column's name"},
    {"order_by", "[]", "order_by: must be a list"},
    {"order_by", "[\"a\",\"b\",\"c\",\"d\",\"e\"]", "order_by: must be a list"},
    {"position", "\"a\\u0007\"", "position: must be a column's name"},
    {"pending", "{}", "pending: must name a column"},
    {"pending", "{\"status\": 1.5}", "pending.status: must be text"},
    {"pending", NULL, "pending: is required"},
    {"states", "[{}]", "pending: is required"},
    {"colour", "1", "colour: is not a member"},
    {"backlog_alert", "0", "backlog_alert: must be"},
    {"backlog_alert", "\"many\"", "backlog_alert: must be"},
    {"fields", NULL, "fields: is required"},
    {"fields", "{\"tenant\": {\"value\": \"acme\"}, \"to\": \"a\"}",
     "fields.template: is required to publish a request"},
    {"fields", "{\"tenant\": {\"value\": \"Acme!\"}, \"to\": \"a\", \"template\": \"b\"}",
     "fields.tenant: is not a tenant"},
    {"fields", "{\"tenant\": \"a\", \"template\": \"b\"}", "fields.to: is required"},
    {"fields", "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"value\": \"Welcome\"}}",
     "fields.template: 'Welcome' is not a template's key"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"column\": \"c\", \"starts\": {\"<\": "
     "\"h\"}, \"otherwise\": \"a b\"}}",
     "fields.template: 'a b' is not a template's key"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"column\": \"c\", \"names\": {\"x\": "
     "\"X\"}}}",
     "fields.template: 'X' is not a template's key"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": \"c\", \"channel\": {\"value\": "
     "\"pigeon\"}}",
     "fields.channel: 'pigeon' is not a channel"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": \"c\", \"category\": {\"column\": "
     "\"d\", \"default\": \"ad\"}}",
     "fields.category: 'ad' is not a category"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": \"c\", \"priority\": {\"value\": "
     "\"hot\"}}",
     "fields.priority: 'hot' is not a priority"},
    {"fields", "{\"tenant\": \"a\", \"to\": \"b\", \"template\": \"c\", \"type\": \"d\"}",
     "fields.type: is not for \"request\""},
    {"fields", "{\"tenant\": \"a->>b\", \"to\": \"b\", \"template\": \"c\"}",
     "fields.tenant: '->' must be followed by"},
    {"fields", "{\"tenant\": \"\", \"to\": \"b\", \"template\": \"c\"}",
     "fields.tenant: must be a column"},
    {"fields", "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"value\": 1}}",
     "fields.template: 'value' must be a string"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"column\": \"c\", \"starts\":"
     " {\"<\": \"x\"}}}",
     "fields.template: 'starts' and 'otherwise'"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"column\": \"c\", \"names\": []}}",
     "fields.template: 'names' must be an object"},
    {"fields",
     "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"column\": \"c\", \"keys\": \"x\"}}",
     "fields.template: 'keys' must be"},
    {"fields", "{\"tenant\": \"a\", \"to\": \"b\", \"template\": {\"columns\": \"c\"}}",
     "fields.template.columns: is not a member"},
    {"fields", "{\"tenant\": \"a\", \"to\": \"b\", \"template\": \"c\", \"variables\": {\"x\": 1}}",
     "fields.variables.x: must be a column"},
    {"moments", "{\"done\": {}}", "moments.done: is not a member"},
    {"moments", "{\"sent\": {\"status\": \"@when\"}}", "moments.sent.status: '@when' must be one"},
    {"moments", "{\"sent\": {\"status\": []}}", "moments.sent.status: must be text"},
    {"moments", "{\"sent\": {\"id\": \"x\"}}", "moments.sent.id: is the id column"},
    {"moments", "{\"sent\": {\"sent_at\": \"@at\"}}", "moments.sent: must set a 'pending'"},
    {"moments", "{\"sent\": {\"status\": \"PENDING\"}}", "moments.sent: must set"},
    {"moments", "{\"claimed\": {\"at\": \"@now\"}, \"sent\": {\"status\": \"S\"}}",
     "moments.claimed: leaves the row pending"},
    {"moments", "{\"claimed\": {\"why\": \"@reason\"}}", "moments.claimed.why: this moment"},
    {"moments", "{\"unpublished\": {\"n\": \"@attempts\"}}", "moments.unpublished.n: this"},
    {"keep", "{\"sent\": \"soon\"}", "keep.sent: must be an age"},
    {"keep", "{\"sent\": 30}", "keep.sent: must be an age"},
    {"keep", "{\"claimed\": \"30d\"}", "keep.claimed: is not a member"},
    {"keep", "{\"failed\": \"30d\"}", "keep.failed: needs a column"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_refused(wrong[i].member, wrong[i].value, wrong[i].wanted);
    }
}

static void an_events_mapping_has_its_own_rules(void **state)
{
    (void)state;
    static const char good[] =
        "{\"name\": \"n\", \"table\": \"t\", \"publish\": \"event\", \"id\": \"id\", \"order_by\":"
        " \"nr\", %s \"fields\": {\"tenant\": \"t\", \"type\": \"y\", \"data\": %s}}";
    static const struct {
        const char *members, *data, *wanted;
    } cases[] = {
        {"\"pending\": {\"p\": null},", "\"d\"", "moments.published: must set"},
        {"\"pending\": {\"p\": null}, \"moments\": {\"sent\": {}},", "\"d\"",
         "moments.sent: is not"},
        {"\"pending\": {\"p\": null}, \"moments\": {\"published\": {\"p\": \"@now\"}},",
         "{\"value\": \"d\"}", "fields.data: must be a column"},
        {"\"states\": [],", "\"d\"", "states: must be a list"},
        {"\"states\": [{\"table\": \"s\", \"key\": {\"a\": \"b\"}, \"position\": \"p\"}],", "\"d\"",
         "position: is required"},
        {"\"states\": [{\"table\": \"s\", \"key\": {}, \"position\": \"p\"}],", "\"d\"",
         "states.0.key: must be an object"},
        {"\"position\": \"nr\", \"ordering_key\": \"k\", \"states\": [{\"table\": \"s\", \"key\":"
         " {\"a\": \"b\"}, \"position\": \"p\"}],",
         "\"d\"", "ordering_key: is not for 'states'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[800];
        Error err = {0};
        snprintf(json, sizeof json, good, cases[i].members, cases[i].data);
        assert_null(mapping_read(str_from(json), &err));
        if (strncmp(err.text, cases[i].wanted, strlen(cases[i].wanted)) != 0) {
            fail_msg("'%s' instead of '%s'", err.text, cases[i].wanted);
        }
    }
}

static void what_is_no_json_object_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[]", "{", "7", "{\"name\": \"a\", \"name\": \"b\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        Error err = {0};
        assert_null(mapping_read(str_from(texts[i]), &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shipped_mappings_are_read),
        cmocka_unit_test(the_first_example_of_the_manual_is_read),
        cmocka_unit_test(what_is_read_is_what_stands_there),
        cmocka_unit_test(retries_are_read_and_may_show_a_row_as_pending),
        cmocka_unit_test(sources_within_a_source_are_for_names_of_a_field),
        cmocka_unit_test(values_of_all_kinds_are_assigned),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(an_events_mapping_has_its_own_rules),
        cmocka_unit_test(what_is_no_json_object_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
