// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/resend_rules.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__Deferred Deferred;
typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__Rendered Rendered;
typedef Stentor__V1__Meta Meta;

enum {
    ATTEMPTS_MAX = 1000, // of the dispatcher
    RESENDS_MAX = 299,   // of the archiver's status_rank
    ATTEMPTS_KEPT = 20,  // in Rendered.attempts
    // A letter's payload above this may have lost its end to make it fit
    // (common/bus/consume/dead_letter.h).
    WHOLE_BYTES_MAX = EVENT_BYTES_MAX - 64 * 1024,
};

static const Rendered *rendered_of(const Letter *letter)
{
    bool is_one =
        letter->event != NULL && letter->event->descriptor == &stentor__v1__rendered__descriptor;
    return is_one ? (const Rendered *)(const void *)letter->event : NULL;
}

static bool may_be_resent(const Letter *letter, Error *err)
{
    if (letter->body == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "it is not a dead letter: %s (HINT: stentor dlq drop SEQUENCE)",
            letter->unreadable.text);
    }
    Str subject = str_from(letter->body->subject);
    // Its ledger has the end; a replay begins its attempts again.
    if (str_eq(letter->stage, STR("webhook"))) {
        return error_set(
            err, ERROR_PERMANENT,
            "a webhook is not sent again from here (HINT: its tenant replays it from the list of "
            "its deliveries)");
    }
    // Its stream still has the event; published again it would reach subscribers twice.
    if (str_eq(letter->stage, STR("archiver")) || str_starts(subject, STR("ntf.status."))) {
        return error_set(
            err, ERROR_PERMANENT,
            "the event is in its stream and only history could not store "
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
            err, ERROR_PERMANENT,
            "its payload has %zu bytes: the dead letter may lack the end of its event",
            letter->body->payload.len);
    }
    return true;
}

// What a vendor reported is of the platform's account with it.
static bool check_asker(const Letter *letter, const ResendRules *rules, Error *err)
{
    return !rules->by_tenant || letter_holds_work(letter) ||
           str_starts(str_from(letter->body->subject), STR("evt.")) ||
           error_set(
               err, ERROR_PERMANENT,
               "what a vendor reported is sent again by an operator (HINT: stentor dlq resend "
               "SEQUENCE)");
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

// Only releasing the suppression changes that, and a release is on record: there is no force.
static bool check_suppression(const Letter *letter, const ResendRules *rules, Error *err)
{
    LetterAddress to = letter_address(letter);
    if (rules->suppressions == NULL || to.hash == NULL) {
        return true;
    }
    SuppressionReason reason = suppressions_classify(
        rules->suppressions, letter->tenant, to.channel, to.category, to.hash, NULL, rules->now_us);
    return reason == SUPPRESSION_NONE ||
           error_set(
               err, ERROR_PERMANENT,
               "its address is suppressed (%s) and would get nothing (HINT: stentor suppress "
               "release --address ADDRESS, then send it again)",
               suppression_reason_name(reason));
}

// Only a request whose end was published loses its expiry: another one goes as it was.
static bool check_request(const Letter *letter, const ResendRules *rules, Error *err)
{
    if (letter->event == NULL ||
        letter->event->descriptor != &stentor__v1__notification_request__descriptor) {
        return true;
    }
    const Request *request = (const void *)letter->event;
    bool ended = letter_end_reported(letter);
    return (ended && rules->ignore_expiry) ||
           check_expiry(
               request->expires_at_us, rules->now_us,
               ended ? "--ignore-expiry, ignore_expiry of an event" : "send a new notification",
               err);
}

static uint32_t last_attempt(const Letter *letter, const Rendered *rendered)
{
    return letter->attempts > rendered->attempt ? letter->attempts : rendered->attempt;
}

static bool check_resends(uint32_t resends, Error *err)
{
    return resends < RESENDS_MAX ||
           error_set(
               err, ERROR_PERMANENT,
               "it was resent %d times, which is the limit (HINT: send a new notification)",
               RESENDS_MAX);
}

static bool check_mail(
    const Letter *letter, const Rendered *rendered, const ResendRules *rules, Error *err)
{
    if (str_starts(str_from(letter->body->reason), STR("unknown_outcome")) && !rules->may_double) {
        return error_set(
            err, ERROR_PERMANENT,
            "this mail may have been sent already, and the recipient may get "
            "a second copy (HINT: --may-double, may_double of an event, resends it anyway)");
    }
    if (!rules->ignore_expiry && !check_expiry(
                                     rendered->expires_at_us, rules->now_us,
                                     "--ignore-expiry, ignore_expiry of an event", err)) {
        return false;
    }
    if (last_attempt(letter, rendered) >= ATTEMPTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT,
            "%d attempts were made, which is the limit (HINT: send a new "
            "notification)",
            ATTEMPTS_MAX);
    }
    return check_resends(rendered->resends, err);
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

// Past the limits: a new attempt with a fresh ladder, in a resend generation of its own.
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
    static const BusHeader sealed[] = {
        {"Stentor-Sealed", {"1", 1}},
        {"Content-Type", {"application/vnd.stentor.sealed-event", 36}}};
    if (str_starts(
            ret->out.payload, STR("\xff"
                                  "SE1"))) { // proto/stentor/v1/event.proto
        ret->out.headers = sealed;
        ret->out.header_count = sizeof sealed / sizeof *sealed;
    }
}

