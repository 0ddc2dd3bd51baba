// SPDX-License-Identifier: Apache-2.0
// What the answers of a vendor by definition mean: the status first, as at every vendor, then the
// definition's table of statuses, then its table of codes, unless the status left it unknown. Only
// a 2xx is ever accepted.
#include "common/base/json_scan.h"
#include "common/vendor/generic/definition_parts.h"
#include "common/vendor/vendor_read.h"

// ---- pointers ----

// "a~1b" is "a/b", "~0" is "~".
static const char *unescape(Str token, char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < token.len && len + 1 < size; i++) {
        char c = token.ptr[i];
        if (c == '~' && i + 1 < token.len) {
            c = token.ptr[++i] == '1' ? '/' : '~';
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return out;
}

static const json_t *step_into(const json_t *value, Str token)
{
    char name[128];
    int64_t index = 0;
    if (json_is_object(value)) {
        return json_object_get(value, unescape(token, name, sizeof name));
    }
    bool number = str_to_i64(token, &index) && index >= 0;
    return json_is_array(value) && number ? json_array_get(value, (size_t)index) : NULL;
}

const json_t *pointer_get(const json_t *root, Pointer pointer)
{
    if (pointer == NULL) {
        return NULL;
    }
    Str rest = str_from(pointer);
    Str token;
    const json_t *value = root;
    if (rest.len > 0 && str_split(&rest, '/', &token)) { // the empty one before the first '/'
        while (value != NULL && str_split(&rest, '/', &token)) {
            value = step_into(value, token);
        }
    }
    return value;
}

Str pointer_text(const json_t *root, Pointer pointer, Arena *arena)
{
    const json_t *value = pointer_get(root, pointer);
    if (json_is_string(value)) {
        return (Str){json_string_value(value), json_string_length(value)};
    }
    return json_is_integer(value)
               ? str_from(arena_printf(arena, "%lld", (long long)json_integer_value(value)))
               : STR_EMPTY;
}

static void free_json(void *thing)
{
    json_decref(thing);
}

json_t *definition_json(Str body, Arena *arena)
{
    JsonExcess excess;
    if (!json_is_modest(body, &excess)) {
        return NULL;
    }
    json_t *root = json_loadb(body.ptr, body.len, 0, NULL);
    if (root != NULL) {
        arena_own(arena, free_json, root);
    }
    return root;
}

bool definition_take_pointer(
    const VendorDefinition *definition, const json_t *object, const char *place, const char *name,
    Pointer *ret, Error *err)
{
    if (!definition_take_text(definition, object, place, name, ret, err)) {
        return false;
    }
    return *ret == NULL || (*ret)[0] == '/' ||
           definition_fault(
               err, arena_printf(definition->arena, "%s.%s", place, name),
               "is no JSON pointer such as /messages/0/id");
}

// ---- the tables ----

static bool read_class(const char *name, ReplyRow *ret)
{
    Str word = str_from(name);
    bool unknown = str_eq(word, STR("unknown"));
    ret->state = unknown ? SEND_UNKNOWN : SEND_ANSWERED;
    ret->reply = REPLY_RETRY;
    return unknown || reply_class_from_name(word, &ret->reply);
}

static bool class_fault(const char *place, Error *err)
{
    return definition_fault(
        err, place,
        "is none of accepted, retry, throttled, elsewhere, config, bad_address, terminal, unknown");
}

// "404" or "4xx".
static bool is_status(const char *code)
{
    Str text = str_from(code);
    bool digits = text.len == 3 && text.ptr[0] >= '1' && text.ptr[0] <= '5' &&
                  ascii_is_digit(text.ptr[1]) && ascii_is_digit(text.ptr[2]);
    return digits ||
           (text.len == 3 && text.ptr[0] >= '1' && text.ptr[0] <= '5' && str_ends(text, STR("xx")));
}

static bool take_table(
    const VendorDefinition *definition, const json_t *answer, const char *name, bool by_status,
    ReplyTable *ret, Error *err)
{
    json_t *table = json_object_get(answer, name);
    const char *place = arena_printf(definition->arena, "answer.%s", name);
    const char *code = NULL;
    json_t *value = NULL;
    if (table != NULL &&
        (!json_is_object(table) || json_object_size(table) > DEFINITION_ROWS_MAX)) {
        return definition_fault(
            err, place, "must be an object of at most %d classes", DEFINITION_ROWS_MAX);
    }
    json_object_foreach(table, code, value)
    {
        ReplyRow *row = &ret->rows[ret->count];
        row->code = code;
        const char *at = arena_printf(definition->arena, "%s.%.40s", place, code);
        if (by_status && !is_status(code)) {
            return definition_fault(err, at, "is no HTTP status such as 404 or 4xx");
        }
        if (!read_class(json_string_value(value), row)) {
            return class_fault(at, err);
        }
        if (by_status && code[0] != '2' && row->reply == REPLY_ACCEPTED) {
            return definition_fault(err, at, "only a 2xx is accepted");
        }
        ret->count++;
    }
    return true;
}

bool definition_read_answer(VendorDefinition *definition, const json_t *answer, Error *err)
{
    const char *otherwise = NULL;
    if (answer == NULL) {
        return true;
    }
    if (!json_is_object(answer)) {
        return definition_fault(err, "answer", "must be an object");
    }
    if (!definition_check_members(answer, "answer", "id code text statuses codes otherwise", err) ||
        !definition_take_pointer(definition, answer, "answer", "id", &definition->id, err) ||
        !definition_take_pointer(definition, answer, "answer", "code", &definition->code, err) ||
        !definition_take_pointer(definition, answer, "answer", "text", &definition->text, err) ||
        !definition_take_text(definition, answer, "answer", "otherwise", &otherwise, err) ||
        !take_table(definition, answer, "statuses", true, &definition->statuses, err) ||
        !take_table(definition, answer, "codes", false, &definition->codes, err)) {
        return false;
    }
    if ((definition->codes.count > 0 || otherwise != NULL) && definition->code == NULL) {
        return definition_fault(err, "answer.code", "required where there are codes");
    }
    definition->has_otherwise = otherwise != NULL;
    return otherwise == NULL || read_class(otherwise, &definition->otherwise) ||
           class_fault("answer.otherwise", err);
}

// ---- answers ----

static const ReplyRow *find_row(const ReplyTable *table, Str code)
{
    for (size_t i = 0; i < table->count; i++) {
        if (str_eq(code, str_from(table->rows[i].code))) {
            return &table->rows[i];
        }
    }
    return NULL;
}

static const ReplyRow *find_status(const ReplyTable *table, int status)
{
    const char digits[] = {
        (char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10)};
    const char family[] = {digits[0], 'x', 'x'};
    const ReplyRow *row = find_row(table, str_of(digits, 3));
    return row != NULL ? row : find_row(table, str_of(family, 3));
}

static void judge(const ReplyRow *row, int status, SendResult *ret)
{
    bool accepts = row != NULL && row->state == SEND_ANSWERED && row->reply == REPLY_ACCEPTED;
    if (row != NULL && (!accepts || status / 100 == 2)) {
        vendor_read_as(row->state, row->reply, ret);
    }
}

void definition_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    const VendorDefinition *definition = answer->definition;
    vendor_read_status(answer, arena, ret);
    if (definition == NULL) {
        return;
    }
    judge(find_status(&definition->statuses, answer->status), answer->status, ret);
    const json_t *body = answer->cut ? NULL : definition_json(answer->body, arena);
    Str code = pointer_text(body, definition->code, arena);
    const ReplyRow *row = code.len > 0 ? find_row(&definition->codes, code) : NULL;
    if (row == NULL && code.len > 0 && definition->has_otherwise) {
        row = &definition->otherwise;
    }
    if (ret->state == SEND_ANSWERED) { // a code says nothing of what may have gone out
        judge(row, answer->status, ret);
    }
    bool accepted = ret->state == SEND_ANSWERED && ret->reply == REPLY_ACCEPTED;
    if (accepted) {
        ret->vendor_message_id = vendor_clean_id(pointer_text(body, definition->id, arena), arena);
    } else if (body != NULL) {
        ret->text = vendor_clean_text(code, pointer_text(body, definition->text, arena), arena);
    }
}
