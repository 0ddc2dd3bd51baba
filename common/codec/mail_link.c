// SPDX-License-Identifier: Apache-2.0
// Inside: version (1), length of the tenant and the tenant: the head, which is bound. Then nonce
// (12), ciphertext and tag (16). Sealed: kind (1), index (2), issued at (seconds, 5), all
// big-endian, ULID of the notification (26), the beginning of the address hash (8), URL. Frozen:
// mails in mailboxes hold it for a year.
//
// The nonce is the beginning of an HMAC of head and plaintext under a key of its own: so the same
// link has the same token (a second rendering makes the same mail), and one nonce serves two
// plaintexts only by a collision of 96 bits.
#include "common/codec/mail_link.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "common/codec/evp.h"
#include "common/codec/master_key_internal.h"

enum {
    VERSION = 1,
    TENANT_MAX = 32,
    HEAD_MAX = 2 + TENANT_MAX,
    NONCE_LEN = 12,
    TAG_LEN = 16,
    TIME_LEN = 5,
    ID_PREFIX_LEN = 4,
    FIXED_LEN = 1 + 2 + TIME_LEN + ULID_LEN + MAIL_LINK_WHO_LEN, // of the plaintext
    PLAIN_MAX = FIXED_LEN + MAIL_LINK_URL_MAX,
    RAW_MAX = HEAD_MAX + NONCE_LEN + PLAIN_MAX + TAG_LEN,
    CLOCK_SLACK_S = 86400, // a token of the future is not ours; clocks differ
};

static_assert(4 + (RAW_MAX + 2) / 3 * 4 + 1 <= MAIL_LINK_TOKEN_SIZE, "a token fits its space");

static const Str PREFIX = {"lnk_", 4};

typedef struct Raw {
    uint8_t bytes[RAW_MAX];
    size_t len;
} Raw;

// The tenant's two keys under one master key.
typedef struct TenantKeys {
    uint8_t cipher[SHA256_LEN];
    uint8_t nonce[SHA256_LEN];
} TenantKeys;

void mail_link_key(const MasterKey *master, MailLinkKey *ret)
{
    ret->count = master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < ret->count; i++) {
        master_key_derive(master, i, "stentor links", ret->bytes[i]);
    }
}

static void derive(const MailLinkKey *key, size_t index, Str tenant, TenantKeys *ret)
{
    uint8_t label[1 + TENANT_MAX];
    assert(tenant.len <= TENANT_MAX);
    memcpy(label + 1, tenant.ptr, tenant.len);
    Str bound = str_of(label, 1 + tenant.len);
    label[0] = 1;
    hmac_sha256(str_of(key->bytes[index], SHA256_LEN), bound, ret->cipher);
    label[0] = 2;
    hmac_sha256(str_of(key->bytes[index], SHA256_LEN), bound, ret->nonce);
}

// ---- checks ----

bool mail_link_is_url(Str url)
{
    bool http = str_eq_nocase(str_slice(url, 0, 7), STR("http://")) && url.len > 7;
    bool https = str_eq_nocase(str_slice(url, 0, 8), STR("https://")) && url.len > 8;
    if ((!http && !https) || url.len > MAIL_LINK_URL_MAX || str_has_control(url) ||
        str_find(url, ' ') >= 0) {
        return false;
    }
    return str_is_utf8(url);
}

static bool check(const MailLink *link, Error *err)
{
    if (link->kind != MAIL_LINK_CLICK && link->kind != MAIL_LINK_OPEN) {
        return error_set(err, ERROR_PERMANENT, "link: 'kind' is neither a click nor an open");
    }
    if (!id_is_tenant(link->tenant)) {
        return error_set(err, ERROR_PERMANENT, "link: 'tenant' is not a tenant id");
    }
    if (!id_parse(link->notification_id, "ntf_", NULL)) {
        return error_set(err, ERROR_PERMANENT, "link: 'notification_id' is not a notification id");
    }
    if (link->index > MAIL_LINK_INDEX_MAX || link->issued_at_us < 0) {
        return error_set(err, ERROR_PERMANENT, "link: 'index' or 'issued_at' is out of range");
    }
    bool fits = link->kind == MAIL_LINK_CLICK ? mail_link_is_url(link->url) : link->url.len == 0;
    return fits ||
           error_set(
               err, ERROR_PERMANENT, "link: 'url' is no http or https URL of at most %d bytes",
               MAIL_LINK_URL_MAX);
}

