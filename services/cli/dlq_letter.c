// SPDX-License-Identifier: Apache-2.0
#include "services/cli/dlq_letter.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/inbound.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__Rendered Rendered;
typedef Stentor__V1__Meta Meta;

enum {
    ATTEMPTS_MAX = 1000, // of the dispatcher
    RESENDS_MAX = 299,   // of the archiver's status_rank
    ATTEMPTS_KEPT = 20,  // in Rendered.attempts
    // A letter's payload above this may have lost its end to make it fit (common/bus/bury.h).
    WHOLE_BYTES_MAX = EVENT_BYTES_MAX - 64 * 1024,
};

// ---- reading ----

static Str token_at(Str subject, int wanted)
{
    Str token = STR_EMPTY;
    for (int i = 0; i <= wanted; i++) {
        if (!str_split(&subject, '.', &token)) {
            return STR_EMPTY;
        }
    }
    return token;
}

static const ProtobufCMessageDescriptor *type_of(Str subject)
{
    static const struct {
        const char *prefix;
        const ProtobufCMessageDescriptor *type;
    } types[] = {
        {"ntf.request.", &stentor__v1__notification_request__descriptor},
        {"ntf.rendered.", &stentor__v1__rendered__descriptor},
        {"ntf.deferred.", &stentor__v1__deferred__descriptor},
        {"ntf.status.", &stentor__v1__notification_status__descriptor},
        {"ntf.settle.", &stentor__v1__notification_status__descriptor},
        {"ntf.inbound.", &stentor__v1__inbound_callback__descriptor},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (str_starts(subject, str_from(types[i].prefix))) {
            return types[i].type;
        }
    }
    bool command = str_starts(subject, STR("evt.")) && str_ends(subject, STR(".notify"));
    return command ? &stentor__v1__notify_command__descriptor : NULL;
}

// NULL: the type has none, or the event does not.
static const Meta *meta_of(const ProtobufCMessage *event)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(event->descriptor, "meta");
    return field == NULL
               ? NULL
               : *(const Meta *const *)(const void *)((const char *)event + field->offset);
}

static const ProtobufCMessage *read_event(const Stentor__V1__DeadLetter *body, Arena *arena)
{
    Error ignored = {0};
    const ProtobufCMessageDescriptor *type = type_of(str_from(body->subject));
    if (type == NULL || body->payload.len == 0) {
        return NULL;
    }
    const ProtobufCMessage *event = event_unpack(type, pb_bytes(body->payload), arena, &ignored);
    // Protobuf takes nearly anything for an empty message with unknown fields.
    bool headless =
        event != NULL && type != &stentor__v1__notify_command__descriptor && meta_of(event) == NULL;
    return headless ? NULL : event;
}

static bool is_notification(const Meta *meta)
{
    return meta != NULL && id_parse(str_from(meta->notification_id), "ntf_", NULL);
}

static const char *find_notification(const Letter *letter)
{
    const Meta *meta = letter->body->meta;
    if (!is_notification(meta)) {
        meta = letter->event != NULL ? meta_of(letter->event) : NULL;
    }
    return is_notification(meta) ? meta->notification_id : "";
}

static const Rendered *rendered_of(const Letter *letter)
{
    bool is_one =
        letter->event != NULL && letter->event->descriptor == &stentor__v1__rendered__descriptor;
    return is_one ? (const Rendered *)(const void *)letter->event : NULL;
}

void letter_read(const BusMessage *message, Arena *arena, Letter *ret)
{
    Str subject = arena_str(arena, message->subject);
    *ret = (Letter){
        .sequence = message->sequence,
        .stored_at_us = message->stored_at_us,
        .subject = subject,
        .stage = token_at(subject, 2),
        .tenant = token_at(subject, 3),
        .traceparent = arena_str(arena, message->traceparent),
        .notification_id = "",
    };
    ret->body = (const Stentor__V1__DeadLetter *)(const void *)event_unpack(
        &stentor__v1__dead_letter__descriptor, message->payload, arena, &ret->unreadable);
    if (ret->body != NULL && ret->body->meta == NULL) {
        ret->body = NULL;
        error_set(&ret->unreadable, ERROR_PERMANENT, "it has no meta");
    }
    if (ret->body == NULL) {
        return;
    }
    ret->event = read_event(ret->body, arena);
    ret->notification_id = find_notification(ret);
    size_t told = ret->body->n_attempts;
    ret->attempts = told > 0 ? ret->body->attempts[told - 1]->number : 0;
}

// ---- a reply of MSG.GET ----

static bool decode(const json_t *message, const char *key, Arena *arena, Str *ret, Error *err)
{
    Str text = str_from(json_string_value(json_object_get(message, key)));
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 1);
    size_t len = 0;
    if (!base64_decode(text, bytes, text.len / 4 * 3 + 1, &len)) {
        return error_set(err, ERROR_PERMANENT, "'%s' of the stored message is not base64", key);
    }
    *ret = str_of(bytes, len);
    return true;
}

