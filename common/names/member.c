// SPDX-License-Identifier: Apache-2.0
#include "common/names/member.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t skip(Str name, size_t at)
{
    while (at < name.len && name.ptr[at] == '_') {
        at++;
    }
    return at;
}

bool member_is_alike(Str a, Str b)
{
    size_t i = skip(a, 0);
    size_t k = skip(b, 0);
    if (i == a.len || k == b.len) {
        return str_eq(a, b);
    }
    while (i < a.len && k < b.len && lower(a.ptr[i]) == lower(b.ptr[k])) {
        i = skip(a, i + 1);
        k = skip(b, k + 1);
    }
    return i == a.len && k == b.len;
}

json_t *member_find(const json_t *object, Str name)
{
    json_t *exact = json_object_getn(object, name.ptr, name.len);
    if (exact != NULL || !json_is_object(object)) {
        return exact;
    }
    // jansson's iterators want an object that may be changed; nothing is.
    json_t *members = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(members); at != NULL;
         at = json_object_iter_next(members, at)) {
        Str key = str_of(json_object_iter_key(at), json_object_iter_key_len(at));
        json_t *value = json_object_iter_value(at);
        if (!json_is_null(value) && member_is_alike(name, key)) {
            return value;
        }
    }
    return NULL;
}

json_t *member_value(const json_t *object, const char *name)
{
    json_t *value = member_find(object, str_from(name));
    return json_is_null(value) ? NULL : value;
}
