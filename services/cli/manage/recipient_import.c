// SPDX-License-Identifier: Apache-2.0
// recipient import: a file of people through the API, 500 a request. Through the API and not to
// NATS, because the rules, the sealing and the ids are then the services' own, and the command
// needs neither the master key nor a right to write people.
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "services/cli/import/recipient_row.h"
#include "services/cli/import/upload.h"

enum {
    BATCH_LINES = 500,
    BATCH_BYTES = 768 * 1024,
    BATCH_ROOM = 128 * 1024, // one more line fits
    ERRORS_KEPT_MAX = 10000,
    BAR_WIDTH = 30,
    BAR_EVERY_US = 100000,
};

typedef struct Import {
    Cli *cli;
    const char *path;
    ApiClient *client;
    RecordFile file;
    Buf batch;
    size_t lines[BATCH_LINES]; // of the file, of each person in the batch
    size_t count;
    int64_t patience_s;
    int64_t errors_max;
    int64_t listed;
    json_t *errors; // the listed ones
    size_t stored;
    size_t failed;
    size_t warned;
    int64_t started_us;
    int64_t drawn_us;
    bool bar;
} Import;

// ---- what is shown ----

static void clear_bar(const Import *import)
{
    if (import->bar) {
        fputs("\r\033[K", stderr);
    }
}

static void draw_bar(Import *import)
{
    int64_t now_us = clock_mono_us();
    if (!import->bar || now_us - import->drawn_us < BAR_EVERY_US) {
        return;
    }
    import->drawn_us = now_us;
    double seconds = (double)(now_us - import->started_us) / 1e6;
    double rate = (double)(import->stored + import->failed) / (seconds > 0 ? seconds : 1);
    clear_bar(import);
    int64_t size = import->file.size_bytes;
    if (size > 0) {
        int64_t used = import->file.bytes < size ? import->file.bytes : size;
        int full = (int)(used * BAR_WIDTH / size);
        fprintf(
            stderr, "[%.*s%*s] %3d%%  ", full, "##############################", BAR_WIDTH - full,
            "", (int)(used * 100 / size));
    }
    fprintf(stderr, "%zu stored, %zu failed, %.0f/s", import->stored, import->failed, rate);
    fflush(stderr);
}

static void note_failed(Import *import, size_t line, const char *field, const char *what)
{
    import->failed++;
    if (import->listed++ >= import->errors_max) {
        return;
    }
    json_t *entry = json_pack("{s:I, s:s}", "line", (json_int_t)line, "error", what);
    if (field != NULL) {
        (void)json_object_set_new(entry, "field", json_string(field));
    }
    (void)json_array_append_new(import->errors, entry);
    if (!import->cli->json) {
        clear_bar(import);
        fprintf(
            stderr, "line %zu: %s%s%s\n", line, field != NULL ? field : "",
            field != NULL ? ": " : "", what);
    }
}

static void note_warned(Import *import, size_t line, const char *what)
{
    if ((int64_t)import->warned++ < import->errors_max) {
        clear_bar(import);
        cli_note(import->cli, "line %zu: warning: %s", line, what);
    }
}

// ---- a batch ----

static bool take_results(Import *import, const json_t *results, Error *err)
{
    if (json_array_size(results) != import->count) {
        return error_set(
            err, ERROR_PERMANENT,
            "the answer of the API has another number of lines than the request");
    }
    for (size_t i = 0; i < import->count; i++) {
        const json_t *result = json_array_get(results, i);
        const char *what = json_string_value(json_object_get(result, "error"));
        const char *field = json_string_value(json_object_get(result, "field"));
        if (what != NULL) {
            note_failed(import, import->lines[i], field, what);
        } else {
            const char *warning = json_string_value(json_object_get(result, "warning"));
            import->stored++;
            if (warning != NULL) {
                note_warned(import, import->lines[i], warning);
            }
        }
    }
    return true;
}

