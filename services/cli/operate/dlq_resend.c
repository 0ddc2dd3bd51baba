// SPDX-License-Identifier: Apache-2.0
// dlq resend, dlq drop. A letter is published as letter_resend() says, and deleted from DEAD once
// JetStream has the event; a few letters at a time, so that any number of them fits.
//
// Killed between JetStream's ack and the delete: the letter is still there, and sending it again
// publishes the same event id and the same attempt. Within the duplicate window JetStream drops
// that; after it the dispatcher's ledger has the attempt and refuses a second mail.
// (tests/integration/operating/test_dlq.py: test_a_letter_that_is_sent_again_twice_makes_one_mail)
//
// A drop publishes the end of the letter's notification first (dlq_end.h). Killed between that and
// the delete: dropping it again publishes the same under the same id.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/deadletter/dead_note.h"
#include "common/deadletter/dlq_end.h"
#include "common/deadletter/resend_group.h"
#include "services/cli/noted.h"
#include "services/cli/operate/dlq_selection.h"
#include "services/cli/operate/dlq_show.h"

typedef struct Totals {
    uint64_t done;
    uint64_t refused; // stays in DEAD, for a reason that an operator can change
    uint64_t failed;
    uint64_t missing;
} Totals;

typedef struct Run {
    Cli *cli;
    Session *session;
    Selection selection;
    ResendRules rules;
    bool drop; // else resend
    bool dry;
    Scan *scan;                 // NULL: a letter is named
    bool at_once;               // the group ends before its scan waits for it
    Error broken;               // of the connection: no more letters are started
    Suppressions *suppressions; // of the group's addresses
    AuditLog *audit;
    DeadNote note; // how it is noted
    char request_id[ID_SIZE];
    ResendGroup group;
    Totals totals;
} Run;

// ---- output ----

