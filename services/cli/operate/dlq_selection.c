// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/dlq_selection.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/cli/dlq_stages.h"

bool selection_read(Cli *cli, Selection *ret, Error *err)
{
    bool everyone = args_has(&cli->args, "all-tenants");
    const char *stage = args_flag(&cli->args, "stage");
    *ret = (Selection){.now_us = clock_now_us(), .stage = str_from(stage)};
    if (!everyone && !cli_need(cli->settings.tenant, "STENTOR_TENANT", err)) {
        return false;
    }
    ret->tenant = everyone ? STR_EMPTY : str_from(cli->settings.tenant);
    if (!everyone && !id_is_tenant(ret->tenant)) {
        return error_set(
            err, ERROR_USAGE, "STENTOR_TENANT '%s' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-'",
            cli->settings.tenant);
    }
    if (stage != NULL && !id_is_key(ret->stage)) {
        return error_set(
            err, ERROR_USAGE, "--stage '%s' is not a stage's name: like 'dispatcher'", stage);
    }
    return args_time(&cli->args, "since", TIME_BEFORE_NOW, ret->now_us, &ret->since_us, err);
}

void selection_note_none(const Cli *cli, const Selection *selection)
{
    if (selection->stage.len > 0) {
        cli_note(
            cli, "no dead letter of stage '" STR_FMT "' (stages: " DLQ_STAGES ")",
            STR_ARG(selection->stage));
    }
}
