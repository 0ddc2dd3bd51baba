// SPDX-License-Identifier: Apache-2.0
// shadow: the last mails of a lane, built for the vendors of another route. No secret is read:
// where the vendor wants one stands a placeholder. The order is content's: found, opened, noted in
// the audit log, printed. With --send, after the note, the mails are rehearsed (rehearsal.h) at
// each vendor that has a way for it, with the credential's secret; nothing is sent.
#include "common/content/content_open.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/mime/mime.h"
#include "common/routing/routes.h"
#include "common/vendor/generic/definition.h"
#include "common/vendor/vendor_api.h"
#include "services/cli/api_client.h"
#include "services/cli/content/content_cli.h"
#include "services/cli/erase/erase.h"
#include "services/cli/vendors/rehearsal.h"
#include "services/cli/vendors/secret_here.h"

enum {
    LAST = 100,
    LAST_MAX = 1000,
    SHOWN = 1,
    SHOWN_MAX = 20,
    BODY_SHOWN_MAX = 4000,
    REASONS_MAX = 100,
};

static const int64_t DAY_US = INT64_C(86400) * 1000000;
#define PLACEHOLDER "SECRET"

// One vendor of the route, and what became of the mails there.
typedef struct Target {
    const VendorApi *api;
    const char *vendor; // its name
    VendorAccount account;
    size_t built, refused;
    Rehearsal *rehearsal; // NULL: not asked for, or the vendor has no way that sends nothing
    const char *reference;
    Map *reasons; // what it cannot carry -> how many
    json_t *shown;
} Target;

typedef struct Shadow {
    Cli *cli;
    ContentSession *session;
    const char *tenant, *stream;
    int64_t last, from_us, shown;
    Target targets[ROUTE_VENDORS_MAX];
    size_t target_count;
    Str *ring; // the last payloads, in turn
    size_t seen;
    bool missing; // there is no such route
    bool sends;
    const char *from; // of mails that name no sender
    VendorCaller *caller;
    size_t opened, closed; // mails that could be opened, and could not
    size_t with_files;     // of the former
} Shadow;

// ---- the route ----

static bool read_account(
    Cli *cli, const json_t *credentials, Target *target, const char *name, Error *err)
{
    size_t i = 0;
    json_t *entry = NULL;
    const json_t *found = NULL;
    json_array_foreach(credentials, i, entry)
    {
        bool fits = strcmp(api_client_text(entry, "vendor", ""), target->vendor) == 0 &&
                    (name[0] != '\0' ? strcmp(api_client_text(entry, "name", ""), name) == 0
                                     : strcmp(api_client_text(entry, "state", ""), "active") == 0);
        found = found == NULL && fits ? entry : found;
    }
    const json_t *settings = json_object_get(found, "settings");
    VendorPair *pairs = arena_array(cli->arena, json_object_size(settings) + 1, sizeof *pairs);
    const char *key = NULL;
    json_t *value = NULL;
    target->account = (VendorAccount){
        .name = arena_str(cli->arena, str_from(name)),
        .id = arena_str(cli->arena, str_from(api_client_text(found, "key_id", PLACEHOLDER))),
        .secret = STR(PLACEHOLDER),
        .settings = pairs};
    target->reference = arena_cstr(cli->arena, str_from(api_client_text(found, "reference", "")));
    json_object_foreach((json_t *)(uintptr_t)settings, key, value)
    {
        pairs[target->account.setting_count++] = (VendorPair){
            arena_str(cli->arena, str_from(key)),
            arena_str(cli->arena, str_from(json_string_value(value)))};
    }
    if (target->api->by_definition && found != NULL) {
        char *text = json_dumps(json_object_get(found, "definition"), JSON_COMPACT);
        target->account.definition =
            definition_compile(str_from(text != NULL ? text : ""), target->api->channel, err);
        free(text);
        return target->account.definition != NULL;
    }
    return found != NULL || error_set(
                                err, ERROR_PERMANENT,
                                "%s has no credential%s%s (HINT: stentor credential put VENDOR "
                                "NAME --reference REF)",
                                target->vendor, name[0] != '\0' ? " " : " that is active", name);
}

