// SPDX-License-Identifier: Apache-2.0
// opt-out revoke: /v1/link-revocations.
#include <jansson.h>

#include "common/base/clock.h"
#include "services/cli/api_client.h"

// One of the three, or none with --before.
static bool check(const Cli *cli, Error *err)
{
    int named = args_has(&cli->args, "notification") + args_has(&cli->args, "recipient") +
                args_has(&cli->args, "address");
    if (named > 1 || (named == 0 && !args_has(&cli->args, "before"))) {
        return error_set(
            err, ERROR_USAGE,
            "expected one of --notification ID, --recipient ID and --address ADDRESS, or --before "
            "TIME alone for all of the tenant");
    }
    return true;
}

int cmd_opt_out_revoke(Cli *cli)
{
    Error err = {0};
    char before[CLOCK_RFC3339_SIZE] = "";
    int64_t before_us = 0;
    if (!check(cli, &err) ||
        !args_time(&cli->args, "before", TIME_BEFORE_NOW, clock_now_us(), &before_us, &err)) {
        return cli_fail(cli, &err);
    }
    if (before_us != 0) {
        clock_format(before_us, before);
    }
    bool all = !args_has(&cli->args, "notification") && !args_has(&cli->args, "recipient") &&
               !args_has(&cli->args, "address");
    json_t *body = json_pack(
        "{s:s*, s:s*, s:s*, s:s*, s:s*, s:b}", "notification_id",
        args_flag(&cli->args, "notification"), "recipient_id", args_flag(&cli->args, "recipient"),
        "address", args_flag(&cli->args, "address"), "note", args_flag(&cli->args, "note"),
        "before", before_us != 0 ? before : NULL, "all", all);
    if (body == NULL) {
        (void)error_set(&err, ERROR_USAGE, "an option is not UTF-8");
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "POST", "/v1/link-revocations", body, api_client_show);
}
