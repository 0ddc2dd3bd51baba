// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/intake/request_json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/json/json_write.h"
#include "common/request/consent.h"
#include "common/request/request_mail.h"

DEFINE_CLEANUP(free_json, json_t *, json_decref)

// One object of the body: the request and the channels that it is for.
typedef struct Reading {
    Request *request;
    Channel channels[CHANNEL_COUNT]; // of `channels`
    size_t channel_count;            // 0: the field is not there
    Arena *arena;
    FieldError *err;
    bool channel_wrong;      // so that an address cannot be judged
    const json_t *variables; // NULL: none
    const RequestRules *rules;
    size_t source; // its place in the body
    const RequestList *list;
    Problem *problem;
} Reading;

// false: r->err is set.
typedef bool (*ReadField)(Reading *r, const char *field, const json_t *value);

static bool take_text(Reading *r, const char *field, const json_t *value, Str *ret)
{
    if (!json_is_string(value)) {
        return field_error(r->err, field, "must be a string");
    }
    *ret = arena_str(r->arena, str_of(json_string_value(value), json_string_length(value)));
    return true;
}

static bool read_to_object(Reading *r, const json_t *value)
{
    const char *name = NULL;
    json_t *part = NULL;
    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        if (strcmp(name, "address") == 0) {
            if (!take_text(r, "to.address", part, &r->request->to)) {
                return false;
            }
        } else if (strcmp(name, "name") == 0) {
            if (!take_text(r, "to.name", part, &r->request->to_name)) {
                return false;
            }
        } else {
            return field_error(r->err, "to", "unknown field '%.40s'", name);
        }
    }
    return true;
}

static bool read_to(Reading *r, const char *field, const json_t *value)
{
    if (json_is_object(value)) {
        return read_to_object(r, value);
    }
    if (!json_is_string(value)) {
        return field_error(r->err, field, "must be an address or {\"address\", \"name\"}");
    }
    return take_text(r, field, value, &r->request->to);
}

static bool read_template(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->template_key);
}

static bool read_version(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->template_version);
}

static bool read_locale(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->locale);
}

static bool read_correlation(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->correlation_id);
}

static bool read_recipient(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->recipient_id);
}

static bool read_source(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->source_event_id);
}

static bool read_source_type(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &r->request->source_event_type);
}

static bool read_variables(Reading *r, const char *field, const json_t *value)
{
    if (!json_is_object(value)) {
        return field_error(r->err, field, "must be an object");
    }
    r->variables = value;
    r->request->variables = json_text(value, JSON_DECIMALS, r->arena);
    size_t size = r->request->variables.len;
    return size <= REQUEST_VARIABLES_MAX ||
           field_error(
               r->err, field, "%zu bytes of JSON; at most %d", size, (int)REQUEST_VARIABLES_MAX);
}

static bool read_channel(Reading *r, const char *field, const json_t *value)
{
    Str name = STR_EMPTY;
    return take_text(r, field, value, &name) &&
           (channel_from_name(name, &r->request->channel) ||
            field_error(r->err, field, "not a channel: " CHANNEL_NAMES));
}

static bool add_channel(Reading *r, const char *field, const json_t *value)
{
    Str name = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    if (!take_text(r, field, value, &name)) {
        return false;
    }
    if (!channel_from_name(name, &channel)) {
        return field_error(
            r->err, field, "'%.20s' is not a channel: " CHANNEL_NAMES, arena_cstr(r->arena, name));
    }
    for (size_t i = 0; i < r->channel_count; i++) {
        if (r->channels[i] == channel) {
            return field_error(r->err, field, "'%s' is named twice", channel_name(channel));
        }
    }
    r->channels[r->channel_count++] = channel;
    return true;
}

static bool read_channels(Reading *r, const char *field, const json_t *value)
{
    size_t count = json_array_size(value); // 0 when it is no array
    for (size_t i = 0; i < count; i++) {
        if (!add_channel(r, field, json_array_get(value, i))) {
            return false;
        }
    }
    return count > 0 || field_error(r->err, field, "must be a list of channels");
}

static bool read_category(Reading *r, const char *field, const json_t *value)
{
    Str name = STR_EMPTY;
    return take_text(r, field, value, &name) && (category_from_name(name, &r->request->category) ||
                                                 field_error(r->err, field, "not a category"));
}

static bool read_priority(Reading *r, const char *field, const json_t *value)
{
    Str name = STR_EMPTY;
    return take_text(r, field, value, &name) &&
           (priority_from_name(name, &r->request->priority) ||
            field_error(r->err, field, "not one of critical, high, normal, low"));
}

