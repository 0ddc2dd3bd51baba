// SPDX-License-Identifier: Apache-2.0
// Epochs: the next one in three durable steps (its file, `current`, Postgres), the last in two (its
// file, Postgres). Killed between them, the next turn sees from the folder and the table how far it
// came.
#include <string.h>

#include "common/base/crash.h"
#include "common/db/db.h"
#include "common/db/epochs.h"
#include "common/keywork/internal.h"

// Epochs that cannot be emptied: something is wrong, and more of them do not help.
enum { UNENDED_MAX = EPOCH_KEYS_MAX / 2 };

typedef struct Epochs {
    EpochRows rows;
    const EpochRow *open; // NULL: none is
    int64_t last;         // the highest number that was ever given
    int64_t asked;        // rotation beyond this one is asked for; -1: none is
} Epochs;

static bool load(Keywork *work, Epochs *ret, Error *err)
{
    if (!epochs_load(work->pg, &ret->rows, err)) {
        return false;
    }
    CLEANUP(keywork_clear)
    PGresult *rows = keywork_query(
        work,
        "SELECT coalesce((SELECT max(number) FROM keys.epochs), 0),"
        " coalesce((SELECT rotate_number FROM keys.work), -1)",
        err);
    if (rows == NULL) {
        return false;
    }
    ret->last = db_get_int(rows, 0, 0);
    ret->asked = db_get_int(rows, 0, 1);
    ret->open = NULL;
    for (size_t i = 0; i < ret->rows.count; i++) {
        ret->open = ret->rows.rows[i].open ? &ret->rows.rows[i] : ret->open;
    }
    return true;
}

static bool call(
    Keywork *work, const char *sql, uint32_t number, int64_t now_us, const uint8_t *id, bool *ret,
    Error *err)
{
    char text[16];
    Arena *arena = arena_new(0);
    (void)snprintf(text, sizeof text, "%u", (unsigned)number);
    const char *const values[] = {text, keywork_time(arena, now_us), (const char *)id};
    const int lengths[] = {0, 0, KEY_ID_LEN};
    CLEANUP(keywork_clear)
    PGresult *rows = keywork_ask(work, sql, id != NULL ? 3 : 2, values, lengths, err);
    arena_free(arena);
    if (rows != NULL && ret != NULL) {
        *ret = db_get_int(rows, 0, 0) != 0;
    }
    return rows != NULL;
}

// ---- the next one ----

static bool is_same(const EpochRow *row, const EpochInfo *info)
{
    return memcmp(row->id, info->id, KEY_ID_LEN) == 0;
}

static bool open_epoch(
    Keywork *work, const EpochInfo *info, int64_t now_us, KeyworkReport *ret, Error *err)
{
    CRASH_POINT("keywork.used");
    if (!call(
            work, "SELECT keys.open_epoch($1::text::int4, $3::bytea, $2::text::timestamptz)",
            info->number, now_us, info->id, NULL, err)) {
        return false;
    }
    CRASH_POINT("keywork.opened");
    keywork_note(ret, KEYWORK_OPENED, info->number, info->id);
    ret->opened_us = now_us;
    return true;
}

// Made by a turn that was killed, or that waits for it to be seen everywhere.
static const EpochInfo *find_made(const Keywork *work, int64_t last)
{
    for (size_t i = 0; i < master_epoch_count(work->master); i++) {
        const EpochInfo *info = master_epoch_info(work->master, i);
        if (info->number > last) {
            return info;
        }
    }
    return NULL;
}

static bool make_next(
    Keywork *work, const Epochs *epochs, int64_t now_us, KeyworkReport *ret, Error *err)
{
    EpochInfo next;
    const EpochInfo *made = find_made(work, epochs->last);
    if (made != NULL) {
        next = *made;
    } else {
        if (!epoch_folder_make(
                work->folder, (uint32_t)(epochs->last + 1), now_us / 1000000, &next, err)) {
            return false;
        }
        CRASH_POINT("keywork.made");
    }
    int64_t age_us = now_us - next.made_s * 1000000;
    if (age_us >= 0 && age_us < work->options.settle_us) {
        ret->again = true;
        return true;
    }
    return epoch_folder_use(work->folder, &next, err) && open_epoch(work, &next, now_us, ret, err);
}

// The folder's `current` and the open row are the same but for the moment between the two steps,
// and after a restore of Postgres.
static bool settle_current(
    Keywork *work, const Epochs *epochs, int64_t now_us, KeyworkReport *ret, Error *err)
{
    const EpochInfo used = *master_epoch_current(work->master);
    if (used.number > epochs->last) {
        return open_epoch(work, &used, now_us, ret, err);
    }
    const EpochInfo *open =
        epochs->open != NULL ? master_epoch_find(work->master, epochs->open->id) : NULL;
    if (open == NULL) {
        return error_set(
            err, ERROR_CONFIG,
            "'current' in STENTOR_EPOCH_KEYS_DIR names the epoch %u, which Postgres has closed",
            (unsigned)used.number);
    }
    EpochInfo back = *open;
    ret->again = true;
    return epoch_folder_use(work->folder, &back, err);
}

