// SPDX-License-Identifier: Apache-2.0
// content: what a notification's recipient was sent. The order is the law: found, opened, noted in
// the audit log, printed.
#include "common/content/content_open.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "services/cli/content/content_cli.h"
#include "services/cli/erase/erase.h"
#include "services/cli/operate/dlq_show.h"

typedef struct Shown {
    const char *id, *tenant;
    ContentRow row;
    ContentFound found;
    ContentOpened opened;
} Shown;

// ---- before it is printed ----

static bool note_read(
    const Cli *cli, ContentSession *session, const Shown *shown, const char *ground,
    const char *actor, Error *err)
{
    char checksum[2 * SHA256_LEN + 1];
    Str bytes =
        str_of(shown->found.event->content_checksum.data, shown->found.event->content_checksum.len);
    hex_encode(bytes.ptr, bytes.len < SHA256_LEN ? bytes.len : SHA256_LEN, checksum);
    const AuditDetail details[] = {
        {"stream", shown->found.stream},
        {"sequence", arena_printf(cli->arena, "%llu", (unsigned long long)shown->found.sequence)},
        {"content_checksum", checksum},
        {"kept", args_has(&cli->args, "kept") ? "yes" : "no"},
    };
    AuditNote note = {
        .kind = AUDIT_READ,
        .tenant = shown->tenant,
        .action = "content.shown",
        .actor = actor,
        .target = shown->id,
        .notification_id = shown->id,
        .ground = ground,
        .program = "stentor " STENTOR_VERSION,
        .details = details,
        .detail_count = sizeof details / sizeof *details,
        .at_us = clock_now_us()};
    return session_audit(&session->session, &note, NULL, err) ||
           error_wrap(err, "not shown, because it cannot be noted in the audit log");
}

// ---- printing ----

static const char *address_text(const Cli *cli, const Stentor__V1__Address *address)
{
    char masked[320] = "";
    if (address != NULL) {
        mask_address(str_from(address->address), masked, sizeof masked);
    }
    return arena_cstr(cli->arena, str_from(masked));
}

static const char *time_text(const Cli *cli, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    return arena_cstr(cli->arena, str_from(text));
}

static void print_json(const Cli *cli, const Shown *shown)
{
    const Stentor__V1__Rendered *event = shown->found.event;
    print_json_line(json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "id", shown->id, "tenant",
        shown->tenant, "status", shown->row.status, "channel",
        channel_name((Channel)event->channel), "template", event->template_, "template_version",
        event->template_version, "locale", event->locale, "to",
        address_text(cli, shown->opened.address), "rendered_at",
        time_text(cli, event->rendered_at_us), "stream", shown->found.stream, "sequence",
        (json_int_t)shown->found.sequence, "content", event_json(shown->opened.content)));
}

static void print_part(const char *name, const char *text)
{
    if (text[0] != '\0') {
        printf("\n---- %s ----\n", name);
        content_print_text(str_from(text));
    }
}

static void print_text(const Cli *cli, const Shown *shown)
{
    const Stentor__V1__Rendered *event = shown->found.event;
    const char *const pairs[] = {
        "id",
        shown->id,
        "status",
        shown->row.status,
        "channel",
        channel_name((Channel)event->channel),
        "template",
        arena_printf(
            cli->arena, "%s %s %s", event->template_, event->template_version, event->locale),
        "to",
        address_text(cli, shown->opened.address),
        "rendered",
        time_text(cli, event->rendered_at_us),
        NULL};
    print_pairs(cli, pairs);
    if (event->channel == (int)CHANNEL_EMAIL) {
        const Stentor__V1__EmailContent *mail = (const void *)shown->opened.content;
        print_part("subject", mail->subject);
        print_part("text", mail->text);
        print_part("html", mail->html);
        return;
    }
    json_t *content = event_json(shown->opened.content);
    char *lines = json_dumps(content, JSON_INDENT(2));
    print_part("content", lines);
    free(lines);
    json_decref(content);
}

// ---- the command ----

static bool search(ContentSession *session, Shown *shown, int *ret_status, Error *err)
{
    if (!content_row(session, shown->tenant, shown->id, &shown->row, err) ||
        !content_find(session, shown->tenant, shown->id, &shown->row, &shown->found, err)) {
        return false;
    }
    if (shown->found.event != NULL) {
        return true;
    }
    *ret_status = EXIT_NOT_FOUND;
    return error_set(
        err, ERROR_PERMANENT,
        shown->row.found
            ? "the content of '%s' is not kept any more, or was never rendered (status %s)"
            : "'%s' is not in history, and no content of it is kept%.0s (HINT: --tenant)",
        shown->id, shown->row.status);
}

static bool show(Cli *cli, ContentSession *session, Shown *shown, int *ret_status, Error *err)
{
    const char *ground = erase_ground(cli, err);
    const char *actor = erase_actor(cli, "requested-by", err);
    if (ground == NULL || actor == NULL || !search(session, shown, ret_status, err) ||
        !content_open(session, shown->found.event, &shown->opened, err) ||
        !note_read(cli, session, shown, ground, actor, err)) {
        return false;
    }
    if (cli->json) {
        print_json(cli, shown);
    } else {
        print_text(cli, shown);
    }
    return true;
}

int cmd_content(Cli *cli)
{
    Error err = {0};
    ContentLinks links = {0};
    Shown shown = {.id = args_word(&cli->args, 0), .tenant = erase_tenant(cli, &err)};
    int status = EXIT_FAILED;
    if (shown.tenant != NULL && !id_parse(str_from(shown.id), "ntf_", NULL)) {
        error_set(
            &err, ERROR_USAGE, "'%s' is not a notification id: 'ntf_' and 26 characters", shown.id);
    }
    bool ok = err.kind == ERROR_NONE && content_links_open(cli, &links, &err) &&
              show(cli, &links.session, &shown, &status, &err);
    content_links_close(&links);
    if (ok) {
        return EXIT_DONE;
    }
    return status == EXIT_NOT_FOUND ? cli_fail_as(cli, status, "%s", err.text)
                                    : cli_fail(cli, &err);
}
