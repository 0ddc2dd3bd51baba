// SPDX-License-Identifier: Apache-2.0
#include "services/cli/replay/replay_options.h"

#include <string.h>

#include "common/base/id.h"
#include "common/eventlog/log_streams.h"

// ---- times and numbers ----

static bool read_sequence(Cli *cli, const char *flag, uint64_t *ret, Error *err)
{
    int64_t value = 0;
    if (!args_int(&cli->args, flag, 0, 1, INT64_MAX, &value, err)) {
        return false;
    }
    *ret = (uint64_t)value;
    return true;
}

// "500" or "500/s"
static bool read_rate(Cli *cli, int64_t *ret, Error *err)
{
    const char *given = args_flag(&cli->args, "rate");
    Str text = str_from(given);
    if (given == NULL) {
        return true;
    }
    if (str_ends(text, STR("/s"))) {
        text = str_slice(text, 0, text.len - 2);
    }
    if (!str_to_i64(text, ret) || *ret < 1 || *ret > REPLAY_RATE_MAX) {
        return error_set(
            err, ERROR_USAGE, "--rate is '%s': expected messages a second, 1/s to %d/s", given,
            REPLAY_RATE_MAX);
    }
    return true;
}

// ---- what to read ----

static bool read_stream(Cli *cli, ReplayPlan *plan, Error *err)
{
    const char *name = args_flag(&cli->args, "stream");
    plan->stream = name != NULL ? topology_stream(name) : NULL;
    if (plan->stream != NULL) {
        return true;
    }
    Buf names;
    buf_init(&names, 1024);
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&names, "%s%s", names.len > 0 ? " " : "", streams[i].name);
    }
    error_set(
        err, ERROR_USAGE, "%s%s%s: expected one of %s", name == NULL ? "--stream is required" : "",
        name != NULL ? "there is no stream " : "", name != NULL ? name : "", buf_c(&names));
    buf_done(&names);
    return false;
}

static bool read_beginning(Cli *cli, int64_t now_us, ReplayPlan *plan, Error *err)
{
    int given = args_has(&cli->args, "from-seq") + args_has(&cli->args, "from-time") +
                args_has(&cli->args, "last-per-subject");
    if (given != 1) {
        return error_set(
            err, ERROR_USAGE,
            "one of --from-seq N, --from-time TIME and --last-per-subject is required: where it "
            "starts");
    }
    plan->last_per_subject = args_has(&cli->args, "last-per-subject");
    if (!read_sequence(cli, "from-seq", &plan->from_sequence, err) ||
        !read_sequence(cli, "to-seq", &plan->to_sequence, err) ||
        !args_time(&cli->args, "from-time", TIME_BEFORE_NOW, now_us, &plan->from_time_us, err) ||
        !args_time(&cli->args, "to-time", TIME_BEFORE_NOW, now_us, &plan->to_time_us, err)) {
        return false;
    }
    if (plan->to_sequence > 0 && plan->to_sequence < plan->from_sequence) {
        return error_set(err, ERROR_USAGE, "--to-seq is before --from-seq");
    }
    if (plan->to_time_us > 0 && plan->to_time_us < plan->from_time_us) {
        return error_set(err, ERROR_USAGE, "--to-time is before --from-time");
    }
    return plan->from_time_us <= now_us ||
           error_set(err, ERROR_USAGE, "--from-time is in the future");
}

// Every subject that `filter` takes is one of the stream's: the server refuses another one.
static bool is_within(Str filter, Str subjects)
{
    Str wanted = STR_EMPTY;
    Str token = STR_EMPTY;
    while (str_split(&subjects, '.', &wanted)) {
        if (str_eq(wanted, STR(">"))) {
            return filter.len > 0;
        }
        bool fits = str_split(&filter, '.', &token) && token.len > 0 && !str_eq(token, STR(">"));
        if (!fits || (!str_eq(wanted, STR("*")) && !str_eq(wanted, token))) {
            return false;
        }
    }
    return filter.len == 0;
}

static bool is_subject(Str text, bool wildcards)
{
    Str token;
    bool ended = false;
    if (text.len == 0 || text.len >= SUBJECT_SIZE || str_has_control(text) ||
        str_ends(text, STR(".")) || str_find(text, ' ') >= 0) {
        return false;
    }
    while (str_split(&text, '.', &token)) {
        bool wild = str_find(token, '*') >= 0 || str_find(token, '>') >= 0;
        if (token.len == 0 || ended || (wild && (!wildcards || token.len > 1))) {
            return false;
        }
        ended = str_eq(token, STR(">"));
    }
    return true;
}

static bool read_subjects(Cli *cli, ReplayPlan *plan, Error *err)
{
    plan->filter = args_flag(&cli->args, "subject");
    Str filter = str_from(plan->filter);
    if (plan->filter != NULL &&
        (!is_subject(filter, true) || !is_within(filter, str_from(plan->stream->subjects)))) {
        return error_set(
            err, ERROR_USAGE,
            "--subject is '%s': expected a filter within '%s', the subjects of %s", plan->filter,
            plan->stream->subjects, plan->stream->name);
    }
    if (!cli_tenant_or_all(cli, "messages", &plan->tenant, err)) {
        return false;
    }
    if (plan->tenant == NULL) {
        return true;
    }
    return replay_says_tenant(plan->stream) ||
           error_set(
               err, ERROR_USAGE, "the subjects of %s do not name the tenant (HINT: --all-tenants)",
               plan->stream->name);
}

