// SPDX-License-Identifier: Apache-2.0
// login, logout: address and key of the API in the user's own file. The key never stands on a
// command line, where every user of the machine reads it.
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "services/cli/api_client.h"
#include "services/cli/user_config.h"

enum { KEY_FILE_MAX = 4096 };

// From the file or standard input; a terminal is asked, and does not show what is typed.
static bool read_key(Cli *cli, const char **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "key-file");
    struct termios shown;
    bool ask = path == NULL && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &shown) == 0;
    if (ask) {
        struct termios hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
        fputs("API key: ", stderr);
    }
    char line[KEY_FILE_MAX];
    Str text = STR_EMPTY;
    bool ok = true;
    if (path != NULL) {
        ok = cli_read_file(cli, path, KEY_FILE_MAX, &text, err);
    } else if (fgets(line, sizeof line, stdin) != NULL) {
        text = str_from(line);
    }
    if (ask) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
        fputc('\n', stderr);
    }
    *ret = arena_cstr(cli->arena, str_trim(text));
    if (!ok || ((*ret)[0] != '\0' && strcspn(*ret, " \t\r\n") == strlen(*ret))) {
        return ok;
    }
    return error_set(
        err, ERROR_USAGE,
        "%s is no API key: one word that begins with stn_ (HINT: stentor apikey create prints one)",
        path != NULL ? path : "standard input");
}

// The API takes the key. *tenant: whose it is, unless the caller said so or the key may not ask.
static bool check_key(Cli *cli, const char *url, const char *key, const char **tenant, Error *err)
{
    Cli probe = *cli;
    OptionSource *sources = arena_zalloc(cli->arena, cli->table->setting_count * sizeof *sources);
    for (size_t i = 0; i < cli->table->setting_count; i++) {
        bool given = strcmp(cli->table->settings[i].name, "STENTOR_API_KEY") == 0;
        sources[i] = given || url != cli->settings.api_url ? OPTION_FROM_ARGUMENT : cli->sources[i];
    }
    probe.sources = sources;
    probe.settings.api_url = url;
    probe.settings.api_key = key;
    probe.settings.tenant = ""; // what was set before is another key's
    ApiAnswer answer;
    ApiClient *client = api_client_new(&probe, err);
    if (client == NULL || !api_client_call(client, "GET", "/v1/tenant", (Str){0}, &answer, err)) {
        api_client_free(client);
        return false;
    }
    // 403: its scopes are others; 404: its tenant has no settings yet.
    bool taken = answer.status == 200 || answer.status == 403 || answer.status == 404;
    const char *own = json_string_value(json_object_get(answer.json, "id"));
    own = own != NULL ? own : json_string_value(json_object_get(answer.json, "tenant"));
    if (taken && *tenant == NULL && own != NULL) {
        *tenant = arena_printf(cli->arena, "%s", own);
    }
    taken = taken || api_client_explain(client, &answer, err) || error_wrap(err, "%s", url);
    api_client_free(client);
    return taken;
}

static bool check_url(const char *url, Error *err)
{
    bool http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    if (http && strpbrk(url, " \t\"\\") == NULL && url[strlen(url) - 1] != '/') {
        return true;
    }
    return error_set(
        err, ERROR_USAGE,
        "'%s' is no address of the API: expected http://HOST[:PORT] or https://HOST[:PORT], "
        "without "
        "a path",
        url);
}

static bool find_path(Cli *cli, const char **ret, Error *err)
{
    *ret = user_config_path(cli->arena);
    return *ret != NULL ||
           error_set(err, ERROR_USAGE, "neither HOME nor XDG_CONFIG_HOME is set: no file to write");
}

int cmd_login(Cli *cli)
{
    Error err = {0};
    const char *word = args_word(&cli->args, 0);
    const char *url = word != NULL ? word : cli->settings.api_url;
    const char *tenant = args_flag(&cli->args, "tenant");
    const char *path, *key;
    if (!find_path(cli, &path, &err) || !check_url(url, &err) || !read_key(cli, &key, &err) ||
        (!args_has(&cli->args, "unchecked") && !check_key(cli, url, key, &tenant, &err))) {
        return cli_fail(cli, &err);
    }
    const UserSetting settings[] = {
        {"STENTOR_API_URL", url},
        {"STENTOR_API_KEY", key},
        {"STENTOR_API_KEY_FILE", NULL}, // a setting may be given once
        {"STENTOR_TENANT", tenant},
    };
    if (!user_config_change(path, settings, sizeof settings / sizeof *settings, cli->arena, &err)) {
        return cli_fail(cli, &err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "file", path, "api", url, tenant != NULL ? "tenant" : NULL, tenant, NULL});
    return EXIT_DONE;
}

int cmd_logout(Cli *cli)
{
    static const UserSetting settings[] = {
        {"STENTOR_API_URL", NULL},
        {"STENTOR_API_KEY", NULL},
        {"STENTOR_API_KEY_FILE", NULL},
        {"STENTOR_TENANT", NULL},
    };
    Error err = {0};
    const char *path;
    if (!find_path(cli, &path, &err) ||
        !user_config_change(path, settings, sizeof settings / sizeof *settings, cli->arena, &err)) {
        return cli_fail(cli, &err);
    }
    print_pairs(cli, (const char *const[]){"file", path, NULL});
    return EXIT_DONE;
}
