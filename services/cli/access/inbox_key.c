// SPDX-License-Identifier: Apache-2.0
// inbox-key create, list, rotate, revoke: /v1/inbox/keys, with which a tenant's own server signs
// tokens for the inboxes of its users (services/gateway/INBOX_TOKENS.md).
#include <jansson.h>

#include "common/base/id.h"
#include "common/base/str.h"
#include "common/config/inbox_keys.h"
#include "services/cli/api_client.h"

#define KEYS_PATH "/v1/inbox/keys"

// The word that is a key's id; NULL: it is none.
static const char *id_of(const Cli *cli, Error *err)
{
    const char *id = args_word(&cli->args, 0);
    if (!id_parse(str_from(id), INBOX_KEY_PREFIX, NULL)) {
        (void)error_set(
            err, ERROR_USAGE,
            "'" STR_FMT "' is not the id of a signing key (HINT: stentor inbox-key list)",
            STR_ARG(str_slice(str_from(id), 0, 64)));
        return NULL;
    }
    return id;
}

static void note_secret(const Cli *cli)
{
    if (!cli->json) {
        cli_note(cli, "the secret is shown this once and cannot be read again: store it now");
    }
}

static int show_made(Cli *cli, const json_t *key)
{
    print_pairs(
        cli, (const char *const[]){
                 "id", api_client_text(key, "id", ""), "secret", api_client_text(key, "secret", ""),
                 "created_at", api_client_text(key, "created_at", ""), NULL});
    note_secret(cli);
    return EXIT_DONE;
}

int cmd_inbox_key_create(Cli *cli)
{
    return api_client_run(cli, "POST", KEYS_PATH, NULL, show_made);
}

static void print_rows(const Cli *cli, const json_t *list)
{
    if (json_array_size(list) == 0) {
        cli_note_empty(cli, "key that signs inbox tokens");
        return;
    }
    printf("%-30s  %-20s %s\n", "KEY", "CREATED", "BY");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *key = json_array_get(list, i);
        printf(
            "%-30s  %-20.19s %s\n", api_client_text(key, "id", ""),
            api_client_text(key, "created_at", ""), api_client_text(key, "created_by", ""));
    }
}

int cmd_inbox_key_list(Cli *cli)
{
    json_t *list = json_array();
    int status = api_client_list(cli, KEYS_PATH, api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE) {
        print_rows(cli, list);
    }
    json_decref(list);
    return status;
}

static int show_revoked(Cli *cli, const json_t *answer)
{
    (void)answer;
    print_pairs(
        cli, (const char *const[]){"id", args_word(&cli->args, 0), "state", "revoked", NULL});
    return EXIT_DONE;
}

static int hint_missing(const Cli *cli, int status)
{
    if (status == EXIT_NOT_FOUND) {
        cli_note(cli, "stentor inbox-key list shows the ids");
    }
    return status;
}

int cmd_inbox_key_revoke(Cli *cli)
{
    Error err = {0};
    const char *id = id_of(cli, &err);
    if (id == NULL) {
        return cli_fail(cli, &err);
    }
    const char *path = arena_printf(cli->arena, KEYS_PATH "/%s", id);
    return hint_missing(cli, api_client_run(cli, "DELETE", path, NULL, show_revoked));
}

// ---- rotate: a new key first, so that tokens are signed at every moment ----

// Before a new key is made: the old one has to be there.
static bool is_there(Cli *cli, const char *id, int *ret_status)
{
    json_t *list = json_array();
    bool found = false;
    *ret_status = api_client_list(cli, KEYS_PATH, api_client_take, list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        found = found ||
                str_eq(str_from(api_client_text(json_array_get(list, i), "id", "")), str_from(id));
    }
    json_decref(list);
    if (*ret_status == EXIT_DONE && !found) {
        *ret_status = cli_fail_as(cli, EXIT_NOT_FOUND, "there is no signing key '%s'", id);
    }
    return *ret_status == EXIT_DONE;
}

static void print_rotated(Cli *cli, const json_t *key, const char *old, bool revoked)
{
    print_pairs(
        cli, (const char *const[]){
                 "id", api_client_text(key, "id", ""), "secret", api_client_text(key, "secret", ""),
                 "created_at", api_client_text(key, "created_at", ""), "rotated_from", old,
                 "old_state", revoked ? "revoked" : "must be revoked", NULL});
    note_secret(cli);
}

// The secret is printed whatever became of the old key.
static int end_old(Cli *cli, ApiClient *client, const json_t *key, const char *old)
{
    ApiAnswer answer = {0};
    Error err = {0};
    const char *path = arena_printf(cli->arena, KEYS_PATH "/%s", old);
    bool revoked = api_client_ask(client, "DELETE", path, NULL, &answer, &err);
    print_rotated(cli, key, old, revoked);
    return revoked ? EXIT_DONE : api_client_fail(cli, &answer, &err);
}

static int make_and_end(Cli *cli, ApiClient *client, const char *old)
{
    ApiAnswer answer = {0};
    Error err = {0};
    if (!api_client_ask(client, "POST", KEYS_PATH, NULL, &answer, &err)) {
        return api_client_fail(cli, &answer, &err);
    }
    json_t *key = json_incref(answer.json);
    int status = EXIT_DONE;
    if (args_has(&cli->args, "now")) {
        status = end_old(cli, client, key, old);
    } else {
        print_rotated(cli, key, old, false);
        cli_note(cli, "when your server signs with the new key: stentor inbox-key revoke %s", old);
    }
    json_decref(key);
    return status;
}

int cmd_inbox_key_rotate(Cli *cli)
{
    Error err = {0};
    int status = EXIT_DONE;
    const char *old = id_of(cli, &err);
    if (old == NULL) {
        return cli_fail(cli, &err);
    }
    if (!is_there(cli, old, &status)) {
        return hint_missing(cli, status);
    }
    ApiClient *client = api_client_new(cli, &err);
    status = client == NULL ? cli_fail(cli, &err) : make_and_end(cli, client, old);
    api_client_free(client);
    return status;
}
