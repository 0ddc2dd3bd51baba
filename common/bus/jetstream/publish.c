// SPDX-License-Identifier: Apache-2.0
// Publishes that await JetStream's ack. Each one is an entry; its reply subject names the entry, so
// an ack finds it by index. An entry waits (QUEUED), is in flight (SENT), or waits for another try
// (RESTING); one of three things ends it: an ack, a refusal for ever, the deadline.
//
// Killed between a publish and its ack: the caller's own durable record (the accept log, the
// unacked input) publishes again with the same event id; inside the duplicate window JetStream
// drops the second, beyond it readers drop it by id. The same holds for our own repeats after a
// reconnect. (bus_nats_test: publishes_survive_a_killed_server.)
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/jetstream/pub_ack.h"
#include "common/bus/jetstream/publish_entry.h"
#include "common/codec/event.h"

// ---- building ----

static bool set_header(Publisher *p, natsMsg *message, const char *name, Str value)
{
    if (value.len > HEADER_VALUE_MAX || str_has_control(value)) {
        return false;
    }
    buf_clear(&p->scratch);
    buf_str(&p->scratch, value);
    return natsMsgHeader_Set(message, name, buf_c(&p->scratch)) == NATS_OK;
}

static bool set_headers(Publisher *p, natsMsg *message, const BusOut *out)
{
    if (out->event_id.len > 0 && !set_header(p, message, "Nats-Msg-Id", out->event_id)) {
        return false;
    }
    if (out->traceparent.len > 0 && !set_header(p, message, "traceparent", out->traceparent)) {
        return false;
    }
    for (size_t i = 0; i < out->header_count; i++) {
        if (!set_header(p, message, out->headers[i].name, out->headers[i].value)) {
            return false;
        }
    }
    return true;
}

static bool create_message(Publisher *p, natsMsg **ret, const char *reply, const BusOut *out)
{
    if (out->subject[0] == '\0' || str_has_control(str_from(out->subject)) ||
        strchr(out->subject, ' ') != NULL || out->payload.len > EVENT_BYTES_MAX) {
        return false;
    }
    return natsMsg_Create(ret, out->subject, reply, out->payload.ptr, (int)out->payload.len) ==
               NATS_OK &&
           set_headers(p, *ret, out);
}

// What shows the stream: "ntf.status" of "ntf.status.acme.email.sent", "cfg" of "cfg.acme". One
// of another making than ours, or one too many, counts among the others.
static Str stream_part(const char *subject)
{
    Str all = str_from(subject), rest = all, first, second;
    (void)str_split(&rest, '.', &first);
    bool two = str_eq(first, STR("ntf")) && str_split(&rest, '.', &second);
    Str part = two ? str_slice(all, 0, first.len + 1 + second.len) : first;
    for (size_t i = 0; i < part.len; i++) {
        if (!ascii_is_alnum(part.ptr[i]) && part.ptr[i] != '.') {
            return STR("other");
        }
    }
    return part.len < PORT_PART_MAX ? part : STR("other");
}

static uint8_t find_port(Publisher *p, Str part)
{
    uint8_t at = 0;
    while (at < p->port_count && !str_eq(part, str_from(p->ports[at].part))) {
        at++;
    }
    if (at == PORTS_MAX) {
        return PORTS_MAX - 1;
    }
    if (at == p->port_count) {
        bool last = ++p->port_count == PORTS_MAX;
        (void)str_to_c(last ? STR("other") : part, p->ports[at].part, PORT_PART_MAX);
        snprintf(p->ports[at].name, LINK_PORT_SIZE, "p-%s", p->ports[at].part);
        for (char *c = p->ports[at].name; *c != '\0'; c++) {
            *c = *c == '.' ? '-' : *c;
        }
        link_port(p->link, p->ports[at].name);
    }
    return at;
}

static bool build_message(Publisher *p, Entry *e, const BusOut *out)
{
    char reply[160 + LINK_PORT_SIZE + TOKEN_SIZE];
    unsigned long long token = ((unsigned long long)e->generation << INDEX_BITS) | e->index;
    e->port = find_port(p, stream_part(out->subject));
    snprintf(reply, sizeof reply, "%s.%s.%llu", link_inbox(p->link), p->ports[e->port].name, token);
    return create_message(p, &e->message, reply, out);
}

bool publisher_send_core(Publisher *p, const BusOut *out)
{
    natsMsg *message = NULL;
    bool sent = create_message(p, &message, NULL, out) && link_publish(p->link, message);
    link_discard(p->link, message);
    return sent;
}

