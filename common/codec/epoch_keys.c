// SPDX-License-Identifier: Apache-2.0
// A file is one line: "epoch <number> <id> <made> <wrapped key in hex>". The wrapping has the form
// of a data key's (seal.c), by a master key, for a subject that says what it is and when it was
// made: an epoch key cannot pass for a data key, nor one file for another.
#include "common/codec/epoch_keys.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/codec/master_key_internal.h"
#include "common/codec/seal.h"

typedef struct EpochKey {
    EpochInfo info;
    EVP_CIPHER_CTX *cipher;         // its key is set; only it knows the key
    uint8_t events[MASTER_KEY_LEN]; // derived from it: the keys of events are derived from this
} EpochKey;

struct EpochKeys {
    EpochKey keys[EPOCH_KEYS_MAX];
    size_t count;
    int current; // -1: none
    EpochsRefresh refresh;
    void *ctx;
};

typedef struct EpochFile {
    EpochInfo info;
    uint8_t wrapped[WRAPPED_KEY_LEN];
} EpochFile;

EpochKeys *epoch_keys_new(void)
{
    EpochKeys *epochs = xcalloc(1, sizeof *epochs);
    epochs->current = -1;
    return epochs;
}

static void forget(EpochKey *key)
{
    EVP_CIPHER_CTX_free(key->cipher); // cleanses the expanded key; NULL-safe
    OPENSSL_cleanse(key, sizeof *key);
    key->cipher = NULL;
}

void epoch_keys_free(EpochKeys *epochs)
{
    for (size_t i = 0; epochs != NULL && i < epochs->count; i++) {
        forget(&epochs->keys[i]);
    }
    free(epochs);
}

// ---- one file ----

static void subject_of(const EpochInfo *info, uint8_t out[KEY_SUBJECT_LEN])
{
    memcpy(out, "epochkey", 8);
    for (size_t i = 0; i < 8; i++) {
        out[8 + i] = (uint8_t)((uint64_t)info->made_s >> (56 - 8 * i));
    }
}

static void derive_id(const uint8_t key[MASTER_KEY_LEN], uint8_t out[KEY_ID_LEN])
{
    uint8_t check[MASTER_KEY_LEN];
    key_expand(key, STR("stentor epoch check"), check);
    memcpy(out, check, KEY_ID_LEN);
}

static void print_file(const EpochFile *file, char out[EPOCH_FILE_SIZE])
{
    char id[KEY_ID_SIZE];
    char wrapped[2 * WRAPPED_KEY_LEN + 1];
    key_id_print(file->info.id, id);
    hex_encode(file->wrapped, sizeof file->wrapped, wrapped);
    (void)snprintf(
        out, EPOCH_FILE_SIZE, "epoch %u %s %lld %s\n", (unsigned)file->info.number, id,
        (long long)file->info.made_s, wrapped);
}

static bool take_hex(Str text, uint8_t *out, size_t size)
{
    size_t len = 0;
    return hex_decode(text, out, size, &len) && len == size;
}

static bool parse_file(Str text, EpochFile *ret)
{
    Str line = str_trim(text);
    Str word = STR_EMPTY;
    Str number = STR_EMPTY;
    Str id = STR_EMPTY;
    Str made = STR_EMPTY;
    int64_t parsed = 0;
    *ret = (EpochFile){.info = {.number = 0}};
    bool ok = str_split(&line, ' ', &word) && str_eq(word, STR("epoch")) &&
              str_split(&line, ' ', &number) && str_to_i64(number, &parsed) && parsed >= 1 &&
              parsed <= INT32_MAX && str_split(&line, ' ', &id) &&
              take_hex(id, ret->info.id, KEY_ID_LEN) && str_split(&line, ' ', &made) &&
              str_to_i64(made, &ret->info.made_s) && ret->info.made_s >= 0 &&
              take_hex(line, ret->wrapped, sizeof ret->wrapped);
    ret->info.number = (uint32_t)parsed;
    return ok;
}

static bool fail_malformed(Error *err)
{
    return error_set(err, ERROR_CONFIG, "it is no file of an epoch key: damaged or cut off");
}

bool epoch_key_describe(Str text, EpochInfo *ret, uint8_t ret_master_id[KEY_ID_LEN], Error *err)
{
    EpochFile file;
    if (!parse_file(text, &file)) {
        return fail_malformed(err);
    }
    *ret = file.info;
    memcpy(ret_master_id, file.wrapped + 2, KEY_ID_LEN);
    return true;
}

// The key's bytes are the caller's to cleanse.
static bool open_file(
    const MasterKey *master, Str text, EpochFile *ret, uint8_t key[MASTER_KEY_LEN], Error *err)
{
    uint8_t subject[KEY_SUBJECT_LEN];
    uint8_t id[KEY_ID_LEN];
    char name[KEY_ID_SIZE];
    if (!parse_file(text, ret)) {
        return fail_malformed(err);
    }
    subject_of(&ret->info, subject);
    key_id_print(ret->info.id, name);
    if (!seal_unwrap(
            master, subject, ret->info.number, str_of(ret->wrapped, WRAPPED_KEY_LEN), key, err)) {
        if (err != NULL) {
            err->kind = ERROR_CONFIG;
        }
        return error_wrap(err, "epoch key %s", name);
    }
    derive_id(key, id);
    return memcmp(id, ret->info.id, KEY_ID_LEN) == 0 ||
           error_set(err, ERROR_CONFIG, "epoch key %s: the file holds another key", name);
}

