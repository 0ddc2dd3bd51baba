// SPDX-License-Identifier: Apache-2.0
// The projector that reads STATUS and DEAD and writes feedback into the rows.
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "services/outbox-relay/relay_internal.h"

enum {
    WRITE_TRIES = 3, // with the rows; then without, since they may be blocked in the database
    ASIDE_US = 5 * 1000 * 1000, // after a rejection rows are left to the retry for so long
};

static const int64_t before_start_us = INT64_C(60000000); // in case the clocks differ

static bool on_feedback_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    (void)err;
    Relay *relay = ctx;
    feedback_fold(relay->feedback, message, arena);
    return true;
}

// Killed before the commit: neither rows nor position are there, and the statuses are read again.
// Killed after it: both are. (test_outbox_crash.py)
static void on_feedback_write(void *ctx, DbTxn *txn)
{
    Relay *relay = ctx;
    relay->feedback_tries++;
    relay->feedback_aside =
        relay->feedback_tries > WRITE_TRIES || clock_mono_us() < relay->aside_until_us;
    feedback_write(relay->feedback, relay->sql, relay->feedback_aside, txn);
}

static void on_feedback_committed(void *ctx, DbTxn *txn)
{
    Relay *relay = ctx;
    relay->feedback_tries = 0;
    relay->feedback_refused = false;
    if (txn != NULL) {
        size_t counts[FEEDBACK_COUNT];
        feedback_counts(relay->feedback, txn, counts);
        CRASH_POINT_IF("outbox.feedback", counts[FEEDBACK_SENT] + counts[FEEDBACK_FAILED] > 0);
        relay_metrics_feedback(&relay->metrics, counts);
    }
    feedback_clear(relay->feedback);
}

// One row is at fault, or a right is missing. Requests and position are the relay's own tables and
// are committed without the rows; the retry isolates the row.
static bool on_feedback_refused(void *ctx, const Error *err)
{
    Relay *relay = ctx;
    if (relay->feedback_aside && err->kind != ERROR_CONFIG) {
        return false;
    }
    if (!relay->feedback_refused) {
        relay->feedback_refused = true;
        LOG(LOG_WARN, "feedback could not be written to the outbox table, retrying",
            log_error(err));
    }
    relay->aside_until_us = clock_mono_us() + ASIDE_US;
    return true;
}

void relay_open_projector(Relay *relay, int64_t oldest_request_us)
{
    static const ProjectorHandlers handlers = {
        .fold = on_feedback_fold,
        .write = on_feedback_write,
        .committed = on_feedback_committed,
        .refused = on_feedback_refused};
    Service *service = relay->service;
    int64_t now_us = clock_now_us();
    bool any = oldest_request_us > 0 && oldest_request_us < now_us;
    snprintf(
        relay->projection, sizeof relay->projection, "outbox-" STR_FMT,
        STR_ARG(relay->mapping->name));
    const ProjectorOptions options = {
        .name = relay->projection,
        .schema = "stentor_outbox",
        .streams = relay->streams,
        .database_url = service_database_url(service),
        .pool = service_pool(service),
        .begin_at_us = (any ? oldest_request_us : now_us) - before_start_us,
    };
    relay->projector = projector_new(service_bus(service), &options, &handlers, relay);
    relay->metrics.projector = relay->projector;
}

bool relay_plan_streams(Relay *relay, Error *err)
{
    Str rest = str_from(relay->options->tenants), tenant;
    size_t count = 0;
    if (rest.len == 0) {
        relay->streams[0] = "STATUS";
        relay->streams[1] = "DEAD";
        return true;
    }
    while (rest.len > 0 && str_split(&rest, ',', &tenant)) {
        if (!id_is_tenant(tenant) || count == 2 * (size_t)ACCOUNT_TENANTS_MAX) {
            return error_set(
                err, ERROR_CONFIG,
                "STENTOR_OUTBOX_TENANTS: '%.*s' is not a tenant ([a-z0-9_-]{1,32}), or the list "
                "has more than %d",
                STR_ARG(tenant), ACCOUNT_TENANTS_MAX);
        }
        for (size_t i = 0; i < 2; i++, count++) {
            char *text = relay->stream_texts[count];
            snprintf(
                text, sizeof relay->stream_texts[count],
                i == 0 ? "STATUS ntf.status.%.*s.>" : "DEAD ntf.dead.ingest.%.*s", STR_ARG(tenant));
            relay->streams[count] = text;
        }
    }
    return true;
}
