// SPDX-License-Identifier: Apache-2.0
// trigger put, list, show, delete, try: which domain events become which notifications. A put is
// checked by the very rules that ingest has; a try makes what ingest would make, without a server
// but for CONFIG.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/hash.h"
#include "common/session/config_put.h"
#include "common/trigger/trigger_map.h"
#include "common/trigger/trigger_try.h"
#include "services/cli/cli.h"
#include "services/cli/config/config_walk.h"

enum { FILE_BYTES_MAX = 1024 * 1024 };

typedef Stentor__V1__Trigger Trigger;

// What CONFIG says of triggers and, where it is asked for, of one template.
typedef struct Known {
    Session session;
    TriggerMap *map;
    Catalog *catalog;
} Known;

// ---- CONFIG ----

// An entry that cannot be read is passed over, as every service does.
static bool note_entry(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Known *known = ctx;
    Str rest = message->subject;
    Str kind = STR_EMPTY;
    Str tenant = STR_EMPTY;
    (void)(str_split(&rest, '.', &kind) && str_split(&rest, '.', &kind) && str_split(&rest, '.', &tenant));
    if (reason != NULL) {
        return true;
    }
    if (str_eq(kind, STR("trigger"))) {
        (void)trigger_map_changed(
            known->map, tenant, rest, message->payload, message->sequence, NULL);
    } else if (str_eq(kind, STR("tenant"))) {
        (void)catalog_tenant_changed(known->catalog, tenant, message->payload, NULL);
    } else {
        (void)catalog_template_changed(known->catalog, tenant, rest, message->payload, NULL);
    }
    return true;
}

static bool read_entries(Known *known, const char *filter, Error *err)
{
    return config_walk(&known->session, &(ConfigPart){.filter = filter}, note_entry, known, err);
}

static bool known_open(Known *known, Cli *cli, Error *err)
{
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", err) ||
        !session_open(&known->session, &cli->settings.session, err)) {
        return false;
    }
    known->map = trigger_map_new();
    known->catalog = catalog_new();
    return true;
}

static void known_close(Known *known)
{
    session_close(&known->session);
    trigger_map_free(known->map);
    catalog_free(known->catalog);
}

static bool read_triggers(Known *known, Cli *cli, Error *err)
{
    const char *own = arena_printf(cli->arena, "cfg.trigger.%s.*", cli->settings.tenant);
    return read_entries(known, own, err) && (strcmp(cli->settings.tenant, "platform") == 0 ||
                                             read_entries(known, "cfg.trigger.platform.*", err));
}

static bool read_template(Known *known, Cli *cli, const char *key, Error *err)
{
    return read_entries(known, arena_printf(cli->arena, "cfg.template.*.%s.*", key), err);
}

// ---- showing ----

static void print_json(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    printf("%s\n", text);
    free(text);
}

static json_t *tell(const Cli *cli, const Trigger *trigger)
{
    json_t *object = trigger_to_json(trigger);
    bool shared = strcmp(trigger->tenant, "platform") == 0;
    bool own = strcmp(trigger->tenant, cli->settings.tenant) == 0;
    (void)json_object_set_new(object, "scope", json_string(shared ? "platform" : "tenant"));
    (void)json_object_set_new(object, "own", json_boolean(own));
    return object;
}

// A value as a person reads it: texts bare, everything else as JSON.
static void print_value(const char *name, const json_t *value)
{
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    printf("%-18s %s\n", name, text == NULL ? json_string_value(value) : text);
    free(text);
}

static void print_object(const Cli *cli, json_t *object)
{
    const char *name = NULL;
    json_t *value = NULL;
    if (cli->json) {
        print_json(object);
        return;
    }
    json_object_foreach(object, name, value)
    {
        print_value(name, value);
    }
}

static int fail_missing(const char *key)
{
    fprintf(stderr, "stentor: no trigger '%s'\n", key);
    return EXIT_NOT_FOUND;
}

// ---- put ----

typedef struct FieldFlag {
    const char *flag;
    const char *field;
} FieldFlag;

// clang-format off
static const FieldFlag TEXT_FLAGS[] = {
    {"event", "event_type"}, {"template", "template"}, {"resolver", "resolver"}, {"channel", "channel"}, {"category", "category"},
    {"priority", "priority"}, {"name-path", "name_path"}, {"locale-path", "locale_path"}, {"anchor", "anchor"},
    {"subject-path", "subject_path"},
};
// clang-format on

static bool load_file(Cli *cli, json_t **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "file");
    json_error_t where;
    Str text = STR_EMPTY;
    if (path == NULL) {
        *ret = json_object();
        return true;
    }
    if (!cli_read_file(cli, path, FILE_BYTES_MAX, &text, err)) {
        return error_wrap(err, "--file");
    }
    json_t *object = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(object)) {
        json_decref(object);
        return error_set(
            err, ERROR_PERMANENT, "--file '%s' is not a JSON object: line %d: %s", path, where.line,
            where.text);
    }
    (void)json_object_del(object, "key"); // as `trigger show --json` prints it
    *ret = object;
    return true;
}

