// SPDX-License-Identifier: Apache-2.0
// init secrets: the folder as Secrets of Kubernetes, each with the files that one Deployment mounts
// and no others.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "services/cli/init/init.h"

// "stringData": the server encodes it. false: *err.
static bool add_file(Cli *cli, json_t *data, const char *name, Error *err)
{
    const char *text = init_text(cli, name, err);
    if (text != NULL) {
        (void)json_object_set_new(data, name, json_string(arena_printf(cli->arena, "%s\n", text)));
    }
    return text != NULL;
}

static bool add_files(Cli *cli, json_t *data, const char *const *names, Error *err)
{
    bool ok = true;
    for (; ok && *names != NULL; names++) {
        ok = add_file(cli, data, *names, err);
    }
    return ok;
}

// New in `list`; returns its data, which the list owns.
static json_t *add_secret(Cli *cli, json_t *list, const char *name)
{
    const char *space = args_flag(&cli->args, "namespace");
    json_t *data = json_object();
    json_t *meta = json_pack(
        "{s:s, s:{s:s}}", "name", arena_printf(cli->arena, "stentor-%s", name), "labels",
        "app.kubernetes.io/part-of", "stentor");
    if (space != NULL) {
        (void)json_object_set_new(meta, "namespace", json_string(space));
    }
    (void)json_array_append_new(
        list, json_pack(
                  "{s:s, s:s, s:o, s:s, s:o}", "apiVersion", "v1", "kind", "Secret", "metadata",
                  meta, "type", "Opaque", "stringData", data));
    return data;
}

static bool add_service(Cli *cli, json_t *list, const InitService *service, Error *err)
{
    json_t *data = add_secret(cli, list, service->name);
    const char *name = service->name;
    return add_file(cli, data, arena_printf(cli->arena, "%s.conf", name), err) &&
           add_file(cli, data, arena_printf(cli->arena, "%s.password", name), err) &&
           (!service->wants_database ||
            add_file(cli, data, arena_printf(cli->arena, "%s.database-url", name), err)) &&
           (!service->wants_master_key || add_file(cli, data, "master.key", err));
}

// What `init servers` reads: with it a Job makes all that the others need.
static bool add_init(Cli *cli, json_t *list, Error *err)
{
    static const char *const own[] = {
        "admin.conf",         "admin.password", "owner.password",
        "owner.database-url", "cli.password",   "superuser.database-url",
        "master.key",         "operator.key",   NULL};
    json_t *data = add_secret(cli, list, "init");
    size_t count = 0;
    const InitService *services = init_services(&count);
    Str accounts = STR_EMPTY;
    bool there = false;
    bool ok = add_files(cli, data, own, err) &&
              init_read(cli, "accounts", &accounts, &there, err) &&
              (!there || add_file(cli, data, "accounts", err));
    for (size_t i = 0; ok && i < count; i++) {
        ok = add_file(cli, data, arena_printf(cli->arena, "%s.password", services[i].name), err);
    }
    return ok;
}

static bool add_postgres(Cli *cli, json_t *list, Error *err)
{
    json_t *data = add_secret(cli, list, "postgres");
    const char *password = init_text(cli, "postgres.password", err);
    if (password != NULL) {
        (void)json_object_set_new(data, "username", json_string("postgres"));
        (void)json_object_set_new(data, "password", json_string(password));
    }
    return password != NULL && add_file(cli, data, "postgres.password", err);
}

static bool add_all(Cli *cli, json_t *list, Error *err)
{
    static const char *const nats[] = {"nats.conf", "nats-accounts.conf", NULL};
    static const char *const person[] = {
        "cli.conf", "cli.password", "cli.database-url", "operator.key", "master.key", "erasure.key",
        NULL};
    size_t count = 0;
    const InitService *services = init_services(&count);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = add_service(cli, list, &services[i], err);
    }
    return ok && add_files(cli, add_secret(cli, list, "nats"), nats, err) &&
           add_files(cli, add_secret(cli, list, "operator"), person, err) &&
           add_postgres(cli, list, err) && add_init(cli, list, err);
}

int cmd_init_secrets(Cli *cli)
{
    Error err = {0};
    json_t *list = json_array();
    bool ok = add_all(cli, list, &err);
    json_t *root = json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", list);
    if (ok) {
        char *text = json_dumps(root, JSON_INDENT(2));
        printf("%s\n", text);
        free(text);
    }
    json_decref(root);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
