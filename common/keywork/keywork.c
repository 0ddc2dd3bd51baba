// SPDX-License-Identifier: Apache-2.0
#include "common/keywork/keywork.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/db/epochs.h"
#include "common/db/master_keys.h"
#include "common/keywork/internal.h"

const char *keywork_deed_name(KeyworkDeed deed)
{
    switch (deed) {
    case KEYWORK_OPENED:
        return "opened";
    case KEYWORK_EMPTIED:
        return "emptied";
    case KEYWORK_DESTROYED:
        return "destroyed";
    }
    return "?";
}

void keywork_note(KeyworkReport *report, KeyworkDeed deed, uint32_t number, const uint8_t *id)
{
    if (report->event_count < KEYWORK_EVENTS_MAX) {
        report->events[report->event_count].deed = deed;
        report->events[report->event_count].number = number;
        memcpy(report->events[report->event_count].id, id, KEY_ID_LEN);
        report->event_count++;
    }
}

// ---- life ----

static const char *copy(Keywork *work, const char *text)
{
    return arena_cstr(work->arena, str_from(text != NULL ? text : ""));
}

Keywork *keywork_new(const KeyworkOptions *options)
{
    Keywork *work = xcalloc(1, sizeof *work);
    work->arena = arena_new(0);
    work->options = *options;
    work->options.database_url = arena_cstr(work->arena, str_from(options->database_url));
    work->options.application_name = arena_cstr(work->arena, str_from(options->application_name));
    work->options.master_key_file = arena_cstr(work->arena, str_from(options->master_key_file));
    work->options.epoch_folder = arena_cstr(work->arena, str_from(options->epoch_folder));
    work->options.dump_folder = arena_cstr(work->arena, str_from(options->dump_folder));
    work->options.storage = (StorageOptions){
        .url = copy(work, options->storage.url),
        .key_id = copy(work, options->storage.key_id),
        .secret = copy(work, options->storage.secret),
        .session_token = copy(work, options->storage.session_token),
        .vendor = copy(work, options->storage.vendor)};
    work->stored_us = -1;
    atomic_init(&work->stopping, false);
    return work;
}

static void let_go(Keywork *work)
{
    PQfinish(work->pg); // and with its session the lock
    epoch_folder_close(work->folder);
    master_key_free(work->master);
    work->pg = NULL;
    work->folder = NULL;
    work->master = NULL;
    work->held = false;
    work->stored_us = -1; // another process may do the work meanwhile
}

void keywork_free(Keywork *work)
{
    if (work != NULL) {
        let_go(work);
        storage_wait_close(work->storage);
        arena_free(work->arena);
        free(work);
    }
}

void keywork_stop(Keywork *work)
{
    atomic_store(&work->stopping, true);
}

// ---- keys ----

static bool read_master(Keywork *work, Error *err)
{
    Buf text;
    buf_init(&text, MASTER_KEY_FILE_MAX);
    if (file_append(work->options.master_key_file, &text, err)) {
        work->master = master_key_parse(buf_view(&text), err);
    }
    if (text.ptr != NULL) {
        OPENSSL_cleanse(text.ptr, text.cap);
    }
    buf_done(&text);
    return work->master != NULL || error_wrap(err, "'%s'", work->options.master_key_file);
}

// The file and the folder are compared with what Postgres has registered, as every program does.
static bool hold_keys(Keywork *work, Error *err)
{
    KeyRegister keys;
    EpochRows epochs;
    if (work->master != NULL) {
        return master_epochs_refresh(work->master, err);
    }
    if (!read_master(work, err) || !master_keys_load(work->pg, &keys, err) ||
        !key_register_check(&keys, work->master, err)) {
        return false;
    }
    if (work->options.epoch_folder[0] != '\0') {
        work->folder = epoch_folder_open(work->options.epoch_folder, work->master, err);
    }
    return (work->folder != NULL || work->options.epoch_folder[0] == '\0') &&
           epochs_load(work->pg, &epochs, err) && epochs_check(&epochs, work->master, err);
}

// ---- a turn ----

static bool note_turn(Keywork *work, int64_t now_us, const Error *failure, Error *err)
{
    Arena *arena = arena_new(0);
    const char *const values[] = {
        keywork_time(arena, now_us), failure != NULL ? failure->text : NULL};
    CLEANUP(keywork_clear)
    PGresult *noted = keywork_ask(
        work, "SELECT keys.note_work($1::text::timestamptz, $2::text)", 2, values, NULL, err);
    arena_free(arena);
    return noted != NULL;
}

// No service executes erasures: one that waits is reported where keys are looked after.
static bool look_at_erasures(Keywork *work, KeyworkReport *ret, Error *err)
{
    CLEANUP(keywork_clear)
    PGresult *row = keywork_query(work, "SELECT oldest_s::text FROM erasure.waiting()", err);
    ret->erasure_s = row != NULL ? strtod(PQgetvalue(row, 0, 0), NULL) : 0;
    return row != NULL;
}

static bool do_turn(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err)
{
    return hold_keys(work, err) && keywork_epochs(work, now_us, ret, err) &&
           keywork_rewrap(work, ret, err) && keywork_end_epochs(work, now_us, ret, err) &&
           keywork_dump(work, now_us, ret, err) && look_at_erasures(work, ret, err);
}

bool keywork_turn(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err)
{
    *ret = (KeyworkReport){.held = false};
    bool ok = keywork_goes_on(work, err) && keywork_connect(work, err) && keywork_lock(work, err);
    ret->held = ok && work->held;
    if (ret->held) {
        ok = do_turn(work, now_us, ret, err);
        const Error *why = !ok ? err : ret->failed > 0 ? &ret->failure : NULL;
        bool noted = PQstatus(work->pg) == CONNECTION_OK &&
                     PQtransactionStatus(work->pg) == PQTRANS_IDLE &&
                     note_turn(work, now_us, why, ok ? err : NULL);
        ok = ok && noted;
    }
    if (!ok) {
        let_go(work);
    }
    return ok;
}
