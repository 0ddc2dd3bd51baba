// SPDX-License-Identifier: Apache-2.0
// hold set, hold list, hold release: what must not be deleted while it lasts.
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/erasure/erasure_hold.h"
#include "services/cli/erase/erase.h"

// ---- set ----

static bool names_person(const Cli *cli)
{
    return args_has(&cli->args, "recipient") || args_has(&cli->args, "identity") ||
           args_has(&cli->args, "address");
}

// The first subject is the person's own, or the address's: every erasure of that person has it.
static bool hold_person(Cli *cli, EraseLinks *links, ErasureHold *hold, Error *err)
{
    ErasureSearch search;
    ErasurePerson person;
    bool found = false;
    HashKeys keys = master_hash_keys(links->master);
    if (!erase_search(cli, &search, err) ||
        !erasure_find(links->pg, &keys, &search, cli->arena, &person, &found, err)) {
        return false;
    }
    if (!found) {
        return error_set(err, ERROR_PERMANENT, "no recipient has this identity");
    }
    char *hex = arena_alloc(cli->arena, 2 * KEY_SUBJECT_LEN + 1);
    hex_encode(person.subjects[0].ptr, KEY_SUBJECT_LEN, hex);
    hold->tenant = person.tenant;
    hold->subject = hex;
    return true;
}

static bool describe(Cli *cli, EraseLinks *links, ErasureHold *hold, Error *err)
{
    const char *unit = args_flag(&cli->args, "unit");
    const char *tenant = args_flag(&cli->args, "tenant");
    *hold = (ErasureHold){
        .tenant = tenant != NULL ? tenant : "",
        .subject = "",
        .unit = unit != NULL ? unit : "",
        .ground = erase_ground(cli, err),
        .by = erase_actor(cli, "by", err)};
    if (hold->ground == NULL || hold->by == NULL ||
        !cli_time_from_now(cli, "until", &hold->until, err)) {
        return false;
    }
    if (names_person(cli)) {
        return (unit == NULL ||
                error_set(err, ERROR_USAGE, "a hold is of a person or of a unit, not of both")) &&
               hold_person(cli, links, hold, err);
    }
    if (tenant != NULL && !id_is_tenant(str_from(tenant))) {
        return error_set(err, ERROR_USAGE, "--tenant '%.40s' is not a tenant", tenant);
    }
    return unit != NULL || tenant != NULL ||
           error_set(
               err, ERROR_USAGE,
               "name what is held: --tenant TENANT, a person of it (--recipient, --identity, "
               "--address), or --unit UNIT");
}

int cmd_hold_set(Cli *cli)
{
    Error err = {0};
    EraseLinks links;
    ErasureHold hold;
    int64_t id = 0;
    bool ok =
        erase_open(cli, &links, &err) && describe(cli, &links, &hold, &err) &&
        erasure_hold_set(links.pg, &links.session, &hold, clock_now_us(), cli->arena, &id, &err);
    erase_close(&links);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    const char *const pairs[] = {
        "hold",  arena_printf(cli->arena, "%" PRId64, id),           "ground", hold.ground,
        "until", hold.until != NULL ? hold.until : "it is released", NULL};
    print_pairs(cli, pairs);
    return EXIT_DONE;
}

// ---- list ----

static const char *what_of(const Cli *cli, const ErasureHold *hold)
{
    const char *tenant = hold->tenant[0] != '\0' ? hold->tenant : "every tenant";
    return hold->subject[0] != '\0' ? arena_printf(cli->arena, "%s/%s", tenant, hold->subject)
           : hold->unit[0] != '\0'  ? arena_printf(cli->arena, "%s, %s", hold->unit, tenant)
                                    : tenant;
}

static void print_hold(const Cli *cli, const ErasureHold *hold, json_t *list)
{
    if (cli->json) {
        json_array_append_new(
            list, json_pack(
                      "{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "id", (json_int_t)hold->id,
                      "tenant", hold->tenant, "subject", hold->subject, "unit", hold->unit,
                      "ground", hold->ground, "by", hold->by, "since", hold->since, "until",
                      hold->until, "released", hold->released));
        return;
    }
    printf(
        "%4" PRId64 "  %-40s  %s  %-20s  %s, %s%s%s\n", hold->id, what_of(cli, hold), hold->since,
        hold->until[0] != '\0' ? hold->until : "until released", hold->ground, hold->by,
        hold->released[0] != '\0' ? ", released " : "", hold->released);
}

int cmd_hold_list(Cli *cli)
{
    Error err = {0};
    const ErasureHold *holds = NULL;
    size_t count = 0;
    PGconn *pg = cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err)
                     ? erasure_pg_open(cli->settings.database_url, &err)
                     : NULL;
    bool ok = pg != NULL &&
              erasure_hold_list(pg, args_has(&cli->args, "all"), cli->arena, &holds, &count, &err);
    PQfinish(pg);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        print_hold(cli, &holds[i], list);
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    } else if (count == 0) {
        cli_note_empty(cli, "holds");
    }
    json_decref(list);
    return EXIT_DONE;
}

// ---- release ----

int cmd_hold_release(Cli *cli)
{
    Error err = {0};
    EraseLinks links = {0};
    int64_t id = 0;
    bool found = false;
    const char *by = erase_actor(cli, "by", &err);
    bool ok = by != NULL && (str_to_i64(str_from(args_word(&cli->args, 0)), &id) ||
                             error_set(&err, ERROR_USAGE, "a hold is named by its number"));
    ok = ok && erase_open(cli, &links, &err) &&
         erasure_hold_release(
             links.pg, &links.session, id, by, clock_now_us(), cli->arena, &found, &err);
    erase_close(&links);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    if (!found) {
        return cli_fail_as(cli, EXIT_NOT_FOUND, "there is no hold %" PRId64 " in force", id);
    }
    const char *const pairs[] = {
        "hold", args_word(&cli->args, 0), "released", "stentor erase run goes on with what it kept",
        NULL};
    print_pairs(cli, pairs);
    return EXIT_DONE;
}
