// SPDX-License-Identifier: Apache-2.0
// The keys' bytes lie in locked memory of their own (common/base/locked.h). The cipher contexts,
// which hold expanded keys, are OpenSSL's and lie where it puts them.
#include "common/codec/master_key.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/locked.h"
#include "common/codec/evp.h"
#include "common/codec/hash.h"
#include "common/codec/master_key_internal.h"

enum { KINDS = 2, PURPOSE_MAX = 64, LINE_SIZE = 6 + 1 + KEY_ID_SIZE + 2 * MASTER_KEY_LEN + 1 };

enum { BYTES_SIZE = KINDS * MASTER_KEYS_MAX * MASTER_KEY_LEN };

static const char CHECK_PURPOSE[] = "stentor check";
static const char HEADER[] = "# Stentor's master key file. The first key of a kind is the current "
                             "one. Keep it secret, and a copy elsewhere.\n";

typedef struct Key {
    KeyInfo info;
    const uint8_t *bytes;   // MASTER_KEY_LEN, in locked memory
    EVP_CIPHER_CTX *cipher; // of a master key
} Key;

struct MasterKey {
    Key keys[KINDS][MASTER_KEYS_MAX];
    size_t counts[KINDS];
    uint8_t (*bytes)[MASTER_KEY_LEN]; // KINDS * MASTER_KEYS_MAX of them
    bool locked;
    size_t oldest_hash;
    EpochKeys *epochs;
};

static_assert(
    sizeof HEADER + KINDS * MASTER_KEYS_MAX * LINE_SIZE <= MASTER_KEY_FILE_SIZE,
    "a file fits its space");

const char *key_kind_name(KeyKind kind)
{
    switch (kind) {
    case KEY_MASTER:
        return "master";
    case KEY_HASH:
        return "hash";
    }
    return "";
}

bool key_kind_from_name(Str name, KeyKind *ret)
{
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        if (str_eq(name, str_from(key_kind_name(kind)))) {
            *ret = kind;
            return true;
        }
    }
    return false;
}

void key_id_print(const uint8_t *id, char out[KEY_ID_SIZE])
{
    hex_encode(id, KEY_ID_LEN, out);
}

static const Key *key_at(const MasterKey *master, KeyKind kind, size_t index)
{
    assert(index < master->counts[kind - 1]);
    return &master->keys[kind - 1][index];
}

// ---- one key ----

// HKDF-SHA256 (RFC 5869) without a salt.
void key_expand(const uint8_t key[MASTER_KEY_LEN], Str info, uint8_t out[MASTER_KEY_LEN])
{
    EVP_KDF *algorithm = EVP_KDF_fetch(NULL, "HKDF", NULL);
    evp_must(algorithm != NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(algorithm);
    evp_must(context != NULL);
    EVP_KDF_free(algorithm);
    char digest[] = "SHA256";
    // OSSL_PARAM takes no const.
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(
            OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key, MASTER_KEY_LEN),
        OSSL_PARAM_construct_octet_string(
            OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)info.ptr, info.len),
        OSSL_PARAM_END,
    };
    evp_must(EVP_KDF_derive(context, out, MASTER_KEY_LEN, params));
    EVP_KDF_CTX_free(context);
}

// No hashed address, subject or derived id is made from this text: theirs hold a '|'.
static void describe(KeyKind kind, const uint8_t *bytes, KeyInfo *ret)
{
    ret->kind = kind;
    if (kind == KEY_MASTER) {
        key_expand(bytes, str_from(CHECK_PURPOSE), ret->check);
    } else {
        hmac_sha256(str_of(bytes, MASTER_KEY_LEN), str_from(CHECK_PURPOSE), ret->check);
    }
}

// ---- reading ----

static bool add_key(MasterKey *master, KeyKind kind, const uint8_t *bytes, Error *err)
{
    KeyInfo info;
    describe(kind, bytes, &info);
    size_t *count = &master->counts[kind - 1];
    for (size_t i = 0; i < *count; i++) {
        if (memcmp(key_at(master, kind, i)->info.check, info.check, KEY_ID_LEN) == 0) {
            char id[KEY_ID_SIZE];
            key_id_print(info.check, id);
            return error_set(
                err, ERROR_CONFIG, "the %s key %s is given twice", key_kind_name(kind), id);
        }
    }
    if (*count == MASTER_KEYS_MAX) {
        return error_set(
            err, ERROR_CONFIG, "more than %d %s keys", (int)MASTER_KEYS_MAX, key_kind_name(kind));
    }
    uint8_t *place = master->bytes[(size_t)(kind - 1) * MASTER_KEYS_MAX + *count];
    memcpy(place, bytes, MASTER_KEY_LEN);
    Key *key = &master->keys[kind - 1][(*count)++];
    *key = (Key){.info = info, .bytes = place};
    key->cipher = kind == KEY_MASTER ? seal_cipher_new(place) : NULL;
    return true;
}

