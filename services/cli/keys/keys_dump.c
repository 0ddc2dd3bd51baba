// SPDX-License-Identifier: Apache-2.0
// keys dump, keys restore.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/keywork/keys_dump_storage.h"
#include "services/cli/keys/keys_epochs.h"
#include "services/cli/noted.h"

static void print_dump(const Cli *cli, const char *path, const KeysDump *dump, json_t *more)
{
    char taken[CLOCK_RFC3339_SIZE];
    clock_format(dump->taken_us, taken);
    if (cli->json) {
        json_t *report = json_pack(
            "{s:s, s:s, s:I}", "file", path, "taken_at", taken, "data_keys",
            (json_int_t)dump->data_keys);
        json_object_update(report, more);
        print_json_line(report);
    } else {
        printf("%s: %llu data keys of %s\n", path, (unsigned long long)dump->data_keys, taken);
    }
    json_decref(more);
}

// ---- by way of object storage: a file of this machine in between ----

typedef struct Stored {
    StorageWait *storage;
    const char *folder; // NULL: none was made
    const char *path;
} Stored;

static bool is_storage(const char *where)
{
    return strcmp(where, "storage") == 0;
}

static bool open_stored(Cli *cli, Stored *ret, Error *err)
{
    const char *tmp = getenv("TMPDIR");
    *ret = (Stored){.storage = NULL};
    if (!cli_need(cli->settings.storage.url, "STENTOR_STORAGE_URL", err)) {
        return false;
    }
    char *folder = arena_printf(
        cli->arena, "%s/stentor-keys.XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    ret->folder = mkdtemp(folder);
    if (ret->folder == NULL) {
        return error_set(
            err, ERROR_CONFIG, "cannot make '%s': %s (HINT: TMPDIR)", folder, strerror(errno));
    }
    ret->path = arena_printf(cli->arena, "%s/keys.dump", folder);
    ret->storage = storage_wait_open(&cli->settings.storage, err);
    return ret->storage != NULL;
}

static void close_stored(Stored *stored)
{
    if (stored->folder != NULL) {
        (void)unlink(stored->path);
        (void)rmdir(stored->folder);
    }
    storage_wait_close(stored->storage);
}

static const char *key_of(const Cli *cli, int64_t taken_us)
{
    char key[KEYS_DUMP_KEY_SIZE];
    keys_dump_key(taken_us, key);
    return arena_cstr(cli->arena, str_from(key));
}

static bool fetch_newest(const Cli *cli, Stored *stored, const char **ret_key, Error *err)
{
    int64_t newest_us = 0;
    if (!keys_dump_newest_stored(stored->storage, &newest_us, err)) {
        return false;
    }
    *ret_key = key_of(cli, newest_us);
    return newest_us != 0 ? keys_dump_fetch(stored->storage, newest_us, stored->path, err)
                          : error_set(err, ERROR_CONFIG, "STENTOR_STORAGE_URL has no dump of keys");
}

// ---- dump ----

static bool write_dump(Cli *cli, const char *path, KeysDump *ret, Error *err)
{
    PGconn *pg = keys_database(cli, err);
    bool ok = pg != NULL && keys_dump_write(pg, path, clock_now_us(), NULL, ret, err) &&
              keys_dump_check(path, ret, err);
    PQfinish(pg);
    return ok;
}

static bool dump_to_storage(Cli *cli, const char **ret_key, KeysDump *ret, Error *err)
{
    static const int64_t DAY_US = INT64_C(86400) * 1000000;
    Stored stored;
    int64_t days = 0;
    bool ok = args_int(&cli->args, "keep-days", 14, 1, 3650, &days, err) &&
              open_stored(cli, &stored, err);
    if (days == 0) {
        return false;
    }
    ok = ok && write_dump(cli, stored.path, ret, err) &&
         keys_dump_store(stored.storage, stored.path, ret->taken_us, err) &&
         keys_dump_trim_stored(stored.storage, clock_now_us() - days * DAY_US, err);
    close_stored(&stored);
    *ret_key = key_of(cli, ret->taken_us);
    return ok;
}

int cmd_keys_dump(Cli *cli)
{
    Error err = {0};
    KeysDump dump = {0};
    const char *path = args_flag(&cli->args, "to");
    bool ok = is_storage(path) ? dump_to_storage(cli, &path, &dump, &err)
                               : write_dump(cli, path, &dump, &err);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    print_dump(cli, path, &dump, json_object());
    return EXIT_DONE;
}

// ---- restore ----

static bool restore(
    Cli *cli, const char *path, KeysDump *ret, KeysRestored *ret_restored, Error *err)
{
    if (args_has(&cli->args, "dry-run")) {
        return keys_dump_check(path, ret, err);
    }
    PGconn *pg = keys_database(cli, err);
    bool ok = pg != NULL && cli_audit_write(cli, NULL, "data_keys.restored", "dump", err) &&
              keys_dump_restore(pg, path, ret, ret_restored, err);
    PQfinish(pg);
    return ok;
}

static bool restore_stored(
    Cli *cli, const char **ret_key, KeysDump *ret, KeysRestored *ret_restored, Error *err)
{
    Stored stored;
    bool ok = open_stored(cli, &stored, err) && fetch_newest(cli, &stored, ret_key, err) &&
              restore(cli, stored.path, ret, ret_restored, err);
    close_stored(&stored);
    return ok;
}

int cmd_keys_restore(Cli *cli)
{
    Error err = {0};
    KeysDump dump = {0};
    KeysRestored restored = {0};
    const char *path = args_word(&cli->args, 0);
    bool ok = is_storage(path) ? restore_stored(cli, &path, &dump, &restored, &err)
                               : restore(cli, path, &dump, &restored, &err);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    if (args_has(&cli->args, "dry-run")) {
        print_dump(cli, path, &dump, json_object());
        return EXIT_DONE;
    }
    print_dump(
        cli, path, &dump,
        json_pack(
            "{s:I, s:I}", "added", (json_int_t)restored.added, "changed",
            (json_int_t)restored.changed));
    if (!cli->json) {
        printf(
            "%llu added, %llu changed (HINT: stentor erase replay, then start the services)\n",
            (unsigned long long)restored.added, (unsigned long long)restored.changed);
    }
    return EXIT_DONE;
}
