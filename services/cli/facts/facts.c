// SPDX-License-Identifier: Apache-2.0
// facts write: a day's facts to object storage, for analytics.
#include "common/facts/facts.h"

#include <inttypes.h>

#include "common/archive/database.h"
#include "common/base/clock.h"
#include "services/cli/cli.h"

enum { DAYS_MAX = 400 };
static const int64_t day_length_us = INT64_C(86400000000);

static bool read_day(const char *flag, const char *text, int64_t *ret, Error *err)
{
    char time[CLOCK_RFC3339_SIZE];
    Str day = str_from(text);
    bool ok = day.len == 10 && snprintf(time, sizeof time, "%sT00:00:00Z", text) > 0 &&
              clock_parse(str_from(time), ret);
    return ok ||
           error_set(err, ERROR_USAGE, "--%s '%.40s' is no day such as 2026-10-03", flag, text);
}

static bool read_days(const Cli *cli, int64_t *ret_first, int64_t *ret_last, Error *err)
{
    const char *last = args_flag(&cli->args, "to");
    if (!read_day("day", args_flag(&cli->args, "day"), ret_first, err)) {
        return false;
    }
    *ret_last = *ret_first;
    if (last != NULL && !read_day("to", last, ret_last, err)) {
        return false;
    }
    if (*ret_last < *ret_first || *ret_last - *ret_first > DAYS_MAX * day_length_us) {
        return error_set(err, ERROR_USAGE, "--to is before --day, or over %d days later", DAYS_MAX);
    }
    return *ret_last + day_length_us <= clock_now_us() ||
           error_set(err, ERROR_USAGE, "the day is not over yet (in UTC)");
}

static void print_day(const Cli *cli, int64_t day_us, const FactsWritten *written)
{
    char day[CLOCK_RFC3339_SIZE];
    clock_format(day_us, day);
    day[10] = '\0';
    const char *const pairs[] = {
        "day",      day,
        "rows",     arena_printf(cli->arena, "%" PRIu64, written->rows),
        "objects",  arena_printf(cli->arena, "%" PRIu64, written->objects),
        "bytes",    arena_printf(cli->arena, "%" PRIu64, written->bytes),
        "replaced", arena_printf(cli->arena, "%" PRIu64, written->replaced),
        NULL};
    print_pairs(cli, pairs);
}

static bool write_days(const Cli *cli, PGconn *pg, StorageWait *storage, Error *err)
{
    const char *spool = args_flag(&cli->args, "spool");
    const FactsOptions options = {
        .spool = {.folder = spool != NULL ? spool : "/tmp", .option = "--spool"}};
    int64_t day = 0, last = 0;
    if (!read_days(cli, &day, &last, err)) {
        return false;
    }
    for (; day <= last; day += day_length_us) {
        FactsWritten written;
        if (!facts_write_day(pg, storage, &options, day, &written, err)) {
            return false;
        }
        print_day(cli, day, &written);
    }
    return true;
}

int cmd_facts_write(Cli *cli)
{
    Error err = {0};
    PGconn *pg = NULL;
    StorageWait *storage = NULL;
    bool ok = cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err) &&
              cli_need(cli->settings.storage.url, "STENTOR_STORAGE_URL", &err) &&
              (pg = archive_connect(cli->settings.database_url, "stentor facts", &err)) != NULL &&
              (storage = storage_wait_open(&cli->settings.storage, &err)) != NULL &&
              write_days(cli, pg, storage, &err);
    storage_wait_close(storage);
    PQfinish(pg);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