static bool read_target(Shadow *shadow, const json_t *credentials, const json_t *vendor, Error *err)
{
    const VendorApi *api = vendor_find(str_from(api_client_text(vendor, "vendor", "")));
    if (api == NULL) {
        return true; // smtp takes the mail as it is
    }
    if (api->channel != CHANNEL_EMAIL) {
        return error_set(
            err, ERROR_PERMANENT, "%s is of channel %s; shadow builds e-mails alone",
            api_client_text(vendor, "vendor", ""), channel_name(api->channel));
    }
    Target *target = &shadow->targets[shadow->target_count++];
    target->api = api;
    target->vendor =
        arena_cstr(shadow->cli->arena, str_from(api_client_text(vendor, "vendor", "")));
    target->reasons = map_new(free);
    target->shown = json_array();
    return read_account(
        shadow->cli, credentials, target,
        arena_cstr(shadow->cli->arena, str_from(api_client_text(vendor, "credential", ""))), err);
}

static bool read_route(Shadow *shadow, ApiClient *client, Error *err)
{
    Cli *cli = shadow->cli;
    ApiAnswer answer = {0};
    size_t i = 0;
    json_t *vendor = NULL;
    const char *key = args_flag(&cli->args, "route");
    const char *path = arena_printf(cli->arena, "/v1/routes/%s", api_client_escape(cli, key));
    if (!api_client_ask(client, "GET", path, NULL, &answer, err)) {
        shadow->missing = answer.status == 404;
        return false;
    }
    json_t *vendors = json_deep_copy(json_object_get(answer.json, "vendors"));
    bool ok = api_client_ask(client, "GET", "/v1/credentials?limit=1000", NULL, &answer, err);
    const json_t *credentials = json_object_get(answer.json, "data");
    json_array_foreach(vendors, i, vendor)
    {
        ok = ok && shadow->target_count < ROUTE_VENDORS_MAX &&
             read_target(shadow, credentials, vendor, err);
    }
    json_decref(vendors);
    return ok &&
           (shadow->target_count > 0 ||
            error_set(
                err, ERROR_PERMANENT,
                "route '%.64s' has no vendor with an HTTP API: smtp takes mails as they are", key));
}

// ---- the mails ----

// What cannot be read may be a mail.
static bool is_of_other_channel(Str payload)
{
    Arena *arena = arena_new(0);
    const Stentor__V1__Rendered *event = (const Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, payload, arena, NULL);
    bool other = event != NULL && event->channel != (int)CHANNEL_EMAIL;
    arena_free(arena);
    return other;
}

static bool keep_last(void *ctx, const BusMessage *message)
{
    Shadow *shadow = ctx;
    if (is_of_other_channel(message->payload)) {
        return true;
    }
    size_t at = shadow->seen++ % (size_t)shadow->last;
    free((void *)(uintptr_t)shadow->ring[at].ptr);
    char *copy = xmalloc(message->payload.len + 1);
    memcpy(copy, message->payload.ptr, message->payload.len);
    shadow->ring[at] = str_of(copy, message->payload.len);
    return true;
}

// In the place of each file: its name and type are what most vendors refuse, its bytes stay where
// they are.
static const VendorAttachment *stand_ins_of(const Stentor__V1__EmailContent *content, Arena *arena)
{
    VendorAttachment *files = arena_array(arena, content->n_attachments, sizeof *files);
    for (size_t i = 0; i < content->n_attachments; i++) {
        const Stentor__V1__Attachment *file = content->attachments[i];
        files[i] = (VendorAttachment){
            str_from(file->name), str_from(file->content_type), str_from(file->content_id),
            STR("(the file)")};
    }
    return files;
}