static bool set_flags(Cli *cli, json_t *object, Error *err)
{
    for (size_t i = 0; i < sizeof TEXT_FLAGS / sizeof *TEXT_FLAGS; i++) {
        const char *value = args_flag(&cli->args, TEXT_FLAGS[i].flag);
        if (value != NULL &&
            json_object_set_new(object, TEXT_FLAGS[i].field, json_string(value)) != 0) {
            return error_set(err, ERROR_PERMANENT, "--%s is not UTF-8", TEXT_FLAGS[i].flag);
        }
    }
    int64_t offset_s = 0;
    if (!args_int(&cli->args, "offset", 0, -INT32_MAX, INT32_MAX, &offset_s, err)) {
        return false;
    }
    if (args_has(&cli->args, "offset")) {
        (void)json_object_set_new(object, "offset_s", json_integer(offset_s));
    }
    if (args_has(&cli->args, "disabled")) {
        (void)json_object_set_new(object, "enabled", json_false());
    }
    json_t *list = json_array();
    const char *type = NULL;
    for (int i = 0; (type = args_each(&cli->args, "obsoleted-by", &i)) != NULL;) {
        (void)json_array_append_new(list, json_string(type));
    }
    if (json_array_size(list) > 0) {
        (void)json_object_set(object, "obsoleted_by", list);
    }
    json_decref(list);
    return true;
}

static bool make_trigger(Cli *cli, Trigger *ret, Error *err)
{
    json_t *object = NULL;
    Problem problem = {0};
    if (!load_file(cli, &object, err)) {
        return false;
    }
    bool ok = set_flags(cli, object, err);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (ok && !trigger_from_json(
                  str_from(text), str_from(cli->settings.tenant),
                  str_from(args_word(&cli->args, 0)), cli->arena, ret, &problem)) {
        ok = error_set(err, ERROR_PERMANENT, "field '%s': %s", problem.field, problem.detail);
    }
    free(text);
    ret->updated_at_us = clock_now_us();
    ret->updated_by = arena_cstr(cli->arena, STR("cli"));
    return ok;
}

// Unknown is a warning only: the template may come later than the trigger.
static void warn_of_template(Known *known, Cli *cli, const Trigger *trigger)
{
    Error err = {0};
    FieldError wrong = {.field = ""};
    Request request = {
        .template_key = str_from(trigger->template_),
        .channel = trigger->channel == 0 ? CHANNEL_EMAIL : (Channel)trigger->channel,
    };
    if (read_template(known, cli, trigger->template_, &err) &&
        !catalog_freeze(known->catalog, str_from(trigger->tenant), &request, cli->arena, &wrong)) {
        fprintf(stderr, "stentor: warning: %s\n", wrong.text);
    }
}

int cmd_trigger_put(Cli *cli)
{
    Error err = {0};
    Known known;
    Trigger trigger;
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", &err) ||
        !make_trigger(cli, &trigger, &err) || !known_open(&known, cli, &err)) {
        return cli_fail(&err);
    }
    ConfigEntry entry = {
        "trigger", str_from(trigger.tenant), str_from(trigger.key), &trigger.base, 0};
    bool ok = config_put(&known.session, cli->arena, &entry, &err);
    if (ok) {
        warn_of_template(&known, cli, &trigger);
    }
    known_close(&known);
    if (!ok) {
        return cli_fail(&err);
    }
    json_t *object = tell(cli, &trigger);
    print_object(cli, object);
    json_decref(object);
    return EXIT_DONE;
}

// ---- list and show ----

static void print_row(const Cli *cli, const Trigger *t, bool in_force)
{
    const char *whose = strcmp(t->tenant, cli->settings.tenant) == 0 ? "own" : "platform";
    const char *state = t->disabled ? "disabled" : in_force ? "in force" : "overridden";
    printf(
        "%-24s %-24s %-20s %-9s %-10s %s\n", t->key, t->event_type, t->template_, whose, state,
        t->resolver);
}

static void list_of(const Cli *cli, const Known *known, Str tenant, json_t *list)
{
    size_t count = 0;
    bool shared = !str_eq(tenant, str_from(cli->settings.tenant));
    const Trigger **all = trigger_map_list(known->map, tenant, cli->arena, &count);
    for (size_t i = 0; i < count; i++) {
        const Trigger *own =
            trigger_map_own(known->map, str_from(cli->settings.tenant), str_from(all[i]->key));
        bool in_force = !shared || own == NULL;
        json_t *object = tell(cli, all[i]);
        (void)json_object_set_new(object, "in_force", json_boolean(in_force));
        (void)json_array_append_new(list, object);
        if (!cli->json) {
            print_row(cli, all[i], in_force);
        }
    }
}

