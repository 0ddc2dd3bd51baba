// SPDX-License-Identifier: Apache-2.0
// tenant put, tenant show, tenant list, tenant sender-domain: /v1/tenant of the tenant that is
// named. A put is a merge patch of what its flags name. An operator's key changes what is
// the operator's alone.
#include <jansson.h>
#include <string.h>

#include "common/api/tenant_json.h"
#include "common/model/enums.h"
#include "services/cli/api_client.h"

// ---- flags ----

static json_t *member(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (value == NULL) {
        value = json_object();
        (void)json_object_set_new(object, name, value);
    }
    return value;
}

static bool set_texts(const Cli *cli, json_t *settings, Error *err)
{
    static const char *const fields[][2] = {
        {"name", "name"},
        {"region", "region"},
        {"locale", "locale"},
        {"time-zone", "time_zone"},
        {"sender", "sender_address"},
        {"sender-name", "sender_name"},
        {"reply-to", "reply_to"},
        {"over-limit", "over_limit"},
        {"guardian-routing", "guardian_routing"},
        {"physical-address", "physical_address"},
        {"address-footer", "address_footer"},
        {"shared-addresses", "shared_addresses"},
        {"events", "events"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *value = args_flag(&cli->args, fields[i][0]);
        if (value != NULL && json_object_set_new(settings, fields[i][1], json_string(value)) != 0) {
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", fields[i][0]);
        }
    }
    return true;
}

// "100", or of one channel "sms=10".
static bool set_limit(
    const Cli *cli, const char *flag, const char *text, json_t *limits, const char *name,
    Error *err)
{
    int64_t value = 0;
    Channel channel = CHANNEL_NONE;
    Str number = str_from(text);
    Str of = STR_EMPTY;
    bool named = str_find(number, '=') >= 0 && str_split(&number, '=', &of);
    if (named && !channel_from_name(of, &channel)) {
        return error_set(err, ERROR_USAGE, "--%s '%.60s': expected N or CHANNEL=N", flag, text);
    }
    if (!str_to_i64(number, &value) || value < 0 || value > TENANT_LIMIT_MAX) {
        return error_set(
            err, ERROR_USAGE, "--%s '%.60s': expected a whole number from 0 to %d", flag, text,
            (int)TENANT_LIMIT_MAX);
    }
    json_t *into = named ? member(member(limits, "channels"), arena_cstr(cli->arena, of)) : limits;
    (void)json_object_set_new(into, name, json_integer(value));
    return true;
}

static bool set_limits(const Cli *cli, json_t *settings, Error *err)
{
    static const char *const fields[][3] = {
        {"limit-minute", "limits", "per_minute"},
        {"limit-day", "limits", "per_day"},
        {"recipient-limit-minute", "recipient_limits", "per_minute"},
        {"recipient-limit-day", "recipient_limits", "per_day"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *text = NULL;
        for (int n = 0; (text = args_each(&cli->args, fields[i][0], &n)) != NULL;) {
            json_t *limits = member(settings, fields[i][1]);
            if (!set_limit(cli, fields[i][0], text, limits, fields[i][2], err)) {
                return false;
            }
        }
    }
    return true;
}

// "22:00-07:00"; "none" takes them back.
static bool set_quiet(Cli *cli, json_t *settings, Error *err)
{
    const char *text = args_flag(&cli->args, "quiet-hours");
    Str end = str_from(text);
    Str start = STR_EMPTY;
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, "none") == 0) {
        (void)json_object_set_new(settings, "quiet_hours", json_null());
        return true;
    }
    if (!str_split(&end, '-', &start) || end.len == 0) {
        return error_set(
            err, ERROR_USAGE, "--quiet-hours '%s': expected 22:00-07:00 or none", text);
    }
    json_t *hours = json_pack(
        "{s:s, s:s}", "start", arena_cstr(cli->arena, start), "end", arena_cstr(cli->arena, end));
    return json_object_set_new(settings, "quiet_hours", hours) == 0 ||
           error_set(err, ERROR_USAGE, "--quiet-hours is not UTF-8");
}

// --theme and --retention: NAME=VALUE, several times; an empty value takes the name back.
static bool set_pairs(Cli *cli, const char *flag, json_t *settings, Error *err)
{
    const char *text = NULL;
    for (int i = 0; (text = args_each(&cli->args, flag, &i)) != NULL;) {
        Str value = str_from(text);
        Str name = STR_EMPTY;
        if (str_find(value, '=') <= 0 || !str_split(&value, '=', &name)) {
            return error_set(err, ERROR_USAGE, "--%s '%s': expected NAME=VALUE", flag, text);
        }
        const char *key = arena_cstr(cli->arena, name);
        json_t *pairs = member(settings, flag);
        if (value.len == 0) {
            (void)json_object_set_new(pairs, key, json_null());
        } else if (json_object_set_new(pairs, key, json_string(value.ptr)) != 0) {
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
        }
    }
    return true;
}

static bool set_suspended(const Cli *cli, json_t *settings, Error *err)
{
    bool suspends = args_has(&cli->args, "suspended");
    bool lifts = args_has(&cli->args, "no-suspended");
    const char *status = args_flag(&cli->args, "status");
    if (status != NULL && json_object_set_new(settings, "status", json_string(status)) != 0) {
        return error_set(err, ERROR_USAGE, "--status is not UTF-8");
    }
    if (suspends || lifts) {
        (void)json_object_set_new(settings, "suspended", json_boolean(suspends));
    }
    return (int)suspends + (int)lifts + (int)(status != NULL) <= 1 ||
           error_set(
               err, ERROR_USAGE, "--suspended, --no-suspended and --status exclude each other");
}