static bool read_time(Reading *r, const char *field, const json_t *value, int64_t *ret_us)
{
    Str text = STR_EMPTY;
    return take_text(r, field, value, &text) &&
           (clock_parse(text, ret_us) ||
            field_error(r->err, field, "not a time such as '2026-11-20T18:25:36Z' (RFC 3339)"));
}

// 1970 and before are in the past, and neither "now" nor "never" as 0 is.
static bool read_given_time(Reading *r, const char *field, const json_t *value, int64_t *ret_us)
{
    int64_t at_us = 0;
    if (!read_time(r, field, value, &at_us)) {
        return false;
    }
    *ret_us = at_us > 0 ? at_us : 1;
    return true;
}

static bool read_scheduled(Reading *r, const char *field, const json_t *value)
{
    return read_given_time(r, field, value, &r->request->scheduled_for_us);
}

static bool read_expires(Reading *r, const char *field, const json_t *value)
{
    return read_given_time(r, field, value, &r->request->expires_at_us);
}

static bool take_consent(Reading *r, const char *field, const json_t *value)
{
    (void)field;
    return consent_read(
        value, r->arena, &r->request->consent_source, &r->request->consent_at_us, r->err);
}

// ---- of an e-mail ----

static RequestMail *mail_of(Reading *r)
{
    if (r->request->mail == NULL) {
        r->request->mail = arena_zalloc(r->arena, sizeof *r->request->mail);
    }
    return r->request->mail;
}

static bool read_copy(Reading *r, const char *field, const json_t *value, MailAddress *ret)
{
    if (json_is_string(value)) {
        return take_text(r, field, value, &ret->address);
    }
    const json_t *address = json_object_get(value, "address");
    const json_t *name = json_object_get(value, "name");
    size_t known = (address != NULL ? 1U : 0U) + (name != NULL ? 1U : 0U);
    if (address == NULL || json_object_size(value) != known) {
        return field_error(r->err, field, "must be an address or {\"address\", \"name\"}");
    }
    return take_text(r, field, address, &ret->address) &&
           (name == NULL || take_text(r, field, name, &ret->name));
}

static bool read_copies(
    Reading *r, const char *field, const json_t *value, MailAddress **ret, size_t *ret_count)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > MAIL_RECIPIENTS_MAX) {
        return field_error(
            r->err, field, "must be a list of at most %d addresses", (int)MAIL_RECIPIENTS_MAX - 1);
    }
    *ret = arena_array(r->arena, count + 1, sizeof **ret);
    for (size_t i = 0; i < count; i++) {
        const char *at = arena_printf(r->arena, "%s[%zu]", field, i);
        if (!read_copy(r, at, json_array_get(value, i), &(*ret)[i])) {
            return false;
        }
    }
    *ret_count = count;
    return true;
}

static bool read_cc(Reading *r, const char *field, const json_t *value)
{
    RequestMail *mail = mail_of(r);
    return read_copies(r, field, value, &mail->cc, &mail->cc_count);
}

static bool read_bcc(Reading *r, const char *field, const json_t *value)
{
    RequestMail *mail = mail_of(r);
    return read_copies(r, field, value, &mail->bcc, &mail->bcc_count);
}

static bool read_reply_to(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &mail_of(r)->reply_to);
}

static bool read_list_id(Reading *r, const char *field, const json_t *value)
{
    return take_text(r, field, value, &mail_of(r)->list_id);
}

static bool read_attachment(Reading *r, const char *at, const json_t *value, MailAttachment *ret)
{
    static const char *const wrong = "must be {\"id\", \"inline\", \"content_id\"}";
    const json_t *id = json_object_get(value, "id");
    const json_t *shown = json_object_get(value, "inline");
    const json_t *content_id = json_object_get(value, "content_id");
    size_t known =
        (id != NULL ? 1U : 0U) + (shown != NULL ? 1U : 0U) + (content_id != NULL ? 1U : 0U);
    if (id == NULL || json_object_size(value) != known ||
        (shown != NULL && !json_is_boolean(shown))) {
        return field_error(r->err, at, "%s", wrong);
    }
    ret->shown = json_is_true(shown);
    return take_text(r, at, id, &ret->id) &&
           (content_id == NULL || take_text(r, at, content_id, &ret->content_id));
}

