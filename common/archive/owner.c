// SPDX-License-Identifier: Apache-2.0
#include "common/archive/owner.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/archive/database.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/codec/hash.h"

#define PROBE_KEY "_stentor/probe"

typedef struct Found { // owner.json as it is now
    bool there;
    OwnerMark mark;
    char etag[STORAGE_ETAG_SIZE];
} Found;

// ---- the document ----

static bool take_text(const json_t *root, const char *name, char *out, size_t size)
{
    const json_t *value = json_object_get(root, name);
    return json_is_string(value) &&
           str_to_c(str_of(json_string_value(value), json_string_length(value)), out, size) &&
           out[0] != '\0';
}

bool owner_parse(Str json, OwnerMark *ret, Error *err)
{
    OwnerMark mark = {0};
    json_t *root = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *epoch = json_object_get(root, "epoch");
    bool ok = take_text(root, "installation", mark.installation, sizeof mark.installation) &&
              take_text(root, "token", mark.token, sizeof mark.token) &&
              take_text(root, "database", mark.database, sizeof mark.database) &&
              json_is_integer(epoch) && json_integer_value(epoch) > 0;
    mark.epoch = ok ? json_integer_value(epoch) : 0;
    char at[CLOCK_RFC3339_SIZE];
    (void)take_text(root, "server", mark.server, sizeof mark.server);
    if (take_text(root, "taken_at", at, sizeof at)) {
        (void)clock_parse(str_from(at), &mark.renewed_us);
    }
    json_decref(root);
    if (!ok) {
        return error_set(
            err, ERROR_PERMANENT, "the bucket's '%s' is not an owner's document", OWNER_KEY);
    }
    *ret = mark;
    return true;
}

static void print_mark(const OwnerMark *mark, Buf *out)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(clock_now_us(), at);
    buf_printf(
        out,
        "{\"installation\":\"%s\",\"epoch\":%lld,\"token\":\"%s\",\"database\":\"%s\",\"server\":"
        "\"%s\",\"taken_at\":\"%s\"}\n",
        mark->installation, (long long)mark->epoch, mark->token, mark->database, mark->server, at);
}

// ---- the verdict ----

OwnerVerdict owner_judge(const OwnerRow *row, const OwnerMark *bucket)
{
    const OwnerMark *own = &row->mark;
    if (bucket == NULL) {
        return own->epoch > 0 && row->stored ? OWNER_GONE : OWNER_FREE;
    }
    if (strcmp(bucket->installation, own->installation) != 0) {
        return OWNER_FOREIGN;
    }
    // Killed between Postgres and the bucket: it has the token before this one.
    bool ours = own->token[0] != '\0' && strcmp(bucket->token, own->token) == 0;
    bool before = row->previous_token[0] != '\0' && strcmp(bucket->token, row->previous_token) == 0;
    if (!ours && !before) {
        return OWNER_FORKED;
    }
    return strcmp(bucket->database, own->database) == 0 ? OWNER_OURS : OWNER_MOVED;
}

int64_t owner_watch_us(const OwnerRow *row, const OwnerMark *bucket, int64_t now_us)
{
    int64_t watch_us = INT64_C(1000000) * OWNER_WATCH_S;
    int64_t age_us = now_us > bucket->renewed_us ? now_us - bucket->renewed_us : 0;
    bool same = strcmp(bucket->server, row->mark.server) == 0;
    return same || age_us >= watch_us ? 0 : watch_us - age_us;
}

static bool refuse(
    OwnerVerdict verdict, const OwnerRow *row, const OwnerMark *bucket, const char *url, Error *err)
{
    switch (verdict) {
    case OWNER_FREE:
    case OWNER_OURS:
        return true;
    case OWNER_GONE:
        return error_set(
            err, ERROR_PERMANENT,
            "'%.60s' has no owner.json, but the catalogue names objects in it: it is another "
            "bucket, or was emptied (HINT: STENTOR_STORAGE_URL, or stentor archive adopt)",
            url);
    case OWNER_FOREIGN:
        return error_set(
            err, ERROR_PERMANENT,
            "'%.60s' belongs to the installation '%s' (HINT: another prefix in "
            "STENTOR_STORAGE_URL)",
            url, bucket->installation);
    case OWNER_FORKED:
        return error_set(
            err, ERROR_PERMANENT,
            "epoch %lld of the bucket is not this database's (%lld): this is a copy, or a restored "
            "backup (HINT: if it is the right one: stentor archive adopt)",
            (long long)bucket->epoch, (long long)row->mark.epoch);
    case OWNER_MOVED:
        return error_set(
            err, ERROR_PERMANENT,
            "the bucket was taken by the database '%s', this is '%s' (HINT: after a failover or a "
            "restore: stentor archive adopt)",
            bucket->database, row->mark.database);
    }
    return false;
}

