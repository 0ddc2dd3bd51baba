// SPDX-License-Identifier: Apache-2.0
// mail-domain put, list, show, delete: /v1/mail-domains.
#include <jansson.h>

#include "common/mime/dkim.h"
#include "services/cli/api_client.h"

static const char *path_of(Cli *cli)
{
    const char *domain = api_client_escape(cli, args_word(&cli->args, 0));
    return arena_printf(cli->arena, "/v1/mail-domains/%s", domain);
}

// ---- put, show, delete ----

// "s1:rsa:file:/run/secrets/s1.pem"
static json_t *read_key(const char *text, Error *err)
{
    Str rest = str_from(text);
    Str selector;
    Str kind;
    bool split = str_split(&rest, ':', &selector) && str_split(&rest, ':', &kind);
    const char *algorithm = NULL;
    if (split && str_eq(kind, STR("rsa"))) {
        algorithm = dkim_algorithm_name(DKIM_RSA_SHA256);
    } else if (split && str_eq(kind, STR("ed25519"))) {
        algorithm = dkim_algorithm_name(DKIM_ED25519_SHA256);
    }
    json_t *key = algorithm == NULL ? NULL
                                    : json_pack(
                                          "{s:s%,s:s,s:s%}", "selector", selector.ptr, selector.len,
                                          "algorithm", algorithm, "reference", rest.ptr, rest.len);
    if (key == NULL) {
        (void)error_set(
            err, ERROR_USAGE,
            "--dkim is '%.80s': expected SELECTOR:rsa:REFERENCE or SELECTOR:ed25519:REFERENCE, "
            "such as s1:rsa:file:/run/secrets/s1.pem",
            text);
    }
    return key;
}

static json_t *read_keys(Cli *cli, Error *err)
{
    json_t *list = json_array();
    const char *text = NULL;
    for (int i = 0; (text = args_each(&cli->args, "dkim", &i)) != NULL;) {
        json_t *key = read_key(text, err);
        if (key == NULL) {
            json_decref(list);
            return NULL;
        }
        (void)json_array_append_new(list, key);
    }
    return list;
}

static bool set_text(Cli *cli, json_t *body, const char *flag, const char *field, Error *err)
{
    const char *value = args_flag(&cli->args, flag);
    return value == NULL || json_object_set_new(body, field, json_string(value)) == 0 ||
           error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
}

int cmd_mail_domain_put(Cli *cli)
{
    Error err = {0};
    json_t *keys = read_keys(cli, &err);
    if (keys == NULL) {
        return cli_fail(cli, &err);
    }
    json_t *body = json_pack(
        "{s:o,s:b,s:b}", "dkim", keys, "track_opens", args_has(&cli->args, "track-opens"),
        "track_clicks", args_has(&cli->args, "track-clicks"));
    if (!set_text(cli, body, "bounce-domain", "bounce_domain", &err) ||
        !set_text(cli, body, "tracking-url", "tracking_url", &err)) {
        json_decref(body);
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "PUT", path_of(cli), body, api_client_show);
}

int cmd_mail_domain_show(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli), NULL, api_client_show);
}

static int show_deleted(Cli *cli, const json_t *answer)
{
    (void)answer;
    print_pairs(
        cli, (const char *const[]){
                 "domain", args_word(&cli->args, 0), "state",
                 "deleted: mails from it are not signed here any more", NULL});
    return EXIT_DONE;
}

int cmd_mail_domain_delete(Cli *cli)
{
    return api_client_run(cli, "DELETE", path_of(cli), NULL, show_deleted);
}

// ---- list ----

static void print_row(const json_t *domain)
{
    size_t i = 0;
    json_t *key = NULL;
    const char *bounces = api_client_text(domain, "bounce_domain", "");
    printf(
        "%-28s %-28s ", api_client_text(domain, "domain", ""), bounces[0] != '\0' ? bounces : "-");
    json_array_foreach(json_object_get(domain, "dkim"), i, key)
    {
        printf(
            "%s%s (%s)", i > 0 ? ", " : "", api_client_text(key, "selector", ""),
            api_client_text(key, "algorithm", ""));
    }
    printf("\n");
}

int cmd_mail_domain_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *domain = NULL;
    size_t i = 0;
    int status = api_client_list(cli, "/v1/mail-domains", api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE && json_array_size(list) == 0) {
        cli_note_empty(cli, "mail domain (HINT: stentor mail-domain put example.com --dkim ...)");
    } else if (status == EXIT_DONE) {
        printf("%-28s %-28s %s\n", "DOMAIN", "BOUNCES TO", "DKIM KEYS");
    }
    json_array_foreach(list, i, domain)
    {
        if (status == EXIT_DONE && !cli->json) {
            print_row(domain);
        }
    }
    json_decref(list);
    return status;
}
