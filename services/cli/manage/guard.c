// SPDX-License-Identifier: Apache-2.0
// guard list, guard resume: the pauses of a tenant's marketing e-mails, which are suppressions made
// by "guard" in /v1/suppressions (common/codec/suppressed.h; of earlier versions: of every
// address).
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/hash.h"
#include "common/codec/suppressed.h"
#include "common/model/rules/mail_provider.h"
#include "services/cli/api_client.h"

// Which entries are meant; domain NULL: all of them.
typedef struct Choice {
    json_t *list;
    const char *domain, *provider;
} Choice;

static bool has_hash(const json_t *entry, const uint8_t hash[SUPPRESSION_HASH_LEN])
{
    char hex[2 * SUPPRESSION_HASH_LEN + 1];
    hex_encode(hash, SUPPRESSION_HASH_LEN, hex);
    return strcmp(api_client_text(entry, "address_hash", ""), hex) == 0;
}

static bool is_scope(const json_t *entry, const char *domain, const char *provider)
{
    uint8_t hash[SUPPRESSION_HASH_LEN];
    mail_scope_hash(str_from(domain), str_from(provider), hash);
    return has_hash(entry, hash);
}

static bool is_meant(const Choice *choice, const json_t *entry)
{
    if (strcmp(api_client_text(entry, "created_by", ""), "guard") != 0) {
        return false;
    }
    if (choice->domain == NULL) {
        return true;
    }
    if (choice->provider != NULL) {
        return is_scope(entry, choice->domain, choice->provider);
    }
    bool meant = is_scope(entry, choice->domain, "");
    const char *provider;
    for (size_t i = 0; !meant && (provider = mail_provider_name(i)) != NULL; i++) {
        meant = is_scope(entry, choice->domain, provider);
    }
    return meant;
}

static bool take_entry(void *ctx, const json_t *entry)
{
    Choice *choice = ctx;
    if (is_meant(choice, entry)) {
        (void)json_array_append(choice->list, (json_t *)(uintptr_t)entry);
    }
    return true;
}

static int fetch(Cli *cli, const char *state, json_t *list)
{
    Choice choice = {
        .list = list,
        .domain = args_flag(&cli->args, "domain"),
        .provider = args_flag(&cli->args, "provider"),
    };
    if (choice.provider != NULL && choice.domain == NULL) {
        return cli_fail_as(cli, EXIT_USAGE, "--provider needs --domain");
    }
    return api_client_list(
        cli,
        arena_printf(
            cli->arena, "/v1/suppressions?channel=email&reason=rate_limit&state=%s", state),
        take_entry, &choice);
}

static void print_pause(const json_t *entry)
{
    const char *released = api_client_text(entry, "released_at", "");
    printf(
        "%s  %-7s  %.19sZ  %s\n", api_client_text(entry, "id", ""),
        released[0] == '\0' ? "paused" : "resumed", api_client_text(entry, "created_at", ""),
        api_client_text(entry, "note", ""));
}

int cmd_guard_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *entry = NULL;
    size_t i = 0;
    int status = fetch(cli, args_has(&cli->args, "all") ? "all" : "active", list);
    if (status == EXIT_DONE && cli->json) {
        print_json_line(json_incref(list));
    } else if (status == EXIT_DONE) {
        json_array_foreach(list, i, entry)
        {
            print_pause(entry);
        }
        if (json_array_size(list) == 0) {
            cli_note_empty(cli, "pause in force");
        }
    }
    json_decref(list);
    return status;
}

int cmd_guard_resume(Cli *cli)
{
    json_t *list = json_array();
    json_t *entry = NULL;
    size_t i = 0;
    int status = fetch(cli, "active", list);
    if (status == EXIT_DONE && json_array_size(list) == 0) {
        status = cli_fail_as(
            cli, EXIT_NOT_FOUND, "no such pause of the tenant's marketing e-mails is in force");
    }
    json_array_foreach(list, i, entry)
    {
        if (status == EXIT_DONE) {
            status = api_client_run(
                cli, "POST",
                arena_printf(
                    cli->arena, "/v1/suppressions/%s/release", api_client_text(entry, "id", "")),
                NULL, api_client_show);
        }
    }
    json_decref(list);
    return status;
}
