// SPDX-License-Identifier: Apache-2.0
// replay: a stream's past again, through a service or to a subject. What a replay does is in
// replay_plan.h and replay_run.h; here is what it prints.
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/audit/audit_pg.h"
#include "common/base/clock.h"
#include "common/replay/replay_run.h"
#include "common/session/key_file.h"
#include "services/cli/noted.h"
#include "services/cli/operate/archived_log.h"
#include "services/cli/replay/replay_options.h"
#include "services/cli/replay/shadow_plan.h"
#include "services/cli/replay/shadow_report.h"

// The ledger goes on forgetting while a replay runs.
static const int64_t LEDGER_MARGIN_US = INT64_C(24) * 3600 * 1000000;

static const char *target_of(const ReplayPlan *plan)
{
    const char *target = plan->service != NULL ? plan->service : plan->subject;
    return target != NULL ? target : "";
}

static double per_second(uint64_t count, int64_t took_us)
{
    return took_us > 0 ? (double)count * 1e6 / (double)took_us : 0.0;
}

// ---- as JSON ----

static json_t *place_json(const ReplayPlace *place)
{
    char time[CLOCK_RFC3339_SIZE];
    if (place->sequence == 0) {
        return json_null();
    }
    clock_format(place->stored_at_us, time);
    return json_pack("{s:I, s:s}", "sequence", (json_int_t)place->sequence, "stored_at", time);
}

static json_t *subjects_json(const ReplayTally *tally)
{
    json_t *subjects = json_object();
    Str subject;
    void *count;
    for (size_t i = 0; map_next(tally->subjects, &i, &subject, &count);) {
        json_object_setn_new(
            subjects, subject.ptr, subject.len,
            json_integer((json_int_t) * (const uint64_t *)count));
    }
    return subjects;
}

static void print_json(const ReplayPlan *plan, const ReplayTally *tally, const char *command)
{
    const uint64_t *verdicts = tally->verdicts;
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I}", "run", plan->run, "stream",
        plan->stream->name, "target", target_of(plan), "dry_run", plan->dry_run, "complete",
        tally->complete, "messages", (json_int_t)verdicts[REPLAY_TAKE], "bytes",
        (json_int_t)tally->bytes, "published", (json_int_t)tally->published, "duplicates",
        (json_int_t)tally->duplicates, "refused", (json_int_t)tally->refused);
    json_object_set_new(
        root, "skipped",
        json_pack(
            "{s:I, s:I, s:I, s:I, s:I}", "other_tenant", (json_int_t)verdicts[REPLAY_OTHER_TENANT],
            "copies", (json_int_t)verdicts[REPLAY_COPY], "expired",
            (json_int_t)verdicts[REPLAY_EXPIRED], "too_old", (json_int_t)verdicts[REPLAY_OLD],
            "forgotten", (json_int_t)verdicts[REPLAY_FORGOTTEN]));
    json_object_set_new(root, "first", place_json(&tally->first));
    json_object_set_new(root, "last", place_json(&tally->last));
    json_object_set_new(root, "next_sequence", json_integer((json_int_t)tally->next));
    json_object_set_new(root, "removed_before", json_integer((json_int_t)tally->removed_before));
    json_object_set_new(root, "seconds", json_real((double)tally->took_us / 1e6));
    json_object_set_new(
        root, "per_second", json_real(per_second(tally->published, tally->took_us)));
    json_object_set_new(root, "subjects", subjects_json(tally));
    json_object_set_new(root, "in_other_subjects", json_integer((json_int_t)tally->other_subjects));
    json_object_set_new(root, "continue", command != NULL ? json_string(command) : json_null());
    print_json_line(root);
}

// ---- as text ----

static int compare_subjects(const void *a, const void *b)
{
    return str_cmp(*(const Str *)a, *(const Str *)b);
}

static void print_subjects(const ReplayTally *tally, Arena *arena)
{
    Str *subjects = arena_array(arena, map_count(tally->subjects) + 1, sizeof *subjects);
    size_t count = 0;
    void *value;
    for (size_t i = 0; map_next(tally->subjects, &i, &subjects[count], &value);) {
        count++;
    }
    qsort(subjects, count, sizeof *subjects, compare_subjects);
    for (size_t i = 0; i < count; i++) {
        const uint64_t *messages = map_get(tally->subjects, subjects[i]);
        printf("  %10" PRIu64 "  " STR_FMT "\n", *messages, STR_ARG(subjects[i]));
    }
    if (tally->other_subjects > 0) {
        printf("  %10" PRIu64 "  in other subjects\n", tally->other_subjects);
    }
}

