// SPDX-License-Identifier: Apache-2.0
// erase, erase run, erase list: a person's data is made unreadable by the destruction of their data
// keys.
#include "services/cli/erase/erase.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/erasure/erasure_events.h"

static const char *time_text(Arena *arena, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE] = "";
    if (at_us != 0) {
        clock_format(at_us, text);
    }
    return arena_cstr(arena, str_from(text));
}

static const char *what_next(const Cli *cli, const ErasureRequest *request)
{
    if (strcmp(request->state, "restricted") == 0) {
        return arena_printf(
            cli->arena, "kept by hold %s; sends and reads are stopped", request->hold);
    }
    return "none";
}

static const char *what_is_kept(const Cli *cli, const ErasureRequest *request)
{
    if (request->kept == 0) {
        return "none";
    }
    return arena_printf(
        cli->arena, "%lld record keys until %s: %s", (long long)request->kept,
        time_text(cli->arena, request->kept_until_us), request->duty);
}

static void print_request(const Cli *cli, const ErasureRequest *request)
{
    const char *const pairs[] = {
        "id",        request->id,
        "tenant",    request->tenant,
        "recipient", request->recipient_id,
        "subject",   request->subject,
        "state",     request->state,
        "requested", time_text(cli->arena, request->requested_us),
        "erased",    time_text(cli->arena, request->erased_us),
        "keys",      arena_printf(cli->arena, "%lld", (long long)request->keys),
        "kept",      what_is_kept(cli, request),
        "cleared",   request->cleared,
        "hold",      what_next(cli, request),
        NULL};
    print_pairs(cli, pairs);
}

// ---- erase ----

// *ret_id NULL: nothing is known of the person.
static bool ask(
    Cli *cli, EraseLinks *links, const ErasureSearch *search, const char **ret_id, Error *err)
{
    ErasurePerson person;
    char id[ID_SIZE];
    bool found = false;
    HashKeys keys = master_hash_keys(links->master);
    ErasureAsk request = {
        .person = &person,
        .id = id,
        .ground = erase_ground(cli, err),
        .requested_by = erase_actor(cli, "requested-by", err),
        .final = args_has(&cli->args, "final")};
    id_new("era_", clock_now_us(), id);
    *ret_id = NULL;
    return request.ground != NULL && request.requested_by != NULL &&
           erasure_find(links->pg, &keys, search, cli->arena, &person, &found, err) &&
           (!found || erasure_ask(links->pg, &request, cli->arena, ret_id, err));
}

int cmd_erase(Cli *cli)
{
    Error err = {0};
    EraseLinks links = {0};
    ErasureSearch search;
    ErasureRequest request;
    ErasureDuty duty;
    const char *id = NULL;
    bool ok = erase_search(cli, &search, &err) && erase_duty(cli, &duty, &err) &&
              erase_open(cli, &links, &err) && ask(cli, &links, &search, &id, &err) &&
              (id == NULL ||
               erasure_run(
                   links.pg, &links.session, links.master, id, &duty, cli->arena, &request, &err));
    erase_close(&links);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    if (id == NULL) {
        return cli_fail_as(
            cli, EXIT_NOT_FOUND, "nothing is known of this person: no record, no key");
    }
    print_request(cli, &request);
    return EXIT_DONE;
}

// ---- run ----

static void on_failed_event(void *ctx, const char *text)
{
    cli_note(ctx, "%s", text);
}

// *ret_failed: what was named and is tried again by the next run.
static bool take_events(Cli *cli, EraseLinks *links, uint64_t *ret_failed, Error *err)
{
    ErasureEvents events = {.on_failure = on_failed_event, .ctx = cli};
    if (!erasure_take_events(links->pg, &links->session, links->master, cli->arena, &events, err)) {
        return error_wrap(err, "EVENTS");
    }
    if (events.read > 0) {
        cli_note(
            cli,
            "%llu events: %llu of people who are known, %llu of unknown ones, %llu unreadable, "
            "%llu failed",
            (unsigned long long)events.read, (unsigned long long)events.asked,
            (unsigned long long)events.unknown, (unsigned long long)events.refused,
            (unsigned long long)events.failed);
    }
    *ret_failed = events.failed;
    return true;
}