static void wrap_file(
    MasterKey *master, EpochFile *file, const uint8_t key[MASTER_KEY_LEN],
    char out[EPOCH_FILE_SIZE])
{
    uint8_t subject[KEY_SUBJECT_LEN];
    subject_of(&file->info, subject);
    seal_wrap_by_master(master, subject, file->info.number, key, file->wrapped);
    print_file(file, out);
}

void epoch_key_make(
    MasterKey *master, uint32_t number, int64_t made_s, char out[EPOCH_FILE_SIZE], EpochInfo *ret)
{
    uint8_t key[MASTER_KEY_LEN];
    EpochFile file = {.info = {.number = number, .made_s = made_s}};
    random_bytes(key, sizeof key);
    derive_id(key, file.info.id);
    wrap_file(master, &file, key, out);
    OPENSSL_cleanse(key, sizeof key);
    *ret = file.info;
}

bool epoch_key_rewrap(MasterKey *master, Str text, char out[EPOCH_FILE_SIZE], Error *err)
{
    uint8_t key[MASTER_KEY_LEN];
    EpochFile file;
    bool ok = open_file(master, text, &file, key, err);
    if (ok) {
        wrap_file(master, &file, key, out);
    }
    OPENSSL_cleanse(key, sizeof key);
    return ok;
}

// ---- those that are held ----

static int find(const EpochKeys *epochs, const uint8_t id[KEY_ID_LEN])
{
    for (size_t i = 0; i < epochs->count; i++) {
        if (memcmp(epochs->keys[i].info.id, id, KEY_ID_LEN) == 0) {
            return (int)i;
        }
    }
    return -1;
}

// Opened again even if it is held: a file that was damaged since is noticed.
static bool open_key(const MasterKey *master, Str text, EpochKey *ret, Error *err)
{
    uint8_t key[MASTER_KEY_LEN];
    EpochFile file;
    bool ok = open_file(master, text, &file, key, err);
    if (ok) {
        *ret = (EpochKey){.info = file.info, .cipher = seal_cipher_new(key)};
        key_expand(key, STR("stentor epoch events"), ret->events);
    }
    OPENSSL_cleanse(key, sizeof key);
    return ok;
}

static bool open_all(
    const MasterKey *master, const Str *texts, size_t count, EpochKeys *made, Error *err)
{
    if (count > EPOCH_KEYS_MAX) {
        return error_set(
            err, ERROR_CONFIG, "%zu epoch keys, more than %d", count, (int)EPOCH_KEYS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        EpochKey *key = &made->keys[made->count];
        if (!open_key(master, texts[i], key, err)) {
            return false;
        }
        made->count++;
    }
    return true;
}

static bool choose(EpochKeys *made, Str current, Error *err)
{
    uint8_t id[KEY_ID_LEN];
    if (current.len == 0) {
        return true;
    }
    if (!take_hex(current, id, sizeof id)) {
        return error_set(err, ERROR_CONFIG, "'current' does not hold the id of an epoch key");
    }
    made->current = find(made, id);
    return made->current >= 0 ||
           error_set(
               err, ERROR_CONFIG, "'current' names the epoch key %.*s, which is not there",
               STR_ARG(current));
}

bool master_epochs_set(MasterKey *master, const Str *texts, size_t count, Str current, Error *err)
{
    EpochKeys *made = epoch_keys_new();
    EpochKeys *held = master_key_epochs(master);
    bool ok = open_all(master, texts, count, made, err) && choose(made, current, err);
    if (ok) {
        EpochKeys before = *held;
        memcpy(held->keys, made->keys, sizeof held->keys);
        held->count = made->count;
        held->current = made->current;
        memcpy(made->keys, before.keys, sizeof made->keys);
        made->count = before.count;
        OPENSSL_cleanse(&before, sizeof before);
    }
    epoch_keys_free(made);
    return ok;
}

size_t master_epoch_count(const MasterKey *master)
{
    return master_key_epochs(master)->count;
}

const EpochInfo *master_epoch_info(const MasterKey *master, size_t index)
{
    return &master_key_epochs(master)->keys[index].info;
}

const EpochInfo *master_epoch_current(const MasterKey *master)
{
    const EpochKeys *epochs = master_key_epochs(master);
    return epochs->current >= 0 ? &epochs->keys[epochs->current].info : NULL;
}

const EpochInfo *master_epoch_find(const MasterKey *master, const uint8_t id[KEY_ID_LEN])
{
    const EpochKeys *epochs = master_key_epochs(master);
    int index = find(epochs, id);
    return index >= 0 ? &epochs->keys[index].info : NULL;
}

EVP_CIPHER_CTX *epoch_key_cipher(const MasterKey *master, const uint8_t id[KEY_ID_LEN])
{
    const EpochKeys *epochs = master_key_epochs(master);
    int index = find(epochs, id);
    return index >= 0 ? epochs->keys[index].cipher : NULL;
}

bool epoch_key_expand(
    const MasterKey *master, const uint8_t id[KEY_ID_LEN], Str info, uint8_t out[MASTER_KEY_LEN])
{
    const EpochKeys *epochs = master_key_epochs(master);
    int index = find(epochs, id);
    if (index >= 0) {
        key_expand(epochs->keys[index].events, info, out);
    }
    return index >= 0;
}

void master_epochs_source(MasterKey *master, EpochsRefresh refresh, void *ctx)
{
    EpochKeys *epochs = master_key_epochs(master);
    epochs->refresh = refresh;
    epochs->ctx = ctx;
}

bool master_epochs_refresh(MasterKey *master, Error *err)
{
    const EpochKeys *epochs = master_key_epochs(master);
    return epochs->refresh == NULL || epochs->refresh(epochs->ctx, master, err);
}
