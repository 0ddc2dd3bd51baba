// SPDX-License-Identifier: Apache-2.0
// The order of things: CONFIG is read into memory; each REQUEST stream is read from the wanted time
// on; of each batch the keys are fetched in one go, while the reader is paused; each request is
// compared. Nothing is stored anywhere, so there is no crash window.
#include "common/replay/shadow/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/config/config_mirror.h"
#include "common/db/keyring.h"
#include "common/events/sealed.h"
#include "common/model/template_key.h"
#include "common/replay/shadow/shadow_content.h"
#include "common/session/key_file.h"
#include "common/session/session.h"

enum { BATCH = 256, CONFIG_TIMEOUT_MS = 30000 };

typedef struct Item {
    const Request *request;
    Priority lane;
    int64_t stored_at_us;
} Item;

typedef struct Shadow {
    const ShadowOptions *options;
    const ShadowPlan *plan;
    Session *session;
    EpochFolder *epochs;
    MasterKey *master;
    DbPool *pool;
    Keyring *keyring;
    ConfigMirror *mirror;
    ShadowContent *content;
    ShadowTally *tally;
    Reader *reader;
    Priority lane;  // of the stream that is read
    Arena *arena;   // of the batch
    Arena *scratch; // of one request
    Item items[BATCH];
    KeyWant wants[BATCH];
    size_t count;
    int64_t taken; // for --limit
    bool resolving;
    bool read_all;
    bool over; // of this stream
} Shadow;

static void fail(Shadow *shadow, const Error *err)
{
    shadow->over = true;
    session_finish(shadow->session, err);
}

// ---- a batch ----

static bool compare_item(Shadow *shadow, const Item *item, DataKey *key, Error *err)
{
    Job job = {
        .request = item->request,
        .key = key,
        .lane = item->lane,
        .now_us = item->stored_at_us, // as the stage saw it then
        .arena = shadow->scratch,
    };
    arena_reset(shadow->scratch);
    return shadow_content_compare(shadow->content, &job, shadow->scratch, shadow->tally, err);
}

static void compare_batch(Shadow *shadow, const Error *resolve_err)
{
    Error err = {0};
    bool ok = resolve_err == NULL;
    if (!ok) {
        err = *resolve_err;
    }
    for (size_t i = 0; ok && i < shadow->count; i++) {
        ok = compare_item(shadow, &shadow->items[i], shadow->wants[i].key, &err);
    }
    shadow->resolving = false;
    if (!ok) {
        fail(shadow, &err);
    } else if (shadow->read_all) {
        shadow->over = true;
        session_finish(shadow->session, NULL);
    } else {
        reader_pause(shadow->reader, false);
    }
}

static void on_keyring_resolved(void *ctx, const Error *err)
{
    compare_batch(ctx, err);
}

static void take_message(Shadow *shadow, const BusMessage *message)
{
    const ShadowPlan *plan = shadow->plan;
    Error err = {0};
    if (plan->stop_us > 0 && clock_mono_us() > plan->stop_us) {
        shadow->tally->limited = shadow->read_all = true;
        return;
    }
    if (plan->to_us > 0 && message->stored_at_us > plan->to_us) {
        shadow->read_all = true;
        return;
    }
    if (message->replayed) {
        return; // its original is read too
    }
    shadow->tally->scanned++;
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, message->payload, shadow->arena, &err);
    if (request == NULL || !render_request_check(request, message->subject, &err)) {
        shadow->tally->results[SHADOW_UNREADABLE]++;
        return;
    }
    bool is_other_channel =
        plan->channel != CHANNEL_NONE && template_channel((int)request->channel) != plan->channel;
    if (strcmp(request->template_, plan->key) != 0 || is_other_channel) {
        return;
    }
    if (plan->limit > 0 && shadow->taken == plan->limit) {
        shadow->tally->limited = shadow->read_all = true;
        return;
    }
    shadow->taken++;
    shadow->wants[shadow->count] = key_want_of(str_from(request->meta->tenant), request->address);
    shadow->items[shadow->count++] = (Item){request, shadow->lane, message->stored_at_us};
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Shadow *shadow = ctx;
    arena_reset(shadow->arena);
    shadow->count = 0;
    for (size_t i = 0; i < count && !shadow->read_all && !shadow->over; i++) {
        take_message(shadow, &messages[i]);
    }
    if (shadow->options->on_progress != NULL) {
        shadow->options->on_progress(shadow->options->ctx, shadow->tally);
    }
    if (shadow->read_all && shadow->count == 0) {
        compare_batch(shadow, NULL);
    } else if (shadow->count > 0) {
        reader_pause(shadow->reader, true);
        shadow->resolving = true;
        keyring_resolve(shadow->keyring, shadow->wants, shadow->count, on_keyring_resolved, shadow);
    }
}

