// SPDX-License-Identifier: Apache-2.0
// dlq resend, dlq drop. A letter is published as letter_resend() says, and deleted from DEAD once
// JetStream has the event; a few letters at a time, so that any number of them fits.
//
// Killed between JetStream's ack and the delete: the letter is still there, and sending it again
// publishes the same event id and the same attempt. Within the duplicate window JetStream drops
// that; after it the dispatcher's ledger has the attempt and refuses a second mail.
// (tests/integration/operating/test_dlq.py: test_a_letter_that_is_sent_again_twice_makes_one_mail)
//
// A drop tells the end of the letter's notification first (dlq_end.h). Killed between that and the
// delete: dropping it again tells the same under the same id.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/deadletter/dlq_end.h"
#include "common/deadletter/resend.h"
#include "common/deadletter/store.h"
#include "services/cli/operate/dlq_selection.h"
#include "services/cli/operate/dlq_show.h"

enum { REASON_SIZE = 300 };

typedef struct Totals {
    uint64_t done;
    uint64_t refused; // stays where it is, for a reason that a person can change
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
    Scan *scan;   // NULL: letters are named
    size_t open;  // letters under way
    Error broken; // the connection: no more letters are begun
    Totals totals;
} Run;

// A letter under way; in the arena of its batch.
typedef struct Item {
    Run *run;
    uint64_t sequence;
    const char *notification_id;
    uint32_t attempt;
    char event_id[EVENT_ID_SIZE];
    bool own_id;
} Item;

// ---- telling ----

