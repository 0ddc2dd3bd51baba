// SPDX-License-Identifier: Apache-2.0
#include "common/codec/key_register.h"

#include <string.h>

#include "common/codec/event.h"
#include "stentor/v1/config.pb-c.h"

static const KeyRow *find_row(const KeyRegister *keys, const KeyInfo *info)
{
    for (size_t i = 0; i < keys->count; i++) {
        const KeyInfo *known = &keys->rows[i].info;
        if (known->kind == info->kind && memcmp(known->check, info->check, KEY_CHECK_LEN) == 0) {
            return &keys->rows[i];
        }
    }
    return NULL;
}

// The newest of a kind that is not retired: what an operator would look for.
static const KeyRow *last_row(const KeyRegister *keys, KeyKind kind)
{
    const KeyRow *last = NULL;
    for (size_t i = 0; i < keys->count; i++) {
        if (keys->rows[i].info.kind == kind && !keys->rows[i].retired) {
            last = &keys->rows[i];
        }
    }
    return last;
}

bool key_register_add(KeyRegister *keys, const KeyInfo *info, bool retired, Error *err)
{
    if (keys->count == KEY_REGISTER_MAX) {
        return error_set(
            err, ERROR_CONFIG, "more than %d master and hash keys are registered",
            (int)KEY_REGISTER_MAX);
    }
    keys->rows[keys->count++] = (KeyRow){.info = *info, .retired = retired};
    return true;
}

bool key_register_same(const KeyRegister *a, const KeyRegister *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const KeyRow *other = find_row(b, &a->rows[i].info);
        same = other != NULL && other->retired == a->rows[i].retired;
    }
    return same;
}

// ---- comparing ----

static bool fail_missing(
    const KeyRegister *keys, const MasterKey *master, const KeyRow *row, Error *err)
{
    const char *kind = key_kind_name(row->info.kind);
    const KeyInfo *current = master_key_info(master, row->info.kind, 0);
    char expected[KEY_ID_SIZE];
    char given[KEY_ID_SIZE];
    key_id_print(row->info.check, expected);
    key_id_print(current->check, given);
    if (find_row(keys, current) == NULL) {
        return error_set(
            err, ERROR_CONFIG,
            "expected the %s key %s, given %s: another installation's file (HINT: correct "
            "STENTOR_MASTER_KEY_FILE, then stentor doctor)",
            kind, expected, given);
    }
    return error_set(
        err, ERROR_CONFIG,
        "lacks the %s key %s, which is still in use (HINT: put its line back; stentor keys status)",
        kind, expected);
}

// Every key that is in use.
static bool holds_all(const KeyRegister *keys, const MasterKey *master, Error *err)
{
    for (size_t i = 0; i < keys->count; i++) {
        const KeyRow *row = &keys->rows[i];
        if (!row->retired && master_key_find(master, &row->info) == NULL) {
            return fail_missing(keys, master, row, err);
        }
    }
    return true;
}

static bool fail_retired(const KeyInfo *info, Error *err)
{
    char id[KEY_ID_SIZE];
    key_id_print(info->check, id);
    return error_set(
        err, ERROR_CONFIG,
        "its current %s key %s was retired (HINT: stentor master-key use ID prints it with another "
        "one first)",
        key_kind_name(info->kind), id);
}

static bool fail_unknown(const KeyRegister *keys, const KeyInfo *info, Error *err)
{
    const KeyRow *last = last_row(keys, info->kind);
    char given[KEY_ID_SIZE];
    char expected[KEY_ID_SIZE] = "none";
    key_id_print(info->check, given);
    if (last != NULL) {
        key_id_print(last->info.check, expected);
    }
    return error_set(
        err, ERROR_CONFIG,
        "its current %s key %s is not registered, but %s is (HINT: STENTOR_MASTER_KEY_FILE=FILE "
        "stentor migrate)",
        key_kind_name(info->kind), given, expected);
}

// In the register's order, which is that in which they came.
static void note_oldest(const KeyRegister *keys, MasterKey *master)
{
    for (size_t i = keys->count; i > 0; i--) {
        const KeyRow *row = &keys->rows[i - 1];
        if (row->info.kind == KEY_HASH && !row->retired) {
            master_key_note_oldest(master, &row->info);
        }
    }
}

bool key_register_check(const KeyRegister *keys, MasterKey *master, Error *err)
{
    if (keys->count == 0) {
        return error_set(
            err, ERROR_CONFIG,
            "no master key is registered to compare it with (HINT: STENTOR_MASTER_KEY_FILE=FILE "
            "stentor migrate)");
    }
    if (!holds_all(keys, master, err)) {
        return false;
    }
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        const KeyInfo *info = master_key_info(master, kind, 0);
        const KeyRow *row = find_row(keys, info);
        if (row == NULL) {
            return fail_unknown(keys, info, err);
        }
        if (row->retired) {
            return fail_retired(info, err);
        }
    }
    note_oldest(keys, master);
    return true;
}

bool key_register_learn(KeyRegister *keys, const MasterKey *master, Error *err)
{
    if (!holds_all(keys, master, err)) {
        return false;
    }
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        const KeyInfo *info = master_key_info(master, kind, 0);
        const KeyRow *row = find_row(keys, info);
        if (row != NULL && row->retired) {
            return fail_retired(info, err);
        }
        if (row == NULL && !key_register_add(keys, info, false, err)) {
            return false;
        }
    }
    return true;
}

// ---- in CONFIG ----

const ProtobufCMessage *key_register_message(const KeyRegister *keys, Arena *arena)
{
    Stentor__V1__MasterKeys *message = arena_alloc(arena, sizeof *message);
    stentor__v1__master_keys__init(message);
    message->keys = arena_array(arena, keys->count + 1, sizeof(Stentor__V1__RegisteredKey *));
    for (size_t i = 0; i < keys->count; i++) {
        Stentor__V1__RegisteredKey *key = arena_alloc(arena, sizeof *key);
        stentor__v1__registered_key__init(key);
        key->kind = keys->rows[i].info.kind;
        key->check = pb_data(str_of(keys->rows[i].info.check, KEY_CHECK_LEN));
        key->retired = keys->rows[i].retired;
        message->keys[message->n_keys++] = key;
    }
    return &message->base;
}

bool key_register_read(Str payload, Arena *arena, KeyRegister *ret, Error *err)
{
    const Stentor__V1__MasterKeys *message = (const Stentor__V1__MasterKeys *)event_unpack(
        &stentor__v1__master_keys__descriptor, payload, arena, err);
    KeyRegister keys = {.count = 0};
    if (message == NULL) {
        return false;
    }
    for (size_t i = 0; i < message->n_keys; i++) {
        const Stentor__V1__RegisteredKey *key = message->keys[i];
        KeyInfo info = {.kind = (KeyKind)key->kind};
        if (key_kind_name(info.kind)[0] == '\0' || key->check.len != KEY_CHECK_LEN) {
            return error_set(
                err, ERROR_PERMANENT, "keys[%zu]: unknown kind, or not a check value", i);
        }
        memcpy(info.check, key->check.data, KEY_CHECK_LEN);
        if (!key_register_add(&keys, &info, key->retired, err)) {
            return false;
        }
    }
    *ret = keys;
    return true;
}