// ---- Postgres ----

static bool stand_still(Archive *archive, Error *err)
{
    Error ignored;
    archive->epoch = 0;
    archive_rollback(archive->pg);
    const char *params[] = {err->text};
    (void)archive_do(
        archive->pg, "archive.standing_still",
        "UPDATE archive.installation SET standing_still = $1 WHERE standing_still IS DISTINCT FROM "
        "$1",
        params, 1, &ignored);
    return false;
}

// clang-format off
static const char row_sql[] =
    "SELECT id, owner_epoch, coalesce(token::text, ''), coalesce(previous_token::text, ''),"
    " (extract(epoch FROM owner_changed_at) * 1000000)::int8,"
    " EXISTS (SELECT FROM archive.objects o WHERE o.state <> 'deleted') OR EXISTS (SELECT FROM archive.segments),"
    " (SELECT system_identifier FROM pg_control_system()) || '/' || (SELECT timeline_id FROM pg_control_checkpoint()) || '/'"
    " || (SELECT oid FROM pg_database WHERE datname = current_database()),"
    " (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8"
    " FROM archive.installation";

// Units are the new epoch's from now on; what the former epoch still does fails by it.
static const char take_sql[] =
    "WITH taken AS (UPDATE archive.installation SET owner_epoch = $1, token = $2, previous_token = nullif($3, '')::uuid, storage = $4,"
    "  conditions = $5, standing_still = NULL, owner_changed_at = CASE WHEN $6 THEN now() ELSE owner_changed_at END"
    "  WHERE owner_epoch = $7 RETURNING 1),"
    " moved AS (UPDATE archive.units SET owner_epoch = $1 FROM taken WHERE owner_epoch <> $1 RETURNING 1)"
    " SELECT count(*) FROM taken";
// clang-format on

static bool read_row(Archive *archive, OwnerRow *ret, Error *err)
{
    AUTO(PGresult) rows = archive_ask(archive->pg, "archive.installation", row_sql, NULL, 0, err);
    if (rows == NULL) {
        return false;
    }
    *ret = (OwnerRow){0};
    (void)snprintf(ret->mark.installation, STORAGE_OWNER_SIZE, "%s", archive_text(rows, 0, 0));
    ret->mark.epoch = archive_number(rows, 0, 1);
    (void)snprintf(ret->mark.token, sizeof ret->mark.token, "%s", archive_text(rows, 0, 2));
    (void)snprintf(ret->previous_token, sizeof ret->previous_token, "%s", archive_text(rows, 0, 3));
    archive->owner_changed_us = archive_number(rows, 0, 4);
    ret->stored = archive_text(rows, 0, 5)[0] == 't';
    (void)snprintf(ret->mark.database, OWNER_DATABASE_SIZE, "%s", archive_text(rows, 0, 6));
    (void)snprintf(ret->mark.server, OWNER_SERVER_SIZE, "%s", archive_text(rows, 0, 7));
    return true;
}

// ---- the bucket ----

static bool keep_piece(void *ctx, const void *bytes, size_t len)
{
    return buf_append(ctx, bytes, len);
}

static bool read_bucket(Archive *archive, Found *ret, Error *err)
{
    *ret = (Found){0};
    StorageInfo info = {0};
    StorageOutcome outcome = storage_wait_head(archive->storage, STR(OWNER_KEY), &info, err);
    if (outcome == STORAGE_ABSENT) {
        return true;
    }
    Buf text;
    buf_init(&text, OWNER_JSON_MAX);
    if (outcome == STORAGE_DONE) {
        outcome = storage_wait_get(archive->storage, STR(OWNER_KEY), 0, 0, keep_piece, &text, err);
    }
    bool ok = outcome == STORAGE_DONE && owner_parse(buf_view(&text), &ret->mark, err);
    if (outcome == STORAGE_ABSENT) {
        error_set(err, ERROR_TRANSIENT, "'%s' went while it was read", OWNER_KEY);
    }
    buf_done(&text);
    ret->there = outcome == STORAGE_DONE; // whatever it says
    memcpy(ret->etag, info.etag, sizeof ret->etag);
    return ok;
}

