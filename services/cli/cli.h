// SPDX-License-Identifier: Apache-2.0
// The `stentor` command: what its sub-commands share. A sub-command is one function over parsed
// arguments. It prints its answer on standard output: text, or JSON with --json, where a list is
// one array, and a stream of records (tail, dlq, the steps of migrate) one object a line. Errors
// and remarks go to standard error, with --json as one object a line. Exit status: 0 done, 1
// failed, 2 used wrongly (the command line, a setting, or a request that the API finds invalid), 3
// not found.
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/service/options.h"
#include "common/session/session.h"
#include "common/storage/storage.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_FOUND = 3 };

// Where everything is: from the configuration file and the environment (STENTOR_...).
typedef struct Settings {
    SessionOptions session; // NATS
    const char *database_url;
    const char *superuser_url;
    const char *api_url;
    const char *api_key;
    const char *api_ca_file;
    const char *tenant;
    const char *home;
    const char *master_key_file;
    const char *erasure_key_file;
    const char *epoch_keys_dir;
    const char *legal_duty;
    const char *retention_spans;
    const char *secret_dirs;
    const char *vendor_ca_file;
    const char *vendor_addresses;
    StorageOptions storage;
    bool core_dumps;
} Settings;

enum { ARGS_MAX = 64 };

// A parsed command line: words, and flags with or without a value. Slices point into argv.
typedef struct Args {
    const char *words[ARGS_MAX];
    int word_count;
    struct {
        const char *name;
        const char *value; // NULL: a switch
    } flags[ARGS_MAX];
    int flag_count;
    bool help; // --help or -h stands among them: nothing else was checked
} Args;

typedef struct CommandTable CommandTable;

typedef struct Cli {
    Settings settings;
    Args args;
    bool json;
    const char *tenant; // that the command itself names; NULL: --tenant, else STENTOR_TENANT
    Arena *arena;       // of the process's one command
    const CommandTable *table;
    const struct Command *command;
    const char *problem; // the problem document of the API that the next error is about; NULL: none
    const char *config;  // the settings' file; NULL: none
    const OptionSource *sources; // of each row of the settings
} Cli;

typedef struct Command {
    const char *name;         // "template put"
    const char *usage;        // its words: "KEY"
    int min_words, max_words; // after the name
    const char *flags;        // "to= file=! json": '=' takes a value, '!' must be given
    const char *help;         // what it does, then a line per flag
    int (*run)(Cli *cli);
    const char *section; // the heading of this row and those behind it; NULL: the one before
} Command;

// Everything that there is to call: help, completion and the man page are made from it.
struct CommandTable {
    const Command *rows;
    int count;
    const Option *settings;
    size_t setting_count;
};

// Walks the flags of a command; *rest is {0} before the first one.
typedef struct CommandFlag {
    Str name;
    bool takes_value, required;
} CommandFlag;
bool command_flag(const Command *command, Str *rest, CommandFlag *ret);
// What the help calls the value of a flag: "FILE" of "--file FILE"; else "VALUE".
Str command_value(const Command *command, Str flag);
// "send --template KEY [OPTION...] [--json]": the name, what must be given, and whether there are
// options.
void command_usage(const Command *command, Buf *out);
// Cuts argv into words and flags by the command's list; `ret` points into argv. ERROR_USAGE names
// what is wrong.
bool args_parse(const Command *command, int argc, char **argv, Args *ret, Error *err);
const char *args_word(const Args *args, int index);        // NULL: not given
const char *args_flag(const Args *args, const char *name); // the last one's value; NULL: not given
bool args_has(const Args *args, const char *name);
// Walks repeated flags: for (int i = 0; (value = args_each(args, "var", &i)) != NULL;)
const char *args_each(const Args *args, const char *name, int *cursor);
// A flag's whole number, `def` when it was not given. ERROR_USAGE outside of min..max.
bool args_int(
    const Args *args, const char *name, int64_t def, int64_t min, int64_t max, int64_t *ret,
    Error *err);
typedef enum TimeFrom { TIME_BEFORE_NOW, TIME_FROM_NOW } TimeFrom;
// A flag's time: RFC 3339, or a span ("90s", "2h", "7d") before or from now. *ret stays when the
// flag was not given. ERROR_USAGE: it is neither.
bool args_time(
    const Args *args, const char *name, TimeFrom from, int64_t now_us, int64_t *ret, Error *err);
// The same as RFC 3339 in the arena, for the API; NULL: the flag was not given.
bool cli_time_from_now(Cli *cli, const char *name, const char **ret, Error *err);

