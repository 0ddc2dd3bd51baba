// SPDX-License-Identifier: Apache-2.0
// AES-256-GCM with random 96-bit nonces. NIST SP 800-38D allows one key 2^32 of them before a
// repeat becomes likelier than 2^-32. A recipient's key may live for years: three fields of 1,000
// notifications a day reach that in 3,900 years. A tenant's own key and the master key (one nonce
// for each data key wrapped) reach it after four thousand million uses.
#include "common/codec/seal.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/body.h"
#include "common/codec/epoch_keys.h"
#include "common/codec/evp.h"
#include "common/codec/hash.h"
#include "common/codec/master_key_internal.h"

enum {
    SEAL_PLAIN_MAX = 16 * 1024 * 1024, // far above any event; EVP counts in int
    WRAPPED_FORM = 1,
    PACKED_FROM = 128, // a shorter text gains less than its frame's head costs
};

static_assert((int)SEAL_KEY_LEN == (int)MASTER_KEY_LEN, "a master key is such a key too");

struct DataKey {
    EVP_CIPHER_CTX *cipher; // its key is set; it serves both directions
    uint8_t subject[KEY_SUBJECT_LEN];
    uint32_t generation;
    struct DataKey *older; // of a tenant: the same under older keys of the file, for opening only
};

EVP_CIPHER_CTX *seal_cipher_new(const uint8_t key[MASTER_KEY_LEN])
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

// Cleanses `key`: from here on only the cipher knows it.
DataKey *seal_key_new(uint8_t key[MASTER_KEY_LEN], const uint8_t *subject, uint32_t generation)
{
    DataKey *made = xcalloc(1, sizeof *made);
    made->cipher = seal_cipher_new(key);
    memcpy(made->subject, subject, KEY_SUBJECT_LEN);
    made->generation = generation;
    OPENSSL_cleanse(key, SEAL_KEY_LEN);
    return made;
}

// ---- wrapping ----

enum {
    WRAP_LABEL_LEN = 5,
    WRAP_BOUND_LEN = WRAPPED_HEAD_LEN + WRAP_LABEL_LEN + KEY_SUBJECT_LEN + 4,
};

// What a wrapping is bound to: its head (none in the first form), the subject, the generation.
static Str bind_wrap(
    uint8_t out[WRAP_BOUND_LEN], Str head, const uint8_t *subject, uint32_t generation)
{
    uint8_t *at = out;
    if (head.len > 0) {
        memcpy(at, head.ptr, head.len);
        at += head.len;
    }
    memcpy(at, "wrap|", WRAP_LABEL_LEN);
    at += WRAP_LABEL_LEN;
    memcpy(at, subject, KEY_SUBJECT_LEN);
    at += KEY_SUBJECT_LEN;
    for (size_t i = 0; i < 4; i++) {
        *at++ = (uint8_t)(generation >> (24 - 8 * i));
    }
    return str_of(out, (size_t)(at - out));
}

// out begins with the head.
static void wrap_by(
    EVP_CIPHER_CTX *wrapper, const uint8_t subject[KEY_SUBJECT_LEN], uint32_t generation,
    const uint8_t key[SEAL_KEY_LEN], uint8_t out[WRAPPED_KEY_LEN])
{
    uint8_t bound[WRAP_BOUND_LEN];
    encrypt(
        wrapper, bind_wrap(bound, str_of(out, WRAPPED_HEAD_LEN), subject, generation),
        str_of(key, SEAL_KEY_LEN), out + WRAPPED_HEAD_LEN);
}

static void write_head(WrapperKind kind, const uint8_t *id, uint8_t out[WRAPPED_HEAD_LEN])
{
    out[0] = WRAPPED_FORM;
    out[1] = (uint8_t)kind;
    memcpy(out + 2, id, KEY_ID_LEN);
}

void wrapper_head(const MasterKey *master, uint8_t out[WRAPPED_HEAD_LEN])
{
    const EpochInfo *epoch = master_epoch_current(master);
    if (epoch != NULL) {
        write_head(WRAPPED_BY_EPOCH, epoch->id, out);
    } else {
        write_head(WRAPPED_BY_MASTER, master_key_info(master, KEY_MASTER, 0)->check, out);
    }
}