static StorageOutcome put_text(
    Archive *archive, const char *key, Str text, StorageCondition condition, const char *etag,
    Error *err)
{
    StoragePut put = {
        .key = str_from(key),
        .fd = -1,
        .bytes = text.ptr,
        .len = text.len,
        .condition = condition,
        .etag = etag,
        .installation = archive->installation};
    sha256(text, put.sha256);
    return storage_wait_put(archive->storage, &put, NULL, err);
}

// Whether the server refuses a second PUT that must not overwrite.
static bool probe(Archive *archive, Error *err)
{
    StorageOutcome first = put_text(archive, PROBE_KEY, STR("first"), STORAGE_ALWAYS, NULL, err);
    if (first != STORAGE_DONE) {
        return false;
    }
    StorageOutcome second =
        put_text(archive, PROBE_KEY, STR("second"), STORAGE_IF_ABSENT, NULL, err);
    archive->conditions = second == STORAGE_PRECONDITION;
    return (second == STORAGE_PRECONDITION || second == STORAGE_DONE) &&
           storage_wait_delete(archive->storage, STR(PROBE_KEY), NULL, err) == STORAGE_DONE;
}

static bool put_mark(Archive *archive, const OwnerMark *mark, const Found *found, Error *err)
{
    Buf text;
    buf_init(&text, OWNER_JSON_MAX);
    print_mark(mark, &text);
    StorageCondition condition = found->there ? STORAGE_IF_ETAG : STORAGE_IF_ABSENT;
    StorageOutcome outcome =
        put_text(archive, OWNER_KEY, buf_view(&text), condition, found->etag, err);
    buf_done(&text);
    if (outcome == STORAGE_PRECONDITION) {
        error_set(
            err, ERROR_PERMANENT,
            "another database took the bucket in the same moment (HINT: "
            "stentor archive adopt on the right one)");
        return stand_still(archive, err);
    }
    return outcome == STORAGE_DONE;
}

// ---- taking ----

static bool commit_row(
    Archive *archive, const OwnerRow *row, const OwnerMark *mark, const Found *found, bool changed,
    Error *err)
{
    char epochs[2][24];
    (void)snprintf(epochs[0], sizeof epochs[0], "%lld", (long long)mark->epoch);
    (void)snprintf(epochs[1], sizeof epochs[1], "%lld", (long long)row->mark.epoch);
    const char *params[] = {
        epochs[0],
        mark->token,
        found->there ? found->mark.token : row->mark.token,
        archive->options->storage.url,
        archive->conditions ? "t" : "f",
        changed ? "t" : "f",
        epochs[1]};
    AUTO(PGresult) rows = archive_ask(archive->pg, "archive.take", take_sql, params, 7, err);
    return rows != NULL &&
           (archive_number(rows, 0, 0) == 1 ||
            error_set(err, ERROR_TRANSIENT, "another process takes the bucket at this moment"));
}

static void new_token(char out[40])
{
    uint8_t bytes[16];
    char hex[33];
    random_bytes(bytes, sizeof bytes);
    hex_encode(bytes, sizeof bytes, hex);
    (void)snprintf(
        out, 40, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17, hex + 20);
}

// Killed between the two: the bucket has the token before, and the next process takes it again.
// tests/integration/archive/test_units_crash.py
static bool store_mark(
    Archive *archive, const OwnerRow *row, const OwnerMark *mark, const Found *found, bool changed,
    Error *err)
{
    if (!commit_row(archive, row, mark, found, changed, err)) {
        return false;
    }
    CRASH_POINT("archiver.owner_committed");
    if (!put_mark(archive, mark, found, err)) {
        return false;
    }
    CRASH_POINT("archiver.owner_put");
    archive->epoch = mark->epoch;
    (void)snprintf(archive->epoch_text, sizeof archive->epoch_text, "%lld", (long long)mark->epoch);
    memcpy(archive->token, mark->token, sizeof archive->token);
    archive->owner_changed_us = changed ? clock_now_us() : archive->owner_changed_us;
    archive->renew_us = clock_mono_us() + INT64_C(1000000) * OWNER_RENEW_S;
    return true;
}