static bool pack_deferred(const Deferred *deferred, Arena *arena, Resend *ret, Error *err)
{
    Deferred next = *deferred;
    Request request;
    Rendered rendered;
    uint32_t resends = 0;
    if (next.work_case == STENTOR__V1__DEFERRED__WORK_REQUEST) {
        request = *next.request;
        resends = request.resends++;
        next.request = &request;
    } else if (next.work_case == STENTOR__V1__DEFERRED__WORK_RENDERED) {
        rendered = *next.rendered;
        resends = rendered.resends++;
        next.rendered = &rendered;
    }
    return check_resends(resends, err) && event_pack(&next.base, arena, &ret->out.payload, err);
}

// The version that failed would fail again: the renderer takes the one that is active by then.
static bool failed_to_render(const Letter *letter)
{
    Str code = str_from(letter->body->reason_code);
    return str_eq(letter->stage, STR("renderer")) && code.len > 0 &&
           !str_eq(code, STR("poison_message"));
}

// Work that was not rendered yet, or waits, and whose end was published: the same work in a resend
// generation of its own, so that its later status wins over that end.
static bool next_life(
    const Letter *letter, const ResendRules *rules, Arena *arena, Resend *ret, Error *err)
{
    const ProtobufCMessageDescriptor *type =
        letter->event != NULL && letter_end_reported(letter) ? letter->event->descriptor : NULL;
    const void *event = letter->event;
    if (type == &stentor__v1__notification_request__descriptor) {
        Request next = *(const Request *)event;
        if (failed_to_render(letter)) {
            next.template_version = pb_borrow("");
        }
        bool expired = next.expires_at_us > 0 && next.expires_at_us <= rules->now_us;
        next.expires_at_us = expired ? 0 : next.expires_at_us;
        return check_resends(next.resends++, err) &&
               event_pack(&next.base, arena, &ret->out.payload, err);
    }
    return type != &stentor__v1__deferred__descriptor || pack_deferred(event, arena, ret, err);
}

// Only a mail of a notification has attempts to count.
static bool is_mail(const Rendered *rendered)
{
    return rendered != NULL && rendered->attempt > 0 &&
           id_parse(str_from(rendered->meta->notification_id), "ntf_", NULL);
}

bool letter_resend(
    const Letter *letter, const ResendRules *rules, Arena *arena, Resend *ret, Error *err)
{
    if (!may_be_resent(letter, err) || !check_asker(letter, rules, err) ||
        !check_suppression(letter, rules, err)) {
        return false;
    }
    const Rendered *rendered = rendered_of(letter);
    if (is_mail(rendered)) {
        if (!check_mail(letter, rendered, rules, err) ||
            !next_attempt(letter, rendered, rules, arena, ret, err)) {
            return false;
        }
    } else {
        if (!check_request(letter, rules, err)) {
            return false;
        }
        as_it_was(letter, arena, ret);
        if (!next_life(letter, rules, arena, ret, err)) {
            return false;
        }
    }
    ret->out.subject = letter->body->subject;
    ret->out.traceparent = letter->traceparent;
    return true;
}