// Prints "stentor: <text>", with --json {"error": text, "exit_status": N} and the API's "problem".
// Returns EXIT_USAGE for ERROR_USAGE, else EXIT_FAILED.
int cli_fail(const Cli *cli, const Error *err);
// The same with an exit status and a text of one's own.
int cli_fail_as(const Cli *cli, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// A remark on standard error: "stentor: <text>", with --json {"note": text}.
void cli_note(const Cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
// An empty list says so to a reader: "stentor: no <what>" on standard error; nothing with --json.
void cli_note_empty(const Cli *cli, const char *what);
bool cli_need(const char *value, const char *option, Error *err); // the setting must be there
// A key in a settings file is sent to the address of the same file only, whatever a flag or the
// environment says. ERROR_USAGE: it would go elsewhere.
bool cli_key_fits(const Cli *cli, Error *err);
// The API did not answer: names the address, where it comes from and how to set another. False.
bool cli_no_answer(const Cli *cli, const char *reason, Error *err);
// STENTOR_HOME; without it the folder installed with this program, else the current one.
const char *cli_home(Cli *cli);
// A file that the caller names; "-": standard input. ERROR_USAGE: it cannot be read.
bool cli_read_file(Cli *cli, const char *path, size_t max, Str *ret, Error *err);
// The JSON object of --file; without the flag an empty one. ERROR_USAGE: it is none.
bool cli_load_object(Cli *cli, json_t **ret, Error *err);
// Whose: --tenant, else STENTOR_TENANT; NULL with --all-tenants. what: "messages", for the error.
bool cli_tenant_or_all(const Cli *cli, const char *what, const char **ret, Error *err);
// A line of what an installer does: {"what", "result"} with --json.
void cli_step(const Cli *cli, const char *what, const char *result);
// Prints {"key": value, ...} with --json, else "key  value" lines. Pairs end with NULL.
void print_pairs(const Cli *cli, const char *const *pairs);
void print_json_line(json_t *json); // a line on standard output; takes it

// The sub-commands: each prints its answer or its error and returns the exit status.
int cmd_up(Cli *cli);
int cmd_down(Cli *cli);
int cmd_init(Cli *cli);
int cmd_init_files(Cli *cli);
int cmd_init_servers(Cli *cli);
int cmd_init_secrets(Cli *cli);
int cmd_subscriber_create(Cli *cli);
int cmd_ready(Cli *cli);
int cmd_migrate(Cli *cli);
int cmd_rebuild(Cli *cli);
int cmd_data_map(Cli *cli);
int cmd_content(Cli *cli);
int cmd_callbacks(Cli *cli);
int cmd_nats_config(Cli *cli);
int cmd_master_key(Cli *cli);
int cmd_keys_status(Cli *cli);
int cmd_keys_retire(Cli *cli);
int cmd_keys_rotate(Cli *cli);
int cmd_keys_dump(Cli *cli);
int cmd_keys_restore(Cli *cli);
int cmd_master_key_add(Cli *cli);
int cmd_master_key_use(Cli *cli);
int cmd_master_key_remove(Cli *cli);
int cmd_tenant_put(Cli *cli);
int cmd_tenant_show(Cli *cli);
int cmd_tenant_list(Cli *cli);
int cmd_tenant_sender_domain(Cli *cli);
int cmd_recipient_put(Cli *cli);
int cmd_recipient_get(Cli *cli);
int cmd_recipient_delete(Cli *cli);
int cmd_recipient_prefs(Cli *cli);
int cmd_recipient_consent(Cli *cli);
int cmd_recipient_import(Cli *cli);
int cmd_apikey_bootstrap(Cli *cli);
int cmd_apikey_create(Cli *cli);
int cmd_apikey_list(Cli *cli);
int cmd_console_login(Cli *cli);
int cmd_console_revoke(Cli *cli);
int cmd_console_sessions(Cli *cli);
int cmd_apikey_rotate(Cli *cli);
int cmd_apikey_revoke(Cli *cli);
int cmd_inbox_key_create(Cli *cli);
int cmd_inbox_key_list(Cli *cli);
int cmd_inbox_key_rotate(Cli *cli);
int cmd_inbox_key_revoke(Cli *cli);
int cmd_inbound_put(Cli *cli);
int cmd_mail_domain_put(Cli *cli);
int cmd_mail_domain_list(Cli *cli);
int cmd_mail_domain_show(Cli *cli);
int cmd_mail_domain_delete(Cli *cli);
int cmd_inbound_list(Cli *cli);
int cmd_inbound_url(Cli *cli);
int cmd_inbound_rejected(Cli *cli);
int cmd_template_put(Cli *cli);
int cmd_template_render(Cli *cli);
int cmd_template_list(Cli *cli);
int cmd_template_show(Cli *cli);
int cmd_template_history(Cli *cli);
int cmd_template_activate(Cli *cli);
int cmd_template_archive(Cli *cli);
int cmd_template_deprecate(Cli *cli);
int cmd_template_preview(Cli *cli);
int cmd_template_test_send(Cli *cli);
int cmd_asset_put(Cli *cli);
int cmd_asset_list(Cli *cli);
int cmd_asset_remove(Cli *cli);
int cmd_trigger_put(Cli *cli);
int cmd_trigger_list(Cli *cli);
int cmd_trigger_show(Cli *cli);
int cmd_trigger_delete(Cli *cli);
int cmd_trigger_try(Cli *cli);
int cmd_resolver_put(Cli *cli);
int cmd_resolver_list(Cli *cli);
int cmd_resolver_show(Cli *cli);
int cmd_resolver_remove(Cli *cli);
int cmd_route_put(Cli *cli);
int cmd_route_list(Cli *cli);
int cmd_route_show(Cli *cli);
int cmd_route_delete(Cli *cli);
int cmd_route_compare(Cli *cli);
int cmd_credential_put(Cli *cli);
int cmd_credential_list(Cli *cli);
int cmd_credential_show(Cli *cli);
int cmd_credential_promote(Cli *cli);
int cmd_credential_revoke(Cli *cli);
int cmd_credential_delete(Cli *cli);
int cmd_webhook_create(Cli *cli);
int cmd_webhook_put(Cli *cli);
int cmd_webhook_list(Cli *cli);
int cmd_webhook_show(Cli *cli);
int cmd_webhook_enable(Cli *cli);
int cmd_webhook_disable(Cli *cli);
int cmd_webhook_rotate(Cli *cli);
int cmd_webhook_delete(Cli *cli);
int cmd_webhook_deliveries(Cli *cli);
int cmd_webhook_delivery(Cli *cli);
int cmd_webhook_replay(Cli *cli);
int cmd_webhook_recover(Cli *cli);
int cmd_webhook_test(Cli *cli);
int cmd_channel_list(Cli *cli);
int cmd_channel_suspend(Cli *cli);
int cmd_channel_resume(Cli *cli);
int cmd_channel_test(Cli *cli);
int cmd_vendor_try(Cli *cli);
int cmd_shadow(Cli *cli);
int cmd_completion(Cli *cli);
int cmd_man(Cli *cli);
int cmd_version(Cli *cli);
int cmd_login(Cli *cli);
int cmd_logout(Cli *cli);
int cmd_send(Cli *cli);
int cmd_batch_create(Cli *cli);
int cmd_batch_add(Cli *cli);
int cmd_batch_schedule(Cli *cli);
int cmd_batch_start(Cli *cli);
int cmd_batch_pause(Cli *cli);
int cmd_batch_resume(Cli *cli);
int cmd_batch_cancel(Cli *cli);
int cmd_batch_show(Cli *cli);
int cmd_batch_list(Cli *cli);
int cmd_status(Cli *cli);
int cmd_why(Cli *cli);
int cmd_scheduled_list(Cli *cli);
int cmd_cancel(Cli *cli);
int cmd_find(Cli *cli);
int cmd_order_show(Cli *cli);
int cmd_order_list(Cli *cli);
int cmd_tail(Cli *cli);
int cmd_dlq_list(Cli *cli);
int cmd_dlq_show(Cli *cli);
int cmd_dlq_resend(Cli *cli);
int cmd_dlq_drop(Cli *cli);
int cmd_replay(Cli *cli);
int cmd_doctor(Cli *cli);
int cmd_audit(Cli *cli);
int cmd_audit_log_list(Cli *cli);
int cmd_audit_log_verify(Cli *cli);
int cmd_erase(Cli *cli);
int cmd_erase_run(Cli *cli);
int cmd_erase_list(Cli *cli);
int cmd_erase_replay(Cli *cli);
int cmd_erase_verify(Cli *cli);
int cmd_erase_certificate(Cli *cli);
int cmd_erase_key(Cli *cli);
int cmd_export(Cli *cli);
int cmd_hold_set(Cli *cli);
int cmd_hold_list(Cli *cli);
int cmd_hold_release(Cli *cli);
int cmd_archive_list(Cli *cli);
int cmd_archive_show(Cli *cli);
int cmd_archive_run(Cli *cli);
int cmd_archive_verify(Cli *cli);
int cmd_archive_restore(Cli *cli);
int cmd_archive_expire(Cli *cli);
int cmd_archive_orphans(Cli *cli);
int cmd_archive_adopt(Cli *cli);
int cmd_facts_write(Cli *cli);
int cmd_costs_set(Cli *cli);
int cmd_costs_delete(Cli *cli);
int cmd_costs_list(Cli *cli);
int cmd_costs_import_invoice(Cli *cli);
int cmd_outbox_install(Cli *cli);
int cmd_outbox_check(Cli *cli);
int cmd_outbox_show(Cli *cli);
int cmd_outbox_retry(Cli *cli);
int cmd_opt_out_revoke(Cli *cli);
int cmd_guard_list(Cli *cli);
int cmd_guard_resume(Cli *cli);
int cmd_suppress_list(Cli *cli);
int cmd_suppress_add(Cli *cli);
int cmd_suppress_release(Cli *cli);
int cmd_suppress_import(Cli *cli);
int cmd_suppress_export(Cli *cli);
int cmd_config_export(Cli *cli);
int cmd_config_import(Cli *cli);
int cmd_config_mend(Cli *cli);
