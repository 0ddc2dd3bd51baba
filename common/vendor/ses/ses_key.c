// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/ses/ses_key.h"

#include <jansson.h>

// Empty: not there, no text, or not one line.
static Str take_text(const json_t *root, const char *name, Arena *arena)
{
    const json_t *value = json_object_get(root, name);
    Str text = str_of(json_string_value(value), json_string_length(value));
    return json_is_string(value) && !str_has_control(text) ? arena_str(arena, text) : STR_EMPTY;
}

static bool take_object(
    const VendorAccount *account, const json_t *root, Arena *arena, SesKey *ret, Error *err)
{
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey", "SessionToken"};
    Str values[3];
    for (size_t i = 0; i < 3; i++) {
        bool may_be_absent = i == 2 && json_object_get(root, names[i]) == NULL;
        values[i] = take_text(root, names[i], arena);
        if (values[i].len == 0 && !may_be_absent) {
            return error_set(
                err, ERROR_CONFIG,
                "the secret of the credential '" STR_FMT "' of ses is a JSON object without a text "
                "'%s'",
                STR_ARG(account->name), names[i]);
        }
    }
    *ret = (SesKey){.account = *account, .token = values[2]};
    ret->account.id = values[0];
    ret->account.secret = values[1];
    return true;
}

bool ses_key_read(const VendorAccount *account, Arena *arena, SesKey *ret, Error *err)
{
    Str secret = str_trim(account->secret);
    if (!str_starts(secret, STR("{"))) {
        *ret = (SesKey){.account = *account, .token = STR_EMPTY};
        return true;
    }
    json_t *root = secret.len > SES_SECRET_MAX ? NULL : json_loadb(secret.ptr, secret.len, 0, NULL);
    bool good = json_is_object(root)
                    ? take_object(account, root, arena, ret, err)
                    : error_set(
                          err, ERROR_CONFIG,
                          "the secret of the credential '" STR_FMT "' of ses begins with '{' and "
                          "is no JSON object of at most %d bytes",
                          STR_ARG(account->name), SES_SECRET_MAX);
    json_decref(root);
    return good;
}
