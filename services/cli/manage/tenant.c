// SPDX-License-Identifier: Apache-2.0
// tenant put, tenant show, tenant sender-domain; inbound put: /v1/tenant of the tenant that is
// named. A put is a merge patch of what its flags name. An operator's key changes what is the
// operator's alone.
#include <jansson.h>
#include <string.h>

#include "common/api/tenant_json.h"
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
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *value = args_flag(&cli->args, fields[i][0]);
        if (value != NULL && json_object_set_new(settings, fields[i][1], json_string(value)) != 0) {
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", fields[i][0]);
        }
    }
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
        int64_t value = 0;
        if (!args_int(&cli->args, fields[i][0], 0, 0, TENANT_LIMIT_MAX, &value, err)) {
            return false;
        }
        if (args_has(&cli->args, fields[i][0])) {
            (void)json_object_set_new(
                member(settings, fields[i][1]), fields[i][2], json_integer(value));
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
    if (suspends || lifts) {
        (void)json_object_set_new(settings, "suspended", json_boolean(suspends));
    }
    return !(suspends && lifts) ||
           error_set(err, ERROR_USAGE, "--suspended and --no-suspended exclude each other");
}

// ---- the commands ----

static int show_state(Cli *cli, const json_t *settings)
{
    bool suspended = json_is_true(json_object_get(settings, "suspended"));
    print_pairs(
        cli, (const char *const[]){
                 "tenant", api_client_text(settings, "tenant", ""), "state",
                 suspended ? "suspended" : "active", NULL});
    return EXIT_DONE;
}

int cmd_tenant_put(Cli *cli)
{
    Error err = {0};
    json_t *patch = json_object();
    cli->tenant = args_word(&cli->args, 0);
    if (!set_suspended(cli, patch, &err) || !set_texts(cli, patch, &err) ||
        !set_limits(cli, patch, &err) || !set_quiet(cli, patch, &err) ||
        !set_pairs(cli, "theme", patch, &err) || !set_pairs(cli, "retention", patch, &err)) {
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

// ---- a vendor's key ----

static int show_inbound(Cli *cli, const json_t *key)
{
    print_pairs(
        cli,
        (const char *const[]){
            "tenant", api_client_text(key, "tenant", ""), "vendor",
            api_client_text(key, "vendor", ""), "state", api_client_text(key, "state", ""), NULL});
    return EXIT_DONE;
}

int cmd_inbound_put(Cli *cli)
{
    Error err = {0};
    const char *vendor = args_word(&cli->args, 0);
    const char *key = args_flag(&cli->args, "public-key");
    bool revoked = args_has(&cli->args, "revoke");
    if (strcmp(vendor, "sendgrid") != 0) {
        (void)error_set(&err, ERROR_USAGE, "unknown vendor '%s' (known: sendgrid)", vendor);
        return cli_fail(cli, &err);
    }
    if (!revoked && key == NULL) {
        (void)error_set(
            &err, ERROR_USAGE,
            "--public-key is required: the verification key of the vendor's console");
        return cli_fail(cli, &err);
    }
    json_t *body = json_pack("{s:b}", "revoked", revoked);
    if (key != NULL) {
        (void)json_object_set_new(body, "public_key", json_string(key));
    }
    return api_client_run(
        cli, "PUT", arena_printf(cli->arena, "/v1/tenant/inbound-keys/%s", vendor), body,
        show_inbound);
}
