// SPDX-License-Identifier: Apache-2.0
#include "common/webhooks/webhook_signature.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/mime/mime_encode.h"

#define SECRET_PREFIX "whsec_"

bool webhook_key_parse(Str secret, WebhookKey *ret, Error *err)
{
    WebhookKey key = {.len = 0};
    Str prefix = STR(SECRET_PREFIX);
    bool fits =
        str_starts(secret, prefix) &&
        base64_decode(
            str_slice(secret, prefix.len, secret.len), key.bytes, sizeof key.bytes, &key.len) &&
        key.len >= WEBHOOK_KEY_MIN;
    if (!fits) {
        return error_set(
            err, ERROR_PERMANENT,
            "a signing secret is '" SECRET_PREFIX "' and base64 of %d to %d bytes", WEBHOOK_KEY_MIN,
            WEBHOOK_KEY_MAX);
    }
    *ret = key;
    return true;
}

void webhook_sign(const WebhookKey *key, Str id, int64_t timestamp_s, Str body, Buf *out)
{
    uint8_t mac[SHA256_LEN];
    Buf signed_text;
    buf_init(&signed_text, id.len + body.len + 32);
    buf_str(&signed_text, id);
    buf_printf(&signed_text, ".%" PRId64 ".", timestamp_s);
    buf_str(&signed_text, body);
    hmac_sha256((Str){(const char *)key->bytes, key->len}, buf_view(&signed_text), mac);
    buf_done(&signed_text);
    buf_cstr(out, out->len > 0 ? " v1," : "v1,");
    (void)mime_base64(str_of(mac, sizeof mac), out);
}
