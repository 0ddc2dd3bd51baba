// SPDX-License-Identifier: Apache-2.0
#include "services/cli/init/init_conf.h"

#include <string.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/service/known_names.h"
#include "common/service/options_file.h"
#include "services/cli/init/conf_merge.h"

enum { CONF_MAX = 128 * 1024 };

// ---- lines ----

void setting_put(SettingLines *lines, Str name, const char *value)
{
    size_t i = 0;
    while (i < lines->count && !str_eq(lines->at[i].name, name)) {
        i++;
    }
    if (i == SETTINGS_MAX) {
        return; // init_check_sets refuses so many
    }
    lines->at[i].name = name;
    lines->at[i].value = value;
    lines->count = i == lines->count ? i + 1 : lines->count;
}

static Str with_head(Cli *cli, void (*head)(Buf *out, Str lines), Str lines)
{
    Buf out;
    buf_init(&out, CONF_MAX);
    head(&out, lines);
    buf_str(&out, lines);
    Str text = arena_str(cli->arena, buf_view(&out));
    buf_done(&out);
    return text;
}

Str setting_text(Cli *cli, const SettingLines *lines)
{
    Buf out;
    buf_init(&out, CONF_MAX);
    for (size_t i = 0; i < lines->count; i++) {
        options_file_write(&out, lines->at[i].name, lines->at[i].value);
    }
    Str text = with_head(cli, conf_head, buf_view(&out));
    buf_done(&out);
    return text;
}

// ---- --set ----

// "ingest:STENTOR_ADMIN_PORT=9401". *ret_service empty: every service's.
static bool cut_set(
    Cli *cli, const char *text, Str *ret_service, Str *ret_name, const char **ret_value)
{
    Str rest = str_from(text);
    Str head = STR_EMPTY;
    ptrdiff_t equals = str_find(rest, '=');
    if (equals <= 0) {
        return false;
    }
    head = str_slice(rest, 0, (size_t)equals);
    *ret_value = arena_cstr(cli->arena, str_slice(rest, (size_t)equals + 1, rest.len));
    ptrdiff_t colon = str_find(head, ':');
    *ret_service = colon < 0 ? STR_EMPTY : str_slice(head, 0, (size_t)colon);
    *ret_name = str_slice(head, (size_t)(colon + 1), head.len);
    return true;
}

static bool is_service(Str name)
{
    size_t count = 0;
    const InitService *services = init_services(&count);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(name, str_from(services[i].name))) {
            return true;
        }
    }
    return str_eq(name, STR("cli")) || str_eq(name, STR("admin"));
}

static bool check_set(Cli *cli, const char *text, Error *err)
{
    Str service = STR_EMPTY, name = STR_EMPTY;
    const char *value = NULL;
    if (!cut_set(cli, text, &service, &name, &value)) {
        return error_set(
            err, ERROR_USAGE, "--set '%.80s': expected SETTING=VALUE or NAME:SETTING=VALUE", text);
    }
    if (service.len > 0 && !is_service(service)) {
        return error_set(
            err, ERROR_USAGE, "--set '%.80s': there is no service '" STR_FMT "'", text,
            STR_ARG(str_slice(service, 0, 40)));
    }
    if (!known_name(name)) {
        const char *nearest = known_name_nearest(name);
        return error_set(
            err, ERROR_USAGE, "--set '%.80s': no program knows this setting%s%s", text,
            nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "");
    }
    return !str_has_control(str_from(value)) ||
           error_set(err, ERROR_USAGE, "--set '%.80s': the value has a line break", text);
}

bool init_check_sets(Cli *cli, Error *err)
{
    enum { OWN_LINES_MAX = 16 };
    const char *text = NULL;
    int sets = 0;
    for (int i = 0; (text = args_each(&cli->args, "set", &i)) != NULL; sets++) {
        if (!check_set(cli, text, err)) {
            return false;
        }
    }
    return sets <= SETTINGS_MAX - OWN_LINES_MAX ||
           error_set(
               err, ERROR_USAGE, "--set is given more than %d times", SETTINGS_MAX - OWN_LINES_MAX);
}

// Those of all services first (not for `cli` and `admin`), so that a service's own goes over them.
static void put_sets(Cli *cli, const char *service, bool common, SettingLines *lines)
{
    for (int own = common ? 0 : 1; own <= 1; own++) {
        const char *text = NULL;
        for (int i = 0; (text = args_each(&cli->args, "set", &i)) != NULL;) {
            Str whose = STR_EMPTY, name = STR_EMPTY;
            const char *value = NULL;
            bool cut = cut_set(cli, text, &whose, &name, &value);
            bool wanted = own == 0 ? whose.len == 0 : str_eq(whose, str_from(service));
            if (cut && wanted) {
                setting_put(lines, name, value);
            }
        }
    }
}