// --no-channel NAME, --no-category NAME: the tenant sends nothing of it; --channel and --category
// take that back.
static bool set_policy(Cli *cli, json_t *settings, Error *err)
{
    static const struct {
        const char *flag;
        const char *kind;
        bool allows;
    } flags[] = {
        {"no-channel", "channels", false},
        {"no-category", "categories", false},
        {"channel", "channels", true},
        {"category", "categories", true},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const char *name = NULL;
        for (int n = 0; (name = args_each(&cli->args, flags[i].flag, &n)) != NULL;) {
            json_t *policy = member(settings, "notification_policy");
            if (json_object_set_new(
                    member(policy, flags[i].kind), name, json_boolean(flags[i].allows)) != 0) {
                return error_set(err, ERROR_USAGE, "--%s is not UTF-8", flags[i].flag);
            }
        }
    }
    return true;
}

// ---- the commands ----

static int show_state(Cli *cli, const json_t *settings)
{
    print_pairs(
        cli, (const char *const[]){
                 "tenant", api_client_text(settings, "tenant", ""), "state",
                 api_client_text(settings, "status", ""), NULL});
    return EXIT_DONE;
}

int cmd_tenant_put(Cli *cli)
{
    Error err = {0};
    json_t *patch = json_object();
    cli->tenant = args_word(&cli->args, 0);
    if (!set_suspended(cli, patch, &err) || !set_texts(cli, patch, &err) ||
        !set_limits(cli, patch, &err) || !set_policy(cli, patch, &err) ||
        !set_quiet(cli, patch, &err) || !set_pairs(cli, "theme", patch, &err) ||
        !set_pairs(cli, "retention", patch, &err)) {
        json_decref(patch);
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "PATCH", "/v1/tenant", patch, show_state);
}

int cmd_tenant_show(Cli *cli)
{
    cli->tenant = args_word(&cli->args, 0);
    return api_client_run(cli, "GET", "/v1/tenant", NULL, api_client_show);
}

// ---- the list ----

static void print_tenants(Cli *cli, const json_t *list)
{
    size_t count = json_array_size(list);
    if (cli->json) {
        api_client_dump(list);
        return;
    }
    if (count == 0) {
        cli_note_empty(cli, "tenant");
        return;
    }
    printf("%-32s  %-10s %-16s %s\n", "TENANT", "STATUS", "REGION", "NAME");
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(list, i);
        printf(
            "%-32s  %-10s %-16s %s\n", api_client_text(row, "tenant", ""),
            api_client_text(row, "status", ""), api_client_text(row, "region", "-"),
            api_client_text(row, "name", ""));
    }
}

int cmd_tenant_list(Cli *cli)
{
    json_t *list = json_array();
    const char *status = args_flag(&cli->args, "status");
    const char *path =
        status == NULL
            ? "/v1/tenants"
            : arena_printf(cli->arena, "/v1/tenants?status=%s", api_client_escape(cli, status));
    int exit_status = api_client_list(cli, path, api_client_take, list);
    if (exit_status == EXIT_DONE) {
        print_tenants(cli, list);
    }
    json_decref(list);
    return exit_status;
}

// ---- sender domains ----

static int show_domains(Cli *cli, const json_t *settings)
{
    json_t *domains = json_array();
    (void)json_array_extend(domains, json_object_get(settings, "sender_domains"));
    if (cli->json) {
        api_client_dump(domains);
    } else if (json_array_size(domains) == 0) {
        cli_note_empty(cli, "sender domain: the operator has verified none for this tenant");
    }
    for (size_t i = 0; !cli->json && i < json_array_size(domains); i++) {
        puts(json_string_value(json_array_get(domains, i)));
    }
    json_decref(domains);
    return EXIT_DONE;
}

static int show_changed(Cli *cli, const json_t *settings)
{
    const json_t *list = json_object_get(settings, "sender_domains");
    const char *text = "";
    for (size_t i = 0; i < json_array_size(list); i++) {
        text = arena_printf(
            cli->arena, "%s%s%s", text, i > 0 ? "," : "",
            json_string_value(json_array_get(list, i)));
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", api_client_text(settings, "tenant", ""), "sender_domains", text,
                 "sender_address", api_client_text(settings, "sender_address", ""), NULL});
    return EXIT_DONE;
}

int cmd_tenant_sender_domain(Cli *cli)
{
    const char *word = args_word(&cli->args, 0);
    bool adds = strcmp(word, "add") == 0;
    cli->tenant = args_word(&cli->args, 1);
    if (strcmp(word, "list") == 0 && cli->args.word_count <= 2) {
        return api_client_run(cli, "GET", "/v1/tenant", NULL, show_domains);
    }
    if ((adds || strcmp(word, "remove") == 0) && cli->args.word_count == 3) {
        const char *domain = api_client_escape(cli, args_word(&cli->args, 2));
        return api_client_run(
            cli, adds ? "PUT" : "DELETE",
            arena_printf(cli->arena, "/v1/tenant/sender-domains/%s", domain), NULL, show_changed);
    }
    return cli_fail_as(
        cli, EXIT_USAGE,
        "usage: stentor tenant sender-domain add|remove TENANT DOMAIN, or list [TENANT]");
}