static Str header(Str block, const char *name)
{
    Str line;
    while (str_split(&block, '\n', &line)) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon > 0 && str_eq(str_slice(line, 0, (size_t)colon), str_from(name))) {
            return str_trim(str_slice(line, (size_t)colon + 1, line.len));
        }
    }
    return STR_EMPTY;
}

static bool read_stored(const json_t *stored, Arena *arena, BusMessage *ret, Error *err)
{
    Str headers = STR_EMPTY;
    BusMessage message = {.stream = "DEAD", .delivered = 1};
    Str time = str_from(json_string_value(json_object_get(stored, "time")));
    Str subject = str_from(json_string_value(json_object_get(stored, "subject")));
    if (!decode(stored, "data", arena, &message.payload, err) ||
        !decode(stored, "hdrs", arena, &headers, err)) {
        return false;
    }
    if (!clock_parse(time, &message.stored_at_us)) {
        return error_set(err, ERROR_PERMANENT, "'time' of the stored message is not a time");
    }
    message.subject = arena_str(arena, subject);
    message.sequence = (uint64_t)json_integer_value(json_object_get(stored, "seq"));
    message.event_id = header(headers, "Nats-Msg-Id");
    message.traceparent = header(headers, "traceparent");
    *ret = message;
    return true;
}

bool letter_reply(Str reply, Arena *arena, BusMessage *ret, bool *ret_found, Error *err)
{
    enum { NO_MESSAGE_FOUND = 10037 };
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *refusal = json_object_get(root, "error");
    const json_t *stored = json_object_get(root, "message");
    bool none = json_integer_value(json_object_get(refusal, "err_code")) == NO_MESSAGE_FOUND;
    bool ok = none;
    if (refusal != NULL && !none) {
        const char *text = json_string_value(json_object_get(refusal, "description"));
        error_set(err, ERROR_PERMANENT, "%s", text != NULL ? text : "JetStream refused");
    } else if (!none) {
        ok = json_is_object(stored)
                 ? read_stored(stored, arena, ret, err)
                 : error_set(err, ERROR_PERMANENT, "JetStream's answer is not a stored message");
    }
    if (ok) {
        *ret_found = !none;
    }
    json_decref(root);
    return ok;
}

// ---- since ----

bool letter_since(const char *text, int64_t now_us, int64_t *ret_us, Error *err)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    Str whole = str_from(text);
    int64_t count = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (str_ends(whole, str_from(units[i].unit)) &&
            str_to_i64(str_slice(whole, 0, whole.len - 1), &count) && count >= 0 &&
            count <= 36500 * 86400LL / units[i].seconds) {
            *ret_us = now_us - count * units[i].seconds * 1000000;
            return true;
        }
    }
    if (clock_parse(whole, ret_us)) {
        return true;
    }
    return error_set(
        err, ERROR_CONFIG,
        "--since '%s' is neither like '90s', '30m', '2h', '7d' nor a time like "
        "'2026-01-31T12:00:00Z'",
        text);
}

// ---- sending again ----

static bool may_be_resent(const Letter *letter, Error *err)
{
    if (letter->body == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "it is not a dead letter: %s (HINT: stentor dlq drop)",
            letter->unreadable.text);
    }
    Str subject = str_from(letter->body->subject);
    // Its stream still has the event; published again it would be told twice to whoever subscribes.
    if (str_eq(letter->stage, STR("history")) || str_starts(subject, STR("ntf.status."))) {
        return error_set(
            err, ERROR_PERMANENT,
            "the event is in its stream and only the history could not take "
            "it (HINT: stentor rebuild history)");
    }
    static const char *const read_by_stages[] = {"ntf.request.", "ntf.rendered.", "ntf.deferred.",
                                                 "ntf.inbound.", "ntf.settle.",   "evt."};
    bool read = false;
    for (size_t i = 0; i < sizeof read_by_stages / sizeof *read_by_stages; i++) {
        read = read || str_starts(subject, str_from(read_by_stages[i]));
    }
    for (size_t i = 0; i < subject.len; i++) {
        read = read && subject.ptr[i] > ' ' && subject.ptr[i] != '*' && subject.ptr[i] != '>';
    }
    if (!read) {
        return error_set(err, ERROR_PERMANENT, "no stage reads subject '%.100s'", subject.ptr);
    }
    if (letter->body->payload.len > WHOLE_BYTES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "%zu bytes: the letter may lack the end of its event",
            letter->body->payload.len);
    }
    return true;
}

static bool check_expiry(int64_t expires_at_us, int64_t now_us, const char *hint, Error *err)
{
    if (expires_at_us <= 0 || expires_at_us > now_us) {
        return true;
    }
    char at[CLOCK_RFC3339_SIZE];
    clock_format(expires_at_us, at);
    return error_set(
        err, ERROR_PERMANENT, "it expired at %s and would be refused (HINT: %s)", at, hint);
}