int cmd_trigger_list(Cli *cli)
{
    Error err = {0};
    Known known;
    if (!known_open(&known, cli, &err)) {
        return cli_fail(&err);
    }
    bool ok = read_triggers(&known, cli, &err);
    json_t *list = json_array();
    if (ok) {
        list_of(cli, &known, str_from(cli->settings.tenant), list);
    }
    if (ok && strcmp(cli->settings.tenant, "platform") != 0) {
        list_of(cli, &known, TRIGGER_PLATFORM, list);
    }
    known_close(&known);
    if (ok && cli->json) {
        print_json(list);
    }
    json_decref(list);
    return ok ? EXIT_DONE : cli_fail(&err);
}

int cmd_trigger_show(Cli *cli)
{
    Error err = {0};
    Known known;
    const char *key = args_word(&cli->args, 0);
    if (!known_open(&known, cli, &err)) {
        return cli_fail(&err);
    }
    bool ok = read_triggers(&known, cli, &err);
    const Trigger *trigger =
        ok ? trigger_map_get(known.map, str_from(cli->settings.tenant), str_from(key)) : NULL;
    json_t *object = trigger == NULL ? NULL : tell(cli, trigger);
    known_close(&known);
    if (!ok) {
        return cli_fail(&err);
    }
    if (object == NULL) {
        return fail_missing(key);
    }
    print_object(cli, object);
    json_decref(object);
    return EXIT_DONE;
}

// ---- delete ----

static bool publish_nothing(Known *known, Cli *cli, const char *key, Error *err)
{
    char subject[SUBJECT_SIZE];
    char event_id[EVENT_ID_SIZE];
    subject_config(subject, "trigger", str_from(cli->settings.tenant), str_from(key));
    const char *when = arena_printf(cli->arena, "%lld", (long long)clock_now_us());
    event_id_derive("config", str_from(subject), str_from(when), event_id);
    BusOut out = {.subject = subject, .event_id = str_from(event_id)};
    return config_replace(&known->session, cli->arena, &out, 0, err);
}

int cmd_trigger_delete(Cli *cli)
{
    Error err = {0};
    Known known;
    const char *key = args_word(&cli->args, 0);
    if (!known_open(&known, cli, &err)) {
        return cli_fail(&err);
    }
    Str tenant = str_from(cli->settings.tenant);
    bool ok = read_triggers(&known, cli, &err);
    bool own = ok && trigger_map_own(known.map, tenant, str_from(key)) != NULL;
    bool shared = ok && trigger_map_own(known.map, TRIGGER_PLATFORM, str_from(key)) != NULL;
    ok = ok && (!own || publish_nothing(&known, cli, key, &err));
    known_close(&known);
    if (!ok) {
        return cli_fail(&err);
    }
    if (!own) {
        return fail_missing(key);
    }
    bool uncovered = shared && !str_eq(tenant, TRIGGER_PLATFORM);
    print_pairs(
        cli, (const char *const[]){
                 "trigger", key, "state",
                 uncovered ? "deleted, the platform's is in force" : "deleted", NULL});
    return EXIT_DONE;
}

// ---- try ----

static int print_trial(Cli *cli, json_t *told)
{
    size_t problems = json_array_size(json_object_get(told, "problems"));
    print_object(cli, told);
    json_decref(told);
    return problems == 0 ? EXIT_DONE : EXIT_FAILED;
}

static json_t *try_event(Known *known, Cli *cli, const Trigger *trigger, Str payload, Error *err)
{
    const char *self = arena_printf(cli->arena, "cfg.tenant.%s.self", cli->settings.tenant);
    if (!read_entries(known, self, err) || !read_template(known, cli, trigger->template_, err)) {
        return NULL;
    }
    const char *message = args_flag(&cli->args, "message");
    DomainInput input = {
        .tenant = str_from(cli->settings.tenant),
        .type = str_from(trigger->event_type),
        .payload = payload,
        .stream = "try",
        .stored_at_us = clock_now_us(),
        .content_type = message == NULL ? STR_EMPTY : STR("application/protobuf"),
        .message_type = str_from(message),
        .zone = catalog_tenant(known->catalog, str_from(cli->settings.tenant))->gate.zone,
    };
    return trigger_try(trigger, &input, known->catalog, input.stored_at_us, cli->arena, err);
}

int cmd_trigger_try(Cli *cli)
{
    Error err = {0};
    Known known;
    Str payload = STR_EMPTY;
    const char *key = args_word(&cli->args, 0);
    const char *path = args_flag(&cli->args, "event-file");
    if (path == NULL) {
        fprintf(stderr, "stentor: --event-file FILE is required\n");
        return EXIT_USAGE;
    }
    if (!cli_read_file(cli, path, FILE_BYTES_MAX, &payload, &err) ||
        !known_open(&known, cli, &err)) {
        return cli_fail(&err);
    }
    bool ok = read_triggers(&known, cli, &err);
    const Trigger *trigger =
        ok ? trigger_map_get(known.map, str_from(cli->settings.tenant), str_from(key)) : NULL;
    json_t *told = trigger == NULL ? NULL : try_event(&known, cli, trigger, payload, &err);
    known_close(&known);
    if (ok && trigger == NULL) {
        return fail_missing(key);
    }
    return told == NULL ? cli_fail(&err) : print_trial(cli, told);
}
