// SPDX-License-Identifier: Apache-2.0
// AES-256-GCM with random 96-bit nonces. NIST SP 800-38D allows one key 2^32 of them before a
// repeat becomes likelier than 2^-32. A recipient's key may live for years: three fields of 1,000
// notifications a day reach that in 3,900 years. A tenant's own key and the master key (one nonce
// for each data key wrapped) reach it after four thousand million uses.
#include "common/codec/seal.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/evp.h"
#include "common/codec/hash.h"

enum {
    SEAL_PLAIN_MAX = 16 * 1024 * 1024, // far above any event; EVP counts in int
    HASH_KEY_LEN = 32,
    SEAL_PURPOSE_MAX = 64,
};

struct DataKey {
    EVP_CIPHER_CTX *cipher; // its key is set; it serves both directions
    uint8_t subject[KEY_SUBJECT_LEN];
    uint32_t generation;
};

struct MasterKey {
    EVP_CIPHER_CTX *cipher;
    uint8_t key[SEAL_KEY_LEN]; // for deriving tenants' keys
    uint8_t hash_key[HASH_KEY_LEN];
};

static EVP_CIPHER_CTX *new_cipher(const uint8_t key[SEAL_KEY_LEN])
{
    static EVP_CIPHER *algorithm; // fetched once, never freed
    if (algorithm == NULL) {
        algorithm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
        evp_must(algorithm != NULL);
    }
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    evp_must(cipher != NULL);
    evp_must(EVP_CipherInit_ex2(cipher, algorithm, key, NULL, 1, NULL));
    return cipher;
}

static void add_bound(EVP_CIPHER_CTX *cipher, Str bound)
{
    assert(bound.len <= SEAL_PLAIN_MAX);
    int length;
    evp_must(
        EVP_CipherUpdate(cipher, NULL, &length, (const unsigned char *)bound.ptr, (int)bound.len));
}

// bound: the associated data. out: nonce, ciphertext, tag, in one piece.
static void encrypt(EVP_CIPHER_CTX *cipher, Str bound, Str plain, uint8_t *out)
{
    assert(plain.len <= SEAL_PLAIN_MAX);
    random_bytes(out, SEAL_NONCE_LEN);
    evp_must(EVP_CipherInit_ex2(cipher, NULL, NULL, out, 1, NULL));
    add_bound(cipher, bound);
    uint8_t *at = out + SEAL_NONCE_LEN;
    int length = 0;
    if (plain.len > 0) {
        evp_must(EVP_CipherUpdate(
            cipher, at, &length, (const unsigned char *)plain.ptr, (int)plain.len));
    }
    evp_must((size_t)length == plain.len);
    evp_must(EVP_CipherFinal_ex(cipher, at + length, &length));
    evp_must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_LEN, at + plain.len));
}

// body: ciphertext and tag, SEAL_TAG_LEN to SEAL_PLAIN_MAX bytes; out: body.len - SEAL_TAG_LEN.
static bool decrypt(EVP_CIPHER_CTX *cipher, Str bound, const uint8_t *nonce, Str body, uint8_t *out)
{
    evp_must(EVP_CipherInit_ex2(cipher, NULL, NULL, nonce, 0, NULL));
    uint8_t tag[SEAL_TAG_LEN];
    size_t size = body.len - SEAL_TAG_LEN;
    memcpy(tag, body.ptr + size, SEAL_TAG_LEN);
    evp_must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_LEN, tag));
    add_bound(cipher, bound);
    int length = 0;
    if (size > 0) {
        evp_must(
            EVP_CipherUpdate(cipher, out, &length, (const unsigned char *)body.ptr, (int)size));
    }
    return EVP_CipherFinal_ex(cipher, out + size, &length) == 1;
}

static bool take_key(Str line, uint8_t out[SEAL_KEY_LEN])
{
    size_t length;
    return hex_decode(str_trim(line), out, SEAL_KEY_LEN, &length) && length == SEAL_KEY_LEN;
}

MasterKey *master_key_parse(Str text, Error *err)
{
    Str rest = str_trim(text);
    Str first = STR_EMPTY;
    Str second = STR_EMPTY;
    str_split(&rest, '\n', &first);
    str_split(&rest, '\n', &second);
    MasterKey *master = xcalloc(1, sizeof *master);
    if (rest.ptr != NULL || !take_key(first, master->key) || !take_key(second, master->hash_key)) {
        master_key_free(master);
        error_set(err, ERROR_CONFIG, "master key is not two lines of 64 hex digits each");
        return NULL;
    }
    master->cipher = new_cipher(master->key);
    return master;
}

