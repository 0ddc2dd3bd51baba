// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/codec/event.h"
#include "common/erasure/certificate_object.h"
#include "common/session/stream_walk.h"

enum { OBJECT_MAX = 4 * 1024 * 1024 };

// clang-format off
static const char REPLAY[] =
    "SELECT erasure.replay($1, $2, nullif($3, ''), $4, $5, $6, to_timestamp($7::bigint / 1000000.0), $8, $9, to_timestamp($10::bigint / 1000000.0))";
static const char RESTORE[] = "SELECT erasure.restore_certificate($1::bigint, $2, $3, $4, $5::bytea, $6)";
static const char MISSING[] = "SELECT erasure.missing($1::text[], $2::text[])";
static const char OPEN_GATE[] = "SELECT keys.set_gate(NULL)";
// clang-format on

// One erasure as it is known outside.
typedef struct Known {
    struct Known *next;
    const char *id, *tenant, *recipient_id, *keys, *ground, *by;
    const char *kept, *duty;
    int64_t erased_us, kept_until_us;
    // of an object only
    Certificate certificate; // number 0: an entry of AUDIT
} Known;

typedef struct Gathered {
    ErasureReplay *replay;
    Known *first, **last;
} Gathered;

static void add(Gathered *gathered, Known known)
{
    Known *kept = arena_alloc(gathered->replay->arena, sizeof *kept);
    *kept = known;
    kept->next = NULL;
    *gathered->last = kept;
    gathered->last = &kept->next;
    gathered->replay->known++;
}

// ---- AUDIT ----

// "destroyed_1", "destroyed_2" ... one behind the other.
static const char *keys_of(const Stentor__V1__AuditEntry *entry, const char *name, Arena *arena)
{
    const char *keys = "";
    for (size_t i = 0; i < entry->n_details; i++) {
        const Stentor__V1__AuditDetail *detail = entry->details[i];
        if (str_starts(str_from(detail->name), str_from(name))) {
            keys = arena_printf(arena, "%s%s%s", keys, keys[0] != '\0' ? "," : "", detail->value);
        }
    }
    return keys;
}

static const char *detail_of(const Stentor__V1__AuditEntry *entry, const char *name)
{
    for (size_t i = 0; i < entry->n_details; i++) {
        if (strcmp(entry->details[i]->name, name) == 0) {
            return entry->details[i]->value;
        }
    }
    return "";
}

static void on_entry(void *ctx, const BusMessage *message)
{
    Gathered *gathered = ctx;
    Arena *arena = gathered->replay->arena;
    const Stentor__V1__AuditEntry *entry = (const Stentor__V1__AuditEntry *)event_unpack(
        &stentor__v1__audit_entry__descriptor, arena_str(arena, message->payload), arena, NULL);
    if (entry == NULL || entry->meta == NULL ||
        (strcmp(entry->action, "erasure.done") != 0 &&
         strcmp(entry->action, "erasure.records_ended") != 0)) {
        return;
    }
    int64_t until_us = 0;
    (void)clock_parse(str_from(detail_of(entry, "duty_ends")), &until_us);
    Str target = str_from(entry->target);
    add(gathered, (Known){
                      .id = entry->request_id,
                      .tenant = entry->meta->tenant,
                      .recipient_id = str_starts(target, STR("rcp_")) ? entry->target : "",
                      .keys = keys_of(entry, "destroyed_", arena),
                      .kept = keys_of(entry, "kept_", arena),
                      .duty = detail_of(entry, "duty"),
                      .kept_until_us = until_us,
                      .ground = entry->ground,
                      .by = entry->actor,
                      .erased_us = entry->meta->occurred_at_us});
}

// ---- objects ----

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    return buf_append(ctx, bytes, len);
}

