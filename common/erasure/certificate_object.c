// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/certificate_object.h"

#include <inttypes.h>
#include <jansson.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/erasure/certificate_text.h"

enum { KEYS_MAX = 4 * 1024 * 1024 };

static bool split(Str object, Arena *arena, Certificate *ret)
{
    Str rest = object, body = STR_EMPTY, hex = STR_EMPTY;
    size_t len = 0;
    uint8_t *signature = arena_alloc(arena, ERASURE_SIGNATURE_LEN);
    uint8_t *hash = arena_alloc(arena, SHA256_LEN);
    bool ok = str_split(&rest, '\n', &body) && str_split(&rest, '\n', &hex) && rest.len == 0 &&
              hex_decode(hex, signature, ERASURE_SIGNATURE_LEN, &len) &&
              len == ERASURE_SIGNATURE_LEN;
    sha256(body, hash);
    ret->body = arena_str(arena, body);
    ret->sha256 = str_of(hash, SHA256_LEN);
    ret->signature = str_of(signature, ERASURE_SIGNATURE_LEN);
    return ok;
}

static bool take(const json_t *root, const char *name, Arena *arena, const char **ret)
{
    const char *text = json_string_value(json_object_get(root, name));
    *ret = arena_cstr(arena, str_from(text));
    return text != NULL;
}

static bool take_keys(const json_t *list, Arena *arena, const char **ret)
{
    Buf out;
    size_t i = 0;
    const json_t *key = NULL;
    bool ok = json_is_array(list);
    buf_init(&out, KEYS_MAX);
    json_array_foreach(list, i, key)
    {
        uint8_t subject[KEY_SUBJECT_LEN];
        size_t len = 0;
        const char *hex = json_string_value(json_object_get(key, "subject"));
        json_int_t generation = json_integer_value(json_object_get(key, "generation"));
        ok = ok && hex_decode(str_from(hex), subject, sizeof subject, &len) &&
             len == sizeof subject && generation > 0 && generation <= INT32_MAX;
        buf_printf(
            &out, "%s%s:%" PRId64, i > 0 ? "," : "", hex != NULL ? hex : "", (int64_t)generation);
    }
    ok = ok && !out.full;
    *ret = arena_cstr(arena, buf_view(&out));
    buf_done(&out);
    return ok;
}

// Absent: a duty keeps nothing.
static bool take_kept(const json_t *kept, Arena *arena, CertificateObject *ret)
{
    const char *until = "";
    ret->kept = "";
    ret->duty = "";
    return kept == NULL || (take(kept, "under", arena, &ret->duty) && ret->duty[0] != '\0' &&
                            take(kept, "until", arena, &until) &&
                            clock_parse(str_from(until), &ret->kept_until_us) &&
                            take_keys(json_object_get(kept, "keys"), arena, &ret->kept));
}

static bool take_all(const json_t *root, Arena *arena, CertificateObject *ret)
{
    const json_t *request = json_object_get(root, "request");
    const char *erased_at = "";
    return take(root, "id", arena, &ret->certificate.request) &&
           take(root, "kind", arena, &ret->certificate.kind) &&
           take(root, "tenant", arena, &ret->tenant) &&
           take(root, "recipient", arena, &ret->recipient_id) &&
           take(root, "erased_at", arena, &erased_at) &&
           take(request, "ground", arena, &ret->ground) && take(request, "by", arena, &ret->by) &&
           take_keys(json_object_get(root, "keys"), arena, &ret->keys) &&
           take_kept(json_object_get(root, "kept"), arena, ret) &&
           clock_parse(str_from(erased_at), &ret->erased_us);
}

bool certificate_object_read(Str object, Arena *arena, CertificateObject *ret, Error *err)
{
    CertificateLinks links;
    *ret = (CertificateObject){0};
    bool ok =
        split(object, arena, &ret->certificate) && certificate_links(ret->certificate.body, &links);
    if (ok) {
        Str body = ret->certificate.body;
        json_t *root = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES, NULL);
        ret->certificate.number = links.number;
        ret->certificate.stored_as = "";
        ok = take_all(root, arena, ret);
        json_decref(root);
    }
    return ok || error_set(err, ERROR_PERMANENT, "it is no certificate");
}