void publisher_publish(Publisher *p, const BusOut *out, BusAcked on_acked, void *ctx)
{
    bool full = p->pending >= BUS_PENDING_MAX || p->pending_bytes >= PENDING_BYTES_MAX;
    Entry *e = entry_acquire(p, on_acked, ctx);
    if (full) {
        entry_refuse(p, e, ERROR_TRANSIENT);
    } else if (!build_message(p, e, out)) {
        entry_refuse(p, e, ERROR_PERMANENT);
    } else {
        e->bytes = (uint32_t)out->payload.len + 256;
        e->once = out->once;
        e->slack = out->slack;
        p->pending_bytes += e->bytes;
        if (!e->slack) {
            p->company_until_ms = (int64_t)uv_now(p->loop) + SLACK_COMPANY_MS;
        }
        entry_enqueue(p, e);
    }
}

// ---- sending ----

static bool send_entry(Publisher *p, Entry *e)
{
    CRASH_POINT("bus.publishing");
    if (!link_publish(p->link, e->message)) {
        return false;
    }
    int shift = e->tries < 3 ? e->tries : 3;
    e->tries++;
    e->state = ENTRY_SENT;
    e->due_ms = (int64_t)uv_now(p->loop) + ((int64_t)RESEND_MS << shift);
    p->in_flight++;
    p->in_flight_bytes += e->bytes;
    p->slack_in_flight += e->slack ? 1 : 0;
    return true;
}

static bool has_room(const Publisher *p)
{
    return p->in_flight < p->window && p->in_flight_bytes < AIR_BYTES_MAX;
}

static void send_queued(Publisher *p)
{
    while (p->queue.first != NULL && has_room(p)) {
        if (!send_entry(p, p->queue.first)) {
            return; // stays first in the queue; a later turn finds the link back, or with room
        }
        entry_pop(&p->queue);
    }
}

static void send_slack(Publisher *p)
{
    bool company = (int64_t)uv_now(p->loop) < p->company_until_ms;
    size_t window = company ? SLACK_WINDOW : p->window;
    while (p->slack_queue.first != NULL && p->slack_in_flight < window && has_room(p)) {
        if (!send_entry(p, p->slack_queue.first)) {
            return;
        }
        entry_pop(&p->slack_queue);
    }
}

static void tell_refused(Publisher *p)
{
    Entry *e;
    while ((e = entry_pop(&p->refused)) != NULL) {
        Error err;
        if (e->refusal == ERROR_PERMANENT) {
            error_set(
                &err, ERROR_PERMANENT,
                "publish: a bad subject, a header with a control character or over %d bytes, or a "
                "payload over %d bytes",
                HEADER_VALUE_MAX, EVENT_BYTES_MAX);
        } else {
            error_set(
                &err, ERROR_TRANSIENT, "publish: more than %d wait for their ack", BUS_PENDING_MAX);
        }
        entry_finish(p, e, &err, 0, false);
    }
}

bool publisher_turn(Publisher *p)
{
    bool reported = p->refused.first != NULL;
    tell_refused(p);
    if (link_connected(p->link)) {
        send_queued(p);
        send_slack(p);
    }
    return reported;
}

// ---- answers ----

static Entry *find_entry(Publisher *p, Str token)
{
    int64_t number;
    if (!str_to_i64(token, &number) || number < 0) {
        return NULL;
    }
    uint32_t index = (uint32_t)(number & ((1 << INDEX_BITS) - 1));
    if (index >= p->block_count * BLOCK) {
        return NULL;
    }
    Entry *e = &p->blocks[index / BLOCK][index % BLOCK];
    bool same = (uint32_t)(number >> INDEX_BITS) == e->generation;
    return same && e->state != ENTRY_FREE && e->state != ENTRY_REFUSED ? e : NULL;
}

static void rest(Publisher *p, Entry *e)
{
    if (e->state != ENTRY_SENT) {
        return; // already queued again: an answer to an earlier try
    }
    entry_leave_air(p, e);
    int shift = e->tries < 4 ? e->tries - 1 : 3;
    int64_t pause = (int64_t)REST_MIN_MS << shift;
    e->state = ENTRY_RESTING;
    e->due_ms = (int64_t)uv_now(p->loop) + (pause < REST_MAX_MS ? pause : REST_MAX_MS);
}

// A full stream refuses thousands of publishes a second: an operator must see it, once in a while.
static void note_refusal(Publisher *p, const Entry *e, const char *text)
{
    snprintf(p->last_error, sizeof p->last_error, "%.150s", text);
    uint64_t now_ms = uv_now(p->loop);
    if (p->logged_ms == 0 || now_ms >= p->logged_ms + REFUSAL_LOG_MS) {
        p->logged_ms = now_ms;
        LOG(LOG_WARN,
            "JetStream refuses publishes, trying again. HINT: 'stentor doctor' shows full and "
            "missing "
            "streams",
            log_text("subject", natsMsg_GetSubject(e->message)), log_text("error", p->last_error),
            log_int("waiting", (int64_t)p->pending));
    }
}

// It is tried again every second or sooner, so what is silent for so long was taken or given up.
const char *publisher_missing(const Publisher *p)
{
    bool lately = p->orphan_ms > 0 && uv_now(p->loop) - p->orphan_ms < ORPHAN_MS;
    return lately ? p->orphan : NULL;
}

