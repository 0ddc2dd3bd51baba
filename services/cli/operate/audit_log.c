// SPDX-License-Identifier: Apache-2.0
// audit-log list, audit-log verify: the entries of AUDIT, and whether their chain holds.
#include <inttypes.h>
#include <string.h>

#include "common/auditlog/audit_view.h"
#include "common/base/clock.h"
#include "common/session/audit_session.h"
#include "services/cli/cli.h"

typedef struct View {
    Cli *cli;
    Arena *arena; // of one entry
    AuditChain chain;
    // list
    bool shows;
    AuditFilter filter;
    json_t *list;
    uint64_t shown;
    // verify
    uint64_t expect_sequence;
    uint8_t expect_hash[SHA256_LEN];
    bool met; // the expected entry stands there
    uint64_t broken;
} View;

// ---- list ----

static void show(
    View *view, uint64_t sequence, const char *kind, const Stentor__V1__AuditEntry *entry)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(entry->meta->occurred_at_us, at);
    view->shown++;
    if (view->cli->json) {
        json_array_append_new(view->list, audit_view_json(sequence, kind, entry));
        return;
    }
    const char *target = entry->target[0] != '\0' ? entry->target : entry->meta->notification_id;
    printf(
        "%6" PRIu64 "  %s  %-10s %-22s %-20s %s%s%s\n", sequence, at, entry->meta->tenant,
        entry->action, entry->actor, target, entry->ground[0] != '\0' ? "  " : "", entry->ground);
}

// ---- both ----

static void on_entry(void *ctx, const BusMessage *message)
{
    View *view = ctx;
    Error err = {0};
    const Stentor__V1__AuditEntry *entry = NULL;
    arena_reset(view->arena);
    bool fits = audit_chain_add(
        &view->chain, message->sequence, message->payload, view->arena, &entry, &err);
    if (!fits) {
        view->broken++;
        cli_note(view->cli, "%s", err.text);
    }
    bool expected = message->sequence == view->expect_sequence;
    view->met |= expected && memcmp(view->chain.head.hash, view->expect_hash, SHA256_LEN) == 0;
    for (size_t i = 0; view->shows && entry != NULL && audit_view_entry(entry, i) != NULL; i++) {
        const Stentor__V1__AuditEntry *one = audit_view_entry(entry, i);
        if (audit_filter_fits(&view->filter, entry->kind, one)) {
            show(view, message->sequence, entry->kind, one);
        }
    }
}

static bool walk(View *view, Error *err)
{
    Session session;
    if (!session_open(&session, &view->cli->settings.session, err)) {
        return false;
    }
    view->arena = arena_new(0);
    bool ok = session_audit_read(&session, on_entry, view, err);
    arena_free(view->arena);
    session_close(&session);
    return ok;
}

int cmd_audit_log_list(Cli *cli)
{
    Error err = {0};
    View view = {
        .cli = cli,
        .shows = true,
        .filter = {
            .kind = str_from(args_flag(&cli->args, "kind")),
            .tenant = str_from(args_flag(&cli->args, "tenant")),
            .actor = str_from(args_flag(&cli->args, "actor")),
            .action = str_from(args_flag(&cli->args, "action")),
            .target = str_from(args_flag(&cli->args, "target"))}};
    AuditKind kind;
    if (view.filter.kind.len > 0 && !audit_kind_from_name(view.filter.kind, &kind)) {
        error_set(
            &err, ERROR_USAGE,
            "--kind " STR_FMT
            ": it is read, write, erasure, hold, restore, expiry, suppression or dead_letter",
            STR_ARG(view.filter.kind));
        return cli_fail(cli, &err);
    }
    if (!args_time(
            &cli->args, "since", TIME_BEFORE_NOW, clock_now_us(), &view.filter.from_us, &err)) {
        return cli_fail(cli, &err);
    }
    view.list = json_array();
    bool ok = walk(&view, &err);
    if (ok && cli->json) {
        print_json_line(json_incref(view.list));
    } else if (ok && view.shown == 0) {
        cli_note_empty(cli, "entries in the audit log");
    }
    json_decref(view.list);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

// ---- verify ----

static bool read_expected(View *view, Error *err)
{
    const char *text = args_flag(&view->cli->args, "expect");
    if (text == NULL) {
        view->met = true;
        return true;
    }
    Str rest = str_from(text), number = STR_EMPTY;
    int64_t sequence = 0;
    size_t len = 0;
    bool ok = str_split(&rest, ':', &number) && str_to_i64(number, &sequence) && sequence > 0 &&
              hex_decode(rest, view->expect_hash, SHA256_LEN, &len) && len == SHA256_LEN;
    view->expect_sequence = (uint64_t)sequence;
    return ok || error_set(
                     err, ERROR_USAGE,
                     "--expect is SEQUENCE:HASH as an earlier 'stentor audit-log verify' printed "
                     "it");
}

static int report(const View *view)
{
    const Cli *cli = view->cli;
    const AuditHead *head = &view->chain.head;
    bool ok = view->broken == 0 && view->met;
    char hash[2 * SHA256_LEN + 1];
    hex_encode(head->hash, sizeof head->hash, hash);
    if (!view->met) {
        cli_note(
            cli, "entry %" PRIu64 " is not the expected one: the chain was written again",
            view->expect_sequence);
    }
    const char *number = arena_printf(cli->arena, "%" PRIu64, view->chain.entries);
    const char *at =
        head->sequence == 0 ? "" : arena_printf(cli->arena, "%" PRIu64 ":%s", head->sequence, hash);
    const char *const pairs[] = {
        "entries", number,
        "broken",  arena_printf(cli->arena, "%" PRIu64, view->broken),
        "repeats", arena_printf(cli->arena, "%" PRIu64, view->chain.repeats),
        "head",    at,
        "chain",   ok ? "whole" : "broken",
        NULL};
    print_pairs(cli, pairs);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

int cmd_audit_log_verify(Cli *cli)
{
    Error err = {0};
    View view = {.cli = cli};
    bool ok = read_expected(&view, &err) && walk(&view, &err);
    return ok ? report(&view) : cli_fail(cli, &err);
}
