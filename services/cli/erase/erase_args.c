// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/base/id.h"
#include "common/model/channel_address.h"
#include "common/model/retention/retention.h"
#include "common/session/key_file.h"
#include "services/cli/erase/erase.h"

bool erase_open(Cli *cli, EraseLinks *ret, Error *err)
{
    *ret = (EraseLinks){0};
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err) ||
        !cli_need(cli->settings.master_key_file, "STENTOR_MASTER_KEY_FILE", err)) {
        return false;
    }
    ret->session_open = session_open(&ret->session, &cli->settings.session, err);
    if (!ret->session_open) {
        return false;
    }
    ret->master = keys_open(
        &ret->session, cli->settings.master_key_file, cli->settings.epoch_keys_dir, cli->arena,
        &ret->epochs, err);
    ret->pg = ret->master != NULL ? erasure_pg_open(cli->settings.database_url, err) : NULL;
    return ret->pg != NULL;
}

void erase_close(EraseLinks *links)
{
    if (links->pg != NULL) {
        PQfinish(links->pg);
    }
    epoch_folder_close(links->epochs);
    master_key_free(links->master);
    if (links->session_open) {
        session_close(&links->session);
    }
}

bool erase_duty(Cli *cli, ErasureDuty *ret, Error *err)
{
    const char *text = cli->settings.legal_duty;
    RetentionPlan plan;
    *ret = (ErasureDuty){0};
    if (text[0] == '\0') {
        return true;
    }
    if (strlen(text) > 200 || strchr(text, '@') != NULL) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_LEGAL_DUTY: at most 200 bytes, and no address: it is kept in the audit log");
    }
    if (!retention_plan_parse(str_from(cli->settings.retention_spans), &plan, err)) {
        return error_wrap(err, "STENTOR_RETENTION_SPANS");
    }
    char span[RETENTION_SPAN_SIZE];
    retention_span_text(plan.of[RETENTION_RECORD].kept, span);
    *ret = (ErasureDuty){
        text, arena_cstr(cli->arena, str_from(span)),
        retention_period_name(plan.of[RETENTION_RECORD].period)};
    return true;
}

const char *erase_tenant(const Cli *cli, Error *err)
{
    const char *flag = args_flag(&cli->args, "tenant");
    const char *tenant = flag != NULL ? flag : cli->settings.tenant;
    if (!id_is_tenant(str_from(tenant))) {
        (void)error_set(
            err, ERROR_USAGE,
            tenant[0] == '\0' ? "no tenant is named: --tenant TENANT or STENTOR_TENANT"
                              : "'%.40s' is not a tenant: [a-z0-9_-], at most 32",
            tenant);
        return NULL;
    }
    return tenant;
}

static bool search_address(Cli *cli, const char *text, ErasureSearch *ret, Error *err)
{
    const char *name = args_flag(&cli->args, "channel");
    char reason[ADDRESS_REASON_SIZE];
    ret->channel = CHANNEL_EMAIL;
    if (name != NULL && !channel_from_name(str_from(name), &ret->channel)) {
        return error_set(
            err, ERROR_USAGE, "--channel '%.20s' is not a channel: " CHANNEL_NAMES, name);
    }
    return people_address_check(ret->channel, str_from(text), cli->arena, &ret->address, reason) ||
           error_set(err, ERROR_USAGE, "--address: %s", reason);
}

static bool search_identity(const char *text, ErasureSearch *ret, Error *err)
{
    Identity identity;
    Str rest = str_from(text);
    if (!str_split(&rest, ':', &ret->identity_type) || rest.len == 0 ||
        !identity_from_name(ret->identity_type, &identity)) {
        return error_set(
            err, ERROR_USAGE,
            "--identity is TYPE:ID with the type guest, user, vendor or anonymous");
    }
    ret->identity_id = rest;
    return true;
}

bool erase_search(Cli *cli, ErasureSearch *ret, Error *err)
{
    const Args *args = &cli->args;
    const char *recipient = args_flag(args, "recipient");
    const char *identity = args_flag(args, "identity");
    const char *address = args_flag(args, "address");
    *ret = (ErasureSearch){.tenant = erase_tenant(cli, err), .recipient_id = str_from(recipient)};
    if (ret->tenant == NULL) {
        return false;
    }
    if ((recipient != NULL) + (identity != NULL) + (address != NULL) != 1) {
        return error_set(
            err, ERROR_USAGE, "give one of --recipient ID, --identity TYPE:ID, --address ADDRESS");
    }
    if (recipient != NULL && !id_parse(ret->recipient_id, "rcp_", NULL)) {
        return error_set(err, ERROR_USAGE, "'%.40s' is not the id of a recipient", recipient);
    }
    return (address == NULL || search_address(cli, address, ret, err)) &&
           (identity == NULL || search_identity(identity, ret, err));
}

const char *erase_actor(const Cli *cli, const char *flag, Error *err)
{
    const char *actor = args_flag(&cli->args, flag);
    if (actor == NULL) {
        return "operator";
    }
    if (actor[0] == '\0' || strlen(actor) > 200 || strchr(actor, '@') != NULL) {
        (void)error_set(
            err, ERROR_USAGE,
            "--%s: a name or id of 1 to 200 bytes, and no address: it is kept in the audit log",
            flag);
        return NULL;
    }
    return actor;
}

const char *erase_ground(const Cli *cli, Error *err)
{
    const char *ground = args_flag(&cli->args, "ground");
    if (ground[0] == '\0' || strlen(ground) > 500 || strchr(ground, '@') != NULL) {
        (void)error_set(
            err, ERROR_USAGE,
            "--ground: a text of 1 to 500 bytes, and no address: it is kept in the audit log");
        return NULL;
    }
    return ground;
}