static void refused_now(Publisher *p, Entry *e, const Error *err)
{
    note_refusal(p, e, err->text);
    if (e->once) {
        entry_finish(p, e, err, 0, false);
    } else {
        rest(p, e);
    }
}

static void refuse_orphan(Publisher *p, Entry *e)
{
    char text[sizeof p->last_error];
    Error err;
    const char *subject = natsMsg_GetSubject(e->message);
    bool intake = str_starts(str_from(subject), STR("in.")); // SUBJECT_INTAKE
    snprintf(
        text, sizeof text, "no %s '%s'",
        intake ? "ingest is there that takes" : "stream has the subject", subject);
    p->orphan_ms = uv_now(p->loop);
    snprintf(
        p->orphan, sizeof p->orphan, "%.150s. HINT: %s", text,
        intake ? "start stentor-ingest" : "run 'stentor migrate'");
    error_set(&err, ERROR_TRANSIENT, "%s", text);
    refused_now(p, e, &err);
}

// Which of them, nats.c does not say. They are for one stream, and the server says it in the order
// of the publishes: so it is the oldest, unless the stream came or went just now. Then one whose
// ack is on its way rests in its place, which the ack ends; and the other is sent again as
// unanswered.
void publisher_on_unanswered(Publisher *p, const char *port)
{
    for (Entry *e = p->oldest; e != NULL; e = e->newer) {
        if (e->state == ENTRY_SENT && strcmp(p->ports[e->port].name, port) == 0) {
            refuse_orphan(p, e);
            return;
        }
    }
}

void publisher_on_ack(Publisher *p, Str token, natsMsg *message)
{
    Entry *e = find_entry(p, token);
    PubAck ack;
    Error err;
    if (e == NULL) {
        return; // late: it failed or was acked before
    }
    Str payload = str_of(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
    if (pub_ack_parse(payload, &ack, &err)) {
        CRASH_POINT("bus.stored");
        entry_finish(p, e, NULL, ack.sequence, ack.duplicate);
    } else if (err.kind == ERROR_PERMANENT || err.kind == ERROR_CONFLICT) {
        entry_finish(p, e, &err, ack.sequence, false);
    } else {
        refused_now(p, e, &err);
    }
}

static void fail_deadline(Publisher *p, Entry *e)
{
    Error err;
    error_set(
        &err, ERROR_TRANSIENT, "publish on '%s': no ack within %d ms%s%s",
        natsMsg_GetSubject(e->message), p->deadline_ms, p->last_error[0] != '\0' ? ", last: " : "",
        p->last_error);
    entry_finish(p, e, &err, 0, false);
}

static void requeue(Publisher *p, Entry *e)
{
    entry_leave_air(p, e);
    entry_enqueue(p, e);
}

void publisher_tick(Publisher *p)
{
    int64_t now = (int64_t)uv_now(p->loop);
    // entry_finish() may let the caller publish, which only appends at the new end.
    while (p->oldest != NULL && p->oldest->born_ms + p->deadline_ms <= now &&
           p->oldest->state != ENTRY_REFUSED) {
        fail_deadline(p, p->oldest);
    }
    for (Entry *e = p->oldest; e != NULL && e->born_ms + REST_MIN_MS <= now; e = e->newer) {
        if ((e->state == ENTRY_SENT || e->state == ENTRY_RESTING) && e->due_ms <= now) {
            requeue(p, e);
        }
    }
}

void publisher_on_link(Publisher *p, bool connected)
{
    for (Entry *e = connected ? p->oldest : NULL; e != NULL; e = e->newer) {
        if (e->state == ENTRY_SENT) {
            requeue(p, e);
        }
    }
}

void publisher_cancel(Publisher *p)
{
    Error err;
    error_set(&err, ERROR_CANCELLED, "publish: the bus is closing");
    p->refused = (EntryQueue){0};
    while (p->oldest != NULL) {
        entry_finish(p, p->oldest, &err, 0, false);
    }
}

// ---- start and stop ----

Publisher *publisher_new(uv_loop_t *loop, Link *link, size_t window, int deadline_ms)
{
    Publisher *p = xcalloc(1, sizeof *p);
    p->loop = loop;
    p->link = link;
    p->window = window > 0 ? window : WINDOW_DEFAULT;
    p->deadline_ms = deadline_ms > 0 ? deadline_ms : DEADLINE_DEFAULT_MS;
    buf_init(&p->scratch, HEADER_VALUE_MAX + 1);
    return p;
}

void publisher_free(Publisher *p)
{
    assert(p->pending == 0);
    for (uint32_t i = 0; i < p->block_count; i++) {
        free(p->blocks[i]);
    }
    buf_done(&p->scratch);
    free(p);
}

size_t publisher_pending(const Publisher *p)
{
    return p->pending;
}

void publisher_add_stats(const Publisher *publisher, BusStats *stats)
{
    stats->published += publisher->acked;
    stats->duplicates += publisher->duplicates;
}
