// SPDX-License-Identifier: Apache-2.0
// A definition is shown to whoever reads credentials: what authorizes must not stand in it.
#include "common/vendor/generic/definition_parts.h"

static bool is_secret_word(Str word)
{
    static const char *const words[] = {"authorization", "auth",     "key",    "apikey",    "token",
                                        "secret",        "password", "cookie", "credential"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_eq_nocase(word, str_from(words[i]))) {
            return true;
        }
    }
    return false;
}

// "X-Api-Key", "acme_token".
static bool is_secret_name(Str name)
{
    size_t start = 0;
    for (size_t i = 0; i <= name.len; i++) {
        if (i < name.len && name.ptr[i] != '-' && name.ptr[i] != '_') {
            continue;
        }
        if (is_secret_word(str_slice(name, start, i))) {
            return true;
        }
        start = i + 1;
    }
    return false;
}

// "Bearer {{secret}}"; of another header than Authorization any value is good: "{{key}}".
static bool has_value(Str name, Str text)
{
    return str_contains_nocase(name, STR("authorization"))
               ? str_contains(text, STR("{{")) && str_contains(text, STR("secret"))
               : str_contains(text, STR("{{"));
}

bool definition_check_clear(const json_t *document, Error *err)
{
    const json_t *headers = json_object_get(json_object_get(document, "request"), "headers");
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)headers, name, value)
    {
        Str text = str_from(json_is_string(value) ? json_string_value(value) : "");
        if (str_has_control(text)) {
            return error_set(
                err, ERROR_PERMANENT,
                "definition.request.headers.%.40s: has a line break or another control character",
                name);
        }
        if (text.len > 0 && is_secret_name(str_from(name)) && !has_value(str_from(name), text)) {
            return error_set(
                err, ERROR_PERMANENT,
                "definition.request.headers.%.40s: would stand in clear for whoever reads "
                "credentials: write {{secret}}, and put the secret where 'reference' leads",
                name);
        }
    }
    return true;
}
