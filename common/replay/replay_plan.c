// SPDX-License-Identifier: Apache-2.0
#include "common/replay/replay_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/span.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/deferred.pb-c.h"

static const int64_t SECOND_US = 1000000;

// Where the tenant stands in a stream's subjects. INBOUND has none: a callback is known by its
// vendor. IN_HAND has none: it is about processes.
// clang-format off
static const struct {
    const char *streams; // the beginning of their names
    const char *pattern; // '@' is the tenant
} tenant_patterns[] = {
    {"REQUEST_CRITICAL",  "ntf.request.critical.@"},
    {"REQUEST_HIGH",      "ntf.request.high.@"},
    {"REQUEST_NORMAL",    "ntf.request.normal.@"},
    {"REQUEST_LOW",       "ntf.request.low.@"},
    {"RENDERED_CRITICAL", "ntf.rendered.critical.@"},
    {"RENDERED_HIGH",     "ntf.rendered.high.@"},
    {"RENDERED_NORMAL",   "ntf.rendered.normal.@"},
    {"RENDERED_LOW",      "ntf.rendered.low.@"},
    {"STATUS",            "ntf.status.@.>"},
    {"DEFERRED",          "ntf.deferred.*.@"},
    {"SETTLE",            "ntf.settle.@"},
    {"HOOK",              "ntf.hook.@"},
    {"CONFIG",            "cfg.*.@.>"},
    {"PEOPLE",            "ppl.@"},
    {"DEAD",              "ntf.dead.*.@"},
    {"EVENTS",            "evt.@.>"},
    {"AUDIT",             "aud.@.*"},
    {"FEED",              "feed.@"},
    {"REPLIES",           "ntf.reply.@.>"},
};
// clang-format on

static bool is_stream(const ReplayPlan *plan, const char *name)
{
    return strcmp(plan->stream->name, name) == 0;
}

// NULL: its subjects have no tenant.
static const char *tenant_pattern(const StreamSpec *stream)
{
    for (size_t i = 0; i < sizeof tenant_patterns / sizeof *tenant_patterns; i++) {
        if (strcmp(tenant_patterns[i].streams, stream->name) == 0) {
            return tenant_patterns[i].pattern;
        }
    }
    return NULL;
}

bool replay_says_tenant(const StreamSpec *stream)
{
    return tenant_pattern(stream) != NULL;
}

static Str tenant_of(const StreamSpec *stream, Str subject)
{
    const char *pattern = tenant_pattern(stream);
    Str wanted = str_from(pattern);
    Str token;
    Str here;
    while (pattern != NULL && str_split(&wanted, '.', &token) && str_split(&subject, '.', &here)) {
        if (str_eq(token, STR("@"))) {
            return here;
        }
    }
    return STR_EMPTY;
}

const char *replay_filter(const ReplayPlan *plan, Arena *arena)
{
    if (plan->filter != NULL || plan->tenant == NULL) {
        return plan->filter;
    }
    const char *pattern = tenant_pattern(plan->stream);
    int before = (int)strcspn(pattern, "@");
    return arena_printf(arena, "%.*s%s%s", before, pattern, plan->tenant, pattern + before + 1);
}

// ---- one message ----

bool replay_is_past(const ReplayPlan *plan, const BusMessage *message)
{
    return (plan->to_sequence > 0 && message->sequence > plan->to_sequence) ||
           (plan->to_time_us > 0 && message->stored_at_us > plan->to_time_us);
}

// A request that comes out of the clock a second time is rendered like a new one, and a late one
// would be reported as failed though it was sent. (Requests themselves come with the mark of the
// replay, which the renderer minds.)
static bool is_expired_work(const BusMessage *message, int64_t now_us, Arena *scratch)
{
    Error err;
    const Stentor__V1__Deferred *deferred = (const Stentor__V1__Deferred *)event_unpack(
        &stentor__v1__deferred__descriptor, message->payload, scratch, &err);
    if (deferred == NULL || deferred->work_case != STENTOR__V1__DEFERRED__WORK_REQUEST) {
        return false;
    }
    int64_t expires_us = deferred->request->expires_at_us;
    return expires_us > 0 && expires_us <= now_us;
}

