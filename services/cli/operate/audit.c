// SPDX-License-Identifier: Apache-2.0
// audit: reconciles every record of every notification of a span; --repair drives what is lost
// again.
#include <stdlib.h>
#include <time.h>

#include "common/audit/audit_pg.h"
#include "common/audit/audit_repair.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/cli/cli.h"
#include "services/cli/noted.h"
#include "services/cli/operate/audit_report.h"

enum {
    CONFIRM_MS = 2000, // between two readings that must both miss a record
    POLL_MS = 1000,
};
static const int64_t SECOND_US = 1000000;
static const int64_t DAY_US = INT64_C(86400) * 1000000;

// ---- options ----

static bool read_options(Cli *cli, int64_t now_us, AuditOptions *ret, Error *err)
{
    const Args *args = &cli->args;
    int64_t grace_s = 0;
    int64_t wait_s = 0;
    *ret = (AuditOptions){
        .since_us = now_us - DAY_US,
        .until_us = now_us,
        .tenant = args_flag(args, "tenant"),
        .repair = args_has(args, "repair")};
    if (!args_time(args, "since", TIME_BEFORE_NOW, now_us, &ret->since_us, err) ||
        !args_time(args, "until", TIME_BEFORE_NOW, now_us, &ret->until_us, err) ||
        !args_int(args, "grace", 30, 0, 86400, &grace_s, err) ||
        !args_int(args, "wait", 30, 0, 86400, &wait_s, err) ||
        !args_int(args, "limit", 20, 0, INT64_MAX, &ret->limit, err)) {
        return false;
    }
    // Ids have milliseconds.
    ret->since_us -= ret->since_us % 1000;
    ret->until_us -= ret->until_us % 1000;
    if (ret->since_us >= ret->until_us) {
        return error_set(err, ERROR_USAGE, "--since is not before --until");
    }
    if (ret->tenant != NULL && !id_is_tenant(str_from(ret->tenant))) {
        return error_set(
            err, ERROR_USAGE, "--tenant '%s' is not a tenant: [a-z0-9_-], at most 32", ret->tenant);
    }
    if (!ret->repair && args_has(args, "wait")) {
        return error_set(err, ERROR_USAGE, "--wait is for --repair");
    }
    ret->grace_us = grace_s * SECOND_US;
    ret->wait_us = wait_s * SECOND_US;
    return true;
}

// ---- readings ----

static void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static bool read_confirmed(Audit *audit, Error *err)
{
    if (!audit_read(audit, err)) {
        return false;
    }
    if (audit_misses_any(audit)) {
        sleep_ms(CONFIRM_MS);
        return audit_read(audit, err);
    }
    return true;
}

static bool is_repair_done(const Audit *audit)
{
    for (size_t i = 0; i < audit_table_count(audit->table); i++) {
        const AuditEntry *entry = audit_table_at(audit->table, i);
        AuditState state = audit_verdict(audit, entry).state;
        bool ended = state == AUDIT_SENT || state == AUDIT_FAILED || state == AUDIT_SUPPRESSED ||
                     (state == AUDIT_IN_FLIGHT && (entry->seen & SEEN_DUE) != 0);
        if ((entry->seen & SEEN_REPAIRED) != 0 && (entry->missing != 0 || !ended)) {
            return false;
        }
    }
    return true;
}

// Until everything that was driven again is whole, or the time is up. What was lost before stays
// found: what still lacks a record is missed by both of the last readings.
static bool read_after_repair(Audit *audit, Error *err)
{
    int64_t give_up_us = clock_mono_us() + audit->options.wait_us;
    if (audit->options.grace_us > audit->options.wait_us / 2) {
        audit->options.grace_us = audit->options.wait_us / 2;
    }
    for (;;) {
        int64_t begun_us = clock_mono_us();
        if (!audit_read(audit, err)) {
            return false;
        }
        int64_t now_us = clock_mono_us();
        int64_t pause_us = now_us - begun_us > POLL_MS * 1000 ? now_us - begun_us : POLL_MS * 1000;
        if (is_repair_done(audit) || now_us + pause_us > give_up_us) {
            break;
        }
        sleep_ms(pause_us / 1000);
    }
    return read_confirmed(audit, err);
}

