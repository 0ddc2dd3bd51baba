// SPDX-License-Identifier: Apache-2.0
// The contexts belong to their thread, the loop's or that of a job beside it; a fetch or a new
// context for each hash would cost more than the hash.
#include "common/codec/hash.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/evp.h"
#include "common/model/retention/retention.h"

enum { HMAC_KEY_MAX = 64 }; // a longer key is not remembered

typedef struct Contexts {
    EVP_MD_CTX *digest;               // NULL: not used yet
    EVP_MAC_CTX *mac;                 // the same
    unsigned char last[HMAC_KEY_MAX]; // the key of `mac`
    size_t last_len;
} Contexts;

static pthread_key_t ending; // frees a thread's contexts with it
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_thread_end(void *ctx)
{
    Contexts *contexts = ctx;
    EVP_MD_CTX_free(contexts->digest);
    EVP_MAC_CTX_free(contexts->mac);
    OPENSSL_cleanse(contexts, sizeof *contexts);
    free(contexts);
}

static void on_first_use(void)
{
    evp_must(pthread_key_create(&ending, on_thread_end) == 0);
}

static Contexts *own_contexts(void)
{
    static _Thread_local Contexts *contexts;
    if (contexts == NULL) {
        evp_must(pthread_once(&once, on_first_use) == 0);
        contexts = xcalloc(1, sizeof *contexts);
        evp_must(pthread_setspecific(ending, contexts) == 0);
    }
    return contexts;
}

static EVP_MD_CTX *start_sha256(void)
{
    Contexts *own = own_contexts();
    if (own->digest == NULL) {
        EVP_MD *algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
        own->digest = EVP_MD_CTX_new();
        evp_must(algorithm != NULL && own->digest != NULL);
        evp_must(EVP_DigestInit_ex2(own->digest, algorithm, NULL));
        EVP_MD_free(algorithm); // the context keeps its own reference
    } else {
        evp_must(EVP_DigestInit_ex2(own->digest, NULL, NULL));
    }
    return own->digest;
}

void sha256(Str data, uint8_t out[SHA256_LEN])
{
    EVP_MD_CTX *context = start_sha256();
    evp_must(EVP_DigestUpdate(context, data.ptr, data.len));
    evp_must(EVP_DigestFinal_ex(context, out, NULL));
}

struct Sha256 {
    EVP_MD_CTX *context;
};

Sha256 *sha256_begin(void)
{
    Sha256 *digest = xmalloc(sizeof *digest);
    digest->context = EVP_MD_CTX_new();
    evp_must(
        digest->context != NULL && EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1);
    return digest;
}

void sha256_add(Sha256 *digest, Str piece)
{
    evp_must(EVP_DigestUpdate(digest->context, piece.ptr, piece.len));
}

void sha256_end(Sha256 *digest, uint8_t out[SHA256_LEN])
{
    evp_must(EVP_DigestFinal_ex(digest->context, out, NULL));
    EVP_MD_CTX_free(digest->context);
    free(digest);
}

static EVP_MAC_CTX *new_mac(void)
{
    EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
    evp_must(algorithm != NULL);
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(algorithm);
    evp_must(context != NULL);
    EVP_MAC_free(algorithm);
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_END};
    evp_must(EVP_MAC_CTX_set_params(context, params));
    return context;
}

// A process hashes with one key nearly always: its expanded state is kept, which halves the time.
static EVP_MAC_CTX *start_hmac(Str key)
{
    Contexts *own = own_contexts();
    if (own->mac == NULL) {
        own->mac = new_mac();
    }
    assert(key.len > 0);
    if (key.len == own->last_len && CRYPTO_memcmp(key.ptr, own->last, own->last_len) == 0) {
        evp_must(EVP_MAC_init(own->mac, NULL, 0, NULL));
        return own->mac;
    }
    evp_must(EVP_MAC_init(own->mac, (const unsigned char *)key.ptr, key.len, NULL));
    own->last_len = key.len <= sizeof own->last ? key.len : 0;
    memcpy(own->last, key.ptr, own->last_len);
    return own->mac;
}

static void add(EVP_MAC_CTX *context, Str part)
{
    evp_must(EVP_MAC_update(context, (const unsigned char *)part.ptr, part.len));
}

static void finish_hmac(EVP_MAC_CTX *context, uint8_t out[SHA256_LEN])
{
    size_t length = 0;
    evp_must(EVP_MAC_final(context, out, &length, SHA256_LEN));
    evp_must(length == SHA256_LEN);
}

