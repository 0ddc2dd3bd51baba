// SPDX-License-Identifier: Apache-2.0
// tenant put, tenant show, tenant sender-domain: cfg.tenant.<tenant>.self. A put changes what its
// flags name and leaves the rest as it is; the fields are those of PUT /v1/tenant
// (common/api/tenant_json.h). Who has this account is the operator: what a tenant must not
// change of its settings is changed here.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/tenant_json.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/model/sender_domain.h"
#include "common/session/config_get.h"
#include "common/session/config_put.h"
#include "services/cli/cli.h"

enum { JSON_TEXT_MAX = 256 * 1024 };

// ---- what stands there ----

// *ret NULL: there is no entry.
static bool fetch_entry(
    Session *session, Cli *cli, const char *tenant, const Stentor__V1__Tenant **ret,
    uint64_t *ret_sequence, Error *err)
{
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    *ret = NULL;
    subject_config(subject, "tenant", str_from(tenant), STR("self"));
    if (!config_get(session, cli->arena, subject, &payload, ret_sequence, err)) {
        return false;
    }
    if (payload.len > 0) {
        *ret = (const Stentor__V1__Tenant *)event_unpack(
            &stentor__v1__tenant__descriptor, payload, cli->arena, err);
    }
    return payload.len == 0 || *ret != NULL;
}

static json_t *settings_of(const Stentor__V1__Tenant *tenant)
{
    Buf text;
    buf_init(&text, JSON_TEXT_MAX);
    tenant_json_print(tenant, &text);
    json_t *json = json_loadb(text.ptr, text.len, 0, NULL);
    buf_done(&text);
    return json;
}

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
        {"over-limit", "over_limit"},
        {"guardian-routing", "guardian_routing"},
        {"physical-address", "physical_address"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *value = args_flag(&cli->args, fields[i][0]);
        if (value != NULL && json_object_set_new(settings, fields[i][1], json_string(value)) != 0) {
            return error_set(err, ERROR_PERMANENT, "--%s is not UTF-8", fields[i][0]);
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
        (void)json_object_del(settings, "quiet_hours");
        return true;
    }
    if (!str_split(&end, '-', &start) || end.len == 0) {
        return error_set(
            err, ERROR_CONFIG, "--quiet-hours '%s': expected 22:00-07:00 or none", text);
    }
    json_t *hours = json_pack(
        "{s:s, s:s}", "start", arena_cstr(cli->arena, start), "end", arena_cstr(cli->arena, end));
    return json_object_set_new(settings, "quiet_hours", hours) == 0 ||
           error_set(err, ERROR_PERMANENT, "--quiet-hours is not UTF-8");
}

static bool set_theme(Cli *cli, json_t *settings, Error *err)
{
    const char *text = NULL;
    for (int i = 0; (text = args_each(&cli->args, "theme", &i)) != NULL;) {
        Str value = str_from(text);
        Str name = STR_EMPTY;
        if (str_find(value, '=') <= 0 || !str_split(&value, '=', &name)) {
            return error_set(err, ERROR_CONFIG, "--theme '%s': expected NAME=VALUE", text);
        }
        const char *key = arena_cstr(cli->arena, name);
        json_t *theme = member(settings, "theme");
        if (value.len == 0) {
            (void)json_object_del(theme, key);
        } else if (json_object_set_new(theme, key, json_string(value.ptr)) != 0) {
            return error_set(err, ERROR_PERMANENT, "--theme is not UTF-8");
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
           error_set(err, ERROR_CONFIG, "--suspended and --no-suspended exclude each other");
}

static bool build_entry(
    Cli *cli, const Stentor__V1__Tenant *before, Stentor__V1__Tenant *ret, Error *err)
{
    json_t *settings = before != NULL ? settings_of(before) : json_object();
    unsigned named = 0;
    if (!set_suspended(cli, settings, err) || !set_texts(cli, settings, err) ||
        !set_limits(cli, settings, err) || !set_quiet(cli, settings, err) ||
        !set_theme(cli, settings, err)) {
        json_decref(settings);
        return false;
    }
    ApiBody body = {.arena = cli->arena, .at = "", .root = settings};
    bool ok = tenant_json_read(&body, ret, &named) && api_body_end(&body);
    if (!ok) {
        (void)error_set(
            err, ERROR_PERMANENT, "field '%s': %s", body.problem.field, body.problem.detail);
    }
    api_body_free(&body);
    return ok;
}

// ---- sender domains ----

static bool has_domain(const Stentor__V1__Tenant *tenant, Str domain)
{
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        if (str_eq(str_from(tenant->sender_domains[i]), domain)) {
            return true;
        }
    }
    return false;
}

static bool add_domain(Cli *cli, Stentor__V1__Tenant *tenant, Str domain, Error *err)
{
    if (domain.len == 0 || has_domain(tenant, domain)) {
        return true;
    }
    if (tenant->n_sender_domains >= SENDER_DOMAINS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "tenant '%s' has %d sender domains already", tenant->tenant,
            (int)SENDER_DOMAINS_MAX);
    }
    char **domains = arena_array(cli->arena, tenant->n_sender_domains + 1, sizeof *domains);
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        domains[i] = tenant->sender_domains[i];
    }
    domains[tenant->n_sender_domains++] = arena_cstr(cli->arena, domain);
    tenant->sender_domains = domains;
    return true;
}