// No answer, or not now: the same lines again. Whoever was stored already is stored again as the
// same person, for the ids come from the lines.
static bool post_batch(Import *import, Error *err)
{
    ApiAnswer answer;
    if (import->count > 0 &&
        (!upload_part(
             import->client, "POST", "/v1/recipients/import", buf_view(&import->batch),
             import->patience_s, &answer, err) ||
         !take_results(import, json_object_get(answer.json, "results"), err))) {
        return error_wrap(err, "lines from %zu", import->lines[0]);
    }
    import->count = 0;
    buf_clear(&import->batch);
    draw_bar(import);
    return true;
}

static bool import_all(Import *import, Error *err)
{
    for (;;) {
        Error broken = {0};
        switch (record_file_next_line(&import->file, &import->batch, &broken)) {
        case RECORD_END:
            return post_batch(import, err);
        case RECORD_FAILED:
            *err = broken;
            return error_wrap(err, "line %zu", import->file.line);
        case RECORD_BROKEN:
            note_failed(import, import->file.line, NULL, broken.text);
            break;
        case RECORD_READ:
            import->lines[import->count++] = import->file.line;
            break;
        }
        bool full = import->count == BATCH_LINES || import->batch.len > BATCH_BYTES;
        if (full && !post_batch(import, err)) {
            return false;
        }
    }
}

// ---- the command ----

static void print_summary(const Import *import, const Error *err)
{
    double seconds = (double)(clock_mono_us() - import->started_us) / 1e6;
    int64_t omitted = import->listed > import->errors_max ? import->listed - import->errors_max : 0;
    clear_bar(import);
    if (import->cli->json) {
        json_t *summary = json_pack(
            "{s:s, s:I, s:I, s:I, s:f, s:O, s:I}", "file", import->path, "stored",
            (json_int_t)import->stored, "failed", (json_int_t)import->failed, "warned",
            (json_int_t)import->warned, "seconds", seconds, "errors", import->errors,
            "errors_omitted", (json_int_t)omitted);
        if (err != NULL) {
            (void)json_object_set_new(summary, "stopped", json_string(err->text));
        }
        (void)json_dumpf(summary, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        (void)putchar('\n');
        json_decref(summary);
        return;
    }
    if (omitted > 0) {
        fprintf(
            stderr, "and %lld more lines that failed (--errors N lists more)\n",
            (long long)omitted);
    }
    if (import->warned > 0) {
        fprintf(stderr, "%zu of them with a warning\n", import->warned);
    }
    printf(
        "%zu stored, %zu failed, %.1f s, %.0f/s\n", import->stored, import->failed, seconds,
        (double)import->stored / (seconds > 0.001 ? seconds : 0.001));
}

static int run_import(Import *import)
{
    Error err = {0};
    buf_init(&import->batch, BATCH_BYTES + BATCH_ROOM);
    import->errors = json_array();
    import->started_us = clock_mono_us();
    import->bar = !import->cli->json && isatty(STDERR_FILENO) == 1;
    bool ok = import_all(import, &err);
    print_summary(import, ok ? NULL : &err);
    int status = !ok ? cli_fail(import->cli, &err) : import->failed > 0 ? EXIT_FAILED : EXIT_DONE;
    json_decref(import->errors);
    buf_done(&import->batch);
    record_file_close(&import->file);
    return status;
}

int cmd_recipient_import(Cli *cli)
{
    Error err = {0};
    bool csv = false;
    Import import = {.cli = cli, .path = args_word(&cli->args, 0)};
    if (!args_int(&cli->args, "errors", 20, 0, ERRORS_KEPT_MAX, &import.errors_max, &err) ||
        !args_int(&cli->args, "patience", 60, 0, 86400, &import.patience_s, &err) ||
        !record_format(args_flag(&cli->args, "format"), import.path, NULL, &csv, &err)) {
        return cli_fail(cli, &err);
    }
    import.client = api_client_new(cli, &err);
    int status = EXIT_FAILED;
    if (import.client == NULL ||
        !record_file_open(&import.file, &recipient_records, import.path, csv, &err)) {
        status = cli_fail(cli, &err);
    } else {
        status = run_import(&import);
    }
    api_client_free(import.client);
    return status;
}
