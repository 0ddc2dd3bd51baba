// SPDX-License-Identifier: Apache-2.0
#include "common/campaign/batch_chunk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/codec/body.h"
#include "common/codec/event.h"

enum {
    VERSION = 2,
    HEAD_LEN = 3, // version, count as two bytes, the higher first
    FIELDS = 7,
    FIELDS_1 = 5, // of version 1, which said nothing of consent
    TIME_SIZE = 24,
    LENGTH_BYTES_MAX = 5,
};

_Static_assert((int)CHUNK_BYTES_MAX <= (int)BODY_BYTES_MAX, "a chunk is a body frame");
_Static_assert(CHUNK_MEMBERS_MAX <= UINT16_MAX, "the count has two bytes");

// The fields in the order in which they are written; the time of the consent as text, for it is
// rare and an empty one takes a byte.
static void list_fields(Member *member, Str *time, Str *ret[FIELDS])
{
    ret[0] = &member->to;
    ret[1] = &member->name;
    ret[2] = &member->recipient_id;
    ret[3] = &member->locale;
    ret[4] = &member->variables;
    ret[5] = &member->consent_source;
    ret[6] = time;
}

size_t chunk_member_bytes(const Member *member)
{
    return member->to.len + member->name.len + member->recipient_id.len + member->locale.len +
           member->variables.len + member->consent_source.len + TIME_SIZE +
           FIELDS * LENGTH_BYTES_MAX;
}

// ---- plain ----

static bool read_length(Str *rest, size_t *ret)
{
    size_t length = 0;
    for (size_t i = 0; i < LENGTH_BYTES_MAX && i < rest->len; i++) {
        uint8_t byte = (uint8_t)rest->ptr[i];
        length |= (size_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            *rest = str_slice(*rest, i + 1, rest->len);
            *ret = length;
            return true;
        }
    }
    return false;
}

Str chunk_encode(const Member *members, size_t count, Arena *arena)
{
    size_t room = HEAD_LEN;
    for (size_t i = 0; i < count; i++) {
        room += chunk_member_bytes(&members[i]);
    }
    char *text = arena_alloc(arena, room);
    char *at = text;
    *at++ = VERSION;
    *at++ = (char)(count >> 8);
    *at++ = (char)(count & 0xff);
    for (size_t i = 0; i < count; i++) {
        Member member = members[i];
        char digits[TIME_SIZE];
        Str time = STR_EMPTY;
        if (member.consent_at_us != 0) {
            int len = snprintf(digits, sizeof digits, "%" PRId64, member.consent_at_us);
            time = str_of(digits, (size_t)len);
        }
        Str *fields[FIELDS];
        list_fields(&member, &time, fields);
        for (size_t f = 0; f < FIELDS; f++) {
            // Seven bits a byte, the lower first; the highest bit says that more follow.
            size_t length = fields[f]->len;
            for (; length >= 0x80; length >>= 7) {
                *at++ = (char)(length | 0x80);
            }
            *at++ = (char)length;
            memcpy(at, fields[f]->len > 0 ? fields[f]->ptr : "", fields[f]->len);
            at += fields[f]->len;
        }
    }
    return str_of(text, (size_t)(at - text));
}

static bool read_member(Str *rest, size_t count, Member *ret)
{
    Str time = STR_EMPTY;
    Str *fields[FIELDS];
    list_fields(ret, &time, fields);
    for (size_t f = 0; f < count; f++) {
        size_t length = 0;
        if (!read_length(rest, &length) || length > rest->len) {
            return false;
        }
        *fields[f] = str_slice(*rest, 0, length);
        *rest = str_slice(*rest, length, rest->len);
    }
    return time.len == 0 || str_to_i64(time, &ret->consent_at_us);
}

// A batch that waited while Stentor was upgraded has chunks of the version before. 0: unknown.
static size_t fields_of(Str plain)
{
    char version = '\0';
    if (plain.len >= HEAD_LEN) {
        version = plain.ptr[0];
    }
    return version == VERSION ? FIELDS : version == 1 ? FIELDS_1 : 0;
}

bool chunk_decode(Str plain, Arena *arena, Member **ret_members, size_t *ret_count, Error *err)
{
    size_t fields = fields_of(plain);
    if (fields == 0) {
        return error_set(err, ERROR_PERMANENT, "not a chunk of members");
    }
    size_t count = (size_t)(uint8_t)plain.ptr[1] << 8 | (uint8_t)plain.ptr[2];
    Str rest = str_slice(plain, HEAD_LEN, plain.len);
    if (count == 0 || count > CHUNK_MEMBERS_MAX || count * fields > rest.len) {
        return error_set(
            err, ERROR_PERMANENT, "a chunk of %zu members in %zu bytes", count, rest.len);
    }
    Member *members = arena_array(arena, count, sizeof *members);
    for (size_t i = 0; i < count; i++) {
        if (!read_member(&rest, fields, &members[i])) {
            return error_set(err, ERROR_PERMANENT, "member %zu of a chunk is cut off", i);
        }
    }
    if (rest.len > 0) {
        return error_set(err, ERROR_PERMANENT, "a chunk has %zu bytes too many", rest.len);
    }
    *ret_members = members;
    *ret_count = count;
    return true;
}

// ---- sealed ----

bool chunk_seal_text(
    DataKey *key, Str tenant, Str batch_id, const char *field, Str plain, Arena *arena,
    Str *ret_blob, Error *err)
{
    Stentor__V1__Sealed *sealed = seal(key, tenant, batch_id, field, plain, arena);
    return event_pack(&sealed->base, arena, ret_blob, err);
}

bool chunk_unseal_text(
    DataKey *key, Str tenant, Str batch_id, const char *field, Str blob, Arena *arena,
    Str *ret_plain, Error *err)
{
    const Stentor__V1__Sealed *sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, blob, arena, err);
    return sealed != NULL && unseal(key, tenant, batch_id, field, sealed, arena, ret_plain, err);
}

static const char *field_of(const ChunkPlace *place, Arena *arena)
{
    return arena_printf(
        arena, "members/%lld/%lld", (long long)place->part, (long long)place->ordinal);
}

bool chunk_pack(
    DataKey *key, const ChunkPlace *place, const Member *members, size_t count, Arena *arena,
    Str *ret_blob, Error *err)
{
    assert(count > 0 && count <= CHUNK_MEMBERS_MAX);
    Str frame = STR_EMPTY;
    return body_pack(NULL, chunk_encode(members, count, arena), arena, &frame, err) &&
           chunk_seal_text(
               key, place->tenant, place->batch_id, field_of(place, arena), frame, arena, ret_blob,
               err);
}

bool chunk_unpack(
    DataKey *key, const ChunkPlace *place, Str blob, Arena *arena, Member **ret_members,
    size_t *ret_count, Error *err)
{
    Str frame = STR_EMPTY;
    Str plain = STR_EMPTY;
    return chunk_unseal_text(
               key, place->tenant, place->batch_id, field_of(place, arena), blob, arena, &frame,
               err) &&
           body_unpack(NULL, frame, arena, &plain, err) &&
           chunk_decode(plain, arena, ret_members, ret_count, err);
}