// Whoever can write the bucket can put anything there: only what the configured key has signed
// becomes known.
static bool take_object(Gathered *gathered, const char *key, Str object, Error *err)
{
    ErasureReplay *replay = gathered->replay;
    CertificateObject read;
    if (!certificate_object_read(object, replay->arena, &read, err) ||
        !certificate_check_alone(&read.certificate, replay->public_key, err)) {
        return false;
    }
    if (read.certificate.number <= 0) {
        return error_set(err, ERROR_PERMANENT, "it is no certificate");
    }
    read.certificate.stored_as = key;
    add(gathered, (Known){
                      .id = read.certificate.request,
                      .tenant = read.tenant,
                      .recipient_id = read.recipient_id,
                      .keys = read.keys,
                      .kept = read.kept,
                      .duty = read.duty,
                      .kept_until_us = read.kept_until_us,
                      .ground = read.ground,
                      .by = read.by,
                      .erased_us = read.erased_us,
                      .certificate = read.certificate});
    return true;
}

typedef struct Keys {
    Arena *arena;
    const char **names;
    size_t count, room;
} Keys;

static void on_object(void *ctx, Str key, const StorageInfo *info)
{
    Keys *keys = ctx;
    (void)info;
    if (keys->count == keys->room) {
        const char **more = arena_array(keys->arena, 2 * keys->room + 64, sizeof *more);
        if (keys->count > 0) {
            memcpy(more, keys->names, keys->count * sizeof *more);
        }
        keys->names = more;
        keys->room = 2 * keys->room + 64;
    }
    keys->names[keys->count++] = arena_cstr(keys->arena, key);
}

static void pass_over(const ErasureReplay *replay, const char *key, const Error *why)
{
    replay->on_warning(
        replay->ctx, arena_printf(replay->arena, "object '%s' is passed over: %s", key, why->text));
}

// false: storage did not answer. What is not a certificate of ours is passed over.
static bool read_object(Gathered *gathered, const char *key, Error *err)
{
    ErasureReplay *replay = gathered->replay;
    Error why = {0};
    Buf text;
    buf_init(&text, OBJECT_MAX);
    StorageOutcome outcome =
        storage_wait_get(replay->storage, str_from(key), 0, 0, on_piece, &text, err);
    bool ok = outcome != STORAGE_FAILED || text.full;
    if (ok && (outcome != STORAGE_DONE || text.full)) {
        error_set(&why, ERROR_PERMANENT, "it is too long, or not there any more");
        pass_over(replay, key, &why);
    } else if (ok && !take_object(gathered, key, arena_str(replay->arena, buf_view(&text)), &why)) {
        pass_over(replay, key, &why);
    }
    buf_done(&text);
    return ok;
}

static bool read_objects(Gathered *gathered, Error *err)
{
    ErasureReplay *replay = gathered->replay;
    Keys keys = {.arena = replay->arena};
    if (replay->public_key == NULL) {
        replay->on_warning(
            replay->ctx, "STENTOR_ERASURE_KEY_FILE is not set: no certificate in object storage "
                         "is taken, its signature could not be checked");
        return true;
    }
    if (storage_wait_list(replay->storage, STR("erasure/"), on_object, &keys, err) !=
        STORAGE_DONE) {
        return false;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < keys.count; i++) { // ascending: in the order of the chain
        ok = read_object(gathered, keys.names[i], err);
    }
    return ok;
}

static bool gather(ErasureReplay *replay, Gathered *ret, Error *err)
{
    *ret = (Gathered){.replay = replay};
    ret->last = &ret->first;
    return session_walk(replay->session, "AUDIT", "aud.*.erasure", on_entry, ret, err) &&
           (replay->storage == NULL || read_objects(ret, err));
}

// ---- what is missing ----