static bool take(
    Archive *archive, const OwnerRow *row, const Found *found, bool changed, Error *err)
{
    OwnerMark mark = row->mark;
    int64_t newest =
        found->there && found->mark.epoch > mark.epoch ? found->mark.epoch : mark.epoch;
    mark.epoch = newest + 1;
    new_token(mark.token);
    return store_mark(archive, row, &mark, found, changed, err);
}

// A copy of the disk has the same token as the server that it was made of, which renews it.
static bool watch(Archive *archive, const OwnerRow *row, Found *found, Error *err)
{
    OwnerMark first = found->mark;
    int64_t until_us = clock_mono_us() + owner_watch_us(row, &first, clock_now_us());
    while (clock_mono_us() < until_us) {
        struct timespec pause = {.tv_sec = 1};
        (void)nanosleep(&pause, NULL);
        if (!read_bucket(archive, found, err)) {
            return false;
        }
        if (!found->there || strcmp(found->mark.token, first.token) != 0) {
            error_set(
                err, ERROR_PERMANENT,
                "another server works with this database's bucket: this one is a copy of its disk "
                "(HINT: another STENTOR_STORAGE_URL for the copy; if this is the right one: "
                "stentor archive adopt)");
            return stand_still(archive, err);
        }
    }
    return true;
}

bool owner_take(Archive *archive, bool adopt, Error *err)
{
    archive->epoch = 0;
    OwnerRow row;
    Found found;
    if (!read_row(archive, &row, err)) {
        return false;
    }
    memcpy(archive->installation, row.mark.installation, STORAGE_OWNER_SIZE);
    if (!read_bucket(archive, &found, err) && !(adopt && err->kind == ERROR_PERMANENT)) {
        return err->kind == ERROR_PERMANENT ? stand_still(archive, err) : false;
    }
    OwnerVerdict verdict = owner_judge(&row, found.there ? &found.mark : NULL);
    if (!adopt && !refuse(verdict, &row, &found.mark, archive->options->storage.url, err)) {
        return stand_still(archive, err);
    }
    if (verdict == OWNER_OURS && !adopt && !watch(archive, &row, &found, err)) {
        return false;
    }
    return probe(archive, err) && take(archive, &row, &found, verdict != OWNER_OURS, err);
}

static bool is_taken(Archive *archive, const Found *found, Error *err)
{
    if (found->there && strcmp(found->mark.token, archive->token) == 0) {
        return true;
    }
    error_set(
        err, ERROR_PERMANENT,
        "the bucket was taken by '%s' under epoch %lld (HINT: if this is the right database: "
        "stentor archive adopt)",
        found->there ? found->mark.installation : "no owner", (long long)found->mark.epoch);
    return stand_still(archive, err);
}

bool owner_check(Archive *archive, Error *err)
{
    Found found;
    if (!read_bucket(archive, &found, err)) {
        return err->kind == ERROR_PERMANENT ? stand_still(archive, err) : false;
    }
    return is_taken(archive, &found, err);
}

bool owner_renew(Archive *archive, Error *err)
{
    OwnerRow row;
    Found found;
    if (archive->epoch == 0 || clock_mono_us() < archive->renew_us ||
        PQtransactionStatus(archive->pg) != PQTRANS_IDLE) {
        return true;
    }
    archive->renew_us = clock_mono_us() + INT64_C(1000000) * OWNER_RENEW_S;
    if (!read_row(archive, &row, err)) {
        return false;
    }
    if (!read_bucket(archive, &found, err)) {
        return err->kind == ERROR_PERMANENT ? stand_still(archive, err) : false;
    }
    if (!is_taken(archive, &found, err)) {
        return false;
    }
    OwnerMark mark = row.mark;
    new_token(mark.token);
    return store_mark(archive, &row, &mark, &found, false, err);
}

bool owner_may_delete(Archive *archive, int64_t now_us, Error *err)
{
    int64_t since_us = now_us - archive->owner_changed_us;
    if (!archive->conditions && since_us < INT64_C(3600000000) * OWNER_DELETE_HOURS) {
        return error_set(
            err, ERROR_TRANSIENT,
            "nothing is deleted within %d hours after the bucket's owner changed: its server keeps "
            "no conditions",
            OWNER_DELETE_HOURS);
    }
    return owner_check(archive, err);
}