// Without the files of the real one and its DKIM signature, which the dispatcher makes. Empty: the
// mail is none that can be composed.
static Str whole_of(const VendorMail *mail, int64_t date_us, Arena *arena)
{
    MimeMail mime = {
        .from_name = mail->from.name,
        .from = mail->from.address,
        .to_name = mail->to.name,
        .to = mail->to.address,
        .reply_to = mail->reply_to,
        .subject = mail->subject,
        .html = mail->html,
        .text = mail->text,
        .id = mail->notification_id,
        .id_domain = STR("localhost"),
        .date_us = date_us};
    Buf whole;
    Error ignored = {0};
    buf_init(&whole, MIME_BYTES_MAX);
    bool ok = mime_compose(&mime, &whole, &ignored);
    Str bytes = ok ? arena_str(arena, buf_view(&whole)) : STR_EMPTY;
    buf_done(&whole);
    return bytes;
}

static VendorMail mail_of(
    const Stentor__V1__Rendered *event, const ContentOpened *opened, const char *from, Arena *arena)
{
    const Stentor__V1__EmailContent *content = (const void *)opened->content;
    Str id = str_from(event->meta->notification_id);
    VendorMail mail = {
        .tenant = str_from(event->meta->tenant),
        .notification_id = id,
        .attempt = 1,
        .key = str_from(arena_printf(arena, STR_FMT "-1", STR_ARG(id))),
        .category = str_from(category_name((Category)event->category)),
        .template_key = str_from(event->template_),
        .from =
            {str_from(content->from_name),
             content->from[0] != '\0' ? str_from(content->from) : str_from(from)},
        .to = {str_from(opened->address->name), str_from(opened->address->address)},
        .reply_to = str_from(content->reply_to),
        .subject = str_from(content->subject),
        .html = str_from(content->html),
        .text = str_from(content->text),
        .attachments = stand_ins_of(content, arena),
        .attachment_count = content->n_attachments,
        .message_id = str_from(arena_printf(arena, STR_FMT "@localhost", STR_ARG(id))),
    };
    return mail;
}

static const char *masked(Str text, Arena *arena)
{
    size_t room = text.len + 256;
    char *out = arena_alloc(arena, room);
    mask_addresses(text, out, room);
    return out;
}

static json_t *request_json(const VendorMail *mail, const VendorRequest *request, Arena *arena)
{
    json_t *headers = json_object();
    for (size_t i = 0; i < request->header_count; i++) {
        json_t *value = json_string(masked(request->headers[i].value, arena));
        (void)json_object_setn_new(
            headers, request->headers[i].name.ptr, request->headers[i].name.len, value);
    }
    Str body = str_slice(request->body, 0, BODY_SHOWN_MAX);
    json_t *shown = str_is_utf8(body) ? json_string(masked(body, arena))
                                      : json_string("(bytes that are no text)");
    return json_pack(
        "{s:s%, s:s, s:s, s:o, s:I, s:o}", "id", mail->notification_id.ptr,
        mail->notification_id.len, "method", request->method, "url", masked(request->url, arena),
        "headers", headers, "body_bytes", (json_int_t)request->body.len, "body",
        shown != NULL ? shown : json_null());
}

static void count_reason(Target *target, const char *text)
{
    uint64_t *count = map_get(target->reasons, str_from(text));
    if (count == NULL && map_count(target->reasons) < REASONS_MAX) {
        count = xcalloc(1, sizeof *count);
        map_put(target->reasons, str_from(text), count);
    }
    if (count != NULL) {
        ++*count;
    }
    target->refused++;
}

static void build_for(Shadow *shadow, Target *target, const VendorMail *mail, Arena *arena)
{
    Error err = {0};
    VendorRequest request = {0};
    VendorMail own = *mail;
    own.message = target->api->whole ? whole_of(mail, clock_now_us(), arena) : STR_EMPTY;
    if (!target->api->build(&own, &target->account, clock_now_us(), arena, &request, &err)) {
        count_reason(target, masked(str_from(err.text), arena));
        return;
    }
    target->built++;
    if ((int64_t)json_array_size(target->shown) < shadow->shown) {
        (void)json_array_append_new(target->shown, request_json(&own, &request, arena));
    }
}

