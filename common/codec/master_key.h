// SPDX-License-Identifier: Apache-2.0
// The master key file: master keys, which wrap data keys and from which tenants' and opt-out keys
// are derived, and hash keys, under which addresses and key subjects are hashed. The first of a
// kind is the current one; the others are older (or next) ones that still open and still find. A
// key's id is the beginning of its check value, so no id can be given to the wrong key. Neither
// lets a reader compute a key or anything that is made with it. Pure.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum {
    MASTER_KEY_LEN = 32,
    KEY_ID_LEN = 4,
    KEY_ID_SIZE = 2 * KEY_ID_LEN + 1, // as text, with NUL
    KEY_CHECK_LEN = 32,
    MASTER_KEYS_MAX = 4,         // of a kind, in one file
    MASTER_KEY_FILE_MAX = 4096,  // bytes
    MASTER_KEY_FILE_SIZE = 2048, // what a file printed by master_key_print needs at most, with NUL
};

// Frozen: registered in Postgres and CONFIG by name and number. What wraps a data key has numbers
// of its own (WrapperKind, seal.h).
typedef enum KeyKind { KEY_MASTER = 1, KEY_HASH = 2 } KeyKind;

typedef struct KeyInfo {
    KeyKind kind;
    uint8_t
        check[KEY_CHECK_LEN]; // HKDF or HMAC of the key over "stentor check"; begins with the id
} KeyInfo;

typedef struct MasterKey MasterKey;

const char *key_kind_name(KeyKind kind); // "master", "hash"
bool key_kind_from_name(Str name, KeyKind *ret);
void key_id_print(
    const uint8_t *id, char out[KEY_ID_SIZE]); // the first KEY_ID_LEN bytes of a check value

// Lines "master <id> <64 hex digits>" and "hash <id> <64 hex digits>"; empty ones and those that
// begin with '#' are passed over. Or two lines of 64 hex digits: one master key, one hash key.
// ERROR_CONFIG names the line.
MasterKey *master_key_parse(Str text, Error *err);
void master_key_free(MasterKey *master); // cleansed; NULL-safe
// false: its memory may be written to swap, RLIMIT_MEMLOCK is too small.
bool master_key_is_locked(const MasterKey *master);
// A file of the second form with one new random key of each kind; master_key_print makes the first
// of it.
void master_key_generate(char out[132]);
// The same keys as a file: a new random one of `add` (0: none) behind the others of its kind,
// `first` (NULL: as they are) before them, without `without` (NULL: with all). ERROR_CONFIG: there
// is none such, it is the current one, or the file is full.
typedef struct MasterKeyChange {
    int add; // a KeyKind
    const char *first;
    const char *without;
} MasterKeyChange;
bool master_key_print(
    const MasterKey *master, const MasterKeyChange *change, char out[MASTER_KEY_FILE_SIZE],
    Error *err);

// What the file holds; index 0 is the current one.
size_t master_key_count(const MasterKey *master, KeyKind kind);
const KeyInfo *master_key_info(const MasterKey *master, KeyKind kind, size_t index);
const KeyInfo *master_key_find(
    const MasterKey *master, const KeyInfo *wanted); // NULL: not in the file

Str master_hash_key(const MasterKey *master); // the current one, 32 bytes
Str master_hash_key_at(const MasterKey *master, size_t index);
// All of them, the current one first: new entries are made under that one, and found under any.
typedef struct HashKeys {
    Str keys[MASTER_KEYS_MAX];
    size_t count;
} HashKeys;
HashKeys master_hash_keys(const MasterKey *master);
// The one that ids are derived with, so that a rotation changes no id: of those in use
// the one that was registered first (key_register_check notes it); else the current one.
Str master_oldest_hash_key(const MasterKey *master);
void master_key_note_oldest(MasterKey *master, const KeyInfo *hash_key);
// A key for one purpose ("stentor opt-out"; at most 63 bytes, no '|'), derived by HKDF from the
// master key of that index: who learns it learns nothing of the master key.
void master_key_derive(
    const MasterKey *master, size_t index, const char *purpose, uint8_t out[MASTER_KEY_LEN]);