const uint8_t *wrapped_epoch(Str wrapped)
{
    const uint8_t *bytes = (const uint8_t *)wrapped.ptr;
    bool its =
        wrapped.len == WRAPPED_KEY_LEN && bytes[0] == WRAPPED_FORM && bytes[1] == WRAPPED_BY_EPOCH;
    return its ? bytes + 2 : NULL;
}

static void wrap(
    const MasterKey *master, const uint8_t subject[KEY_SUBJECT_LEN], uint32_t generation,
    const uint8_t key[SEAL_KEY_LEN], uint8_t out[WRAPPED_KEY_LEN])
{
    const EpochInfo *epoch = master_epoch_current(master);
    wrapper_head(master, out);
    wrap_by(
        epoch != NULL ? epoch_key_cipher(master, epoch->id) : master_key_cipher(master, 0), subject,
        generation, key, out);
}

void seal_wrap_by_master(
    const MasterKey *master, const uint8_t *subject, uint32_t generation, const uint8_t *key,
    uint8_t *out)
{
    write_head(WRAPPED_BY_MASTER, master_key_info(master, KEY_MASTER, 0)->check, out);
    wrap_by(master_key_cipher(master, 0), subject, generation, key, out);
}

DataKey *data_key_new(
    MasterKey *master, const uint8_t subject[16], uint32_t generation,
    uint8_t ret_wrapped[WRAPPED_KEY_LEN])
{
    uint8_t key[SEAL_KEY_LEN];
    random_bytes(key, sizeof key);
    wrap(master, subject, generation, key, ret_wrapped);
    return seal_key_new(key, subject, generation);
}

static bool unwrap_by(EVP_CIPHER_CTX *wrapper, Str bound, Str bare, uint8_t out[SEAL_KEY_LEN])
{
    Str body = str_slice(bare, SEAL_NONCE_LEN, bare.len);
    if (decrypt(wrapper, bound, (const uint8_t *)bare.ptr, body, out)) {
        return true;
    }
    OPENSSL_cleanse(out, SEAL_KEY_LEN);
    return false;
}

// The first form does not say whose it is: each is tried, the current one first.
static bool unwrap_bare(const MasterKey *master, Str bound, Str bare, uint8_t out[SEAL_KEY_LEN])
{
    for (size_t i = 0; i < master_key_count(master, KEY_MASTER); i++) {
        if (unwrap_by(master_key_cipher(master, i), bound, bare, out)) {
            return true;
        }
    }
    return false;
}

static bool fail_wrapper(Str head, Error *err)
{
    char id[KEY_ID_SIZE];
    key_id_print((const uint8_t *)head.ptr + 2, id);
    switch (head.ptr[0] == WRAPPED_FORM ? head.ptr[1] : 0) {
    case WRAPPED_BY_MASTER:
        return error_set(
            err, ERROR_PERMANENT,
            "data key is wrapped by the master key %s, which the master key file does not hold",
            id);
    case WRAPPED_BY_EPOCH:
        return error_set(
            err, ERROR_PERMANENT,
            "data key is wrapped by the epoch key %s, which is not in STENTOR_EPOCH_KEYS_DIR: "
            "destroyed, or lost",
            id);
    default:
        return error_set(
            err, ERROR_PERMANENT,
            "data key is wrapped in form %d by a key of kind %d, which this version does not know",
            head.ptr[0], head.ptr[1]);
    }
}

// NULL: it is not held.
static EVP_CIPHER_CTX *find_wrapper(const MasterKey *master, Str head)
{
    const uint8_t *bytes = (const uint8_t *)head.ptr;
    if (bytes[0] != WRAPPED_FORM) {
        return NULL;
    }
    if (bytes[1] == WRAPPED_BY_EPOCH) {
        return epoch_key_cipher(master, bytes + 2);
    }
    int index = bytes[1] == WRAPPED_BY_MASTER ? master_key_index(master, bytes + 2) : -1;
    return index >= 0 ? master_key_cipher(master, (size_t)index) : NULL;
}

