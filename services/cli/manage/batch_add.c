// SPDX-License-Identifier: Apache-2.0
// batch add: a file of members, uploaded in parts. A part that got no answer is sent again under
// its number, so the whole command may be repeated too: parts that are there already are known.
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "services/cli/import/member_row.h"
#include "services/cli/import/upload.h"

enum {
    PART_LINES = 5000,
    PART_BYTES = 2 * 1024 * 1024,
    PATIENCE_S = 60,
    PROGRESS_EVERY_US = 200000,
    BROKEN_SHOWN_MAX = 100000,
};

typedef struct Adding {
    Cli *cli;
    const char *batch;
    ApiClient *client;
    RecordFile file;
    int64_t part; // number of the one that is being filled
    Buf body;
    size_t *lines; // of the file, of each line of the part
    size_t count;
    int64_t added, broken, members, parts, repeated;
    json_t *list; // of broken lines
    int64_t patience_s;
    int64_t started_us, shown_us;
    bool progress;
} Adding;

static void show_progress(Adding *a, bool last)
{
    int64_t now_us = clock_mono_us();
    if (!a->progress || (!last && now_us - a->shown_us < PROGRESS_EVERY_US)) {
        return;
    }
    a->shown_us = now_us;
    double seconds = (double)(now_us - a->started_us) / 1e6;
    double rate = seconds > 0 ? (double)a->added / seconds : 0;
    fprintf(stderr, "\r\033[K%" PRId64 " added, %.0f/s", a->added, rate);
    if (a->file.size_bytes > 0) {
        fprintf(stderr, ", %d %%", (int)(100 * a->file.bytes / a->file.size_bytes));
    }
    fputs(last ? "\n" : "", stderr);
}

static void note_broken(Adding *a, size_t line, const char *field, const char *detail)
{
    a->broken++;
    if (a->broken > BROKEN_SHOWN_MAX) {
        return;
    }
    if (a->cli->json) {
        json_array_append_new(
            a->list,
            json_pack(
                "{s:I, s:s, s:s}", "line", (json_int_t)line, "field", field, "detail", detail));
        return;
    }
    fprintf(
        stderr, "%sline %zu: %s%s%s\n", a->progress ? "\r\033[K" : "", line, field,
        field[0] != '\0' ? ": " : "", detail);
}

static void read_answer(Adding *a, const json_t *json)
{
    size_t i = 0;
    const json_t *line = NULL;
    json_array_foreach(json_object_get(json, "lines"), i, line)
    {
        int64_t number = json_integer_value(json_object_get(line, "line"));
        const char *field = json_string_value(json_object_get(line, "field"));
        const char *detail = json_string_value(json_object_get(line, "detail"));
        if (number >= 1 && (size_t)number <= a->count && field != NULL && detail != NULL) {
            note_broken(a, a->lines[number - 1], field, detail);
        }
    }
    a->added += json_integer_value(json_object_get(json, "added"));
    a->members = json_integer_value(json_object_get(json, "members"));
    a->repeated += json_is_true(json_object_get(json, "repeated"));
}

static bool send_part(Adding *a, Error *err)
{
    if (a->count == 0) {
        return true;
    }
    const char *path =
        arena_printf(a->cli->arena, "/v1/batches/%s/members?part=%" PRId64, a->batch, a->part);
    ApiAnswer answer;
    if (!upload_part(a->client, "PUT", path, buf_view(&a->body), a->patience_s, &answer, err)) {
        return error_wrap(err, "part %" PRId64, a->part);
    }
    read_answer(a, answer.json);
    a->part++;
    a->parts++;
    a->count = 0;
    buf_clear(&a->body);
    show_progress(a, false);
    return true;
}

static bool add_all(Adding *a, Error *err)
{
    for (;;) {
        RecordRead read = record_file_next_line(&a->file, &a->body, err);
        if (read == RECORD_END) {
            return send_part(a, err);
        }
        if (read == RECORD_FAILED) {
            return error_wrap(err, "line %zu", a->file.line);
        }
        if (read == RECORD_BROKEN) {
            note_broken(a, a->file.line, "", err->text);
            continue;
        }
        a->lines[a->count++] = a->file.line;
        if ((a->count == PART_LINES || a->body.len > PART_BYTES) && !send_part(a, err)) {
            return false;
        }
    }
}

static void report(Adding *a)
{
    show_progress(a, true);
    if (a->cli->json) {
        json_t *json = json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "batch_id", a->batch, "parts",
            (json_int_t)a->parts, "repeated_parts", (json_int_t)a->repeated, "added",
            (json_int_t)a->added, "members", (json_int_t)a->members, "broken",
            (json_int_t)a->broken, "lines", a->list);
        print_json_line(json);
        return;
    }
    printf(
        "%s %" PRId64 " added, %" PRId64 " in it, %" PRId64 " broken lines\n", a->batch, a->added,
        a->members, a->broken);
}

int cmd_batch_add(Cli *cli)
{
    Error err = {0};
    const char *path = args_word(&cli->args, 1);
    Adding a = {.cli = cli, .batch = args_word(&cli->args, 0)};
    bool csv = args_has(&cli->args, "csv") || str_ends(str_from(path), STR(".csv"));
    bool ok = args_int(&cli->args, "part", 1, 1, 1000000, &a.part, &err) &&
              args_int(&cli->args, "patience", PATIENCE_S, 0, 86400, &a.patience_s, &err) &&
              (a.client = api_client_new(cli, &err)) != NULL &&
              record_file_open(&a.file, &member_records, path, csv, &err);
    int status = EXIT_FAILED;
    if (ok) {
        buf_init(&a.body, PART_BYTES + 2 * MEMBER_LINE_MAX);
        a.lines = xcalloc(PART_LINES, sizeof *a.lines);
        a.list = json_array();
        a.progress = !cli->json && isatty(STDERR_FILENO);
        a.started_us = clock_mono_us();
        ok = add_all(&a, &err);
        report(&a);
        status = !ok ? cli_fail(cli, &err) : a.broken > 0 ? EXIT_FAILED : EXIT_DONE;
        record_file_close(&a.file);
        buf_done(&a.body);
        free(a.lines);
        json_decref(a.list);
    } else {
        status = cli_fail(cli, &err);
    }
    api_client_free(a.client);
    return status;
}
