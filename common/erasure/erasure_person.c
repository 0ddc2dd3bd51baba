// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_person.h"

#include <string.h>

// clang-format off
static const char BY_IDENTITY[] =
    "SELECT recipient_id FROM people.recipients WHERE tenant_id = $1 AND identity_type = $2 AND identity_id = $3 ORDER BY 1";
static const char BY_ADDRESS[] =
    "SELECT DISTINCT recipient_id FROM people.addresses WHERE tenant_id = $1 AND address_hash = ANY ($2::bytea[]) ORDER BY 1";
static const char HASHES[] =
    "SELECT address_hash FROM erasure.hashes_of($1, $2) WHERE NOT is_kept OR $3::boolean";
// clang-format on

bool erasure_find_identity(
    PGconn *pg, const ErasureSearch *search, Arena *arena, const Str **ret, size_t *ret_count,
    Error *err)
{
    const char *params[] = {
        search->tenant, arena_cstr(arena, search->identity_type),
        arena_cstr(arena, search->identity_id)};
    if (!erasure_pg_tenant(pg, search->tenant, err)) {
        return false;
    }
    AUTO(PGresult) rows = erasure_pg_query(pg, BY_IDENTITY, 3, params, err);
    if (rows == NULL) {
        return false;
    }
    size_t count = (size_t)PQntuples(rows);
    Str *ids = arena_array(arena, count + 1, sizeof *ids);
    for (size_t i = 0; i < count; i++) {
        ids[i] = arena_str(arena, str_from(PQgetvalue(rows, (int)i, 0)));
    }
    *ret = ids;
    *ret_count = count;
    return true;
}

static bool find_identity(
    PGconn *pg, const ErasureSearch *search, Arena *arena, ErasurePerson *ret, bool *ret_found,
    Error *err)
{
    const Str *ids = NULL;
    size_t count = 0;
    if (!erasure_find_identity(pg, search, arena, &ids, &count, err)) {
        return false;
    }
    if (count > 1) {
        return error_set(
            err, ERROR_USAGE, "%zu recipients have this identity: name one by --recipient", count);
    }
    *ret_found = count == 1;
    if (*ret_found) {
        ret->recipient_id = arena_cstr(arena, ids[0]);
    }
    return true;
}

// The address's hash under each hash key.
static size_t hash_address(
    const HashKeys *keys, const ErasureSearch *search, Arena *arena, Str *out)
{
    for (size_t i = 0; i < keys->count; i++) {
        uint8_t *hash = arena_alloc(arena, ADDRESS_HASH_LEN);
        address_hash(
            keys->keys[i], str_from(search->tenant), search->channel, search->address, hash);
        out[i] = str_of(hash, ADDRESS_HASH_LEN);
    }
    return keys->count;
}

static bool find_owner(
    PGconn *pg, const ErasureSearch *search, const Str *hashes, size_t count, Arena *arena,
    ErasurePerson *ret, Error *err)
{
    const char *params[] = {search->tenant, erasure_pg_bytes(hashes, count, arena)};
    AUTO(PGresult) rows = erasure_pg_query(pg, BY_ADDRESS, 2, params, err);
    if (rows == NULL) {
        return false;
    }
    if (PQntuples(rows) > 1) {
        return error_set(
            err, ERROR_USAGE,
            "%d recipients have this address, '%s' and '%s' among them: name one by --recipient",
            PQntuples(rows), PQgetvalue(rows, 0, 0), PQgetvalue(rows, 1, 0));
    }
    if (PQntuples(rows) == 1) {
        ret->recipient_id = arena_cstr(arena, str_from(PQgetvalue(rows, 0, 0)));
    }
    return true;
}

static Str subject_of(Str hash_key, DataKeyKind kind, const char *tenant, Str owner, Arena *arena)
{
    uint8_t *subject = arena_alloc(arena, KEY_SUBJECT_LEN);
    key_subject(hash_key, kind, str_from(tenant), owner, subject);
    return str_of(subject, KEY_SUBJECT_LEN);
}

// Under each hash key: of the recipient, and of each address under that key. A hash that another
// key made gives a subject that no key has. Returns how many.
static size_t add_kind(
    const HashKeys *keys, DataKeyKind kind, const ErasurePerson *person, Arena *arena, Str *out)
{
    size_t count = 0;
    for (size_t k = 0; k < keys->count; k++) {
        Str recipient = str_from(person->recipient_id);
        if (recipient.len > 0) {
            out[count++] = subject_of(keys->keys[k], kind, person->tenant, recipient, arena);
        }
        for (size_t i = 0; i < person->hash_count; i++) {
            char hex[2 * ADDRESS_HASH_LEN + 1];
            hex_encode(person->hashes[i].ptr, ADDRESS_HASH_LEN, hex);
            Str owner = str_of(hex, sizeof hex - 1);
            out[count++] = subject_of(keys->keys[k], kind, person->tenant, owner, arena);
        }
    }
    return count;
}

static void add_subjects(const HashKeys *keys, Arena *arena, ErasurePerson *person)
{
    Str *out = arena_array(arena, 2 * keys->count * (person->hash_count + 1), sizeof *out);
    size_t ordinary = add_kind(keys, DATA_KEY_ORDINARY, person, arena, out);
    person->record_count = add_kind(keys, DATA_KEY_RECORD, person, arena, out + ordinary);
    person->subjects = out;
    person->subject_count = ordinary + person->record_count;
}

static bool among(const Str *list, size_t count, Str wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(list[i], wanted)) {
            return true;
        }
    }
    return false;
}

// Those that the recipient has and had, behind the given ones.
static bool add_hashes(
    PGconn *pg, const Str *given, size_t given_count, bool to_read, Arena *arena,
    ErasurePerson *person, Error *err)
{
    const char *params[] = {person->tenant, person->recipient_id, to_read ? "t" : "f"};
    AUTO(PGresult) rows = erasure_pg_query(pg, HASHES, 3, params, err);
    if (rows == NULL) {
        return false;
    }
    Str *out = arena_array(arena, given_count + (size_t)PQntuples(rows) + 1, sizeof *out);
    size_t count = given_count;
    if (given_count > 0) {
        memcpy(out, given, given_count * sizeof *out);
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        Str hash = erasure_pg_get_bytes(rows, i, 0, arena);
        if (hash.len == ADDRESS_HASH_LEN && !among(out, count, hash)) {
            out[count++] = hash;
        }
    }
    person->hashes = out;
    person->hash_count = count;
    return true;
}

bool erasure_find(
    PGconn *pg, const HashKeys *keys, const ErasureSearch *search, Arena *arena, ErasurePerson *ret,
    bool *ret_found, Error *err)
{
    Str given[MASTER_KEYS_MAX];
    size_t given_count = 0;
    *ret = (ErasurePerson){
        .tenant = search->tenant, .recipient_id = arena_cstr(arena, search->recipient_id)};
    *ret_found = true;
    if (!erasure_pg_tenant(pg, search->tenant, err)) {
        return false;
    }
    bool ok = true;
    if (search->identity_id.len > 0) {
        ok = find_identity(pg, search, arena, ret, ret_found, err);
    } else if (search->address.len > 0) {
        given_count = hash_address(keys, search, arena, given);
        ok = find_owner(pg, search, given, given_count, arena, ret, err);
    }
    if (!ok || !*ret_found) {
        return ok;
    }
    if (!add_hashes(pg, given, given_count, search->to_read, arena, ret, err)) {
        return false;
    }
    add_subjects(keys, arena, ret);
    return true;
}
