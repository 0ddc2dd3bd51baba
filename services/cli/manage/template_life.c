// SPDX-License-Identifier: Apache-2.0
// template list, show, history, activate, archive: what is published, and a version's way from
// draft to active to archived.
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/model/enums.h"
#include "common/render/version_json.h"
#include "services/cli/manage/template_store.h"

static void print_json(json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2));
    printf("%s\n", text != NULL ? text : "null");
    free(text);
    json_decref(json);
}

static json_t *brief_json(const StoredVersion *stored)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(stored->published_at_us, at);
    return json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:s,s:s,s:s,s:s,s:s}", "tenant", stored->tenant, "key",
        stored->key, "version", stored->version, "status", version_status_name(stored->status),
        "channel", channel_name((Channel)stored->channel), "category",
        category_name((Category)stored->category), "locales", (json_int_t)stored->locale_count,
        "published_at", at, "published_by", stored->published_by, "approved_by",
        stored->approved_by, "source", stored->source, "provenance", stored->provenance);
}

static void print_line(const StoredVersion *stored)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(stored->published_at_us, at);
    printf(
        "%-24s %-10s %-9s %-9s %-14s %3zu  %.19sZ  %s%s%s\n", stored->key, stored->version,
        version_status_name(stored->status), channel_name((Channel)stored->channel),
        category_name((Category)stored->category), stored->locale_count, at, stored->published_by,
        stored->approved_by[0] != '\0' ? ", approved by " : "", stored->approved_by);
}

static void print_all(const Cli *cli, const TemplateStore *store, bool latest_only)
{
    json_t *array = json_array();
    if (!cli->json) {
        printf(
            "%-24s %-10s %-9s %-9s %-14s %s  %s\n", "KEY", "VERSION", "STATUS", "CHANNEL",
            "CATEGORY", "LOC", "PUBLISHED");
    }
    for (size_t i = 0; i < store->count;) {
        size_t end = i + 1;
        while (end < store->count && strcmp(store->items[end].key, store->items[i].key) == 0) {
            end++;
        }
        TemplateStore group = {&store->items[i], end - i};
        const StoredVersion *best = template_store_best(&group);
        for (size_t j = i; j < end; j++) {
            if (latest_only && &store->items[j] != best) {
                continue;
            }
            if (cli->json) {
                (void)json_array_append_new(array, brief_json(&store->items[j]));
            } else {
                print_line(&store->items[j]);
            }
        }
        i = end;
    }
    if (cli->json) {
        print_json(json_incref(array));
    }
    json_decref(array);
}

int cmd_template_list(Cli *cli)
{
    Error err = {0};
    Session session;
    TemplateStore store;
    if (!template_store_open(&session, cli, NULL, false, &store, &err)) {
        return cli_fail(&err);
    }
    session_close(&session);
    print_all(cli, &store, true);
    return EXIT_DONE;
}

int cmd_template_history(Cli *cli)
{
    Error err = {0};
    Session session;
    TemplateStore store;
    const char *key = args_word(&cli->args, 0);
    if (!template_store_open(&session, cli, key, false, &store, &err)) {
        return cli_fail(&err);
    }
    session_close(&session);
    if (store.count == 0) {
        return template_not_found(key, NULL);
    }
    print_all(cli, &store, false);
    return EXIT_DONE;
}

static void print_words(const Stentor__V1__TemplateVersion *version)
{
    for (size_t i = 0; i < version->n_locales; i++) {
        const Stentor__V1__LocaleVariant *locale = version->locales[i];
        const char *const parts[][2] = {
            {"subject", locale->subject},     {"preheader", locale->preheader},
            {"html", locale->html},           {"text", locale->text},
            {"title", locale->title},         {"data", locale->data},
            {"reference", locale->reference},
        };
        printf("\n[%s]\n", locale->locale);
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
            if (parts[j][1][0] != '\0') {
                printf("%s: %s\n", parts[j][0], parts[j][1]);
            }
        }
    }
}

int cmd_template_show(Cli *cli)
{
    Error err = {0};
    Session session;
    TemplateStore store;
    const char *key = args_word(&cli->args, 0);
    const char *wanted = args_flag(&cli->args, "version");
    if (!template_store_open(&session, cli, key, true, &store, &err)) {
        return cli_fail(&err);
    }
    session_close(&session);
    const StoredVersion *stored =
        wanted != NULL ? template_store_find(&store, wanted) : template_store_best(&store);
    if (stored == NULL) {
        return template_not_found(key, wanted);
    }
    if (cli->json) {
        print_json(version_to_json(stored->whole, false));
    } else {
        print_line(stored);
        print_words(stored->whole);
    }
    return EXIT_DONE;
}

// ---- draft, active, archived ----

static bool change_status(
    Session *session, Cli *cli, const TemplateStore *store, const StoredVersion *stored,
    Stentor__V1__TemplateStatus status, Error *err)
{
    Stentor__V1__TemplateVersion version = *stored->whole;
    const char *approver = args_flag(&cli->args, "approved-by");
    if (approver != NULL) {
        version.approved_by = arena_cstr(cli->arena, str_from(approver));
    }
    if (!version_may_become(&version, status, err)) {
        return false;
    }
    version.status = status;
    return (status != STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE ||
            version_check(&version, err)) &&
           template_store_put(session, cli, store, &version, err);
}

static int move(Cli *cli, Stentor__V1__TemplateStatus status)
{
    Error err = {0};
    Session session;
    TemplateStore store;
    const char *key = args_word(&cli->args, 0);
    const char *wanted = args_word(&cli->args, 1);
    if (!template_store_open(&session, cli, key, true, &store, &err)) {
        return cli_fail(&err);
    }
    const StoredVersion *stored = template_store_find(&store, wanted);
    bool own = stored != NULL && strcmp(stored->tenant, cli->settings.tenant) == 0;
    bool ok = own && change_status(&session, cli, &store, stored, status, &err);
    session_close(&session);
    if (!own) {
        return template_not_found(key, wanted);
    }
    if (!ok) {
        return cli_fail(&err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "template", key, "version", wanted, "status", version_status_name(status), NULL});
    return EXIT_DONE;
}

int cmd_template_activate(Cli *cli)
{
    return move(cli, STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE);
}

int cmd_template_archive(Cli *cli)
{
    return move(cli, STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED);
}
