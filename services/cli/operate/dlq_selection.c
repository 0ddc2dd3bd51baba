// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/dlq_selection.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/cli/dlq_stages.h"

bool selection_since(const char *text, int64_t now_us, int64_t *ret_us, Error *err)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    Str whole = str_from(text);
    int64_t count = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (str_ends(whole, str_from(units[i].unit)) &&
            str_to_i64(str_slice(whole, 0, whole.len - 1), &count) && count >= 0 &&
            count <= 36500 * 86400LL / units[i].seconds) {
            *ret_us = now_us - count * units[i].seconds * 1000000;
            return true;
        }
    }
    if (clock_parse(whole, ret_us)) {
        return true;
    }
    return error_set(
        err, ERROR_CONFIG,
        "--since '%s' is neither like '90s', '30m', '2h', '7d' nor a time like "
        "'2026-01-31T12:00:00Z'",
        text);
}

bool selection_read(Cli *cli, Selection *ret, Error *err)
{
    bool everyone = args_has(&cli->args, "all-tenants");
    const char *stage = args_flag(&cli->args, "stage");
    const char *since = args_flag(&cli->args, "since");
    *ret = (Selection){.now_us = clock_now_us(), .stage = str_from(stage)};
    if (!everyone && !cli_need(cli->settings.tenant, "STENTOR_TENANT", err)) {
        return false;
    }
    ret->tenant = everyone ? STR_EMPTY : str_from(cli->settings.tenant);
    if (!everyone && !id_is_tenant(ret->tenant)) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_TENANT '%s' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-'",
            cli->settings.tenant);
    }
    if (stage != NULL && !id_is_key(ret->stage)) {
        return error_set(
            err, ERROR_CONFIG, "--stage '%s' is not a stage's name: like 'dispatcher'", stage);
    }
    return since == NULL || selection_since(since, ret->now_us, &ret->since_us, err);
}

void selection_tell_none(const Selection *selection)
{
    if (selection->stage.len > 0) {
        fflush(stdout);
        fprintf(
            stderr, "stentor: no dead letter of stage '" STR_FMT "' (stages: " DLQ_STAGES ")\n",
            STR_ARG(selection->stage));
    }
}