// With a first domain the rule of entries without any ends, so what it covered is added too: mails
// with that From are on their way.
static bool adopt_sender(
    Cli *cli, const Stentor__V1__Tenant *before, Stentor__V1__Tenant *tenant, Error *err)
{
    bool ruled = before == NULL || before->n_sender_domains > 0;
    return ruled ||
           add_domain(cli, tenant, sender_domain_of(str_from(before->sender_address)), err);
}

static bool is_covered(const Stentor__V1__Tenant *tenant)
{
    SenderRule rule = {tenant->sender_domains, tenant->n_sender_domains, STR_EMPTY};
    return sender_may_use(&rule, str_from(tenant->sender_address));
}

// --sender is the operator's word for the address's domain.
static bool verify_sender(
    Cli *cli, const Stentor__V1__Tenant *before, Stentor__V1__Tenant *tenant, Error *err)
{
    if (!args_has(&cli->args, "sender") || tenant->sender_address[0] == '\0' ||
        is_covered(tenant)) {
        return true;
    }
    return adopt_sender(cli, before, tenant, err) &&
           add_domain(cli, tenant, sender_domain_of(str_from(tenant->sender_address)), err);
}

// ---- the commands ----

static bool check_tenant(const char *name, Error *err)
{
    return id_is_tenant(str_from(name)) ||
           error_set(
               err, ERROR_PERMANENT, "'%s' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-'", name);
}

static bool put_tenant(Cli *cli, char *name, Stentor__V1__Tenant *tenant, Error *err)
{
    Session session;
    const Stentor__V1__Tenant *before = NULL;
    uint64_t sequence = 0;
    if (!session_open(&session, &cli->settings.session, err)) {
        return false;
    }
    stentor__v1__tenant__init(tenant);
    tenant->tenant = name;
    tenant->updated_at_us = clock_now_us();
    bool ok = fetch_entry(&session, cli, name, &before, &sequence, err) &&
              build_entry(cli, before, tenant, err) && verify_sender(cli, before, tenant, err);
    ConfigEntry entry = {"tenant", str_from(name), STR("self"), &tenant->base, sequence};
    ok = ok && config_put(&session, cli->arena, &entry, err);
    session_close(&session);
    return ok;
}

