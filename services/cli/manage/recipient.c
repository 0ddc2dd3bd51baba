// SPDX-License-Identifier: Apache-2.0
// recipient put, get, delete, prefs, consent: /v1/recipients... over HTTP, as any client would.
#include <stdlib.h>
#include <string.h>

#include "common/model/enums.h"
#include "services/cli/api_client.h"

enum { FILE_MAX = 64 * 1024 };

static int show_stored(Cli *cli, const json_t *answer)
{
    json_t *stored = json_copy((json_t *)(uintptr_t)answer);
    size_t i = 0;
    json_t *warning = NULL;
    json_array_foreach(json_object_get(answer, "warnings"), i, warning)
    {
        cli_note(cli, "warning: %s", json_string_value(warning));
    }
    (void)json_object_del(stored, "warnings");
    int status = api_client_show(cli, stored);
    json_decref(stored);
    return status;
}

// Prints the answer to a request whose body is `object`, which it frees; what it warns of goes to
// standard error.
static int send_object(Cli *cli, const char *method, const char *path, json_t *object)
{
    return api_client_run(cli, method, path, object, show_stored);
}

static json_t *read_json(Cli *cli, const char *path, Error *err)
{
    Str text = STR_EMPTY;
    json_error_t where;
    if (!cli_read_file(cli, path, FILE_MAX, &text, err)) {
        return NULL;
    }
    json_t *json = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    if (json == NULL) {
        (void)error_set(
            err, ERROR_USAGE, "'%s' line %d, column %d: %s", path, where.line, where.column,
            where.text);
    }
    return json;
}

static bool set_text(json_t *object, const char *name, const char *value, Error *err)
{
    return value == NULL || json_object_set_new(object, name, json_string(value)) == 0 ||
           error_set(err, ERROR_USAGE, "%s is not UTF-8", name);
}

// ---- put ----

static bool add_addresses(const Cli *cli, json_t *record, Error *err)
{
    json_t *list = json_array();
    for (Channel channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
        const char *value = NULL;
        for (int i = 0; (value = args_each(&cli->args, channel_name(channel), &i)) != NULL;) {
            json_t *entry =
                json_pack("{s:s, s:s}", "channel", channel_name(channel), "address", value);
            if (entry == NULL) {
                json_decref(list);
                return error_set(err, ERROR_USAGE, "--%s is not UTF-8", channel_name(channel));
            }
            (void)json_array_append_new(list, entry);
        }
    }
    (void)json_object_set_new(record, "addresses", list);
    return true;
}

static bool add_labels(const Cli *cli, json_t *record, Error *err)
{
    const char *label = NULL;
    json_t *list = json_array();
    for (int i = 0; (label = args_each(&cli->args, "label", &i)) != NULL;) {
        if (json_array_append_new(list, json_string(label)) != 0) {
            json_decref(list);
            return error_set(err, ERROR_USAGE, "--label is not UTF-8");
        }
    }
    return json_object_set_new(record, "labels", list) == 0;
}

static bool split_pair(
    Cli *cli, const char *text, char border, const char *flag, const char **ret_left,
    const char **ret_right, Error *err)
{
    Str whole = str_from(text);
    ptrdiff_t at = str_find(whole, border);
    if (at <= 0 || (size_t)at + 1 >= whole.len) {
        return error_set(
            err, ERROR_USAGE, "--%s '%s': expected two parts with a '%c' between", flag, text,
            border);
    }
    *ret_left = arena_cstr(cli->arena, str_slice(whole, 0, (size_t)at));
    *ret_right = arena_cstr(cli->arena, str_slice(whole, (size_t)at + 1, whole.len));
    return true;
}

static bool add_pairs(Cli *cli, json_t *record, Error *err)
{
    const char *left = NULL;
    const char *right = NULL;
    const char *identity = args_flag(&cli->args, "identity");
    const char *quiet = args_flag(&cli->args, "quiet-hours");
    if (identity != NULL) {
        if (!split_pair(cli, identity, ':', "identity", &left, &right, err) ||
            !set_text(record, "identity_type", left, err) ||
            !set_text(record, "identity_id", right, err)) {
            return false;
        }
    }
    if (quiet != NULL) {
        if (!split_pair(cli, quiet, '-', "quiet-hours", &left, &right, err)) {
            return false;
        }
        json_t *hours = json_pack("{s:s, s:s}", "start", left, "end", right);
        (void)json_object_set_new(record, "quiet_hours", hours);
    }
    return true;
}

static bool add_flags(Cli *cli, json_t *record, Error *err)
{
    static const char *const fields[][2] = {
        {"name", "name"},
        {"locale", "locale"},
        {"time-zone", "time_zone"},
        {"guardian", "guardian_id"},
        {"guardian-routing", "guardian_routing"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!set_text(record, fields[i][1], args_flag(&cli->args, fields[i][0]), err)) {
            return false;
        }
    }
    if (args_has(&cli->args, "minor")) {
        (void)json_object_set_new(record, "minor", json_true());
    }
    return add_pairs(cli, record, err) && add_labels(cli, record, err) &&
           add_addresses(cli, record, err);
}

