// SPDX-License-Identifier: Apache-2.0
// callbacks: what vendors said, in their own words. As content: opened, noted, printed.
#include "common/content/callback_read.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/cli/erase/erase.h"
#include "services/cli/content/content_cli.h"

enum { LIMIT = 20, LIMIT_MAX = 100 };

static const int64_t default_past_us = INT64_C(7) * 86400 * 1000000;

static bool note_read(
    const Cli *cli, ContentSession *session, const CallbackQuery *query, const Callbacks *found,
    Error *err)
{
    const char *ground = erase_ground(cli, err);
    const char *actor = erase_actor(cli, "requested-by", err);
    const AuditDetail details[] = {
        {"callbacks", arena_printf(cli->arena, "%zu", found->count)},
        {"first", found->items[0].event_id},
        {"last", found->items[found->count - 1].event_id},
    };
    AuditNote note = {
        .kind = AUDIT_READ,
        .tenant = query->tenant,
        .action = "callbacks.shown",
        .actor = actor,
        .target = query->notification_id != NULL ? query->notification_id : "INBOUND",
        .notification_id = query->notification_id,
        .ground = ground,
        .program = "stentor " STENTOR_VERSION,
        .details = details,
        .detail_count = sizeof details / sizeof *details,
        .at_us = clock_now_us()};
    return ground != NULL && actor != NULL &&
           (session_audit(&session->session, &note, NULL, err) ||
            error_wrap(err, "not shown, because it cannot be noted in the audit log"));
}

static void print_one(const Cli *cli, const Callback *callback)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(callback->received_us, at);
    if (!cli->json) {
        printf("---- %s  %s  %s ----\n", at, callback->vendor, callback->event_id);
        content_print_text(callback->body);
        return;
    }
    // As JSON where it is JSON, which every vendor's has been so far; else as text.
    json_t *body = json_loadb(callback->body.ptr, callback->body.len, 0, NULL);
    if (body == NULL) {
        body = json_stringn(callback->body.ptr, callback->body.len);
    }
    print_json_line(json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:o}", "id", callback->event_id, "vendor", callback->vendor,
        "key", callback->key, "received_at", at, "sequence", (json_int_t)callback->sequence, "body",
        body != NULL ? body : json_null()));
}

static int print_all(const Cli *cli, const Callbacks *found)
{
    for (size_t i = 0; i < found->count; i++) {
        print_one(cli, &found->items[i]);
    }
    if (found->count == 0) {
        cli_note_empty(cli, "callbacks");
    }
    if (found->unreadable > 0) {
        cli_note(cli, "%zu messages could not be read or opened", found->unreadable);
    }
    if (found->more) {
        cli_note(cli, "there are more (HINT: --limit, --since)");
    }
    return EXIT_DONE;
}

static bool read_query(Cli *cli, CallbackQuery *ret, Error *err)
{
    int64_t now_us = clock_now_us();
    int64_t limit = LIMIT;
    *ret = (CallbackQuery){
        .tenant = erase_tenant(cli, err),
        .notification_id = args_flag(&cli->args, "notification"),
        .from_us = now_us - default_past_us};
    if (ret->tenant == NULL || erase_ground(cli, err) == NULL ||
        erase_actor(cli, "requested-by", err) == NULL ||
        !args_time(&cli->args, "since", TIME_BEFORE_NOW, now_us, &ret->from_us, err) ||
        !args_time(&cli->args, "until", TIME_BEFORE_NOW, now_us, &ret->to_us, err) ||
        !args_int(&cli->args, "limit", LIMIT, 1, LIMIT_MAX, &limit, err)) {
        return false;
    }
    ret->limit = (size_t)limit;
    return ret->notification_id == NULL || id_parse(str_from(ret->notification_id), "ntf_", NULL) ||
           error_set(
               err, ERROR_USAGE, "'%s' is not a notification id: 'ntf_' and 26 characters",
               ret->notification_id);
}

int cmd_callbacks(Cli *cli)
{
    Error err = {0};
    ContentLinks links = {0};
    CallbackQuery query;
    Callbacks found = {.count = 0};
    bool ok = read_query(cli, &query, &err) && content_links_open(cli, &links, &err) &&
              callback_read(&links.session, &query, &found, &err) &&
              (found.count == 0 || note_read(cli, &links.session, &query, &found, &err));
    content_links_close(&links);
    return ok ? print_all(cli, &found) : cli_fail(cli, &err);
}