static bool run_open(
    Cli *cli, EraseLinks *links, const ErasureDuty *duty, uint64_t *failed, Error *err)
{
    const char *const *ids = NULL;
    size_t count = 0;
    if (!erasure_open(links->pg, cli->arena, &ids, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ErasureRequest request;
        Error one = {0};
        if (erasure_run(
                links->pg, &links->session, links->master, ids[i], duty, cli->arena, &request,
                &one)) {
            print_request(cli, &request);
        } else {
            cli_note(cli, "erasure '%s' is tried again by the next run: %s", ids[i], one.text);
            ++*failed;
        }
    }
    if (count == 0) {
        cli_note_empty(cli, "open erasures");
    }
    return true;
}

// No failure holds up what is behind it: open erasures are run whatever became of the events.
int cmd_erase_run(Cli *cli)
{
    Error err = {0}, of_events = {0};
    EraseLinks links = {0};
    ErasureDuty duty;
    uint64_t failed = 0;
    bool ok = erase_duty(cli, &duty, &err) && erase_open(cli, &links, &err);
    bool taken = ok && take_events(cli, &links, &failed, &of_events);
    ok = ok && run_open(cli, &links, &duty, &failed, &err);
    erase_close(&links);
    if (!ok || !taken) {
        return cli_fail(cli, ok ? &of_events : &err);
    }
    return failed == 0 ? EXIT_DONE
                       : cli_fail_as(
                             cli, EXIT_FAILED,
                             "%llu events or erasures failed, named above; the others are done",
                             (unsigned long long)failed);
}

// ---- list ----

static void list_one(const Cli *cli, const ErasureRequest *request, json_t *list)
{
    if (cli->json) {
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b}", "id", request->id,
                      "tenant", request->tenant, "recipient", request->recipient_id, "state",
                      request->state, "requested", time_text(cli->arena, request->requested_us),
                      "erased", time_text(cli->arena, request->erased_us), "by",
                      request->requested_by, "ground", request->ground, "keys",
                      (json_int_t)request->keys, "announced", request->announced));
        return;
    }
    printf(
        "%s  %-10s  %s  %-12s  %-30s  %s, %s\n", request->id, request->state,
        time_text(cli->arena, request->requested_us), request->tenant,
        request->recipient_id[0] != '\0' ? request->recipient_id : request->subject,
        request->ground, request->requested_by);
}

static bool list_all(Cli *cli, PGconn *pg, json_t *list, Error *err)
{
    const char *tenant = args_flag(&cli->args, "tenant");
    const char *const *ids = NULL;
    size_t count = 0;
    int64_t limit = 0;
    ErasureRequest request;
    bool ok = args_int(&cli->args, "limit", 100, 1, 100000, &limit, err) &&
              erasure_list(pg, tenant != NULL ? tenant : "", limit, cli->arena, &ids, &count, err);
    for (size_t i = 0; ok && i < count; i++) {
        ok = erasure_read(pg, ids[i], cli->arena, &request, err);
        if (ok) {
            list_one(cli, &request, list);
        }
    }
    if (ok && count == 0 && !cli->json) {
        cli_note_empty(cli, "erasures");
    }
    return ok;
}

int cmd_erase_list(Cli *cli)
{
    Error err = {0};
    json_t *list = json_array();
    PGconn *pg = cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err)
                     ? erasure_pg_open(cli->settings.database_url, &err)
                     : NULL;
    bool ok = pg != NULL && list_all(cli, pg, list, &err);
    PQfinish(pg);
    if (ok && cli->json) {
        print_json_line(json_incref(list));
    }
    json_decref(list);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