static uint32_t last_attempt(const Letter *letter, const Rendered *rendered)
{
    return letter->attempts > rendered->attempt ? letter->attempts : rendered->attempt;
}

static bool check_mail(
    const Letter *letter, const Rendered *rendered, const ResendRules *rules, Error *err)
{
    if (str_starts(str_from(letter->body->reason), STR("unknown_outcome")) && !rules->may_double) {
        return error_set(
            err, ERROR_PERMANENT,
            "this mail may have been sent already, and the recipient may get "
            "a second copy (HINT: --may-double sends it all the same)");
    }
    if (!rules->ignore_expiry &&
        !check_expiry(rendered->expires_at_us, rules->now_us, "--ignore-expiry", err)) {
        return false;
    }
    if (last_attempt(letter, rendered) >= ATTEMPTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT,
            "%d attempts were made, more are not taken (HINT: send a new "
            "notification)",
            ATTEMPTS_MAX);
    }
    if (rendered->resends >= RESENDS_MAX) {
        return error_set(
            err, ERROR_PERMANENT,
            "it was sent again %d times, more are not taken (HINT: send a "
            "new notification)",
            RESENDS_MAX);
    }
    return true;
}

// Those that came with the mail, then those that only the letter knows.
static void carry_attempts(const Letter *letter, Rendered *next, Arena *arena)
{
    const Stentor__V1__DeadLetter *body = letter->body;
    size_t room = next->n_attempts + body->n_attempts;
    Stentor__V1__Attempt **all = arena_array(arena, room + 1, sizeof(Stentor__V1__Attempt *));
    size_t count = 0;
    for (size_t i = 0; i < next->n_attempts; i++) {
        all[count++] = next->attempts[i];
    }
    uint32_t known = count > 0 ? all[count - 1]->number : 0;
    for (size_t i = 0; i < body->n_attempts; i++) {
        if (body->attempts[i]->number > known) {
            all[count++] = body->attempts[i];
        }
    }
    size_t dropped = count > ATTEMPTS_KEPT ? count - ATTEMPTS_KEPT : 0;
    next->attempts = all + dropped;
    next->n_attempts = count - dropped;
}

static char *replay_id(const Letter *letter, Arena *arena)
{
    const Stentor__V1__DeadLetter *body = letter->body;
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *place = arena_printf(arena, "%s/%" PRIu64, body->stream, body->stream_sequence);
    event_id_derive("replay", str_from(body->meta->event_id), str_from(place), id);
    return id;
}

// Past the limits: a new attempt with a fresh ladder, in a life of its own.
static bool next_attempt(
    const Letter *letter, const Rendered *rendered, const ResendRules *rules, Arena *arena,
    Resend *ret, Error *err)
{
    Rendered next = *rendered;
    Meta meta = *rendered->meta;
    char *id = replay_id(letter, arena);
    meta.event_id = id;
    meta.causation_id = letter->body->meta->event_id;
    meta.occurred_at_us = rules->now_us;
    next.meta = &meta;
    next.attempt = last_attempt(letter, rendered) + 1;
    next.rung = 0;
    next.resends = rendered->resends + 1;
    bool expired = rendered->expires_at_us > 0 && rendered->expires_at_us <= rules->now_us;
    next.expires_at_us = expired ? 0 : rendered->expires_at_us;
    carry_attempts(letter, &next, arena);
    *ret = (Resend){.attempt = next.attempt, .out.event_id = str_from(id)};
    return event_pack(&next.base, arena, &ret->out.payload, err);
}

// A command of another service keeps its id: under a new one it would be another notification than
// what that service publishes again itself.
static void as_it_was(const Letter *letter, Arena *arena, Resend *ret)
{
    const Stentor__V1__DeadLetter *body = letter->body;
    Str own = str_from(body->meta->causation_id);
    bool command = str_starts(str_from(body->subject), STR("evt.")) && own.len > 0;
    *ret = (Resend){
        .own_id = command,
        .out.event_id = command ? own : str_from(replay_id(letter, arena)),
        .out.payload = pb_bytes(body->payload),
    };
}

bool letter_resend(
    const Letter *letter, const ResendRules *rules, Arena *arena, Resend *ret, Error *err)
{
    if (!may_be_resent(letter, err)) {
        return false;
    }
    const Rendered *rendered = rendered_of(letter);
    if (rendered != NULL && is_notification(rendered->meta) && rendered->attempt > 0) {
        if (!check_mail(letter, rendered, rules, err) ||
            !next_attempt(letter, rendered, rules, arena, ret, err)) {
            return false;
        }
    } else {
        if (letter->event != NULL &&
            letter->event->descriptor == &stentor__v1__notification_request__descriptor &&
            !check_expiry(
                ((const Stentor__V1__NotificationRequest *)(const void *)letter->event)
                    ->expires_at_us,
                rules->now_us, "send a new notification", err)) {
            return false;
        }
        as_it_was(letter, arena, ret);
    }
    ret->out.subject = letter->body->subject;
    ret->out.traceparent = letter->traceparent;
    return true;
}
