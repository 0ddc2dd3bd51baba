// SPDX-License-Identifier: Apache-2.0
// inbound put, list, url: /v1/tenant/inbound-keys of the tenant that is named.
#include <jansson.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/span.h"
#include "common/vendor/generic/definition.h"
#include "common/vendor/vendor_callback.h"
#include "services/cli/api_client.h"

static bool check_vendor(const char *name, Error *err)
{
    if (vendor_callback_find(str_from(name)) != NULL) {
        return true;
    }
    Buf known;
    buf_init(&known, 256);
    for (size_t i = 0; vendor_callback_at(i) != NULL; i++) {
        (void)buf_printf(&known, "%s%s", i > 0 ? ", " : "", vendor_callback_at(i)->name);
    }
    (void)error_set(err, ERROR_USAGE, "unknown vendor '%.40s' (known: %s)", name, buf_c(&known));
    buf_done(&known);
    return false;
}

static const char *make_path(Cli *cli, const char *vendor)
{
    return arena_printf(cli->arena, "/v1/tenant/inbound-keys/%s", vendor);
}

// ---- put ----

// "name=value". false: *err says which flag.
static bool cut_pair(
    Cli *cli, const char *flag, const char *text, const char **ret_name, const char **ret_value,
    Error *err)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return error_set(err, ERROR_USAGE, "--%s '%.60s': expected NAME=VALUE", flag, text);
    }
    *ret_name = arena_cstr(cli->arena, str_of(text, (size_t)(equals - text)));
    *ret_value = equals + 1;
    return true;
}

static json_t *find_secret(json_t *secrets, const char *name)
{
    size_t i;
    json_t *secret;
    json_array_foreach(secrets, i, secret)
    {
        if (strcmp(api_client_text(secret, "name", ""), name) == 0) {
            return secret;
        }
    }
    return NULL;
}

static bool add_secrets(Cli *cli, json_t *secrets, Error *err)
{
    const char *text, *name, *value;
    for (int i = 0; (text = args_each(&cli->args, "secret", &i)) != NULL;) {
        if (!cut_pair(cli, "secret", text, &name, &value, err)) {
            return false;
        }
        (void)json_array_append_new(
            secrets, json_pack("{s:s, s:s}", "name", name, "reference", value));
    }
    return true;
}

static bool add_ends(Cli *cli, json_t *secrets, Error *err)
{
    const char *text, *name, *value;
    for (int i = 0; (text = args_each(&cli->args, "not-after", &i)) != NULL;) {
        int64_t at_us = 0;
        int64_t span_us = 0;
        if (!cut_pair(cli, "not-after", text, &name, &value, err)) {
            return false;
        }
        json_t *secret = find_secret(secrets, name);
        if (secret == NULL) {
            return error_set(err, ERROR_USAGE, "--not-after: there is no --secret '%s'", name);
        }
        if (span_parse(str_from(value), &span_us)) {
            at_us = clock_now_us() + span_us;
        } else if (!clock_parse(str_from(value), &at_us)) {
            return error_set(
                err, ERROR_USAGE, "--not-after '%.60s': a time (RFC 3339) or a span such as 7d",
                text);
        }
        char at[CLOCK_RFC3339_SIZE];
        clock_format(at_us, at);
        (void)json_object_set_new(secret, "not_after", json_string(at));
    }
    return true;
}

static int show_inbound(Cli *cli, const json_t *key)
{
    print_pairs(
        cli,
        (const char *const[]){
            "tenant", api_client_text(key, "tenant", ""), "vendor",
            api_client_text(key, "vendor", ""), "state", api_client_text(key, "state", ""), NULL});
    return EXIT_DONE;
}

static bool check_put(const Cli *cli, const char *vendor, Error *err)
{
    if (!check_vendor(vendor, err)) {
        return false;
    }
    bool sendgrid = strcmp(vendor, "sendgrid") == 0;
    bool ses = strcmp(vendor, "ses") == 0;
    bool keyed = args_has(&cli->args, "public-key") || args_has(&cli->args, "secret");
    if (args_has(&cli->args, "revoke")) {
        return true;
    }
    if (ses && !args_has(&cli->args, "topic")) {
        return error_set(
            err, ERROR_USAGE, "--topic is required: the ARN of the SNS topic that may call back");
    }
    if (strcmp(vendor, "meta") == 0 && !args_has(&cli->args, "number")) {
        return error_set(
            err, ERROR_USAGE, "--number is required: the phone_number_id of the tenant's number");
    }
    return ses || keyed ||
           error_set(
               err, ERROR_USAGE, "%s is required: %s", sendgrid ? "--public-key" : "--secret",
               sendgrid ? "the verification key of the vendor's console"
                        : "NAME=file:/path or NAME=env:NAME, where its key is read");
}

static void add_list(Cli *cli, const char *flag, const char *field, json_t *body)
{
    const char *value;
    for (int i = 0; (value = args_each(&cli->args, flag, &i)) != NULL;) {
        json_t *list = json_object_get(body, field);
        if (list == NULL) {
            list = json_array();
            (void)json_object_set_new(body, field, list);
        }
        (void)json_array_append_new(list, json_string(value));
    }
}

// The keys may be put before the credential; that no vendor has the name is worth a note. Who may
// not read credentials gets none.
static void note_undefined(Cli *cli, const char *vendor)
{
    Error err = {0};
    ApiAnswer answer = {0};
    size_t i = 0;
    json_t *credential = NULL;
    bool known = definition_channel(str_from(vendor)) == CHANNEL_NONE;
    ApiClient *client = known ? NULL : api_client_new(cli, &err);
    if (client != NULL &&
        api_client_ask(client, "GET", "/v1/credentials?limit=1000", NULL, &answer, &err)) {
        json_array_foreach(json_object_get(answer.json, "data"), i, credential)
        {
            known = known || strcmp(api_client_text(credential, "vendor", ""), vendor) == 0;
        }
        if (!known) {
            cli_note(
                cli,
                "no credential of %s is there, so its callbacks are refused (HINT: stentor "
                "credential put %s NAME --definition FILE)",
                vendor, vendor);
        }
    }
    api_client_free(client);
}

