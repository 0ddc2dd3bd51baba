// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/recipient_query.h"

#include "common/base/id.h"
#include "common/model/enums.h"

#define FIELD "recipient_query"

// NULL: the word is not one; else as it is stored.
typedef const char *(*TakeWord)(Str word, Arena *arena);

static const char *take_label(Str word, Arena *arena)
{
    return id_is_key(word) ? arena_cstr(arena, word) : NULL;
}

// In lower case: locales are compared so.
static const char *take_locale(Str word, Arena *arena)
{
    if (word.len > API_LOCALE_MAX || !api_is_locale(word)) {
        return NULL;
    }
    char *text = arena_cstr(arena, word);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return text;
}

static const char *take_identity(Str word, Arena *arena)
{
    Identity identity = IDENTITY_NONE;
    return identity_from_name(word, &identity) ? arena_cstr(arena, word) : NULL;
}

static const struct {
    const char *name;
    TakeWord take;
    const char *what;
} LISTS[] = {
    {"labels", take_label, "a label such as 'vip': a-z, 0-9, '_', '-', at most 64"},
    {"locales", take_locale, "a language tag such as 'de' or 'en-US'"},
    {"identity_types", take_identity, "guest, user, vendor or anonymous"},
};

static void add_word(ApiBody *body, size_t list, const char *at, const json_t *item, json_t *out)
{
    Str word = str_of(json_string_value(item), json_string_length(item));
    const char *taken = json_is_string(item) ? LISTS[list].take(word, body->arena) : NULL;
    if (taken == NULL) {
        (void)api_body_fail(body, at, "not %s", LISTS[list].what);
    } else {
        (void)json_array_append_new(out, json_string(taken));
    }
}

static void read_list(ApiBody *body, size_t list, json_t *ret)
{
    const char *name = LISTS[list].name;
    json_t *words = NULL;
    const json_t *value = json_object_get(body->root, name);
    json_t *out = json_array();
    if (json_is_string(value)) {
        Str word = STR_EMPTY;
        if (api_read_text(body, name, 64, &word)) {
            json_t *item = json_stringn(word.ptr, word.len);
            add_word(body, list, name, item, out);
            json_decref(item);
        }
    } else if (api_read_array(body, name, RECIPIENT_QUERY_WORDS_MAX, &words) && words != NULL) {
        for (size_t i = 0; i < json_array_size(words); i++) {
            const char *at = arena_printf(body->arena, "%s[%zu]", name, i);
            add_word(body, list, at, json_array_get(words, i), out);
        }
        if (json_array_size(words) == 0) {
            (void)api_body_fail(body, name, "is empty: leave it out, or say which");
        }
    }
    if (json_array_size(out) > 0) {
        (void)json_object_set(ret, name, out);
    }
    json_decref(out);
}

// One object; what it says as JSON is added to `list`.
static void read_alternative(ApiBody *outer, const char *at, json_t *object, json_t *list)
{
    if (!json_is_object(object)) {
        (void)api_body_fail(
            outer, at, "must be an object such as {\"labels\": [\"vip\"], \"consent\": true}");
        return;
    }
    ApiBody body = api_body_inside(outer, object, arena_printf(outer->arena, "%s.", at));
    json_t *ret = json_object();
    for (size_t i = 0; i < sizeof LISTS / sizeof LISTS[0]; i++) {
        read_list(&body, i, ret);
    }
    bool consent = true;
    bool given = api_has(&body, "consent");
    (void)api_read_bool(&body, "consent", &consent);
    if (!consent) {
        (void)api_body_fail(
            &body, "consent", "only true: without it consent is judged for each recipient");
    } else if (given) {
        (void)json_object_set_new(ret, "consent", json_true());
    }
    (void)api_body_inside_end(outer, &body);
    (void)json_array_append_new(list, ret);
}

static Str pack(const json_t *list, Arena *arena)
{
    size_t size = json_dumpb(list, NULL, 0, JSON_COMPACT);
    char *text = arena_alloc(arena, size);
    (void)json_dumpb(list, text, size, JSON_COMPACT);
    return str_of(text, size);
}

bool recipient_query_read(ApiBody *body, Str *ret)
{
    json_t *alternatives = NULL;
    json_t *object = NULL;
    if (!api_has(body, FIELD)) {
        return true;
    }
    json_t *list = json_array();
    if (json_is_array(json_object_get(body->root, FIELD))) {
        (void)api_read_array(body, FIELD, RECIPIENT_QUERY_ALTERNATIVES_MAX, &alternatives);
        for (size_t i = 0; i < json_array_size(alternatives); i++) {
            read_alternative(
                body, arena_printf(body->arena, FIELD "[%zu]", i), json_array_get(alternatives, i),
                list);
        }
        if (alternatives != NULL && json_array_size(alternatives) == 0) {
            (void)api_body_fail(body, FIELD, "is empty; {} is every recipient");
        }
    } else if (api_read_object(body, FIELD, &object) && object != NULL) {
        read_alternative(body, FIELD, object, list);
    }
    if (json_array_size(list) > 0) {
        *ret = pack(list, body->arena);
    }
    json_decref(list);
    return api_body_good(body);
}
