// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/audit_process.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "common/audit/audit_pg.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/harden.h"

enum { NICE = 10, CONFIRM_S = 2, INPUT_MAX = 64 * 1024 };

typedef struct Job {
    json_t *input;
    char tenant[33]; // "": all
    AuditOptions options;
} Job;

// ---- the job ----

static bool read_time(const json_t *parameters, const char *name, int64_t *ret_us, Error *err)
{
    const char *text = json_string_value(json_object_get(parameters, name));
    return (text != NULL && clock_parse(str_from(text), ret_us)) ||
           error_set(err, ERROR_PERMANENT, "the job has no time '%s'", name);
}

static bool read_job(Job *job, Error *err)
{
    char text[INPUT_MAX];
    size_t len = fread(text, 1, sizeof text, stdin);
    job->input = json_loadb(text, len, 0, NULL);
    const json_t *parameters = json_object_get(job->input, "parameters");
    const char *tenant = json_string_value(json_object_get(job->input, "tenant"));
    if (tenant == NULL || !read_time(parameters, "from", &job->options.since_us, err) ||
        !read_time(parameters, "to", &job->options.until_us, err)) {
        return error_set(err, ERROR_PERMANENT, "the job cannot be read");
    }
    bool all = str_eq(str_from(tenant), STR("platform"));
    (void)str_to_c(all ? STR_EMPTY : str_from(tenant), job->tenant, sizeof job->tenant);
    job->options.tenant = all ? NULL : job->tenant;
    job->options.grace_us =
        json_integer_value(json_object_get(parameters, "grace_s")) * INT64_C(1000000);
    return true;
}

// ---- the answer ----

static void answer(json_t *object)
{
    (void)json_dumpf(object, stdout, JSON_COMPACT);
    (void)fflush(stdout);
    json_decref(object);
}

static void set_count(json_t *object, const char *name, uint64_t count)
{
    (void)json_object_set_new(object, name, json_integer((json_int_t)count));
}

// accepted is the sum of all: what is in none of the four has an unknown outcome, or lacks a
// record.
static json_t *result_of(const Audit *audit, int64_t begun_us)
{
    char oldest[CLOCK_RFC3339_SIZE];
    AuditSummary sum = audit_sum(audit);
    json_t *object = json_object();
    set_count(object, "accepted", sum.accepted);
    set_count(object, "sent", sum.sent);
    set_count(object, "failed", sum.failed);
    set_count(object, "suppressed", sum.suppressed);
    set_count(object, "in_flight", sum.in_flight);
    set_count(
        object, "unsettled", sum.accepted - sum.sent - sum.failed - sum.suppressed - sum.in_flight);
    set_count(object, "lost", sum.lost);
    set_count(object, "doubled", sum.doubled);
    set_count(object, "unknown", sum.unknown);
    clock_format(sum.oldest_in_flight_us, oldest);
    (void)json_object_set_new(
        object, "oldest_in_flight_at",
        sum.oldest_in_flight_us > 0 ? json_string(oldest) : json_null());
    set_count(object, "records", audit->rows);
    (void)json_object_set_new(
        object, "seconds", json_real((double)(clock_mono_us() - begun_us) / 1e6));
    return object;
}

// ---- the work ----

static bool read_confirmed(Audit *audit, Error *err)
{
    if (!audit_read(audit, err)) {
        return false;
    }
    if (!audit_misses_any(audit)) {
        return true;
    }
    (void)nanosleep(&(struct timespec){.tv_sec = CONFIRM_S}, NULL);
    return audit_read(audit, err);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

static bool run(const Job *job, Error *err)
{
    const SessionOptions options = {
        setting("STENTOR_NATS_URL"), setting("STENTOR_NATS_USER"),
        setting("STENTOR_NATS_PASSWORD")};
    Session session;
    int64_t begun_us = clock_mono_us();
    PGconn *conn = audit_pg_open(setting("STENTOR_DATABASE_URL"), err);
    if (conn == NULL) {
        return false;
    }
    if (!session_open(&session, &options, err)) {
        PQfinish(conn);
        return false;
    }
    Audit audit = {
        .options = job->options,
        .table = audit_table_new(),
        .session = &session,
        .conn = conn,
    };
    audit_table_span(audit.table, job->options.since_us, job->options.until_us);
    audit_table_only(audit.table, str_from(job->options.tenant));
    bool ok = read_confirmed(&audit, err);
    if (ok) {
        answer(json_pack("{s:o}", "result", result_of(&audit, begun_us)));
    }
    audit_table_free(audit.table);
    session_close(&session);
    PQfinish(conn);
    return ok;
}

int audit_process_main(void)
{
    Job job = {.input = NULL};
    Error err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    process_forbid_dumps();
    log_setup("stentor-gateway", LOG_WARN, true);
    if (!read_job(&job, &err) || !run(&job, &err)) {
        // Texts of servers are for the log.
        LOG(LOG_ERROR, "an audit failed", log_error(&err));
        answer(json_pack(
            "{s:s}", "error",
            err.kind == ERROR_TRANSIENT ? "NATS or Postgres did not answer; ask again"
                                        : "the service's log has the reason"));
    }
    json_decref(job.input);
    return 0;
}