static bool count_missing(ErasureReplay *replay, const Gathered *gathered, Error *err)
{
    Str *ids = arena_array(replay->arena, replay->known + 1, sizeof *ids);
    Str *all = arena_array(replay->arena, replay->known + 1, sizeof *all);
    Str *keys = arena_array(replay->arena, replay->known + 1, sizeof *keys);
    size_t count = 0;
    size_t every = 0;
    for (const Known *known = gathered->first; known != NULL; known = known->next) {
        bool seen = false;
        all[every] = str_from(known->id);
        keys[every++] = str_from(known->keys);
        for (size_t i = 0; i < count && !seen; i++) {
            seen = str_eq(ids[i], str_from(known->id));
        }
        if (!seen) {
            ids[count++] = str_from(known->id);
        }
    }
    const char *params[] = {
        erasure_pg_texts(all, every, replay->arena), erasure_pg_texts(keys, every, replay->arena)};
    AUTO(PGresult) row = erasure_pg_query(replay->pg, MISSING, 2, params, err);
    if (row == NULL) {
        return false;
    }
    replay->known = count;
    replay->missing = (size_t)strtoull(PQgetvalue(row, 0, 0), NULL, 10);
    return true;
}

bool erasure_replay_check(ErasureReplay *replay, Error *err)
{
    Gathered gathered;
    return gather(replay, &gathered, err) && count_missing(replay, &gathered, err);
}

// ---- again ----

static bool replay_one(ErasureReplay *replay, const Known *known, Error *err)
{
    const char *params[] = {
        known->id,
        known->tenant,
        known->recipient_id,
        known->keys,
        known->ground,
        known->by,
        arena_printf(replay->arena, "%" PRId64, known->erased_us),
        known->kept,
        known->duty,
        arena_printf(replay->arena, "%" PRId64, known->kept_until_us)};
    AUTO(PGresult) done = erasure_pg_query(replay->pg, REPLAY, 10, params, err);
    if (done == NULL) {
        return error_wrap(err, "erasure '%s'", known->id);
    }
    CRASH_POINT("erasure.replayed");
    replay->replayed += PQgetvalue(done, 0, 0)[0] == 't';
    return true;
}

static bool restore_certificate(ErasureReplay *replay, const Certificate *certificate, Error *err)
{
    char hex[2 * ERASURE_SIGNATURE_LEN + 1];
    hex_encode(certificate->signature.ptr, ERASURE_SIGNATURE_LEN, hex);
    const char *params[] = {
        arena_printf(replay->arena, "%" PRId64, certificate->number),
        certificate->request,
        certificate->kind,
        arena_cstr(replay->arena, certificate->body),
        arena_printf(replay->arena, "\\x%s", hex),
        certificate->stored_as};
    AUTO(PGresult) done = erasure_pg_query(replay->pg, RESTORE, 6, params, err);
    replay->certificates += done != NULL && PQgetvalue(done, 0, 0)[0] == 't';
    return done != NULL;
}

// As far as the chain goes.
static bool restore_certificates(ErasureReplay *replay, const Gathered *gathered, Error *err)
{
    const Certificate *before = NULL;
    for (const Known *known = gathered->first; known != NULL; known = known->next) {
        const Certificate *certificate = &known->certificate;
        Error why = {0};
        if (certificate->number == 0) {
            continue;
        }
        if (!certificate_check(certificate, before, replay->public_key, &why)) {
            pass_over(replay, certificate->stored_as, &why);
            continue;
        }
        if (!restore_certificate(replay, certificate, err)) {
            return false;
        }
        before = certificate;
    }
    return true;
}

bool erasure_replay_run(ErasureReplay *replay, Error *err)
{
    Gathered gathered;
    if (!gather(replay, &gathered, err) || !count_missing(replay, &gathered, err)) {
        return false;
    }
    for (const Known *known = gathered.first; known != NULL; known = known->next) {
        if (!replay_one(replay, known, err)) {
            return false;
        }
    }
    if (!restore_certificates(replay, &gathered, err)) {
        return false;
    }
    AUTO(PGresult) opened = erasure_pg_query(replay->pg, OPEN_GATE, 0, NULL, err);
    return opened != NULL;
}