int cmd_tenant_put(Cli *cli)
{
    Error err = {0};
    Stentor__V1__Tenant tenant;
    char *name = arena_cstr(cli->arena, str_from(args_word(&cli->args, 0)));
    if (!check_tenant(name, &err) || !put_tenant(cli, name, &tenant, &err)) {
        return cli_fail(&err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", name, "state", tenant.suspended ? "suspended" : "active", NULL});
    return EXIT_DONE;
}

static void print_settings(const Cli *cli, const Stentor__V1__Tenant *tenant)
{
    json_t *json = settings_of(tenant);
    char *text = json_dumps(json, cli->json ? JSON_COMPACT : JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    printf("%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(json);
}

// *ret is the entry when this is EXIT_DONE; else the reason was printed.
static int fetch_tenant(Cli *cli, const char *name, const Stentor__V1__Tenant **ret)
{
    Error err = {0};
    Session session;
    if (!cli_need(name, "STENTOR_TENANT", &err) || !check_tenant(name, &err) ||
        !session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(&err);
    }
    uint64_t sequence = 0;
    bool ok = fetch_entry(&session, cli, name, ret, &sequence, &err);
    session_close(&session);
    if (!ok) {
        return cli_fail(&err);
    }
    if (*ret == NULL) {
        fprintf(stderr, "stentor: no settings of tenant '%s'\n", name);
        return EXIT_NOT_FOUND;
    }
    return EXIT_DONE;
}

int cmd_tenant_show(Cli *cli)
{
    const Stentor__V1__Tenant *tenant = NULL;
    const char *name = args_word(&cli->args, 0);
    int status = fetch_tenant(cli, name != NULL ? name : cli->settings.tenant, &tenant);
    if (status == EXIT_DONE) {
        print_settings(cli, tenant);
    }
    return status;
}

// What `sender-domain add` and `remove` do to an entry that was read.
static bool change_domains(
    Cli *cli, const Stentor__V1__Tenant *before, bool adds, Str domain, Stentor__V1__Tenant *tenant,
    Error *err)
{
    if (adds) {
        return adopt_sender(cli, before, tenant, err) && add_domain(cli, tenant, domain, err);
    }
    if (!adopt_sender(cli, before, tenant, err)) {
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        if (!str_eq(str_from(tenant->sender_domains[i]), domain)) {
            tenant->sender_domains[kept++] = tenant->sender_domains[i];
        }
    }
    if (kept == tenant->n_sender_domains) {
        return error_set(
            err, ERROR_PERMANENT, "tenant '%s' has no sender domain '" STR_FMT "'", tenant->tenant,
            STR_ARG(domain));
    }
    tenant->n_sender_domains = kept;
    if (!is_covered(tenant)) {
        static char none[] = "";
        tenant->sender_address = none;
        tenant->sender_name = none;
    }
    return true;
}

static bool put_domains(Cli *cli, bool adds, Str domain, Stentor__V1__Tenant *tenant, Error *err)
{
    Session session;
    const Stentor__V1__Tenant *before = NULL;
    uint64_t sequence = 0;
    if (!session_open(&session, &cli->settings.session, err)) {
        return false;
    }
    bool ok = fetch_entry(&session, cli, tenant->tenant, &before, &sequence, err);
    if (ok && before != NULL) {
        *tenant = *before;
    }
    tenant->updated_at_us = clock_now_us();
    ConfigEntry entry = {"tenant", str_from(tenant->tenant), STR("self"), &tenant->base, sequence};
    ok = ok && change_domains(cli, before, adds, domain, tenant, err) &&
         config_put(&session, cli->arena, &entry, err);
    session_close(&session);
    return ok;
}

static const char *domains_text(Cli *cli, const Stentor__V1__Tenant *tenant)
{
    const char *text = "";
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        text =
            arena_printf(cli->arena, "%s%s%s", text, i > 0 ? "," : "", tenant->sender_domains[i]);
    }
    return text;
}

static int list_domains(Cli *cli)
{
    const Stentor__V1__Tenant *tenant = NULL;
    const char *name = args_word(&cli->args, 1);
    int status = fetch_tenant(cli, name != NULL ? name : cli->settings.tenant, &tenant);
    if (status != EXIT_DONE) {
        return status;
    }
    json_t *domains = json_array();
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        (void)json_array_append_new(domains, json_string(tenant->sender_domains[i]));
        if (!cli->json) {
            puts(tenant->sender_domains[i]);
        }
    }
    if (cli->json) {
        json_t *root = json_pack(
            "{s:s, s:o, s:s}", "tenant", tenant->tenant, "sender_domains", domains,
            "sender_address", tenant->sender_address);
        json_dumpf(root, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(root);
        return EXIT_DONE;
    }
    json_decref(domains);
    if (tenant->n_sender_domains == 0) {
        fprintf(stderr, "stentor: tenant '%s' has no sender domain\n", tenant->tenant);
    }
    return EXIT_DONE;
}

static int change_domain(Cli *cli, bool adds)
{
    Error err = {0};
    Stentor__V1__Tenant tenant;
    Str domain = STR_EMPTY;
    char reason[ADDRESS_REASON_SIZE];
    const char *text = args_word(&cli->args, 2);
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(cli->arena, str_from(args_word(&cli->args, 1)));
    if (!sender_domain_parse(str_from(text), cli->arena, &domain, reason)) {
        (void)error_set(&err, ERROR_CONFIG, "'%s': %s", text, reason);
        return cli_fail(&err);
    }
    if (!check_tenant(tenant.tenant, &err) || !put_domains(cli, adds, domain, &tenant, &err)) {
        return cli_fail(&err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", tenant.tenant, "sender_domains", domains_text(cli, &tenant),
                 "sender_address", tenant.sender_address, NULL});
    return EXIT_DONE;
}

int cmd_tenant_sender_domain(Cli *cli)
{
    const char *word = args_word(&cli->args, 0);
    bool adds = strcmp(word, "add") == 0;
    if (strcmp(word, "list") == 0 && cli->args.word_count <= 2) {
        return list_domains(cli);
    }
    if ((adds || strcmp(word, "remove") == 0) && cli->args.word_count == 3) {
        return change_domain(cli, adds);
    }
    fputs(
        "stentor: usage: stentor tenant sender-domain add|remove TENANT DOMAIN, or list [TENANT]\n",
        stderr);
    return EXIT_USAGE;
}