ReplayVerdict replay_classify(
    const ReplayPlan *plan, const BusMessage *message, int64_t now_us, Arena *scratch)
{
    const int64_t known_us = REPLAY_EVENT_HOURS * 3600 * SECOND_US;
    bool to_service = plan->service != NULL;
    if (plan->tenant != NULL &&
        !str_eq(tenant_of(plan->stream, message->subject), str_from(plan->tenant))) {
        return REPLAY_OTHER_TENANT;
    }
    // The last of a subject may be a copy; for a reader elsewhere it stands for its original.
    if (message->replayed && (to_service || !plan->last_per_subject)) {
        return REPLAY_COPY;
    }
    if (to_service && is_stream(plan, "EVENTS") && !plan->accept_again &&
        message->stored_at_us < now_us - known_us) {
        return REPLAY_OLD;
    }
    if (to_service && message->stored_at_us < plan->ledger_since_us) {
        return REPLAY_FORGOTTEN;
    }
    if (to_service && is_stream(plan, "DEFERRED") && is_expired_work(message, now_us, scratch)) {
        return REPLAY_EXPIRED;
    }
    return REPLAY_TAKE;
}

Str replay_event_id(const ReplayPlan *plan, const BusMessage *message, char space[REPLAY_ID_SIZE])
{
    snprintf(space, REPLAY_ID_SIZE, "%s/%" PRIu64, plan->stream->name, message->sequence);
    if (plan->service == NULL) {
        return message->event_id;
    }
    if (is_stream(plan, "EVENTS")) {
        // Without an id ingest knows a command by its place: services/ingest/intake/commands.c,
        // identify().
        return message->event_id.len > 0 ? message->event_id : str_from(space);
    }
    char id[EVENT_ID_SIZE];
    event_id_derive("replay", str_from(plan->run), str_from(space), id);
    snprintf(space, REPLAY_ID_SIZE, "%s", id);
    return str_from(space);
}

// ---- going on ----

static void print_time(Buf *line, const char *flag, int64_t at_us)
{
    char time[CLOCK_RFC3339_SIZE];
    clock_format(at_us, time);
    buf_printf(line, " %s %s", flag, time);
}

const char *replay_continue(const ReplayPlan *plan, uint64_t next, uint64_t end, Arena *arena)
{
    Buf line;
    buf_init(&line, 2048);
    buf_printf(&line, "stentor replay --stream %s", plan->stream->name);
    if (plan->last_per_subject) {
        buf_cstr(&line, " --last-per-subject");
    } else if (plan->readers != NULL && plan->from_time_us > 0) {
        print_time(&line, "--from-time", plan->from_time_us); // `next` may be of a former stream
    } else {
        buf_printf(&line, " --from-seq %" PRIu64 " --to-seq %" PRIu64, next, end);
    }
    if (plan->readers != NULL) {
        buf_cstr(&line, " --from-archive");
    }
    if (plan->to_time_us > 0) {
        print_time(&line, "--to-time", plan->to_time_us);
    }
    if (plan->filter != NULL) {
        buf_printf(&line, " --subject '%s'", plan->filter);
    }
    if (plan->tenant != NULL) {
        buf_printf(&line, " --tenant %s", plan->tenant);
    } else {
        buf_cstr(&line, " --all-tenants");
    }
    if (plan->service != NULL) {
        buf_printf(&line, " --to-service %s", plan->service);
    } else if (plan->subject != NULL) {
        buf_printf(&line, " --to-subject '%s'", plan->subject);
    }
    if (plan->rate > 0) {
        buf_printf(&line, " --rate %" PRId64 "/s", plan->rate);
    }
    buf_printf(
        &line, "%s%s --run %s", plan->dry_run ? " --dry-run" : "",
        plan->accept_again ? " --accept-again" : "", plan->run);
    const char *text = arena_cstr(arena, buf_view(&line));
    buf_done(&line);
    return text;
}
