// SPDX-License-Identifier: Apache-2.0
// template list, show, history, activate, archive: what is published, and a version's way from
// draft to active to archived.
#include <jansson.h>
#include <string.h>

#include "services/cli/api_client.h"
#include "services/cli/manage/template_show.h"

// "&channel=sms", behind any other query.
static const char *channel_query(Cli *cli)
{
    const char *channel = args_flag(&cli->args, "channel");
    return channel == NULL
               ? ""
               : arena_printf(cli->arena, "&channel=%s", api_client_escape(cli, channel));
}

const char *template_path(Cli *cli, const char *version)
{
    const char *key = api_client_escape(cli, args_word(&cli->args, 0));
    return arena_printf(
        cli->arena, "/v1/templates/%s?platform=%s%s%s%s", key,
        args_has(&cli->args, "platform") ? "true" : "false", version != NULL ? "&version=" : "",
        version != NULL ? api_client_escape(cli, version) : "", channel_query(cli));
}

static void print_line(const json_t *version)
{
    const json_t *locales = json_object_get(version, "locales"); // of a document they are a list
    const char *approver = api_client_text(version, "approved_by", "");
    const char *deprecated = api_client_text(version, "deprecated_at", "");
    size_t count =
        json_is_array(locales) ? json_array_size(locales) : (size_t)json_integer_value(locales);
    printf(
        "%-24s %-10s %-9s %-9s %-14s %3zu  %.19sZ  %s%s%s%s%.20s\n",
        api_client_text(version, "key", ""), api_client_text(version, "version", ""),
        api_client_text(version, "status", ""), api_client_text(version, "channel", ""),
        api_client_text(version, "category", ""), count,
        api_client_text(version, "published_at", ""), api_client_text(version, "published_by", ""),
        approver[0] != '\0' ? ", approved by " : "", approver,
        deprecated[0] != '\0' ? ", deprecated from " : "", deprecated);
}

static int show_versions(Cli *cli, const json_t *list)
{
    size_t i = 0;
    json_t *version = NULL;
    if (cli->json) {
        api_client_dump(list);
        return EXIT_DONE;
    }
    if (json_array_size(list) == 0) {
        cli_note_empty(cli, "template (HINT: stentor template put KEY --subject TEXT --text FILE)");
        return EXIT_DONE;
    }
    printf(
        "%-24s %-10s %-9s %-9s %-14s %s  %s\n", "KEY", "VERSION", "STATUS", "CHANNEL", "CATEGORY",
        "LOC", "PUBLISHED");
    json_array_foreach((json_t *)(uintptr_t)list, i, version)
    {
        print_line(version);
    }
    return EXIT_DONE;
}

int cmd_template_list(Cli *cli)
{
    json_t *list = json_array();
    const char *path = arena_printf(
        cli->arena, "/v1/templates?platform=%s%s",
        args_has(&cli->args, "platform") ? "true" : "false", channel_query(cli));
    int status = api_client_list(cli, path, api_client_take, list);
    if (status == EXIT_DONE) {
        (void)show_versions(cli, list);
    }
    json_decref(list);
    return status;
}

static int show_history(Cli *cli, const json_t *version)
{
    return show_versions(cli, json_object_get(version, "versions"));
}

int cmd_template_history(Cli *cli)
{
    return api_client_run(cli, "GET", template_path(cli, NULL), NULL, show_history);
}

static void print_words(const json_t *version)
{
    static const char *const parts[] = {"subject", "preheader", "html",     "text",
                                        "title",   "data",      "reference"};
    size_t i = 0;
    json_t *locale = NULL;
    json_array_foreach(json_object_get(version, "locales"), i, locale)
    {
        printf("\n[%s]\n", api_client_text(locale, "locale", ""));
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
            const char *text = api_client_text(locale, parts[j], "");
            if (text[0] != '\0') {
                printf("%s: %s\n", parts[j], text);
            }
        }
    }
}

static int show_version(Cli *cli, const json_t *answer)
{
    json_t *version = json_copy((json_t *)(uintptr_t)answer);
    (void)json_object_del(version, "versions");
    if (cli->json) {
        api_client_dump(version);
    } else {
        print_line(version);
        print_words(version);
    }
    json_decref(version);
    return EXIT_DONE;
}

int cmd_template_show(Cli *cli)
{
    const char *wanted = args_flag(&cli->args, "version");
    return api_client_run(cli, "GET", template_path(cli, wanted), NULL, show_version);
}

// ---- draft, active, archived ----

static int show_moved(Cli *cli, const json_t *version)
{
    api_client_warnings(cli, version);
    print_pairs(
        cli, (const char *const[]){
                 "template", api_client_text(version, "key", ""), "version",
                 api_client_text(version, "version", ""), "status",
                 api_client_text(version, "status", ""), "channel",
                 api_client_text(version, "channel", ""), NULL});
    return EXIT_DONE;
}

static int move(Cli *cli, const char *to, json_t *body)
{
    const char *channel = args_flag(&cli->args, "channel");
    const char *path = arena_printf(
        cli->arena, "/v1/templates/%s/%s/%s%s%s", api_client_escape(cli, args_word(&cli->args, 0)),
        api_client_escape(cli, args_word(&cli->args, 1)), to, channel != NULL ? "?channel=" : "",
        channel != NULL ? api_client_escape(cli, channel) : "");
    if (args_has(&cli->args, "allow-category-change")) {
        (void)json_object_set_new(body, "allow_category_change", json_true());
    }
    cli->tenant = args_has(&cli->args, "platform") ? "platform" : NULL;
    return api_client_run(cli, "POST", path, body, show_moved);
}

int cmd_template_activate(Cli *cli)
{
    return move(
        cli, "activate", json_pack("{s:s*}", "approved_by", args_flag(&cli->args, "approved-by")));
}

int cmd_template_archive(Cli *cli)
{
    return move(cli, "archive", json_object());
}

int cmd_template_deprecate(Cli *cli)
{
    json_t *body = json_pack("{s:s*}", "deprecated_at", args_flag(&cli->args, "at"));
    if (args_has(&cli->args, "withdraw")) {
        (void)json_object_set_new(body, "deprecated", json_false());
    }
    return move(cli, "deprecate", body);
}
