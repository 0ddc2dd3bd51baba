// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/shadow_process.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/replay/shadow/shadow.h"
#include "common/service/harden.h"
#include "services/gateway/jobs/shadow_answer.h"

enum { NICE = 10, INPUT_MAX = 64 * 1024, PROGRESS_US = 1000000 };

typedef struct Job {
    json_t *input;
    ShadowPlan plan;
    int64_t begun_us, said_us; // monotonic
} Job;

// ---- the job ----

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static bool read_job(Job *job, Error *err)
{
    char text[INPUT_MAX];
    size_t len = fread(text, 1, sizeof text, stdin);
    job->input = json_loadb(text, len, 0, NULL);
    const json_t *parameters = json_object_get(job->input, "parameters");
    ShadowPlan *plan = &job->plan;
    *plan = (ShadowPlan){
        .key = text_of(parameters, "template"),
        .version = text_of(parameters, "version"),
        .version_tenant = text_of(parameters, "version_tenant"),
        .tenant = text_of(job->input, "tenant"),
        .limit = json_integer_value(json_object_get(parameters, "limit")),
        .diffs = SHADOW_EXAMPLES,
        .as_written = true,
        .stop_us = job->begun_us + SHADOW_SECONDS * INT64_C(1000000),
    };
    return (plan->key[0] != '\0' && plan->version[0] != '\0' && plan->version_tenant[0] != '\0' &&
            plan->tenant[0] != '\0' && plan->limit > 0 &&
            channel_from_name(str_from(text_of(parameters, "channel")), &plan->channel) &&
            clock_parse(str_from(text_of(parameters, "from")), &plan->from_us)) ||
           error_set(err, ERROR_CONFIG, "the job cannot be read");
}

// ---- the answer ----

static void answer(json_t *object)
{
    (void)json_dumpf(object, stdout, JSON_COMPACT);
    (void)fflush(stdout);
    json_decref(object);
}

// ---- the work ----

static void on_progress(void *ctx, const ShadowTally *tally)
{
    Job *job = ctx;
    int64_t now_us = clock_mono_us();
    if (now_us - job->said_us < PROGRESS_US) {
        return;
    }
    job->said_us = now_us;
    answer(json_pack(
        "{s:{s:I, s:I}}", "progress", "scanned", (json_int_t)tally->scanned, "compared",
        (json_int_t)shadow_answer_compared(tally)));
    (void)putchar('\n');
    (void)fflush(stdout);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

// Texts of servers and paths of files are for the log; what is wrong with the version is the
// caller's.
static void answer_failure(const Error *err, bool is_callers)
{
    LOG(LOG_ERROR, "a shadow failed", log_error(err));
    const char *why = is_callers                     ? err->text
                      : err->kind == ERROR_TRANSIENT ? "NATS or Postgres did not answer; ask again"
                                                     : "the service's log has the reason";
    answer(json_pack("{s:s}", "error", why));
}

static void run(Job *job)
{
    const ShadowOptions options = {
        .session =
            {setting("STENTOR_NATS_URL"), setting("STENTOR_NATS_USER"),
             setting("STENTOR_NATS_PASSWORD")},
        .database_url = setting("STENTOR_DATABASE_URL"),
        .master_key_file = setting("STENTOR_MASTER_KEY_FILE"),
        .epoch_keys_dir = setting("STENTOR_EPOCH_KEYS_DIR"),
        .program = "stentor-gateway",
        .on_progress = on_progress,
        .ctx = job,
    };
    Error err = {0};
    ShadowTally tally;
    shadow_tally_init(&tally);
    if (shadow_run(&options, &job->plan, &tally, &err)) {
        answer(
            json_pack("{s:o}", "result", shadow_answer(&tally, clock_mono_us() - job->begun_us)));
    } else {
        answer_failure(&err, tally.no_version || err.kind == ERROR_PERMANENT);
    }
    shadow_tally_done(&tally);
}

int shadow_process_main(void)
{
    Job job = {.begun_us = clock_mono_us()};
    Error err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    process_forbid_dumps();
    log_setup("stentor-gateway", LOG_WARN, true);
    if (read_job(&job, &err)) {
        run(&job);
    } else {
        answer_failure(&err, false);
    }
    json_decref(job.input);
    return 0;
}
