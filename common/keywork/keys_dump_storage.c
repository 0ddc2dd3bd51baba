// SPDX-License-Identifier: Apache-2.0
#include "common/keywork/keys_dump_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/codec/hash.h"

#define PREFIX "keys-dumps/"

enum { CHUNK = 256 * 1024, FILE_MODE = 0600 };

static const int64_t SECOND_US = 1000000;

void keys_dump_key(int64_t taken_us, char out[KEYS_DUMP_KEY_SIZE])
{
    char name[KEYS_DUMP_NAME_SIZE];
    keys_dump_name(taken_us, name);
    (void)snprintf(out, KEYS_DUMP_KEY_SIZE, PREFIX "%s", name);
}

// ---- put ----

static bool hash_file(int fd, const char *path, uint64_t *ret_len, uint8_t *ret_sha256, Error *err)
{
    Sha256 *digest = sha256_begin();
    char *chunk = xcalloc(1, CHUNK);
    ssize_t got = 0;
    *ret_len = 0;
    while ((got = pread(fd, chunk, CHUNK, (off_t)*ret_len)) > 0) {
        sha256_add(digest, str_of(chunk, (size_t)got));
        *ret_len += (uint64_t)got;
    }
    sha256_end(digest, ret_sha256);
    free(chunk);
    return got == 0 ||
           error_set(err, ERROR_TRANSIENT, "cannot read '%s': %s", path, strerror(errno));
}

static bool on_hashed_piece(void *ctx, const void *bytes, size_t len)
{
    sha256_add(ctx, str_of(bytes, len));
    return true;
}

static bool read_back(StorageWait *storage, const char *key, const uint8_t *sha256, Error *err)
{
    uint8_t found[SHA256_LEN];
    Sha256 *digest = sha256_begin();
    StorageOutcome got =
        storage_wait_get(storage, str_from(key), 0, 0, on_hashed_piece, digest, err);
    sha256_end(digest, found);
    if (got == STORAGE_FAILED) {
        return false;
    }
    return (got == STORAGE_DONE && memcmp(found, sha256, SHA256_LEN) == 0) ||
           error_set(err, ERROR_PERMANENT, "'%s' in storage has other bytes than its dump", key);
}

bool keys_dump_store(StorageWait *storage, const char *path, int64_t taken_us, Error *err)
{
    char key[KEYS_DUMP_KEY_SIZE];
    StoragePut put = {.condition = STORAGE_IF_ABSENT};
    put.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (put.fd < 0) {
        return error_set(err, ERROR_TRANSIENT, "cannot read '%s': %s", path, strerror(errno));
    }
    keys_dump_key(taken_us, key);
    put.key = str_from(key);
    bool ok = hash_file(put.fd, path, &put.len, put.sha256, err) &&
              storage_wait_put(storage, &put, NULL, err) != STORAGE_FAILED &&
              read_back(storage, key, put.sha256, err);
    (void)close(put.fd);
    return ok;
}

// ---- fetched ----

typedef struct Fetch {
    int fd;
    int error; // errno of the first write that failed; 0: none
} Fetch;

static bool on_fetched_piece(void *ctx, const void *bytes, size_t len)
{
    Fetch *fetch = ctx;
    const char *at = bytes;
    while (len > 0 && fetch->error == 0) {
        ssize_t put = write(fetch->fd, at, len);
        if (put < 0) {
            fetch->error = errno == EINTR ? 0 : errno;
            continue;
        }
        at += put;
        len -= (size_t)put;
    }
    return fetch->error == 0;
}

bool keys_dump_fetch(StorageWait *storage, int64_t taken_us, const char *path, Error *err)
{
    char key[KEYS_DUMP_KEY_SIZE];
    Fetch fetch = {.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE)};
    if (fetch.fd < 0) {
        return error_set(err, ERROR_CONFIG, "cannot write '%s': %s", path, strerror(errno));
    }
    keys_dump_key(taken_us, key);
    StorageOutcome got =
        storage_wait_get(storage, str_from(key), 0, 0, on_fetched_piece, &fetch, err);
    (void)close(fetch.fd);
    if (got == STORAGE_ABSENT) {
        return error_set(err, ERROR_CONFIG, "there is no '%s' in storage", key);
    }
    if (fetch.error != 0) {
        return error_set(err, ERROR_CONFIG, "cannot write '%s': %s", path, strerror(fetch.error));
    }
    return got == STORAGE_DONE;
}

// ---- listed ----

typedef struct StoredDump {
    struct StoredDump *next;
    int64_t taken_us;
    const char *key, *version;
} StoredDump;

typedef struct StoredDumps {
    Arena *arena;
    StoredDump *first;
    int64_t newest_us;
} StoredDumps;

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    StoredDumps *dumps = ctx;
    Str name = str_starts(key, STR(PREFIX)) ? str_slice(key, sizeof PREFIX - 1, key.len) : key;
    int64_t taken_us = keys_dump_time(name);
    if (taken_us == 0) {
        return;
    }
    StoredDump *dump = arena_alloc(dumps->arena, sizeof *dump);
    *dump = (StoredDump){
        .next = dumps->first,
        .taken_us = taken_us,
        .key = arena_cstr(dumps->arena, key),
        .version = arena_cstr(dumps->arena, str_from(info->version))};
    dumps->first = dump;
    dumps->newest_us = taken_us > dumps->newest_us ? taken_us : dumps->newest_us;
}

static bool list(StorageWait *storage, Arena *arena, StoredDumps *ret, Error *err)
{
    *ret = (StoredDumps){.arena = arena};
    return storage_wait_list(storage, STR(PREFIX), on_entry, ret, err) != STORAGE_FAILED;
}

bool keys_dump_newest_stored(StorageWait *storage, int64_t *ret_us, Error *err)
{
    StoredDumps dumps;
    Arena *arena = arena_new(0);
    bool ok = list(storage, arena, &dumps, err);
    *ret_us = ok ? dumps.newest_us : *ret_us;
    arena_free(arena);
    return ok;
}

// A bucket with versions keeps an object that is deleted without one. A folder has none, and a LIST
// may not say it: HEAD does.
static bool delete_dump(StorageWait *storage, const StoredDump *dump, Error *err)
{
    StorageInfo info;
    StorageOutcome found = storage_wait_head(storage, str_from(dump->key), &info, err);
    if (found != STORAGE_DONE) {
        return found == STORAGE_ABSENT;
    }
    const char *version = dump->version[0] != '\0' ? dump->version : info.version;
    return storage_wait_delete(storage, str_from(dump->key), version, err) == STORAGE_DONE;
}

bool keys_dump_trim_stored(StorageWait *storage, int64_t before_us, Error *err)
{
    StoredDumps dumps;
    Arena *arena = arena_new(0);
    bool ok = list(storage, arena, &dumps, err);
    before_us = before_us / SECOND_US * SECOND_US;
    for (const StoredDump *dump = dumps.first; ok && dump != NULL; dump = dump->next) {
        if (dump->taken_us < before_us && dump->taken_us < dumps.newest_us) {
            ok = delete_dump(storage, dump, err);
        }
    }
    arena_free(arena);
    return ok;
}