int cmd_recipient_put(Cli *cli)
{
    Error err = {0};
    const char *id = args_word(&cli->args, 0);
    const char *file = args_flag(&cli->args, "file");
    json_t *record = file != NULL ? read_json(cli, file, &err) : json_object();
    if (record == NULL || (file == NULL && !add_flags(cli, record, &err))) {
        json_decref(record);
        return cli_fail(cli, &err);
    }
    const char *path =
        id != NULL ? arena_printf(cli->arena, "/v1/recipients/%s", id) : "/v1/recipients";
    return send_object(cli, id != NULL ? "PUT" : "POST", path, record);
}

// ---- get, delete ----

static const char *escape(Cli *cli, const char *name, const char *value)
{
    return arena_printf(cli->arena, "%s=%s", name, api_client_escape(cli, value));
}

static const char *find_path(Cli *cli, Error *err)
{
    const char *address = args_flag(&cli->args, "address");
    const char *identity = args_flag(&cli->args, "identity");
    const char *left = NULL;
    const char *right = NULL;
    if (address != NULL) {
        return arena_printf(cli->arena, "/v1/recipients?%s", escape(cli, "address", address));
    }
    if (identity != NULL && split_pair(cli, identity, ':', "identity", &left, &right, err)) {
        return arena_printf(
            cli->arena, "/v1/recipients?%s&%s", escape(cli, "identity_type", left),
            escape(cli, "identity_id", right));
    }
    if (identity == NULL) {
        (void)error_set(
            err, ERROR_USAGE,
            "no recipient is named: give an id, --address ADDRESS or --identity TYPE:ID");
    }
    return NULL;
}

static bool take_record(void *ctx, const json_t *record)
{
    return json_array_append(ctx, (json_t *)(uintptr_t)record) == 0;
}

// All pages as one list.
static int print_found(Cli *cli, const char *path)
{
    json_t *found = json_array();
    int status = api_client_list(cli, path, take_record, found);
    if (status == EXIT_DONE && !cli->json && json_array_size(found) == 0) {
        cli_note_empty(cli, "recipient with it");
    }
    for (size_t i = 0; status == EXIT_DONE && !cli->json && i < json_array_size(found); i++) {
        printf("%s", i > 0 ? "\n" : "");
        (void)api_client_show(cli, json_array_get(found, i));
    }
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(found);
    }
    json_decref(found);
    return status;
}

int cmd_recipient_get(Cli *cli)
{
    Error err = {0};
    const char *id = args_word(&cli->args, 0);
    const char *path =
        id != NULL ? arena_printf(cli->arena, "/v1/recipients/%s", id) : find_path(cli, &err);
    if (path == NULL) {
        return cli_fail(cli, &err);
    }
    if (args_has(&cli->args, "reveal")) {
        path = arena_printf(cli->arena, "%s%creveal=true", path, id != NULL ? '?' : '&');
    }
    return id != NULL ? api_client_print(cli, "GET", path, (Str){NULL, 0}) : print_found(cli, path);
}

int cmd_recipient_delete(Cli *cli)
{
    const char *path = arena_printf(cli->arena, "/v1/recipients/%s", args_word(&cli->args, 0));
    return api_client_print(cli, "DELETE", path, (Str){NULL, 0});
}

// ---- prefs ----

// "marketing/email", "marketing", "any/sms"; what is left out is any.
static json_t *scope_object(Cli *cli, Str scope)
{
    Str rest = scope;
    Str category = STR_EMPTY;
    (void)str_split(&rest, '/', &category);
    return json_pack(
        "{s:s, s:s}", "category", category.len > 0 ? arena_cstr(cli->arena, category) : "any",
        "channel", rest.len > 0 ? arena_cstr(cli->arena, rest) : "any");
}

// "off", "immediate", "hourly", "daily@08:30", "weekly@08:30/5", "clear".
static bool set_preference(Cli *cli, json_t *entry, Str choice, Error *err)
{
    Str at = choice;
    Str frequency = STR_EMPTY;
    (void)str_split(&at, '@', &frequency);
    if (str_eq(choice, STR("off"))) {
        return json_object_set_new(entry, "off", json_true()) == 0;
    }
    Str day = at;
    Str minute = STR_EMPTY;
    (void)str_split(&day, '/', &minute);
    int64_t weekday = 0;
    if (day.len > 0 && !str_to_i64(day, &weekday)) {
        return error_set(err, ERROR_USAGE, "'" STR_FMT "' is not a weekday, 1 to 7", STR_ARG(day));
    }
    if (day.len > 0) {
        (void)json_object_set_new(entry, "weekday", json_integer(weekday));
    }
    if (minute.len > 0) {
        (void)json_object_set_new(entry, "at", json_string(arena_cstr(cli->arena, minute)));
    }
    return json_object_set_new(
               entry, "frequency", json_string(arena_cstr(cli->arena, frequency))) == 0 ||
           error_set(err, ERROR_USAGE, "--set is not UTF-8");
}