static bool read_hex(Str text, uint8_t out[MASTER_KEY_LEN])
{
    size_t length = 0;
    return hex_decode(text, out, MASTER_KEY_LEN, &length) && length == MASTER_KEY_LEN;
}

static bool check_id(KeyKind kind, const uint8_t *bytes, Str id, Error *err)
{
    KeyInfo info;
    char own[KEY_ID_SIZE];
    describe(kind, bytes, &info);
    key_id_print(info.check, own);
    return str_eq(id, str_from(own)) ||
           error_set(
               err, ERROR_CONFIG,
               "the digits belong to the %s key %s, not to the one that the line names: a digit "
               "or the id is wrong",
               key_kind_name(kind), own);
}

// "master <id> <64 hex digits>". Nothing of the line but its id is quoted: it may be a key.
static bool take_line(MasterKey *master, Str line, Error *err)
{
    Str word = STR_EMPTY;
    Str id = STR_EMPTY;
    KeyKind kind;
    uint8_t bytes[MASTER_KEY_LEN];
    (void)str_split(&line, ' ', &word);
    (void)str_split(&line, ' ', &id);
    if (!key_kind_from_name(word, &kind) || !read_hex(str_trim(line), bytes)) {
        return error_set(err, ERROR_CONFIG, "not 'master' or 'hash', an id and 64 hex digits");
    }
    bool ok = check_id(kind, bytes, id, err) && add_key(master, kind, bytes, err);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return ok;
}

static bool take_lines(MasterKey *master, Str text, Error *err)
{
    Str line;
    for (int number = 1; str_split(&text, '\n', &line); number++) {
        line = str_trim(line);
        if (line.len > 0 && line.ptr[0] != '#' && !take_line(master, line, err)) {
            return error_wrap(err, "line %d", number);
        }
    }
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        if (master->counts[kind - 1] == 0) {
            return error_set(
                err, ERROR_CONFIG, "it has no line that begins with '%s'", key_kind_name(kind));
        }
    }
    return true;
}

// The first form of the file.
static bool take_bare(MasterKey *master, Str text)
{
    Str line;
    uint8_t bytes[MASTER_KEY_LEN];
    KeyKind kind = KEY_MASTER;
    bool ok = true;
    for (; ok && str_split(&text, '\n', &line); kind++) {
        ok = kind <= KEY_HASH && read_hex(str_trim(line), bytes) &&
             add_key(master, kind, bytes, NULL);
    }
    OPENSSL_cleanse(bytes, sizeof bytes);
    return ok && kind == KEY_HASH + 1;
}

static bool is_bare(Str text)
{
    Str line = STR_EMPTY;
    return str_split(&text, '\n', &line) && str_trim(line).len == 2 * (size_t)MASTER_KEY_LEN;
}

MasterKey *master_key_parse(Str text, Error *err)
{
    MasterKey *master = xcalloc(1, sizeof *master);
    master->bytes = locked_new(BYTES_SIZE, &master->locked);
    master->epochs = epoch_keys_new();
    text = str_trim(text);
    bool ok =
        is_bare(text)
            ? take_bare(master, text) ||
                  error_set(err, ERROR_CONFIG, "master key is not two lines of 64 hex digits each")
            : take_lines(master, text, err);
    if (!ok) {
        master_key_free(master);
        return NULL;
    }
    return master;
}

void master_key_free(MasterKey *master)
{
    if (master == NULL) {
        return;
    }
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < master->counts[kind]; i++) {
            EVP_CIPHER_CTX_free(master->keys[kind][i].cipher); // cleanses the expanded key
        }
    }
    epoch_keys_free(master->epochs);
    locked_free(master->bytes, BYTES_SIZE);
    free(master);
}

bool master_key_is_locked(const MasterKey *master)
{
    return master->locked;
}

// ---- writing ----

static char *print_key(char *at, KeyKind kind, const uint8_t *bytes)
{
    KeyInfo info;
    char id[KEY_ID_SIZE];
    describe(kind, bytes, &info);
    key_id_print(info.check, id);
    at += snprintf(at, LINE_SIZE, "%s %s ", key_kind_name(kind), id);
    hex_encode(bytes, MASTER_KEY_LEN, at);
    at += 2 * MASTER_KEY_LEN;
    *at++ = '\n';
    *at = '\0';
    return at;
}

static char *print_new_key(char *at, KeyKind kind)
{
    uint8_t bytes[MASTER_KEY_LEN];
    random_bytes(bytes, sizeof bytes);
    at = print_key(at, kind, bytes);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return at;
}

void master_key_generate(char out[132])
{
    uint8_t bytes[MASTER_KEY_LEN];
    for (size_t line = 0; line < KINDS; line++) {
        random_bytes(bytes, sizeof bytes);
        hex_encode(bytes, MASTER_KEY_LEN, out);
        out += 2 * MASTER_KEY_LEN;
        *out++ = '\n';
    }
    *out = '\0';
    OPENSSL_cleanse(bytes, sizeof bytes);
}

static bool is_named(const Key *key, const char *id)
{
    char own[KEY_ID_SIZE];
    key_id_print(key->info.check, own);
    return id != NULL && strcmp(own, id) == 0;
}

