// SPDX-License-Identifier: Apache-2.0
// The keys' own dump, once a day, read back before it counts; where storage is set, a copy there.
#include <stdio.h>

#include "common/base/crash.h"
#include "common/keywork/internal.h"
#include "common/keywork/keys_dump_storage.h"

static const int64_t SECOND_US = 1000000;
static const int64_t DAY_US = INT64_C(86400) * 1000000;

enum { PATH_SIZE = 4096 };

static bool note_dump(Keywork *work, const KeysDump *dump, Error *err)
{
    char count[24];
    Arena *arena = arena_new(0);
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)dump->data_keys);
    const char *const values[] = {keywork_time(arena, dump->taken_us), count};
    CLEANUP(keywork_clear)
    PGresult *noted = keywork_ask(
        work, "SELECT keys.note_dump($1::text::timestamptz, $2::text::int8)", 2, values, NULL, err);
    arena_free(arena);
    return noted != NULL;
}

static void path_of(const char *folder, int64_t taken_us, char path[PATH_SIZE])
{
    char name[KEYS_DUMP_NAME_SIZE];
    keys_dump_name(taken_us, name);
    (void)snprintf(path, PATH_SIZE, "%s/%s", folder, name);
}

static bool make_dump(Keywork *work, const char *folder, int64_t now_us, KeysDump *ret, Error *err)
{
    char path[PATH_SIZE];
    KeysDump again;
    path_of(folder, now_us, path);
    return keys_dump_write(work->pg, path, now_us, &work->stopping, ret, err) &&
           keys_dump_check(path, &again, err);
}

// The storage is asked once, and the answer kept: this process alone stores dumps.
static bool find_stored(Keywork *work, Error *err)
{
    if (work->storage == NULL) {
        work->storage = storage_wait_open(&work->options.storage, err);
    }
    return work->storage != NULL &&
           (work->stored_us >= 0 || keys_dump_newest_stored(work->storage, &work->stored_us, err));
}

// The newest file, if no turn before has stored it: also one that was killed, or found no storage.
static bool store_newest(Keywork *work, int64_t taken_us, int64_t now_us, Error *err)
{
    char path[PATH_SIZE];
    if (work->options.storage.url[0] == '\0' || taken_us == 0) {
        return true;
    }
    taken_us = taken_us / SECOND_US * SECOND_US; // as its name has it
    if (!find_stored(work, err) || work->stored_us >= taken_us) {
        return work->stored_us >= taken_us || error_wrap(err, "the keys' dump in storage");
    }
    path_of(work->options.dump_folder, taken_us, path);
    bool ok = keys_dump_store(work->storage, path, taken_us, err);
    CRASH_POINT_IF("keywork.stored", ok);
    ok = ok && keys_dump_trim_stored(work->storage, now_us - work->options.dump_keep_us, err);
    work->stored_us = ok ? taken_us : -1;
    return ok || error_wrap(err, "the keys' dump in storage");
}

bool keywork_dump(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err)
{
    const char *folder = work->options.dump_folder;
    KeysDump dump = {0};
    if (folder[0] == '\0') {
        return true;
    }
    if (!keys_dump_newest(folder, &ret->dumped_us, err)) {
        return error_wrap(err, "STENTOR_KEYS_DUMP_DIR");
    }
    if (now_us - ret->dumped_us < DAY_US) {
        return store_newest(work, ret->dumped_us, now_us, err);
    }
    if (!make_dump(work, folder, now_us, &dump, err)) {
        return false;
    }
    ret->dumped_us = now_us;
    return note_dump(work, &dump, err) &&
           keys_dump_trim(folder, now_us - work->options.dump_keep_us, err) &&
           store_newest(work, now_us, now_us, err);
}