static void print_skipped(const ReplayTally *tally)
{
    static const char *const words[REPLAY_VERDICT_COUNT] = {
        [REPLAY_OTHER_TENANT] = "of other tenants",
        [REPLAY_COPY] = "made by an earlier replay",
        [REPLAY_EXPIRED] = "expired",
        [REPLAY_OLD] = "too old to be known to ingest",
        [REPLAY_FORGOTTEN] = "older than the send ledger: they would be sent again",
    };
    for (int i = REPLAY_TAKE + 1; i < REPLAY_VERDICT_COUNT; i++) {
        if (tally->verdicts[i] > 0) {
            printf("  %10" PRIu64 "  left out: %s\n", tally->verdicts[i], words[i]);
        }
    }
}

static void print_text(Cli *cli, const ReplayPlan *plan, const ReplayTally *tally)
{
    char first[CLOCK_RFC3339_SIZE];
    char last[CLOCK_RFC3339_SIZE];
    printf(
        "%s%s%s: %" PRIu64 " messages, %" PRIu64 " bytes\n", plan->stream->name,
        plan->dry_run ? "" : " to ", plan->dry_run ? " (dry run)" : target_of(plan),
        tally->verdicts[REPLAY_TAKE], tally->bytes);
    if (tally->first.sequence > 0) {
        clock_format(tally->first.stored_at_us, first);
        clock_format(tally->last.stored_at_us, last);
        printf(
            "  sequences %" PRIu64 " to %" PRIu64 ", stored %s to %s\n", tally->first.sequence,
            tally->last.sequence, first, last);
    }
    print_subjects(tally, cli->arena);
    print_skipped(tally);
    if (!plan->dry_run) {
        printf(
            "  %" PRIu64 " published (%" PRIu64 " were there already) in %.1f s, %.0f/s, run %s\n",
            tally->published, tally->duplicates, (double)tally->took_us / 1e6,
            per_second(tally->published, tally->took_us), plan->run);
    }
}

// ---- the command ----

static int report(Cli *cli, const ReplayPlan *plan, const ReplayTally *tally, const Error *err)
{
    const char *command =
        tally->complete ? NULL : replay_continue(plan, tally->next, tally->end, cli->arena);
    if (cli->json) {
        print_json(plan, tally, command);
    } else {
        print_text(cli, plan, tally);
    }
    fflush(stdout);
    if (err->kind != ERROR_NONE) {
        cli_fail(cli, err);
    }
    if (command != NULL) {
        uint64_t done = tally->next > 0 ? tally->next - 1 : 0;
        cli_note(cli, "stopped after sequence %" PRIu64 "; to continue: %s", done, command);
    }
    if (tally->verdicts[REPLAY_OLD] > 0) {
        cli_note(
            cli,
            "%" PRIu64 " events are more than %d h old: ingest would make new notifications of "
            "them (HINT: --accept-again, if that is wanted)",
            tally->verdicts[REPLAY_OLD], REPLAY_EVENT_HOURS);
    }
    if (tally->removed_before > 0) {
        cli_note(
            cli,
            "the stream lost messages before sequence %" PRIu64
            " while it was read: some may not have been replayed",
            tally->removed_before);
    }
    return tally->complete && tally->refused == 0 && tally->removed_before == 0 ? EXIT_DONE
                                                                                : EXIT_FAILED;
}

// It prints parts of what recipients were sent.
static bool note_shadow(Cli *cli, const ShadowPlan *plan, Error *err)
{
    const AuditNote note = {
        .kind = AUDIT_READ,
        .tenant = plan->tenant,
        .action = "content.compared",
        .target = plan->key};
    return cli_audit(cli, NULL, &note, err);
}

static bool run_shadow(Cli *cli, const ShadowPlan *plan, ShadowTally *tally, Error *err)
{
    const Settings *settings = &cli->settings;
    ShadowOptions options = {
        .session = settings->session,
        .database_url = settings->database_url,
        .master_key_file = settings->master_key_file,
        .epoch_keys_dir = settings->epoch_keys_dir,
        .program = "stentor-cli",
    };
    return cli_need(settings->database_url, "STENTOR_DATABASE_URL", err) &&
           cli_need(settings->master_key_file, "STENTOR_MASTER_KEY_FILE", err) &&
           note_shadow(cli, plan, err) && shadow_run(&options, plan, tally, err);
}