void master_key_generate(char out[132])
{
    uint8_t key[SEAL_KEY_LEN];
    for (size_t line = 0; line < 2; line++) {
        random_bytes(key, sizeof key);
        hex_encode(key, sizeof key, out);
        out += 2 * sizeof key;
        *out++ = '\n';
    }
    *out = '\0';
    OPENSSL_cleanse(key, sizeof key);
}

void master_key_free(MasterKey *master)
{
    if (master != NULL) {
        EVP_CIPHER_CTX_free(master->cipher);
        OPENSSL_cleanse(master, sizeof *master);
        free(master);
    }
}

Str master_hash_key(const MasterKey *master)
{
    return str_of(master->hash_key, HASH_KEY_LEN);
}

// Cleanses `key`: from here on only the cipher knows it.
static DataKey *make_key(
    uint8_t key[SEAL_KEY_LEN], const uint8_t subject[KEY_SUBJECT_LEN], uint32_t generation)
{
    DataKey *made = xmalloc(sizeof *made);
    made->cipher = new_cipher(key);
    memcpy(made->subject, subject, KEY_SUBJECT_LEN);
    made->generation = generation;
    OPENSSL_cleanse(key, SEAL_KEY_LEN);
    return made;
}

enum { WRAP_LABEL_LEN = 5, WRAP_BOUND_LEN = WRAP_LABEL_LEN + KEY_SUBJECT_LEN + 4 };

static Str bind_wrap(uint8_t out[WRAP_BOUND_LEN], const uint8_t *subject, uint32_t generation)
{
    memcpy(out, "wrap|", WRAP_LABEL_LEN);
    memcpy(out + WRAP_LABEL_LEN, subject, KEY_SUBJECT_LEN);
    uint8_t *at = out + WRAP_LABEL_LEN + KEY_SUBJECT_LEN;
    for (size_t i = 0; i < 4; i++) {
        at[i] = (uint8_t)(generation >> (24 - 8 * i));
    }
    return str_of(out, WRAP_BOUND_LEN);
}

DataKey *data_key_new(
    MasterKey *master, const uint8_t subject[16], uint32_t generation,
    uint8_t ret_wrapped[WRAPPED_KEY_LEN])
{
    uint8_t key[SEAL_KEY_LEN];
    random_bytes(key, sizeof key);
    uint8_t bound[WRAP_BOUND_LEN];
    encrypt(
        master->cipher, bind_wrap(bound, subject, generation), str_of(key, sizeof key),
        ret_wrapped);
    return make_key(key, subject, generation);
}

DataKey *data_key_unwrap(
    MasterKey *master, const uint8_t subject[16], uint32_t generation, Str wrapped, Error *err)
{
    if (wrapped.len != WRAPPED_KEY_LEN) {
        error_set(
            err, ERROR_PERMANENT, "wrapped data key has %zu bytes, not %d", wrapped.len,
            (int)WRAPPED_KEY_LEN);
        return NULL;
    }
    uint8_t key[SEAL_KEY_LEN];
    uint8_t bound[WRAP_BOUND_LEN];
    Str wrap = bind_wrap(bound, subject, generation);
    const uint8_t *nonce = (const uint8_t *)wrapped.ptr;
    Str body = str_slice(wrapped, SEAL_NONCE_LEN, wrapped.len);
    if (!decrypt(master->cipher, wrap, nonce, body, key)) {
        OPENSSL_cleanse(key, sizeof key);
        error_set(
            err, ERROR_PERMANENT,
            "data key of generation %u was not wrapped by this master key for this subject",
            (unsigned)generation);
        return NULL;
    }
    return make_key(key, subject, generation);
}

// HKDF-SHA256 (RFC 5869) without a salt.
static void expand(const MasterKey *master, uint8_t *info, size_t len, uint8_t out[SEAL_KEY_LEN])
{
    EVP_KDF *algorithm = EVP_KDF_fetch(NULL, "HKDF", NULL);
    evp_must(algorithm != NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(algorithm);
    evp_must(context != NULL);
    EVP_KDF_free(algorithm);
    char digest[] = "SHA256";
    uint8_t key[SEAL_KEY_LEN];
    memcpy(key, master->key, sizeof key); // OSSL_PARAM takes no const
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key, sizeof key),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, len),
        OSSL_PARAM_END,
    };
    evp_must(EVP_KDF_derive(context, out, SEAL_KEY_LEN, params));
    OPENSSL_cleanse(key, sizeof key);
    EVP_KDF_CTX_free(context);
}

// info: a label and the SHA-256 of the tenant, so its length has no limit.
static void derive(const MasterKey *master, Str tenant, uint8_t out[SEAL_KEY_LEN])
{
    static const char label[] = "stentor tenant key|";
    enum { LABEL_LEN = sizeof label - 1 };
    uint8_t info[LABEL_LEN + SHA256_LEN];
    memcpy(info, label, LABEL_LEN);
    sha256(tenant, info + LABEL_LEN);
    expand(master, info, sizeof info, out);
}

