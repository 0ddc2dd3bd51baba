// SPDX-License-Identifier: Apache-2.0
// suppress import: a file of any length, in groups of lines to POST /v1/suppressions/import, which
// judges them. A broken line is named and passed over; the rest goes on. A group without an answer
// is sent again: what was stored then stands just so, and is left.
#include <jansson.h>
#include <string.h>

#include "services/cli/api_client.h"
#include "services/cli/import/suppress_row.h"
#include "services/cli/import/upload.h"

enum {
    GROUP_LINES = 1000,
    GROUP_BYTES = 1024 * 1024,
    GROUP_ROOM = 256 * 1024, // of the line that fills it
    NAMED_MAX = 100,
    REPORT_EVERY = 100000,
    PATIENCE_S = 60,
};

typedef struct Import {
    Cli *cli;
    ApiClient *client;
    const char *path; // of the API, with the defaults
    bool dry_run;
    RecordFile file;
    Buf group;
    size_t lines[GROUP_LINES]; // of the file: where each of the group's stands
    size_t count;
    uint64_t stored, unchanged, skipped, broken;
} Import;

static void name_line(Import *import, size_t line, const char *what)
{
    if (++import->broken <= NAMED_MAX) {
        cli_note(import->cli, "line %zu: %s", line, what);
    } else if (import->broken == NAMED_MAX + 1) {
        cli_note(import->cli, "further invalid lines are only counted");
    }
}

static void take_answer(Import *import, const json_t *answer)
{
    size_t i = 0;
    json_t *error = NULL;
    import->stored += (uint64_t)json_integer_value(json_object_get(answer, "stored"));
    import->unchanged += (uint64_t)json_integer_value(json_object_get(answer, "unchanged"));
    import->skipped += (uint64_t)json_integer_value(json_object_get(answer, "skipped"));
    json_array_foreach(json_object_get(answer, "errors"), i, error)
    {
        size_t at = (size_t)json_integer_value(json_object_get(error, "line"));
        if (at >= 1 && at <= import->count) {
            name_line(import, import->lines[at - 1], api_client_text(error, "error", ""));
        }
    }
}

static bool send_group(Import *import, Error *err)
{
    ApiAnswer answer;
    if (import->count == 0) {
        return true;
    }
    if (!upload_part(
            import->client, "POST", import->path, buf_view(&import->group), PATIENCE_S, &answer,
            err)) {
        return error_wrap(err, "lines from %zu", import->lines[0]);
    }
    take_answer(import, answer.json);
    import->count = 0;
    buf_clear(&import->group);
    return true;
}

static bool run(Import *import, Error *err)
{
    for (;;) {
        Error broken = {0};
        switch (record_file_next_line(&import->file, &import->group, &broken)) {
        case RECORD_END:
            return send_group(import, err);
        case RECORD_FAILED:
            *err = broken;
            return false;
        case RECORD_BROKEN:
            name_line(import, import->file.line, broken.text);
            break;
        case RECORD_READ:
            import->lines[import->count++] = import->file.line;
            break;
        }
        if (import->file.line % REPORT_EVERY == 0) {
            cli_note(import->cli, "%zu lines", import->file.line);
        }
        bool full = import->count == GROUP_LINES || import->group.len > GROUP_BYTES;
        if (full && !send_group(import, err)) {
            return false;
        }
    }
}

// ---- the command ----

static void print_sums(const Cli *cli, const Import *import)
{
    const char *done = import->dry_run ? "good" : "stored";
    size_t lines = import->file.next_line - 1;
    unsigned long long stored = import->stored;
    unsigned long long unchanged = import->unchanged;
    unsigned long long skipped = import->skipped;
    unsigned long long broken = import->broken;
    printf(
        cli->json
            ? "{\"lines\":%zu,\"%s\":%llu,\"unchanged\":%llu,\"skipped\":%llu,\"broken\":%llu}\n"
            : "lines %zu, %s %llu, unchanged %llu, skipped %llu, broken %llu\n",
        lines, done, stored, unchanged, skipped, broken);
}

// What a line leaves out goes along as the query.
static const char *path_of(Cli *cli, bool dry_run)
{
    static const char *const names[][2] = {
        {"channel", "channel"},
        {"category", "category"},
        {"reason", "reason"},
        {"note", "note"},
        {"expires", "expires_at"}};
    const char *path =
        arena_printf(cli->arena, "/v1/suppressions/import?dry_run=%s", dry_run ? "true" : "false");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = args_flag(&cli->args, names[i][0]);
        if (value != NULL) {
            path = arena_printf(
                cli->arena, "%s&%s=%s", path, names[i][1], api_client_escape(cli, value));
        }
    }
    return path;
}

int cmd_suppress_import(Cli *cli)
{
    Error err = {0};
    Import import = {.cli = cli, .dry_run = args_has(&cli->args, "dry-run")};
    bool csv = true;
    const char *path = args_word(&cli->args, 0);
    if (!record_format(args_flag(&cli->args, "format"), path, "csv", &csv, &err) ||
        !record_file_open(&import.file, &suppress_records, path, csv, &err)) {
        return cli_fail(cli, &err);
    }
    buf_init(&import.group, GROUP_BYTES + GROUP_ROOM);
    import.path = path_of(cli, import.dry_run);
    import.client = api_client_new(cli, &err);
    bool ok = import.client != NULL;
    if (ok) {
        ok = run(&import, &err);
        print_sums(cli, &import);
    }
    api_client_free(import.client);
    buf_done(&import.group);
    record_file_close(&import.file);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    return import.broken == 0 ? EXIT_DONE : EXIT_FAILED;
}