void hmac_sha256(Str key, Str data, uint8_t out[SHA256_LEN])
{
    EVP_MAC_CTX *context = start_hmac(key);
    add(context, data);
    finish_hmac(context, out);
}

void hmac_sha1(Str key, Str data, uint8_t out[SHA1_LEN])
{
    unsigned int len = 0;
    const unsigned char *bytes = (const unsigned char *)data.ptr;
    evp_must(HMAC(EVP_sha1(), key.ptr, (int)key.len, bytes, data.len, out, &len) != NULL);
    evp_must(len == SHA1_LEN);
}

// Each part with its length before it, so that no two triples make the same bytes.
static void add_part(EVP_MD_CTX *context, Str part)
{
    uint8_t head[8];
    for (size_t i = 0; i < sizeof head; i++) {
        head[i] = (uint8_t)((uint64_t)part.len >> (56 - 8 * i));
    }
    evp_must(EVP_DigestUpdate(context, head, sizeof head));
    evp_must(EVP_DigestUpdate(context, part.ptr, part.len));
}

void attempt_id_derive(Str notification_id, int32_t attempt, int64_t created_us, char out[ID_SIZE])
{
    char name[ID_SIZE + 16];
    uint8_t hash[SHA256_LEN];
    Str id = str_slice(notification_id, 0, ID_SIZE);
    int used = snprintf(name, sizeof name, STR_FMT "/%d", STR_ARG(id), attempt);
    sha256(str_of(name, (size_t)used), hash);
    id_derived("dat_", created_us, hash, out);
}

void event_id_derive(const char *stage, Str cause, Str discriminator, char out[EVENT_ID_SIZE])
{
    uint8_t digest[SHA256_LEN];
    EVP_MD_CTX *context = start_sha256();
    add_part(context, str_from(stage));
    add_part(context, cause);
    add_part(context, discriminator);
    evp_must(EVP_DigestFinal_ex(context, digest, NULL));
    base64url_encode(digest, 16, out);
}

Str event_id_in_clear(Str id, Arena *arena)
{
    bool harmless =
        id.len == 0 || (memchr(id.ptr, '@', id.len) == NULL && memchr(id.ptr, '+', id.len) == NULL);
    if (harmless) {
        return id;
    }
    uint8_t hash[SHA256_LEN];
    char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
    sha256(id, hash);
    hex_encode(hash, SHA256_LEN, hex);
    return str_from(hex);
}

void notify_id_derive(Str tenant, Str identity, int64_t at_us, char code, char out[ID_SIZE])
{
    char cause[256];
    int len = snprintf(cause, sizeof cause, "notify|%.*s|%.*s", STR_ARG(tenant), STR_ARG(identity));
    assert(len > 0 && (size_t)len < sizeof cause);
    uint8_t hash[SHA256_LEN];
    sha256(str_of(cause, (size_t)len), hash);
    id_derived("ntf_", at_us, hash, out);
    retention_id_set_code(out, code);
}

// ASCII only: what other letters' case means depends on the mail system that owns the address.
static void add_lower(EVP_MAC_CTX *context, Str text)
{
    unsigned char chunk[256];
    while (text.len > 0) {
        size_t length = text.len < sizeof chunk ? text.len : sizeof chunk;
        for (size_t i = 0; i < length; i++) {
            char c = text.ptr[i];
            chunk[i] = (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        }
        evp_must(EVP_MAC_update(context, chunk, length));
        text = str_slice(text, length, text.len);
    }
}

void address_hash(
    Str hash_key, Str tenant, Channel channel, Str address, uint8_t out[ADDRESS_HASH_LEN])
{
    EVP_MAC_CTX *context = start_hmac(hash_key);
    add(context, tenant);
    add(context, STR("|"));
    add(context, str_from(channel_name(channel)));
    add(context, STR("|"));
    if (channel == CHANNEL_EMAIL) {
        add_lower(context, address);
    } else {
        add(context, address);
    }
    finish_hmac(context, out);
}

void key_subject(
    Str hash_key, DataKeyKind kind, Str tenant, Str recipient, uint8_t out[KEY_SUBJECT_LEN])
{
    uint8_t whole[SHA256_LEN];
    EVP_MAC_CTX *context = start_hmac(hash_key);
    add(context, STR("key|"));
    add(context, tenant);
    add(context, STR("|"));
    add(context, recipient);
    if (kind == DATA_KEY_RECORD) {
        add(context, STR("|record"));
    }
    finish_hmac(context, whole);
    memcpy(out, whole, KEY_SUBJECT_LEN);
}
