// SPDX-License-Identifier: Apache-2.0
// inbound put: the key with which a vendor signs what it reports.
#include <string.h>

#include "common/session/config_put.h"
#include "services/cli/cli.h"
#include "stentor/v1/config.pb-c.h"

static char *flag_or_empty(Cli *cli, const char *name)
{
    const char *value = args_flag(&cli->args, name);
    return arena_cstr(cli->arena, str_from(value != NULL ? value : ""));
}

int cmd_inbound_put(Cli *cli)
{
    Error err = {0};
    char *vendor = arena_cstr(cli->arena, str_from(args_word(&cli->args, 0)));
    Stentor__V1__InboundKey key;
    stentor__v1__inbound_key__init(&key);
    key.vendor = vendor;
    key.public_key = flag_or_empty(cli, "public-key");
    key.revoked = args_has(&cli->args, "revoke");
    if (strcmp(vendor, "sendgrid") != 0) {
        error_set(&err, ERROR_PERMANENT, "unknown vendor '%s' (known: sendgrid)", vendor);
        return cli_fail(&err);
    }
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", &err)) {
        return cli_fail(&err);
    }
    if (!key.revoked && key.public_key[0] == '\0') {
        error_set(
            &err, ERROR_PERMANENT,
            "--public-key is required: the verification key of the vendor's console");
        return cli_fail(&err);
    }
    key.tenant = arena_cstr(cli->arena, str_from(cli->settings.tenant));
    ConfigEntry entry = {"inbound", str_from(key.tenant), str_from(vendor), &key.base, 0};
    if (!config_put_once(&cli->settings.session, cli->arena, &entry, &err)) {
        return cli_fail(&err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", key.tenant, "vendor", vendor, "state",
                 key.revoked ? "revoked" : "active", NULL});
    return EXIT_DONE;
}
