// SPDX-License-Identifier: Apache-2.0
// The `stentor` command: its settings, and which command is meant.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/credential/secrets.h"
#include "common/service/options.h"
#include "common/service/storage_rows.h"
#include "services/cli/cli.h"
#include "services/cli/commands.h"
#include "services/cli/help.h"
#include "services/cli/run.h"
#include "services/cli/user_config.h"

// clang-format off
static const Option settings_table[] = {
    {"STENTOR_NATS_URL",      OPTION_TEXT, offsetof(Settings, session.nats_url),      "nats://127.0.0.1:4222", 0, 0, false, "NATS servers, separated by commas"},
    {"STENTOR_NATS_USER",     OPTION_TEXT, offsetof(Settings, session.user),     "", 0, 0, false, "NATS user"},
    {"STENTOR_NATS_PASSWORD", OPTION_TEXT, offsetof(Settings, session.password), "", 0, 0, true,  "password of the NATS user"},
    {"STENTOR_DATABASE_URL",  OPTION_TEXT, offsetof(Settings, database_url),  "", 0, 0, true,  "Postgres connection string"},
    {"STENTOR_SUPERUSER_URL", OPTION_TEXT, offsetof(Settings, superuser_url), "", 0, 0, true,  "Postgres connection string of a superuser, for `init` and `migrate --check` only"},
    {"STENTOR_API_URL",       OPTION_TEXT, offsetof(Settings, api_url),       "http://127.0.0.1:8080", 0, 0, false, "address of the API"},
    {"STENTOR_API_KEY",       OPTION_TEXT, offsetof(Settings, api_key),       "", 0, 0, true,  "API key of the commands that ask the API"},
    {"STENTOR_API_CA_FILE",   OPTION_TEXT, offsetof(Settings, api_ca_file),   "", 0, 0, false, "certificate authorities of an API over HTTPS, in PEM; not set: those of the system"},
    {"STENTOR_TENANT",        OPTION_TEXT, offsetof(Settings, tenant),        "", 0, 0, false, "tenant that the commands act for"},
    {"STENTOR_HOME",          OPTION_TEXT, offsetof(Settings, home),          "", 0, 0, false, "folder with migrations/, and with deploy/ for `up` and `down`; not set: the one installed with this program, else the current folder"},
    {"STENTOR_MASTER_KEY_FILE", OPTION_TEXT, offsetof(Settings, master_key_file), "", 0, 0, false, "the services' master key file, for the commands that seal, open or hash"},
    {"STENTOR_EPOCH_KEYS_DIR", OPTION_TEXT, offsetof(Settings, epoch_keys_dir), "", 0, 0, false, "the services' folder of epoch keys, for the commands that open sealed values"},
    {"STENTOR_ERASURE_KEY_FILE", OPTION_TEXT, offsetof(Settings, erasure_key_file), "", 0, 0, false, "the key that signs certificates of erasure, for `erase verify` only"},
    {"STENTOR_LEGAL_DUTY",    OPTION_TEXT, offsetof(Settings, legal_duty), "", 0, 0, false, "names the law by which `erase` keeps what is of the retention class record; not set: it is erased with the rest"},
    {"STENTOR_RETENTION_SPANS", OPTION_TEXT, offsetof(Settings, retention_spans), "", 0, 0, false, "as the archiver's: how long that duty lasts"},
    {SECRET_DIRS_OPTION,      OPTION_TEXT, offsetof(Settings, secret_dirs), SECRET_DIRS_DEFAULT, 0, 0, false, "as the dispatcher's: folders of what credentials and DKIM keys refer to"},
    {"STENTOR_VENDOR_CA_FILE", OPTION_TEXT, offsetof(Settings, vendor_ca_file), "", 0, 0, false, "as the dispatcher's, for `channel test` and `shadow --send`: certificates to trust instead of the system's"},
    {"STENTOR_VENDOR_ADDRESSES", OPTION_TEXT, offsetof(Settings, vendor_addresses), "", 0, 0, false, "as the dispatcher's, for `channel test` and `shadow --send`: private, loopback, or both with a ','"},
    STORAGE_ROWS(Settings, "no command looks there; as the archiver's"),
    {"STENTOR_CORE_DUMPS",    OPTION_BOOL, offsetof(Settings, core_dumps), "false", 0, 0, false, "for developers: leave core dumps and let debuggers in"},
};
// clang-format on

static const Command *find_by_name(const char *name)
{
    for (int i = 0; i < command_count; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

// "init files", else "init"; *ret_used is how many words it took. NULL: there is neither.
static const Command *find_command(int argc, char **argv, int *ret_used)
{
    char both[64];
    int len = argc > 1 ? snprintf(both, sizeof both, "%s %s", argv[0], argv[1]) : -1;
    const Command *command = len > 0 && (size_t)len < sizeof both ? find_by_name(both) : NULL;
    *ret_used = command != NULL ? 2 : 1;
    return command != NULL ? command : find_by_name(argv[0]);
}

static CommandTable all_commands(void)
{
    return (CommandTable){
        commands, command_count, settings_table, sizeof settings_table / sizeof *settings_table};
}

#ifdef STENTOR_CRASH_POINTS
static int print_crash_points(void)
{
    Buf out;
    buf_init(&out, 64 * 1024);
    (void)crash_points_print("cli", &out);
    fputs(buf_c(&out), stdout);
    buf_done(&out);
    return EXIT_DONE;
}
#endif

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
    // The command's own error names the reason: lines for a service's log would repeat it.
    log_output_set(-1);
    const CommandTable table = all_commands();
    int at = options_rest(table.settings, table.setting_count, argc, argv);
    const char *word = at < argc ? argv[at] : "help";
    if (strcmp(word, "help") == 0 || is_help(word)) {
        char topic[64] = "";
        for (int i = at + 1; i < argc; i++) {
            snprintf(
                topic + strlen(topic), sizeof topic - strlen(topic), "%s%s", i > at + 1 ? " " : "",
                argv[i]);
        }
        return help_print(&table, topic[0] != '\0' ? topic : NULL);
    }
    if (strcmp(word, "--version") == 0) {
        return cmd_version(NULL);
    }
#ifdef STENTOR_CRASH_POINTS
    if (strcmp(word, "--crash-points") == 0) {
        return print_crash_points();
    }
#endif
    int used = 0;
    const Command *command = find_command(argc - at, argv + at, &used);
    if (command == NULL) {
        const char *second = argc > at + 1 ? argv[at + 1] : NULL;
        if (second != NULL && is_help(second)) {
            return help_print(&table, word);
        }
        return help_unknown(&table, word, second, run_wants_json(argc, argv));
    }
    return command_run(&table, command, at, at + used, argc, argv);
}
