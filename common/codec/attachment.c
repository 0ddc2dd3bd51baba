// SPDX-License-Identifier: Apache-2.0
#include "common/codec/attachment.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/evp.h"

enum { NONCE_LEN = 12, TAG_LEN = 16, DAY_LEN = 10 };

#define FIELD "attachment"
static const Str ID_PREFIX = {"att_", 4};

// ---- places ----

void attachment_object(Str tenant, Str ulid, int64_t at_us, char out[ATTACHMENT_OBJECT_SIZE])
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(at_us, at);
    (void)snprintf(
        out, ATTACHMENT_OBJECT_SIZE, ATTACHMENT_PREFIX "%.*s/" STR_FMT "/" STR_FMT, DAY_LEN, at,
        STR_ARG(tenant), STR_ARG(ulid));
}

bool attachment_object_day(Str object, int64_t *ret_us)
{
    Str prefix = STR(ATTACHMENT_PREFIX);
    char text[CLOCK_RFC3339_SIZE];
    Str day = str_slice(object, prefix.len, prefix.len + DAY_LEN);
    if (!str_starts(object, prefix) || day.len != DAY_LEN || object.len <= prefix.len + DAY_LEN ||
        object.ptr[prefix.len + DAY_LEN] != '/') {
        return false;
    }
    (void)snprintf(text, sizeof text, STR_FMT "T00:00:00Z", STR_ARG(day));
    return clock_parse(str_from(text), ret_us);
}

// ---- bytes ----

Str attachment_seal(Str plain, uint8_t ret_key[ATTACHMENT_KEY_LEN], Arena *arena)
{
    uint8_t *out = arena_alloc(arena, plain.len + ATTACHMENT_AROUND);
    int len = 0;
    random_bytes(ret_key, ATTACHMENT_KEY_LEN);
    random_bytes(out, NONCE_LEN);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    evp_must(ctx != NULL);
    evp_must(EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, ret_key, out));
    evp_must(
        EVP_EncryptUpdate(ctx, out + NONCE_LEN, &len, (const uint8_t *)plain.ptr, (int)plain.len));
    evp_must(EVP_EncryptFinal_ex(ctx, out + NONCE_LEN + plain.len, &len));
    evp_must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_LEN, out + NONCE_LEN + plain.len));
    EVP_CIPHER_CTX_free(ctx);
    return str_of(out, plain.len + ATTACHMENT_AROUND);
}

static bool decrypt(const uint8_t *key, Str sealed, char *out)
{
    const uint8_t *in = (const uint8_t *)sealed.ptr;
    size_t len = sealed.len - ATTACHMENT_AROUND;
    uint8_t tag[TAG_LEN];
    int done = 0;
    memcpy(tag, in + NONCE_LEN + len, TAG_LEN);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    evp_must(ctx != NULL);
    evp_must(EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, in));
    evp_must(EVP_DecryptUpdate(ctx, (uint8_t *)out, &done, in + NONCE_LEN, (int)len));
    evp_must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_LEN, tag));
    bool good = EVP_DecryptFinal_ex(ctx, (uint8_t *)out + len, &done) == 1;
    EVP_CIPHER_CTX_free(ctx);
    return good;
}

bool attachment_open(const Stentor__V1__Attachment *file, Str sealed, Buf *out, Error *err)
{
    uint8_t sum[SHA256_LEN];
    size_t before = out->len;
    if (file->key.len != ATTACHMENT_KEY_LEN || file->sha256.len != SHA256_LEN ||
        sealed.len != (size_t)file->size_bytes + ATTACHMENT_AROUND ||
        sealed.len > ATTACHMENT_BYTES_MAX + ATTACHMENT_AROUND ||
        !buf_reserve(out, file->size_bytes)) {
        return error_set(
            err, ERROR_PERMANENT, "attachment '%.64s' has %zu bytes in object storage, not %u",
            file->name, sealed.len, file->size_bytes + ATTACHMENT_AROUND);
    }
    if (!decrypt(file->key.data, sealed, out->ptr + before)) {
        return error_set(
            err, ERROR_PERMANENT, "attachment '%.64s' was altered in object storage", file->name);
    }
    sha256(str_of(out->ptr + before, file->size_bytes), sum);
    if (memcmp(sum, file->sha256.data, SHA256_LEN) != 0) {
        return error_set(
            err, ERROR_PERMANENT, "attachment '%.64s' has another checksum", file->name);
    }
    out->len += file->size_bytes;
    return true;
}

// ---- ids ----

const char *attachment_id_make(
    DataKey *tenant_key, Str tenant, const Stentor__V1__Attachment *file, Arena *arena)
{
    Str plain = STR_EMPTY;
    Str packed = STR_EMPTY;
    Error err = {0};
    bool fine = event_pack(&file->base, arena, &plain, &err);
    const Stentor__V1__Sealed *sealed =
        fine ? seal(tenant_key, tenant, STR(FIELD), FIELD, plain, arena) : NULL;
    if (sealed == NULL || !event_pack(&sealed->base, arena, &packed, &err)) {
        return NULL;
    }
    char *id = arena_alloc(arena, ID_PREFIX.len + 4 * ((packed.len + 2) / 3) + 1);
    memcpy(id, ID_PREFIX.ptr, ID_PREFIX.len);
    base64url_encode(packed.ptr, packed.len, id + ID_PREFIX.len);
    return id;
}

Stentor__V1__Attachment *attachment_id_read(DataKey *tenant_key, Str tenant, Str id, Arena *arena)
{
    uint8_t bytes[ATTACHMENT_ID_MAX];
    size_t len = 0;
    Str plain = STR_EMPTY;
    Error err = {0};
    if (!str_starts(id, ID_PREFIX) || id.len > ATTACHMENT_ID_MAX ||
        !base64url_decode(str_slice(id, ID_PREFIX.len, id.len), bytes, sizeof bytes, &len)) {
        return NULL;
    }
    const Stentor__V1__Sealed *sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, str_of(bytes, len), arena, &err);
    if (sealed == NULL ||
        !unseal(tenant_key, tenant, STR(FIELD), FIELD, sealed, arena, &plain, &err)) {
        return NULL;
    }
    return (Stentor__V1__Attachment *)event_unpack(
        &stentor__v1__attachment__descriptor, plain, arena, &err);
}
