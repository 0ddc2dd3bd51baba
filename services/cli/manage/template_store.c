// SPDX-License-Identifier: Apache-2.0
#include "services/cli/manage/template_store.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/cli/config/config_walk.h"

enum { VERSION_PART_MAX = 999999, VERSIONS_MAX = 1000000 };

// ---- versions ----

bool parse_semver(Str text, Semver *ret)
{
    Str rest = text;
    Str token;
    int count = 0;
    while (str_split(&rest, '.', &token)) {
        if (count == 3 || !str_to_i64(token, &ret->part[count]) || ret->part[count] < 0 ||
            ret->part[count] > VERSION_PART_MAX) {
            return false;
        }
        count++;
    }
    return count == 3;
}

int compare_semver(Semver a, Semver b)
{
    for (int i = 0; i < 3; i++) {
        if (a.part[i] != b.part[i]) {
            return a.part[i] < b.part[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_stored(const void *a, const void *b)
{
    const StoredVersion *x = a;
    const StoredVersion *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : compare_semver(x->semver, y->semver);
}

// ---- reading ----

typedef struct Reading {
    Arena *arena;
    Arena *scratch;
    bool words;
    size_t room;
    TemplateStore *store;
} Reading;

static const char *keep(const Reading *reading, const char *text)
{
    return arena_cstr(reading->arena, str_from(text));
}

static StoredVersion *add_stored(Reading *reading)
{
    TemplateStore *store = reading->store;
    if (store->count == reading->room) {
        reading->room = reading->room == 0 ? 64 : reading->room * 2;
        StoredVersion *items = arena_array(reading->arena, reading->room, sizeof *items);
        if (store->count > 0) {
            memcpy(items, store->items, store->count * sizeof *items);
        }
        store->items = items;
    }
    return &store->items[store->count++];
}

static bool take_version(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Reading *reading = ctx;
    Error ignored = {0};
    arena_reset(reading->scratch);
    Arena *arena = reading->words ? reading->arena : reading->scratch;
    const Stentor__V1__TemplateVersion *version =
        (const Stentor__V1__TemplateVersion *)event_unpack(
            &stentor__v1__template_version__descriptor, message->payload, arena, &ignored);
    if (reason != NULL || message->payload.len == 0 || version == NULL ||
        reading->store->count == VERSIONS_MAX) {
        return true; // removed, or not ours
    }
    StoredVersion *stored = add_stored(reading);
    *stored = (StoredVersion){
        .tenant = keep(reading, version->tenant),
        .key = keep(reading, version->key),
        .version = keep(reading, version->version),
        .status = version->status,
        .channel = version->channel,
        .category = version->category,
        .published_at_us = version->published_at_us,
        .published_by = keep(reading, version->published_by),
        .approved_by = keep(reading, version->approved_by),
        .source = keep(reading, version->source),
        .provenance = keep(reading, version->provenance),
        .locale_count = version->n_locales,
        .whole = reading->words ? version : NULL,
        .sequence = message->sequence,
    };
    if (!parse_semver(str_from(version->version), &stored->semver)) {
        stored->semver = (Semver){{0, 0, 0}};
    }
    return true;
}

bool template_store_read(
    Session *session, Cli *cli, const char *tenant, const char *key, bool words, TemplateStore *ret,
    Error *err)
{
    *ret = (TemplateStore){0};
    Reading reading = {cli->arena, arena_new(0), words, 0, ret};
    const char *filter = key != NULL ? arena_printf(cli->arena, "cfg.template.%s.%s.*", tenant, key)
                                     : arena_printf(cli->arena, "cfg.template.%s.>", tenant);
    bool ok = config_walk(session, &(ConfigPart){.filter = filter}, take_version, &reading, err);
    arena_free(reading.scratch);
    if (ret->count > 0) {
        qsort(ret->items, ret->count, sizeof *ret->items, compare_stored);
    }
    return ok || error_wrap(err, "reading the templates of '%s'", tenant);
}

// What the tenant has of the key (all keys: NULL), else what the platform has.
static bool read_store(
    Session *session, Cli *cli, const char *key, bool words, TemplateStore *ret, Error *err)
{
    bool platform = args_has(&cli->args, "platform");
    const char *tenant = platform ? "platform" : cli->settings.tenant;
    if (!template_store_read(session, cli, tenant, key, words, ret, err)) {
        return false;
    }
    return ret->count > 0 || key == NULL || platform ||
           template_store_read(session, cli, "platform", key, words, ret, err);
}

bool template_store_open(
    Session *session, Cli *cli, const char *key, bool words, TemplateStore *ret, Error *err)
{
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", err)) {
        return false;
    }
    if (key != NULL && !id_is_key(str_from(key))) {
        return error_set(
            err, ERROR_PERMANENT, "'%s' is not a template key: 1 to 64 of a-z 0-9 '_' '-'", key);
    }
    if (!session_open(session, &cli->settings.session, err)) {
        return false;
    }
    if (!read_store(session, cli, key, words, ret, err)) {
        session_close(session);
        return false;
    }
    return true;
}

int template_not_found(const char *key, const char *version)
{
    fprintf(
        stderr, "stentor: there is no template '%s'%s%s\n", key, version != NULL ? " version " : "",
        version != NULL ? version : "");
    return EXIT_NOT_FOUND;
}

const StoredVersion *template_store_find(const TemplateStore *store, const char *version)
{
    for (size_t i = 0; i < store->count; i++) {
        if (strcmp(store->items[i].version, version) == 0) {
            return &store->items[i];
        }
    }
    return NULL;
}

const StoredVersion *template_store_best(const TemplateStore *store)
{
    for (size_t i = store->count; i > 0; i--) {
        if (store->items[i - 1].status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE) {
            return &store->items[i - 1];
        }
    }
    return store->count > 0 ? &store->items[store->count - 1] : NULL;
}

char *template_store_next(Cli *cli, const TemplateStore *store)
{
    Semver next = store->count > 0 ? store->items[store->count - 1].semver : (Semver){{1, 0, -1}};
    return arena_printf(
        cli->arena, "%lld.%lld.%lld", (long long)next.part[0], (long long)next.part[1],
        (long long)next.part[2] + 1);
}

// ---- writing ----

static char *subject_of(Cli *cli, const Stentor__V1__TemplateVersion *version)
{
    char *subject = arena_printf(
        cli->arena, "cfg.template.%s.%s.%s", version->tenant, version->key, version->version);
    // The subject ends with the version, whose dots would be tokens.
    char *tail = subject + strlen(subject) - strlen(version->version);
    for (char *c = tail; *c != '\0'; c++) {
        *c = *c == '.' ? '_' : *c;
    }
    return subject;
}

bool template_store_put(
    Session *session, Cli *cli, const TemplateStore *store,
    const Stentor__V1__TemplateVersion *version, Error *err)
{
    Str payload;
    char event_id[EVENT_ID_SIZE];
    char *subject = subject_of(cli, version);
    const StoredVersion *there = template_store_find(store, version->version);
    if (!event_pack(&version->base, cli->arena, &payload, err)) {
        return false;
    }
    event_id_derive(
        "config", str_from(subject),
        str_from(arena_printf(cli->arena, "%lld", (long long)clock_now_us())), event_id);
    const BusHeader expected = bus_replaces(there != NULL ? there->sequence : 0, cli->arena);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(event_id),
        .payload = payload,
        .headers = &expected,
        .header_count = 1,
    };
    return session_publish(session, &out, NULL, err) ||
           (err->kind == ERROR_CONFLICT
                ? error_set(
                      err, ERROR_CONFLICT, "version %s of '%s' was published by another meanwhile",
                      version->version, version->key)
                : false);
}
