// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archive/archive_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/archive/archive_clocks.h"
#include "common/archive/database.h"
#include "common/archive/owner.h"
#include "common/archive/requests.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/facts/facts.h"
#include "common/service/harden.h"
#include "common/service/storage_rows.h"
#include "services/archiver/archive/archive_options.h"

enum {
    EXIT_FAILED = 1,
    EXIT_OPTIONS = 2,
    NICE = 10,
    LOCK_PAUSE_MS = 2000,
    LISTEN_MS = 5000,
    OWNER_RETRY_S = 60,
};

typedef struct ProcessOptions {
    const char *database_url;
    StorageOptions storage;
    const char *spans;
    ArchiveSettings archive;
    const char *log_format;
    bool core_dumps;
} ProcessOptions;

typedef struct Process {
    ProcessOptions options;
    ArchiveOptions archive_options;
    QuietHours quiet;
    RequestProgress progress;
    Archive archive;
    int64_t next_run_us;   // monotonic
    int64_t next_owner_us; // monotonic; while it stands still
} Process;

// clang-format off
static const Option process_rows[] = {
    {"STENTOR_DATABASE_URL", OPTION_TEXT, offsetof(ProcessOptions, database_url), NULL, 0, 0, true, "Postgres"},
    {"STENTOR_LOG_FORMAT", OPTION_TEXT, offsetof(ProcessOptions, log_format), "json", 0, 0, false, "json or logfmt"},
    {"STENTOR_CORE_DUMPS", OPTION_BOOL, offsetof(ProcessOptions, core_dumps), "false", 0, 0, false, "for developers"},
    {"STENTOR_RETENTION_SPANS", OPTION_TEXT, offsetof(ProcessOptions, spans), "", 0, 0, false, "of each class"},
    STORAGE_ROWS(ProcessOptions, "nothing is archived"),
    ARCHIVE_ROWS(ProcessOptions, archive),
};
// clang-format on

enum { PROCESS_ROWS = sizeof process_rows / sizeof process_rows[0] };

static void pause_ms(int ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = INT64_C(1000000) * (ms % 1000)};
    (void)nanosleep(&pause, NULL);
}

// ---- options ----

static bool read_options(Process *process, Error *err)
{
    char name[] = "stentor-archiver";
    char *argv[] = {name, NULL};
    ProcessOptions *options = &process->options;
    if (!options_load(process_rows, PROCESS_ROWS, options, 1, argv, err)) {
        return false;
    }
    process->archive_options = (ArchiveOptions){
        .database_url = options->database_url,
        .storage = options->storage,
        .spool = {.folder = options->archive.spool_folder, .option = "STENTOR_ARCHIVE_SPOOL_DIR"},
        .part_bytes = (uint64_t)options->archive.part_kib * 1024,
        .part_rows = (uint64_t)options->archive.part_rows,
        .cold_class = options->archive.cold_class[0] != '\0' ? options->archive.cold_class : NULL,
        .grace_us = options->archive.grace_s * 1000000,
        .progress = request_progress(&process->progress)};
    if (!retention_plan_parse(str_from(options->spans), &process->archive_options.plan, err)) {
        return error_wrap(err, "STENTOR_RETENTION_SPANS");
    }
    return archive_quiet_parse(options->archive.quiet_hours, &process->quiet, err);
}

// ---- the work ----

static ArchiveRun usual_run(const Process *process)
{
    return (ArchiveRun){.hot_us = -1, .quiet = archive_is_quiet(process->quiet, clock_now_us())};
}

// Waits until no other process archives.
static bool take_lock(Process *process, Error *err)
{
    for (;;) {
        AUTO(PGresult)
        rows = archive_ask(
            process->archive.pg, "archive.lock",
            "SELECT pg_try_advisory_lock(hashtextextended('stentor.archive', 0))", NULL, 0, err);
        if (rows == NULL) {
            return false;
        }
        if (archive_text(rows, 0, 0)[0] == 't') {
            return true;
        }
        pause_ms(LOCK_PAUSE_MS);
    }
}

// true: the bucket is ours. It stands still otherwise, and asks again: an operator may mend it.
static bool own(Process *process, bool *ret_owns, Error *err)
{
    *ret_owns = process->archive.epoch > 0;
    if (*ret_owns || clock_mono_us() < process->next_owner_us) {
        return true;
    }
    process->next_owner_us = clock_mono_us() + INT64_C(1000000) * OWNER_RETRY_S;
    *ret_owns = owner_take(&process->archive, false, err);
    if (*ret_owns) {
        (void)snprintf(
            process->progress.epoch, sizeof process->progress.epoch, "%s",
            process->archive.epoch_text);
        LOG(LOG_INFO, "archiving units", log_int("epoch", process->archive.epoch));
    } else if (err->kind == ERROR_PERMANENT) {
        LOG(LOG_ERROR, "archiving stands still", log_error(err));
    }
    return *ret_owns || err->kind == ERROR_PERMANENT;
}