// Only where it was built: what a vendor cannot carry, it is not asked about.
static void rehearse_for(Shadow *shadow, Target *target, const VendorMail *mail, Arena *arena)
{
    VendorMail own = *mail;
    own.message = target->api->whole ? whole_of(mail, clock_now_us(), arena) : STR_EMPTY;
    if (target->rehearsal != NULL) {
        rehearsal_call(
            target->rehearsal, shadow->caller, &target->account, &own, arena, shadow->cli->arena);
    }
}

typedef void (*EachTarget)(Shadow *shadow, Target *target, const VendorMail *mail, Arena *arena);

static bool take_one(Shadow *shadow, Str payload, EachTarget each, Error *err)
{
    ContentOpened opened = {0};
    Arena *arena = arena_new(0);
    const Stentor__V1__Rendered *event = (const Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, payload, arena, NULL);
    bool mail = event != NULL && event->channel == (int)CHANNEL_EMAIL;
    bool ok = mail && content_open(shadow->session, event, &opened, err);
    if (ok && opened.address != NULL) {
        VendorMail made = mail_of(event, &opened, shadow->from, arena);
        shadow->with_files += made.attachment_count > 0 ? 1 : 0;
        for (size_t i = 0; i < shadow->target_count; i++) {
            each(shadow, &shadow->targets[i], &made, arena);
        }
        shadow->opened++;
    } else {
        shadow->closed++;
    }
    arena_free(arena);
    return ok || !mail || err->kind == ERROR_PERMANENT; // of an erased recipient, say
}

static bool take_all(Shadow *shadow, EachTarget each, Error *err)
{
    size_t count = shadow->seen < (size_t)shadow->last ? shadow->seen : (size_t)shadow->last;
    bool ok = true;
    shadow->opened = 0;
    shadow->closed = 0;
    shadow->with_files = 0;
    for (size_t i = 0; ok && i < count; i++) {
        error_clear(err);
        Str payload = shadow->ring[(shadow->seen - count + i) % (size_t)shadow->last];
        ok = take_one(shadow, payload, each, err);
    }
    return ok;
}

// ---- sent, so that nothing is sent ----

static bool begin_rehearsal(Shadow *shadow, Error *err)
{
    shadow->caller = vendor_caller_new(shadow->cli, err);
    bool ok = shadow->caller != NULL;
    for (size_t i = 0; ok && i < shadow->target_count; i++) {
        Target *target = &shadow->targets[i];
        if (target->api->rehearse != NULL) {
            target->rehearsal = xcalloc(1, sizeof *target->rehearsal);
            target->rehearsal->api = target->api;
            ok = secret_here(
                     shadow->cli, str_from(target->reference), &target->account.secret, err) ||
                 error_wrap(err, "the secret of %s", target->api->name);
        }
    }
    return ok;
}

// The secrets are read before the first call: a wrong one ends it all.
static bool rehearse(Shadow *shadow, Error *err)
{
    bool ok = cli_need(shadow->cli->settings.database_url, "STENTOR_DATABASE_URL", err) &&
              begin_rehearsal(shadow, err) && take_all(shadow, rehearse_for, err);
    for (size_t i = 0; ok && i < shadow->target_count; i++) {
        Rehearsal *rehearsal = shadow->targets[i].rehearsal;
        ok = rehearsal == NULL || rehearsal_compare(rehearsal, shadow->cli, shadow->tenant, err);
    }
    return ok;
}

// ---- before it is printed ----