static void print_result(
    const Run *run, const ResendTask *task, const char *result, const char *reason)
{
    if (run->cli->json) {
        json_t *line = json_object();
        json_object_set_new(line, "sequence", json_integer((json_int_t)task->sequence));
        json_object_set_new(line, "result", json_string(result));
        json_object_set_new(line, "notification_id", json_string(task->letter.notification_id));
        if (task->attempt > 0) {
            json_object_set_new(line, "attempt", json_integer(task->attempt));
        }
        if (!run->drop && task->out.event_id.len > 0) {
            json_object_set_new(
                line, "event_id", json_stringn(task->out.event_id.ptr, task->out.event_id.len));
        }
        if (reason != NULL) {
            json_object_set_new(line, "reason", json_string(reason));
        }
        print_json_line(line);
        return;
    }
    printf("%8" PRIu64 "  %s", task->sequence, result);
    if (task->attempt > 0) {
        printf(" as attempt %" PRIu32 " of %s", task->attempt, task->letter.notification_id);
    }
    printf("%s%s\n", reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

static void print_failed(Run *run, const ResendTask *task, const char *step)
{
    print_result(
        run, task, "failed", arena_printf(run->group.arena, "%s: %s", step, task->err.text));
    run->totals.failed++;
    run->broken = task->err.kind == ERROR_TRANSIENT ? task->err : run->broken;
}

static void print_task(Run *run, ResendTask *task)
{
    switch (task->fate) {
    case LETTER_OPEN:
        print_result(
            run, task,
            run->dry ? (run->drop ? "would_drop" : "would_resend")
                     : (run->drop ? "dropped" : "resent"),
            NULL);
        run->totals.done++;
        break;
    case LETTER_MISSING:
        task->letter.notification_id = "";
        print_result(run, task, "not_found", NULL);
        run->totals.missing++;
        break;
    case LETTER_REFUSED:
        if (run->drop) {
            print_failed(run, task, "its end cannot be published");
        } else {
            print_result(run, task, "refused", printable(task->err.text, run->group.arena));
            run->totals.refused++;
        }
        break;
    case LETTER_UNREAD:
        run->broken = task->err;
        (void)error_wrap(&run->broken, "letter %" PRIu64, task->sequence);
        break;
    case LETTER_UNNOTED:
        print_failed(run, task, "not done, because it cannot be noted in the audit log");
        break;
    case LETTER_UNPUBLISHED:
        print_failed(run, task, "not published");
        break;
    case LETTER_UNDELETED:
        print_failed(
            run, task,
            run->drop ? "not deleted"
                      : "published, but the letter is not deleted (resending it is harmless)");
        break;
    }
}

static void print_totals(const Run *run)
{
    const Totals *totals = &run->totals;
    const char *done =
        run->dry ? (run->drop ? "would_drop" : "would_resend") : (run->drop ? "dropped" : "resent");
    if (run->cli->json) {
        json_t *counts = json_object();
        json_object_set_new(counts, done, json_integer((json_int_t)totals->done));
        json_object_set_new(counts, "refused", json_integer((json_int_t)totals->refused));
        json_object_set_new(counts, "failed", json_integer((json_int_t)totals->failed));
        json_object_set_new(counts, "not_found", json_integer((json_int_t)totals->missing));
        json_t *line = json_object();
        json_object_set_new(line, "total", counts);
        print_json_line(line);
        return;
    }
    printf(
        "%" PRIu64 " %s%s, %" PRIu64 " refused, %" PRIu64 " failed", totals->done,
        run->dry ? "would be " : "", run->drop ? "dropped" : "resent", totals->refused,
        totals->failed);
    if (totals->missing > 0) {
        printf(", %" PRIu64 " not found", totals->missing);
    }
    printf("\n");
}

// ---- a group of letters, from the last step to the first ----

static void on_letters_deleted(void *ctx)
{
    Run *run = ctx;
    for (size_t i = 0; i < run->group.count; i++) {
        print_task(run, &run->group.tasks[i]);
    }
    const Error *broken = run->broken.kind != ERROR_NONE ? &run->broken : NULL;
    if (run->at_once) {
        run->at_once = false;
    } else if (run->scan != NULL) {
        scan_go_on(run->scan, broken);
    } else {
        session_finish(run->session, broken);
    }
}

static void on_events_published(void *ctx)
{
    Run *run = ctx;
    resend_group_delete(&run->group, on_letters_deleted, run); // killed before: see above
}

static void on_noted(void *ctx)
{
    Run *run = ctx;
    resend_group_publish(&run->group, on_events_published, run);
}

static void prepare(const Run *run, ResendTask *task)
{
    bool needed = false;
    if (!run->drop) {
        resend_task_prepare(task, &run->rules);
    } else if (letter_end(&task->letter, run->group.arena, &task->out, &needed, &task->err)) {
        task->remove = true;
    } else {
        task->fate = LETTER_REFUSED;
    }
    if (run->dry) {
        task->remove = false;
    }
}

static void on_looked_up(void *ctx)
{
    Run *run = ctx;
    for (size_t i = 0; i < run->group.count; i++) {
        ResendTask *task = &run->group.tasks[i];
        if (task->fate == LETTER_OPEN) {
            prepare(run, task);
        }
    }
    if (run->dry) {
        on_letters_deleted(run);
    } else {
        dead_note_group(run->audit, &run->group, &run->note, on_noted, run);
    }
}

// An address that was refused for good is suppressed since: sending again says so at once.
static void handle_letters(Run *run)
{
    if (run->drop) {
        on_looked_up(run);
        return;
    }
    suppressions_free(run->suppressions);
    run->suppressions = suppressions_new();
    run->rules.suppressions = run->suppressions;
    resend_group_look_up(&run->group, run->suppressions, on_looked_up, run);
}

static bool on_scan_letters(
    void *ctx, Scan *scan, const Letter *letters, size_t count, Arena *arena)
{
    Run *run = ctx;
    run->scan = scan;
    run->at_once = true;
    resend_group_begin(&run->group, run->session->bus, arena, run->drop);
    for (size_t i = 0; i < count; i++) {
        resend_group_add(&run->group, letters[i].sequence)->letter = letters[i];
    }
    handle_letters(run);
    bool waiting = run->at_once;
    run->at_once = false;
    return waiting;
}

static void on_letter_fetched(void *ctx)
{
    Run *run = ctx;
    ResendTask *task = &run->group.tasks[0];
    Str tenant = run->selection.tenant;
    if (task->fate == LETTER_OPEN && tenant.len > 0 && !str_eq(task->letter.tenant, tenant)) {
        task->fate = LETTER_MISSING;
    }
    handle_letters(run);
}

static bool take_named(Run *run, const char *word, Error *err)
{
    int64_t sequence = 0;
    Arena *arena = arena_new(0);
    str_to_i64(str_from(word), &sequence);
    resend_group_begin(&run->group, run->session->bus, arena, run->drop);
    resend_group_add(&run->group, (uint64_t)sequence);
    resend_group_fetch(&run->group, on_letter_fetched, run);
    bool ok = session_run(run->session, 0, err);
    arena_free(arena);
    return ok;
}

static bool run_all(Run *run, Error *err)
{
    if (args_has(&run->cli->args, "all")) {
        return scan_run(run->session, &run->selection, on_scan_letters, run, err);
    }
    for (int i = 0; i < run->cli->args.word_count; i++) {
        if (!take_named(run, run->cli->args.words[i], err)) {
            return false;
        }
    }
    return true;
}

// ---- the commands ----

static bool check_words(const Run *run, Error *err)
{
    const Args *args = &run->cli->args;
    bool all = args_has(args, "all");
    if (all == (args->word_count > 0)) {
        return error_set(
            err, ERROR_USAGE,
            "expected the sequences of letters, or --all (stentor dlq list shows them)");
    }
    if (!all && (args_has(args, "stage") || args_has(args, "since"))) {
        return error_set(err, ERROR_USAGE, "--stage and --since go with --all");
    }
    for (int i = 0; i < args->word_count; i++) {
        int64_t sequence = 0;
        if (!str_to_i64(str_from(args->words[i]), &sequence) || sequence <= 0) {
            return error_set(
                err, ERROR_USAGE, "'%s' is not a letter's sequence (stentor dlq list)",
                args->words[i]);
        }
    }
    if (run->drop && all && !run->dry && !args_has(args, "yes")) {
        return error_set(
            err, ERROR_USAGE,
            "drop --all deletes for good: --dry-run shows the letters, --yes deletes them");
    }
    return true;
}

static void begin_notes(Run *run)
{
    id_new("req_", run->selection.now_us, run->request_id);
    run->audit = audit_log_new(run->session->bus);
    run->note = (DeadNote){
        .drop = run->drop,
        .actor = cli_actor(run->cli),
        .request_id = run->request_id,
        .program = "stentor " STENTOR_VERSION,
        .may_double = run->rules.may_double,
        .ignore_expiry = run->rules.ignore_expiry,
        .at_us = run->selection.now_us,
    };
}

static int run_command(Cli *cli, bool drop)
{
    Error err = {0};
    Session session;
    Run run = {.cli = cli, .session = &session, .drop = drop};
    run.dry = args_has(&cli->args, "dry-run");
    if (!check_words(&run, &err) || !selection_read(cli, &run.selection, &err)) {
        return cli_fail(cli, &err);
    }
    run.rules = (ResendRules){
        .may_double = args_has(&cli->args, "may-double"),
        .ignore_expiry = args_has(&cli->args, "ignore-expiry"),
        .now_us = run.selection.now_us,
    };
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    begin_notes(&run);
    bool ok = run_all(&run, &err);
    audit_log_free(run.audit);
    session_close(&session);
    suppressions_free(run.suppressions);
    print_totals(&run);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    const Totals *totals = &run.totals;
    if (totals->done + totals->refused + totals->failed + totals->missing == 0) {
        selection_note_none(cli, &run.selection);
    }
    bool bad = run.totals.refused > 0 || run.totals.failed > 0;
    return bad ? EXIT_FAILED : run.totals.missing > 0 ? EXIT_NOT_FOUND : EXIT_DONE;
}

int cmd_dlq_resend(Cli *cli)
{
    return run_command(cli, false);
}

int cmd_dlq_drop(Cli *cli)
{
    return run_command(cli, true);
}
