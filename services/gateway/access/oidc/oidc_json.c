// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/oidc/oidc_json.h"

#include "common/api/api_json.h"

json_t *oidc_object(Str text)
{
    json_error_t ignored;
    json_t *json = str_is_utf8(text) ? api_json_load(text, JSON_REJECT_DUPLICATES, &ignored) : NULL;
    if (json != NULL && !json_is_object(json)) {
        json_decref(json);
        json = NULL;
    }
    return json;
}

Str oidc_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}