static bool apply_set(Cli *cli, json_t *list, const char *text, Error *err)
{
    Str choice = str_from(text);
    Str scope = STR_EMPTY;
    if (str_find(choice, '=') <= 0 || !str_split(&choice, '=', &scope)) {
        return error_set(err, ERROR_USAGE, "--set '%s': expected CATEGORY[/CHANNEL]=CHOICE", text);
    }
    json_t *entry = scope_object(cli, scope);
    for (size_t i = json_array_size(list); i-- > 0;) {
        const json_t *one = json_array_get(list, i);
        if (json_equal(json_object_get(one, "category"), json_object_get(entry, "category")) &&
            json_equal(json_object_get(one, "channel"), json_object_get(entry, "channel"))) {
            (void)json_array_remove(list, i);
        }
    }
    if (str_eq(choice, STR("clear"))) {
        json_decref(entry);
        return true;
    }
    if (!set_preference(cli, entry, choice, err)) {
        json_decref(entry);
        return false;
    }
    return json_array_append_new(list, entry) == 0;
}

// What stands there now, without what only an answer has.
static json_t *fetch_preferences(Cli *cli, const char *path, int *ret_status)
{
    Error err = {0};
    ApiAnswer answer;
    json_t *list = NULL;
    ApiClient *client = api_client_new(cli, &err);
    *ret_status = EXIT_FAILED;
    if (client == NULL || !api_client_call(client, "GET", path, (Str){NULL, 0}, &answer, &err)) {
        (void)cli_fail(cli, &err);
    } else if (answer.status != 200) {
        (void)api_client_explain(client, &answer, &err);
        (void)cli_fail(cli, &err);
        *ret_status = answer.status == 404 ? EXIT_NOT_FOUND : EXIT_FAILED;
    } else {
        list = json_deep_copy(json_object_get(answer.json, "preferences"));
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        (void)json_object_del(json_array_get(list, i), "updated_at");
    }
    api_client_free(client);
    return list;
}

static int change_preferences(Cli *cli, const char *path)
{
    Error err = {0};
    int status = EXIT_DONE;
    const char *text = NULL;
    json_t *list = fetch_preferences(cli, path, &status);
    if (list == NULL) {
        return status;
    }
    for (int i = 0; (text = args_each(&cli->args, "set", &i)) != NULL;) {
        if (!apply_set(cli, list, text, &err)) {
            json_decref(list);
            return cli_fail(cli, &err);
        }
    }
    return send_object(cli, "PUT", path, list);
}

int cmd_recipient_prefs(Cli *cli)
{
    Error err = {0};
    const char *id = args_word(&cli->args, 0);
    const char *file = args_flag(&cli->args, "file");
    const char *path = arena_printf(cli->arena, "/v1/recipients/%s/preferences", id);
    bool leave = args_has(&cli->args, "unsubscribe");
    if (leave || args_has(&cli->args, "resubscribe")) {
        const char *place = arena_printf(cli->arena, "/v1/recipients/%s/unsubscription", id);
        return send_object(cli, "PUT", place, json_pack("{s:b}", "unsubscribed", leave));
    }
    if (file != NULL) {
        json_t *list = read_json(cli, file, &err);
        return list != NULL ? send_object(cli, "PUT", path, list) : cli_fail(cli, &err);
    }
    if (args_has(&cli->args, "set")) {
        return change_preferences(cli, path);
    }
    return api_client_print(cli, "GET", path, (Str){NULL, 0});
}

// ---- consent ----

static void add_consents(Cli *cli, json_t *list, const char *flag, bool granted)
{
    const char *scope = NULL;
    const char *source = args_flag(&cli->args, "source");
    for (int i = 0; (scope = args_each(&cli->args, flag, &i)) != NULL;) {
        json_t *entry = scope_object(cli, str_from(scope));
        (void)json_object_set_new(entry, "granted", json_boolean(granted));
        (void)json_object_set_new(entry, "source", json_string(source != NULL ? source : "cli"));
        (void)json_array_append_new(list, entry);
    }
}

int cmd_recipient_consent(Cli *cli)
{
    const char *path =
        arena_printf(cli->arena, "/v1/recipients/%s/consents", args_word(&cli->args, 0));
    json_t *list = json_array();
    add_consents(cli, list, "grant", true);
    add_consents(cli, list, "withdraw", false);
    if (json_array_size(list) == 0) {
        json_decref(list);
        return api_client_print(cli, "GET", path, (Str){NULL, 0});
    }
    return send_object(cli, "PUT", path, list);
}