static bool note_read(const Shadow *shadow, Error *err)
{
    const Cli *cli = shadow->cli;
    const char *ground = erase_ground(cli, err);
    const char *actor = erase_actor(cli, "requested-by", err);
    const AuditDetail details[] = {
        {"stream", shadow->stream},
        {"opened", arena_printf(cli->arena, "%zu", shadow->opened)},
    };
    AuditNote note = {
        .kind = AUDIT_READ,
        .tenant = shadow->tenant,
        .action = shadow->sends ? "content.rehearsed" : "content.shadowed",
        .actor = actor,
        .target = args_flag(&cli->args, "route"),
        .ground = ground,
        .program = "stentor " STENTOR_VERSION,
        .details = details,
        .detail_count = sizeof details / sizeof *details,
        .at_us = clock_now_us()};
    return ground != NULL && actor != NULL &&
           (session_audit(&shadow->session->session, &note, NULL, err) ||
            error_wrap(err, "not shown, because it cannot be noted in the audit log"));
}

// ---- printing ----

static json_t *target_json(const Target *target)
{
    json_t *reasons = json_object();
    Str text;
    void *count;
    for (size_t i = 0; map_next(target->reasons, &i, &text, &count);) {
        (void)json_object_setn_new(
            reasons, text.ptr, text.len, json_integer((json_int_t) * (const uint64_t *)count));
    }
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:o, s:O}", "vendor", target->vendor, "built", (json_int_t)target->built,
        "cannot_carry", (json_int_t)target->refused, "reasons", reasons, "requests", target->shown);
    if (target->rehearsal != NULL) {
        (void)json_object_set_new(object, "rehearsed", rehearsal_json(target->rehearsal));
    }
    return object;
}

static void print_target(const Target *target, bool sends)
{
    Str text;
    void *count;
    size_t at = 0;
    json_t *request = NULL;
    printf(
        "%s: %zu built, %zu that it cannot carry\n", target->vendor, target->built,
        target->refused);
    for (size_t i = 0; map_next(target->reasons, &i, &text, &count);) {
        printf(
            "  %8llu  " STR_FMT "\n", (unsigned long long)*(const uint64_t *)count, STR_ARG(text));
    }
    if (target->rehearsal != NULL) {
        rehearsal_print(target->rehearsal);
    } else if (sends) {
        printf("  it has no way that sends nothing: built only\n");
    }
    json_array_foreach(target->shown, at, request)
    {
        const char *name = NULL;
        json_t *value = NULL;
        printf(
            "\n%s\n%s %s\n", api_client_text(request, "id", ""),
            api_client_text(request, "method", ""), api_client_text(request, "url", ""));
        json_object_foreach(json_object_get(request, "headers"), name, value)
        {
            printf("%s: %s\n", name, json_string_value(value));
        }
        printf("\n");
        content_print_text(str_from(api_client_text(request, "body", "")));
        printf("\n");
    }
}

static int print_all(const Shadow *shadow)
{
    json_t *list = json_array();
    for (size_t i = 0; i < shadow->target_count; i++) {
        if (!shadow->cli->json) {
            print_target(&shadow->targets[i], shadow->sends);
        }
        (void)json_array_append_new(list, target_json(&shadow->targets[i]));
    }
    if (shadow->cli->json) {
        print_json_line(json_pack(
            "{s:s, s:I, s:I, s:I, s:O}", "stream", shadow->stream, "mails",
            (json_int_t)shadow->opened, "with_attachments", (json_int_t)shadow->with_files,
            "not_opened", (json_int_t)shadow->closed, "vendors", list));
    } else {
        printf(
            "%zu mails of %s, %zu could not be opened; nothing was sent\n", shadow->opened,
            shadow->stream, shadow->closed);
        if (shadow->with_files > 0) {
            printf(
                "%zu have attachments: a text stands for each file, so their sizes are not "
                "checked\n",
                shadow->with_files);
        }
    }
    json_decref(list);
    return EXIT_DONE;
}

// ---- the command ----