// ---- sealing ----

static void add(Raw *raw, const void *bytes, size_t len)
{
    memcpy(raw->bytes + raw->len, bytes, len);
    raw->len += len;
}

static void add_number(Raw *raw, uint64_t number, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        raw->bytes[raw->len++] = (uint8_t)(number >> (8 * (width - 1 - i)));
    }
}

static void bind(EVP_CIPHER_CTX *cipher, Str head)
{
    int length = 0;
    evp_must(
        EVP_CipherUpdate(cipher, NULL, &length, (const unsigned char *)head.ptr, (int)head.len));
}

bool mail_link_sealer_init(MailLinkSealer *sealer, const MailLinkKey *key, Str tenant, Error *err)
{
    if (!id_is_tenant(tenant)) {
        return error_set(err, ERROR_PERMANENT, "link: 'tenant' is not a tenant id");
    }
    TenantKeys keys;
    derive(key, 0, tenant, &keys);
    *sealer = (MailLinkSealer){.tenant = tenant, .cipher = seal_cipher_new(keys.cipher)};
    memcpy(sealer->nonce, keys.nonce, sizeof sealer->nonce);
    OPENSSL_cleanse(&keys, sizeof keys);
    return true;
}

void mail_link_sealer_done(MailLinkSealer *sealer)
{
    EVP_CIPHER_CTX_free(sealer->cipher);
    OPENSSL_cleanse(sealer->nonce, sizeof sealer->nonce);
}

static void encrypt(
    EVP_CIPHER_CTX *cipher, Str head, const Raw *plain, uint8_t *nonce, uint8_t *out)
{
    int length = 0;
    evp_must(EVP_CipherInit_ex2(cipher, NULL, NULL, nonce, 1, NULL));
    bind(cipher, head);
    evp_must(EVP_CipherUpdate(cipher, out, &length, plain->bytes, (int)plain->len));
    evp_must((size_t)length == plain->len);
    evp_must(EVP_CipherFinal_ex(cipher, out + length, &length));
    evp_must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, out + plain->len));
}

static void make_nonce(
    const MailLinkSealer *sealer, Str head, const Raw *plain, uint8_t out[NONCE_LEN])
{
    uint8_t bound[HEAD_MAX + PLAIN_MAX];
    uint8_t mac[SHA256_LEN];
    memcpy(bound, head.ptr, head.len);
    memcpy(bound + head.len, plain->bytes, plain->len);
    hmac_sha256(
        str_of(sealer->nonce, sizeof sealer->nonce), str_of(bound, head.len + plain->len), mac);
    memcpy(out, mac, NONCE_LEN);
}

bool mail_link_seal(
    MailLinkSealer *sealer, const MailLink *link, char out[MAIL_LINK_TOKEN_SIZE], Error *err)
{
    if (!check(link, err)) {
        return false;
    }
    if (!str_eq(link->tenant, sealer->tenant)) {
        return error_set(err, ERROR_PERMANENT, "link: 'tenant' is another one's");
    }
    Raw plain = {.len = 0};
    add_number(&plain, (uint64_t)link->kind, 1);
    add_number(&plain, link->index, 2);
    add_number(&plain, (uint64_t)(link->issued_at_us / 1000000), TIME_LEN);
    add(&plain, link->notification_id.ptr + ID_PREFIX_LEN, ULID_LEN);
    add(&plain, link->who, MAIL_LINK_WHO_LEN);
    add(&plain, link->url.ptr, link->url.len);
    Raw raw = {.len = 0};
    add_number(&raw, VERSION, 1);
    add_number(&raw, link->tenant.len, 1);
    add(&raw, link->tenant.ptr, link->tenant.len);
    Str head = str_of(raw.bytes, raw.len);
    uint8_t nonce[NONCE_LEN];
    make_nonce(sealer, head, &plain, nonce);
    add(&raw, nonce, NONCE_LEN);
    encrypt(sealer->cipher, head, &plain, nonce, raw.bytes + raw.len);
    raw.len += plain.len + TAG_LEN;
    memcpy(out, PREFIX.ptr, PREFIX.len);
    base64url_encode(raw.bytes, raw.len, out + PREFIX.len);
    return true;
}