static bool read_attachments(Reading *r, const char *field, const json_t *value)
{
    RequestMail *mail = mail_of(r);
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > MAIL_ATTACHMENTS_MAX) {
        return field_error(
            r->err, field, "must be a list of at most %d attachments", (int)MAIL_ATTACHMENTS_MAX);
    }
    mail->attachments = arena_array(r->arena, count + 1, sizeof *mail->attachments);
    for (size_t i = 0; i < count; i++) {
        const char *at = arena_printf(r->arena, "%s[%zu]", field, i);
        if (!read_attachment(r, at, json_array_get(value, i), &mail->attachments[i])) {
            return false;
        }
    }
    mail->attachment_count = count;
    return true;
}

// clang-format off
static const struct { const char *name; ReadField read; } FIELDS[] = {
    {"to",               read_to},
    {"template",         read_template},
    {"variables",        read_variables},
    {"template_version", read_version},
    {"locale",           read_locale},
    {"channel",          read_channel},
    {"channels",         read_channels},
    {"category",         read_category},
    {"priority",         read_priority},
    {"correlation_id",   read_correlation},
    {"scheduled_for",    read_scheduled},
    {"expires_at",       read_expires},
    {"recipient_id",     read_recipient},
    {"source_event_id",  read_source},
    {"consent",          take_consent},
    {"source_event_type", read_source_type},
    {"cc",               read_cc},
    {"bcc",              read_bcc},
    {"reply_to",         read_reply_to},
    {"list_id",          read_list_id},
    {"attachments",      read_attachments},
};
// clang-format on

static bool read_field(Reading *r, const char *name, const json_t *value)
{
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++) {
        if (strcmp(name, FIELDS[i].name) == 0) {
            return FIELDS[i].read(r, FIELDS[i].name, value);
        }
    }
    return field_error(
        r->err, arena_cstr(r->arena, str_slice(str_from(name), 0, 40)), "unknown field");
}

static void add_problem(
    const RequestList *list, size_t source, const FieldError *err, Arena *arena, Problem *problem)
{
    char field[sizeof problem->field];
    if (!list->is_array) {
        (void)snprintf(field, sizeof field, "%s", err->field);
    } else {
        (void)snprintf(
            field, sizeof field, "notifications[%zu]%s%s", source, err->field[0] == '\0' ? "" : ".",
            err->field);
    }
    problem_add(problem, arena, field, err->text);
}

void request_json_problem(
    const RequestList *list, size_t index, const FieldError *err, Arena *arena, Problem *problem)
{
    add_problem(list, list->sources[index], err, arena, problem);
}

static bool note(Reading *r)
{
    add_problem(r->list, r->source, r->err, r->arena, r->problem);
    return false;
}

// false: something is wrong, and all of it was noted.
static bool read_object(Reading *r, const json_t *value)
{
    if (!json_is_object(value)) {
        r->channel_wrong = true;
        (void)field_error(r->err, "", "must be an object");
        return note(r);
    }
    bool ok = true;
    const char *name = NULL;
    json_t *part = NULL;
    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        if (!read_field(r, name, part)) {
            r->channel_wrong = r->channel_wrong || strncmp(name, "channel", 7) == 0;
            ok = note(r);
        }
    }
    if (r->channel_count > 0 && r->request->channel != CHANNEL_NONE) {
        (void)field_error(r->err, "channels", "give either 'channel' or 'channels'");
        ok = note(r);
    }
    return ok;
}

static bool fail_body(Problem *problem, int status, const char *detail)
{
    *problem =
        (Problem){.status = status, .slug = "invalid-body", .title = "The body is not valid"};
    (void)snprintf(problem->detail, sizeof problem->detail, "%s", detail);
    return false;
}

static bool fail_malformed(Problem *problem, const json_error_t *error)
{
    bool utf8 = json_error_code(error) == json_error_invalid_utf8;
    *problem =
        (Problem){.status = 400, .slug = "malformed-json", .title = "The body is not valid JSON"};
    (void)snprintf(
        problem->detail, sizeof problem->detail, "line %d, column %d: %.120s", error->line,
        error->column, utf8 ? "not valid UTF-8" : error->text);
    return false;
}

static bool measure(const json_t *root, RequestList *list, size_t *ret_objects, Problem *problem)
{
    list->is_array = json_is_array(root);
    *ret_objects = list->is_array ? json_array_size(root) : 1;
    if (!list->is_array && !json_is_object(root)) {
        return fail_body(problem, 400, "must be an object or an array of objects");
    }
    if (*ret_objects == 0) {
        return fail_body(problem, 422, "the array is empty; it takes 1 to 1000 notifications");
    }
    if (*ret_objects > REQUEST_ARRAY_MAX) {
        return fail_body(problem, 422, "the array has more than 1000 notifications");
    }
    return true;
}