static int shadow(Cli *cli)
{
    Error err = {0};
    ShadowPlan plan;
    if (!shadow_plan_read(cli, clock_now_us(), &plan, &err)) {
        return cli_fail(cli, &err);
    }
    cli_note(
        cli, "the output shows what recipients were sent: e-mail addresses are masked, other "
             "personal data is not");
    ShadowTally tally;
    shadow_tally_init(&tally);
    int status = EXIT_DONE;
    if (run_shadow(cli, &plan, &tally, &err)) {
        shadow_print(&plan, &tally, cli->json);
    } else {
        status = cli_fail(cli, &err);
        status = tally.no_version ? EXIT_NOT_FOUND : status;
    }
    shadow_tally_done(&tally);
    return status;
}

// What the ledger has forgotten must not go through the pipeline once more.
static bool read_ledger(const Cli *cli, ReplayPlan *plan, Error *err)
{
    AuditKept kept;
    PGconn *conn = audit_pg_open(cli->settings.database_url, err);
    bool ok = conn != NULL && audit_read_kept(conn, &kept, err);
    PQfinish(conn);
    if (ok && kept.ledger_us > 0) {
        plan->ledger_since_us = kept.ledger_us + LEDGER_MARGIN_US;
    }
    return ok;
}

static bool open_past(const Cli *cli, ReplayPlan *plan, ArchivedLog *ret, Error *err)
{
    *ret = (ArchivedLog){0};
    if (!args_has(&cli->args, "from-archive")) {
        return true;
    }
    const Settings *settings = &cli->settings;
    plan->readers = &log_readers;
    plan->readers_ctx = &ret->past;
    return cli_need(settings->database_url, "STENTOR_DATABASE_URL", err) &&
           cli_need(settings->storage.url, "STENTOR_STORAGE_URL", err) &&
           archived_log_open(cli, false, ret, err) &&
           (plan->service == NULL || read_ledger(cli, plan, err));
}

// What a program outside gets of EVENTS is opened, with the keys at hand; without them it is as it
// is stored.
typedef struct OpenedKeys {
    MasterKey *master;
    EpochFolder *epochs;
} OpenedKeys;

static bool open_event_keys(
    Cli *cli, Session *session, ReplayPlan *plan, OpenedKeys *ret, Error *err)
{
    const Settings *settings = &cli->settings;
    *ret = (OpenedKeys){0};
    if (plan->subject == NULL || strcmp(plan->stream->name, "EVENTS") != 0) {
        return true;
    }
    if (settings->master_key_file[0] == '\0') {
        cli_note(
            cli, "sealed events go out as they are stored (HINT: with STENTOR_MASTER_KEY_FILE they "
                 "are opened)");
        return true;
    }
    ret->master = keys_open(
        session, settings->master_key_file, settings->epoch_keys_dir, cli->arena, &ret->epochs,
        err);
    plan->event_keys = ret->master != NULL ? event_keys_new(ret->master) : NULL;
    return ret->master != NULL;
}

static void close_event_keys(const ReplayPlan *plan, const OpenedKeys *opened)
{
    event_keys_free(plan->event_keys);
    epoch_folder_close(opened->epochs);
    master_key_free(opened->master);
}

static bool note_replay(Cli *cli, Session *session, const ReplayPlan *plan, Error *err)
{
    const AuditDetail details[] = {
        {"to", target_of(plan)},
        {"run", plan->run},
        {"opened", plan->event_keys != NULL ? "yes" : "no"},
        {"accept_again", plan->accept_again ? "yes" : "no"}};
    const AuditNote note = {
        .kind = AUDIT_WRITE,
        .tenant = plan->tenant,
        .action = "stream.replayed",
        .target = plan->stream->name,
        .details = details,
        .detail_count = sizeof details / sizeof *details};
    return plan->dry_run || cli_audit(cli, session, &note, err);
}

int cmd_replay(Cli *cli)
{
    Error err = {0};
    ReplayPlan plan;
    Session session;
    if (args_has(&cli->args, "shadow")) {
        return shadow(cli);
    }
    if (!replay_plan_read(cli, clock_now_us(), &plan, &err)) {
        return cli_fail(cli, &err);
    }
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    ReplayTally tally;
    replay_tally_init(&tally);
    ArchivedLog log = {0};
    OpenedKeys opened;
    bool ran = open_event_keys(cli, &session, &plan, &opened, &err) &&
               open_past(cli, &plan, &log, &err) && note_replay(cli, &session, &plan, &err) &&
               replay_run(&session, &plan, cli->arena, &tally, &err);
    session_close(&session);
    archived_log_close(&log);
    close_event_keys(&plan, &opened);
    // Nothing read and nothing done: the error is all there is to say.
    bool began = ran || tally.took_us > 0;
    int status = began ? report(cli, &plan, &tally, &err) : cli_fail(cli, &err);
    replay_tally_done(&tally);
    return status;
}