// A day that fails is tried again with the next look; units are archived all the same.
static void write_facts(Process *process)
{
    const FactsOptions options = {
        .spool = process->archive_options.spool,
        .installation = process->archive.installation,
        .part_bytes = process->archive_options.part_bytes};
    Error err = {0};
    int days = 0;
    if (!process->options.archive.facts) {
        return;
    }
    if (!facts_write_due(process->archive.pg, process->archive.storage, &options, &days, &err)) {
        LOG(LOG_WARN, "facts were not written; trying again", log_error(&err));
    }
    if (days > 0) {
        LOG(LOG_INFO, "facts written", log_int("days", days));
    }
}

// By Postgres's clock, so not while it may be wrong. A refusal is noted by the check.
static void prune_requests(Process *process)
{
    Error err = {0};
    if (!archive_clocks_agree(&process->archive, &err)) {
        return;
    }
    if (!archive_do(
            process->archive.pg, "requests.prune", "SELECT archive.prune_requests()", NULL, 0,
            &err)) {
        LOG(LOG_WARN, "requests that ended were not removed; trying again", log_error(&err));
    }
}

static bool run_if_due(Process *process, Error *err)
{
    if (clock_mono_us() < process->next_run_us) {
        return true;
    }
    ArchiveRun run = usual_run(process);
    ArchiveRan ran;
    process->next_run_us = clock_mono_us() + process->options.archive.every_s * 1000000;
    if (!archive_run(&process->archive, &run, &ran, err)) {
        return process->archive.epoch == 0; // another took the bucket: stands still from now on
    }
    if (ran.failed > 0) {
        LOG(LOG_WARN, "units were not archived; trying again", log_int("units", ran.failed),
            log_text("failure", ran.failure));
    }
    prune_requests(process);
    write_facts(process);
    return true;
}

// What is lost meanwhile is another's: it stands still. Else it is tried again.
static void renew(Process *process)
{
    Error err = {0};
    if (!owner_renew(&process->archive, &err)) {
        LOG(LOG_WARN, "the bucket was not renewed", log_error(&err));
    }
}

static bool serve_all(Process *process, Error *err)
{
    bool worked = true;
    while (worked) {
        ArchiveRun defaults = usual_run(process);
        if (!archive_serve(&process->archive, &process->progress, &defaults, &worked, err)) {
            return false;
        }
    }
    return true;
}

static bool take_notes(PGconn *pg)
{
    bool any = false;
    for (PGnotify *note; (note = PQnotifies(pg)) != NULL; any = true) {
        PQfreemem(note);
    }
    return any;
}

// Until a request is made, or for LISTEN_MS. What came during a statement is there already.
static bool wait_request(Process *process, Error *err)
{
    PGconn *pg = process->archive.pg;
    struct pollfd ready = {.fd = PQsocket(pg), .events = POLLIN};
    if (take_notes(pg)) {
        return true;
    }
    if (poll(&ready, 1, LISTEN_MS) < 0 && errno != EINTR) {
        return error_set(err, ERROR_TRANSIENT, "poll: %s", strerror(errno));
    }
    if (PQconsumeInput(pg) != 1) {
        return error_set(err, ERROR_TRANSIENT, "the database: %s", PQerrorMessage(pg));
    }
    (void)take_notes(pg);
    return true;
}

static bool work(Process *process, Error *err)
{
    if (!take_lock(process, err) ||
        !archive_do(
            process->archive.pg, "archive.listen", "LISTEN stentor_archive", NULL, 0, err)) {
        return false;
    }
    for (bool ok = true, owns = false; ok;) {
        renew(process);
        ok = own(process, &owns, err) && serve_all(process, err) &&
             (process->archive.epoch == 0 || run_if_due(process, err)) &&
             wait_request(process, err);
    }
    return false;
}

static bool open_and_work(Process *process, Error *err)
{
    process->progress.pg =
        archive_connect(process->options.database_url, "stentor-archive-progress", err);
    return process->progress.pg != NULL &&
           archive_open(&process->archive, &process->archive_options, err) && work(process, err);
}

int archive_process_main(void)
{
    Process process = {0};
    Error err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    if (!read_options(&process, &err)) {
        (void)fprintf(stderr, "stentor-archiver: %s\n", err.text);
        return EXIT_OPTIONS;
    }
    if (!process.options.core_dumps) {
        process_forbid_dumps();
    }
    log_setup("stentor-archiver", LOG_INFO, strcmp(process.options.log_format, "logfmt") != 0);
    bool ok = open_and_work(&process, &err);
    if (!ok) {
        LOG(LOG_WARN, "archiving stopped; it is started again", log_error(&err));
    }
    archive_close(&process.archive);
    PQfinish(process.progress.pg);
    options_free(process_rows, PROCESS_ROWS, &process.options);
    return EXIT_FAILED;
}