// Of a recipient's own address the dispatcher says so.
static bool check_taken(Reading *r, const Request *request)
{
    char reason[ROUTES_REASON_SIZE];
    const RequestRules *rules = r->rules;
    return rules->routes == NULL || request->to.len == 0 ||
           routes_takes(rules->routes, rules->tenant, request->channel, request->to, reason) ||
           field_error(r->err, "to", "%s", reason);
}

static bool check_delivered(Reading *r, const Request *request)
{
    if (channel_set_has(r->rules->delivered, request->channel)) {
        return check_taken(r, request);
    }
    char delivered[CHANNEL_SET_TEXT_SIZE];
    channel_set_text(r->rules->delivered, delivered);
    return field_error(
        r->err, r->channel_count > 0 ? "channels" : "channel",
        "'%s' is not delivered by this installation; it delivers %s " CHANNEL_HINT,
        channel_name(request->channel), delivered);
}

// false: something is wrong, and all of it was noted.
static bool check_request(Reading *r, Request *request)
{
    int64_t now_us = r->rules->now_us;
    if (request_check(request, now_us, r->arena, r->err)) {
        return check_delivered(r, request) || note(r);
    }
    for (size_t at = 0; !request_check_on(request, &at, now_us, r->arena, r->err);) {
        (void)note(r);
    }
    return false;
}

static bool has_channel(const Reading *r, Channel channel)
{
    for (size_t i = 0; i < r->channel_count; i++) {
        if (r->channels[i] == channel) {
            return true;
        }
    }
    return false;
}

// One request for each channel; without `channels` the one that is there.
static bool add_requests(Reading *r, size_t source, RequestList *list)
{
    size_t count = r->channel_count == 0 ? 1 : r->channel_count;
    Request asked = *r->request;
    for (size_t i = 0; i < count; i++) {
        Request *request = &list->items[list->count];
        *request = asked;
        request->channel = r->channel_count == 0 ? asked.channel : r->channels[i];
        // Of several channels only the e-mail has it.
        bool of_mail = request->channel == CHANNEL_EMAIL || !has_channel(r, CHANNEL_EMAIL);
        request->mail = of_mail ? asked.mail : NULL;
        list->variables[list->count] = r->variables;
        list->sources[list->count++] = source;
        if (!check_request(r, request)) {
            return false;
        }
    }
    return true;
}

// What else is wrong with an object of which something was: noted beside it.
static void check_rest(Reading *r)
{
    if (!r->channel_wrong && r->channel_count == 0) {
        (void)check_request(r, r->request);
    }
}

static void reserve(RequestList *list, size_t objects, Arena *arena)
{
    size_t room = objects * CHANNEL_COUNT;
    room = room < REQUEST_ARRAY_MAX + CHANNEL_COUNT ? room : REQUEST_ARRAY_MAX + CHANNEL_COUNT;
    list->items = arena_array(arena, room, sizeof *list->items);
    list->sources = arena_array(arena, room, sizeof *list->sources);
    list->variables = arena_array(arena, room, sizeof *list->variables);
}

bool request_json_parse(
    Str body, const RequestRules *rules, Arena *arena, RequestList *ret, Problem *problem)
{
    json_error_t error;
    *problem = (Problem){0};
    CLEANUP(free_json)
    json_t *root = api_json_load(body, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        return fail_malformed(problem, &error);
    }
    RequestList list = {0};
    size_t objects = 0;
    if (!measure(root, &list, &objects, problem)) {
        return false;
    }
    reserve(&list, objects, arena);
    for (size_t i = 0; i < objects; i++) {
        FieldError err = {.field = ""};
        Request request = {0};
        Reading reading = {
            .request = &request,
            .arena = arena,
            .err = &err,
            .rules = rules,
            .source = i,
            .list = &list,
            .problem = problem,
        };
        const json_t *item = list.is_array ? json_array_get(root, i) : root;
        if (!read_object(&reading, item)) {
            check_rest(&reading);
        } else if (problem->status == 0) {
            (void)add_requests(&reading, i, &list);
        } else {
            check_rest(&reading); // nothing is taken any more
        }
        if (problem->status != 0 && problem_is_full(problem)) {
            return false;
        }
        if (list.count > REQUEST_ARRAY_MAX) {
            return fail_body(problem, 422, "more than 1000 notifications, counted by channel");
        }
        list.single = !list.is_array && reading.channel_count == 0;
    }
    if (problem->status != 0) {
        return false;
    }
    list.root = json_incref(root);
    *ret = list;
    return true;
}

void request_list_done(RequestList *list)
{
    json_decref(list->root);
    list->root = NULL;
    list->variables = NULL;
}