// ---- the files ----

static const char *flag_or(const Cli *cli, const char *name, const char *def)
{
    const char *value = args_flag(&cli->args, name);
    return value != NULL ? value : def;
}

// A file of the folder as the programs will see it: they run elsewhere, so by its whole path.
static const char *seen(Cli *cli, const char *name)
{
    enum { PATH_SIZE = 4096 };
    const char *folder = flag_or(cli, "seen-as", init_folder(cli));
    char here[PATH_SIZE];
    if (folder[0] == '/' || getcwd(here, sizeof here) == NULL) {
        return arena_printf(cli->arena, "%s/%s", folder, name);
    }
    return arena_printf(cli->arena, "%s/%s/%s", here, folder, name);
}

static const char *seen_of(Cli *cli, const char *name, const char *ending)
{
    return seen(cli, arena_printf(cli->arena, "%s.%s", name, ending));
}

// Who logs in where; `database`: whose connection string, NULL: none.
static void put_logins(Cli *cli, const char *user, const char *database, SettingLines *lines)
{
    setting_put(lines, STR("STENTOR_NATS_URL"), flag_or(cli, "nats", "nats://127.0.0.1:4222"));
    setting_put(lines, STR("STENTOR_NATS_USER"), arena_printf(cli->arena, "stentor-%s", user));
    setting_put(lines, STR("STENTOR_NATS_PASSWORD_FILE"), seen_of(cli, user, "password"));
    if (database != NULL) {
        setting_put(
            lines, STR("STENTOR_DATABASE_URL_FILE"), seen_of(cli, database, "database-url"));
    }
}

Str init_service_conf(Cli *cli, const InitService *service, const char *epochs)
{
    SettingLines lines = {.count = 0};
    put_logins(cli, service->name, service->wants_database ? service->name : NULL, &lines);
    if (service->wants_master_key) {
        setting_put(&lines, STR("STENTOR_MASTER_KEY_FILE"), seen(cli, "master.key"));
    }
    if (service->wants_epoch_keys && epochs != NULL) {
        setting_put(&lines, STR("STENTOR_EPOCH_KEYS_DIR"), epochs);
    }
    if (epochs != NULL && strcmp(service->name, INIT_KEEPER) == 0) {
        setting_put(&lines, STR("STENTOR_KEYS_DUMP_DIR"), init_dumps_folder(cli, epochs));
    }
    put_sets(cli, service->name, true, &lines);
    return setting_text(cli, &lines);
}

Str init_admin_conf(Cli *cli)
{
    SettingLines lines = {.count = 0};
    put_logins(cli, "admin", "owner", &lines);
    setting_put(&lines, STR("STENTOR_MASTER_KEY_FILE"), seen(cli, "master.key"));
    put_sets(cli, "admin", false, &lines);
    return setting_text(cli, &lines);
}

Str init_cli_conf(Cli *cli, const char *epochs)
{
    SettingLines lines = {.count = 0};
    put_logins(cli, "cli", "cli", &lines);
    setting_put(&lines, STR("STENTOR_API_URL"), flag_or(cli, "api-url", "http://127.0.0.1:8080"));
    setting_put(&lines, STR("STENTOR_API_KEY_FILE"), seen(cli, "operator.key"));
    setting_put(&lines, STR("STENTOR_MASTER_KEY_FILE"), seen(cli, "master.key"));
    setting_put(&lines, STR("STENTOR_ERASURE_KEY_FILE"), seen(cli, "erasure.key"));
    if (epochs != NULL) {
        setting_put(&lines, STR("STENTOR_EPOCH_KEYS_DIR"), epochs);
    }
    put_sets(cli, "cli", false, &lines);
    return setting_text(cli, &lines);
}

// The streams' limits are reserved whole, against three quarters of the free disk by default: all
// of them would have to be free.
Str init_nats_conf(Cli *cli)
{
    Buf out;
    buf_init(&out, CONF_MAX);
    buf_cstr(&out, "listen: ");
    buf_json(&out, str_from(flag_or(cli, "nats-listen", "127.0.0.1:4222")));
    buf_cstr(&out, "\nserver_name: \"stentor\"\njetstream { store_dir: ");
    buf_json(&out, str_from(flag_or(cli, "nats-store", "/var/lib/stentor/nats")));
    buf_cstr(&out, ", max_file_store: 1TB }\ninclude \"nats-accounts.conf\"\n");
    Str text = with_head(cli, conf_whole_head, buf_view(&out));
    buf_done(&out);
    return text;
}