static bool fail_foreign(uint32_t generation, const char *wrapper, Error *err)
{
    return error_set(
        err, ERROR_PERMANENT,
        "data key of generation %u was not wrapped by this %s key for this subject",
        (unsigned)generation, wrapper);
}

bool seal_unwrap(
    const MasterKey *master, const uint8_t *subject, uint32_t generation, Str wrapped, uint8_t *out,
    Error *err)
{
    bool bare = wrapped.len == WRAPPED_BARE_LEN;
    if (!bare && wrapped.len != WRAPPED_KEY_LEN) {
        return error_set(
            err, ERROR_PERMANENT, "wrapped data key has %zu bytes, not %d", wrapped.len,
            (int)WRAPPED_KEY_LEN);
    }
    Str head = str_slice(wrapped, 0, bare ? 0 : WRAPPED_HEAD_LEN);
    uint8_t bound[WRAP_BOUND_LEN];
    Str wrap_bound = bind_wrap(bound, head, subject, generation);
    if (bare) {
        return unwrap_bare(master, wrap_bound, wrapped, out) ||
               fail_foreign(generation, "master", err);
    }
    EVP_CIPHER_CTX *wrapper = find_wrapper(master, head);
    if (wrapper == NULL) {
        return fail_wrapper(head, err);
    }
    return unwrap_by(wrapper, wrap_bound, str_slice(wrapped, WRAPPED_HEAD_LEN, wrapped.len), out) ||
           fail_foreign(generation, head.ptr[1] == WRAPPED_BY_EPOCH ? "epoch" : "master", err);
}

DataKey *data_key_unwrap(
    MasterKey *master, const uint8_t subject[16], uint32_t generation, Str wrapped, Error *err)
{
    uint8_t key[SEAL_KEY_LEN];
    return seal_unwrap(master, subject, generation, wrapped, key, err)
               ? seal_key_new(key, subject, generation)
               : NULL;
}

bool data_key_rewrap(
    MasterKey *master, const uint8_t subject[16], uint32_t generation, Str wrapped,
    uint8_t ret_wrapped[WRAPPED_KEY_LEN], Error *err)
{
    uint8_t key[SEAL_KEY_LEN];
    if (!seal_unwrap(master, subject, generation, wrapped, key, err)) {
        return false;
    }
    wrap(master, subject, generation, key, ret_wrapped);
    OPENSSL_cleanse(key, sizeof key);
    return true;
}

// ---- tenants' keys ----

// info: a label and the SHA-256 of the tenant, so its length has no limit.
static DataKey *tenant_key(MasterKey *master, Str tenant, size_t index, size_t hash_index)
{
    static const char label[] = "stentor tenant key|";
    enum { LABEL_LEN = sizeof label - 1 };
    uint8_t info[LABEL_LEN + SHA256_LEN];
    memcpy(info, label, LABEL_LEN);
    sha256(tenant, info + LABEL_LEN);
    uint8_t key[SEAL_KEY_LEN];
    uint8_t subject[KEY_SUBJECT_LEN];
    master_key_expand(master, index, str_of(info, sizeof info), key);
    key_subject(
        master_hash_key_at(master, hash_index), DATA_KEY_ORDINARY, tenant, STR_EMPTY, subject);
    return seal_key_new(key, subject, 0);
}

// Its generation is always 0, so what opens it is tried: as many keys as the file has, one nearly
// always.
DataKey *data_key_for_tenant(MasterKey *master, Str tenant)
{
    DataKey *first = NULL;
    DataKey **end = &first;
    for (size_t i = 0; i < master_key_count(master, KEY_MASTER); i++) {
        for (size_t j = 0; j < master_key_count(master, KEY_HASH); j++) {
            *end = tenant_key(master, tenant, i, j);
            end = &(*end)->older;
        }
    }
    return first;
}

void data_key_free(DataKey *key)
{
    while (key != NULL) {
        DataKey *older = key->older;
        EVP_CIPHER_CTX_free(key->cipher); // cleanses the expanded key
        OPENSSL_cleanse(key, sizeof *key);
        free(key);
        key = older;
    }
}

uint32_t data_key_generation(const DataKey *key)
{
    return key->generation;
}