// ---- opening ----

static bool decrypt(
    const uint8_t *key, Str head, const uint8_t *nonce, const uint8_t *body, size_t len,
    uint8_t *out)
{
    EVP_CIPHER_CTX *cipher = seal_cipher_new(key);
    uint8_t tag[TAG_LEN];
    int length = 0;
    memcpy(tag, body + len, TAG_LEN);
    evp_must(EVP_CipherInit_ex2(cipher, NULL, NULL, nonce, 0, NULL));
    evp_must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag));
    bind(cipher, head);
    evp_must(EVP_CipherUpdate(cipher, out, &length, body, (int)len));
    bool good = EVP_CipherFinal_ex(cipher, out + len, &length) == 1;
    EVP_CIPHER_CTX_free(cipher);
    return good;
}

static uint64_t number_at(const uint8_t *bytes, size_t width)
{
    uint64_t number = 0;
    for (size_t i = 0; i < width; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

static bool read_plain(const uint8_t *plain, size_t len, Str tenant, Arena *arena, MailLink *ret)
{
    Str ulid = str_of(plain + 1 + 2 + TIME_LEN, ULID_LEN);
    *ret = (MailLink){
        .kind = (MailLinkKind)plain[0],
        .tenant = arena_str(arena, tenant),
        .notification_id = str_from(arena_printf(arena, "ntf_" STR_FMT, STR_ARG(ulid))),
        .index = (uint32_t)number_at(plain + 1, 2),
        .issued_at_us = (int64_t)number_at(plain + 3, TIME_LEN) * 1000000,
        .url = arena_str(arena, str_of(plain + FIXED_LEN, len - FIXED_LEN)),
    };
    memcpy(ret->who, plain + FIXED_LEN - MAIL_LINK_WHO_LEN, MAIL_LINK_WHO_LEN);
    return check(ret, NULL);
}

// The head first: it names whose key is tried.
static bool read_raw(const MailLinkKey *key, const Raw *raw, Arena *arena, MailLink *ret)
{
    size_t tenant_len = raw->len > 2 ? raw->bytes[1] : 0;
    size_t head_len = 2 + tenant_len;
    if (raw->len < 2 || raw->bytes[0] != VERSION || tenant_len > TENANT_MAX ||
        raw->len < head_len + NONCE_LEN + FIXED_LEN + TAG_LEN) {
        return false;
    }
    Str head = str_of(raw->bytes, head_len);
    Str tenant = str_slice(head, 2, head_len);
    size_t len = raw->len - head_len - NONCE_LEN - TAG_LEN;
    const uint8_t *nonce = raw->bytes + head_len;
    uint8_t plain[RAW_MAX];
    bool good = false;
    for (size_t i = 0; i < key->count && !good; i++) {
        TenantKeys keys;
        derive(key, i, tenant, &keys);
        good = decrypt(keys.cipher, head, nonce, nonce + NONCE_LEN, len, plain);
        OPENSSL_cleanse(&keys, sizeof keys);
    }
    return good && read_plain(plain, len, tenant, arena, ret);
}

bool mail_link_open(
    const MailLinkKey *key, Str token, int64_t now_us, Arena *arena, MailLink *ret, Error *err)
{
    Raw raw;
    if (!str_starts(token, PREFIX) || token.len >= MAIL_LINK_TOKEN_SIZE ||
        !base64url_decode(str_slice(token, PREFIX.len, token.len), raw.bytes, RAW_MAX, &raw.len) ||
        !read_raw(key, &raw, arena, ret)) {
        return error_set(
            err, ERROR_PERMANENT, "the link was not made by this installation, or is incomplete");
    }
    int64_t age_s = now_us / 1000000 - ret->issued_at_us / 1000000;
    if (age_s > (int64_t)MAIL_LINK_DAYS * 86400 || age_s < -(int64_t)CLOCK_SLACK_S) {
        return error_set(
            err, ERROR_PERMANENT, "the link is older than %d days", (int)MAIL_LINK_DAYS);
    }
    return true;
}