// ---- where to ----

static bool check_service(ReplayPlan *plan, Error *err)
{
    size_t count;
    const ConsumerSpec *consumers = topology_consumers(&count);
    const char *reader = NULL; // who reads it; a stream has one
    if (plan->stream->republish != NULL) {
        return error_set(
            err, ERROR_USAGE,
            "a copy in %s would reach its subscribers (HINT: --to-subject replay.<anything>)",
            plan->stream->name);
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(consumers[i].stream, plan->stream->name) != 0) {
            continue;
        }
        reader = consumers[i].name;
        if (topology_consumer(plan->service, plan->stream->name) == &consumers[i]) {
            plan->service = reader;
            return true;
        }
    }
    if (reader == NULL) {
        return error_set(
            err, ERROR_USAGE, "no service works on %s (HINT: --to-subject replay.<anything>)",
            plan->stream->name);
    }
    return error_set(
        err, ERROR_USAGE, "'%s' does not work on %s (HINT: --to-service %s)", plan->service,
        plan->stream->name, reader);
}

static bool read_target(Cli *cli, ReplayPlan *plan, Error *err)
{
    plan->dry_run = args_has(&cli->args, "dry-run");
    plan->accept_again = args_has(&cli->args, "accept-again");
    plan->service = args_flag(&cli->args, "to-service");
    plan->subject = args_flag(&cli->args, "to-subject");
    if (plan->service != NULL && plan->subject != NULL) {
        return error_set(err, ERROR_USAGE, "--to-service and --to-subject exclude each other");
    }
    if (plan->service == NULL && plan->subject == NULL && !plan->dry_run) {
        return error_set(
            err, ERROR_USAGE,
            "--to-service NAME, --to-subject replay.NAME or --dry-run is required: where the "
            "messages go");
    }
    if (plan->accept_again && strcmp(plan->stream->name, "EVENTS") != 0) {
        return error_set(err, ERROR_USAGE, "--accept-again is for EVENTS only");
    }
    Str subject = str_from(plan->subject);
    if (plan->subject != NULL && (!is_subject(subject, false) || subject.len <= strlen("replay.") ||
                                  !str_starts(subject, STR("replay.")))) {
        return error_set(
            err, ERROR_USAGE,
            "--to-subject is '%s': expected one below 'replay.', which no stream keeps",
            plan->subject);
    }
    return plan->service == NULL || check_service(plan, err);
}

static bool check_archive(const Cli *cli, const ReplayPlan *plan, Error *err)
{
    if (!args_has(&cli->args, "from-archive")) {
        return true;
    }
    const LogStream *stream = log_stream(plan->stream->name);
    if (stream == NULL || stream->keeping == KEPT_NOT) {
        return error_set(
            err, ERROR_USAGE, "%s is not archived: %s", plan->stream->name,
            stream != NULL ? stream->why : "it is unknown");
    }
    if (plan->last_per_subject) {
        return error_set(
            err, ERROR_USAGE, "--from-archive and --last-per-subject exclude each other");
    }
    return plan->from_sequence > 0 || plan->to_sequence == 0 ||
           error_set(
               err, ERROR_USAGE,
               "--to-seq needs --from-seq with --from-archive: a time may be one of a former "
               "stream");
}

static bool read_run(Cli *cli, int64_t now_us, ReplayPlan *plan, Error *err)
{
    plan->run = args_flag(&cli->args, "run");
    if (plan->run == NULL) {
        char id[ID_SIZE];
        id_new("run_", now_us, id);
        plan->run = arena_cstr(cli->arena, str_from(id));
        return true;
    }
    size_t len = strlen(plan->run);
    size_t plain =
        strspn(plan->run, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    if (len == 0 || len > REPLAY_RUN_MAX || plain != len) {
        return error_set(
            err, ERROR_USAGE, "--run is '%s': expected 1 to %d letters, digits, '_' and '-'",
            plan->run, REPLAY_RUN_MAX);
    }
    return true;
}

static bool check_flags(const Cli *cli, Error *err)
{
    static const char *const shadows[] = {
        "template", "subject-template", "text", "key", "locale", "limit", "diffs"};
    for (size_t i = 0; i < sizeof shadows / sizeof *shadows; i++) {
        if (args_has(&cli->args, shadows[i])) {
            return error_set(err, ERROR_USAGE, "--%s is for replay --shadow only", shadows[i]);
        }
    }
    return true;
}

bool replay_plan_read(Cli *cli, int64_t now_us, ReplayPlan *ret, Error *err)
{
    *ret = (ReplayPlan){0};
    return check_flags(cli, err) && read_stream(cli, ret, err) &&
           read_beginning(cli, now_us, ret, err) && read_subjects(cli, ret, err) &&
           check_archive(cli, ret, err) && read_target(cli, ret, err) &&
           read_rate(cli, &ret->rate, err) && read_run(cli, now_us, ret, err);
}