static bool is_due(const Keywork *work, const Epochs *epochs, int64_t now_us)
{
    return epochs->open == NULL || now_us - epochs->open->opened_us >= work->options.epoch_us ||
           epochs->asked == (int64_t)epochs->open->number;
}

// After a rotation of the master key the files are wrapped again, and only then Postgres hears of
// it: `stentor keys retire` waits for that.
static bool rewrap_files(Keywork *work, Error *err)
{
    size_t rewrapped = 0;
    if (!epoch_folder_rewrap(work->folder, &rewrapped, err)) {
        return false;
    }
    const char *const values[] = {
        (const char *)master_key_info(work->master, KEY_MASTER, 0)->check};
    static const int lengths[] = {KEY_ID_LEN};
    CLEANUP(keywork_clear)
    PGresult *noted =
        keywork_ask(work, "SELECT keys.note_epochs_master($1::bytea)", 1, values, lengths, err);
    return noted != NULL;
}

bool keywork_epochs(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err)
{
    Epochs epochs;
    if (work->folder == NULL) {
        return true;
    }
    if (!rewrap_files(work, err) || !load(work, &epochs, err)) {
        return false;
    }
    ret->opened_us = epochs.open != NULL ? epochs.open->opened_us : 0;
    const EpochInfo *used = master_epoch_current(work->master);
    if (used != NULL && (epochs.open == NULL || !is_same(epochs.open, used))) {
        return settle_current(work, &epochs, now_us, ret, err);
    }
    if (used == NULL &&
        epochs.open != NULL) { // `current` was lost; its key is there (epochs_check)
        const EpochInfo *open = master_epoch_find(work->master, epochs.open->id);
        EpochInfo back = open != NULL ? *open : (EpochInfo){.number = 0};
        return open == NULL || epoch_folder_use(work->folder, &back, err);
    }
    if (!is_due(work, &epochs, now_us)) {
        return true;
    }
    if (epochs.rows.count >= UNENDED_MAX) {
        return error_set(
            err, ERROR_CONFIG,
            "%zu epochs have not ended: no other is begun (HINT: stentor keys status)",
            epochs.rows.count);
    }
    return make_next(work, &epochs, now_us, ret, err);
}

// ---- the last one ----

static bool end_epoch(
    Keywork *work, const EpochRow *row, int64_t now_us, KeyworkReport *ret, Error *err)
{
    KeyworkEnding ending = {
        .number = row->number, .due_us = row->emptied_us + work->options.keep_us};
    memcpy(ending.id, row->id, KEY_ID_LEN);
    if (work->options.witness != NULL &&
        !work->options.witness(work->options.witness_ctx, &ending, err)) {
        return false;
    }
    CRASH_POINT("keywork.witnessed");
    if (!epoch_folder_destroy(work->folder, row->id, err)) {
        return false;
    }
    CRASH_POINT("keywork.destroyed");
    if (!call(
            work, "SELECT keys.end_epoch($1::text::int4, $2::text::timestamptz)", row->number,
            now_us, NULL, NULL, err)) {
        return false;
    }
    keywork_note(ret, KEYWORK_DESTROYED, row->number, row->id);
    return true;
}

static bool empty_epoch(
    Keywork *work, const EpochRow *row, int64_t now_us, KeyworkReport *ret, Error *err)
{
    bool empty = false;
    if (!call(
            work, "SELECT keys.empty_epoch($1::text::int4, $2::text::timestamptz)", row->number,
            now_us, NULL, &empty, err)) {
        return false;
    }
    if (empty) {
        CRASH_POINT("keywork.emptied");
        keywork_note(ret, KEYWORK_EMPTIED, row->number, row->id);
    }
    return true;
}

bool keywork_end_epochs(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err)
{
    Epochs epochs;
    if (work->folder == NULL) {
        return true;
    }
    bool ok = load(work, &epochs, err);
    for (size_t i = 0; ok && i < epochs.rows.count; i++) {
        const EpochRow *row = &epochs.rows.rows[i];
        if (row->open) {
            continue;
        }
        if (row->emptied_us == 0) {
            ok = empty_epoch(work, row, now_us, ret, err);
        } else if (now_us - row->emptied_us >= work->options.keep_us) {
            ok = keywork_goes_on(work, err) && end_epoch(work, row, now_us, ret, err);
        }
    }
    return ok;
}