static void on_reader_caught_up(void *ctx)
{
    Shadow *shadow = ctx;
    shadow->read_all = true;
    if (!shadow->resolving && !shadow->over) {
        shadow->over = true;
        session_finish(shadow->session, NULL);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    fail(ctx, err);
}

static void on_gone(void *ctx)
{
    session_wait_end(ctx, NULL);
}

static bool read_lane(Shadow *shadow, Priority lane, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    const ShadowPlan *plan = shadow->plan;
    char subject[SUBJECT_SIZE];
    if (plan->tenant != NULL) {
        subject_request(subject, lane, str_from(plan->tenant));
    }
    ReaderOptions options = {
        .stream = topology_lane_stream("REQUEST", lane),
        .filter = plan->tenant != NULL ? subject : NULL,
        .start_time_us = plan->from_us,
        .batch_max = BATCH,
    };
    Error ignored;
    SessionWait gone = {.session = shadow->session};
    shadow->lane = lane;
    shadow->over = shadow->read_all = false;
    shadow->reader = reader_new(shadow->session->bus, &options, &handlers, shadow);
    bool ok = true;
    while (ok && !shadow->over) { // another call's answer ends the wait too
        ok = session_run(shadow->session, 0, err);
    }
    shadow->over = true;
    shadow->session->err = (Error){0};
    reader_free(shadow->reader, on_gone, &gone);
    (void)session_wait(&gone, &ignored);
    return ok;
}

// ---- parts ----

static bool on_config_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Shadow *shadow = ctx;
    return shadow_content_put(shadow->content, kind, tenant, key, message->payload, err);
}

static void on_config_ready(void *ctx)
{
    Shadow *shadow = ctx;
    session_finish(shadow->session, NULL);
}

static bool read_config(Shadow *shadow, Error *err)
{
    int64_t end_us = clock_mono_us() + CONFIG_TIMEOUT_MS * INT64_C(1000);
    shadow->mirror = config_mirror_new(shadow->session->bus, on_config_changed, shadow);
    config_mirror_on_ready(shadow->mirror, on_config_ready, shadow);
    while (!config_mirror_ready(shadow->mirror)) {
        if (clock_mono_us() > end_us || !session_run(shadow->session, CONFIG_TIMEOUT_MS, err)) {
            return error_set(err, ERROR_TRANSIENT, "CONFIG cannot be read (HINT: stentor doctor)");
        }
    }
    return true;
}

static bool open_keys(Shadow *shadow, Error *err)
{
    const ShadowOptions *files = shadow->options;
    shadow->master = keys_open(
        shadow->session, files->master_key_file, files->epoch_keys_dir, shadow->arena,
        &shadow->epochs, err);
    if (shadow->master == NULL) {
        return false;
    }
    DbPoolOptions options = {
        .url = shadow->options->database_url,
        .application_name = shadow->options->program,
        .connections = 1};
    shadow->pool = db_pool_new(&shadow->session->loop, &options);
    shadow->keyring = keyring_new(shadow->pool, shadow->master, &(KeyringOptions){0});
    return true;
}

static void close_parts(Shadow *shadow)
{
    Error ignored;
    SessionWait mirror = {.session = shadow->session, .done = shadow->mirror == NULL};
    SessionWait pool = {.session = shadow->session, .done = shadow->pool == NULL};
    if (shadow->mirror != NULL) {
        config_mirror_free(shadow->mirror, on_gone, &mirror);
    }
    (void)session_wait(&mirror, &ignored);
    if (shadow->pool != NULL) {
        db_pool_close(shadow->pool, on_gone, &pool);
    }
    (void)session_wait(&pool, &ignored);
    if (shadow->keyring != NULL) {
        keyring_free(shadow->keyring);
    }
    epoch_folder_close(shadow->epochs);
    master_key_free(shadow->master);
}

static bool run(Shadow *shadow, Error *err)
{
    bool ok = open_keys(shadow, err) && read_config(shadow, err);
    if (ok && !shadow_content_found(shadow->content, err)) {
        shadow->tally->no_version = true;
        ok = false;
    }
    for (Priority lane = PRIORITY_NONE + 1; ok && lane < PRIORITY_COUNT; lane++) {
        ok = shadow->tally->limited || read_lane(shadow, lane, err);
    }
    close_parts(shadow);
    return ok;
}

bool shadow_run(
    const ShadowOptions *options, const ShadowPlan *plan, ShadowTally *tally, Error *err)
{
    Session session;
    if (!session_open(&session, &options->session, err)) {
        return false;
    }
    Shadow *shadow = xcalloc(1, sizeof *shadow);
    shadow->options = options;
    shadow->plan = plan;
    shadow->session = &session;
    shadow->tally = tally;
    shadow->arena = arena_new(0);
    shadow->scratch = arena_new(0);
    shadow->content = shadow_content_new(plan);
    bool ok = run(shadow, err);
    shadow_content_free(shadow->content);
    arena_free(shadow->arena);
    arena_free(shadow->scratch);
    free(shadow);
    session_close(&session);
    return ok;
}