// The label cannot be a tenant's: that ends with '|' and 32 bytes.
void master_key_derive(const MasterKey *master, const char *purpose, uint8_t out[SEAL_KEY_LEN])
{
    uint8_t info[SEAL_PURPOSE_MAX];
    size_t len = strlen(purpose);
    assert(len > 0 && len < sizeof info && strchr(purpose, '|') == NULL);
    memcpy(info, purpose, len);
    expand(master, info, len, out);
}

DataKey *data_key_for_tenant(MasterKey *master, Str tenant)
{
    uint8_t key[SEAL_KEY_LEN];
    uint8_t subject[KEY_SUBJECT_LEN];
    derive(master, tenant, key);
    key_subject(master_hash_key(master), tenant, STR_EMPTY, subject);
    return make_key(key, subject, 0);
}

void data_key_free(DataKey *key)
{
    if (key != NULL) {
        EVP_CIPHER_CTX_free(key->cipher); // cleanses the expanded key
        OPENSSL_cleanse(key, sizeof *key);
        free(key);
    }
}

uint32_t data_key_generation(const DataKey *key)
{
    return key->generation;
}

// "<tenant>|<notification id>|<field>"
static Str bind_field(Arena *arena, Str tenant, Str notification_id, const char *field)
{
    size_t field_len = strlen(field);
    char *text = arena_alloc(arena, tenant.len + notification_id.len + field_len + 2);
    char *at = text;
    memcpy(at, tenant.ptr, tenant.len);
    at += tenant.len;
    *at++ = '|';
    memcpy(at, notification_id.ptr, notification_id.len);
    at += notification_id.len;
    *at++ = '|';
    memcpy(at, field, field_len);
    return str_of(text, (size_t)(at - text) + field_len);
}

typedef struct Sealing {
    Stentor__V1__Sealed message;
    uint8_t subject[KEY_SUBJECT_LEN];
    uint8_t bytes[]; // nonce, ciphertext, tag
} Sealing;

Stentor__V1__Sealed *seal(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, Arena *arena)
{
    Str bound = bind_field(arena, tenant, notification_id, field);
    Sealing *sealing =
        arena_alloc(arena, sizeof *sealing + SEAL_NONCE_LEN + plain.len + SEAL_TAG_LEN);
    encrypt(key->cipher, bound, plain, sealing->bytes);
    memcpy(sealing->subject, key->subject, KEY_SUBJECT_LEN);
    stentor__v1__sealed__init(&sealing->message);
    sealing->message.key_subject = (ProtobufCBinaryData){KEY_SUBJECT_LEN, sealing->subject};
    sealing->message.key_generation = key->generation;
    sealing->message.nonce = (ProtobufCBinaryData){SEAL_NONCE_LEN, sealing->bytes};
    sealing->message.ciphertext =
        (ProtobufCBinaryData){plain.len + SEAL_TAG_LEN, sealing->bytes + SEAL_NONCE_LEN};
    return &sealing->message;
}

static bool is_of_key(const Stentor__V1__Sealed *sealed, const DataKey *key)
{
    return sealed->key_generation == key->generation &&
           sealed->key_subject.len == KEY_SUBJECT_LEN &&
           memcmp(sealed->key_subject.data, key->subject, KEY_SUBJECT_LEN) == 0;
}

bool unseal(
    DataKey *key, Str tenant, Str notification_id, const char *field,
    const Stentor__V1__Sealed *sealed, Arena *arena, Str *ret_plain, Error *err)
{
    size_t size = sealed->ciphertext.len;
    if (sealed->nonce.len != SEAL_NONCE_LEN || size < SEAL_TAG_LEN || size > SEAL_PLAIN_MAX) {
        return error_set(err, ERROR_PERMANENT, "sealed field '%s' is malformed", field);
    }
    if (!is_of_key(sealed, key)) {
        return error_set(
            err, ERROR_PERMANENT, "sealed field '%s' is sealed under another key", field);
    }
    Str bound = bind_field(arena, tenant, notification_id, field);
    Str body = str_of(sealed->ciphertext.data, size);
    uint8_t *plain = arena_alloc(arena, size - SEAL_TAG_LEN + 1);
    if (!decrypt(key->cipher, bound, sealed->nonce.data, body, plain)) {
        OPENSSL_cleanse(plain, size - SEAL_TAG_LEN); // GCM has decrypted before it knows
        return error_set(
            err, ERROR_PERMANENT,
            "sealed field '%s' was altered or belongs to another notification", field);
    }
    plain[size - SEAL_TAG_LEN] = '\0';
    *ret_plain = (Str){(char *)plain, size - SEAL_TAG_LEN};
    return true;
}