static void tell(const Item *item, const char *result, const char *reason)
{
    if (item->run->cli->json) {
        json_t *line = json_object();
        json_object_set_new(line, "sequence", json_integer((json_int_t)item->sequence));
        json_object_set_new(line, "result", json_string(result));
        json_object_set_new(line, "notification_id", json_string(item->notification_id));
        if (item->attempt > 0) {
            json_object_set_new(line, "attempt", json_integer(item->attempt));
        }
        if (item->event_id[0] != '\0') {
            json_object_set_new(line, "event_id", json_string(item->event_id));
        }
        if (reason != NULL) {
            json_object_set_new(line, "reason", json_string(reason));
        }
        print_json_line(line);
        return;
    }
    printf("%8" PRIu64 "  %s", item->sequence, result);
    if (item->attempt > 0) {
        printf(" as attempt %" PRIu32 " of %s", item->attempt, item->notification_id);
    }
    printf("%s%s\n", reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

static void tell_failed(const Item *item, const char *step, const Error *err)
{
    char reason[REASON_SIZE];
    snprintf(reason, sizeof reason, "%s: %s", step, err->text);
    tell(item, "failed", reason);
    item->run->totals.failed++;
}

static void tell_totals(const Run *run)
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

// ---- one letter, in the order in which it happens ----

static void release(Run *run)
{
    if (--run->open > 0) {
        return;
    }
    const Error *broken = run->broken.kind != ERROR_NONE ? &run->broken : NULL;
    if (run->scan != NULL) {
        scan_go_on(run->scan, broken);
    } else {
        session_finish(run->session, broken);
    }
}

static void handle_deleted(Item *item, Str reply, const Error *err)
{
    Run *run = item->run;
    Error refusal = {0};
    if (err == NULL && !letter_deleted(reply, &refusal)) {
        err = &refusal;
    }
    if (err == NULL) {
        tell(item, run->drop ? "dropped" : "resent", NULL);
        run->totals.done++;
    } else {
        tell_failed(
            item,
            run->drop ? "not deleted"
                      : "published, but the letter is not deleted (resending it is harmless)",
            err);
        run->broken = err->kind == ERROR_TRANSIENT ? *err : run->broken;
    }
    release(run);
}

static void on_letter_deleted(void *ctx, Str reply, const Error *err)
{
    handle_deleted(ctx, reply, err);
}

static void delete_letter(Item *item)
{
    Run *run = item->run;
    letter_delete(run->session->bus, item->sequence, run->drop, on_letter_deleted, item);
}

static void handle_published(Item *item, const Error *err, bool duplicate)
{
    Error again = {0};
    if (err == NULL && duplicate && item->own_id) {
        error_set(
            &again, ERROR_PERMANENT,
            "its event id is still remembered, so the stage would not read it (HINT: try again in "
            "two minutes)");
        err = &again;
    }
    if (err == NULL) {
        delete_letter(item); // killed before: see the head of this file
        return;
    }
    tell_failed(item, "not published", err);
    item->run->broken = err->kind == ERROR_TRANSIENT ? *err : item->run->broken;
    release(item->run);
}

static void on_event_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    handle_published(ctx, err, duplicate);
}

static void resend(Run *run, Item *item, const Letter *letter, Arena *arena)
{
    Resend resend;
    Error err = {0};
    if (!letter_resend(letter, &run->rules, arena, &resend, &err)) {
        tell(item, "refused", printable(err.text, arena));
        run->totals.refused++;
        return;
    }
    item->attempt = resend.attempt;
    item->own_id = resend.own_id;
    str_to_c(resend.out.event_id, item->event_id, sizeof item->event_id);
    if (run->dry) {
        tell(item, "would_resend", NULL);
        run->totals.done++;
        return;
    }
    run->open++;
    bus_publish(run->session->bus, &resend.out, on_event_acked, item);
}

static void drop(Run *run, Item *item, const Letter *letter, Arena *arena)
{
    BusOut end;
    bool needed = false;
    Error err = {0};
    if (!letter_end(letter, arena, &end, &needed, &err)) {
        tell_failed(item, "its end cannot be told", &err);
    } else if (run->dry) {
        tell(item, "would_drop", NULL);
        run->totals.done++;
    } else if (needed) {
        run->open++;
        bus_publish(run->session->bus, &end, on_event_acked, item);
    } else {
        run->open++;
        delete_letter(item);
    }
}

static void take(Run *run, const Letter *letter, Arena *arena)
{
    Item *item = arena_zalloc(arena, sizeof *item);
    item->run = run;
    item->sequence = letter->sequence;
    item->notification_id = letter->notification_id;
    if (run->drop) {
        drop(run, item, letter, arena);
    } else {
        resend(run, item, letter, arena);
    }
}

// ---- many ----

static bool on_run_letters(void *ctx, Scan *scan, const Letter *letters, size_t count, Arena *arena)
{
    Run *run = ctx;
    run->scan = scan;
    for (size_t i = 0; i < count; i++) {
        take(run, &letters[i], arena);
    }
    bus_flush(run->session->bus);
    return run->open > 0; // release() lets the scan go on
}

static bool take_named(Run *run, const char *word, Error *err)
{
    int64_t sequence = 0;
    bool found = false;
    Letter letter;
    Arena *arena = arena_new(0);
    str_to_i64(str_from(word), &sequence);
    bool ok = letter_fetch(
        run->session, &run->selection, (uint64_t)sequence, arena, &letter, &found, err);
    if (ok && found) {
        take(run, &letter, arena);
        ok = run->open == 0 || session_run(run->session, 0, err);
    } else if (ok) {
        Item none = {.run = run, .sequence = (uint64_t)sequence, .notification_id = ""};
        tell(&none, "not_found", NULL);
        run->totals.missing++;
    }
    arena_free(arena);
    return ok;
}

static bool run_all(Run *run, Error *err)
{
    if (args_has(&run->cli->args, "all")) {
        return scan_run(run->session, &run->selection, on_run_letters, run, err);
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
            err, ERROR_CONFIG,
            "name the letters by their sequence, or say --all (stentor dlq list)");
    }
    if (!all && (args_has(args, "stage") || args_has(args, "since"))) {
        return error_set(err, ERROR_CONFIG, "--stage and --since go with --all");
    }
    for (int i = 0; i < args->word_count; i++) {
        int64_t sequence = 0;
        if (!str_to_i64(str_from(args->words[i]), &sequence) || sequence <= 0) {
            return error_set(
                err, ERROR_CONFIG, "'%s' is not a letter's sequence (stentor dlq list)",
                args->words[i]);
        }
    }
    if (run->drop && all && !run->dry && !args_has(args, "yes")) {
        return error_set(
            err, ERROR_CONFIG, "drop --all deletes for good: --dry-run shows what, --yes does it");
    }
    return true;
}

static int run_command(Cli *cli, bool drop)
{
    Error err = {0};
    Session session;
    Run run = {.cli = cli, .session = &session, .drop = drop};
    run.dry = args_has(&cli->args, "dry-run");
    if (!check_words(&run, &err) || !selection_read(cli, &run.selection, &err)) {
        cli_fail(&err);
        return EXIT_USAGE;
    }
    run.rules = (ResendRules){
        .may_double = args_has(&cli->args, "may-double"),
        .ignore_expiry = args_has(&cli->args, "ignore-expiry"),
        .now_us = run.selection.now_us,
    };
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(&err);
    }
    bool ok = run_all(&run, &err);
    session_close(&session);
    tell_totals(&run);
    if (!ok) {
        return cli_fail(&err);
    }
    const Totals *totals = &run.totals;
    if (totals->done + totals->refused + totals->failed + totals->missing == 0) {
        selection_tell_none(&run.selection);
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