// "<tenant>|<notification id>|<field>", and of a packed text "|zstd" behind it: a reader that does
// not know of packing refuses it, and `packed` itself cannot be altered.
static Str bind_field(Arena *arena, Str tenant, Str notification_id, const char *field, bool packed)
{
    Str ending = packed ? STR("|zstd") : STR_EMPTY;
    size_t field_len = strlen(field);
    char *text = arena_alloc(arena, tenant.len + notification_id.len + field_len + 2 + ending.len);
    char *at = text;
    memcpy(at, tenant.ptr, tenant.len);
    at += tenant.len;
    *at++ = '|';
    memcpy(at, notification_id.ptr, notification_id.len);
    at += notification_id.len;
    *at++ = '|';
    memcpy(at, field, field_len);
    at += field_len;
    memcpy(at, ending.ptr, ending.len);
    return str_of(text, (size_t)(at - text) + ending.len);
}

typedef struct Sealing {
    Stentor__V1__Sealed message;
    uint8_t subject[KEY_SUBJECT_LEN];
    uint8_t bytes[]; // nonce, ciphertext, tag
} Sealing;

static Stentor__V1__Sealed *seal_as(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, bool packed,
    Arena *arena)
{
    Str bound = bind_field(arena, tenant, notification_id, field, packed);
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
    sealing->message.packed = packed;
    return &sealing->message;
}

Stentor__V1__Sealed *seal(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, Arena *arena)
{
    return seal_as(key, tenant, notification_id, field, plain, false, arena);
}

Stentor__V1__Sealed *seal_packed(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, Arena *arena)
{
    Str frame = plain;
    bool packed = plain.len >= PACKED_FROM && body_pack_quickly(plain, arena, &frame) &&
                  frame.len < plain.len;
    return seal_as(key, tenant, notification_id, field, packed ? frame : plain, packed, arena);
}

static bool is_of_key(const Stentor__V1__Sealed *sealed, const DataKey *key)
{
    return sealed->key_generation == key->generation &&
           sealed->key_subject.len == KEY_SUBJECT_LEN &&
           memcmp(sealed->key_subject.data, key->subject, KEY_SUBJECT_LEN) == 0;
}

static bool decrypt_field(
    DataKey *key, Str tenant, Str notification_id, const char *field,
    const Stentor__V1__Sealed *sealed, Arena *arena, Str *ret_plain, Error *err)
{
    size_t size = sealed->ciphertext.len;
    if (sealed->nonce.len != SEAL_NONCE_LEN || size < SEAL_TAG_LEN || size > SEAL_PLAIN_MAX) {
        return error_set(err, ERROR_PERMANENT, "sealed field '%s' is malformed", field);
    }
    Str bound = bind_field(arena, tenant, notification_id, field, sealed->packed);
    Str body = str_of(sealed->ciphertext.data, size);
    uint8_t *plain = arena_alloc(arena, size - SEAL_TAG_LEN + 1);
    bool any = false;
    bool opened = false;
    for (const DataKey *k = key; k != NULL && !opened; k = k->older) {
        bool its = is_of_key(sealed, k);
        any = any || its;
        opened = its && decrypt(k->cipher, bound, sealed->nonce.data, body, plain);
    }
    if (!opened) {
        OPENSSL_cleanse(plain, size - SEAL_TAG_LEN); // GCM has decrypted before it knows
        return error_set(
            err, ERROR_PERMANENT,
            any ? "sealed field '%s' was altered or belongs to another notification"
                : "sealed field '%s' is sealed under another key",
            field);
    }
    plain[size - SEAL_TAG_LEN] = '\0';
    *ret_plain = (Str){(char *)plain, size - SEAL_TAG_LEN};
    return true;
}

bool unseal(
    DataKey *key, Str tenant, Str notification_id, const char *field,
    const Stentor__V1__Sealed *sealed, Arena *arena, Str *ret_plain, Error *err)
{
    Str plain;
    if (!decrypt_field(key, tenant, notification_id, field, sealed, arena, &plain, err)) {
        return false;
    }
    if (sealed->packed) {
        return body_unpack(NULL, plain, arena, ret_plain, err) ||
               error_wrap(err, "sealed field '%s'", field);
    }
    *ret_plain = plain;
    return true;
}