static bool read_plan(Shadow *shadow, Error *err)
{
    Cli *cli = shadow->cli;
    int64_t now_us = clock_now_us();
    const char *lane = args_flag(&cli->args, "lane");
    Priority priority = PRIORITY_NORMAL;
    shadow->from_us = now_us - 7 * DAY_US;
    shadow->sends = args_has(&cli->args, "send");
    shadow->from = args_flag(&cli->args, "from");
    shadow->from = shadow->from != NULL ? shadow->from : "no-reply@localhost";
    if (lane != NULL && !priority_from_name(str_from(lane), &priority)) {
        return error_set(
            err, ERROR_USAGE, "--lane '%.32s' is none of critical, high, normal, low", lane);
    }
    static const char *const streams[] = {
        [PRIORITY_CRITICAL] = "RENDERED_CRITICAL",
        [PRIORITY_HIGH] = "RENDERED_HIGH",
        [PRIORITY_NORMAL] = "RENDERED_NORMAL",
        [PRIORITY_LOW] = "RENDERED_LOW"};
    shadow->stream = streams[priority];
    shadow->tenant = erase_tenant(cli, err);
    return shadow->tenant != NULL && erase_ground(cli, err) != NULL &&
           erase_actor(cli, "requested-by", err) != NULL &&
           mail_address_check("from", str_from(shadow->from), NULL, err) &&
           args_time(&cli->args, "since", TIME_BEFORE_NOW, now_us, &shadow->from_us, err) &&
           args_int(&cli->args, "last", LAST, 1, LAST_MAX, &shadow->last, err) &&
           args_int(&cli->args, "show", SHOWN, 0, SHOWN_MAX, &shadow->shown, err);
}

static bool read_mails(Shadow *shadow, Error *err)
{
    char filter[SUBJECT_SIZE];
    Priority lane = PRIORITY_NORMAL;
    const char *name = args_flag(&shadow->cli->args, "lane");
    (void)(name != NULL && priority_from_name(str_from(name), &lane));
    (void)snprintf(
        filter, sizeof filter, "ntf.rendered.%s.%s", priority_name(lane), shadow->tenant);
    shadow->ring = xcalloc((size_t)shadow->last, sizeof *shadow->ring);
    ContentWalk walk = {
        .stream = shadow->stream,
        .filter = filter,
        .from_us = shadow->from_us,
        .each = keep_last,
        .ctx = shadow};
    return content_walk(shadow->session, &walk, err) && take_all(shadow, build_for, err) &&
           (shadow->opened == 0 ||
            (note_read(shadow, err) && (!shadow->sends || rehearse(shadow, err))));
}

static void free_shadow(Shadow *shadow)
{
    for (int64_t i = 0; shadow->ring != NULL && i < shadow->last; i++) {
        free((void *)(uintptr_t)shadow->ring[i].ptr);
    }
    free(shadow->ring);
    for (size_t i = 0; i < shadow->target_count; i++) {
        definition_drop(shadow->targets[i].account.definition);
        map_free(shadow->targets[i].reasons);
        json_decref(shadow->targets[i].shown);
        free(shadow->targets[i].rehearsal);
    }
    vendor_caller_free(shadow->caller);
}

int cmd_shadow(Cli *cli)
{
    Error err = {0};
    ContentLinks links = {0};
    Shadow shadow = {.cli = cli, .session = &links.session};
    ApiClient *client = NULL;
    bool ok = read_plan(&shadow, &err) && (client = api_client_new(cli, &err)) != NULL &&
              read_route(&shadow, client, &err) && content_links_open(cli, &links, &err) &&
              read_mails(&shadow, &err);
    int status = ok               ? print_all(&shadow)
                 : shadow.missing ? cli_fail_as(cli, EXIT_NOT_FOUND, "%s", err.text)
                                  : cli_fail(cli, &err);
    content_links_close(&links);
    api_client_free(client);
    free_shadow(&shadow);
    return status;
}
