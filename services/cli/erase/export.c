// SPDX-License-Identifier: Apache-2.0
// export: everything that is kept of a person, as JSON or as CSV tables in a ZIP archive.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/access/access_export.h"
#include "common/access/zip.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/session/audit_session.h"
#include "services/cli/erase/erase.h"
#include "services/cli/erase/export_contents.h"

enum { EXPORT_MAX = 1024 * 1024 * 1024 };

// Stored before a key is opened.
static bool note(EraseLinks *links, const ErasurePerson *person, const char *by, Error *err)
{
    char subject[2 * KEY_SUBJECT_LEN + 1];
    hex_encode(person->subjects[0].ptr, KEY_SUBJECT_LEN, subject);
    AuditNote entry = {
        .kind = AUDIT_READ,
        .tenant = person->tenant,
        .action = "person.exported",
        .actor = by,
        .target = person->recipient_id[0] != '\0' ? person->recipient_id : subject,
        .program = "stentor",
        .at_us = clock_now_us()};
    return session_audit(&links->session, &entry, NULL, err);
}

// ---- the file ----

static void add_json(const AccessExport *export, Buf *out)
{
    char *text = json_dumps(export->root, JSON_INDENT(2));
    buf_cstr(out, text);
    buf_char(out, '\n');
    free(text);
}

static bool add_tables(Cli *cli, const AccessExport *export, Buf *out, Error *err)
{
    Zip zip;
    zip_begin(&zip, out);
    for (size_t i = 0; access_tables[i] != NULL; i++) {
        const json_t *list = json_object_get(export->root, access_tables[i]);
        Str table;
        if (!access_csv(access_tables[i], list, ACCESS_CSV_MAX, cli->arena, &table, err)) {
            return false;
        }
        zip_add(&zip, arena_printf(cli->arena, "%s.csv", access_tables[i]), table);
    }
    zip_end(&zip);
    return true;
}

static bool write_file(Cli *cli, const AccessExport *export, Error *err)
{
    const char *path = args_flag(&cli->args, "out");
    FileRights rights = {.mode = 0600, .group = (gid_t)-1};
    FilePut ended;
    Buf out;
    buf_init(&out, EXPORT_MAX);
    bool ok = true;
    if (str_ends(str_from(path), STR(".zip"))) {
        ok = add_tables(cli, export, &out, err);
    } else {
        add_json(export, &out);
    }
    if (ok) {
        ok = out.full ? error_set(err, ERROR_PERMANENT, "it is longer than %d bytes", EXPORT_MAX)
                      : file_put(path, buf_view(&out), &rights, true, &ended, err);
    }
    buf_done(&out);
    return ok;
}

// ---- the command ----

static bool open_storage(const Cli *cli, StorageWait **ret, Error *err)
{
    *ret = cli->settings.storage.url[0] == '\0' ? NULL
                                                : storage_wait_open(&cli->settings.storage, err);
    return *ret != NULL || cli->settings.storage.url[0] == '\0';
}

static bool make(Cli *cli, EraseLinks *links, AccessExport *export, Error *err)
{
    const char *by = erase_actor(cli, "by", err);
    bool ok = by != NULL && note(links, export->person, by, err);
    export->keys = ok ? person_keys_open(links->pg, links->master, export->person, err) : NULL;
    ok = export->keys != NULL && open_storage(cli, &export->storage, err) &&
         access_export(export, err) && export_contents(cli, export, err) &&
         write_file(cli, export, err);
    storage_wait_close(export->storage);
    person_keys_close(export->keys);
    return ok;
}

static int report(const Cli *cli, const AccessExport *export)
{
    const char *const pairs[] = {
        "file",
        args_flag(&cli->args, "out"),
        "notifications",
        arena_printf(
            cli->arena, "%zu", json_array_size(json_object_get(export->root, "notifications"))),
        "requests",
        arena_printf(cli->arena, "%zu", json_array_size(json_object_get(export->root, "requests"))),
        "unreadable",
        arena_printf(cli->arena, "%" PRIu64, export->unreadable),
        "gaps",
        arena_printf(cli->arena, "%zu", json_array_size(json_object_get(export->root, "gaps"))),
        NULL};
    print_pairs(cli, pairs);
    return EXIT_DONE;
}

int cmd_export(Cli *cli)
{
    Error err = {0};
    EraseLinks links = {0};
    ErasureSearch search;
    ErasurePerson person;
    AccessExport export = {.person = &person, .now_us = clock_now_us()};
    bool found = false;
    bool ok = erase_search(cli, &search, &err) && erase_open(cli, &links, &err);
    if (ok) {
        search.to_read = true;
        HashKeys keys = master_hash_keys(links.master);
        export.pg = links.pg;
        export.hash_keys = keys;
        export.session = &links.session;
        ok = erasure_find(links.pg, &keys, &search, cli->arena, &person, &found, &err) &&
             (!found || make(cli, &links, &export, &err));
    }
    erase_close(&links);
    int status = !ok      ? cli_fail(cli, &err)
                 : !found ? cli_fail_as(cli, EXIT_NOT_FOUND, "no recipient has this identity")
                          : report(cli, &export);
    json_decref(export.root);
    return status;
}