// Those that are named when `named`, else the others.
static char *print_kind(
    const MasterKey *master, KeyKind kind, const MasterKeyChange *change, bool named, char *at)
{
    for (size_t i = 0; i < master_key_count(master, kind); i++) {
        const Key *key = key_at(master, kind, i);
        if (is_named(key, change->first) == named && !is_named(key, change->without)) {
            at = print_key(at, kind, key->bytes);
        }
    }
    return at;
}

static bool check_named(const MasterKey *master, const char *id, bool may_be_current, Error *err)
{
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        for (size_t i = 0; i < master_key_count(master, kind); i++) {
            if (is_named(key_at(master, kind, i), id)) {
                return i > 0 || may_be_current ||
                       error_set(
                           err, ERROR_CONFIG,
                           "%s is the current %s key (HINT: put another one first: stentor "
                           "master-key use ID)",
                           id, key_kind_name(kind));
            }
        }
    }
    return error_set(err, ERROR_CONFIG, "the file holds no key %s", id);
}

bool master_key_print(
    const MasterKey *master, const MasterKeyChange *change, char out[MASTER_KEY_FILE_SIZE],
    Error *err)
{
    if ((change->first != NULL && !check_named(master, change->first, true, err)) ||
        (change->without != NULL && !check_named(master, change->without, false, err))) {
        return false;
    }
    if (change->add != 0 && master_key_count(master, (KeyKind)change->add) == MASTER_KEYS_MAX) {
        return error_set(
            err, ERROR_CONFIG, "the file holds %d %s keys already", (int)MASTER_KEYS_MAX,
            key_kind_name((KeyKind)change->add));
    }
    memcpy(out, HEADER, sizeof HEADER);
    char *at = out + sizeof HEADER - 1;
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        at = print_kind(master, kind, change, true, at);
        at = print_kind(master, kind, change, false, at);
        at = change->add == (int)kind ? print_new_key(at, kind) : at;
    }
    return true;
}

// ---- asking ----

size_t master_key_count(const MasterKey *master, KeyKind kind)
{
    return master->counts[kind - 1];
}

const KeyInfo *master_key_info(const MasterKey *master, KeyKind kind, size_t index)
{
    return &key_at(master, kind, index)->info;
}

const KeyInfo *master_key_find(const MasterKey *master, const KeyInfo *wanted)
{
    for (size_t i = 0; i < master_key_count(master, wanted->kind); i++) {
        const KeyInfo *info = master_key_info(master, wanted->kind, i);
        if (CRYPTO_memcmp(info->check, wanted->check, KEY_CHECK_LEN) == 0) {
            return info;
        }
    }
    return NULL;
}

int master_key_index(const MasterKey *master, const uint8_t id[KEY_ID_LEN])
{
    for (size_t i = 0; i < master_key_count(master, KEY_MASTER); i++) {
        if (memcmp(key_at(master, KEY_MASTER, i)->info.check, id, KEY_ID_LEN) == 0) {
            return (int)i;
        }
    }
    return -1;
}

EpochKeys *master_key_epochs(const MasterKey *master)
{
    return master->epochs;
}

EVP_CIPHER_CTX *master_key_cipher(const MasterKey *master, size_t index)
{
    return key_at(master, KEY_MASTER, index)->cipher;
}

Str master_hash_key_at(const MasterKey *master, size_t index)
{
    return str_of(key_at(master, KEY_HASH, index)->bytes, MASTER_KEY_LEN);
}

HashKeys master_hash_keys(const MasterKey *master)
{
    HashKeys all = {.count = master_key_count(master, KEY_HASH)};
    for (size_t i = 0; i < all.count; i++) {
        all.keys[i] = master_hash_key_at(master, i);
    }
    return all;
}

Str master_oldest_hash_key(const MasterKey *master)
{
    return master_hash_key_at(master, master->oldest_hash);
}

void master_key_note_oldest(MasterKey *master, const KeyInfo *hash_key)
{
    for (size_t i = 0; i < master_key_count(master, KEY_HASH); i++) {
        if (memcmp(key_at(master, KEY_HASH, i)->info.check, hash_key->check, KEY_CHECK_LEN) == 0) {
            master->oldest_hash = i;
        }
    }
}

Str master_hash_key(const MasterKey *master)
{
    return master_hash_key_at(master, 0);
}

void master_key_expand(const MasterKey *master, size_t index, Str info, uint8_t out[MASTER_KEY_LEN])
{
    key_expand(key_at(master, KEY_MASTER, index)->bytes, info, out);
}

// The label cannot be a tenant's: that ends with '|' and 32 bytes.
void master_key_derive(
    const MasterKey *master, size_t index, const char *purpose, uint8_t out[MASTER_KEY_LEN])
{
    size_t len = strlen(purpose);
    assert(len > 0 && len < PURPOSE_MAX && strchr(purpose, '|') == NULL);
    master_key_expand(master, index, str_of(purpose, len), out);
}