// ---- the command ----

static void add_figures(json_t *report, const Audit *audit, int64_t begun_us)
{
    double seconds = (double)(clock_mono_us() - begun_us) / 1e6;
    json_object_set_new(report, "rows", json_integer((json_int_t)audit->rows));
    json_object_set_new(report, "seconds", json_real(seconds));
    json_object_set_new(report, "rows_per_s", json_real((double)audit->rows / seconds));
}

static bool note_repair(Cli *cli, const Audit *audit, Error *err)
{
    const AuditNote note = {
        .kind = AUDIT_WRITE,
        .tenant = audit->options.tenant,
        .action = "notifications.repaired",
        .target = "accept_log"};
    return cli_audit(cli, audit->session, &note, err);
}

static bool run(Cli *cli, Audit *audit, json_t **ret_report, Error *err)
{
    int64_t begun_us = clock_mono_us();
    if (!read_confirmed(audit, err)) {
        return false;
    }
    json_t *report = audit_report(audit);
    add_figures(report, audit, begun_us);
    uint64_t repaired = 0;
    bool ok = true;
    if (audit->options.repair) {
        json_t *before = report;
        ok = note_repair(cli, audit, err) && audit_repair(audit, &repaired, err) &&
             (repaired == 0 || read_after_repair(audit, err));
        report = audit_report(audit);
        add_figures(report, audit, begun_us);
        json_object_set_new(report, "repaired", json_integer((json_int_t)repaired));
        json_object_set_new(report, "before", before);
    }
    *ret_report = report;
    if (!ok) {
        json_decref(report);
    }
    return ok;
}

static void print_report(const Cli *cli, const json_t *report)
{
    if (cli->json) {
        (void)json_dumpf(report, stdout, JSON_COMPACT | JSON_REAL_PRECISION(10));
        (void)putchar('\n');
        return;
    }
    const json_t *before = json_object_get(report, "before");
    if (before != NULL) {
        audit_print(before);
        printf(
            "published again: %lld; then\n",
            (long long)json_integer_value(json_object_get(report, "repaired")));
    }
    audit_print(report);
    printf(
        "%lld records read in %.1f s\n",
        (long long)json_integer_value(json_object_get(report, "rows")),
        json_real_value(json_object_get(report, "seconds")));
}

static void note_retention(const Cli *cli, const Audit *audit)
{
    if (audit->kept_us > audit->options.since_us) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(audit->kept_us, at);
        cli_note(
            cli,
            "notifications accepted before %s are audited only where the accept log still holds "
            "them, which is those that have not ended: older rows are past their retention",
            at);
    }
}

static int audit_all(Cli *cli, AuditOptions *options)
{
    Error err = {0};
    Session session;
    const char *database = cli->settings.database_url;
    PGconn *conn =
        cli_need(database, "STENTOR_DATABASE_URL", &err) ? audit_pg_open(database, &err) : NULL;
    if (conn == NULL) {
        return cli_fail(cli, &err);
    }
    if (!session_open(&session, &cli->settings.session, &err)) {
        PQfinish(conn);
        return cli_fail(cli, &err);
    }
    Audit audit = {
        .options = *options,
        .table = audit_table_new(),
        .session = &session,
        .conn = conn,
    };
    audit_table_span(audit.table, options->since_us, options->until_us);
    audit_table_only(audit.table, str_from(options->tenant));
    json_t *report = NULL;
    int status = EXIT_DONE;
    if (run(cli, &audit, &report, &err)) {
        note_retention(cli, &audit);
        print_report(cli, report);
        bool lost = json_integer_value(json_object_get(report, "lost")) > 0;
        status = lost ? EXIT_FAILED : EXIT_DONE;
        json_decref(report);
    } else {
        status = cli_fail(cli, &err);
    }
    audit_table_free(audit.table);
    session_close(&session);
    PQfinish(conn);
    return status;
}

int cmd_audit(Cli *cli)
{
    Error err = {0};
    AuditOptions options;
    if (!read_options(cli, clock_now_us(), &options, &err)) {
        return cli_fail(cli, &err);
    }
    return audit_all(cli, &options);
}