int cmd_inbound_put(Cli *cli)
{
    Error err = {0};
    const char *vendor = args_word(&cli->args, 0);
    const char *key = args_flag(&cli->args, "public-key");
    json_t *secrets = json_array();
    if (!check_put(cli, vendor, &err) || !add_secrets(cli, secrets, &err) ||
        !add_ends(cli, secrets, &err)) {
        json_decref(secrets);
        return cli_fail(cli, &err);
    }
    json_t *body = json_pack("{s:b}", "revoked", args_has(&cli->args, "revoke"));
    if (key != NULL) {
        (void)json_object_set_new(body, "public_key", json_string(key));
    }
    if (json_array_size(secrets) > 0) {
        (void)json_object_set(body, "secrets", secrets);
    }
    json_decref(secrets);
    add_list(cli, "topic", "topics", body);
    add_list(cli, "number", "numbers", body);
    int status = api_client_run(cli, "PUT", make_path(cli, vendor), body, show_inbound);
    if (status == EXIT_DONE && !args_has(&cli->args, "revoke")) {
        note_undefined(cli, vendor);
    }
    return status;
}

// ---- url ----

static int show_url(Cli *cli, const json_t *key)
{
    const char *base = args_flag(&cli->args, "base");
    size_t len = base != NULL ? strlen(base) : 0;
    while (len > 0 && base[len - 1] == '/') {
        len--;
    }
    const char *url = arena_printf(
        cli->arena, "%.*s%s", (int)len, base != NULL ? base : "", api_client_text(key, "path", ""));
    if (cli->json) {
        print_json_line(json_pack(
            "{s:s, s:s, s:s}", "tenant", api_client_text(key, "tenant", ""), "vendor",
            api_client_text(key, "vendor", ""), "url", url));
    } else {
        printf("%s\n", url);
    }
    return EXIT_DONE;
}

int cmd_inbound_url(Cli *cli)
{
    Error err = {0};
    const char *vendor = args_word(&cli->args, 0);
    if (!check_vendor(vendor, &err)) {
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "GET", make_path(cli, vendor), NULL, show_url);
}

// ---- list ----

static void print_secrets(const json_t *key)
{
    size_t i;
    const json_t *secret;
    if (json_object_get(key, "public_key") != NULL) {
        printf(" public_key");
    }
    json_array_foreach(json_object_get(key, "secrets"), i, secret)
    {
        const char *until = api_client_text(secret, "not_after", "");
        printf(
            " %s (%s%s%s)", api_client_text(secret, "name", ""),
            api_client_text(secret, "reference", ""), until[0] != '\0' ? ", until " : "", until);
    }
    static const char *const lists[] = {"topics", "numbers"};
    for (size_t at = 0; at < sizeof lists / sizeof *lists; at++) {
        json_array_foreach(json_object_get(key, lists[at]), i, secret)
        {
            printf(" %s", json_string_value(secret));
        }
    }
}

static void print_list(const Cli *cli, json_t *list)
{
    size_t i;
    json_t *key;
    if (cli->json) {
        api_client_dump(list);
        return;
    }
    printf("%-10s  %-8s %s\n", "VENDOR", "STATE", "KEYS");
    json_array_foreach(list, i, key)
    {
        printf(
            "%-10s  %-8s", api_client_text(key, "vendor", ""), api_client_text(key, "state", ""));
        print_secrets(key);
        printf("\n");
    }
}

static bool is_listed(const json_t *list, const char *vendor)
{
    size_t i = 0;
    json_t *key = NULL;
    json_array_foreach(list, i, key)
    {
        if (strcmp(api_client_text(key, "vendor", ""), vendor) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_key(
    Cli *cli, ApiClient *client, json_t *list, const char *vendor, ApiAnswer *ret, Error *err)
{
    if (!api_client_ask(client, "GET", make_path(cli, vendor), NULL, ret, err)) {
        return false;
    }
    // The path is a secret of its own: `inbound url`.
    (void)json_object_del(ret->json, "path");
    (void)json_array_append(list, ret->json);
    return true;
}

// Vendors by definition that the tenant has a credential for.
static bool add_defined(Cli *cli, ApiClient *client, json_t *list, ApiAnswer *ret, Error *err)
{
    size_t i = 0;
    json_t *credential = NULL;
    bool ok = api_client_ask(client, "GET", "/v1/credentials?limit=1000", NULL, ret, err);
    json_t *found = ok ? json_deep_copy(json_object_get(ret->json, "data")) : NULL;
    json_array_foreach(found, i, credential)
    {
        const char *vendor = api_client_text(credential, "vendor", "");
        bool defined = definition_channel(str_from(vendor)) != CHANNEL_NONE;
        ok = ok &&
             (!defined || is_listed(list, vendor) || add_key(cli, client, list, vendor, ret, err));
    }
    json_decref(found);
    return ok;
}

int cmd_inbound_list(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    ApiClient *client = api_client_new(cli, &err);
    json_t *list = json_array();
    bool ok = client != NULL;
    for (size_t i = 0; ok && vendor_callback_at(i) != NULL; i++) {
        ok = add_key(cli, client, list, vendor_callback_at(i)->name, &answer, &err);
    }
    ok = ok && add_defined(cli, client, list, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    if (ok) {
        print_list(cli, list);
    }
    json_decref(list);
    api_client_free(client);
    return status;
}
