// SPDX-License-Identifier: Apache-2.0
// The keys that an installation works with, by id and check value: kept in Postgres
// (keys.master_keys) and in CONFIG, and compared with the master key file by every program that
// loads it, before it works. A wrong file finds nothing rather than being refused: suppressions and
// addresses are looked up by keyed hashes. Pure.
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "common/base/arena.h"
#include "common/codec/master_key.h"

enum { KEY_REGISTER_MAX = 64 };

typedef struct KeyRow {
    KeyInfo info;
    bool retired; // nothing hangs on it: a file need not hold it
} KeyRow;

typedef struct KeyRegister {
    KeyRow rows[KEY_REGISTER_MAX];
    size_t count;
} KeyRegister;

// May a program work with this file? Its current keys must be registered and not retired, and it
// must hold every key that is. ERROR_CONFIG says which ids were expected and given, and what to do.
// Notes the oldest hash key in use (master_oldest_hash_key).
bool key_register_check(const KeyRegister *keys, MasterKey *master, Error *err);
// What `stentor migrate` does: adds the file's current keys that are not there. The file must hold
// every key that is registered and not retired, as above; into an empty register any file is taken.
bool key_register_learn(KeyRegister *keys, const MasterKey *master, Error *err);
bool key_register_add(KeyRegister *keys, const KeyInfo *info, bool retired, Error *err);
bool key_register_same(const KeyRegister *a, const KeyRegister *b);

// As the entry cfg.keys.platform.master of CONFIG.
#define KEY_REGISTER_KIND "keys"
#define KEY_REGISTER_TENANT "platform"
#define KEY_REGISTER_KEY "master"
// Borrows the register.
const ProtobufCMessage *key_register_message(const KeyRegister *keys, Arena *arena);
bool key_register_read(Str payload, Arena *arena, KeyRegister *ret, Error *err);
