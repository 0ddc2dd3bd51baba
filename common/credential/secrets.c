// SPDX-License-Identifier: Apache-2.0
#include "common/credential/secrets.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/credential/secret_read.h"

typedef struct Entry {
    Secrets *secrets;
    Arena *arena; // holds this and its names
    SecretName name;
    Reference reference;
    const char *reference_text;
    char shown[SECRET_SHOWN_MAX];
    char *text; // NULL: it was never read
    size_t len;
    SecretStamp stamp;
    Error err; // of the last reading
    SecretRead *reading;
    bool busy;  // `done` will come
    bool gone;  // not wanted any more; freed when it is not busy
    bool again; // wanted again while it was read
    bool used;
    bool staged;        // nothing uses it yet
    int64_t read_at_us; // when the last reading began, of clock_mono_us()
} Entry;

struct Secrets {
    SecretsOptions options;
    char *folders_text;
    SecretRules rules;
    Map *entries; // "owner/vendor/name" -> Entry
    Map *series;  // the same -> Metric, for ever
    uv_timer_t timer;
    size_t busy;
    bool closing, timer_closed;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

enum { KEY_MAX = 512 }; // the longest: a DKIM key's, with its domain and selector

static Str key_of(const SecretName *name, char out[KEY_MAX])
{
    int len = snprintf(
        out, KEY_MAX, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(name->owner), STR_ARG(name->vendor),
        STR_ARG(name->name));
    return str_of(out, len > 0 && len < KEY_MAX ? (size_t)len : 0);
}

static void log_secret(LogLevel level, const char *event, const Entry *entry, const Error *err)
{
    static const Error none = {.kind = ERROR_NONE};
    LogField about[] = {
        log_str("tenant", entry->name.owner),    log_str("vendor", entry->name.vendor),
        log_str("credential", entry->name.name), log_text("reference", entry->shown),
        log_error(err == NULL ? &none : err),    {.type = LOG_END},
    };
    if (err == NULL) {
        about[4] = (LogField){.type = LOG_END};
    }
    log_line(level, event, about);
}

// ---- life of an entry ----

static void wipe(Entry *entry)
{
    if (entry->text != NULL) {
        OPENSSL_cleanse(entry->text, entry->len);
        free(entry->text);
    }
    entry->text = NULL;
    entry->len = 0;
}

static void free_entry(Entry *entry)
{
    wipe(entry);
    arena_free(entry->arena);
}

// The map's own freeing: one that is being read is freed when that has ended.
static void drop_entry(void *value)
{
    Entry *entry = value;
    entry->gone = true;
    if (!entry->busy) {
        free_entry(entry);
    } else if (entry->reading != NULL) {
        secret_read_stop(entry->reading);
    }
}

static void try_close(Secrets *secrets)
{
    if (secrets->closing && secrets->timer_closed && secrets->busy == 0 &&
        secrets->on_closed != NULL) {
        void (*on_closed)(void *ctx) = secrets->on_closed;
        secrets->on_closed = NULL;
        on_closed(secrets->closed_ctx);
    }
}

// ---- reading ----

static void log_failure(const Entry *entry)
{
    if (entry->text != NULL) {
        log_secret(
            LOG_WARN, "a credential cannot be read again; the one before is used", entry,
            &entry->err);
    } else if (entry->staged) {
        log_secret(LOG_INFO, "a staged credential cannot be read yet", entry, &entry->err);
    } else {
        log_secret(LOG_ERROR, "a credential cannot be read and is not used", entry, &entry->err);
    }
}

static void note_failure(Entry *entry, const Error *err)
{
    bool same = entry->err.kind != ERROR_NONE && strcmp(entry->err.text, err->text) == 0;
    entry->err = *err;
    if (!same && err->kind != ERROR_CANCELLED) { // once, not at each look
        log_failure(entry);
    }
}

static void take_text(Entry *entry, Str text)
{
    bool first = entry->text == NULL;
    bool other = first || !str_eq(str_of(entry->text, entry->len), text);
    if (!other) {
        return;
    }
    wipe(entry);
    entry->text = xmalloc(text.len);
    memcpy(entry->text, text.ptr, text.len);
    entry->len = text.len;
    entry->used = false;
    log_secret(LOG_INFO, first ? "a credential was read" : "a credential was rotated", entry, NULL);
    const SecretsOptions *options = &entry->secrets->options;
    if (options->on_changed != NULL) {
        options->on_changed(options->ctx, &entry->name);
    }
    if (options->on_text != NULL) {
        options->on_text(options->ctx, &entry->name, text);
    }
}

static void start_reading(Entry *entry);

static void on_read(void *ctx, Str text, bool same, const SecretStamp *stamp, const Error *err)
{
    Entry *entry = ctx;
    Secrets *secrets = entry->secrets;
    entry->busy = false;
    entry->reading = NULL;
    secrets->busy--;
    if (entry->gone) {
        free_entry(entry);
    } else if (err != NULL) {
        entry->stamp = (SecretStamp){0}; // so that it counts as another file when it is back
        note_failure(entry, err);
    } else {
        entry->stamp = *stamp;
        error_clear(&entry->err);
        if (!same) {
            take_text(entry, text);
        }
        if (entry->again && !secrets->closing) {
            start_reading(entry);
        }
    }
    try_close(secrets);
}

static void start_reading(Entry *entry)
{
    Secrets *secrets = entry->secrets;
    entry->again = false;
    entry->busy = true;
    secrets->busy++;
    entry->read_at_us = clock_mono_us();
    SecretRead *reading = secret_read(
        secrets->options.loop, &secrets->rules, &entry->reference, &entry->stamp, on_read, entry);
    if (reading != NULL) {
        entry->reading = reading;
    }
}

static bool is_due(const Entry *entry, int64_t now_us)
{
    switch (entry->reference.kind) {
    case REFERENCE_FILE:
        return true;
    case REFERENCE_EXEC: {
        int64_t every_ms = entry->text == NULL ? SECRETS_REFRESH_MS : SECRETS_EXEC_EVERY_MS;
        return now_us - entry->read_at_us >= every_ms * 1000;
    }
    case REFERENCE_ENV:
        return false;
    }
    return false;
}

static void on_timer_look(uv_timer_t *timer)
{
    Secrets *secrets = timer->data;
    int64_t now_us = clock_mono_us();
    size_t at = 0;
    Str key;
    void *value;
    while (map_next(secrets->entries, &at, &key, &value)) {
        Entry *entry = value;
        if (!entry->busy && is_due(entry, now_us)) {
            start_reading(entry);
        }
    }
}

// ---- wanting ----

static Entry *find_entry(const Secrets *secrets, const SecretName *name)
{
    char space[KEY_MAX];
    return map_get(secrets->entries, key_of(name, space));
}

static void set_staged(Entry *entry, bool staged)
{
    bool begins = entry->staged && !staged;
    entry->staged = staged;
    if (begins && entry->text == NULL && entry->err.kind != ERROR_NONE) {
        log_failure(entry); // what was a note
    }
}

static bool want(Secrets *secrets, const SecretName *name, Str reference, bool staged, Error *err)
{
    char space[KEY_MAX];
    Str key = key_of(name, space);
    Reference parsed;
    Entry *there = find_entry(secrets, name);
    if (there != NULL && str_eq(str_from(there->reference_text), reference)) {
        set_staged(there, staged);
        return true;
    }
    if (!reference_parse(reference, &parsed, err)) {
        return error_wrap(err, "reference");
    }
    if (key.len == 0 || (there == NULL && map_count(secrets->entries) >= SECRETS_MAX)) {
        return error_set(err, ERROR_PERMANENT, "more than %d credentials are wanted", SECRETS_MAX);
    }
    Arena *arena = arena_new(0);
    Entry *entry = arena_zalloc(arena, sizeof *entry);
    entry->secrets = secrets;
    entry->arena = arena;
    entry->staged = staged;
    entry->name = (SecretName){
        arena_str(arena, name->owner), arena_str(arena, name->vendor),
        arena_str(arena, name->name)};
    entry->reference_text = arena_cstr(arena, reference);
    (void)reference_parse(str_from(entry->reference_text), &entry->reference, NULL);
    secret_shown(&entry->reference, entry->shown);
    map_put(secrets->entries, key, entry);
    start_reading(entry);
    return true;
}

bool secrets_want(Secrets *secrets, const SecretName *name, Str reference, Error *err)
{
    return want(secrets, name, reference, false, err);
}

bool secrets_stage(Secrets *secrets, const SecretName *name, Str reference, Error *err)
{
    return want(secrets, name, reference, true, err);
}

void secrets_forget(Secrets *secrets, const SecretName *name)
{
    char space[KEY_MAX];
    (void)map_remove(secrets->entries, key_of(name, space));
}

void secrets_refresh(Secrets *secrets, const SecretName *name)
{
    Entry *entry = find_entry(secrets, name);
    if (entry == NULL || clock_mono_us() - entry->read_at_us < SECRETS_REFRESH_MS * INT64_C(1000)) {
        return;
    }
    if (entry->busy) {
        entry->again = true;
    } else {
        start_reading(entry);
    }
}

// ---- using ----

static Metric *new_series(Secrets *secrets, const SecretName *name, Str key)
{
    char metric[80];
    Buf labels;
    bool full = map_count(secrets->series) >= SECRETS_SERIES_MAX;
    Str other = STR("other");
    Str shared = STR("//other");
    Metric *there = full ? map_get(secrets->series, shared) : NULL;
    if (there != NULL) {
        return there;
    }
    buf_init(&labels, 1024);
    (void)metrics_label(&labels, "tenant", full ? other : name->owner);
    (void)metrics_label(&labels, "vendor", full ? other : name->vendor);
    (void)metrics_label(&labels, "credential", full ? other : name->name);
    (void)snprintf(
        metric, sizeof metric, "stentor_%s_credential_uses_total", secrets->options.service);
    there = metrics_counter(
        secrets->options.metrics, metric, buf_c(&labels), "Calls that a credential was used for");
    buf_done(&labels);
    map_put(secrets->series, full ? shared : key, there);
    return there;
}

static void count_use(Entry *entry)
{
    Secrets *secrets = entry->secrets;
    char space[KEY_MAX];
    Str key = key_of(&entry->name, space);
    if (!entry->used) {
        entry->used = true;
        log_secret(LOG_INFO, "a credential is used for the first time", entry, NULL);
    }
    if (secrets->options.metrics != NULL) {
        Metric *series = map_get(secrets->series, key);
        metric_add(series != NULL ? series : new_series(secrets, &entry->name, key), 1);
    }
}

bool secrets_use(Secrets *secrets, const SecretName *name, Str *ret, Error *err)
{
    Entry *entry = find_entry(secrets, name);
    if (entry == NULL) {
        return error_set(
            err, ERROR_CONFIG, "credential '" STR_FMT "' of " STR_FMT " is not known",
            STR_ARG(name->name), STR_ARG(name->vendor));
    }
    if (entry->text == NULL && entry->err.kind == ERROR_NONE) {
        return error_set(
            err, ERROR_TRANSIENT, "credential '" STR_FMT "' of " STR_FMT " is being read",
            STR_ARG(name->name), STR_ARG(name->vendor));
    }
    if (entry->text == NULL) {
        return error_set(
            err, ERROR_CONFIG, "credential '" STR_FMT "' of " STR_FMT ": %s", STR_ARG(name->name),
            STR_ARG(name->vendor), entry->err.text);
    }
    count_use(entry);
    *ret = str_of(entry->text, entry->len);
    return true;
}

bool secrets_failed(const Secrets *secrets, const SecretName *name, Error *ret)
{
    const Entry *entry = find_entry(secrets, name);
    if (entry == NULL || entry->err.kind == ERROR_NONE) {
        return false;
    }
    *ret = entry->err;
    return true;
}

// ---- life ----

Secrets *secrets_new(const SecretsOptions *options, Error *err)
{
    Secrets *secrets = xcalloc(1, sizeof *secrets);
    secrets->options = *options;
    secrets->folders_text = xstrdup(options->folders);
    if (!secret_rules_parse(str_from(secrets->folders_text), &secrets->rules, err)) {
        free(secrets->folders_text);
        free(secrets);
        return NULL;
    }
    secrets->rules.exec_ms = options->exec_ms > 0 ? options->exec_ms : SECRET_EXEC_MS;
    int64_t poll_ms = options->poll_ms > 0 ? options->poll_ms : SECRETS_POLL_MS;
    secrets->entries = map_new(drop_entry);
    secrets->series = map_new(NULL);
    secrets->timer.data = secrets;
    (void)uv_timer_init(options->loop, &secrets->timer);
    (void)uv_timer_start(&secrets->timer, on_timer_look, (uint64_t)poll_ms, (uint64_t)poll_ms);
    return secrets;
}

static void on_timer_closed(uv_handle_t *handle)
{
    Secrets *secrets = handle->data;
    secrets->timer_closed = true;
    try_close(secrets);
}

void secrets_close(Secrets *secrets, void (*on_closed)(void *ctx), void *ctx)
{
    size_t at = 0;
    Str key;
    void *value;
    secrets->closing = true;
    secrets->on_closed = on_closed;
    secrets->closed_ctx = ctx;
    uv_close((uv_handle_t *)&secrets->timer, on_timer_closed);
    while (map_next(secrets->entries, &at, &key, &value)) {
        Entry *entry = value;
        if (entry->reading != NULL) {
            secret_read_stop(entry->reading);
        }
    }
}

void secrets_free(Secrets *secrets)
{
    if (secrets != NULL) {
        map_free(secrets->entries);
        map_free(secrets->series);
        free(secrets->folders_text);
        free(secrets);
    }
}
