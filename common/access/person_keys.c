// SPDX-License-Identifier: Apache-2.0
#include "common/access/person_keys.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"

static const char FIND[] =
    "SELECT d.subject, d.generation, d.wrapped,"
    " CASE WHEN k.subject IS NULL THEN coalesce(d.restricted_by, '') ELSE '' END"
    " FROM keys.data_keys d LEFT JOIN erasure.kept_keys k"
    " ON k.subject = d.subject AND k.generation = d.generation AND k.ended_at IS NULL"
    " WHERE d.tenant_id = $1 AND d.subject = ANY ($2::bytea[])"
    " AND (d.wrapped IS NOT NULL OR d.restricted_by IS NOT NULL)";

typedef struct PersonKey {
    uint8_t subject[KEY_SUBJECT_LEN];
    DataKey *key;
} PersonKey;

struct PersonKeys {
    size_t count;
    PersonKey *list;
};

void person_keys_close(PersonKeys *keys)
{
    if (keys == NULL) {
        return;
    }
    for (size_t i = 0; i < keys->count; i++) {
        data_key_free(keys->list[i].key);
    }
    free(keys->list);
    free(keys);
}

static bool take(
    PersonKeys *keys, MasterKey *master, const PGresult *rows, int row, Arena *arena, Error *err)
{
    const char *request = PQgetvalue(rows, row, 3);
    Str subject = erasure_pg_get_bytes(rows, row, 0, arena);
    uint32_t generation = (uint32_t)strtoul(PQgetvalue(rows, row, 1), NULL, 10);
    if (request[0] != '\0') {
        return error_set(
            err, ERROR_PERMANENT, "the person is restricted by the erasure '%s'", request);
    }
    PersonKey *key = &keys->list[keys->count];
    memcpy(key->subject, subject.ptr, KEY_SUBJECT_LEN);
    key->key = data_key_unwrap(
        master, key->subject, generation, erasure_pg_get_bytes(rows, row, 2, arena), err);
    if (key->key == NULL) {
        err->kind = ERROR_CONFIG;
        return error_wrap(err, "data key");
    }
    keys->count++;
    return true;
}

PersonKeys *person_keys_open(PGconn *pg, MasterKey *master, const ErasurePerson *person, Error *err)
{
    Arena *arena = arena_new(0);
    const char *params[] = {
        person->tenant, erasure_pg_bytes(person->subjects, person->subject_count, arena)};
    AUTO(PGresult) rows = erasure_pg_query(pg, FIND, 2, params, err);
    PersonKeys *keys = NULL;
    if (rows != NULL) {
        keys = xcalloc(1, sizeof *keys);
        keys->list = xcalloc((size_t)PQntuples(rows) + 1, sizeof *keys->list);
        for (int i = 0; keys != NULL && i < PQntuples(rows); i++) {
            if (!take(keys, master, rows, i, arena, err)) {
                person_keys_close(keys);
                keys = NULL;
            }
        }
    }
    arena_free(arena);
    return keys;
}

bool person_keys_unseal(
    PersonKeys *keys, Str tenant, Str id, const char *field, const Stentor__V1__Sealed *sealed,
    Arena *arena, Str *ret)
{
    for (size_t i = 0; sealed != NULL && i < keys->count; i++) {
        const PersonKey *key = &keys->list[i];
        if (str_eq(pb_bytes(sealed->key_subject), str_of(key->subject, KEY_SUBJECT_LEN)) &&
            data_key_generation(key->key) == sealed->key_generation) {
            return unseal(key->key, tenant, id, field, sealed, arena, ret, NULL);
        }
    }
    return false;
}

bool person_keys_of_person(const ErasurePerson *person, const Stentor__V1__Sealed *sealed)
{
    for (size_t i = 0; sealed != NULL && i < person->subject_count; i++) {
        if (str_eq(person->subjects[i], pb_bytes(sealed->key_subject))) {
            return true;
        }
    }
    return false;
}
