// SPDX-License-Identifier: Apache-2.0
// suppress import: a file of any length, line by line in bounded memory. A broken line is named and
// passed over; the rest goes on. Each line is an event of its own under an id derived from its key
// and the run's time, so a run that is repeated changes nothing but who and when.
#include "common/base/clock.h"
#include "common/config/config_store.h"
#include "services/cli/manage/suppress_entry.h"

enum { IN_THE_AIR_MAX = 2048, LINE_ARENA_SIZE = 2048, NAMED_MAX = 100, REPORT_EVERY = 100000 };

typedef struct Import {
    Suppress *suppress;
    SuppressReading reading;
    RecordFile file;
    Arena *arena;
    int64_t at_us;
    bool dry_run;
    size_t waiting; // published and not acknowledged
    uint64_t stored, skipped, broken;
    Error failure; // the first that is not a line's fault: the run ends
} Import;

static void name_line(Import *import, const Error *err)
{
    if (++import->broken <= NAMED_MAX) {
        fprintf(stderr, "line %zu: %s\n", import->file.line, err->text);
    } else if (import->broken == NAMED_MAX + 1) {
        fprintf(stderr, "further broken lines are only counted\n");
    }
}

// A line on its way, in an arena of its own.
typedef struct Stored {
    Import *import;
    Arena *arena;
} Stored;

static void on_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Stored *stored = ctx;
    Import *import = stored->import;
    arena_free(stored->arena);
    import->waiting--;
    import->stored += err == NULL ? 1 : 0;
    if (err != NULL && import->failure.kind == ERROR_NONE) {
        import->failure = *err;
    }
    if (import->waiting == 0 || import->waiting == IN_THE_AIR_MAX / 2) {
        session_finish(&import->suppress->session, NULL);
    }
}

// The bus gives each up by its own deadline, so this ends.
static void wait_for_room(Import *import, size_t room)
{
    Error ignored = {0};
    while (import->waiting > room) {
        (void)session_run(&import->suppress->session, 0, &ignored);
    }
}

// Most lines are new to the list, so that is what each says first; of what is there the server
// names the sequence, and the line is stored in its place. The last line of an address counts.
static bool store(Import *import, const SuppressLine *line, Error *err)
{
    Arena *arena = arena_new(LINE_ARENA_SIZE);
    Stored *stored = arena_alloc(arena, sizeof *stored);
    Stentor__V1__Suppression *entry = NULL;
    ConfigStore put = {.done = on_acked, .ctx = stored};
    *stored = (Stored){import, arena};
    bool ok = suppress_event(import->suppress, line, import->at_us, arena, &entry, &put.out, err);
    if (!ok || import->dry_run) {
        import->stored += ok ? 1 : 0;
        arena_free(arena);
        return ok;
    }
    wait_for_room(import, IN_THE_AIR_MAX - 1);
    import->waiting++;
    config_store(import->suppress->session.bus, &put, arena);
    return true;
}

static void take_record(Import *import, const Record *record)
{
    Error err = {0};
    SuppressLine line;
    arena_reset(import->arena);
    if (!suppress_line_parse(
            &import->reading, &import->file.columns, record, import->arena, &line, &err)) {
        name_line(import, &err);
    } else if (line.released || (line.expires_at_us != 0 && line.expires_at_us <= import->at_us)) {
        import->skipped++;
    } else if (!store(import, &line, &err)) {
        name_line(import, &err);
    }
    if (import->file.line % REPORT_EVERY == 0) {
        fprintf(stderr, "%zu lines\n", import->file.line);
    }
}

static bool run(Import *import, Error *err)
{
    Record record;
    RecordRead read = RECORD_READ;
    while (import->failure.kind == ERROR_NONE && (read == RECORD_READ || read == RECORD_BROKEN)) {
        read = record_file_next(&import->file, &record, err);
        if (read == RECORD_READ) {
            take_record(import, &record);
        } else if (read == RECORD_BROKEN) {
            name_line(import, err);
        }
    }
    wait_for_room(import, 0);
    if (import->failure.kind != ERROR_NONE) {
        *err = import->failure;
        return error_wrap(err, "ended near line %zu", import->file.line);
    }
    return read != RECORD_FAILED;
}

static void print_sums(const Cli *cli, const Import *import)
{
    const char *done = import->dry_run ? "good" : "stored";
    if (cli->json) {
        printf(
            "{\"lines\":%llu,\"%s\":%llu,", (unsigned long long)(import->file.next_line - 1), done,
            (unsigned long long)import->stored);
        printf(
            "\"skipped\":%llu,\"broken\":%llu}\n", (unsigned long long)import->skipped,
            (unsigned long long)import->broken);
        return;
    }
    printf(
        "lines %llu, %s %llu, ", (unsigned long long)(import->file.next_line - 1), done,
        (unsigned long long)import->stored);
    printf(
        "skipped %llu, broken %llu\n", (unsigned long long)import->skipped,
        (unsigned long long)import->broken);
}

static bool import_file(Suppress *suppress, Import *import, Error *err)
{
    import->suppress = suppress;
    import->reading.tenant = str_from(suppress->tenant);
    import->reading.hash_key = master_hash_key(suppress->master);
    import->at_us = clock_now_us();
    import->dry_run = args_has(&suppress->cli->args, "dry-run");
    import->arena = arena_new(0);
    bool ok = suppress_defaults(suppress, &import->reading.defaults, err) && run(import, err);
    arena_free(import->arena);
    return ok;
}

int cmd_suppress_import(Cli *cli)
{
    Error err = {0};
    Suppress suppress;
    Import import = {0};
    bool csv = true;
    const char *path = args_word(&cli->args, 0);
    if (!record_format(args_flag(&cli->args, "format"), path, "csv", &csv, &err) ||
        !record_file_open(&import.file, &suppress_records, path, csv, &err)) {
        return cli_fail(&err);
    }
    bool ok = suppress_open(&suppress, cli, true, &err);
    if (ok) {
        ok = import_file(&suppress, &import, &err);
        suppress_close(&suppress);
        print_sums(cli, &import);
    }
    record_file_close(&import.file);
    if (!ok) {
        return cli_fail(&err);
    }
    return import.broken == 0 ? EXIT_DONE : EXIT_FAILED;
}
